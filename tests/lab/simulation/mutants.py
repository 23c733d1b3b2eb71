"""The product, broken on purpose: each of these must be found by a simulation, or it proves nothing."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from claudius.cognition import turn
from claudius.cognition.mind import Mind
from claudius.cognition.prompt import assembly
from claudius.errors import DeliveryError
from claudius.intent import Intent, Utterance
from claudius.memory import inbox
from claudius.memory import store as sqlite_store
from claudius.memory.archive import Archive, worker
from claudius.memory.archive.changes import RoundStart
from claudius.memory.database import Database
from claudius.memory.documents import Document, DocumentStore, Unarchived
from claudius.memory.inbox import InboxStore, Pending, RateLimits
from claudius.memory.postgres import connection
from claudius.memory.postgres.leases import PostgresLeases
from claudius.memory.recall import RecallLimits
from claudius.memory.turns import TurnStore
from claudius.perception import Perception
from claudius.recollection import Recollection
from claudius.runtime import delivery
from claudius.runtime.adapter import Accept
from claudius.runtime.intake import Intake
from lab.simulation import server
from lab.simulation.server import WorkerStore
from lab.simulation.town import TownAdapter

_kept = Intake._keep
_accepted = Intake.accept
_committed, _apologised = TurnStore.commit, turn.apologise
_listened, _spoken = TownAdapter.listen, TownAdapter.speak
_archived = Archive._commit
_BEHIND: set[asyncio.Task[Any]] = set()


@contextmanager
def acknowledged_before_kept() -> Iterator[None]:
    """An event is acknowledged before WRITE 1."""

    async def keep(self: Intake, perceptions: Sequence[Perception], limits: RateLimits) -> Sequence[bool]:
        async def later() -> None:
            await asyncio.sleep(0.5)
            await _kept(self, perceptions, limits)
            for one in perceptions:
                self._lanes.wake(one.conversation)

        task = asyncio.ensure_future(later())
        _BEHIND.add(task)
        return [True] * len(perceptions)

    with patch.object(Intake, "_keep", keep):
        yield


@contextmanager
def said_before_committed() -> Iterator[None]:
    """A reply is posted before WRITE 2; what is to be seen already is not posted again."""
    adapters: list[TownAdapter] = []

    async def listen(self: TownAdapter, accept: Accept) -> None:
        adapters.append(self)
        await _listened(self, accept)

    async def commit(self: TurnStore, intent: Intent) -> None:
        for utterance in intent.utterances:
            with suppress(DeliveryError):
                await _spoken(adapters[-1], utterance)
        await _committed(self, intent)

    async def speak(self: TownAdapter, utterance: Utterance) -> str:
        self.town.show(self.now())
        return self.town.receipt_of(utterance.key) or await _spoken(self, utterance)

    with (
        patch.object(TownAdapter, "listen", listen),
        patch.object(TownAdapter, "speak", speak),
        patch.object(TurnStore, "commit", commit),
    ):
        yield


@contextmanager
def settled_before_said() -> Iterator[None]:
    """A part is noted as said before it is."""
    say = delivery._say

    async def settled(part: Any, post: Any) -> Any:
        await delivery._settle(part, post, "soon")
        return await say(part, post)

    with patch.object(delivery, "_say", settled):
        yield


@contextmanager
def known_by_envelope() -> Iterator[None]:
    """A message is known by the envelope that it came in, and not by itself."""
    brought: Counter[str] = Counter()

    async def accept(self: Intake, perception: Perception) -> bool:
        brought[perception.key] += 1
        times = brought[perception.key]
        return await _accepted(self, replace(perception, key=f"{perception.key}@{times}") if times > 1 else perception)

    with patch.object(Intake, "accept", accept):
        yield


@contextmanager
def never_looked() -> Iterator[None]:
    """What may be visible already is sent again without a look."""

    async def find(self: TownAdapter, utterance: Any, *, decided_at: Any) -> None:
        del self, utterance, decided_at

    with patch.object(TownAdapter, "find", find):
        yield


@contextmanager
def whispers_used_when_recalled() -> Iterator[None]:
    """A whisper is used as soon as a turn feels it, and not when that turn is committed."""
    recalled = TurnStore.recall

    async def recall(self: TurnStore, pending: Pending, **how: Any) -> Recollection:
        found = await recalled(self, pending, **how)
        for one in found.intuitions:
            await self._core.write(partial(_use, whisper=one.whisper, turn=found.turn))
        return found

    with patch.object(TurnStore, "recall", recall):
        yield


def _use(db: Database, *, whisper: int, turn: str) -> None:
    db.run("whisper_used", id=whisper, turn=turn)


@contextmanager
def memory_left_as_it_was() -> Iterator[None]:
    """What was changed after its answer is acknowledged, and memory keeps the old words."""
    with patch.object(inbox, "_remember", lambda *_: None):
        yield


@contextmanager
def markers_that_clash() -> Iterator[None]:
    """A prompt whose data holds its own marker is not built."""

    def clear(nonce: str, lines: Collection[str]) -> str:
        if any(nonce in line for line in lines):
            raise ValueError(nonce)
        return nonce

    with patch.object(assembly, "clear_nonce", clear):
        yield


@contextmanager
def archived_without_a_look() -> Iterator[None]:
    """A round commits what waits by then, and not only what it has compared with the files."""

    async def commit(self: Archive, pending: Sequence[Unarchived], ground: RoundStart) -> int:
        again = self._store.documents.unarchived(worker.BATCH)
        return await _archived(self, [one for one in again if one.document not in ground.held_back] or pending, ground)

    with patch.object(Archive, "_commit", commit):
        yield


@contextmanager
def own_files_known_by_the_next_few() -> Iterator[None]:
    """A file that is not as recorded is compared with the newest version and the next batch alone."""

    def has_written(self: DocumentStore, document: Document, text: str, *, ever: bool) -> bool:
        del ever
        known = [one.markdown for one in self.unarchived(worker.BATCH) if one.document == document]
        return text in (*known, self.document(document))

    with patch.object(DocumentStore, "has_written", has_written):
        yield


@contextmanager
def apologies_recalled_for() -> Iterator[None]:
    """An apology recalls the conversation first; where that fails, the message is settled, and no one is told."""

    async def apologise(pending: Pending, mind: Mind, kind: Any) -> Intent:
        limits = RecallLimits(ttl_hours=mind.config().memory.ttl_hours)
        await mind.store.turns.recall(pending, nonce=mind.nonce(), now=mind.clock(), limits=limits)
        return await _apologised(pending, mind, kind)

    with patch("claudius.runtime.lanes.apologise", apologise), patch.object(InboxStore, "give_up", InboxStore.withdraw):
        yield


Mutant = Callable[[], AbstractContextManager[object]]
MUTANTS: Mapping[str, Mutant] = {
    one.__name__: one
    for one in (
        acknowledged_before_kept, said_before_committed, settled_before_said, known_by_envelope, never_looked,
        whispers_used_when_recalled, memory_left_as_it_was, markers_that_clash, archived_without_a_look,
        own_files_known_by_the_next_few, apologies_recalled_for,
    )
}  # fmt: skip


def _with_text(query: str, change: Callable[[str], str]) -> AbstractContextManager[object]:
    """Have the server's statement of a name read otherwise."""
    load = connection.load_texts

    def changed(memory: Path) -> dict[str, str]:
        texts = load(memory)
        return texts | {query: change(texts[query])}

    return patch.object(server, "load_texts", changed)


