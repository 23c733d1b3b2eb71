"""`claudius migrate`: move a soul from its file to a database server, or back."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from claudius.cli.output import json_option, print_result
from claudius.config.load import check_setting, holds_password, load, overriding, parse_value
from claudius.config.load import write_setting as write
from claudius.errors import BadConfiguration, ClaudiusError, StoreError, TryAgain, UsageProblem
from claudius.home import Home, replace, shipped, write_private
from claudius.memory.database import SQLITE, StorePlace
from claudius.memory.opening import MISSING, PASSWORD, place_of
from claudius.runtime.life import HomeLock

if TYPE_CHECKING:
    from claudius.memory.postgres.moving import MovedTable, Told
    from claudius.memory.postgres.session import Move
    from claudius.memory.store import Store

KEY = "store.url"
ARGUMENT = "the argument of `claudius migrate`"
READ_ONLY = 0o400
COPIED = " copied"
"""Follows the move's name in the home's note of it once the file that it made is whole."""


@click.command()
@click.argument("to", metavar="postgres://…|sqlite")
@click.option("--dry-run", is_flag=True, help="Copy and compare everything, then take the copy back.")
@json_option
def migrate(to: str, *, dry_run: bool, as_json: bool) -> None:
    """Move the soul to a PostgreSQL server, or back to a file, and set `store.url`.

    Nothing may run. Every table is copied and compared; if this is interrupted, nothing has moved: run it again in the
    same home. The file that the soul leaves is kept in the home's backups, read-only.
    """
    home, url = Home.of(os.environ), _asked(to)
    if (override := overriding(home, os.environ, KEY)) and place_of(home).url != url:
        fix = "write it into config.toml instead, where this command changes it"
        raise BadConfiguration(override[1], override[0], "is set", fix)
    home.create()
    check_setting(home, KEY, url)
    with HomeLock(home):
        try:
            document = _to_server(home, url, is_kept=not dry_run) if url != SQLITE else _to_file(home, not dry_run)
        except ImportError as error:
            raise StoreError(MISSING) from error
    print_result(document, _lines(document), as_json=as_json)


def _asked(to: str) -> str:
    """Return the URL that was typed. Raises: UsageProblem, BadConfiguration."""
    if holds_password(to):
        raise BadConfiguration(ARGUMENT, "", "holds a password", f"put it into .env as {PASSWORD}")
    try:
        return str(parse_value(KEY, to))
    except BadConfiguration as error:
        raise UsageProblem(f"{ARGUMENT} must be postgres://user@host/database or sqlite (found {to!r})") from error


def _to_server(home: Home, url: str, *, is_kept: bool) -> dict[str, Any]:
    from claudius.memory.postgres import moving
    from claudius.memory.postgres.session import closed_at

    secret = load(home, os.environ).secrets.get(PASSWORD)
    place, began_s = StorePlace(url, secret.reveal() if secret else ""), time.monotonic()
    state, closed = moving.state_of(place), closed_at(place)
    move, _ = _begun(home, closed.move.id if closed else "")
    if not home.database.exists():
        if state == "unfinished" and closed and closed.is_of(move):  # all was moved but the last word
            moving.finish(place)
            _note_of(home).unlink(missing_ok=True)
            return _document(SQLITE, place.shown, [], began_s)
        if closed:
            raise TryAgain(closed.line(place.shown, url))
        raise ClaudiusError(f"{home.database} does not exist: there is nothing to move")
    if state == "soul":
        raise TryAgain(f"{place.shown} holds a soul already: name an empty database or schema")
    _check_rested(home)
    if is_kept:
        _note(home)
        _keep(home, move.id)
    with _progress(_rows_of(home.database)) as told:
        moved = moving.to_postgres(home.database, place, shipped("memory"), told, is_kept=is_kept, move=move)
    kept = None
    if is_kept:
        if place_of(home).url != url:
            write(home, KEY, url)
        kept = _aside(home)
        kept.chmod(READ_ONLY)
        moving.finish(place)
        _note_of(home).unlink(missing_ok=True)
    return _document(SQLITE, place.shown, moved, began_s, kept, is_dry=not is_kept)


def _to_file(home: Home, is_kept: bool) -> dict[str, Any]:  # noqa: FBT001 - called once
    from claudius.memory.postgres import moving
    from claudius.memory.postgres.session import closed_at
    from claudius.reports import soul as reports
    from claudius.reports.opened import edit

    place, began_s = place_of(home), time.monotonic()
    if not place.is_postgres:
        raise ClaudiusError(f"{home.root} keeps everything in a file already")
    if moving.state_of(place) == "empty":
        raise ClaudiusError(f"{place.shown} holds nothing: there is nothing to move")
    fresh, closed, moved = (
        home.state / (".moving.db" if is_kept else ".trying.db"),
        closed_at(place),
        list["MovedTable"](),
    )
    move, is_copied = _begun(home, closed.move.id if closed else "")
    own: list[str] = []
    if not is_copied:
        if is_kept:
            if not closed:
                edit(home, _overwrite)
            _keep(home, move.id)
        with _progress(moving.rows_at(place)) as told:
            moved = moving.to_sqlite(place, fresh, shipped("memory"), told, is_kept=is_kept, move=move)
    if is_kept:
        if moving.is_paused(place):
            write(home, "runtime.paused", value=True)
        _keep(home, move.id + COPIED)
        if fresh.exists():
            _aside(home, fresh)
        if pushed := reports.pushed(home):
            own = reports.own_again(home, pushed, datetime.now(UTC))
        write(home, KEY, SQLITE)
        _note_of(home).unlink(missing_ok=True)
        _note(home)
    return _document(place.shown, SQLITE, moved, began_s, is_dry=not is_kept) | {"soul": own}


async def _overwrite(store: Store) -> None:
    """Overwrite on the server what was erased there, which nobody can once the soul has left. Raises: TryAgain."""
    if await store.erasure.is_to_be_overwritten() and (left := await store.erasure.overwrite()):
        raise TryAgain(f"somebody was forgotten, and this could not be overwritten yet: {', '.join(left)}")


def _begun(home: Home, closed_by: str) -> tuple[Move, bool]:
    """Return the move that this home began, if it closed the server, else a new one; and whether its file is whole."""
    from claudius.memory.postgres.session import Move

    note = _note_of(home)
    begun, _, rest = note.read_text("utf-8").partition(" ") if note.exists() else ("", "", "")
    is_same = bool(begun) and begun == closed_by
    name = begun if is_same else secrets.token_hex(16)
    return Move(name, f"{home.root} on {socket.gethostname()}"), is_same and rest == COPIED.strip()


def _keep(home: Home, text: str) -> None:
    """Write which move this home has begun, so that it outlasts whatever interrupts the move."""
    from claudius.memory.postgres.moving import sync

    write_private(_note_of(home), text)
    sync(_note_of(home))


def _note_of(home: Home) -> Path:
    """Return the file that says which move this home has begun."""
    return home.state / "move"


def _check_rested(home: Home) -> None:
    """Check that the last process ended well, and that nobody waits for an answer. Raises: TryAgain, StoreError."""
    import sqlite3

    from claudius.memory.postgres.moving import UNFINISHED, unfinished
    from claudius.memory.sqlite.file import open_reader
    from claudius.memory.sqlite.schema import check_identity, load_migrations, translate

    try:
        with closing(open_reader(home.database)) as found:
            migrations = load_migrations(shipped("memory") / "schema")
            if check_identity(found, home.database, migrations) < len(migrations):
                raise TryAgain(f"{home.database} is of an earlier release: start the daemon once and stop it")
            last = found.execute("SELECT clean FROM boot ORDER BY n DESC LIMIT 1").fetchone()
            (waiting,) = found.execute(UNFINISHED).fetchone()
    except sqlite3.Error as error:
        raise translate(error, home.database) from error
    if last and not last["clean"]:
        raise TryAgain(f"{home.database}: the last process did not end cleanly: start the daemon and stop it")
    if waiting:
        raise TryAgain(unfinished(str(home.database), waiting))


def _note(home: Home) -> None:
    """Note the move in the audit log of the file."""
    from claudius.adapters.terminal import own_person
    from claudius.memory.audit import AuditEntry
    from claudius.memory.sqlite import SqliteStore

    async def note() -> None:
        store = SqliteStore(home.database)
        await store.open()
        await store.audit.note(AuditEntry(who=own_person(), act="setting", target=KEY), datetime.now(UTC))
        await store.close(clean=False)

    asyncio.run(note())


def _rows_of(database: Path) -> int:
    from claudius.memory.sqlite.backups import row_counts
    from claudius.memory.sqlite.file import open_reader

    with closing(open_reader(database)) as found:
        return sum(row_counts(found).values())


@contextmanager
def _progress(rows: int) -> Iterator[Told]:
    """Show on a terminal how far it is; each row counts twice, because it is copied and then compared."""
    if not sys.stderr.isatty():
        yield lambda _, __: None
        return
    with click.progressbar(length=2 * rows, file=sys.stderr, label="moving") as bar:

        def told(table: str, rows: int) -> None:
            bar.label = f"{table:<24}"
            bar.update(rows)

        yield told


def _aside(home: Home, fresh: Path | None = None) -> Path:
    """Move the database and its log to a directory of the backups, and put a fresh one in its place, all together.

    Returns where what was there is now.
    """
    from claudius.memory.sqlite.backups import aside_at
    from claudius.memory.sqlite.file import siblings

    aside = aside_at(home.backups, datetime.now(UTC))
    replace(home.root, {home.database: fresh, **dict.fromkeys(siblings(home.database))}, aside)
    return aside / home.database.name


def _document(
    source: str, to: str, moved: Sequence[MovedTable], began_s: float, kept: Path | None = None, *, is_dry: bool = False
) -> dict[str, Any]:
    return {
        "from": source,
        "to": to,
        "dry_run": is_dry,
        "rows": sum(one.rows for one in moved),
        "tables": {one.name: {"rows": one.rows, "sha256": one.sha256} for one in moved},
        "kept": str(kept) if kept else None,
        "seconds": round(time.monotonic() - began_s, 1),
        "soul": [],
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    if document["soul"]:
        yield f"soul/ is now as it was pushed, with other texts than before in: {', '.join(document['soul'])}"
    if not document["tables"]:
        yield f"the interrupted move is ended; the soul is at {document['to']} now"
        return
    counted = f"{document['rows']} rows in {len(document['tables'])} tables, equal on both, {document['seconds']} s"
    if document["dry_run"]:
        yield f"{counted}; the copy was taken back, nothing has moved"
        return
    yield f"{counted}; the soul is at {document['to']} now"
    if document["kept"]:
        yield f"the file that it left is {document['kept']}, read-only"
