"""`claudius backup`: make, verify and restore copies of the database, or of a whole soul, to move it elsewhere.

A portable copy is one directory: the database, the soul's texts and the settings, but no secrets.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

import click

from claudius.cli.output import Group, json_option, print_result
from claudius.errors import EXIT_FAILED, BadSoul, ClaudiusError, UsageProblem
from claudius.home import DIRECTORY_MODE, FILE_MODE, Home, discard_incoming, incoming, replace, shipped
from claudius.memory.database import StorePlace
from claudius.memory.opening import place_of
from claudius.memory.sqlite.backups import aside_at, back_up, sha256_of, sum_of, verify
from claudius.memory.sqlite.schema import translate
from claudius.reports.status import EVERY, backups
from claudius.runtime.life import HomeLock

if TYPE_CHECKING:
    from claudius.memory.sqlite.store import HeardBefore
    from claudius.memory.store import Store

MANIFEST = "MANIFEST.json"
DATABASE = "claudius.db"
CONFIG = "config.toml"
SOUL, PORTRAITS = "soul", "memory"
"""The portraits are exported for reading only: an importing home creates its own from the database."""
_IMPORT = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
"""An import string: a module, a colon, a name in the module."""
_PROCESSES = """
    SELECT process FROM conversation WHERE process LIKE '%:%' UNION
    SELECT previous_process FROM conversation WHERE previous_process LIKE '%:%' UNION
    SELECT process FROM due WHERE process LIKE '%:%'
"""
FORGOTTEN = "people who were forgotten after that copy was made were erased from it, too"
NOT_KNOWN = (
    "there was no sound database that says what was answered since: whatever was said before now counts as answered; "
    "whoever still waits must ask again"
)
NO_SUM = "its pages were checked, but not its bytes: there is no sha256 file beside it"
"""Shown for a copy that was made before copies had a checksum."""


def _refuse_a_server(home: Home) -> None:
    place = place_of(home)
    if place.is_postgres:
        raise ClaudiusError(f"{place.shown} is a database server: `claudius backup create` copies it")


def _refuse_a_dump(path: Path) -> None:
    if path.name.endswith(".sql.gz"):
        how = "`gunzip -c FILE | psql DATABASE` puts it into an empty database, which store.url can name"
        raise ClaudiusError(f"{path} is a dump as earlier releases made them of a database server: {how}")


@click.group(cls=Group)
def backup() -> None:
    """Verified copies of the database, and how to restore one."""


@backup.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--portable", is_flag=True, help="The whole soul, to move it elsewhere, to the new directory PATH.")
@json_option
def create(path: Path | None, *, portable: bool, as_json: bool) -> None:
    """Copy the database, even while the daemon is running, and verify the copy.

    The copy goes to the home's backups, to the directory PATH, or, if PATH ends in .db, to that file. It is such a file
    of a database server, too. A portable copy holds memory, texts and settings, but no secrets.
    """
    if portable:
        if path is None:
            raise UsageProblem("a portable copy is a new directory: name it")
        _export(path, as_json=as_json)
        return
    home, now = Home.of(os.environ), datetime.now(UTC)
    place = place_of(home)
    if not place.is_postgres and not home.database.exists():
        raise ClaudiusError(f"{home.database} does not exist yet: there is nothing to copy")
    is_file = path is not None and path.name.endswith(".db")
    if path:
        _refuse_a_dump(path)
    if path and is_file and path.exists():
        raise ClaudiusError(f"{path} exists: name another file")
    try:
        directory = (path.parent if is_file else path) if path else home.backups
        name = path.name if path and is_file else ""
        if place.is_postgres:
            from claudius.memory.postgres import moving

            made = moving.back_up(place, directory, now, shipped("memory"), name)
        else:
            made = back_up(home.database, directory, now, name)
    except sqlite3.Error as error:
        raise translate(error, home.database) from error
    except OSError as error:
        raise ClaudiusError(f"{path or home.backups} cannot be written: {error.strerror}") from error
    document = {"path": str(made.path), "bytes": made.bytes, "verified": made.is_verified}
    print_result(document, [f"{made.path}: {made.bytes} bytes, verified"], as_json=as_json)


@backup.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the verified copies in the home's backups, newest first."""
    found = backups(Home.of(os.environ))
    lines = [f"{one['at']:%Y-%m-%d %H:%M} UTC  {one['bytes']:>12,} bytes  {one['path']}" for one in found]
    print_result(found, lines or ["there is no backup yet: `claudius backup create`"], as_json=as_json)


