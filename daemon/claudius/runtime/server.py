"""The process that takes turns: it starts, hears, drains and stops. The methods stand in the order of its life."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

import claudius
from claudius.cognition.mind import Mind
from claudius.cognition.timing import known_zone, next_quiet, read_hours
from claudius.config.load import blot
from claudius.errors import ClaudiusError, StoreCorrupt, StoreError, StoreMoved, StoreTooNew
from claudius.failure import failure_of
from claudius.foreign import plain_message, unquoted
from claudius.home import Home
from claudius.memory.archive import Archive, GitFailed
from claudius.memory.erasing import Posted
from claudius.memory.erasure import Begun, Erasures
from claudius.memory.inbox import Pending
from claudius.memory.leases import listens, may
from claudius.memory.moments import Semantic
from claudius.memory.store import Unfinished
from claudius.perception import SELF, Place
from claudius.provider import Resting
from claudius.runtime.access import ChannelModes, Pairing
from claudius.runtime.adapter import Adapter
from claudius.runtime.alerts import Alerts
from claudius.runtime.auditing import watch
from claudius.runtime.background_services import BackgroundServices, SecondMind
from claudius.runtime.commands.commands import Commands
from claudius.runtime.commands.places import OwnerCommands
from claudius.runtime.control import ControlConnection, ControlSocket, Handler
from claudius.runtime.delivery import Retraction
from claudius.runtime.forgetting import Forgetting
from claudius.runtime.health import Health
from claudius.runtime.intake import Intake
from claudius.runtime.lane import Lane
from claudius.runtime.lanes import Lanes
from claudius.runtime.life import HomeLock
from claudius.runtime.logs import lost
from claudius.runtime.networks import Networks
from claudius.runtime.peers import PEER
from claudius.runtime.process_resources import ProcessResources
from claudius.runtime.receipts import told
from claudius.runtime.roles import Leasing, Role, Roles, ended_badly
from claudius.runtime.scheduler import keep_time
from claudius.tool import ToolServers

log = logging.getLogger(__name__)

DRAIN_S, AFTER_DRAIN_S, CLOSE_S = 8.0, 2.0, 0.5
"""For running turns; for everything after them; and, of the latter, for the networks and for the provider."""
LOOK_S = 2.0
"""How often the disk and the clock are looked at."""
ARCHIVE_AFTER_S = 2.0
"""The archive starts after the start-up: it is off every reply's path."""


