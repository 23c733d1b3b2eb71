"""Run the cortex: collect events, decide when to reflect, run cycles and recover from failed ones.

It runs in its own task; a crash in that task does not affect the soul's turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta

from msgspec.structs import replace

from claudius.cortex.models import CycleTally, Ended, Part, State, Thresholds, Ties
from claudius.cortex.observe import Buffer, Seen, Watch, messages
from claudius.cortex.reflect import reflect
from claudius.cortex.triggers import backoff, evaluate, next_look, parts, thresholds_in_force
from claudius.errors import ClaudiusError, StoreError
from claudius.ledger_types import Recorded, Reflected, Reflection
from claudius.observed import BeliefAdded, BeliefExpired, CycleAssessed, CycleBegins, CycleDirected, CycleEnded
from claudius.perception import SELF

log = logging.getLogger(__name__)

RESTORED = 200
"""How many events are rebuilt from the ledger after a restart."""
UNDER_WAY = timedelta(minutes=2)
"""How long to wait for a message's own turn to be committed."""
LOOK_S = 30.0
"""The longest time between two looks; a changed setting is noticed within this time."""
GATHER_S = 1.0
"""How long events are collected before one look evaluates them."""
RESTART_S = 60.0
STOP_S = 2.0
"""How long `stop` waits for the task, which it has cancelled."""
DEATHS = 5
"""After this many consecutive crashes the cortex stays down until the process restarts."""
UNREAL = ("rehearsal", "scripted", "none")
"""Providers that are not real models; with them `auto` means off."""


