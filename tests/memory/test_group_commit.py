"""How often the disk is synced: three awaited commits a turn, and one commit for everything that is queued together."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from claudius.home import Home
from claudius.memory import people
from claudius.memory.database import Database, stamp
from claudius.memory.sqlite import SqliteStore
from contracts.store.ground import NOW, call, exchange, heard, recalled, thought


@asynccontextmanager
async def watched(home: Home, boot: str = "boot-1") -> AsyncIterator[tuple[SqliteStore, list[str]]]:
    """Open a store whose writer never commits by itself, and yield the list of statements that it runs."""
    store = SqliteStore(home.database, linger_s=3600.0)
    await store.start(boot, NOW)
    statements: list[str] = []
    writing(store).connection.set_trace_callback(statements.append)
    try:
        yield store, statements
    finally:
        await store.close(clean=True)


def writing(store: SqliteStore) -> Database:
    """Return the writer's own connection."""
    return store.core.writer._database


async def test_a_turn_waits_for_the_disk_three_times(home: Home) -> None:
    """Counted: a turn waits for accept, commit and settle; writes that no one awaits are committed along with these."""
    async with watched(home) as (store, statements):
        for n in range(20):
            await exchange(store, heard(n=n))

    assert statements.count("COMMIT") == 60 + 1  # and one to record the clean stop


async def test_what_is_queued_together_is_committed_together(home: Home) -> None:
    """Group commit: jobs that wait while the writer is busy share one transaction."""
    async with watched(home) as (store, statements):
        busy, gate, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

        def block(_: Database) -> None:
            """Keep the writer busy."""
            loop.call_soon_threadsafe(busy.set)
            gate.wait()

        blocking = asyncio.create_task(store.core.write(block))
        await busy.wait()
        before = statements.count("COMMIT")
        waiting = [asyncio.create_task(store.inbox.accept((heard(n=n),), NOW)) for n in range(100)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(blocking, *waiting)

        assert statements.count("COMMIT") - before == 2


async def test_who_is_cancelled_reads_to_the_end(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new message cancels the fold of an idle talk: its connection is closed after its thread has read (SIGSEGV)."""
    async with watched(home) as (store, _):
        reads, gate, found, loop = asyncio.Event(), threading.Event(), list[int](), asyncio.get_running_loop()

        def slow(db: Database, *_: object) -> None:
            """Read for as long as the gate is shut."""
            loop.call_soon_threadsafe(reads.set)
            gate.wait()
            found.append(db.connection.execute("SELECT 1").fetchone()[0])

        monkeypatch.setattr(people, "knowledge_of", slow)
        reading = asyncio.create_task(store.people.known_of(heard().person, NOW))
        await reads.wait()
        for _ in range(2):
            reading.cancel()
            await asyncio.sleep(0)
        gate.set()
        await asyncio.wait([reading])

        assert found == [1]


async def test_a_job_that_fails_takes_nothing_with_it(home: Home) -> None:
    """Each job runs in its own savepoint: its error reaches only its own caller, and its writes are undone."""

    def stumble(db: Database) -> None:
        """Write, then fail."""
        db.change("withdraw", seq=1, reason="half done")
        raise ValueError("no")

    async with watched(home) as (store, _):
        await store.inbox.accept((heard(),), NOW)
        ended = await asyncio.gather(
            store.inbox.accept((heard(n=2),), NOW),
            store.core.write(stumble),
            store.inbox.accept((heard(n=3),), NOW),
            return_exceptions=True,
        )

        assert ended[0] == ended[2] == (True,)
        assert isinstance(ended[1], ValueError)
        assert await store.inbox.oldest(heard().conversation) is not None


async def test_cancelled_waiting_leaves_the_writer_alone(home: Home) -> None:
    """Cancelling the wait cancels only the answer: the write is done, and the next ones are served."""
    async with watched(home) as (store, _):
        waiting = asyncio.create_task(store.inbox.accept((heard(n=1),), NOW))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert await store.inbox.accept((heard(n=1),), NOW) == (False,)


async def test_what_nobody_waits_for_is_written_by_itself(home: Home) -> None:
    """An unawaited write is committed after `linger_s`, even if nothing else is written."""
    store = SqliteStore(home.database, linger_s=0.0)
    await store.start("boot-1", NOW)
    written, loop = asyncio.Event(), asyncio.get_running_loop()
    store.core.writer.later(lambda _: loop.call_soon_threadsafe(written.set))

    async with asyncio.timeout(10):
        await written.wait()
    await store.close(clean=True)


async def test_a_refused_turn_costs_no_other_its_commit(home: Home) -> None:
    """A StaleTurn in a group leaves the group's other turns committed, in the same transaction, and its paid calls kept."""
    async with watched(home) as (store, statements):
        one = await recalled(store, heard(n=1))
        other = await recalled(store, heard(n=1, at="slack:T1:D-ben:"))
        store.turns.keep_call(one.turn, call())
        before = statements.count("COMMIT")
        ended = await asyncio.gather(
            store.turns.commit(thought(one, "Hi.", version=7, calls=(call(),))),
            store.turns.commit(thought(other, "Hi.")),
            return_exceptions=True,
        )

        assert [type(error).__name__ for error in ended] == ["StaleTurn", "Intent"]
        assert 1 <= statements.count("COMMIT") - before <= 2
        refused = await store.inbox.oldest(one.conversation)
        assert refused
        assert refused.calls == (call(),)


async def test_a_paid_call_is_written_once_with_its_turn(home: Home) -> None:
    """It has the instant at which its turn was taken."""
    async with watched(home) as (store, statements):
        known = await recalled(store, heard(), now=NOW + timedelta(hours=1))
        store.turns.keep_call(known.turn, call())
        await store.turns.commit(thought(known, calls=(call(),)))
        rows = writing(store).connection.execute("SELECT at, response FROM step").fetchall()

    assert [tuple(row) for row in rows] == [(stamp(NOW), "")]
    assert len([sql for sql in statements if "INTO step" in sql]) == 1
