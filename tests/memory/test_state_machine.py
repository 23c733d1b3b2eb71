"""The life of inbox and outbox rows under every order of steps, including kills, compared with a small model."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from claudius.errors import StaleTurn
from claudius.home import Home
from claudius.intent import Intent
from claudius.memory.inbox import Pending
from claudius.memory.outbox import Delivery
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from contracts.store.ground import LIMITS, NOW, call, heard, thought

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory of our own is made there
PLACES = ("slack:T1:D-ana:", "slack:T1:D-ben:")


@dataclass(slots=True)
class Heard:
    """The model's record of one perception."""

    place: str
    position: str
    order: int
    state: str = "unfinished"
    outcome: str = ""


@dataclass(slots=True)
class Said:
    """The model's record of one turn's parts: each is pending, taken, unknown, sent or dead."""

    key: str
    parts: list[str]
    utterances: tuple[Any, ...] = ()


@dataclass(slots=True)
class World:
    """The model."""

    heard: dict[str, Heard] = field(default_factory=dict)
    said: dict[str, list[Said]] = field(default_factory=lambda: {place: [] for place in PLACES})
    number: int = 0
    boots: int = 0


class Mail(RuleBasedStateMachine):
    """One store, its model, and every step that a process may take, or before which it may be killed."""

    @initialize()
    def begin(self) -> None:
        """Open a fresh home."""
        self.runner = asyncio.Runner()
        self.root = Path(tempfile.mkdtemp(prefix="claudius-mail-", dir=IN_MEMORY))
        self.world = World()
        self.home = Home(self.root / "0")
        self.home.create()
        self._open()

    def teardown(self) -> None:
        """Process what is unfinished, then check O1, O6, O7 and O10 of the reliability design."""
        if not hasattr(self, "runner"):
            return
        self._do(self._drain())
        self._judge()
        self._do(self.store.close(clean=True))
        self.runner.close()
        shutil.rmtree(self.root)

    # -- steps -------------------------------------------------------------------------------------------------------

    @rule(place=st.sampled_from(PLACES), position=st.integers(0, 99))
    def hear(self, place: str, position: int) -> None:
        """A message comes, in any order of positions."""
        self.world.number += 1
        key = f"{place}#{self.world.number}"
        one = heard(f"text of {key}", at=place, key=key, position=f"{position:04d}")
        assert self._do(self.store.inbox.accept((one,), NOW)) == (True,)
        self.world.heard[key] = Heard(place, one.position, self.world.number)

    @precondition(lambda self: self.world.heard)
    @rule(data=st.data())
    def hear_again(self, data: st.DataObject) -> None:
        """The network delivers a known message again."""
        key = data.draw(st.sampled_from(sorted(self.world.heard)))
        known = self.world.heard[key]
        again = heard("other text", at=known.place, key=key, position=known.position)
        assert self._do(self.store.inbox.accept((again,), NOW)) == (False,)

    @rule(place=st.sampled_from(PLACES))
    def think_and_be_killed(self, place: str) -> None:
        """A turn begins, a call is recorded, and the process dies before the commit."""
        pending = self._oldest(place)
        if pending:
            self._do(self._begin(pending))
        self._crash()

    @rule(place=st.sampled_from(PLACES), parts=st.integers(0, 3), twice=st.booleans())
    def think(self, place: str, parts: int, *, twice: bool) -> None:
        """A turn runs and is committed, perhaps twice."""
        pending = self._oldest(place)
        if pending:
            intent = self._do(self._think(pending, parts))
            if twice:
                self._do(self.store.turns.commit(intent))

    @rule(place=st.sampled_from(PLACES))
    def think_too_late(self, place: str) -> None:
        """A turn is refused if its conversation has moved on."""
        pending = self._oldest(place)
        if pending:
            found = self._do(self.store.turns.recall(pending, nonce="n", now=NOW, limits=LIMITS))
            intent = thought(found, "Stale.", version=found.version + 1)
            assert self._do(self._is_stale(intent))

    @rule(place=st.sampled_from(PLACES))
    def postpone(self, place: str) -> None:
        """A turn fails for now and is postponed."""
        pending = self._oldest(place)
        if pending:
            self._do(self.store.inbox.postpone(pending.seq, NOW + timedelta(seconds=1), "busy"))

    @rule(place=st.sampled_from(PLACES))
    def withdraw(self, place: str) -> None:
        """A message is deleted by its author."""
        pending = self._oldest(place)
        if pending:
            self._do(self.store.inbox.withdraw(pending.seq, "deleted"))
            self.world.heard[pending.perception.key] = self._ended(pending.perception.key, "settled", "withdrawn")

    @rule(place=st.sampled_from(PLACES), how=st.sampled_from(("settle", "later", "unknown", "dead", "attempt")))
    def deliver(self, place: str, how: str) -> None:
        """An adapter tries the first waiting part."""
        waiting = self.store.outbox.deliveries(place)
        if waiting:
            self._do(self._deliver(place, waiting[0], how))

    @rule()
    def stop(self) -> None:
        """The process stops cleanly, and another starts."""
        self._do(self.store.close(clean=True))
        self._open(was_clean=True)

    @rule()
    def kill(self) -> None:
        """The process is killed: writes that were not confirmed as durable may be lost."""
        self._crash()

    # -- invariants ---------------------------------------------------------------------------------------------------

    @invariant()
    def the_lowest_position_is_the_oldest(self) -> None:
        """The store and the model agree on the message to be thought about next."""
        if not hasattr(self, "world"):
            return
        for place in PLACES:
            open_ = [(one.position, one.order, key) for key, one in self.world.heard.items() if self._waits(one, place)]
            pending = self._oldest(place)
            assert (pending.perception.key if pending else None) == (min(open_)[2] if open_ else None)

    @invariant()
    def what_waits_to_be_said_is_known(self) -> None:
        """The store and the model agree on every unsent part, in order."""
        if not hasattr(self, "world"):
            return
        for place in PLACES:
            expected = [state for one in self.world.said[place] for state in one.parts if state not in ("sent", "dead")]
            assert [one.state for one in self.store.outbox.deliveries(place)] == expected

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _do(self, work: Any) -> Any:
        return self.runner.run(work)

    def _open(self, *, was_clean: bool | None = None) -> None:
        self.world.boots += 1
        self.store = SqliteStore(self.home.database, linger_s=3600.0)
        waiting = self._do(self.store.start(f"boot-{self.world.boots}", NOW))
        if was_clean is not None:
            assert waiting.was_clean is was_clean
        for turns in self.world.said.values():
            for one in turns:
                one.parts = ["unknown_after_send" if state == "taken" else state for state in one.parts]
        open_ = {one.place for one in self.world.heard.values() if one.state == "unfinished"}
        speaking = {
            place for place, turns in self.world.said.items() if any(set(t.parts) - {"sent", "dead"} for t in turns)
        }
        assert set(waiting.conversations) == open_ | speaking

    def _crash(self) -> None:
        """Continue from the files on disk; the old store's unwritten jobs are lost."""
        after = Home(self.root / str(self.world.boots))
        after.create()
        for file in self.home.state.iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, after.state / file.name)
        self._do(self.store.close(clean=False))
        self.home = after
        self._open(was_clean=False)

    def _oldest(self, place: str) -> Pending | None:
        found: Pending | None = self._do(self.store.inbox.oldest(place))
        return found

    def _waits(self, one: Heard, place: str) -> bool:
        return one.place == place and one.state == "unfinished"

    def _ended(self, key: str, state: str, outcome: str) -> Heard:
        before = self.world.heard[key]
        return Heard(before.place, before.position, before.order, state, outcome)

    async def _begin(self, pending: Pending) -> None:
        self.store.inbox.take(pending.seq, {"nonce": "n"}, NOW)
        self.store.turns.keep_call(pending.turn, call())

    async def _is_stale(self, intent: Intent) -> bool:
        try:
            await self.store.turns.commit(intent)
        except StaleTurn:
            return True
        return False

    async def _think(self, pending: Pending, parts: int) -> Intent:
        self.store.inbox.take(pending.seq, {"nonce": "n"}, NOW)
        found = await self.store.turns.recall(pending, nonce="n", now=NOW, limits=LIMITS)
        intent = thought(found, *(f"part {n}. " for n in range(parts)), calls=(call(),))
        await self.store.turns.commit(intent)
        key = pending.perception.key
        self.world.heard[key] = self._ended(key, "committed" if parts else "settled", "answered" if parts else "silent")
        if parts:
            states = ["taken"] + ["pending"] * (parts - 1)
            self.world.said[pending.perception.conversation].append(Said(key, states, intent.utterances))
        return intent

    async def _deliver(self, place: str, part: Delivery, how: str) -> None:
        key, n = part.utterance.key, part.utterance.part
        one = next(t for t in self.world.said[place] if set(t.parts) - {"sent", "dead"})
        match how:
            case "settle":
                await self.store.outbox.settle(key, "r", NOW)
                one.parts[n] = "sent"
                if n + 1 < len(one.parts) and one.parts[n + 1] == "pending":
                    one.parts[n + 1] = "taken"
            case "later":
                await self.store.outbox.delay(key, NOW + timedelta(seconds=1), "429")
                one.parts[n] = "pending"
            case "unknown":
                await self.store.outbox.delay(key, None, "timeout", unknown=True)
                one.parts[n] = "unknown_after_send"
            case "attempt":
                await self.store.outbox.attempt(key)
                one.parts[n] = "taken"
            case "dead":
                await self.store.outbox.undeliverable(key, "is_archived")
                one.parts = [state if i < n else "dead" for i, state in enumerate(one.parts)]
        if set(one.parts) <= {"sent", "dead"}:
            dead = "dead" in one.parts
            self.world.heard[one.key] = self._ended(
                one.key, "dead" if dead else "settled", "dead" if dead else "answered"
            )

    async def _drain(self) -> None:
        for place in PLACES:
            while True:
                for part in self.store.outbox.deliveries(place):
                    await self._deliver(place, part, "settle")
                pending = await self.store.inbox.oldest(place)
                if pending is None:
                    break
                await self._think(pending, 1)

    def _judge(self) -> None:
        records = SqliteRecords(self.home.database)
        try:
            counts = records.counts(NOW)
            assert (counts["inbox"]["pending"], counts["outbox"]["pending"]) == (0, 0)
            outcomes = Counter(one.outcome for one in self.world.heard.values())
            assert counts["inbox"]["dead"] == outcomes["dead"]
            assert counts["turns"]["total"] == outcomes["answered"] + outcomes["silent"] + outcomes["dead"]
            assert list(records.integrity()) == []
            for place in PLACES:
                found = records.conversation(place)
                texts = [one["content"] for one in (found or {"entries": []})["entries"]]
                for key, one in self.world.heard.items():
                    if one.place == place:
                        assert texts.count(f"text of {key}") == (one.outcome != "withdrawn")
        finally:
            records.close()


TestMail = Mail.TestCase
TestMail.settings = settings(max_examples=max(30, settings().max_examples // 10), stateful_step_count=30, deadline=None)
