"""What runs beside the turns: scheduled jobs, the daimons, the soul stream, the HTTP API, and the second mind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from claudius.cognition.hooks import Hooks
from claudius.cognition.mind import Mind, Stage, spending, tightest
from claudius.cognition.turn import Turned
from claudius.config.load import Loaded, perceive_tokens, token_name
from claudius.config.schema import Config, DaimonSettings, daimon_modes, daimons
from claudius.cortex.asking import consult
from claudius.cortex.life import Cortex
from claudius.cortex.models import Ties
from claudius.cortex.observe import OBSERVED
from claudius.errors import ClaudiusError, TryAgain
from claudius.home import Home
from claudius.intent import Intent
from claudius.memory.inbox import Pending
from claudius.memory.records import reflection_row
from claudius.memory.store import Store
from claudius.observed import (
    Consulted,
    CycleAssessed,
    CycleDirected,
    CycleEnded,
    DaimonSpoke,
    DaimonWhispered,
    MessageHeard,
    Observed,
    ProcessMoved,
    Thinking,
    ToolBegins,
    ToolEnded,
    TurnFailed,
)
from claudius.provider import Provider, SecondVoice, Slot
from claudius.runtime.control import ControlConnection, Handler
from claudius.runtime.peers import Peers
from claudius.runtime.scheduler import Clockwork
from claudius.soul import SoulText

if TYPE_CHECKING:
    from claudius.runtime.daimons import Daimons
    from claudius.runtime.health import Health
    from claudius.runtime.http_api import HttpApi

Build = Callable[[str, Loaded], Provider]
"""Builds the named provider from settings."""


class LazyDaimons:
    """The daimons of one soul, built on first use."""

    def __init__(self, mind: Mind, loaded: Callable[[], Loaded], build: Build, owner: Callable[[], str]) -> None:
        """Ask for `mind` with the settings in force; `owner` returns the owner of this terminal."""
        self._mind, self._loaded, self._build, self._owner = mind, loaded, build, owner
        self._made: Daimons | None = None

    def get(self) -> Daimons:
        """Return the daimons, built at the first call."""
        if self._made is None:
            from claudius.runtime.daimons import Daimons  # noqa: PLC0415 - not loaded while no daimon is on

            self._made = Daimons(self._mind, self._voice, self.token, self._owners)
        return self._made

    def token(self, name: str) -> str:
        """Return the token shared with a daimon; empty if none is set."""
        return self._loaded().secret(token_name(name))

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._made:
            await self._made.aclose()

    def _owners(self) -> tuple[str, ...]:
        return (self._owner(), *self._loaded().config.owners)

    def _voice(self, daimon: DaimonSettings) -> Provider:
        """Build a daimon's own provider: its server, its model, and no key except the one for that server."""
        loaded = self._loaded()
        openai = msgspec.structs.replace(loaded.config.openai, base_url=daimon.base_url, model=daimon.model)
        is_ours = daimon.base_url == loaded.config.openai.base_url
        withheld = () if is_ours else ("CLAUDIUS_OPENAI_API_KEY",)
        own = replace(
            loaded,
            config=msgspec.structs.replace(loaded.config, openai=openai),
            secrets={name: secret for name, secret in loaded.secrets.items() if name not in withheld},
        )
        return self._build(daimon.provider, own if daimon.provider == DaimonSettings().provider else loaded)


KINDS = ("hear", "think", "gate", "transition", "whisper", "speak", "error")
WAITING = 1000
"""A listener that lags by more events than this loses the oldest."""


