"""Copy a store on PostgreSQL by `pg_dump`, and put such a copy back; a copy counts once it was restored and counted.

A dump holds the whole schema as SQL, for `psql` too. Restored here, nothing of its SQL is run: the tables are made by
our own schema, and only the dump's rows are taken. Everything happens in a schema beside the store's own.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from claudius.errors import ClaudiusError, StoreCorrupt, StoreError
from claudius.memory.database import StorePlace
from claudius.memory.postgres.schema import BASE, create_sql, known, migrate_sql, too_old
from claudius.memory.postgres.session import Made, check_nobody_works, connected, quoted, value_of
from claudius.memory.sqlite.backups import Backup, sum_of
from claudius.memory.sqlite.file import private_files

PASSING = ("letting_go", "let_go")
"""Tables whose rows no copy holds: they name who is being erased."""
SUFFIX = ".sql.gz"
BESIDE = "_restored"
"""Ends the name of the schema in which a copy is restored."""
NAME_CHARS = 36
"""How much of the store's name the schemas beside it bear; a name has 63 bytes."""
_BESIDE = """SELECT nspname::text AS name FROM pg_namespace WHERE nspname <> current_schema()
AND nspname LIKE replace(left(current_schema(), 36), '_', '\\_') || '\\_re%'
"""
LEFT_BESIDE = f"{_BESIDE}AND nspname ~ '_restored$'"
"""The schema that a restore has left beside the store, if it was interrupted."""
_SET_ASIDE = f"{_BESIDE}AND nspname ~ '_replaced_[0-9tz]+$' ORDER BY nspname"
LACKS = "a copy is restored in a schema beside the store, which this user may not create"
_ROWS = re.compile(rb"COPY .*?\.\"?(\w+)\"? \(([^)]*)\) FROM stdin;\n")
_COUNTER = re.compile(rb"SELECT pg_catalog\.setval\('[^']*?\.\"?(\w+)\"?', (\d+), (true|false)\);\n")
_END = b"-- PostgreSQL database dump complete\n"
_COLUMNS = re.compile(rb"[\w\", ]*")


def programs() -> str:
    """Return the path of pg_dump. Raises: ClaudiusError if it is not installed."""
    found = shutil.which("pg_dump")
    if found is None:
        raise ClaudiusError("pg_dump is not installed: apt install postgresql-client, or copy the server otherwise")
    return found


def back_up(place: StorePlace, directory: Path, now: datetime, memory: Path, name: str = "") -> Backup:
    """Dump the store at one snapshot, restore the dump beside it, and compare the number of rows of every table.

    Raises: StoreCorrupt if they differ, StoreError, ClaudiusError if pg_dump cannot do it; OSError. Blocks.
    """
    program, name = programs(), name or f"claudius-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}{SUFFIX}"
    aside = directory / f".partial-{name}"
    with private_files():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as undo:
            for file in (aside, sum_of(directory / name)):
                undo.callback(file.unlink, missing_ok=True)
            with connected(place) as made:
                made.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                snapshot = value_of(made, "SELECT pg_export_snapshot()")
                check_program(program, made, place)
                _dump(program, place, value_of(made, "SELECT current_schema()"), snapshot, aside)
                counts = row_counts(made)
            found = verify(place, aside, memory, exactly=counts)
            _refuse_unverified(place, found)
            with sum_of(directory / name).open("w") as kept:
                kept.write(f"{_sha256(aside)}  {name}\n")
                kept.flush()
                os.fsync(kept.fileno())
            undo.pop_all()
        aside.rename(directory / name)
    return Backup(path=directory / name, bytes=found.bytes, checks=found.checks)


def _refuse_unverified(place: StorePlace, made: Backup) -> None:
    if not made.is_verified:
        failed = ", ".join(check for check, ok in made.checks.items() if not ok)
        raise StoreCorrupt(f"{place.shown}: the copy could not be verified ({failed})")


