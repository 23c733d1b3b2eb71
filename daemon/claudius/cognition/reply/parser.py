"""Parse a streamed reply in one forward scan with one state, and read the values of its sections. Fails closed.

Private text is never shown, and an unclear value counts as no. `Parser` yields a `Parsed`: private sections, dialogues
with their state, and flags. Source: the pipeline design, sections 1, 5, 7 and 9; the state table of section 5 is the
methods `_outside`, `_private` and `_dialogue` here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.reply.tags import (
    DIALOGUE,
    FOREIGN,
    GAP,
    LT,
    MONOLOGUE,
    NAMES,
    TOOL_CALL,
    UNSEEN,
    WAIT,
    WISHES,
    Names,
    Rest,
    TagHead,
    escape_heads,
    is_blank,
    is_structured,
    read_head,
    read_rest,
)
from claudius.prompt import valid

DialogueState = Literal["complete", "cut", "void"]

LT_BEGUN = re.compile(r"(?:&(?:[lL][tT]?|#(?:60?|[xX](?:3[cC]?)?)?)?|\\(?:[uU](?:0(?:03?)?)?)?)\Z")
"""The end of a text that may still become a loose LT; searched in the last 6 characters."""
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
    late: bool = False
    """It came after words aloud."""

    @property
    def is_wish(self) -> bool:
        """Whether it asks for a tool, in our form or a foreign one."""
        is_empty = self.text.strip(" .\"'`").casefold() in ("", "none")
        return self.name in WISHES and self.complete and not is_empty


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
    """Every private section with one of our tags, or `tool_call`, in order; no other foreign one or nested dialogue."""
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
        for one in reversed(self.dialogues):
            if one.state == "complete" and not is_blank(one.text):
                return one
        return None

    @property
    def monologue(self) -> Section | None:
        """All monologues joined by blank lines, including a cut one; the first written verb counts."""
        found = [one for one in self.sections if one.name == MONOLOGUE and not is_blank(one.text)]
        if not found:
            return None
        verbs = [one.verb for one in found if one.verb is not None]
        return Section(
            name=MONOLOGUE,
            text="\n\n".join([one.text for one in found]),
            verb=verbs[0] if verbs else None,
            complete=not [one for one in found if not one.complete],
        )

    @property
    def updates(self) -> tuple[Section, ...]:
        """The first complete user-model updates, in order, at most three."""
        return tuple([one for one in self.sections if one.name == UPDATE and one.complete][:UPDATES])

    @property
    def private(self) -> tuple[str, ...]:
        """The text of every private section; an unclosed one counts up to the dialogue that it swallowed."""
        return tuple(one.text if one.complete else _before_dialogue(one.text) for one in self.sections)

    def values(self, name: str) -> tuple[str, ...]:
        """Return every complete value of a tag, in order; a check given twice yields both."""
        return tuple([one.text for one in self.sections if one.name == name and one.complete])

    def first(self, name: str) -> Section | None:
        """Return the first complete section of a tag."""
        for one in self.sections:
            if one.name == name and one.complete:
                return one
        return None


def _before_dialogue(text: str) -> str:
    for lt in LT.finditer(text):
        head = read_head(text, lt)
        if head and head.is_dialogue and not head.closing:
            return text[: lt.start()]
    return text


_STRICT_LT = re.compile("<")
_CLOSE = re.compile(rf"<(?={GAP}/)")
_CLOSE_BEGUN = re.compile(rf"<{GAP}\Z")
_LOOSE_GT = re.compile(r"\A\s{0,8}/?\s{0,8}(?:[>＞﹥]|&(?:gt|#62|#x3e);|\\u003e)", re.IGNORECASE)


class Limits(Struct, frozen=True, kw_only=True):
    """Caps in characters. Beyond the reply's, reading stops and counts as truncated; beyond a dialogue's, it is cut."""

    reply: int = 262_144
    dialogue: int = 65_536
    section: int = 65_536


_State = Literal["out", "private", "dialogue"]


class Parser:
    """Parses one reply: pass each piece to `feed`, show what it returns, then call `finish` for the whole result."""

    def __init__(
        self, names: Names = NAMES, limits: Limits | None = None, *, think: Callable[[Section], None] | None = None
    ) -> None:
        self.think = think
        """Takes each piece of a private section as it is read; None = nobody wants it."""
        self.full = False
        """The reply's cap is exceeded: the caller may stop reading, and further text is ignored."""
        self.steps = 0
        """Work so far: characters passed, waited on or read as attributes, plus tag heads examined. Linear."""
        self.names = names
        self._limits = limits or Limits()
        self._state: _State = "out"
        self._readers = {"out": self._outside, "private": self._private, "dialogue": self._dialogue}
        self._raw: list[str] = []
        self._room = self._limits.reply
        self._surrogate = ""
        self._rest = ""
        self._flags: dict[str, None] = {}
        self._sections: list[Section] = []
        self._dialogues: list[Dialogue] = []
        self._void = 0
        """The number of dialogues, from the first on, that were not the soul's own."""
        self._is_torn = False
        """Text stands outside all tags, perhaps a thought with a broken tag: nothing is shown until the reply ends."""
        self._head = WAIT
        self._attributes = Rest(0, well_formed=False)
        self._parts: list[str] = []
        self._size = 0
        self._is_blank = True
        self._is_dropped = False
        """The open section is not kept: foreign reasoning, or a dialogue inside another."""
        self._visible: list[str] = []
        self._blanks: list[str] = []
        self._has_shown = False

    def feed(self, text: str) -> str:
        """Take the next piece of the reply, and return what newly became visible of the first dialogue."""
        if self.full:
            return ""
        if self._surrogate or not text.isascii():
            text = self._surrogate + text  # halves are joined across pieces; lone ones become U+FFFD
            cut = len(text) - ("\ud800" <= text[-1:] <= "\udbff")
            text, self._surrogate = valid(text[:cut]), text[cut:]
        if self._take(text.replace("\0", "\ufffd")):
            self._scan(final=False)
        if self._flags or self._is_torn or not self._visible:  # nothing is shown after any flag
            return ""
        piece = "".join(self._visible)
        self._visible = []
        if not self._has_shown:
            piece = piece.lstrip()
        seen = piece.rstrip()
        if not seen:  # trailing blanks are never shown
            self._blanks.append(piece)
            return ""
        shown = "".join(self._blanks) + seen
        self._blanks = [piece[len(seen) :]]
        self._has_shown = True
        return shown

    def closed(self, name: str) -> Section | None:
        """Return the first section of a tag that has closed so far."""
        return next((one for one in self._sections if one.name == name and one.complete), None)

    def finish(self, *, truncated: bool = False) -> Parsed:
        """End the reply. `truncated`: the provider cut it. Nothing may be fed afterwards."""
        self._take(valid(self._surrogate))
        self._scan(final=True)
        if self._state != "out":
            self._flags["cut"] = None
            if self._state == "dialogue":
                self._end_dialogue("cut", closed=False)
            else:
                self._end_section(complete=False)
        void = [replace(one, state="void") for one in self._dialogues[: self._void]]
        own = self._dialogues[self._void :]
        # a void or blank dialogue does not count; a cut one does, because it may be the real one
        if len([one for one in own if one.state != "void" and not is_blank(one.text)]) > 1:
            thoughts = [one for one in self._sections if one.name == MONOLOGUE and not is_blank(one.text)]
            self._flags["ambiguous" if len(thoughts) > 1 else "two_dialogues"] = None
        return Parsed(
            raw="".join(self._raw),
            sections=tuple(self._sections),
            dialogues=(*void, *own),
            flags=tuple(self._flags),
            truncated=truncated or self.full,
        )

    def _take(self, text: str) -> bool:
        """Keep the text that fits within the reply's cap. Returns whether there was any."""
        if len(text) > self._room:
            self.full, text = True, text[: self._room]
        self._room -= len(text)
        if text:
            self._raw.append(text)
            self._rest += text
        return bool(text)

    def _scan(self, *, final: bool) -> None:
        text, place = self._rest, 0
        while place < len(text):
            start = place
            place, waiting = self._readers[self._state](text, place, final=final)
            self.steps += place - start
            if waiting:
                self.steps += len(text) - place
                break
        self._rest = text[place:]

    def _outside(self, text: str, place: int, *, final: bool) -> tuple[int, bool]:
        """OUT: no text is kept or spoken; only strict heads count."""
        start = place
        while lt := _STRICT_LT.search(text, place):
            self.steps += 1
            head = read_head(text, lt, self.names, final=final)
            if head is not None:
                break
            place = lt.end()
        passed = text[start : lt.start() if lt else len(text)]
        self._is_torn = self._is_torn or not is_blank(passed.replace(">", ""))  # a closing tag may leave its `>`
        return self._head_outside(text, lt.start(), head, final=final) if lt and head else (len(text), False)

    def _head_outside(self, text: str, place: int, head: TagHead, *, final: bool) -> tuple[int, bool]:
        if head is WAIT:
            return place, True
        if head.closing:
            self._flags["stray_close"] = None
            if not head.is_dialogue:
                self._void = len(self._dialogues)
            return head.end, False
        rest = self._rest_of(text, head, final=final)
        if rest is None:
            return place, True
        if head.is_dialogue and not rest.well_formed:
            self._flags["malformed"] = None
        elif not rest.self_closing:
            self._open(head, rest)
        elif not head.is_dialogue:
            self._open(head, rest)
            self._end_section(complete=True)
        return rest.end, False

    def _private(self, text: str, place: int, *, final: bool) -> tuple[int, bool]:
        """PRIV: everything is text of the section except its own strict, well-formed closing tag."""
        start = place
        while lt := _CLOSE.search(text, place):
            self.steps += 1
            head = read_head(text, lt, self.names, final=final)
            if head is not None and head is not WAIT and head.name and head.name == self._head.name:
                rest = self._rest_of(text, head, final=final)
                if rest is None:
                    head = WAIT
                elif rest.well_formed:
                    self._write(text[start : lt.start()])
                    self._end_section(complete=True)
                    return rest.end, False
            if head is WAIT:
                self._write(text[start : lt.start()])
                return lt.start(), True
            place = lt.end()
        begun = None if final else _CLOSE_BEGUN.search(text, max(place, len(text) - 9))
        end = begun.start() if begun else len(text)
        self._write(text[start:end])
        return end, begun is not None

    def _dialogue(self, text: str, place: int, *, final: bool) -> tuple[int, bool]:
        """DLG: every head of our tags counts, strict or loose; only the dialogue's own closing tag ends it well."""
        start = place
        while lt := LT.search(text, place):
            self.steps += 1
            head = read_head(text, lt, self.names, final=final)
            if head is None:
                place = lt.end()
                continue
            self._write(text[start : lt.start()])
            if self._state != "dialogue":
                return lt.start(), False
            return (lt.start(), True) if head is WAIT else self._head_in_dialogue(text, lt.start(), head, final=final)
        begun = None if final else LT_BEGUN.search(text, max(place, len(text) - 6))
        end = begun.start() if begun else len(text)
        self._write(text[start:end])
        return end, begun is not None

    def _head_in_dialogue(self, text: str, place: int, head: TagHead, *, final: bool) -> tuple[int, bool]:
        if head.closing:
            self._end_dialogue("complete" if head.is_dialogue else "void", closed=head.is_dialogue)
            if not head.is_dialogue:
                self._flags["stray_close"] = None
                self._void = len(self._dialogues)
            return head.end, False
        rest = self._rest_of(text, head, final=final) if head.strict else Rest(head.end, well_formed=False)
        if rest is None:
            return place, True
        if head.is_dialogue and head.strict and rest.well_formed and self._is_blank:
            self._flags["reopened"] = None
            if rest.verb is not None:
                self._attributes = rest
        else:
            self._flags["nested"] = None
            self._end_dialogue("cut", closed=False)
            self._open(head, rest, nested=True)
        return rest.end, False

    def _rest_of(self, text: str, head: TagHead, *, final: bool) -> Rest | None:
        rest = read_rest(text, head, final=final)
        self.steps += (rest.end if rest else len(text)) - head.end
        return rest

    def _open(self, head: TagHead, rest: Rest, *, nested: bool = False) -> None:
        self._head, self._attributes = head, rest
        is_foreign = head.name in FOREIGN and head.name != TOOL_CALL
        self._is_dropped = is_foreign or head.is_dialogue or not head.name
        self._parts, self._size, self._is_blank = [], 0, True
        self._state = "dialogue" if head.is_dialogue and not nested else "private"

    def _write(self, piece: str) -> None:
        """Keep a piece of the open section or dialogue, up to its cap."""
        if not piece:
            return
        in_dialogue = self._state == "dialogue"
        room = (self._limits.dialogue if in_dialogue else self._limits.section) - self._size
        kept = piece[:room]
        self._size += len(kept)
        if kept and (in_dialogue or not self._is_dropped):
            self._parts.append(kept)
            self._is_blank = self._is_blank and is_blank(kept)
            if self.think and not in_dialogue:
                self.think(Section(name=self._head.name, text=kept, verb=self._attributes.verb, complete=False))
        if in_dialogue:
            if not self._dialogues:
                self._visible.append(kept)
            if len(piece) > room:
                self._flags["cut"] = None
                self._end_dialogue("cut", closed=False)
                self._open(TagHead(DIALOGUE, closing=False, strict=True, end=0), self._attributes, nested=True)

    def _end_section(self, *, complete: bool) -> None:
        if not self._is_dropped:
            text = "".join(self._parts)
            self._sections.append(
                Section(
                    name=self._head.name,
                    text=(text if self._head.strict else _LOOSE_GT.sub("", text)).strip(),
                    verb=self._attributes.verb,
                    section=self._attributes.section or None,
                    complete=complete,
                    late=False in [is_blank(one.text) for one in self._dialogues],
                )
            )
        self._state = "out"

    def _end_dialogue(self, state: DialogueState, *, closed: bool) -> None:
        text = "".join(self._parts).strip()
        self._dialogues.append(Dialogue(text=text, state=state, verb=self._attributes.verb, closed=closed))
        self._state = "out"


