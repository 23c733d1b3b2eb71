"""A reply while it streams: parse it, and show at once what may be said of it.

What it says is cleared of each line that looks like a receipt, since only code writes those; words that come alone, as
a small model writes them, are read as if they stood in their section. Source: the design of acts, section 10.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.acts import ACTS
from claudius.cognition.hooks import ThoughtStream
from claudius.cognition.mind import Show
from claudius.cognition.output.gate import StreamGate
from claudius.cognition.output.rules import SPEECH, OutputRules, ends_a_sentence, why_not_alone
from claudius.cognition.reply.parser import Dialogue, Parsed, Parser, Section
from claudius.cognition.reply.tags import UNSEEN, WISHES, is_structured
from claudius.failure import Failure, failure_of
from claudius.provider import Delta, Done, Event, Failing, Reset
from claudius.receipts import CHANGED, DROPPED, PLANNED, ZONE

SURE_CHARS = 24
"""Letters of a reply after which it is clear whether it begins as an answer."""

_SENTENCE = re.compile(r"\b[^.!?。！？\n(){}=;|]{12,200}[.!?。！？]")


class Alone:
    """Holds the beginning of a reply until it is clear that it is an answer, and takes the soul's name off it."""

    def __init__(self, rules: OutputRules, name: str) -> None:
        """`name`: whose name may stand before the words, as that of every speaker does in the prompt."""
        self._rules, self._name = rules, name
        self._begun: str | None = ""
        self.is_unfit = False
        """The beginning is none of an answer: nothing is shown before the whole reply was judged."""

    def take(self, piece: str) -> str:
        """Return what the parser reads of the next piece; empty while it is not clear."""
        if self._begun is None:
            return piece
        self._begun += piece
        begins = _letters(self._begun)
        if len(begins) < SURE_CHARS or any(_letters(one).startswith(begins) for one in self._rules.heard):
            return ""
        return self._begin()

    def end(self) -> str:
        """Return what ends the section."""
        return f"{self._begin()}</{SPEECH}>"

    def whole(self, reply: Parsed, written: str) -> Parsed:
        """Return a reply whose words are all that was written, unless that has a form: a tag in them is spoken of."""
        if is_structured(written, self._rules.names):  # what is left of it may be nothing
            return replace(reply, flags=(*reply.flags, "structured"))
        words = self._without_name(written).strip()
        if reply.truncated and not ends_a_sentence(words):
            return reply
        return replace(reply, dialogues=(Dialogue(text=words, state="complete"),), flags=(), truncated=False)

    def goes_round(self, written: str) -> bool:
        """Return whether a reply says a sentence for the third time, and the same between; a refrain ends nothing."""
        parts = [written.rsplit(one, 3) for one in _SENTENCE.findall(written[-400:])[-1:]]
        return any(len(one) > 3 and _letters(one[1]) == _letters(one[2]) for one in parts)

    def anew(self) -> Alone:
        """Return one that has read nothing."""
        return Alone(self._rules, self._name)

    def _begin(self) -> str:
        if self._begun is None:
            return ""
        words, self._begun = self._begun, None
        words = self._without_name(words)
        self.is_unfit = why_not_alone(words, self._rules) != ()
        return f"<{SPEECH}>{words}"

    def _without_name(self, words: str) -> str:
        if not self._name:
            return words
        return re.sub(rf"\A\W*{re.escape(self._name)}\W{{0,3}}:\s*", "", words, flags=re.IGNORECASE)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


FORGED: Final = "forged:receipt"
_NAMED: Final = (":alarm_clock:", ":heavy_multiplication_x:")
"""What Slack shows as two of the signs."""
_SIGNS = (PLANNED, DROPPED, CHANGED, ZONE, *_NAMED)
_BREAK = re.compile("([\n\r\x0b\x0c\x85\u2028\u2029])")
_LEAD = re.compile(r"[\s>*_~`#|•.()\[\]\-–—]*")
_ID = re.compile(r"(?<![^\W_])[pfm]\d{1,6}(?![^\W_])", re.IGNORECASE)


def _begins(line: str) -> str:
    """Return a line as it is seen, without what only dresses its beginning."""
    plain = UNSEEN.sub("", line)
    return plain[_LEAD.match(plain).end() :]  # type: ignore[union-attr]  # it matches nothing as well


def _is_forged(line: str) -> bool:
    begun = _begins(line)
    return begun.startswith(_SIGNS) and _ID.search(begun) is not None


def _may_be_forged(line: str) -> bool:
    """Return whether the beginning of a line may still become a forged receipt."""
    begun = _begins(line)
    return not begun or begun.startswith(_SIGNS) or any(one.startswith(begun) for one in _NAMED)