def no_token_in_write_2() -> AbstractContextManager[object]:
    """A write is not asked whether the lane's token has moved."""
    return _with_text("lane_fence", lambda _: "SELECT :token AS held, :conversation AS lane")


def release_without_heard() -> AbstractContextManager[object]:
    """A lane is given up although something was heard since the last look, as if nothing were left."""
    without = """UPDATE lane SET worker = NULL, ready = :heard IS NULL, lease_until = '-infinity'
        WHERE conversation = :conversation AND token = :token"""
    return _with_text("lane_release", lambda _: without)


def own_clock_for_leases() -> AbstractContextManager[object]:
    """Whether a lease is past is decided by the clock of whoever asks."""
    return patch.object(WorkerStore, "clock_of_leases", lambda self: self.wall_s)


def a_start_that_voids_all_leases() -> AbstractContextManager[object]:
    """A process that starts believes that it is alone."""
    begun = sqlite_store.open_boot

    def begin(db: Database, boot: str, now: datetime) -> tuple[tuple[str, ...], bool]:
        db.connection.execute("UPDATE lane SET lease_until = -9e999")
        return begun(db, boot, now)

    return patch.object(sqlite_store, "open_boot", begin)


def no_lock_soul() -> AbstractContextManager[object]:
    """Two transactions that write may both read before either has written."""
    return patch.dict(connection.TRANSACTIONS, {"BEGIN IMMEDIATE": "BEGIN"})


@contextmanager
def notices_believed() -> Iterator[None]:
    """A process looks for lanes when it is told to, and does not look by itself."""
    taken = PostgresLeases.take

    async def take(self: Any, networks: Sequence[str], most: int, wanted: Sequence[str] = ()) -> Sequence[str]:
        worker, is_new = self._of_lane.__self__, not self.tally.looks
        is_told, worker.is_told = worker.is_told, False
        return await taken(self, networks, most if wanted or is_told or is_new else 0, wanted)

    with patch.object(PostgresLeases, "take", take):
        yield


OF_WORKERS: Mapping[str, Mutant] = {
    one.__name__: one
    for one in (
        no_token_in_write_2, release_without_heard, own_clock_for_leases, a_start_that_voids_all_leases, no_lock_soul,
        notices_believed,
    )
}  # fmt: skip
"""What only a life with several workers can show."""