class SoulStream:
    """Sends events to the listeners; does nothing while there are none."""

    def __init__(self, hooks: Hooks, clock: Callable[[], datetime]) -> None:
        """Send events for what `hooks` report and for every committed turn; `clock` dates those without a time."""
        self._hooks, self._clock = hooks, clock
        self._listeners: dict[asyncio.Queue[dict[str, Any]], bool] = {}
        """Queue → whether it wants the structs beside the prose."""
        self._is_looking = False

    def committed(self, turned: Turned) -> None:
        """Send the events of a turn, once it is durable."""
        if self._listeners:
            for event, seen in told(turned):
                self._tell(event, seen)

    async def serve(self, connection: ControlConnection, asked: Mapping[str, Any]) -> None:
        """Serve one listener until it disconnects.

        With `deltas`, it is told each thought as it is written, too; with `typed`, what observers are told stands
        beside the prose.
        """
        if not self._is_looking:  # the first listener
            self._is_looking = True
            self._hooks.listen(MessageHeard, self._heard)
            self._hooks.listen(TurnFailed, self._failed)
            self._hooks.listen(DaimonWhispered, self._whispered)
            self._hooks.listen(DaimonSpoke, self._joined)
            self._hooks.listen(ToolBegins, self._used)
            self._hooks.listen(ToolEnded, self._used)
            for kind in (CycleEnded, CycleAssessed, CycleDirected, Consulted):
                self._hooks.listen(kind, self._reflected)
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._listeners[queue] = bool(asked.get("typed"))
        unhook = self._hooks.listen(Thinking, partial(_grown, queue)) if asked.get("deltas") else None
        gone = asyncio.create_task(connection.receive(), name="stream's end")
        try:
            await connection.send({"event": "streaming"})
            while not gone.done():
                following = asyncio.ensure_future(queue.get())
                await asyncio.wait((gone, following), return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    break
                await connection.send(following.result())
        finally:
            del self._listeners[queue]
            if unhook:
                unhook()
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)

    def _heard(self, seen: MessageHeard) -> None:
        event = _event(seen.timestamp, "hear", seen.conversation, seen.turn, f"{seen.peer_id}: {seen.preview}")
        self._tell(event | {"key": seen.event_id}, seen)

    def _failed(self, seen: TurnFailed) -> None:
        self._tell(_event(seen.timestamp, "error", seen.conversation, seen.turn, seen.detail))

    def _whispered(self, seen: DaimonWhispered) -> None:
        self._tell(_event(seen.timestamp, "whisper", "", "", f"{seen.daimon}: {seen.text}"))

    def _joined(self, seen: DaimonSpoke) -> None:
        self._tell(_event(seen.timestamp, "speak", seen.conversation, seen.turn, seen.text))

    def _used(self, seen: ToolBegins) -> None:
        end = f": {seen.state}" if isinstance(seen, ToolEnded) else ""
        kind = "tool.end" if end else "tool.start"
        self._tell(_event(seen.timestamp, kind, seen.conversation, seen.turn, f"{seen.tool} ({seen.call}){end}"), seen)

    def _reflected(self, seen: Observed) -> None:
        """Send an event for what the second mind did."""
        turn, text = "", ""
        match seen:
            case CycleEnded():
                text = f"looked back, cycle {seen.cycle}: {seen.summary}"
            case CycleAssessed():
                text = f"assessed {seen.peer_id}: {seen.rationale}"
            case CycleDirected():
                text = f"wants to {seen.action} {seen.peer_id}: {seen.text}"
            case Consulted():
                turn, text = seen.turn, f"consulted: {'no answer in time' if seen.timed_out else seen.verdict}"
        self._tell(_event(self._clock(), "think", "", turn, text), seen)

    def _tell(self, event: dict[str, Any], seen: Observed | None = None) -> None:
        for queue, is_typed in self._listeners.items():
            typed = {"event": {"point": seen.point, **msgspec.to_builtins(seen)}} if is_typed and seen else {}
            _put(queue, event | typed)


def _put(queue: asyncio.Queue[dict[str, Any]], event: dict[str, Any]) -> None:
    if queue.qsize() >= WAITING:
        queue.get_nowait()
    queue.put_nowait(event)


def _grown(queue: asyncio.Queue[dict[str, Any]], seen: Thinking) -> None:
    kind = "think.void" if seen.is_void else "think.delta"
    _put(
        queue,
        _event(seen.timestamp, kind, seen.conversation, seen.turn, seen.text) | {"step": seen.step, "verb": seen.verb},
    )


