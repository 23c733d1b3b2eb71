"""The format of our compressed JSON, which `rows.pack` writes: deflate, with a preset dictionary.

It imports as little as possible, because the search after an erasure runs it in a separate process.
"""

from __future__ import annotations

import zlib
from functools import cache

from claudius.home import shipped

PACKED = b"\x01"
"""The first byte: the format and the dictionary used."""


@cache
def phrases() -> bytes:
    """Return what occurs often in our documents. Never change it: what was packed with it would become unreadable."""
    return (shipped("memory") / "phrases.txt").read_bytes()


def unpacked(content: bytes) -> bytes:
    """Return the JSON text that was packed. Raises: ValueError if it is damaged or of a later version."""
    if content[:1] != PACKED:
        raise ValueError(f"not a packed document: it begins with {content[:1]!r}")
    decompressor = zlib.decompressobj(-15, zdict=phrases())
    try:
        text = decompressor.decompress(content[1:]) + decompressor.flush()
    except zlib.error as error:
        raise ValueError("a packed document is damaged") from error
    if not decompressor.eof:
        raise ValueError("a packed document is cut short")
    return text