def plain_reply(text: str) -> str:
    """Return the words of a reply that was asked for as plain text, whatever form it took; else empty. Pure."""
    parser = Parser()
    parser.feed(text)
    parsed = parser.finish()
    if parsed.winner:
        return parsed.winner.text
    return "" if is_structured(parsed.raw) else parsed.raw.strip()


NOTE_CHARS = 200

_YES = frozenset({"true", "yes", "1"})
_NO = frozenset({"false", "no", "0"})
QUOTES = "\"'`*“”‘’«»"
_WORD = re.compile(r"\w+")


def truth(value: str) -> bool | None:
    """Read a yes or no; None if it is neither. Pure."""
    whole = value.strip().casefold().strip(QUOTES).removesuffix(".").strip(QUOTES).strip()
    first = _WORD.match(whole)
    for word in (whole, first[0] if first else ""):
        if word in _YES:
            return True
        if word in _NO:
            return False
    return None


def read_bool(values: Iterable[str]) -> bool:
    """Read a check that may appear more than once: true only if every readable value is true. Pure.

    Unreadable values are ignored; no readable value, or two that disagree, gives false.
    """
    readable = {said for value in values if (said := truth(value)) is not None}
    return readable == {True}


def read_verb(written: str | None, allowed: Collection[str], default: str) -> tuple[str, bool]:
    """Look up a written verb. Returns it or the default, and whether it was invalid. Pure.

    A missing verb is not invalid.
    """
    if written is None:
        return default, False
    verb = " ".join(written.lower().split())
    return (verb, False) if verb in allowed else (default, True)


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters without invisible ones. Pure."""
    return " ".join(UNSEEN.sub("", text).split())[:limit].rstrip()


def clean_note(text: str) -> str:
    """Return a change note as stored: one line of at most 200 characters, with our tags escaped. Pure."""
    return escape_heads(one_line(text, NOTE_CHARS), limit=NOTE_CHARS)


def clean_text(text: str) -> str:
    """Return a private text as stored: no invisible characters, our tags escaped with `&lt;`, trimmed. Pure."""
    return escape_heads(UNSEEN.sub("", text)).strip()