@backup.command("verify")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def verify_(path: Path, *, as_json: bool) -> int:
    """Check that a copy is whole and Claudius's own."""
    _refuse_a_dump(path)
    found = verify(path)
    failed = ", ".join(name for name, ok in found.checks.items() if not ok)
    lines = [f"{path}: sound" if found.is_verified else f"{path}: not usable: {failed}"]
    if found.is_verified and not found.has_sum:
        lines.append(f"{NO_SUM}: {sum_of(path).name}")
    print_result({"path": str(path), "ok": found.is_verified, "checks": dict(found.checks)}, lines, as_json=as_json)
    return 0 if found.is_verified else EXIT_FAILED


@backup.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--yes", is_flag=True, help="Really replace what is there.")
def restore(path: Path, *, yes: bool) -> None:
    """Replace the database by a verified copy; what was there is set aside, not deleted.

    Of a portable copy the whole soul is replaced. It asks first, and names the code that this home would run.
    """
    if path.is_dir():
        _import(path, yes=yes)
        return
    if not yes:
        raise UsageProblem("this replaces the soul's memory by that copy: repeat it with --yes")
    home = Home.of(os.environ)
    _refuse_a_dump(path)
    place = place_of(home)
    home.create()
    lock = HomeLock(home)
    try:
        found = verify(path)
        if not found.is_verified:
            raise ClaudiusError(f"{path} is not usable: `claudius backup verify {path}` says why")
        if place.is_postgres:
            lines, aside = _put_back_at(home, place, path)
        else:
            where = aside_at(home.backups, datetime.now(UTC))
            lines, aside = _put_back(home, path, incoming(home.root), {}, where), str(where)
    except (OSError, sqlite3.Error) as error:
        raise ClaudiusError(f"{path} could not be restored: {error}") from error
    finally:
        discard_incoming(home.root)
        lock.release()
    at = place.shown if place.is_postgres else home.database
    click.echo(f"{at} is restored from {path}; what was there is now in {aside}")
    if not found.has_sum:
        lines.append(f"{NO_SUM}: {sum_of(path).name}")
    for line in lines:
        click.echo(line)