def unforged(text: str) -> str:
    """Return a text without its lines that begin as a receipt does and hold an id. Pure."""
    if text.isascii() and ":" not in text:  # no sign of any spelling
        return text
    parts = _BREAK.split(text)
    lines = list(zip(parts[::2], [*parts[1::2], ""], strict=True))
    own = [line + end for line, end in lines if not _is_forged(line)]
    return text if len(own) == len(lines) else "".join(own).strip()


def without_forged(reply: Parsed) -> Parsed:
    """Return a reply whose words hold no forged receipts, with a flag if they did. Pure."""
    dialogues = tuple([replace(one, text=unforged(one.text)) for one in reply.dialogues])
    raw = reply.raw if reply.dialogues or reply.sections else unforged(reply.raw)
    if dialogues == reply.dialogues and raw == reply.raw:
        return reply
    return replace(reply, dialogues=dialogues, raw=raw, flags=(*reply.flags, FORGED))


class Unforged:
    """The streaming form: what it has let through is always a prefix of `unforged` of the whole text."""

    def __init__(self) -> None:
        self._line = self._blank = ""
        self._is_open = self._has_begun = False
        """The unfinished line is no receipt, so the rest of it is shown as it comes; something was shown before."""

    def take(self, text: str) -> str:
        """Take the next piece of text and return what more may be shown."""
        parts = _BREAK.split(self._line + text)
        said = self._blank
        for line, end in zip(parts[:-1:2], parts[1::2], strict=True):
            said += line + end if self._is_open or not _is_forged(line) else ""
            self._is_open = False
        self._line = parts[-1]
        self._is_open = self._is_open or not _may_be_forged(self._line)
        if self._is_open:
            said, self._line = said + self._line, ""
        shown = said.rstrip()
        self._blank = said[len(shown) :]
        shown = shown if self._has_begun else shown.lstrip()
        self._has_begun = self._has_begun or bool(shown)
        return shown


class ReplyReading(Struct):
    """A reply being read as it streams; speakable text is shown at once."""

    parser: Parser
    gate: StreamGate | None = None
    show: Show | None = None
    tell: Callable[[Failure], Awaitable[object]] | None = None
    thoughts: ThoughtStream | None = None
    may_show: Callable[[Section], bool] | None = None
    """Whether words may be shown once this section of acts has closed; None = they need not wait for it."""
    held: str = ""
    """Words that wait for the acts."""
    uses: bool = False
    """Whether a tool may be asked for: words after that are not shown."""
    alone: Alone | None = None
    """Reads words that come without a section; None = they have one."""
    unforged: Unforged = field(default_factory=Unforged)
    shown: str = ""
    text: str = ""
    is_void: bool = False
    """The transport restarted the request, so nothing more is shown before the end."""

    async def hear(self, event: Event) -> None:
        """Read the next event."""
        match event:
            case Delta(text):
                await self.take(text)
            case Reset():
                self.restart()
            case Failing(error, is_told):
                if self.tell and is_told:
                    await self.tell(replace(failure_of(error), is_retried=True))
            case Done(text=text):
                if not self.text:
                    await self.take(text)

    async def take(self, piece: str) -> None:
        """Read the next piece."""
        self.text += piece
        await self._feed(self.alone.take(piece) if self.alone else piece)

    async def close(self) -> None:
        """End a reply that is whole."""
        if self.alone:
            await self._feed(self.alone.end())

    async def _feed(self, piece: str) -> None:
        self.is_void = self.is_void or (self.alone is not None and self.alone.is_unfit)
        visible = self.held + self.parser.feed(piece)
        self.held = ""
        if self.uses and visible:
            wishes = [one for one in map(self.parser.closed, WISHES) if one and one.is_wish and not one.late]
            self.is_void = self.is_void or bool(wishes)
        if self.may_show and not self.is_void:
            acts = self.parser.closed(ACTS)
            if acts is None:
                self.held = visible
                return
            self.is_void, self.may_show = not self.may_show(acts), None
        if visible and self.gate and self.show and not self.is_void:
            passed = self.gate.show(self.unforged.take(visible))
            if passed:
                self.shown += passed
                await self.show(passed)

    def restart(self) -> None:
        """Start over: discard the text so far. The final utterance will replace what was shown of it."""
        self.parser = Parser(self.parser.names, think=self.thoughts.tell if self.thoughts else None)
        self.text, self.shown, self.held, self.is_void = "", "", "", True
        self.alone = self.alone and self.alone.anew()
        self.unforged = Unforged()
        if self.thoughts:
            self.thoughts.void()
