"""Reading the log as it lies there, and as it grows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

LOOK_AGAIN_S = 0.2


class ReadTo(Struct, frozen=True):
    """How far which file was read: the log is moved aside when it is full."""

    inode: int = 0
    offset: int = 0


def last_lines(path: Path, count: int | None) -> tuple[Sequence[str], ReadTo]:
    """Return the last `count` whole lines, or all, and how far they reach."""
    try:
        with path.open("rb") as file:
            inode = path.stat().st_ino
            lines: deque[bytes] = deque(maxlen=count)
            offset = 0
            for line in file:
                if line.endswith(b"\n"):
                    lines.append(line)
                    offset += len(line)
    except FileNotFoundError:
        return (), ReadTo()
    return [line.decode("utf-8", "replace").rstrip("\n") for line in lines], ReadTo(inode, offset)


def follow_log(path: Path, read_to: ReadTo) -> Iterator[str]:
    """Yield each new line for ever, across the file's rotation."""
    while True:
        try:
            found = path.stat()
            if found.st_ino != read_to.inode or found.st_size < read_to.offset:
                read_to = ReadTo(found.st_ino, 0)
            with path.open("rb") as file:
                file.seek(read_to.offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    read_to = ReadTo(read_to.inode, read_to.offset + len(line))
                    yield line.decode("utf-8", "replace").rstrip("\n")
        except FileNotFoundError:
            pass
        time.sleep(LOOK_AGAIN_S)
