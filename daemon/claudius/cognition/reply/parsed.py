"""What a reply came to once it is read: private sections, dialogues with their state, flags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from claudius.cognition.reply.tags import LT, MONOLOGUE, NAMES, is_blank, read_head

DialogueState = Literal["complete", "cut", "void"]

UPDATE = "user_model_update"
UPDATES = 3
"""Most user-model updates taken from one reply."""


class Section(Struct, frozen=True, kw_only=True):
    """One private section, as written. `name` is its tag."""

    name: str
    text: str
    verb: str | None = None
    """The `verb` attribute, unread; None where there was none."""
    section: str | None = None
    """The `section` attribute; None where there was none."""
    complete: bool = True
    """False: the reply ended inside it."""


class Dialogue(Struct, frozen=True, kw_only=True):
    """One top-level dialogue. `text` is trimmed."""

    text: str
    state: DialogueState
    verb: str | None = None
    closed: bool = True
    """Its own close was seen, whatever made it void later."""


class Parsed(Struct, frozen=True, kw_only=True):
    """One whole reply, read. Equal for every chunking of the same text."""

    raw: str
    """What was read: valid Unicode, no NUL, cut at the reply's cap."""
    sections: tuple[Section, ...]
    """Every private section of a tag of ours, in order; foreign reasoning and nested dialogues are not among them."""
    dialogues: tuple[Dialogue, ...]
    """Every top-level dialogue, in order; only the first can have been streamed."""
    flags: tuple[str, ...]
    """In order of first occurrence."""
    truncated: bool
    """The reply was cut by its length: the provider's, or the cap."""

    @property
    def winner(self) -> Dialogue | None:
        """The last complete dialogue that is not blank; none where the reply is ambiguous."""
        if "ambiguous" in self.flags:
            return None
        spoken = (one for one in reversed(self.dialogues) if one.state == "complete" and not is_blank(one.text))
        return next(spoken, None)

    @property
    def monologue(self) -> Section | None:
        """Every monologue, joined by a blank line, a cut one too; the first verb that was written counts."""
        found = [one for one in self.sections if one.name == MONOLOGUE and not is_blank(one.text)]
        if not found:
            return None
        return Section(
            name=MONOLOGUE,
            text="\n\n".join(one.text for one in found),
            verb=next((one.verb for one in found if one.verb is not None), None),
            complete=all(one.complete for one in found),
        )

    @property
    def updates(self) -> tuple[Section, ...]:
        """The first complete user-model updates, in order, three at most."""
        return tuple(one for one in self.sections if one.name == UPDATE and one.complete)[:UPDATES]

    @property
    def private(self) -> tuple[str, ...]:
        """The text of every private section; of one that was not closed, up to the words aloud that it swallowed."""
        return tuple(one.text if one.complete else _before_dialogue(one.text) for one in self.sections)

    def values(self, name: str) -> tuple[str, ...]:
        """Return every complete value of a tag, in order; a check that came twice shows both."""
        return tuple(one.text for one in self.sections if one.name == name and one.complete)

    def first(self, name: str) -> Section | None:
        """Return a tag's first complete section."""
        return next((one for one in self.sections if one.name == name and one.complete), None)


def _before_dialogue(text: str) -> str:
    for lt in LT.finditer(text):
        head = read_head(text, lt, NAMES)
        if head and head.is_dialogue and not head.closing:
            return text[: lt.start()]
    return text


def judged(flags: Iterable[str], dialogues: Sequence[Dialogue], sections: Sequence[Section]) -> tuple[str, ...]:
    """Return the flags of a finished reply, duplicates gone, with `ambiguous` or `two_dialogues` where it holds. Pure.

    A void or blank dialogue does not count; a cut one does, since it may be the real one.
    """
    found = dict.fromkeys(flags)
    if sum(one.state != "void" and not is_blank(one.text) for one in dialogues) > 1:
        monologues = sum(one.name == MONOLOGUE and not is_blank(one.text) for one in sections)
        found["ambiguous" if monologues > 1 else "two_dialogues"] = None
    return tuple(found)