def told(turned: Turned) -> Iterator[tuple[dict[str, Any], Observed | None]]:
    """Yield a committed turn's events: what decided, what was felt and thought, the transition, what was said. Pure.

    With each stands what observers are told of it, if they are.
    """
    intent, known = turned.intent, turned.recollection

    def event(kind: str, text: str, seen: Observed | None = None) -> tuple[dict[str, Any], Observed | None]:
        return _event(intent.at, kind, intent.conversation, intent.turn, text), seen

    attention = intent.attention
    yield event("gate", f"{attention.get('outcome', '')}: {attention.get('reason', '')}".strip(": "))
    for thought in intent.thoughts:
        if thought.step == "daimonic_intuition":
            yield event("whisper", f"{thought.verb} is felt: {thought.content}")
        elif thought.step.endswith("_check"):
            yield event("gate", f"{thought.step}: {thought.content}")
        elif thought.step != "external_dialogue":
            yield event("think", f"{thought.step} ({thought.verb or '–'}): {thought.content}")
    if intent.asking:
        yield event("tool.ask", f"{intent.asking.tool} ({intent.asking.id})")
    before, after = known.process.process or intent.process, intent.next_process.process
    if after and after != before:
        seen = {"turn": intent.turn, "conversation": intent.conversation, "audience": intent.audience}
        moved = ProcessMoved(**seen, timestamp=intent.at, before=before, after=after)
        yield event("transition", f"{before} → {after}", moved)
    for utterance in intent.utterances:
        yield event("speak", utterance.body)


def _event(at: datetime, kind: str, conversation: str, turn: str, text: str) -> dict[str, Any]:
    return {
        "at": at.isoformat().replace("+00:00", "Z"),
        "kind": kind,
        "conversation": conversation,
        "turn": turn,
        "text": text,
    }