class Cortex:
    """The cortex as a running task. `run` is its loop; `look` is one iteration."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        self._bell = asyncio.Event()
        self._buffer = Buffer(self._bell.set)
        self._watch = Watch(ties.store.ledger)
        self._state = State(since=ties.clock(), events=self._buffer.events)
        self._last: dict[str, int] = {}
        self._tuned: Mapping[str, float] = {}
        self._cycle = 0
        self.tally = CycleTally()
        self.next_look: datetime | None = None
        """The time of the next look at the latest; None while the cortex is off."""
        self._is_awake = False
        self._reflecting = False
        self._cycle_lock = asyncio.Lock()
        self._waking = asyncio.Lock()
        self._unwritten: Reflected | None = None
        self._deaths = 0
        self._task: asyncio.Task[None] | None = None

    def observe(self, seen: Seen) -> None:
        """Take note of an event, unless the cortex is off."""
        if seen.audience and self.is_enabled:
            self._buffer.observe(seen)

    @property
    def is_enabled(self) -> bool:
        """Whether the settings and the provider currently enable it."""
        settings = self._ties.config().cortex
        if settings.enabled != "auto":
            return settings.enabled
        try:
            return self._ties.voice(settings.provider).name not in UNREAL
        except ClaudiusError:
            return False

    def is_active(self) -> bool:
        """Whether it is enabled and, with one process, running; if so, nothing else assesses peers."""
        is_running = self._task is not None and not self._task.done()
        return (is_running or self._ties.store.is_shared) and self.is_enabled

    def start(self) -> None:
        """Start the cortex in its own task."""
        self._task = asyncio.create_task(self._live(), name="cortex")

    async def live(self) -> None:
        """Run until cancelled, or until it stays down."""
        if self._ties.store.is_shared:
            self._state.events.clear()  # another process may have reflected on what was heard here
        self.start()
        try:
            await asyncio.wait([one for one in (self._task,) if one])
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop the task within STOP_S seconds; a running cycle changes nothing."""
        if self._task:
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=STOP_S)

    async def _live(self) -> None:
        while True:
            try:
                while True:
                    self._bell.clear()
                    if self.is_enabled:
                        await self.look()
                        self._deaths = 0
                    else:
                        self._is_awake = False
                    await self._wait()
            except Exception:  # this is the second mind's own lane: nothing of it may end the process that takes turns
                self._deaths += 1
                log.exception("the cortex crashed", extra={"times": self._deaths})
            if self._deaths >= DEATHS:
                log.error("the cortex stays down until the next start")
                return
            await asyncio.sleep(RESTART_S)

    async def _wait(self) -> None:
        """Wait until an event arrives, or the next look is due."""
        wait_s, self.next_look = LOOK_S, None
        if self.is_enabled:
            now = self._ties.clock()
            if moment := next_look(self._state, now, self._thresholds()):
                wait_s = max(GATHER_S, min(LOOK_S, (moment - now).total_seconds()))
            self.next_look = now + timedelta(seconds=wait_s)
        try:
            async with asyncio.timeout(wait_s):
                await self._bell.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_S)

    async def look(self) -> tuple[Reflection, ...]:
        """Evaluate the triggers and reflect if one fires; return the records of the cycles that ran."""
        if self._reflecting:
            log.debug("Trigger skipped: reflection already in progress")
            return ()
        await self._wake()
        self._refresh()
        now = self._ties.clock()
        fired = evaluate(self._state, now, self._thresholds())
        if not fired:
            return ()
        lately = [event for event in messages(self._state.events) if now - event.timestamp < UNDER_WAY]
        if not self._ties.store.ledger.are_noted([event.turn for event in lately]):
            return ()  # a cycle should see each message whole, so it waits until their turns are committed
        return await self._pass(fired)

    async def reflect(self) -> Reflection:
        """Run one cycle at the owner's request, after any running pass has ended.

        Raises: ClaudiusError if the cortex is off or nothing was ever heard.
        """
        if not self.is_enabled:
            raise ClaudiusError("the cortex is off: it needs a real model, or cortex.enabled = true")
        async with self._cycle_lock:
            await self._wake()
            self._refresh()
        records = await self._pass(("manual",))
        if not records:
            raise ClaudiusError("there is nothing to reflect on: nobody was heard yet")
        return records[0]

    async def _wake(self) -> None:
        """Load from the ledger: trust values, events that no cycle has seen, the number of the last cycle.

        Once, where all of them come from this process; otherwise each time.
        """
        store, is_shared = self._ties.store, self._ties.store.is_shared
        async with self._waking:
            if self._is_awake and not is_shared:
                return
            if is_shared and (self._task is None or self._task.done()):
                self._state.events.clear()  # another process may have reflected on what was heard here
            grounds = store.ledger.grounds(SELF, (), 1)
            self._last = dict(store.ledger.latest_trust())
            self._cycle = max(self._cycle, grounds.cycle - 1)
            self._tuned = thresholds_in_force(grounds.tuned, Thresholds.of(self._ties.config().cortex).bases)
            self._buffer.restore(store.ledger.unreflected(RESTORED))
            self._is_awake = True

    def _refresh(self) -> None:
        state, enabled = self._state, self._thresholds().enabled
        if "promise_timeout" in enabled:
            state.watch(self._ties.store.ledger.open_promises(self._ties.clock()))
        if "farming" in enabled:
            state.farming = {**state.farming, **self._watch.farming(state.events)}
        if "new_peer" in enabled:
            state.new_peers = {**state.new_peers, **self._watch.new_peers(state.events)}

    def _thresholds(self) -> Thresholds:
        settings = self._ties.config().cortex
        return Thresholds.of(settings, self._tuned if settings.adaptive else None)

    async def _pass(self, fired: Sequence[str]) -> tuple[Reflection, ...]:
        """Run one cycle for each of the fullest audiences. Passes never overlap; the trust budget is per pass."""
        async with self._cycle_lock:
            self._reflecting = True
            try:
                if self._unwritten:  # the write of an earlier pass failed
                    reflected, self._unwritten = self._unwritten, None
                    await self._apply(reflected)
                start = dict(self._last)
                found = parts(self._ties, self._state, fired)
                self._state.since = self._ties.clock()
                records = [await self._one(part, fired, start) for part in found]
            finally:
                self._reflecting = False
        return tuple(records)

    async def _one(self, part: Part, fired: Sequence[str], start: Mapping[str, int]) -> Reflection:
        """Run one cycle. If it fails, no event is lost and no change is partly applied."""
        ledger = self._ties.store.ledger
        part = replace(part, events=self._buffer.take(part.audience))
        with ExitStack() as undo:
            undo.callback(self._buffer.give_back, part.events)
            begun = CycleBegins(cycle=self._cycle + 1, trigger=fired[0], events=len(part.events))
            self._ties.emit(begun)
            ended = await reflect(self._ties, part, fired, start, self._cycle + 1)
            self._cycle = ended.record.cycle
            self.tally.count(ended.record)
            if ended.reflected:
                await self._apply(ended.reflected)
            else:
                record = ended.record
                log.info("cycle %d: %s, %.1f s, %s", record.cycle, record.trigger, record.duration_s, record.outcome)
                try:
                    await ledger.keep_reflection(record, self._ties.config().cortex.history_size)
                except StoreError as error:
                    log.warning("the record of cycle %d is not kept: %s", record.cycle, error.message)
            undo.pop_all()
        self._settle(part, ended)
        return ended.record

    def _settle(self, part: Part, ended: Ended) -> None:
        """Return the events that this cycle did not use to the buffer, and drop the rest."""
        state = self._state
        if ended.reflected is None:
            now = self._ties.clock()
            kept = part.events if ended.peers else [one for one in part.events if now - one.timestamp < UNDER_WAY]
            self._buffer.give_back(kept)  # the other peers are not in the ledger and never will be
            state.failures += 1
            state.retry_at = now + backoff(state.failures, self._thresholds())
            return
        unseen = [event for event in part.events if event.peer_id and event.peer_id not in ended.peers]
        self._buffer.give_back(unseen)
        state.failures, state.retry_at = 0, None
        state.watch(one for one in state.promises if one not in part.overdue)
        state.farming = {peer: where for peer, where in state.farming.items() if peer not in part.flags}
        state.new_peers = {peer: where for peer, where in state.new_peers.items() if peer not in part.flags}

    async def _apply(self, reflected: Reflected) -> None:
        try:
            recorded = await self._ties.store.ledger.reflect(reflected)
        except StoreError as error:
            log.warning("cycle %d is not written yet: %s", reflected.record.cycle, error.message)
            self._unwritten = reflected
            return
        self._last |= {one.peer_id: one.trust for one in recorded.assessments}
        self._tuned = {**self._tuned, **{one.trigger: one.value for one in reflected.tuned}}
        tell(self._ties, reflected, recorded)


