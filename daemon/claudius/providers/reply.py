"""What a model has said so far: its deltas joined, and bounded, whatever a server sends."""

from __future__ import annotations

from claudius.provider import Delta

REPLY_CHARS = 1_048_576
"""Longest reply taken from a transport; far above what `max_tokens` allows and what the parser reads."""
LINE_BYTES = 4 * 1_048_576
"""Longest line of a stream; a longer one breaks it."""


class Reply:
    """One reply as it grows."""

    __slots__ = ("_parts", "chars")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._parts: list[str] = []
        self.chars = 0

    def add(self, text: str) -> Delta | None:
        """Take a piece, as much of it as there is room for; None where it is empty."""
        kept = text[: REPLY_CHARS - self.chars]
        if not kept:
            return None
        self._parts.append(kept)
        self.chars += len(kept)
        return Delta(kept)

    @property
    def is_full(self) -> bool:
        """Whether the stream is to be broken off: a cut reply, as at `max_tokens`."""
        return self.chars >= REPLY_CHARS

    @property
    def text(self) -> str:
        """The whole of it."""
        return "".join(self._parts)
