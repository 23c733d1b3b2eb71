"""Export a whole soul to one directory, and import it elsewhere: its database, texts and settings, but no secrets."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from claudius.errors import BadSoul, ClaudiusError
from claudius.home import DIRECTORY_MODE, FILE_MODE, Home
from claudius.memory.sqlite.backups import back_up, verify
from claudius.soul.files import parse

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


def carry_out(home: Home, directory: Path, now: datetime) -> Mapping[str, str]:
    """Fill a new directory; return its files with their sha256. Raises: ClaudiusError, OSError, sqlite3.Error."""
    if directory.exists() and any(directory.iterdir()):
        raise ClaudiusError(f"{directory} is not empty: name a new directory")
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    back_up(home.database, directory, now, DATABASE)
    for source, name in _texts(home):
        _copy(source, directory / name)
    files = {str(path.relative_to(directory)): _sha256(path) for path in sorted(_files(directory))}
    with os.fdopen(os.open(directory / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w") as manifest:
        json.dump({"made_at": now.isoformat(), "files": files}, manifest, indent=1)
    return files


def check_carried(directory: Path) -> tuple[str, ...]:
    """Return the files of an exported directory. Raises: ClaudiusError if it is not one, or was changed since."""
    try:
        files = json.loads((directory / MANIFEST).read_text("utf-8"))["files"]
        told = {str(name): str(sha) for name, sha in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClaudiusError(f"{directory} is no export: its {MANIFEST} cannot be read") from error
    for name, sha in told.items():
        path = directory / name
        if ".." in PurePosixPath(name).parts or not path.is_file() or path.is_symlink() or _sha256(path) != sha:
            raise ClaudiusError(f"{path} is not the file that was exported: nothing was imported")
    if DATABASE not in told or not verify(directory / DATABASE).is_verified:
        raise ClaudiusError(f"{directory / DATABASE} is not a sound database of Claudius's: nothing was imported")
    return tuple(told)


def code_of(directory: Path, files: tuple[str, ...]) -> list[str]:
    """List the code that a home with this soul would run, each as `FILE: where = name`: import strings and programs.

    Raises: ClaudiusError if a file cannot be read; OSError, sqlite3.Error.
    """
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


def carry_in(home: Home, directory: Path, files: tuple[str, ...], aside: Path) -> None:
    """Put texts and settings into a home, and move the old ones to `aside`. The database is not touched."""
    if home.soul.exists():
        home.soul.rename(aside / SOUL)
    home.soul.mkdir(mode=DIRECTORY_MODE)
    for name in files:
        if name == CONFIG and home.config.exists():
            home.config.rename(aside / CONFIG)
        if name == CONFIG or PurePosixPath(name).parts[0] == SOUL:
            _copy(directory / name, home.root / name)


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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