class Server:
    """One home's soul, awake."""

    def __init__(  # noqa: PLR0913 - the parts of the process, each by its name
        self,
        home: Home,
        lock: HomeLock,
        mind: Mind,
        adapters: Mapping[str, Adapter],
        handlers: Mapping[str, Handler],
        *,
        chance: Callable[[], float],
        resources: ProcessResources,
        archive: Archive | None = None,
        second: SecondMind | None = None,
        services: BackgroundServices | None = None,
        alerts: bool = False,
        roles: Sequence[str] = ("all",),
        semantic: Semantic | None = None,
        tools: ToolServers | None = None,
    ) -> None:
        """Wake `home`, whose `lock` is held, with `mind`; listen on `adapters`; `handlers` serve the control socket.

        `second`, the cortex beside `mind`, and `services`, the background services, run from the start to the stop.
        With `alerts`, as in the daemon, the owners are told when something is wrong. `semantic` gives moments vectors.
        Where several processes share the store, this one may have these `roles` (`worker.roles`). `tools` are its
        servers of tools.
        """
        self._home, self._mind, self._lock, self._resources = home, mind, lock, resources
        self.boot = secrets.token_hex(8)
        self._archive, self._planned = archive, asyncio.Event()
        self._second, self._services, self._semantic = second, services, semantic
        self._lanes = Lanes(
            mind,
            {**adapters, PEER: services.peers} if services else adapters,
            chance=chance,
            failed=self._failed,
            resources=resources,
            archive=archive,
            planned=self._planned,
            carry_out=self._carry_out,
            forgotten=Erasures(home.state).forgotten,
            services=services,
        )
        self.wake = self._lanes.wake
        """Has a conversation check for what waits, because someone listens again."""
        self._taking_back = Retraction(mind, adapters)
        self._forgetting = Forgetting(
            home,
            mind.store,
            archive,
            forget_members=self._lanes.members.forget,
            end_session=self._end_session,
            leave_out=resources.log_leave_out,
            voided=self._void,
            take_down=self._take_down,
            wake=self._lanes.wake,
            second_line=self._second_line,
            next_quiet=self._next_quiet,
            is_daemon=services is not None and services.is_daemon,
        )
        self._modes = ChannelModes(mind.store, mind.config, mind.clock)
        owners = OwnerCommands(mind, home, self._told, self._lanes.look_again)
        self._commands = Commands(mind, adapters, self._modes, self._forgetting, self._lanes, owners)
        self._owner: Callable[[], str] = services.owner if services else str
        self._pairing = Pairing(mind.store, mind.clock, self._commands.tell, self._owner)
        self._intake = Intake(
            mind,
            resources,
            self._lanes,
            pairing=self._pairing,
            modes=self._modes,
            forgetting=self._forgetting,
            taken_down=self._taking_back.begin,
            held=self._commands.show_held,
            failed=self._failed,
        )
        own = {"status": self._status, "forget": self._forget, "tool": self._decide, "bridge": self._lanes.bridge.serve}
        every = {**handlers, **own, **self._pairing.handlers}
        self._control = ControlSocket(home.socket, every, services.serve if services else None)
        self._share, self._allowed = mind.store.leases, roles
        self._roles = Roles(self._share, roles, self._failed)
        self._leasing = Leasing(
            self._share,
            self._lanes,
            self._failed,
            self._takes,
            is_paused=lambda: mind.config().runtime.paused,
            local={PEER, *(name for name, one in adapters.items() if one.is_local)},
            let_go=self._forgetting.let_go,
        )
        self._networks = Networks(
            adapters,
            mind,
            self._lanes,
            self._intake,
            self._failed,
            chance=chance,
            roles=self._roles,
            hold_back=self._leasing.hold_back if self._share.is_shared else None,
        )
        self._share.share(resources.rests)
        self.health = Health(
            mind,
            home,
            resources.disk,
            networks=lambda: self._networks.hearing(resources.clock.steady()),
            turns=self._lanes.turn_log,
            records=mind.store.records,
            archive=lambda: archive.remote_problem if archive else None,
            tools=tools.problems if tools else dict,
            observers=services.observers if services else dict,
        )
        self._tools = tools
        self._alerts = Alerts(mind, self.health, adapters, home) if alerts else None
        self._beside: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> Unfinished:
        """Recover what an earlier process left, open the listeners, and resume what waits."""
        asyncio.get_running_loop().set_exception_handler(lost)
        now = self._mind.clock()
        self._lock.sign(self.boot, now, self._resources.fingerprints, self._resources.of_environment)
        waiting = await self._mind.store.start(self.boot, now)
        self._resources.clock.follow(self._share.wall)
        self._resources.disk.probe_store = self._share.probe
        self._started_at = self._resources.clock.steady()
        self._lanes.bridge.resume(self._home.lent)
        await self._forgetting.look()
        if not waiting.was_clean:
            log.warning("the last process did not stop in good order", extra={"waiting": len(waiting.conversations)})
            self._resources.recovery.begin(waiting.conversations)
        self._networks.open()
        self._run_beside(self._watch(), "watch")
        self._run_beside(self._check_pages(), "pages")
        if self._archive:
            self._roles.add(Role("archive", partial(self._archive_from_now_on, self._archive)))
        if self._second:
            self._roles.add(Role("cortex", partial(self._second.live, self._lanes.wake)))
        if self._services:
            await self._services.start(self._lanes.wake, self.health, self._metrics, self._forgetting.overwrite)
        await asyncio.sleep(0)
        await self._control.open()
        for conversation in waiting.conversations:
            network = Place.of(conversation).network
            if self._share.has_taken(conversation) or network == PEER or self._networks.is_local(network):
                self._lanes.wake(conversation)
        self._keep_house()
        if self._share.is_shared:
            await self._roles.look()
            self._run_beside(self._leasing.run(), "leases", is_vital=True)
            self._run_beside(self._leasing.listen(), "notices")
            self._run_beside(self._roles.run(), "roles", is_vital=True)
        what = "awake" if listens(self._allowed) else "awake for lanes"
        log.info(what, extra={"boot": self.boot, "waiting": len(waiting.conversations)})
        return waiting

    def _keep_house(self) -> None:
        """Finish erasures, keep the clock, the vectors, the audit log and the alerts, beside the turns."""
        self._run_beside(self._forget_what_was_begun(), "erasures")  # this home's own, whatever roles it may have
        self._roles.add(Role("clock/erasures", self._forgetting.finish))
        self._roles.add(Role("clock/unsaid", self._forgetting.unsay))
        self._roles.add(Role("clock", partial(keep_time, self._mind, self._lanes.wake, self._planned, self._look)))
        if self._semantic:
            self._roles.add(Role("clock/vectors", self._semantic.run))
        auditing = partial(watch, self._mind, self._home.soul, self._resources.fingerprints)
        self._roles.add(Role("clock/audit", auditing))
        if self._alerts and listens(self._allowed):
            self._run_beside(self._alerts.run(), "alerts")

    def _takes(self) -> Sequence[str]:
        """Return the networks whose lanes this process takes: none once it ends; the clock's jobs with that role."""
        inner = (SELF,) if self._roles.has("clock") else ()
        return (*self._networks.spoken, *inner) if may("lanes", self._allowed) and not self._is_stopping else ()

    async def ready(self) -> None:
        """Return once every network is connected, or is known to be retried later.

        Raises: AdapterRefused if every network refused us, StoreError.
        """
        trying = asyncio.create_task(self._networks.tried(), name="ready")
        await asyncio.wait((trying, self._ended), return_when=asyncio.FIRST_COMPLETED)
        trying.cancel()
        if self._ended.done():
            self._ended.result()

    def tick(self) -> None:
        """Check the clock now, because it was set or something was planned."""
        self._planned.set()

    @property
    def busy(self) -> int:
        """How many conversations have something to do, and one more while edits are followed."""
        return self._lanes.busy + self._commands.busy + self._forgetting.is_unsaying

    async def wait(self) -> None:
        """Wait until something ends the process from inside. Raises: StoreError if the store is unusable."""
        await self._ended

    async def stop(self, *, grace_s: float = DRAIN_S) -> None:
        """Stop hearing, let running turns end, close the store cleanly, and release the home: within 10 s in all.

        A damaged store is copied aside as it is: no more turns are completed, and the stop is not marked as clean.
        """
        is_damaged = self._ended.done() and isinstance(self._ended.exception(), StoreCorrupt)
        stop_at_s, self._is_stopping = time.monotonic() + grace_s + AFTER_DRAIN_S, True
        self._intake.shut()
        others = ("listen",) if self._share.is_shared else ()  # another process hears from now on
        await self._roles.close("clock", "cortex", *others)
        if self._second:
            await self._second.close()
        if self._services:
            await self._services.stop()
        await self._lanes.drain(0.0 if is_damaged else grace_s)  # its lanes begin calls to the end
        await self._lanes.hands.close(0.0 if is_damaged else stop_at_s - AFTER_DRAIN_S - time.monotonic())
        await self._taking_back.close()
        await self._commands.close(0.0 if is_damaged else max(CLOSE_S, stop_at_s - AFTER_DRAIN_S - time.monotonic()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._networks.close()
        await self._control.close()
        self._lanes.turn_log.close()
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        if self._roles.has("archive") and not is_damaged:
            await self._archive_what_is_left(stop_at_s - time.monotonic() - CLOSE_S)
        await self._roles.close()
        if self._archive:
            await self._archive.close()
        self.health.close()
        if is_damaged:
            await self._resources.set_aside(self._mind.clock())
        await self._end_children()
        try:
            await self._mind.store.close(clean=not is_damaged)
        except StoreError as error:  # the next start finds no mark of a clean stop, and checks everything
            log.error("the store could not be closed well", extra={"error": error.message})  # noqa: TRY400 - no trace
        self._lock.release()
        log.info("asleep", extra={"boot": self.boot})

    async def _end_children(self) -> None:
        """Close the models, which may be processes, and end the servers of tools."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                voices = (self._mind.provider, *(one.provider for one in self._mind.voices.values()))
                for voice in {id(one): one for one in voices}.values():
                    await voice.aclose()
        if self._tools:
            await self._tools.close()

    def _run_beside(self, work: Coroutine[Any, Any, None], name: str, *, is_vital: bool = False) -> None:
        """Run work until the stop. If it ends with an error, the log says so; what `is_vital` ends the process then."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended_vitally if is_vital else ended_badly)
        self._beside.append(task)

    async def _watch(self) -> None:
        """Watch the disk and the clock; a home that stays read-only ends the process."""
        try:
            while True:
                await asyncio.to_thread(self._resources.disk.look)
                if self._resources.clock.look():
                    self._lanes.look_again()
                    self.tick()
                await asyncio.sleep(LOOK_S)
        except StoreError as error:
            self._end(error)

    async def _check_pages(self) -> None:
        """Check every page once; damage beyond repair ends the process."""
        await asyncio.sleep(ARCHIVE_AFTER_S)
        try:
            await self._mind.store.check()
        except (StoreCorrupt, StoreTooNew) as error:
            self._end(error)
        except StoreError as error:  # a check that could not run says nothing about the data
            log.warning("the pages could not be checked", extra={"error": error.message})

    async def _carry_out(self, command: Pending, lane: Lane) -> None:
        await self._commands.carry_out(command, lane)  # bound late: a command wakes lanes, too

    async def _look(self, now: datetime) -> datetime | None:
        self._commands.consents.settle()  # questions that lapsed, or whose cause was taken back
        return await self._services.look(now) if self._services else None

    async def _decide(self, connection: ControlConnection, asked: Mapping[str, Any]) -> None:
        await self._commands.consents.by_owner(self._owner(), connection, asked)

    def _void(self, turns: Sequence[tuple[str, str]]) -> None:
        """Cancel these turns, each with its conversation, and all idle work: what they came from is gone."""
        for conversation, turn in turns:
            self._lanes.break_off(conversation, turn)
        self._lanes.look_again()

    async def _end_session(self, conversation: str) -> None:
        for voice in (self._lanes.bridge, self._mind.provider, *(one.provider for one in self._mind.voices.values())):
            if forget := getattr(voice, "forget", None):
                await forget(conversation)

    async def _take_down(self, posts: Sequence[Posted]) -> Sequence[Posted]:
        if posts and self._mind.config().runtime.delete_replies:
            await self._networks.tried()  # an erasure that is resumed at the start may be ready before they are
        return await self._taking_back.take_down(posts)

    async def _forget_what_was_begun(self) -> None:
        try:
            untold = await self._forgetting.resume(self._mind.clock(), self._owner())
        except (ClaudiusError, GitFailed, OSError) as error:
            log.error("an erasure could not be completed", extra={"error": unquoted(error)})  # noqa: TRY400 - no trace
            return
        if untold:
            await self._networks.tried()
        for asked, receipt in untold:
            self._commands.tell(asked, told(receipt), partial(self._forgetting.was_told, asked.person))

    def _second_line(self, begun: Begun, text: str) -> None:
        if begun.asked:
            self._commands.tell(begun.asked, text, partial(self._forgetting.was_told, begun.asked.person))
        else:
            log.info(text)

    def _next_quiet(self, now: datetime) -> datetime:
        clock = self._mind.config().clock
        return next_quiet(now, known_zone(clock.timezone), read_hours(clock.quiet))

    async def _forget(self, connection: ControlConnection, asked: Mapping[str, Any]) -> None:
        try:
            receipt = await self._forgetting.forget(
                str(asked.get("person")), self._mind.clock(), self._owner(), at_once=bool(asked.get("now"))
            )
        except (ClaudiusError, GitFailed, OSError) as error:
            await connection.send({"event": "error", "message": plain_message(error)})
            return
        await connection.send({"event": "forgotten", "receipt": receipt})

    async def _archive_from_now_on(self, archive: Archive) -> None:
        await asyncio.sleep(ARCHIVE_AFTER_S)
        await archive.run()

    async def _archive_what_is_left(self, within_s: float) -> None:
        if self._archive is None:
            return
        try:
            async with asyncio.timeout(max(0.0, within_s)):
                if within_s > 0 and self._mind.store.documents.unarchived(1):
                    await self._archive.round()
        except (GitFailed, OSError, StoreError, TimeoutError) as error:
            log.warning("not archived yet", extra={"error": unquoted(error)})

    def _failed(self, error: ClaudiusError) -> None:
        """Handle an error: stop intake if the disk is full, let a busy store be retried, otherwise end the process."""
        if isinstance(error, StoreError) and not isinstance(error, (StoreCorrupt, StoreTooNew, StoreMoved)):
            self._resources.disk.strike(error)
        else:
            self._end(error)

    def _ended_vitally(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            ended_badly(task)
            self._end(ClaudiusError(f"a part of the process ended ({type(error).__name__}); its log says where"))

    def _end(self, error: ClaudiusError) -> None:
        if not self._ended.done():
            log.critical("cannot go on", extra={"error": error.message})
            self._ended.set_exception(error)
            self._ended.exception()  # marks it as retrieved: a caller that only stops need not ask

    async def _metrics(self) -> str:
        from claudius.runtime.metrics import render  # noqa: PLC0415 - its library is loaded when somebody asks

        report = await self.health.look(fresh_s=0.0)
        cortex = self._second.cortex.tally if self._second else None
        beliefs = report.facts.kept.beliefs
        parts = self._lanes, self._resources, self._mind.provider, self._uptime_s(), self._share
        return render(report, *parts, cortex, beliefs)

    def _uptime_s(self) -> float:
        return (self._resources.clock.steady() - self._started_at).total_seconds()

    def _voice(self, now: datetime) -> dict[str, Any]:
        """Return who speaks, until when it is paused, and why its last call failed."""
        voice = self._mind.provider
        error = getattr(voice, "last_error", None)
        resting = [one.left_s for one in getattr(voice, "resting", tuple[Resting, ...])() if one.name == voice.name]
        until = now + timedelta(seconds=resting[0]) if resting else None
        failure = failure_of(error).without(lambda text: blot(text, self._mind.secrets)) if error else None
        return {
            "name": voice.name,
            "model": voice.model,
            "resting_until": until.isoformat().replace("+00:00", "Z") if until else None,
            "last_error": failure.told if failure else None,
        }

    def _told(self) -> Iterator[str]:
        """Describe the process to an owner in chat, one line for each fact."""
        now = self._resources.clock.steady()
        yield f"I am awake for {(now - self._started_at).total_seconds() / 3600:.1f} hours; {self.busy} at work."
        for one in self._networks.status(now):
            heard = one["last_inbound_s"]
            last = "never heard" if heard is None else f"last heard {heard:.0f} s ago"
            yield f"{one['name']}: {'connected' if one['hears'] else 'not heard'}, {last}"
        if problem := self._resources.told()["disk"]["problem"]:
            yield f"Nothing new is accepted: {problem}"
        if self._mind.is_paused():
            yield "I am paused."

    async def _status(self, connection: ControlConnection, _: Mapping[str, Any]) -> None:
        report, now = await self.health.look(), self._resources.clock.steady()
        kept = report.facts.kept
        size = {"bytes_per_turn": kept.bytes_per_turn, "disk_days_left": kept.disk_days_left}
        looks = {  # the components with a timer of their own, which are no scheduled jobs and have no row
            "catch_up": self._networks.next_sweep(),
            "archive": self._archive.next_look if self._archive else None,
            "reflection": self._second.cortex.next_look if self._second else None,
        }
        await connection.send(
            {
                **self._resources.told(),
                "version": claudius.__version__,
                "uptime_s": round(self._uptime_s(), 1),
                "provider": self._voice(now) | size,
                **size,
                "adapters": self._networks.status(now),
                "health": report.document() | {"problems": msgspec.to_builtins(report.problems)},
                "busy": self.busy,
                "bridge": self._lanes.bridge.status(),
                "tools": {"waiting": self._lanes.hands.waiting, "unknown": self._lanes.hands.unknown},
                "recall": self._semantic.progress() if self._semantic else None,
                "timers": {name: at.isoformat().replace("+00:00", "Z") for name, at in looks.items() if at},
            }
        )
