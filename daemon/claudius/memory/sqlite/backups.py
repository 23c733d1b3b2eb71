"""Verified copies of the database: made, checked, and only then called backups."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from claudius.errors import StoreCorrupt
from claudius.memory.sqlite.connection import APPLICATION_ID, ONCE_KIB, open_reader, private_files, siblings

PATTERN = "claudius-*.db"
_STAMP = r"\d{8}T\d{6}(\.\d{6})?Z"
_OURS = re.compile(
    rf"(\.partial-)?claudius-{_STAMP}\.db(\.sha256|-wal|-shm|-journal)?|(quarantine|replaced)-{_STAMP}|memory-{_STAMP}\.(git|bundle)"
)
COPY_S = 120.0
"""How long setting a damaged database aside may take."""


class Backup(Struct, frozen=True, kw_only=True):
    """One verified copy."""

    path: Path
    bytes: int
    checks: Mapping[str, bool]

    @property
    def has_sum(self) -> bool:
        """A sha256 lay beside it: a copy of an older version has none."""
        return "sha256" in self.checks

    @property
    def is_verified(self) -> bool:
        """Every check held."""
        return all(self.checks.values())


def backups_of(database: Path) -> Path:
    """Return where a home keeps the backups of its database. Pure."""
    return database.parent.parent / "backups"


def is_ours(name: str) -> bool:
    """Tell whether something among the backups bears a name that we give to a copy, or to what was set aside. Pure."""
    return _OURS.fullmatch(name) is not None


def newest_backup(directory: Path) -> Path | None:
    """Return the newest verified backup. A copy bears its final name only once it has been verified."""
    return max(directory.glob(PATTERN), default=None, key=lambda path: path.name)


def sum_of(path: Path) -> Path:
    """Return where the sha256 of a copy lies: beside it, in the form that `sha256sum -c` reads. Pure."""
    return path.with_name(f"{path.name}.sha256")


def back_up(database: Path, directory: Path, now: datetime, name: str = "") -> Backup:
    """Copy the database as it stands, beside whoever writes it, verify the copy, and keep its sha256 beside it.

    Raises: StoreCorrupt where the copy does not hold what the database holds; sqlite3.Error; OSError.
    """
    name = name or f"claudius-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.db"
    aside = directory / f".partial-{name}"
    with private_files(), closing(open_reader(database, cache_kib=ONCE_KIB)) as connection:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside.unlink(missing_ok=True)
        try:
            connection.execute("BEGIN")
            counts = row_counts(connection)
            connection.execute("COMMIT")
            connection.execute("VACUUM INTO ?", (str(aside),))
            made = verify(aside, at_least=counts)
            _refuse_unverified(database, made)
            with sum_of(directory / name).open("w") as kept:
                kept.write(f"{_sha256(aside)}  {name}\n")
                kept.flush()
                os.fsync(kept.fileno())  # an empty one after a power loss would refuse a good copy
        except BaseException:
            aside.unlink(missing_ok=True)
            sum_of(directory / name).unlink(missing_ok=True)
            raise
        aside.rename(directory / name)
    return Backup(path=directory / name, bytes=made.bytes, checks=made.checks)


def discard(path: Path) -> None:
    """Delete a copy and its sum."""
    path.unlink(missing_ok=True)
    sum_of(path).unlink(missing_ok=True)


def quarantine(database: Path, directory: Path, now: datetime) -> Path:
    """Copy a damaged database, its log and its index, as they lie there, into `directory`; return where they are.

    Another process copies: were the files opened and closed in this one, SQLite's locks on them would be gone.
    Raises: OSError, subprocess.SubprocessError.
    """
    aside = directory / f"quarantine-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"
    aside.mkdir(mode=0o700, parents=True)
    found = [str(file) for file in (database, *siblings(database)) if file.exists()]
    if found:
        subprocess.run(["cp", "-p", "--", *found, str(aside)], check=True, timeout=COPY_S, capture_output=True)
    return aside


def _refuse_unverified(database: Path, made: Backup) -> None:
    if not made.is_verified:
        failed = ", ".join(check for check, ok in made.checks.items() if not ok)
        raise StoreCorrupt(f"{database}: a backup could not be verified ({failed}); the database was left as it is")


def verify(path: Path, *, at_least: Mapping[str, int] | None = None) -> Backup:
    """Open a copy and check that it is whole, ours, and holds `at_least` so many rows a table.

    Where its sha256 lies beside it, it must be the same byte for byte: without one there is no check of that name.
    """
    checks = dict.fromkeys(("opens", "is_ours", "integrity", "foreign_keys", "rows"), False)
    if (kept := sum_of(path)).exists():
        checks["sha256"] = path.exists() and kept.read_text("utf-8", "replace").split()[:1] == [_sha256(path)]
    try:
        uri = f"file:{quote(str(path))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            checks["is_ours"] = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
            checks["opens"] = True
            checks["integrity"] = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
            checks["foreign_keys"] = connection.execute("PRAGMA foreign_key_check").fetchone() is None
            counts = row_counts(connection)
            checks["rows"] = all(counts.get(table, -1) >= count for table, count in (at_least or {}).items())
    except sqlite3.Error:
        pass
    return Backup(path=path, bytes=path.stat().st_size if path.exists() else 0, checks=checks)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Count the rows of every table."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    counts = {}
    for (table,) in tables.fetchall():
        counts[table] = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]  # noqa: S608 - our own names
    return counts
