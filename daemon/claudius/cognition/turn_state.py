"""A turn under way: the one value that every step of a turn reads and adds to, from recall to commit.

Nothing in it is kept before the turn is committed; where a turn raises, all of it is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.interruption import Hearing
from claudius.cognition.mind import Mind, Show
from claudius.cognition.output.rules import OutputRules, output_rules
from claudius.cognition.plan.plan import EngineSettings, Plan, silent_plan
from claudius.cognition.processes.process import Process
from claudius.cognition.prompt.assembly import build_prompt, prompt_sha256
from claudius.cognition.prompt.function_prompts import Drawn, Scene
from claudius.cognition.prompt.snapshot import freeze
from claudius.cognition.working_memory import Entry as Line
from claudius.config import Config
from claudius.intent import Call, Intent, Planned, Rung, Schedule
from claudius.perception import Perception
from claudius.provider import Image
from claudius.psyche import Attention
from claudius.recollection import ProcessState, Recollection
from claudius.soul import SoulText

NO_PROCESS = Process(name="")
SUMMARY_CALL = 100
"""The number of a turn's summary call; the calls of its thought count from 0."""


class Files(Protocol):
    """Reads the files that people show, for one turn."""

    async def read(self, perceptions: tuple[Perception, ...]) -> tuple[tuple[Perception, ...], tuple[Image, ...]]:
        """Return the perceptions with what was read, and the pictures to be shown to the model."""
        ...

    def without_pictures(self, perceptions: tuple[Perception, ...]) -> tuple[Perception, ...]:
        """Return the perceptions as a model gets them that takes no pictures."""
        ...


class Surface(Struct, frozen=True, kw_only=True):
    """What the network of a conversation offers a turn; the default offers nothing."""

    show: Show | None = None
    """Shows the reply while it is thought; None = the network shows whole posts."""
    post_chars: int | None = None
    """The longest post, in UTF-16 units; None = any."""
    hold: Callable[[str], Awaitable[None]] | None = None
    """Shows a holding line in the typing indicator."""
    files: Files | None = None
    begin_thinking: Callable[[], Awaitable[None]] | None = None
    """Awaited once, before the first model call: switches the typing indicator on."""
    hearing: Hearing = field(default_factory=Hearing)
    """What else is heard in the conversation while the turn runs."""


class Words(str):
    """A line that was worded and not yet said: text, with how it was won."""

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
        """Make a line."""
        made = cls(text)
        made.verb, made.rung, made.truncated, made.flags = verb, rung, truncated, flags
        return made


class FirstCall(Struct, frozen=True):
    """What the first call of a turn was asked, for the snapshot that `claudius replay` rebuilds."""

    sha256: str
    plan: Plan
    drawn: Drawn | None
    """None = the prompt of a fused turn, which follows from recollection and plan alone."""