def verify(place: StorePlace, path: Path, memory: Path, *, exactly: Mapping[str, int] | None = None) -> Backup:
    """Restore a copy in a schema beside the store, count its rows, and take all of it back. Raises: StoreError.

    The schema has a name of its own, so that several copies can be verified at once.
    """
    checks = dict.fromkeys(("opens", "is_ours", "rows"), False)
    if (kept := sum_of(path)).exists():
        checks["sha256"] = kept.read_text("utf-8", "replace").split()[:1] == [_sha256(path)]
    with connected(place) as made:
        try:
            _load(made, path, memory, f"{BESIDE}_{secrets.token_hex(4)}")
            counts = row_counts(made)
            checks |= {"opens": True, "is_ours": True, "rows": exactly is None or counts == exactly}
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(f"{place.shown}: {LACKS}: {grant(made)}") from error
        except (OSError, EOFError, zlib.error):
            pass
        except (StoreCorrupt, psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError):
            checks["opens"] = True
        finally:
            made.rollback()
    return Backup(path=path, bytes=path.stat().st_size, checks=checks)


def restore_beside(place: StorePlace, path: Path, memory: Path) -> StorePlace:
    """Restore a copy in a schema beside the store, and return its place. Raises: StoreError, OSError."""
    with connected(place) as made:
        check_nobody_works(made, place)
        last = value_of(made, "SELECT pg_sequence_last_value('lane_token'::regclass)") or 0
        beside = _load(made, path, memory)
        made.execute("TRUNCATE worker, unread; UPDATE release SET migrating = 0, move = '', mover = ''")
        made.execute("UPDATE lane SET worker = NULL, lease_until = '-infinity'")
        made.execute(b"SELECT setval('lane_token', greatest(%s, nextval('lane_token')))", (last + 1,))
    return beside_of(place, beside)


def beside_of(place: StorePlace, schema: str) -> StorePlace:
    """Return the place of another schema of the same database. Pure."""
    given = psycopg.conninfo.conninfo_to_dict(place.url)
    given["options"] = f"{given.get('options', '')} -csearch_path={quoted(schema)}".strip()
    return StorePlace(psycopg.conninfo.make_conninfo("", **given), place.password, f"{place.shown} ({schema})")


def put_in_force(place: StorePlace, now: datetime) -> str:
    """Exchange the store for the schema that was restored beside it; return the name that the old one has now.

    Raises: TryAgain if a process is at work there.
    """
    with connected(place) as made:
        check_nobody_works(made, place)
        schema = value_of(made, "SELECT current_schema()")
        aside = f"{schema[:NAME_CHARS]}_replaced_{now.astimezone(UTC):%Y%m%dt%H%M%Sz}"
        for old, new in ((schema, aside), (f"{schema[:NAME_CHARS]}{BESIDE}", schema)):
            made.execute(f"ALTER SCHEMA {quoted(old)} RENAME TO {quoted(new)}".encode())
    return aside


def set_aside(place: StorePlace) -> list[StorePlace]:
    """Return the place of each schema that a restore has set aside, oldest first."""
    with connected(place) as made:
        return [beside_of(place, name) for (name,) in made.execute(_SET_ASIDE.encode())]


def row_counts(made: Made) -> dict[str, int]:
    """Count the rows of every table of the schema."""
    names = [name for (name,) in made.execute(_TABLES) if name not in PASSING]
    return {name: value_of(made, f"SELECT count(*) FROM {quoted(name)}") for name in names}  # noqa: S608 - our own names


def grant(made: Made) -> str:
    """Return what gives this user the right that a copy needs."""
    return f"GRANT CREATE ON DATABASE {quoted(made.info.dbname)} TO {quoted(made.info.user)}"