class BackgroundServices:
    """The background services of one mind."""

    def __init__(  # noqa: PLR0913 - all that one process has beside its turns
        self,
        mind: Mind,
        home: Home,
        loaded: Callable[[], Loaded],
        build: Build,
        *,
        owner: Callable[[], str],
        chance: Callable[[], float],
        is_daemon: bool,
        also: Sequence[Callable[[Callable[[str], None]], Awaitable[None]]] = (),
        observers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Serve `mind` in `home` with the settings in force; only a daemon runs the schedule and listens on TCP.

        `also` is started with the services; each gets the function that wakes a conversation.
        """
        self._mind, self._home, self._loaded, self.is_daemon, self._also = mind, home, loaded, is_daemon, also
        self.observers = observers
        """Returns what is wrong with each observer of the owner's."""
        self._daimons, self.owner = LazyDaimons(mind, loaded, build, owner), owner
        self.peers = Peers(mind, owner, lambda name, body: self._daimons.get().converse(name, body))
        self._wake: Callable[[str], None] = lambda _: None
        self.clockwork = Clockwork(mind, home, self._daimons.get, chance)
        self._door: HttpApi | None = None
        self._health: Health | None = None
        self._metrics: Callable[[], Awaitable[str]] | None = None
        self.stream = SoulStream(mind.hooks, mind.clock)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The operations that the control socket answers for these services."""
        return {"daimon": self._whisper_now, "stream": self.stream.serve, "converse": self.peers.serve}

    async def start(
        self,
        wake: Callable[[str], None],
        health: Health,
        metrics: Callable[[], Awaitable[str]],
        overwrite: Callable[[], Awaitable[str]],
    ) -> None:
        """Start the services; the HTTP API shows `health` and `metrics`, `overwrite` is a job's work.

        Raises: BadConfiguration if it may not listen at the configured address.
        """
        self._health, self._metrics = health, metrics
        self.clockwork.start(wake, overwrite)
        self._wake = self.peers.wake = wake
        if self.is_daemon and self._loaded().config.http.listen:
            await self._opened().open()
        for begin in self._also:
            await begin(wake)

    async def stop(self) -> None:
        """Stop the services and release what they opened."""
        if self._door:
            await self._door.close()
        await self._daimons.aclose()

    async def look(self, now: datetime) -> datetime | None:
        """Run the jobs that are due, if this process runs the schedule."""
        return await self.clockwork.look(now) if self.is_daemon else None

    async def serve(self, connection: ControlConnection, line: bytes) -> None:
        """Serve HTTP on a connection of the control socket."""
        await self._opened().serve(connection, line)

    def beside(self, intent: Intent, pending: Pending) -> Coroutine[Any, Any, None] | None:
        """Return the coroutine that lets a daimon speak after a turn, or None if no daimon is on."""
        if not daimon_modes(self._loaded().config):
            return None
        from claudius.runtime.daimons import speak_up  # noqa: PLC0415 - not loaded while no daimon is on

        return speak_up(intent, pending, self._mind, self._daimons.get())

    def _opened(self) -> HttpApi:
        """Return the HTTP API, created on first use. Raises: TryAgain before `start`."""
        if self._door is None:
            if self._health is None or self._metrics is None:
                raise TryAgain("not awake yet")
            from claudius.runtime.http_api import EventApi, HttpApi, Monitor, WhisperApi  # noqa: PLC0415 - aiohttp's server takes long to load

            whispers = WhisperApi(self._mind, self._daimons.get, self.peers)
            events = EventApi(self._mind, self.owner, lambda: self._wake)
            monitor = Monitor(self._health, self._metrics)
            self._door = HttpApi(whispers, events, monitor, self._tokens, self._loaded().config.http.listen)
        return self._door

    def _tokens(self) -> Mapping[str, str]:
        """Return the token of each daimon and program that has one, by name, and the owner's under the empty name."""
        from claudius.runtime.http_api import PROGRAM  # noqa: PLC0415 - as above

        loaded = self._loaded()
        theirs = {name: self._daimons.token(name) for name in daimons(loaded.config)}
        theirs |= {f"{PROGRAM}{name}": token for name, token in perceive_tokens(loaded).items()}
        return {name: token for name, token in {**theirs, "": loaded.secret("CLAUDIUS_HTTP_TOKEN")}.items() if token}

    async def _whisper_now(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Serve `claudius daimon whisper`: ask one daimon now."""
        try:
            found = await self._daimons.get().now(str(frame.get("name") or "kothar"))
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": error.message})
            return
        await connection.send({"event": "whispered", "record": msgspec.structs.asdict(found)})


SPENDING = (Stage.OPEN, Stage.WHISPERS_OFF)
"""Stages of the budget at which the cortex may still call a model."""


class SecondMind:
    """The cortex beside one mind. It is built first, from the same parts, so that the mind can be given it."""

    def __init__(  # noqa: PLR0913 - the parts of a mind that the cortex shares
        self,
        *,
        store: Store,
        provider: Provider,
        soul: Callable[[], SoulText],
        config: Callable[[], Config],
        clock: Callable[[], datetime],
        nonce: Callable[[], str],
        hooks: Hooks,
        build: Callable[[str], Provider],
        secrets: Sequence[str] = (),
        slot: Slot | None = None,
    ) -> None:
        """Build the cortex; `build` makes the named provider if it is to have one of its own.

        `slot` is the mind's: where the model's server has one, the cortex is quiet while a turn runs. A consultation is
        a part of its turn.
        """
        self._slot = slot or Slot()
        self._store, self._provider, self._config, self._clock = store, provider, config, clock
        self._build = build
        self._voices: dict[str, Provider] = {}
        self._wake: Callable[[str], None] = lambda _: None
        ties = Ties(
            store=store,
            voice=lambda name: SecondVoice(self._voice(name), self._slot),
            soul=soul,
            config=config,
            clock=clock,
            nonce=nonce,
            emit=hooks.emit,
            may_spend=self._may_spend,
            wake=lambda conversation: self._wake(conversation),  # noqa: PLW0108 - bound late
            secrets=secrets,
        )
        self.cortex = Cortex(ties)
        for kind in OBSERVED:
            hooks.listen(kind, self.cortex.observe)
        self.consult = partial(consult, replace(ties, voice=self._voice))
        """Judges a message before the soul answers it."""

    async def live(self, wake: Callable[[str], None]) -> None:
        """Run the cortex until cancelled, in two seconds at most; `wake` has a conversation check for what waits."""
        self._wake = wake
        await self.cortex.live()

    async def close(self) -> None:
        """Close the cortex's own providers."""
        for voice in self._voices.values():
            await voice.aclose()

    async def reflect(self, connection: ControlConnection, _: Mapping[str, Any]) -> None:
        """Serve the owner's `claudius cortex reflect`: run one cycle now, and send its record."""
        try:
            record = reflection_row(await self.cortex.reflect())
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": error.message})
            return
        document = json.loads(json.dumps(record | {"at": record["at"].isoformat().replace("+00:00", "Z")}))
        await connection.send({"event": "reflected", "record": document})

    def _voice(self, name: str) -> Provider:
        if not name or name == self._provider.name:
            return self._provider
        if name not in self._voices:
            self._voices[name] = self._build(name)
        return self._voices[name]

    def _may_spend(self) -> bool:
        config = self._config()
        cap = tightest(spending(self._store, config.budget, self._clock()))
        return cap.stage in SPENDING and not (config.runtime.paused or self._store.leases.is_paused())