def _export(directory: Path, *, as_json: bool) -> None:
    home = Home.of(os.environ)
    _refuse_a_server(home)
    if not home.database.exists():
        raise ClaudiusError(f"{home.database} does not exist yet: there is nothing to export")
    try:
        if directory.exists() and any(directory.iterdir()):
            raise ClaudiusError(f"{directory} is not empty: name a new directory")
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        now = datetime.now(UTC)
        back_up(home.database, directory, now, DATABASE)
        for source, name in _texts(home):
            _copy(source, directory / name)
        files = {str(path.relative_to(directory)): sha256_of(path) for path in sorted(_files(directory))}
        with os.fdopen(os.open(directory / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w") as manifest:
            json.dump({"made_at": now.isoformat(), "files": files}, manifest, indent=1)
        _check_export(directory)
    except sqlite3.Error as error:
        raise translate(error, home.database) from error
    except OSError as error:
        raise ClaudiusError(f"{directory} cannot be written: {error.strerror}") from error
    line = f"{directory}: {len(files)} files, verified; your keys and tokens are not among them"
    print_result({"path": str(directory), "files": sorted(files), "verified": True}, [line], as_json=as_json)


def _import(directory: Path, *, yes: bool) -> None:
    home = Home.of(os.environ)
    home.create()
    lock = HomeLock(home)
    try:
        files = _check_export(directory)
        _agree(_code_of(directory, files), yes=yes)
        fresh = incoming(home.root)
        (fresh / SOUL).mkdir(mode=DIRECTORY_MODE)
        for name in files:
            if name == CONFIG or PurePosixPath(name).parts[0] == SOUL:
                _copy(directory / name, fresh / name)
        also = {home.soul: fresh / SOUL, home.memory: None} | ({home.config: fresh / CONFIG} if CONFIG in files else {})
        aside = aside_at(home.backups, datetime.now(UTC))
        lines = _put_back(home, directory / DATABASE, fresh, also, aside, is_new_home=True)
        home.create()
    except (OSError, sqlite3.Error) as error:
        raise ClaudiusError(f"{directory} could not be imported: {error}") from error
    finally:
        discard_incoming(home.root)
        lock.release()
    click.echo(f"{home.root} holds the soul of {directory}; what was there is now in {aside}")
    for line in lines:
        click.echo(line)


def _agree(code: Sequence[str], *, yes: bool) -> None:
    """Describe what an import does, and ask. Raises: UsageProblem if nobody can be asked; ClaudiusError on a no."""
    does = "this replaces the soul of this home by the exported one"
    if code:
        does += f", and takes over code, which runs as you: {'; '.join(code)}"
    if not yes and not sys.stdin.isatty():
        raise UsageProblem(f"{does}: repeat it with --yes")
    if code or not yes:
        click.echo(does, err=True)
    if not yes and not click.confirm("Import it?", err=True):
        raise ClaudiusError("nothing was imported")


def _put_back(
    home: Home, copy: Path, incoming: Path, also: Mapping[Path, Path | None], aside: Path, *, is_new_home: bool = False
) -> list[str]:
    """Replace the database by a copy, and what `also` names, all together; return lines about what the copy lost by it.

    The copy is mended in `incoming` first; what was there moves to `aside`.
    """
    from claudius.memory.sqlite.file import siblings
    from claudius.memory.sqlite.store import acts_in, heard_in

    before = _Before(heard_in(home.database), acts_in(home.database))
    fresh, lines = _mended(home, copy, incoming, before, is_new_home=is_new_home)
    gone = dict.fromkeys(siblings(home.database))
    replace(home.root, {home.database: fresh, **gone, **also}, aside)
    return lines


def _mended(
    home: Home, copy: Path, incoming: Path, before: _Before, *, is_new_home: bool = False
) -> tuple[Path, list[str]]:
    """Copy a copy to `incoming`, and mend it there."""
    from claudius.memory.sqlite import SqliteStore
    from claudius.memory.sqlite.file import siblings

    fresh = incoming / home.database.name
    for file, to in zip((copy, siblings(copy)[0]), (fresh, siblings(fresh)[0]), strict=True):
        if file == copy or file.exists():
            shutil.copyfile(file, to)
            to.chmod(FILE_MODE)
    store = SqliteStore(fresh, backups=home.backups)
    return fresh, asyncio.run(_mend(home, store, fresh, before, copy.name, is_new_home=is_new_home))


def _put_back_at(home: Home, place: StorePlace, copy: Path) -> tuple[list[str], str]:
    """Mend a copy, fill a schema beside a server's store from it, and exchange the two in one transaction."""
    from claudius.memory.postgres import moving
    from claudius.memory.postgres.store import PostgresRecords, PostgresStore
    from claudius.memory.sqlite.store import heard

    async def heard_there() -> HeardBefore:
        store = PostgresStore(place)
        await store.open()
        try:
            return await store.core.write(heard)
        finally:
            await store.close(clean=False)

    with closing(PostgresRecords(place, home.memory)) as kept:
        before = _Before(asyncio.run(heard_there()), kept.audit("", EVERY))
    fresh, lines = _mended(home, copy, incoming(home.root), before)
    return lines, f"the schema {moving.put_in_force(place, fresh, shipped('memory'), datetime.now(UTC))}"


class _Before(NamedTuple):
    """What the database that is replaced knows."""

    heard: HeardBefore | None
    """What it has answered, and what it has not; None if nobody knows."""
    acts: Sequence[Mapping[str, Any]]
    """Its audit log, oldest first."""


async def _mend(
    home: Home, store: Store, database: Path, before: _Before, copy: str, *, is_new_home: bool = False
) -> list[str]:
    """Have a copy know what happened since it was made, before it is put in force; return lines about it.

    An export that is imported where nothing was is a move: what was said on the way is answered.
    """
    from claudius.memory.sqlite.store import take_over

    await store.open()
    try:
        forgotten = await _forget_again(home, store, database, is_new_home=is_new_home)
        is_move = before.heard is None and is_new_home
        if not is_move:
            await take_over(store.core, before.heard, datetime.now(UTC))
        await _keep_audit(store, before.acts, "import" if is_new_home else "restore", copy)
    finally:
        await store.close(clean=False)
    is_known = is_move or before.heard is not None
    return [line for line, is_so in ((FORGOTTEN, forgotten), (NOT_KNOWN, not is_known)) if is_so]


async def _keep_audit(
    store: Store, before: Sequence[Mapping[str, Any]], act: Literal["restore", "import"], target: str
) -> None:
    """Take over the acts that the copy does not know, and add this one: no restore edits the audit log."""
    from claudius.adapters.terminal import own_person
    from claudius.memory.audit import AuditEntry

    with closing(store.records()) as kept:
        known = {tuple(row.values()) for row in kept.audit("", EVERY)}
    for row in (one for one in before if tuple(one.values()) not in known):
        entry = AuditEntry(who=row["who"], act=row["act"], target=row["target"], origin=row["from"])
        await store.audit.note(entry, datetime.fromisoformat(row["at"]))
    await store.audit.note(AuditEntry(who=own_person(), act=act, target=target), datetime.now(UTC))


async def _forget_again(home: Home, store: Store, database: Path, *, is_new_home: bool) -> int:
    """Erase from a copy, before it is put in force, everyone who was forgotten after it was made.

    In a new home the portraits are not in a repository yet, so all of them are archived again.
    """
    from claudius.memory.erasure import Erasures
    from claudius.runtime.sweeping import erase_from_copy

    ledger = Erasures(home.state)
    if not ledger.erased_at() and not is_new_home:
        return 0
    if is_new_home:
        await store.documents.archive_anew()
    people, last = await store.erasure.everyone()
    ids = ledger.among(people, ledger.since(last))
    await erase_from_copy(store, database, ids, ledger.aliases(ids))
    if ids:
        await store.documents.archive_anew()
    return len(ids)


def _check_export(directory: Path) -> tuple[str, ...]:
    """Return the files of an exported directory. Raises: ClaudiusError if it is not one, or was changed since."""
    try:
        files = json.loads((directory / MANIFEST).read_text("utf-8"))["files"]
        listed = {str(name): str(sha) for name, sha in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClaudiusError(f"{directory} is not an export: its {MANIFEST} cannot be read") from error
    for name, sha in listed.items():
        path = directory / name
        if ".." in PurePosixPath(name).parts or not path.is_file() or path.is_symlink() or sha256_of(path) != sha:
            raise ClaudiusError(f"{path} is not the file that was exported: nothing was imported")
    if DATABASE not in listed or not verify(directory / DATABASE).is_verified:
        raise ClaudiusError(f"{directory / DATABASE} is not a sound database of Claudius: nothing was imported")
    return tuple(listed)


def _code_of(directory: Path, files: tuple[str, ...]) -> list[str]:
    """List the code that a home with this soul would run, each as `FILE: where = name`: import strings and programs.

    Raises: ClaudiusError if a file cannot be read; OSError, sqlite3.Error.
    """
    from claudius.soul.files import parse

    found: list[str] = []
    for name in files:
        path = directory / name
        if name == CONFIG:
            try:
                found += _code_in_config(tomllib.loads(path.read_text("utf-8")))
            except ValueError as error:
                raise ClaudiusError(f"{path} cannot be read: nothing was imported") from error
        elif PurePosixPath(name).parts[0] == SOUL:
            with suppress(BadSoul):  # a broken file that no home would use
                head = parse(str(PurePosixPath(name).relative_to(SOUL)), path, path.read_bytes()).head
                found += [
                    f"{name}: {at} = {one}" for at, one in _leaves(head) if at == "python" or _IMPORT.fullmatch(one)
                ]
    with closing(sqlite3.connect(f"file:{quote(str(directory / DATABASE))}?mode=ro&immutable=1", uri=True)) as database:
        found += [f"{DATABASE}: process = {name}" for (name,) in database.execute(_PROCESSES)]
    return found


def _code_in_config(config: Mapping[str, Any]) -> Iterator[str]:
    from claudius.compose import ADAPTERS, PROVIDERS

    for at, value in _leaves(config):
        last = at.rpartition(".")[2]
        name = value.partition("=")[2].partition("/")[0] if at == "pipeline.steps" else value
        known: Mapping[str, str] = ADAPTERS if at == "adapters" else PROVIDERS
        is_voice = at in ("adapters", "providers", "pipeline.steps") or last == "provider"
        if name and (at == "claude.cli_path" or (is_voice and name != "auto" and name not in known)):
            yield f"{CONFIG}: {at} = {value}"


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string in a TOML table with its dotted key. Pure."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one, at)
    elif isinstance(value, str):
        yield at, value


def _texts(home: Home) -> Iterator[tuple[Path, str]]:
    if home.config.is_file():
        yield home.config, CONFIG
    for root, name in ((home.soul, SOUL), (home.memory, PORTRAITS)):
        for path in sorted(_files(root)):
            below = path.relative_to(root)
            if ".git" not in below.parts:
                yield path, f"{name}/{below.as_posix()}"


def _files(root: Path) -> Iterator[Path]:
    return (Path(at) / name for at, _, names in os.walk(root) for name in names if (Path(at) / name).is_file())


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(FILE_MODE)