def check_program(program: str, made: Made, place: StorePlace) -> None:
    """Check that this pg_dump can read the server. Raises: ClaudiusError."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)(?:\.\d+)?", said)
    server = made.info.server_version // 10000
    if version and int(version[1]) < server:
        raise ClaudiusError(
            f"{program} is of PostgreSQL {version[1]}, {place.shown} of {server}: install postgresql-client-{server}"
        )


def _dump(program: str, place: StorePlace, schema: str, snapshot: str, path: Path) -> None:
    words = [program, "--dbname", place.url, "--schema", quoted(schema), "--snapshot", snapshot, "--no-owner",
             "--no-privileges", *(f"--exclude-table-data=*.{name}" for name in PASSING),
             "--compress", "6", "--file", str(path)]  # fmt: skip
    secret = {"PGPASSWORD": place.password} if place.password else {}
    ran = subprocess.run(words, env={**os.environ, **secret}, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise StoreError(f"{place.shown}: pg_dump failed with exit code {ran.returncode}")


def _load(made: Made, path: Path, memory: Path, end: str = BESIDE) -> str:
    """Make a schema beside the store's own, whose name ends so, and fill it; return its name. It is uncommitted."""
    beside = f"{value_of(made, 'SELECT current_schema()')[:NAME_CHARS]}{end}"
    made.execute(f"DROP SCHEMA IF EXISTS {quoted(beside)} CASCADE".encode())
    made.execute(f"CREATE SCHEMA {quoted(beside)}; SET LOCAL search_path = {quoted(beside)}".encode())
    version = _version_in(path)
    if version > known(memory):
        raise too_old(str(path), version, known(memory))
    made.execute(create_sql(memory, version).encode())
    tables = {name for (name,) in made.execute(_TABLES)}
    made.execute(f"TRUNCATE {', '.join(map(quoted, tables))}".encode())
    refers = made.execute(_REFERS).fetchall()
    for table, name, _ in refers:
        made.execute(f"ALTER TABLE {quoted(table)} DROP CONSTRAINT {quoted(name)}".encode())
    for table in tables:
        made.execute(f"ALTER TABLE {quoted(table)} DISABLE TRIGGER USER".encode())
    _fill(made, path, tables)
    for table in tables:
        made.execute(f"ALTER TABLE {quoted(table)} ENABLE TRIGGER USER".encode())
    for table, name, words in refers:
        made.execute(f"ALTER TABLE {quoted(table)} ADD CONSTRAINT {quoted(name)} {words}".encode())
    made.execute(migrate_sql(memory, version).encode())
    made.execute("ANALYZE")
    return beside


def _version_in(path: Path) -> int:
    """Return the version of the schema that a dump holds. Raises: StoreCorrupt, OSError, EOFError, zlib.error."""
    with gzip.open(path) as lines:
        for line in lines:
            rows = _ROWS.fullmatch(line)
            if rows and rows[1] == b"release":
                values = dict(zip(rows[2].split(b", "), next(lines).rstrip(b"\n").split(b"\t"), strict=False))
                if (found := values.get(b"schema", b"")).isdigit() and int(found) >= BASE:
                    return int(found)
    raise StoreCorrupt(f"{path} is not a whole copy of a store of Claudius")


def _fill(made: Made, path: Path, tables: set[str]) -> None:
    """Take the rows and the counters of a dump. Raises: StoreCorrupt, OSError, EOFError, zlib.error, psycopg.Error."""
    is_whole, filled = False, set[str]()
    with gzip.open(path) as lines:
        for line in lines:
            is_whole = is_whole or line == _END
            if counter := _COUNTER.fullmatch(line):
                made.execute(
                    b"SELECT setval(%s, %s, %s)", (counter[1].decode(), int(counter[2]), counter[3] == b"true")
                )
            if not (rows := _ROWS.fullmatch(line)):
                continue
            table = rows[1].decode()
            if table not in tables or not _COLUMNS.fullmatch(rows[2]):
                raise StoreCorrupt(f"{path} holds the table {table}, which is not ours")
            filled.add(table)
            with made.cursor().copy(b'COPY "%b" (%b) FROM STDIN' % (rows[1], rows[2])) as sink:
                for row in lines:
                    if row == b"\\.\n":
                        break
                    sink.write(row)
    if not is_whole or "release" not in filled:
        raise StoreCorrupt(f"{path} is not a whole copy of a store of Claudius")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_TABLES = b"""SELECT relname::text FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname"""
_REFERS = b"""SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND connamespace = current_schema()::regnamespace"""
