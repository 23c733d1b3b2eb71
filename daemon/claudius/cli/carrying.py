"""A whole soul in one directory, to be carried to another home: its database, its texts, its settings; no secrets."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath

from claudius.errors import ClaudiusError
from claudius.home import DIRECTORY_MODE, FILE_MODE, Home
from claudius.memory.sqlite.backups import back_up, verify

MANIFEST = "MANIFEST.json"
DATABASE = "claudius.db"
CONFIG = "config.toml"
SOUL, PORTRAITS = "soul", "memory"
"""The portraits are for reading: a home that takes the soul in makes its own of the database."""


def carry_out(home: Home, directory: Path, now: datetime) -> Mapping[str, str]:
    """Fill a new directory; return its files with their sha256. Raises: ClaudiusError, OSError, sqlite3.Error."""
    if directory.exists() and any(directory.iterdir()):
        raise ClaudiusError(f"{directory} is not empty: name a new directory")
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    back_up(home.database, directory, now).path.rename(directory / DATABASE)
    for source, name in _texts(home):
        _copy(source, directory / name)
    files = {str(path.relative_to(directory)): _sha256(path) for path in sorted(_files(directory))}
    with os.fdopen(os.open(directory / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w") as manifest:
        json.dump({"made_at": now.isoformat(), "files": files}, manifest, indent=1)
    return files


def check_carried(directory: Path) -> tuple[str, ...]:
    """Return the files of such a directory. Raises: ClaudiusError where it is none, or not as it was filled."""
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


def carry_in(home: Home, directory: Path, files: tuple[str, ...], aside: Path) -> None:
    """Put texts and settings into a home; what was there goes to `aside`. The database is not touched."""
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
