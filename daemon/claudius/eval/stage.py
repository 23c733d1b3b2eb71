"""Play a scene: a daemon in a temporary home and in virtual time, people who talk to it, and what it did."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

from claudius.acts import Act, FactKnown, PlanMade, ZoneSet
from claudius.cognition.hooks import Hooks
from claudius.cognition.tool_use import read_wish
from claudius.cognition.turn import Turned
from claudius.eval.scenes import Scene, SceneStep, SceneTool
from claudius.eval.voices import Metered, Playing, Repeating
from claudius.home import Home
from claudius.intent import Utterance
from claudius.perception import Kind, MessageExtra, Perception, private, shared
from claudius.psyche.bands import mood_of
from claudius.recollection import EntryType
from claudius.runtime.background_services import SoulStream
from claudius.runtime.scheduler import tick
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import NETWORK, RehearsalAdapter
from claudius.tool import JSON, Tool, ToolCall

ZONE = ZoneInfo("Europe/Rome")
MONDAY = datetime(2026, 1, 5, 8, 0, tzinfo=ZONE)
"""When every scene begins; Monday is its first day."""
BEGINNING = MONDAY.astimezone(UTC)
TURN_S = 900.0
"""The longest that a real voice is waited for, with all its retries."""
LOOK_S = 0.002
PREFIX = "claudius-eval-"
ROOM_BYTES = 2**29
_TURN_ID = re.compile(r"\(turn [^)]+\)")


class ScenePost(Struct, frozen=True):
    """One message of the soul's that people saw."""

    at: str
    """The local time, `2 09:00` on the second day."""
    room: str
    text: str


class Told(Struct, frozen=True):
    """What somebody told the soul, and where."""

    room: str
    person: str
    text: str


class SceneEvents(Struct, frozen=True, kw_only=True):
    """What happened in one step, or in a whole scene."""

    posts: tuple[ScenePost, ...] = ()
    prompts: tuple[str, ...] = ()
    """What the model was shown, one text a call."""
    rungs: tuple[str, ...] = ()
    """The rung of each turn that spoke."""
    thoughts: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    """The paragraphs of the system part that are not soul.md's."""
    told: tuple[Told, ...] = ()
    members: Mapping[str, tuple[str, ...]] = {}
    keys: tuple[str, ...] = ()
    state: Mapping[str, str | float] = {}
    asked: str = ""
    """What was said to the soul."""
    acts: tuple[str, ...] = ()
    """What its turns did beyond their words: `remind weekdays`, `know home`."""
    due: tuple[str, ...] = ()
    """The local time of each plan that they made."""
    tools: tuple[str, ...] = ()
    """The tools that they asked for."""


class Played(Struct, frozen=True, kw_only=True):
    """A scene that was played."""

    scene: Scene
    steps: tuple[SceneEvents, ...]
    whole: SceneEvents
    replies: tuple[str, ...]
    """What the model wrote, in order: a recording that can be played again."""
    tokens: int
    first_word_ms: tuple[float, ...]


@dataclass(slots=True)
class Watched(RehearsalAdapter):
    """A network in virtual time that records when each message was posted."""

    now: Callable[[], datetime] = lambda: MONDAY
    posts: list[ScenePost] = field(default_factory=list)

    async def speak(self, utterance: Utterance) -> str:
        """Make a part visible and record the time."""
        text = _TURN_ID.sub("(turn …)", utterance.body)
        self.posts.append(ScenePost(local(self.now()), utterance.conversation.split(":")[2], text))
        return await RehearsalAdapter.speak(self, utterance)

    async def bring(self, step: SceneStep) -> None:
        """Have a person post the message of a step."""
        if self._accept is None:
            raise AssertionError("the network does not listen")
        self._said += 1
        who, place = person(step.by), f"{NETWORK}:t:{room_of(step)}:"
        await self._accept(
            Perception(
                key=f"{NETWORK}:{self._said}",
                conversation=place,
                audience=shared(place) if step.room else private(who),
                person=who,
                name=step.by.capitalize(),
                text=step.says,
                at=self.now(),
                position=f"{self._said:020d}",
                kind=Kind.MENTION if step.room and step.mentions else Kind.MESSAGE,
                owes=not step.room or step.mentions,
                is_bot=step.bot,
                extra=MessageExtra(zone=str(ZONE)),
            )
        )


class Tap(SoulStream):
    """Hands every committed turn to the stage."""

    def __init__(self, hooks: Hooks, clock: Callable[[], datetime], turns: list[Turned]) -> None:
        super().__init__(hooks, clock)
        self.turns = turns

    def committed(self, turned: Turned) -> None:
        """Keep the turn."""
        self.turns.append(turned)


