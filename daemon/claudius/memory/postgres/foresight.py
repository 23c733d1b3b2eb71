"""What the reads of one kind asked lately, so that the next one can ask all of it in one round trip.

A recollection asks some twenty questions one after another. Most are the same each time, but for the names of the
conversation and of the people: so those of the last recollection are asked at once, about the new names. What is asked
in vain costs a little; what was not foreseen is asked by itself. Nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Asked = tuple[str, frozenset[tuple[str, Any]]]
"""A statement, and its values by name."""


class Foresight:
    """The questions of the last two reads of each kind."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._last: dict[str, set[Asked]] = {}
        self._usual: dict[str, set[Asked]] = {}
        """By kind: what the last read asked; what the last two asked. Names stand for what they name."""
        self._kind, self._asked = "", set[Asked]()
        self._names: tuple[tuple[str, str], ...] = ()

    @property
    def is_noting(self) -> bool:
        """Whether a read of a kind is under way."""
        return bool(self._kind)

    def begin(self, kind: str, names: Sequence[str]) -> Iterator[Asked]:
        """Yield what is probably going to be asked in this transaction."""
        # a longer name may hold a shorter one
        self._names = tuple(sorted({name: f"\0{n}\0" for n, name in enumerate(names) if name}.items(), key=_length))
        self._kind, self._asked = kind, set()
        back = [(sign, name) for name, sign in self._names]
        for sql, values in self._usual.get(kind, ()):
            made = frozenset([(column, _put(value, back)) for column, value in values])
            if not any(isinstance(value, str) and "\0" in value for _, value in made):
                yield sql, made

    def note(self, asked: Asked) -> None:
        """Note what is asked, if a read of a kind is under way."""
        if self._kind:
            sql, values = asked
            self._asked.add((sql, frozenset([(column, _put(value, self._names)) for column, value in values])))

    def end(self) -> None:
        """Keep what was asked, for the next read of the kind."""
        if self._asked:
            before, self._last[self._kind] = self._last.get(self._kind, set()), self._asked
            self._usual[self._kind] = before & self._asked
        self._kind, self._asked = "", set()


def _length(named: tuple[str, str]) -> int:
    return -len(named[0])


def _put(value: Any, instead: Sequence[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for words, sign in instead:
            value = value.replace(words, sign)
    return value