class TurnState(Struct, kw_only=True):
    """One turn under way."""

    mind: Mind
    soul: SoulText
    config: Config
    settings: EngineSettings
    recollection: Recollection
    plan: Plan
    process: Process = NO_PROCESS
    """The process of the present hop."""
    attention: Attention | None = None
    surface: Surface = field(default_factory=Surface)
    images: tuple[Image, ...] = ()
    paid: Mapping[str, Call] = field(default_factory=dict)
    """Finished calls of an earlier, unfinished run, by the sha256 of their prompt."""
    calls: list[Call] = field(default_factory=list)
    first: FirstCall | None = None
    asked: list[str] = field(default_factory=list)
    """Every step that was asked, in order."""
    thought: tuple[str, ...] = ()
    """Private texts of this very turn that a later call of it was shown."""

    process_state: ProcessState = field(default_factory=lambda: ProcessState(process=""))
    """As the next hop finds it."""
    is_guest: bool = False
    """The process is borrowed for this turn, and no transition has made it at home."""
    hops: list[str] = field(default_factory=list)
    """The processes that ran."""
    parts: list[Intent] = field(default_factory=list)
    """What each declarative hop came to."""
    entries: list[Line] = field(default_factory=list)
    """What is remembered of the hops so far, in order."""
    moves: list[dict[str, Any]] = field(default_factory=list)
    lines: list[Words] = field(default_factory=list)
    """What is to be said, in order: one utterance, joined by blank lines."""
    streamed: str = ""
    """What the listener has already seen."""
    has_yielded: bool = False
    """The turn stopped for a new perception; what it thought is kept."""
    schedules: list[Schedule] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    closes: bool = False
    kept: dict[str, Any] | None = None
    """What the running process keeps; None = as it was."""
    _rules: tuple[Plan, OutputRules] | None = None

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self.recollection.turn

    @property
    def rules(self) -> OutputRules:
        """What may be said by the present hop."""
        if self._rules is None or self._rules[0] is not self.plan:
            made = output_rules(self.plan, self.recollection, self.soul, self.settings, self.mind.secrets, self.thought)
            self._rules = self.plan, made
        return self._rules[1]

    def guard(self, texts: Iterable[str]) -> None:
        """Keep the reply from repeating these private texts, which its next call is shown."""
        known = tuple(dict.fromkeys((*self.thought, *texts)))
        if known != self.thought:
            self.thought, self._rules = known, None

    def restart(self, settings: EngineSettings) -> None:
        """Forget what the hops did, but for the calls that were made: the turn is thought once more."""
        self.settings, self.first, self._rules = settings, None, None
        self.thought, self.streamed, self.has_yielded = (), "", False
        self.closes, self.kept = False, None
        for grown in (
            self.asked, self.hops, self.parts, self.entries, self.moves, self.lines, self.schedules, self.cancels
        ):  # fmt: skip
            grown.clear()

    @property
    def show(self) -> Show | None:
        """Where the present hop's words are shown while they are thought; None where nothing may be shown yet."""
        is_final = not self.process.may_execute_now and not self.lines
        return self.surface.show if is_final else None

    def scene(self) -> Scene:
        """Return what a call over a working memory is asked with."""
        return Scene.of(self.recollection, self.plan, self.soul, self.settings)

    def next_number(self) -> int:
        """Return the number of the next call: past every one of this turn, an earlier run's included."""
        known = (*self.calls, *self.paid.values())
        return max((call.n for call in known if call.n < SUMMARY_CALL), default=-1) + 1

    @property
    def tokens(self) -> int:
        """Count the tokens of every call, in and out."""
        used = (call.usage for call in self.calls)
        return sum(
            one.input_tokens + one.cache_read_tokens + one.cache_write_tokens + one.output_tokens for one in used
        )

    def schedule(self, text: str, *, at: datetime, key: str | None, **rest: Any) -> Schedule:
        """Plan a perception of the soul's own, to be written with the turn."""
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
        """Return what the turn plans; None where nothing is."""
        if not (self.schedules or self.cancels or self.closes or changes):
            return None
        return Planned(schedules=tuple(self.schedules), cancels=tuple(self.cancels), closes=self.closes, **changes)


def silent_turn(name: str, recollection: Recollection, mind: Mind) -> TurnState:
    """Return a turn in which nobody is answered: of a subprocess, of a summary, of a daimon's line."""
    config = mind.config()
    settings = EngineSettings.of(config)
    return TurnState(
        mind=mind,
        soul=mind.soul(),
        config=config,
        settings=settings,
        recollection=recollection,
        plan=silent_plan(name, recollection, settings),
    )


def schedule_id(turn: str, conversation: str, place: int, key: str | None) -> int:
    """Return the id of a plan: the same for the same key here, and for the same place in a turn run again. Pure."""
    named = f"{conversation}\0{key}" if key else f"{turn}\0{place}"
    return int.from_bytes(sha256(named.encode()).digest()[:5], "big") + 1


def kept_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept as JSON will give it back. Pure. Raises: TypeError for what JSON cannot hold."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(values)))
    return found


def recorded(turn: TurnState, intent: Intent) -> Intent:
    """Add a turn's calls, and the snapshot of its first prompt. Pure."""
    first = turn.first
    if first is None:
        sha256 = prompt_sha256(build_prompt(turn.plan, turn.recollection, turn.soul, turn.settings))
        snapshot, blobs = freeze(turn.recollection, turn.plan, turn.settings, turn.soul)
    else:
        sha256 = first.sha256
        snapshot, blobs = freeze(turn.recollection, first.plan, turn.settings, turn.soul, first.drawn)
    return replace(intent, calls=tuple(turn.calls), prompt_sha256=sha256, snapshot=snapshot, blobs=blobs)
