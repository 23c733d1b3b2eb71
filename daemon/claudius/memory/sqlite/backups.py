"""Make and verify backups of the database; a copy becomes a backup only after it has been verified."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from claudius.errors import StoreCorrupt
from claudius.memory.sqlite.file import APPLICATION_ID, ONCE_KIB, open_reader, pragma, private_files, siblings

PATTERN, DUMP_PATTERN = "claudius-*.db", "claudius-*.sql.gz"
"""Names of copies, and of the dumps that earlier releases made of a database server."""
_STAMP = r"\d{8}T\d{6}(\.\d{6})?Z"
_OURS = re.compile(
    rf"(\.partial-)?claudius-{_STAMP}\.(db|sql\.gz)(\.sha256|-wal|-shm|-journal)?|(quarantine|replaced)-{_STAMP}|memory-{_STAMP}\.(git|bundle)"
)
SET_ASIDE = "replaced-"
"""Begins the name of a directory that holds what a restore, an import or a move has replaced."""
COPY_S = 120.0
"""Time limit for copying a damaged database, in seconds."""


class Backup(Struct, frozen=True, kw_only=True):
    """One verified copy."""

    path: Path
    bytes: int
    checks: Mapping[str, bool]

    @property
    def has_sum(self) -> bool:
        """Whether a sha256 lay beside it; a copy made by an older version has none."""
        return "sha256" in self.checks

    @property
    def is_verified(self) -> bool:
        """Whether every check passed."""
        return all(self.checks.values())


def backups_of(database: Path) -> Path:
    """Return the backup directory of a database. Pure."""
    return database.parent.parent / "backups"


def is_ours(name: str) -> bool:
    """Return whether a name in the backup directory is one that we give to a backup or a quarantined copy. Pure."""
    return _OURS.fullmatch(name) is not None


def newest_copy(directory: Path) -> Path | None:
    """Return the newest sound copy: a backup, which was verified before it got its name, or what was set aside."""
    found = [*directory.glob(PATTERN), *directory.glob(f"{SET_ASIDE}*/claudius.db")]
    dated = sorted(found, key=lambda path: _made(path.relative_to(directory)), reverse=True)
    return next((path for path in dated if path.parent == directory or verify(path).is_verified), None)


def _made(path: Path) -> str:
    stamp = re.search(_STAMP, str(path))
    return stamp[0] if stamp else ""


def aside_at(directory: Path, now: datetime) -> Path:
    """Return the directory to which a command moves what it replaces; nothing is made. Pure."""
    return directory / f"{SET_ASIDE}{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"


def copies_in(directory: Path) -> list[Path]:
    """Return the verified copies of a directory, dumps of earlier releases among them, oldest first."""
    found = (path for pattern in (PATTERN, DUMP_PATTERN) for path in directory.glob(pattern))
    return sorted(found, key=lambda path: path.name)


def made_at(path: Path) -> datetime:
    """Return when a backup was made, by its name. Pure."""
    return datetime.strptime(path.name[9:24], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def sum_of(path: Path) -> Path:
    """Return the path of a copy's sha256: beside it, in the form that `sha256sum -c` reads. Pure."""
    return path.with_name(f"{path.name}.sha256")


def back_up(database: Path, directory: Path, now: datetime, name: str = "") -> Backup:
    """Copy the database while it may be written to, verify the copy, and keep its sha256 beside it.

    Raises: StoreCorrupt if the copy does not hold what the database holds; sqlite3.Error; OSError.
    """

    def copied(aside: Path) -> Mapping[str, int]:
        with closing(open_reader(database, cache_kib=ONCE_KIB)) as connection:
            connection.execute("BEGIN")
            counts = row_counts(connection)
            connection.execute("COMMIT")
            connection.execute("VACUUM INTO ?", (str(aside),))
        return counts

    return keep_verified(str(database), directory, now, name, copied)


def keep_verified(
    source: str, directory: Path, now: datetime, name: str, copied: Callable[[Path], Mapping[str, int]]
) -> Backup:
    """Have a file `copied`, verify it, and give it its name, with its sha256 beside it; if that fails, nothing is left.

    `copied` returns how many rows of each table it must hold. Raises: StoreCorrupt if it is not verified; OSError.
    """
    path = directory / (name or f"claudius-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.db")
    aside = directory / f".partial-{path.name}"

    def discard() -> None:
        for one in directory.iterdir():
            if aside.name in one.name:
                one.unlink()

    with private_files(), ExitStack() as undo:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside.unlink(missing_ok=True)
        undo.callback(discard)
        undo.callback(sum_of(path).unlink, missing_ok=True)
        made = verify(aside, at_least=copied(aside))
        if not made.is_verified:
            failed = ", ".join(check for check, ok in made.checks.items() if not ok)
            raise StoreCorrupt(f"{source}: a copy could not be verified ({failed}); the database was left as it is")
        with aside.open("rb") as written:  # older copies may be deleted for it
            os.fsync(written.fileno())
        with sum_of(path).open("w") as kept:
            kept.write(f"{sha256_of(aside)}  {path.name}\n")
            kept.flush()
            os.fsync(kept.fileno())  # an empty one after a power loss would refuse a good copy
        aside.rename(path)
        undo.pop_all()
    return replace(made, path=path)


def discard(path: Path) -> None:
    """Delete a copy and its checksum file."""
    path.unlink(missing_ok=True)
    sum_of(path).unlink(missing_ok=True)


def quarantine(database: Path, directory: Path, now: datetime) -> Path:
    """Copy a damaged database with its log and index unchanged into `directory`; return where they are.

    A separate process copies, because opening and closing the files in this one would drop SQLite's locks on them.
    Raises: OSError, subprocess.SubprocessError.
    """
    aside = directory / f"quarantine-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"
    aside.mkdir(mode=0o700, parents=True)
    found = [str(file) for file in (database, *siblings(database)) if file.exists()]
    if found:
        subprocess.run(["cp", "-p", "--", *found, str(aside)], check=True, timeout=COPY_S, capture_output=True)
    return aside


def verify(path: Path, *, at_least: Mapping[str, int] | None = None) -> Backup:
    """Check that a copy is complete, belongs to us, and holds `at_least` that many rows per table.

    If its sha256 lies beside it, the copy must match it; without one, `checks` has no `sha256`.
    """
    checks = dict.fromkeys(("opens", "is_ours", "integrity", "foreign_keys", "rows"), False)
    if (kept := sum_of(path)).exists():
        checks["sha256"] = path.exists() and kept.read_text("utf-8", "replace").split()[:1] == [sha256_of(path)]
    try:
        with closing(open_reader(path, cache_kib=ONCE_KIB, is_alone=True)) as connection:
            checks["is_ours"] = pragma(connection, "application_id") == APPLICATION_ID
            checks["opens"] = True
            checks["integrity"] = pragma(connection, "integrity_check(1)") == "ok"
            checks["foreign_keys"] = connection.execute("PRAGMA foreign_key_check").fetchone() is None
            counts = row_counts(connection)
            checks["rows"] = all(counts.get(table, -1) >= count for table, count in (at_least or {}).items())
    except sqlite3.Error:
        pass
    return Backup(path=path, bytes=path.stat().st_size if path.exists() else 0, checks=checks)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Count the rows of every table that holds rows of its own."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND rootpage > 0"
    )
    counts = {}
    for (table,) in tables.fetchall():
        (counts[table],) = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608 - our own names
    return counts
