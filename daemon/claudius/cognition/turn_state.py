"""Hold the state of a running turn, which every step reads and extends from recall to commit.

Nothing in it is stored before the commit; if the turn raises, all of it is discarded. `Arrivals` tracks the perceptions
that arrive in the conversation meanwhile, so that the turn can yield to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.acts import Act
from claudius.cognition.consent import taint
from claudius.cognition.mind import Mind, Show
from claudius.cognition.output.rules import OutputRules, output_rules
from claudius.cognition.plan import EngineSettings, Plan, silent_plan
from claudius.cognition.processes import Process
from claudius.cognition.prompt.assembly import build_prompt, fitted, prompt_sha256
from claudius.cognition.prompt.function_prompts import Drawn, PromptSource
from claudius.cognition.prompt.present import with_tools
from claudius.cognition.prompt.snapshot import freeze
from claudius.cognition.working_memory import MemoryEntry
from claudius.config.schema import Config
from claudius.failure import Failure
from claudius.intent import Call, Intent, Planned, Rung, Schedule
from claudius.memory.inbox import Pending
from claudius.perception import Origin, Perception
from claudius.provider import Image, ModelLimits, limits_of
from claudius.psyche import Attention
from claudius.recollection import ProcessState, Recollection
from claudius.shown import Quoted
from claudius.soul import SoulText
from claudius.tool import ToolCall, ToolStep

Look = Callable[[], Awaitable[Sequence[Perception]]]


class Superseded(Exception):
    """The turn was stopped for a new perception. Nothing is kept; its messages go into the next turn."""


async def nothing() -> Sequence[Perception]:
    """Return no other perceptions."""
    return ()


class Arrivals:
    """Watches for new perceptions during one turn. Call `ring` whenever one may have arrived."""

    def __init__(self, look: Look = nothing) -> None:
        """`look` returns the perceptions waiting in the conversation, oldest first, without those this turn answers."""
        self._look = look
        self._rung = asyncio.Event()
        self.arrived = asyncio.Event()
        """Set once a new perception has arrived since the turn began."""
        self._one_look = asyncio.Lock()
        self.pending: tuple[Perception, ...] = ()
        """The perceptions found by the last look."""

    def ring(self) -> None:
        """Signal that a perception may have arrived."""
        self._rung.set()

    async def begin(self) -> None:
        """Record the perceptions that already wait; they came before the turn and do not interrupt it."""
        self._rung.clear()
        self.pending = tuple(await self._look())

    async def look(self) -> bool:
        """Look again if `ring` was called. Returns whether a new perception arrived since the turn began."""
        async with self._one_look:  # a concurrent caller waits and gets the result of the look under way
            if self._rung.is_set():
                self._rung.clear()
                known = {one.key for one in self.pending}
                self.pending = tuple(await self._look())
                if any(one.key not in known for one in self.pending):
                    self.arrived.set()
        return self.arrived.is_set()

    async def listen(self) -> None:
        """Keep `pending` up to date while the turn runs."""
        while True:
            await self._rung.wait()
            await self.look()


NO_PROCESS, NO_STATE = Process(name=""), ProcessState(process="")
RECEIPT_CHARS = 160
"""The room that a receipt takes in a post."""
LARGE = ModelLimits()
"""The limits of a large model, for which the settings are made."""
SUMMARY_CALL = 100
"""The number of a turn's summary call; its other calls count from 0."""


def arrivals(pending: Pending, mind: Mind) -> Arrivals:
    """Return the view that a turn has of its conversation: everything that waits there except what it answers."""
    own = {one.key for one in pending.perceptions}

    async def look() -> Sequence[Perception]:
        found = await mind.store.inbox.unfinished(pending.perception.conversation)
        return [one.perception for one in found if one.perception.key not in own]

    return Arrivals(look)


def is_more(perception: Perception, person: str) -> bool:
    """Return whether a perception is one that its person says and is owed an answer for. Pure."""
    is_answered = perception.owes and not perception.extra.is_over_budget  # which gets an apology of its own
    return is_answered and perception.origin is Origin.EXTERNAL and perception.person == person


class Files(Protocol):
    """Reads the files attached to the perceptions of one turn."""

    async def read(self, perceptions: tuple[Perception, ...]) -> tuple[tuple[Perception, ...], tuple[Image, ...]]:
        """Return the perceptions with the file contents added, and the images to show to the model."""

    def without_pictures(self, perceptions: tuple[Perception, ...]) -> tuple[Perception, ...]:
        """Return the perceptions in the form for a model that takes no images."""


