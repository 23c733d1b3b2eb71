"""Text that somebody else wrote about a failure: a model's server, a network, git, a database server, a daimon.

Such a text may quote what anybody said. An error's message, the log, health, alerts and every report therefore hold
our own words alone: the class of the error, a status or a code of a closed list, and who failed. What the other side
wrote is a `Foreign`, and `words` is called for the record of the turn that failed: nowhere else.
"""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Container, Iterator
from http import HTTPStatus

_OURS = "claudius."
_SQLSTATE = re.compile(r"[0-9A-Z]{5}\Z")
_MOST_CODE = 1_000_000
"""The codes of Discord and HTTP are below it; a number of somebody's life seldom is."""
UNLISTED = "unlisted"
"""In place of a code that is on no list of ours."""


class Foreign:
    """What the other side wrote. However it is printed, it shows its length alone."""

    __slots__ = ("_words",)

    def __init__(self, words: str) -> None:
        self._words = words

    def words(self) -> str:
        """Return the text, for the record of the turn that it belongs to."""
        return self._words

    def __str__(self) -> str:
        return f"({len(self._words)} characters)"

    __repr__ = __str__

    def __bool__(self) -> bool:
        return bool(self._words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Foreign) and self._words == other._words

    def __hash__(self) -> int:
        return hash(self._words)


NOTHING = Foreign("")


def listed(code: str, known: Container[str]) -> str:
    """Return a code that is on a list of ours, else `UNLISTED`; empty if there is none. Pure."""
    return code if code in known or not code else UNLISTED


def status_words(status: int) -> str:
    """Return an HTTP status with its standard phrase, such as `HTTP 404 Not Found`. Pure."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def plain_message(error: BaseException) -> str:
    """Return what a person is told of an error: the message of one of ours, else as `unquoted`. Pure."""
    return str(error) if type(error).__module__.startswith(_OURS) and str(error) else unquoted(error)


def unquoted(error: BaseException) -> str:
    """Name an error without quoting anybody: one of ours by its message, another by its class and its code. Pure."""
    kind = type(error)
    if kind.__module__.startswith(_OURS):
        return f"{kind.__name__}: {error}" if str(error) else kind.__name__
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name} {code}" if (code := _code(error)) else name


def traced(error: BaseException, seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """Yield the lines of a traceback: the causes first, of each the places, and its name as `unquoted` has it. Pure."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before and id(before) not in seen:
        yield from traced(before, seen | {id(error)})
        yield "\nfrom which came:\n\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{unquoted(error)}\n"
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from traced(one, seen | {id(error)})


def _code(error: BaseException) -> str:
    """Return what identifies the error further: a number or a name that cannot be anybody's words."""
    given = vars(error)
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        return errno.errorcode[error.errno]
    for key in ("sqlite_errorname", "sqlstate"):
        value = getattr(error, key, None)
        if isinstance(value, str) and (value.startswith("SQLITE_") or _SQLSTATE.match(value)):
            return value
    numbers = [given[key] for key in ("status", "status_code", "code") if type(given.get(key)) is int]
    return "/".join(str(number) for number in numbers if 0 < number < _MOST_CODE)
