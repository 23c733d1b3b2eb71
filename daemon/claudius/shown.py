"""What a turn is shown besides the words of the messages that it answers: files that were read, and texts of others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum

import msgspec
from msgspec import Struct
from msgspec.structs import replace

MOST_QUOTED = 20
"""How many texts one message shows; any more are left out."""
AROUND = 10
"""How many posts above a message are shown."""
DELETED = "the message that this answers was deleted"
RECENT = timedelta(hours=1)
"""Posts above a message that stands outside a thread are shown if they are no older."""


class ReadFile(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="file"):
    """What became of one attached file when the turn ran: a picture's number, a text, or why it was not read."""

    name: str
    type: str
    image: int | None = None
    text: str | None = None
    cut: int | None = None
    """How many characters are left out after `text`, before `end`."""
    end: str | None = None
    unread: str | None = None

    def record(self) -> dict[str, str | int | bool]:
        """Return the record that the prompt shows."""
        found: dict[str, str | int | bool] = msgspec.to_builtins(self)
        return found


class How(StrEnum):
    """In which way a message shows a text."""

    THREAD = "thread"
    """It stands in the thread of the message, above it."""
    ABOVE = "above"
    """It stands above the message, outside a thread."""
    ANSWERED = "answered"
    """The message answers it."""
    FORWARDED = "forwarded"
    PREVIEW = "preview"
    """A link is shown with what it leads to."""
    ATTACHED = "attached"


BROUGHT = frozenset({How.FORWARDED, How.PREVIEW, How.ATTACHED})
"""What comes and goes with the message that shows it."""


class Quoted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text that a message shows besides its own words. It is read for one turn, and never kept as heard."""

    how: How
    text: str = ""
    unread: str = ""
    """Why there is no text."""
    of: str = ""
    """The key of the message whose text it is, if that is known: what becomes of that message becomes of this."""
    person: str = ""
    """Whose words they are, if that is known; erasing them finds the turn by it."""
    name: str = ""
    is_bot: bool = False
    is_ours: bool = False
    """Whether the soul itself posted it."""
    position: str = ""
    """The network's own order, of a post in the same place."""


def lines_of(*parts: str) -> str:
    """Join the parts of a post, without those that only repeat the ones before. Pure."""
    found: list[str] = []
    said: set[str] = set()
    for part in parts:
        words = {"".join(filter(str.isalnum, line)) or line.strip() for line in part.split("\n")} - {""}
        if not words <= said:
            found.append(part.strip())
            said |= words
    return "\n".join(found)


def put_right(shown: Sequence[Quoted], of: str, text: str | None) -> tuple[Quoted, ...]:
    """Return texts with that of one message as it is now; None = it was deleted. Pure.

    What was forwarded stays as it was when it was forwarded: whoever reads it there may not read the message itself.
    """
    if text is not None:
        as_it_was = [one.of != of or not one.text or one.how is How.FORWARDED for one in shown]
        return tuple([one if is_so else replace(one, text=text) for one, is_so in zip(shown, as_it_was, strict=True)])
    left = [one for one in shown if one.of != of or one.how is How.ANSWERED]
    return tuple([Quoted(how=How.ANSWERED, unread=DELETED) if one.of == of else one for one in left])
