"""A reply while it streams: parse it, and show at once what may be said of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.acts import ACTS
from claudius.cognition.hooks import ThoughtStream
from claudius.cognition.mind import Show
from claudius.cognition.output.alone import Alone
from claudius.cognition.output.forged import Unforged
from claudius.cognition.output.gate import StreamGate
from claudius.cognition.reply.parser import Parser, Section
from claudius.cognition.reply.tags import WISHES
from claudius.failure import Failure, failure_of
from claudius.provider import Delta, Done, Event, Failing, Reset


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