class Surface(Struct, frozen=True, kw_only=True):
    """What the conversation's network offers a turn; the default offers nothing."""

    show: Show | None = None
    """Shows the reply while it streams; None = the network shows whole posts."""
    post_chars: int | None = None
    """The longest post, in UTF-16 units; None = no limit."""
    is_plain: bool = False
    """Whether it shows neither tables nor headings below the third level."""
    introduces: bool = False
    """Whether somebody who writes directly for the first time is told what the soul can do for them."""
    hold: Callable[[str], Awaitable[None]] | None = None
    """Shows a holding line in the typing indicator."""
    files: Files | None = None
    around: tuple[Quoted, ...] = ()
    """What stands above the message that the turn answers."""
    begin_thinking: Callable[[], Awaitable[None]] | None = None
    """Awaited once before the first model call; switches the typing indicator on."""
    read: Callable[[str], Awaitable[None]] | None = None
    """Shows that a model at home reads the prompt, which may take minutes: the sign of life until its first word."""
    tell: Callable[[Failure], Awaitable[object]] | None = None
    """Tells the owner what went wrong, while the turn still goes on."""
    hearing: Arrivals = field(default_factory=Arrivals)
    """The other perceptions that arrive in the conversation while the turn runs."""
    is_open: bool = False
    """Whether the next perception probably belongs to what is answered: the turn then begins anew with both."""
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered while the turn waits for a model, so that other turns may go on."""


class Words(str):
    """A line ready to be said: its text, and how it was obtained."""

    __slots__ = ("flags", "rung", "truncated", "verb")

    verb: str
    rung: Rung
    truncated: bool
    flags: tuple[str, ...]

    @classmethod
    def of(
        cls,
        text: str,
        verb: str = "said",
        rung: Rung = "complete",
        *,
        truncated: bool = False,
        flags: tuple[str, ...] = (),
    ) -> Words:
        """Create a line."""
        made = cls(text)
        made.verb, made.rung, made.truncated, made.flags = verb, rung, truncated, flags
        return made


class FirstCall(Struct, frozen=True):
    """The first call of a turn, for the snapshot that `claudius replay` rebuilds."""

    sha256: str
    plan: Plan
    drawn: Drawn | None
    """None = a fused turn, whose prompt follows from recollection and plan alone."""


class TurnState(Struct, kw_only=True):
    """The state of a running turn."""

    mind: Mind
    soul: SoulText
    config: Config
    settings: EngineSettings
    recollection: Recollection
    plan: Plan
    process: Process = NO_PROCESS
    """The process of the current hop."""
    attention: Attention | None = None
    surface: Surface = field(default_factory=Surface)
    images: tuple[Image, ...] = ()
    paid: Mapping[str, Call] = field(default_factory=dict)
    """Finished calls of an earlier unfinished run, by the sha256 of their prompt."""
    calls: list[Call] = field(default_factory=list)
    first: FirstCall | None = None
    asked: list[str] = field(default_factory=list)
    """Every step that was asked, in order."""
    thought: tuple[str, ...] = ()
    """Private texts of this turn that were shown to a later call of the same turn."""

    process_state: ProcessState = NO_STATE
    """The process state that the next hop starts from."""
    is_guest: bool = False
    """The process is borrowed for this turn and no transition has made it permanent."""
    hops: list[str] = field(default_factory=list)
    """The names of the processes that ran, in order."""
    parts: list[Intent] = field(default_factory=list)
    """The intent of each declarative hop."""
    entries: list[MemoryEntry] = field(default_factory=list)
    """The remembered lines of the hops so far, in order."""
    moves: list[dict[str, Any]] = field(default_factory=list)
    lines: list[Words] = field(default_factory=list)
    """The lines to say, in order; they are joined by blank lines into one utterance."""
    streamed: str = ""
    """The text that the listener has already seen."""
    has_yielded: bool = False
    """The turn stopped for a new perception; its thoughts are kept."""
    acts: list[Act] = field(default_factory=list)
    """What the turn does beyond its words, checked and ready to be booked."""
    acted: list[Mapping[str, str]] = field(default_factory=list)
    """What `why` tells of each act that was written: also of those that were refused."""
    used: list[ToolStep] = field(default_factory=list)
    """What happened to each request for a tool, in order."""
    asking: ToolCall | None = None
    """The call that waits for consent; it ends the turn."""
    schedules: list[Schedule] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    closes: bool = False
    kept: dict[str, Any] | None = None
    """The values the running process keeps; None = unchanged."""
    noted: dict[str, Any] = field(default_factory=dict)
    """What else `why` tells of the turn's changes."""
    failure: Failure | None = None
    """Why the reply is not what it should be; None if it is."""
    _rules: tuple[Plan, OutputRules] | None = None

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self.recollection.turn

    @property
    def rules(self) -> OutputRules:
        """The output rules of the current hop."""
        if self._rules is None or self._rules[0] is not self.plan:
            made = output_rules(self.plan, self.recollection, self.soul, self.settings, self.mind.secrets, self.thought)
            self._rules = self.plan, made
        return self._rules[1]

    @property
    def tainted(self) -> str:
        """The third-party text that the turn heard or fetched, so that nothing is learned in it; empty = none."""
        return taint(self.recollection, self.used)

    async def fail(self, failure: Failure) -> None:
        """Keep what went wrong with the reply, and tell the owner at once."""
        self.failure = failure
        if self.surface.tell:
            await self.surface.tell(failure)

    def guard(self, texts: Iterable[str]) -> None:
        """Prevent the reply from repeating these private texts, which the next call is shown."""
        known = tuple(dict.fromkeys((*self.thought, *texts)))
        if known != self.thought:
            self.thought, self._rules = known, None

    def restart(self, settings: EngineSettings) -> None:
        """Discard the results of the hops, except for the calls made, so that the turn can run again."""
        self.settings, self.first, self._rules = settings, None, None
        self.thought, self.streamed, self.has_yielded = (), "", False
        self.closes, self.kept, self.failure, self.asking = False, None, None, None
        for grown in (
            self.asked, self.hops, self.parts, self.entries, self.moves, self.lines, self.acts, self.acted,
            self.used, self.schedules, self.cancels, self.noted,
        ):  # fmt: skip
            grown.clear()

    def source(self) -> PromptSource:
        """Return the source for a call that works on a working memory."""
        return PromptSource.of(self.recollection, self.plan, self.soul, self.settings)

    @property
    def said_settings(self) -> EngineSettings:
        """The settings for the words of the turn: a post leaves room for the receipts that follow them."""
        limit = self.settings.post_chars
        room = RECEIPT_CHARS * len(self.acts)
        return replace(self.settings, post_chars=limit - room) if limit and room else self.settings

    @property
    def tokens(self) -> int:
        """Count the input and output tokens of all calls, without what came from the provider's cache."""
        used = (call.usage for call in self.calls)
        return sum([one.input_tokens + one.cache_write_tokens + one.output_tokens for one in used])

    def schedule(self, text: str, *, at: datetime, key: str | None, **rest: Any) -> Schedule:
        """Schedule an internal perception, to be written with the turn."""
        conversation = self.recollection.conversation
        made = Schedule(
            id=schedule_id(self.turn, conversation, len(self.schedules), key),
            conversation=conversation,
            at=at,
            text=text,
            key=key,
            **rest,
        )
        self.schedules.append(made)
        return made

    def planned(self, **changes: Any) -> Planned | None:
        """Return what the turn plans; None if it plans nothing."""
        if not (self.schedules or self.cancels or self.closes or changes):
            return None
        return Planned(schedules=tuple(self.schedules), cancels=tuple(self.cancels), closes=self.closes, **changes)