def person(name: str) -> str:
    """Return a person's id. Pure."""
    return f"{NETWORK}:t:{name}"


def room_of(step: SceneStep) -> str:
    """Return the name of the place where a step happens. Pure."""
    return step.room or f"dm-{step.by}" + (f"-{step.thread}" if step.thread else "")


def local(at: datetime) -> str:
    """Return an instant as day and local time: `2 09:00`. Pure."""
    there = at.astimezone(ZONE)
    return f"{(there.date() - MONDAY.date()).days + 1} {there:%H:%M}"


def done(act: Act) -> str:
    """Return what an act does, in a word or two. Pure."""
    name = act.kind if isinstance(act, PlanMade) else str(act.__struct_config__.tag)
    match act:
        case PlanMade():
            detail = act.repeat
        case FactKnown():
            detail = act.kind
        case ZoneSet():
            detail = act.zone
        case _:
            detail = ""
    return f"{name} {detail}".strip()


def instant(when: str) -> datetime:
    """Return the instant of a day and a local time. Pure. Raises: ValueError."""
    day, _, clock = when.partition(" ")
    hour, _, minute = clock.partition(":")
    at = MONDAY.replace(hour=int(hour), minute=int(minute)) + timedelta(days=int(day) - 1)
    return at.replace(tzinfo=ZONE)


@contextmanager
def homes() -> Iterator[Path]:
    """Yield a private directory for the homes of one evaluation, erased at the end; erase what killed ones left."""
    above = _quick_disk()
    for left in above.glob(f"{PREFIX}*"):
        _erase_if_left(left)
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=above))
    with (root / "alive").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _quick_disk() -> Path:
    """Return where temporary files cost no disk, if there is room: a month of a soul's life is thousands of commits."""
    memory = Path("/dev/shm")  # noqa: S108 - each evaluation makes a private directory of its own there
    is_roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM_BYTES
    return memory if is_roomy else Path(tempfile.gettempdir())


def _erase_if_left(directory: Path) -> None:
    try:
        with (directory / "alive").open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
    except OSError:
        return  # somebody else's, or alive


class SceneStage:
    """One scene under way."""

    def __init__(
        self,
        scene: Scene,
        voice: Metered,
        script: Playing | Repeating | None,
        soul: Alive,
        network: Watched,
        clock: SceneClock,
    ) -> None:
        """Play `scene` on `soul`, which hears `network` and lives by `clock`; `script` writes its replies."""
        self._scene, self._voice, self._script, self._soul = scene, voice, script, soul
        self._network, self._clock = network, clock
        self._turns: list[Turned] = []
        self._told: list[Told] = []
        if soul.services:
            soul.services.stream = Tap(soul.mind.hooks, soul.mind.clock, self._turns)

    async def play(self) -> Played:
        """Play every step."""
        steps = [await self._step(step) for step in self._scene.steps]
        return Played(
            scene=self._scene,
            steps=tuple(steps),
            whole=self._seen(0, 0, 0, "", steps[-1].state if steps else {}),
            replies=tuple(self._voice.replies),
            tokens=self._voice.usage.input_tokens + self._voice.usage.output_tokens,
            first_word_ms=tuple(self._voice.first_word_ms),
        )

    async def _step(self, step: SceneStep) -> SceneEvents:
        posts, calls, turns = len(self._network.posts), len(self._voice.requests), len(self._turns)
        if self._script:
            self._script.begin(step)
        await self._pass(instant(step.when) if step.when else self._clock.now() + timedelta(minutes=1))
        if step.says:
            self._told.append(Told(room_of(step), step.by, step.says))
            await self._network.bring(step)
            await self._idle()
            if self._soul.second:
                await self._soul.second.cortex.look()
        return self._seen(posts, calls, turns, step.says, await self._state(step))

    async def _pass(self, then: datetime) -> None:
        """Let time pass: a plan falls due at its own instant, a job at the end of its hour."""
        soul, clock = self._soul, self._clock
        look = soul.services.look if soul.services else None
        while clock.now() < then:
            now = clock.now()
            due = soul.mind.store.plans.next_due()
            hour = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            clock.wall = min(one for one in (due, hour, then) if one is not None and one > now)
            await tick(soul.mind, soul.server.wake, look)
            await self._idle()

    async def _idle(self) -> None:
        async with asyncio.timeout(TURN_S):
            while self._soul.server.busy:  # noqa: ASYNC110 - the kit looks from outside
                await asyncio.sleep(LOOK_S)

    def _seen(self, posts: int, calls: int, turns: int, asked: str, state: Mapping[str, str | float]) -> SceneEvents:
        requests, ran = self._voice.requests[calls:], self._turns[turns:]
        personality = self._soul.mind.soul().text("soul.md")
        return SceneEvents(
            posts=tuple(self._network.posts[posts:]),
            prompts=tuple(
                "\n".join([*(message.content for message in one.history), one.tail])
                for one in requests
                if one.purpose == "turn"
            ),
            rungs=tuple(one.intent.rung for one in ran if one.intent.utterances),
            thoughts=tuple(
                entry.content
                for one in self._turns
                for entry in one.intent.entries
                if entry.entry_type in (EntryType.INTERNAL_MONOLOGUE, EntryType.DAIMONIC_INTUITION)
            ),
            instructions=tuple(
                {part for one in requests for part in one.system.split("\n\n") if part not in personality}
            ),
            told=tuple(self._told),
            members=self._scene.members,
            keys=self._scene.keys,
            state=state,
            asked=asked,
            acts=tuple(done(act) for one in ran for act in one.intent.acts),
            due=tuple(local(act.at) for one in ran for act in one.intent.acts if isinstance(act, PlanMade)),
            tools=tuple(
                read_wish(entry.content)[0]
                for one in ran
                for entry in one.intent.entries
                if entry.entry_type is EntryType.TOOL_USE
            ),
        )

    async def _state(self, step: SceneStep) -> Mapping[str, str | float]:
        """Return the process of the last turn, the mood, the feeling towards the speaker, and the soul state."""
        found: dict[str, Any] = {}
        for one in self._turns:
            found |= {change.key: change.value for change in one.intent.state}
            found["process"] = one.intent.next_process.process or one.intent.process
        psyche, _ = self._soul.records().psyche()
        if psyche.numbers:
            found |= {"valence": psyche.numbers.valence, "energy": psyche.numbers.energy}
            found["mood"] = mood_of(psyche.numbers)
        for edge in psyche.edges:
            if edge.person == person(step.by):
                found |= {name: getattr(edge, name) for name in ("warmth", "trust", "tension", "familiarity")}
        return found


