"""One ordered lane per conversation: delivers what waits, then runs turns on what was heard, oldest first.

Lanes run side by side; an idle one ends. A turn that fails is tried again or apologised for (`failures.decide`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.hooks import show_failure
from claudius.cognition.mind import Mind
from claudius.cognition.turn import Turned, apologise, take_turn
from claudius.cognition.turn_state import Arrivals, Superseded, Surface, arrivals
from claudius.config.load import blot
from claudius.errors import ClaudiusError, RowInvalid, StaleTurn, StoreCorrupt, StoreError
from claudius.failure import Failure, failure_of
from claudius.foreign import plain_message, unquoted
from claudius.intent import ApologyKind
from claudius.memory.archive import Archive
from claudius.memory.inbox import Pending
from claudius.perception import Kind, MessageExtra, Origin, Perception, Place, ToolExtra, is_terminal
from claudius.runtime.access import Membership
from claudius.runtime.adapter import Adapter
from claudius.runtime.attachments import Attachments
from claudius.runtime.background_services import BackgroundServices
from claudius.runtime.bridge import Bridge
from claudius.runtime.delivery import Post, Stream, deliver, is_still_chosen, show_thought, thought_to_show
from claudius.runtime.failures import AGAIN, Apologise, Retry, decide, patience_s, patient
from claudius.runtime.hands import ToolRunner
from claudius.runtime.lane import BrokenOff, Lane, goes_on, next_turn
from claudius.runtime.process_resources import ProcessResources
from claudius.runtime.thread_backfill import Forgotten, ThreadBackfill
from claudius.runtime.turn_log import TurnLog
from claudius.tool import CallState

log = logging.getLogger(__name__)

ATTEMPTS = 3
"""How often a turn that fails is tried before the apology."""
RECONCILE_HOURS = 24
"""After how long an unconfirmed or refused post is given up."""
UNTIL_WOKEN = Retry(3600.0)
"""A lane is kept while a call of a tool is under way in it, which wakes it."""
STUMBLE = Retry(5.0)
"""How long a lane rests after an error that no turn explains."""
ALONE_AFTER, ENDED_PROCESSES = 2, 3
"""A perception whose turns ended two processes runs alone the next time; after three, it is given up."""


class Unread(Struct):
    """A network whose lanes wait until its history is read."""

    waiting: set[str] = field(default_factory=set)
    complete: set[str] = field(default_factory=set)
    """Conversations whose history is read."""


class Lanes:
    """All lanes of the process that takes turns."""

    def __init__(  # noqa: PLR0913 - the parts that it joins
        self,
        mind: Mind,
        adapters: Mapping[str, Adapter],
        *,
        chance: Callable[[], float],
        failed: Callable[[StoreError], None],
        resources: ProcessResources,
        archive: Archive | None,
        planned: asyncio.Event,
        carry_out: Callable[[Pending, Lane], Awaitable[None]],
        forgotten: Forgotten,
        services: BackgroundServices | None,
    ) -> None:
        """Think with `mind`, speak through `adapters` (by network), within the limits of `resources`.

        `failed` is called when the store fails; `archive` is woken, and `planned` set, after a turn with something for
        them; `carry_out` does what a command asks, in place of a turn. `forgotten` tells who was forgotten, and when.
        `services` does the scheduled jobs' work, and lets others speak after a turn.
        """
        self._mind, self._adapters, self._chance = mind, adapters, chance
        self._failed, self._resources, self._archive, self._planned = failed, resources, archive, planned
        self._began, self.turn_log = resources.clock.steady(), TurnLog(mind.hooks, resources.clock.steady)
        self._carry_out, self._services = carry_out, services
        self._lanes: dict[str, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: dict[str, Unread] = {}
        self.members = Membership(mind.store, adapters, mind.clock)
        self.hands = ToolRunner(mind, self.wake, self.members)
        self.bridge = Bridge(mind, self.members, self.break_off, services.owner if services else str)
        self._hydration = ThreadBackfill(mind, forgotten)
        self._closing, self._share = False, mind.store.leases
        self._wanted, self._looked_for = dict[str, str](), dict[str, str]()
        self.looking = asyncio.Event()
        """Set if a lane is wanted that this process does not hold, or another process says that there is something."""

    def turned_away(self, perception: Perception) -> None:
        """Note that a message was not heard: the thread's next turn reads it there."""
        if Place.of(perception.conversation).thread:
            self._hydration.turned_away(perception.conversation)

    def wake(self, conversation: str) -> None:
        """Have a conversation's lane check again for what waits."""
        place = Place.of(conversation)
        lane, held = self._lanes.get(conversation), self._held.get("" if place.is_for_commands else place.network)
        if lane:
            lane.bell.set()
            if lane.hearing:
                lane.hearing.ring()
            if not self._share.is_of(lane.mind.store, conversation):
                self.lose(conversation)  # and taken again
        elif held and conversation not in held.complete:
            held.waiting.add(conversation)
        elif not self._share.has_taken(conversation):
            self._wanted.setdefault(conversation, "")
            self.looking.set()
        elif not self._closing:
            store = self._share.store_of(conversation)
            hands = self.hands.of(store, conversation)
            mind = replace(self._mind, store=store, hands=hands if self._mind.hands else None)
            self._lanes[conversation] = lane = Lane(
                conversation, self._adapters.get(place.network), mind, hands, is_for_commands=place.is_for_commands
            )
            task = asyncio.create_task(self._run(lane), name=f"lane {conversation}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def wanted(self) -> dict[str, str]:
        """Return the lanes that are wanted and not held, each with a turn that is void; to be cleared afterwards."""
        self._looked_for, self._wanted = self._wanted, {}
        self.looking.clear()
        return self._looked_for

    @property
    def unread(self) -> Sequence[str]:
        """The networks whose lanes wait until their history is read."""
        return sorted(self._held)

    def stuck(self, after_s: float) -> Sequence[str]:
        """Return the conversations in which parts are being sent for longer than `after_s` seconds."""
        since_s = asyncio.get_running_loop().time() - after_s
        return [one.conversation for one in self._lanes.values() if one.speaking_s and one.speaking_s < since_s]

    def lose(self, conversation: str) -> None:
        """End a lane that is lost: what runs in it is cancelled, unless a part is being sent, or a command is bound."""
        lane = self._lanes.get(conversation)
        for task in self._tasks:
            if task.get_name() == f"lane {conversation}" and not (lane and (lane.speaking_s or lane.is_bound)):
                task.cancel()

    def break_off(self, conversation: str, turn: str) -> None:
        """Cancel the turn if it is running, here or elsewhere: what it was to answer has changed or is gone."""
        self._planned.set()  # its question's post says so
        lane = self._lanes.get(conversation)
        if lane and turn and lane.thinking == turn:
            lane.broken.set()
        elif turn and not self._share.is_held(conversation):
            self._wanted[conversation] = turn

    def hold(self, network: str) -> None:
        """Start no further lane of a network until its history is read."""
        self._held.setdefault(network, Unread())
        self.looking.set()

    def release(self, network: str, conversation: str | None = None) -> None:
        """Let one conversation, or the whole network, answer again."""
        held = self._held.get(network)
        if held is None:
            return
        if conversation is not None:
            held.complete.add(conversation)
            if conversation in held.waiting:
                held.waiting.remove(conversation)
                self.wake(conversation)
            return
        del self._held[network]
        self.looking.set()
        for one in held.waiting:
            self.wake(one)

    def look_again(self) -> None:
        """Have every lane that waits for an instant check the clock again."""
        self.looking.set()
        for lane in self._lanes.values():
            lane.bell.set()

    @property
    def busy(self) -> int:
        """How many lanes have something to do."""
        waiting = sum(len(held.waiting) for held in self._held.values())
        return len(self._lanes) + waiting + len(self._wanted) + len(self._looked_for)

    async def drain(self, grace_s: float) -> None:
        """Let running turns end for `grace_s` seconds, then cancel them; the next start repeats uncommitted turns."""
        self._closing = True
        self.bridge.close()
        self.look_again()
        late = (await asyncio.wait(self._tasks, timeout=grace_s))[1] if self._tasks else ()
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, lane: Lane) -> None:
        try:
            if not lane.is_for_commands:
                lane.passage = await self._resources.admission.through()
            while True:
                lane.bell.clear()
                following = await self._try(lane)
                if (self._closing and following != AGAIN) or not self._share.is_of(lane.mind.store, lane.conversation):
                    break
                if following is None:
                    if not lane.bell.is_set() and await self._let_go(lane):
                        break
                elif following.after_s > 0:
                    await lane.wait(following.after_s)
        except StoreError as error:
            self._failed(error)
        finally:
            if lane.signed:
                await lane.sign(None)
            del self._lanes[lane.conversation]
            if not self._share.is_of(lane.mind.store, lane.conversation) and self._share.has_taken(lane.conversation):
                self.wake(lane.conversation)  # it was taken again since
            await self._resources.recovery.done(lane.conversation)

    async def _let_go(self, lane: Lane) -> bool:
        """Give the lane up. Returns False if something became ready in it since the last look."""
        try:
            return await self._share.release(lane.conversation, lane.heard)
        except StoreError:
            await self._share.release(lane.conversation, -1)  # whoever looks when its lease is past has it
            raise

    async def _try(self, lane: Lane) -> Retry | None:
        try:
            lane.heard = await self._share.heard(lane.conversation)
            return await self._step(lane)
        except StoreCorrupt:
            raise
        except StaleTurn:
            log.info("a lane was lost in the middle of its work", extra={"conversation": lane.conversation})
        except StoreError as error:
            self._failed(error)
            log.error("the store failed", extra={"conversation": lane.conversation, "error": error.message})  # noqa: TRY400 - no trace
        except RowInvalid as error:
            log.error(  # noqa: TRY400 - no trace
                "given up: its row is damaged", extra={"conversation": lane.conversation, "error": error.message}
            )
            if error.table == "inbox":
                await lane.mind.store.inbox.give_up(int(error.row), error.message)
                return AGAIN
            if error.table == "outbox":
                await lane.mind.store.outbox.undeliverable(error.row, error.message)
                return AGAIN
        except Exception:  # a bug in one turn is not the end of its conversation
            log.exception("a lane stumbled", extra={"conversation": lane.conversation})
            await lane.mind.store.outbox.doubt(lane.conversation)
        finally:
            lane.end_passage()
        return STUMBLE

    async def _step(self, lane: Lane) -> Retry | None:
        """Do the next piece of work. Returns when the next one is due; None if nothing is left."""
        mind, now = lane.mind, self._resources.clock.steady()
        if not (lane.is_recovered or lane.is_for_commands):
            await lane.hands.recover()
            lane.is_recovered = True
        unsent = await self._deliver(lane)
        if lane.signed:
            await lane.sign(None)
        if unsent or self._closing:
            return unsent
        pending = await mind.store.inbox.oldest(lane.conversation)
        if pending is None:
            following = await lane.be_idle(mind, self._services)
            return following or (UNTIL_WOKEN if self.hands.is_busy(lane.conversation) else None)
        if lane.is_for_commands:
            await self._carry_out(pending, lane)
            return AGAIN
        if self._resources.disk.shut or (not pending.perception.is_owner and await mind.is_silent(lane.conversation)):
            return STUMBLE
        turn = await next_turn(pending, mind, now)
        if isinstance(turn, Retry):
            return turn
        async with self._resources.recovery.turn(alone=turn.ended == ALONE_AFTER) as is_counted:
            if not self._closing:
                if is_counted:
                    await mind.store.inbox.meet(turn)
                lane.passage = lane.passage or await self._resources.admission.through()
                await self._think(lane, turn, now)
        return AGAIN

    async def _deliver(self, lane: Lane) -> Retry | None:
        """Send what waits to be sent. Returns when to try again; None if nothing is left."""
        mind = lane.mind
        if not self._share.is_held(lane.conversation):
            return STUMBLE  # the lease is nearly past: nothing is sent any more unless it is renewed
        if lane.adapter is None or not (parts := mind.store.outbox.deliveries(lane.conversation)):
            return None
        steady = self._resources.clock.steady
        post = Post(mind.store, lane.adapter, steady, RECONCILE_HOURS, mind.hooks, mind.acknowledgement)
        lane.speaking_s = asyncio.get_running_loop().time()
        lane.end_passage()  # from here on it waits for a network
        try:
            unsent = await deliver(parts, post)
            if lane.thought and not unsent:
                thought, lane.thought = lane.thought, None
                if mind.store.outbox.was_said(thought.turn) and is_still_chosen(thought, mind.config()):
                    await show_thought(thought, lane.adapter)
            return unsent
        finally:
            lane.speaking_s = None

    async def _think(self, lane: Lane, pending: Pending, now: datetime) -> None:
        mind, attempts = lane.mind, pending.attempts + 1
        # an instant in the future was read off a clock that has been set since: it has waited since the start then
        heard_at = pending.heard_at if pending.heard_at <= now else self._began
        heard_s = asyncio.get_running_loop().time() - (now - heard_at).total_seconds()
        turned: Turned | None = None
        try:
            if await self._is_settled_before(lane, pending, now):
                return
            lane.hearing = arrivals(pending, mind)
            surface = self._surface(lane, pending, lane.hearing)
            thinking = patient(mind, pending.perception, heard_s)
            if self.bridge.loan:
                thinking = await self.bridge.lent(pending, thinking, lane.adapter)
            turned = await lane.think(pending.turn, take_turn(pending, thinking, surface))
            if turned:  # idle subprocesses have something to do only if somebody was answered or a model was asked
                lane.last = turned if turned.intent.calls or turned.recollection.owes else lane.last
                self._committed(turned, pending)
                lane.thought = thought_to_show(turned, mind.config(), tuple(mind.secrets))
        except Superseded:
            log.info("turn gave way to a new perception", extra={"turn": pending.turn})
            await mind.store.inbox.hold(pending)
        except (StaleTurn, BrokenOff):
            log.info("turn runs again", extra={"turn": pending.turn})
        except StoreError:
            raise
        except Exception as error:  # whatever it was, `decide` says whether the turn is tried again or apologised for
            fate = decide(
                error,
                attempts=attempts,
                waited_s=asyncio.get_running_loop().time() - heard_s,
                patience_s=patience_s(mind, pending.perception),
                tries=ATTEMPTS,
                chance=self._chance(),
            )
            failure = replace(failure_of(error), is_retried=isinstance(fate, Retry))
            failure = await self._tell(lane, pending, failure, error)
            facts = {"turn": pending.turn, "attempts": attempts, "fate": type(fate).__name__, "said": failure.said}
            trace = None if isinstance(error, ClaudiusError) else error
            log.warning("turn failed", extra=facts | {"error": unquoted(error)}, exc_info=trace)
            if isinstance(fate, Apologise):
                await self._apologise(lane, pending, fate.kind, failure)
            else:
                again_at = self._resources.clock.steady() + timedelta(seconds=fate.after_s)
                await mind.store.inbox.postpone(pending.seq, again_at, failure.kept, attempts)
        finally:
            lane.hearing = None
            if pending.turn in self.bridge.ends:
                self.bridge.over(pending.turn, turned)
            mind.store.turns.release(pending.turn)

    def _committed(self, turned: Turned, pending: Pending) -> None:
        """Let everybody go on who has something to do after a turn."""
        self.turn_log.committed(turned.intent, pending)
        if self._services:
            self._services.stream.committed(turned)
        if self._archive and (turned.intent.model or turned.intent.state):
            self._archive.wake()
        if turned.intent.planned:
            self._planned.set()

    async def _tell(
        self, lane: Lane, pending: Pending, failure: Failure, error: BaseException | None = None
    ) -> Failure:
        """Tell the owner what went wrong, once for each cause, and keep it for `status` and `why`. Returns it."""
        mind = lane.mind
        failure = failure.without(lambda text: blot(text, mind.secrets))
        if error or lane.told != (pending.turn, failure):
            show_failure(mind.hooks, pending, failure, mind.clock(), error)
        if lane.told != (pending.turn, failure):
            lane.told = pending.turn, failure
            mind.store.inbox.failing(pending.turn, failure.kept)
            if lane.adapter:
                await lane.adapter.failed(pending.perception, pending.turn, failure)
        return failure

    def _surface(self, lane: Lane, pending: Pending, hearing: Arrivals) -> Surface:
        """Return what the conversation's network offers the turn: streaming, files, a typing indicator."""
        mind, adapter, perception = lane.mind, lane.adapter, pending.perception
        waiting = lane.passage.waiting if lane.passage else nullcontext
        if adapter is None:
            return Surface(hearing=hearing, tell=partial(self._tell, lane, pending), waiting=waiting)
        is_streamed = adapter.name in mind.config().pipeline.stream and perception.owes and adapter.streams(perception)
        around, lane.around = lane.around, ()
        config = mind.config()
        transcribe = mind.transcribe if config.transcription.base_url else None
        files = [one.extra.files for one in pending.perceptions if isinstance(one.extra, MessageExtra)]
        return Surface(
            show=Stream(pending, adapter, mind) if is_streamed and not self._share.is_doubtful else None,
            post_chars=adapter.post_chars,
            is_plain=adapter.is_plain,
            introduces=adapter.introduces,
            hold=partial(adapter.hold, perception),
            files=Attachments(adapter, transcribe, sees=bool(getattr(mind.provider, "sees", False)))
            if any(files)
            else None,
            around=around,
            begin_thinking=partial(lane.sign, perception),
            tell=partial(self._tell, lane, pending),
            read=partial(adapter.hold, perception) if is_terminal(perception.conversation) else None,
            hearing=hearing,
            is_open=goes_on(pending.perceptions, mind),
            waiting=waiting,
        )

    async def _is_settled_before(self, lane: Lane, pending: Pending, now: datetime) -> bool:
        """Run the checks that precede a turn. Returns True if there is no turn to run now."""
        perception = pending.perception
        if perception.origin is Origin.INTERNAL and await self._is_work(lane, pending):
            return True
        if perception.kind in (Kind.EDIT, Kind.DELETE):  # it waited for a turn to end
            await lane.mind.store.inbox.amend(perception, now)
            return True
        if pending.ended >= ENDED_PROCESSES:
            log.error("turn given up", extra={"turn": pending.turn, "attempts": pending.attempts})
            await self._apologise(lane, pending, "interrupted")
            return True
        if pending.is_stopped:
            await self._apologise(lane, pending, "stopped")
            return True
        if lane.adapter is None:
            return False
        await self.members.look(perception)
        is_above = not is_terminal(perception.conversation)
        around = await self._hydration.read(perception, lane.adapter) if is_above else ()
        lane.around = around or ()
        return around is None

    async def _is_work(self, lane: Lane, pending: Pending) -> bool:
        """Do the work that a perception of the soul's own stands for: a job, or a call that somebody allowed."""
        store, extra = lane.mind.store, pending.perception.extra
        if isinstance(extra, ToolExtra) and extra.state == CallState.APPROVED:
            call = store.calls.find(extra.call)
            if call and call.state is CallState.APPROVED:
                await lane.hands.begin(call)
            await store.inbox.withdraw(pending.seq, "begun")
            return True
        return self._services is not None and await self._services.clockwork.work(pending, store)

    async def _apologise(self, lane: Lane, pending: Pending, kind: ApologyKind, failure: Failure | None = None) -> None:
        """Apologise. If even that fails, the perception is marked dead, `status` counts it, and the lane goes on."""
        try:
            self.turn_log.committed(await apologise(pending, lane.mind, kind, failure), pending)
        except StaleTurn:
            log.info("apology runs again", extra={"turn": pending.turn})
        except StoreError:
            raise
        except Exception as error:  # one perception is given up, and the next is still answered
            log.exception("given up: no apology could be made", extra={"turn": pending.turn})
            for one in (pending, *pending.further):
                await lane.mind.store.inbox.give_up(
                    one.seq, f"no apology ({kind}) could be made: {plain_message(error)}"
                )