async def settings_now(mind: Mind, recollection: Recollection, settings: EngineSettings) -> EngineSettings:
    """Return the settings of a turn, fitted to what its model can take."""
    limits = await limits_of(mind.provider)
    if limits == LARGE:
        return settings
    return fitted(settings, limits, recollection, mind.soul())


def soul_now(mind: Mind) -> SoulText:
    """Return the soul's texts of a turn, which name the tools that there are."""
    return with_tools(mind.soul(), mind.hands.offered() if mind.hands and mind.config().tools.enabled else ())


async def silent_turn(name: str, recollection: Recollection, mind: Mind) -> TurnState:
    """Return a turn that answers nobody, for a subprocess, a summary or a daimon's line."""
    config = mind.config()
    settings = await settings_now(mind, recollection, EngineSettings.of(config))
    return TurnState(
        mind=mind,
        soul=soul_now(mind),
        config=config,
        settings=settings,
        recollection=recollection,
        plan=silent_plan(name, recollection, settings),
    )


def schedule_id(turn: str, conversation: str, place: int, key: str | None) -> int:
    """Return the id of a schedule. Pure.

    The same key in the same conversation, and the same place in a repeated turn, give the same id.
    """
    named = f"{conversation}\0{key}" if key else f"{turn}\0{place}"
    return int.from_bytes(sha256(named.encode()).digest()[:5], "big") + 1


def kept_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as JSON will return them. Pure. Raises: TypeError for values JSON cannot hold."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(values)))
    return found


def recorded(turn: TurnState, intent: Intent) -> Intent:
    """Add the turn's calls and the snapshot of its first prompt to the intent. Pure."""
    first, used = turn.first, tuple(dict.fromkeys([one.tool for one in turn.used]))
    if first is None:
        sha256 = prompt_sha256(build_prompt(turn.plan, turn.recollection, turn.soul, turn.settings))
        snapshot, blobs = freeze(turn.recollection, turn.plan, turn.settings, turn.soul, used=used)
    else:
        sha256 = first.sha256
        snapshot, blobs = freeze(turn.recollection, first.plan, turn.settings, turn.soul, first.drawn, used)
    calls, failure = tuple(turn.calls), intent.failure or turn.failure
    return replace(intent, calls=calls, failure=failure, prompt_sha256=sha256, snapshot=snapshot, blobs=blobs)
