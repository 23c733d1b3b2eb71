"""Does the write-ahead log hold committed work that SQLite will not read back? It stops, silently, at a damaged frame.

Power loss may tear the last transaction: nobody was told that it is durable. A transaction is begun only once the one
before it is durable, so a torn one has nothing after it; a damaged one has. Source: https://sqlite.org/fileformat2.html#walformat
"""

from __future__ import annotations

import struct
from pathlib import Path

from msgspec import Struct

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">4I")
_FRAME_HEADER_BYTES = 24
_MAGIC = 0x377F0682


class Log(Struct, frozen=True):
    """The log as it lies on disk: its header, and of each frame of its generation whether a transaction ends there."""

    header: bytes
    is_readable: bool
    ends: tuple[tuple[int, bool], ...]
    """Frame number from 1, and whether it is the last of a transaction."""

    def hides_work(self, read_frames: int) -> bool:
        """Tell whether a transaction that SQLite did not read back was followed by another. Pure.

        `read_frames` is how many frames SQLite found valid.
        """
        lost = [is_end for number, is_end in self.ends if number > read_frames]
        return True in lost[:-1]


def look(wal: Path) -> Log | None:
    """Read the log's headers; None where there is no log, or nothing in it."""
    try:
        with wal.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return None
            magic, _, page_bytes, _, salt1, salt2, *checksum = _HEADER.unpack(header)
            is_readable = magic & ~1 == _MAGIC and _checksum(header[:24], big=bool(magic & 1)) == tuple(checksum)
            ends = []
            size = wal.stat().st_size
            step = _FRAME_HEADER_BYTES + (page_bytes if is_readable else 4096)
            for number, at in enumerate(range(_HEADER.size, size - step + 1, step), 1):
                file.seek(at)
                _, pages, one, two = _FRAME.unpack(file.read(_FRAME.size))
                if (one, two) == (salt1, salt2) or not is_readable:
                    ends.append((number, pages != 0))
    except FileNotFoundError:
        return None
    return Log(header, is_readable, tuple(ends))


def _checksum(data: bytes, *, big: bool) -> tuple[int, int]:
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
