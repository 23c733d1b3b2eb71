"""The model files of a home, those that can be downloaded, and what this machine can hold."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from claudius.config.load import Loaded
from claudius.decoding import ready
from claudius.errors import ClaudiusError, UsageProblem, near
from claudius.home import FILE_MODE, Home, shipped

SUFFIX = ".gguf"
MAGIC = b"GGUF"
"""How every model file begins. Source: github.com/ggml-org/ggml, docs/gguf.md."""
BESIDE = 1_200_000_000
"""What llama.cpp needs beside the weights, in bytes: 4,096 tokens of context, its buffers, the cache of prompts."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")
INSTALL = "./setup.sh --home, or pip install 'claudius-daemon[home]'"


class KnownModel(Struct, frozen=True, kw_only=True):
    """A row of `soul/models.toml`."""

    name: str
    repo: str
    file: str
    bytes: int
    memory: int
    languages: str
    licence: str
    tried: bool

    @property
    def told(self) -> str:
        """What it costs to have it, in words."""
        return f"{self.name}, {gigabytes(self.bytes)} to download, needs {gigabytes(self.memory)} of memory"


class _Rows(Struct, frozen=True):
    model: tuple[KnownModel, ...]


@cache
def known_models() -> tuple[KnownModel, ...]:
    """Read `soul/models.toml`, in its own order."""
    rows = tomllib.loads((shipped("soul") / "models.toml").read_text("utf-8"))
    return msgspec.convert(rows, ready(_Rows)).model


def files(home: Home) -> list[Path]:
    """Return the model files of a home, newest first; those that are still being downloaded are none."""
    found = [path for path in home.models.glob("*" + SUFFIX) if path.is_file() and not path.name.startswith(".")]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def in_use(loaded: Loaded, home: Home) -> Path | None:
    """Return the file that thinks at home: the one that is set, else the newest; None if there is none."""
    named = loaded.config.home.model
    return next((path for path in files(home) if named in ("", path.stem)), None)


def can_think() -> bool:
    """Return whether llama.cpp is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def memory() -> int:
    """Return the memory of this machine in bytes, or of the container, if that has less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(whole, int(_CGROUP.read_text("ascii")))
    except (OSError, ValueError):
        return whole


def fitting() -> KnownModel | None:
    """Return the first known model that leaves other programs half of the memory; None if this machine holds none."""
    return next((one for one in known_models() if 2 * one.memory <= memory()), None)


def gigabytes(size: int) -> str:
    """Return a size in words. Pure."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def check_room(home: Home, name: str, size: int, kept: int = 0) -> None:
    """Check memory, and the disk that the rest of a file needs. Raises: ClaudiusError, which says what is missing."""
    if size + BESIDE > memory():
        needs, there = gigabytes(size + BESIDE), gigabytes(memory())
        raise ClaudiusError(f"{name} needs {needs} of memory, and this machine has {there}: take a smaller one")
    free = shutil.disk_usage(home.models).free
    if size - kept > free:
        raise ClaudiusError(f"{name} needs {gigabytes(size - kept)}, and {home.models} has {gigabytes(free)} free")


def place(home: Home, name: str) -> Path:
    """Return where a model of this name is kept. Raises: UsageProblem if that is no file name."""
    if not name or Path(name).name != name or name.startswith("."):
        raise UsageProblem(f"{name!r} is no name for a model")
    return home.models / f"{name}{SUFFIX}"


def check_model(path: Path) -> None:
    """Check that a file is a model. Raises: ClaudiusError; OSError if it cannot be read."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ClaudiusError(f"{path} is no model for llama.cpp: those begin with GGUF")


def take(home: Home, source: Path) -> Path:
    """Copy a file that is here into the home. Raises: ClaudiusError; OSError if it cannot be read or written."""
    check_model(source)
    target = place(home, source.stem)
    check_room(home, source.name, source.stat().st_size)
    part = target.with_name(f".{target.name}.part")
    try:
        shutil.copyfile(source, part)
        part.chmod(FILE_MODE)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def get(home: Home, name: str) -> Path:
    """Return the file of a model by its name. Raises: UsageProblem if it is not here."""
    found: Sequence[Path] = files(home)
    for path in found:
        if path.stem == name:
            return path
    here = ", ".join(path.stem for path in found) or "none"
    raise UsageProblem(f"there is no model {name!r} here{near(name, [path.stem for path in found])} (here: {here})")