def tell(ties: Ties, reflected: Reflected, recorded: Recorded) -> None:
    """Emit a cycle's results, and wake the conversations that received a directive."""
    record = reflected.record
    for peer, reason in recorded.failed.items():
        log.error("the assessment of %s in cycle %d is not recorded: %s", peer, record.cycle, reason)
    for one in recorded.assessments:
        ties.emit(
            CycleAssessed(
                peer_id=one.peer_id,
                trust=one.trust,
                rationale=one.rationale,
                info_score=one.info_score,
                cycle=record.cycle,
                assessment_id=one.id,
                timestamp=one.created_at,
            )
        )
    put = {one.key: one for one in reflected.put}
    for key in record.beliefs_added:
        held = put[key]
        told = {"value": held.value, "rationale": held.rationale, "peer_id": held.peer_id or ""}
        ties.emit(BeliefAdded(cycle=record.cycle, key=key, **told))
    for key in record.beliefs_expired:
        ties.emit(BeliefExpired(cycle=record.cycle, key=key))
    for directive in reflected.directives:
        ties.emit(
            CycleDirected(
                cycle=record.cycle,
                directive_id=directive.perception.key,
                peer_id=directive.peer_id,
                action=directive.action,
                text=directive.text,
            )
        )
        ties.wake(directive.perception.conversation)
    ties.emit(
        CycleEnded(
            cycle=record.cycle,
            trigger=record.trigger,
            peers_assessed=list(record.peers_assessed),
            beliefs_added=list(record.beliefs_added),
            beliefs_reaffirmed=list(record.beliefs_reaffirmed),
            beliefs_expired=list(record.beliefs_expired),
            directives_issued=len(reflected.directives),
            summary=record.summary,
            elapsed_seconds=record.duration_s,
        )
    )
    log.info(
        "cycle %d: %s, %.1f s, %d assessed, %d beliefs, %d directives",
        record.cycle,
        record.trigger,
        record.duration_s,
        len(recorded.assessments),
        len(reflected.put),
        len(reflected.directives),
    )