@dataclass(slots=True)
class SceneClock:
    """The wall clock of one scene, in UTC."""

    wall: datetime = BEGINNING

    def now(self) -> datetime:
        """Return the instant."""
        return self.wall.astimezone(UTC)

    def running_s(self) -> float:
        """Return the seconds since the scene began."""
        return (self.wall - MONDAY).total_seconds()


def furnish(root: Path, soul: Path | None, file: Path | None) -> None:
    """Copy the soul under test into a new home: the owner's files, and `file` as its soul.md."""
    if soul and soul.is_dir():
        shutil.copytree(soul, root / "soul", ignore=shutil.ignore_patterns("eval"), dirs_exist_ok=True)
    (root / "soul").mkdir(parents=True, exist_ok=True)
    if file:
        shutil.copyfile(file, root / "soul" / "soul.md")


def _tool(one: SceneTool) -> Tool:
    async def run(_: JSON, __: ToolCall) -> str:
        return one.gives

    properties = {name: {"type": "string"} for name in one.args}
    schema = {"type": "object", "properties": properties, "required": list(one.args), "additionalProperties": False}
    return Tool(name=one.name, purpose=one.purpose, cls=one.cls, schema=schema, run=run)


async def play(
    scene: Scene, root: Path, voice: Metered, script: Playing | Repeating | None, settings: Mapping[str, str]
) -> Played:
    """Play one scene in `root`, a furnished home that is erased afterwards."""
    home, clock, count = Home(root), SceneClock(), iter(range(1, 2**63))
    home.create()
    whole = {"CLAUDIUS_CLOCK_TIMEZONE": str(ZONE), **scene.settings, **settings}
    network = Watched(now=clock.now)
    network.audiences = {
        shared(f"{NETWORK}:t:{room}:"): tuple(person(one) for one in them) for room, them in scene.members.items()
    }
    tools = tuple(map(_tool, scene.tools))
    begun = alive(
        home,
        voice,
        settings=whole,
        clock=clock.now,
        running=clock.running_s,
        network=network,
        keeps_clock=True,
        nonce=lambda: f"{next(count):032x}",
        reflects=whole.get("CLAUDIUS_CORTEX_ENABLED") == "1",
        tools=(lambda: tools) if tools else None,
    )
    try:
        async with begun as soul:
            return await SceneStage(scene, voice, script, soul, network, clock).play()
    finally:
        shutil.rmtree(root, ignore_errors=True)
