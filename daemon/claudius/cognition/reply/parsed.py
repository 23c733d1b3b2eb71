"""Define the result of parsing a reply: private sections, dialogues with their state, and flags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from claudius.cognition.reply.tags import LT, MONOLOGUE, NAMES, is_blank, read_head

DialogueState = Literal["complete", "cut", "void"]

UPDATE = "user_model_update"
UPDATES = 3
"""The most user-model updates taken from one reply."""


class Section(Struct, frozen=True, kw_only=True):
    """One private section as written. `name` is its tag."""

    name: str
    text: str
    verb: str | None = None
    """The raw `verb` attribute; None if there was none."""
    section: str | None = None
    """The `section` attribute; None if there was none."""
    complete: bool = True
    """False: the reply ended inside it."""


class Dialogue(Struct, frozen=True, kw_only=True):
    """One top-level dialogue. `text` is trimmed."""

    text: str
    state: DialogueState
    verb: str | None = None
    closed: bool = True
    """Its own closing tag was seen, even if something later made it void."""


class Parsed(Struct, frozen=True, kw_only=True):
    """One whole parsed reply. Equal for every chunking of the same text."""

    raw: str
    """The text read: valid Unicode, without NUL, cut at the reply's cap."""
    sections: tuple[Section, ...]
    """Every private section with one of our tags, in order; excludes foreign reasoning and nested dialogues."""
    dialogues: tuple[Dialogue, ...]
    """Every top-level dialogue, in order; only the first can have been streamed."""
    flags: tuple[str, ...]
    """In order of first occurrence."""
    truncated: bool
    """The reply was cut by its length, by the provider or by the cap."""

    @property
    def winner(self) -> Dialogue | None:
        """The last complete dialogue that is not blank; None if the reply is ambiguous."""
        if "ambiguous" in self.flags:
            return None
        spoken = (one for one in reversed(self.dialogues) if one.state == "complete" and not is_blank(one.text))
        return next(spoken, None)

    @property
    def monologue(self) -> Section | None:
        """All monologues joined by blank lines, including a cut one; the first written verb counts."""
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
        """The first complete user-model updates, in order, at most three."""
        return tuple(one for one in self.sections if one.name == UPDATE and one.complete)[:UPDATES]

    @property
    def private(self) -> tuple[str, ...]:
        """The text of every private section; an unclosed one counts up to the dialogue that it swallowed."""
        return tuple(one.text if one.complete else _before_dialogue(one.text) for one in self.sections)

    def values(self, name: str) -> tuple[str, ...]:
        """Return every complete value of a tag, in order; a check given twice yields both."""
        return tuple(one.text for one in self.sections if one.name == name and one.complete)

    def first(self, name: str) -> Section | None:
        """Return the first complete section of a tag."""
        return next((one for one in self.sections if one.name == name and one.complete), None)


def _before_dialogue(text: str) -> str:
    for lt in LT.finditer(text):
        head = read_head(text, lt, NAMES)
        if head and head.is_dialogue and not head.closing:
            return text[: lt.start()]
    return text


def judged(flags: Iterable[str], dialogues: Sequence[Dialogue], sections: Sequence[Section]) -> tuple[str, ...]:
    """Return the flags of a finished reply without duplicates, adding `ambiguous` or `two_dialogues`. Pure.

    A void or blank dialogue does not count; a cut one does, because it may be the real one.
    """
    found = dict.fromkeys(flags)
    if sum(one.state != "void" and not is_blank(one.text) for one in dialogues) > 1:
        monologues = sum(one.name == MONOLOGUE and not is_blank(one.text) for one in sections)
        found["ambiguous" if monologues > 1 else "two_dialogues"] = None
    return tuple(found)
