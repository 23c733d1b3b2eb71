"""Read, write and remove files below the memory directory.

Symbolic links are never followed, writes are atomic, and files are private to this user.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

from claudius.home import DIRECTORY_MODE, FILE_MODE

AT_MOST_BYTES = 1 << 20
"""A file larger than this is not a portrait, whoever wrote it."""


class FoundFile(Struct, frozen=True):
    """A file as found on disk."""

    content: bytes
    age_s: float

    @property
    def sha256(self) -> str:
        """The SHA-256 of its bytes."""
        return digest(self.content)


def digest(content: bytes) -> str:
    """Return the SHA-256 of some bytes. Pure."""
    return hashlib.sha256(content).hexdigest()


def read(root: Path, path: str, now_s: float) -> FoundFile | None:
    """Read a regular file below `root`.

    Returns None if there is none, or if it or a folder on its path is a symbolic link. `now_s` is the wall clock in
    seconds, for the file's age. Raises: OSError.
    """
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        _Folder(root, PurePosixPath(path).parent, make=False) as folder,
    ):
        name = PurePosixPath(path).name
        if folder is None or not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return None
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(file, "rb") as opened:
            age_s = now_s - os.fstat(file).st_mtime
            return FoundFile(opened.read(AT_MOST_BYTES + 1), age_s)
    return None


def write(root: Path, path: str, content: bytes) -> None:
    """Write a file below `root` atomically, private to this user. Raises: OSError.

    A link in its place is replaced, not followed.
    """
    name = PurePosixPath(path).name
    aside = f".{secrets.token_hex(6)}.new"
    with _Folder(root, PurePosixPath(path).parent, make=True) as folder:
        file = os.open(
            aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE, dir_fd=folder
        )
        try:
            with os.fdopen(file, "wb") as opened:
                os.fchmod(file, FILE_MODE)
                opened.write(content)
            os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):  # renamed, as it should be
                os.unlink(aside, dir_fd=folder)


def remove(root: Path, path: str) -> None:
    """Remove a file below `root`, and its folder if that is then empty."""
    inner = PurePosixPath(path)
    with suppress(FileNotFoundError, NotADirectoryError), _Folder(root, inner.parent, make=False) as folder:
        if folder is not None:
            os.unlink(inner.name, dir_fd=folder)
    if inner.parent != PurePosixPath():
        with suppress(OSError), _Folder(root, inner.parent.parent, make=False) as above:
            if above is not None:
                os.rmdir(inner.parent.name, dir_fd=above)


class _Folder:
    """A directory below the root, opened step by step so that no step is a symbolic link."""

    def __init__(self, root: Path, inner: PurePosixPath, *, make: bool) -> None:
        self._root, self._inner, self._make = root, inner, make
        self._fd = -1

    def __enter__(self) -> int | None:
        if self._inner.is_absolute() or ".." in self._inner.parts:
            raise ValueError(f"{self._inner} is not below the memory directory")
        self._fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in self._inner.parts:
            deeper = self._step(part)
            os.close(self._fd)
            self._fd = -1 if deeper is None else deeper
            if deeper is None:
                return None
        return self._fd

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def _step(self, part: str) -> int | None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(part, flags, dir_fd=self._fd)
        except OSError:
            if not self._make:
                return None
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.stat(part, dir_fd=self._fd, follow_symlinks=False).st_mode):
                os.unlink(part, dir_fd=self._fd)  # a planted link or file: only the name goes, not what it points to
        with suppress(FileExistsError):
            os.mkdir(part, DIRECTORY_MODE, dir_fd=self._fd)
        return os.open(part, flags, dir_fd=self._fd)
