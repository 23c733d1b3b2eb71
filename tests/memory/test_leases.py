"""Leases of lanes on a real PostgreSQL: taken, fenced, renewed, lost and given back by two stores on one schema."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from claudius.errors import StaleTurn
from claudius.ledger_types import Interaction, Noted
from claudius.memory.database import Database, StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.memory.recall import RecallLimits
from claudius.memory.store import Store
from claudius.memory.whispers import Whisper
from claudius.perception import SELF, Kind
from claudius.runtime.access import Membership
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import CallState
from contracts.store.calls import ended, used
from contracts.store.ground import DM, LIMITS, NOW, OPS, exchange, heard, part, taken, thought

NETWORKS = ("slack",)


class Ticking:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now_s


@asynccontextmanager
async def worker(
    url: str, boot: str, *, lease_s: float = 60.0, clock: Ticking | None = None, clean: bool = True
) -> AsyncIterator[Store]:
    """Start a worker's store on a schema that others share."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    times = LeaseTimes(lease_s=lease_s, renew_s=lease_s / 3)
    store = PostgresStore(StorePlace(url), times=times, clock=clock or Ticking(), roles="lanes")
    await store.start(boot, NOW)
    try:
        yield store
    finally:
        await store.close(clean=clean)


async def taken_by(store: Store, most: int = 16) -> list[str]:
    """Take lanes; return their conversations."""
    return sorted(await store.leases.take(NETWORKS, most))


async def let_go(store: Store, conversation: str) -> bool:
    """Give a lane up as its end does: the mark first, then a look, then the release."""
    mark = await store.leases.heard(conversation)
    assert await store.inbox.oldest(conversation) is None
    return await store.leases.release(conversation, mark)


async def past(url: str) -> None:
    """Let every lease be past, as time does."""
    import psycopg  # noqa: PLC0415 - an extra

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as server:
        await server.execute(
            "UPDATE lane SET lease_until = clock_timestamp() - interval '1 s' WHERE worker IS NOT NULL"
        )


async def test_scale_w2_a_lane_is_held_by_one(postgres_url: str) -> None:
    """Two workers that look at once share what is ready, and no lane is held by both."""
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        await one.inbox.accept([heard(at=f"slack:T1:D-{n}:") for n in range(20)], NOW)

        found = await asyncio.gather(taken_by(one, 12), taken_by(two, 12))

        assert len(found[0]) + len(found[1]) == 20
        assert not set(found[0]) & set(found[1])
        assert await taken_by(one) == await taken_by(two) == []


async def test_scale_w2_a_turn_under_an_old_token_is_refused(postgres_url: str) -> None:
    """F3: whoever lost the lane while thinking commits nothing; the other's reply stands alone."""
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        await one.inbox.accept((heard(),), NOW)
        assert await taken_by(one) == [DM]
        slow = one.leases.store_of(DM)
        late = thought(await recalled_by(slow), "Too late.")
        await past(postgres_url)
        assert await taken_by(two) == [DM]
        quick = two.leases.store_of(DM)
        await quick.turns.commit(thought(await recalled_by(quick), "In time."))

        with pytest.raises(StaleTurn):
            await slow.turns.commit(late)
        assert await one.leases.renew() == [DM]
        said = two.outbox.deliveries(DM)

    assert [one.utterance.body for one in said] == ["In time."]


async def recalled_by(store: Store):  # noqa: ANN201 - a Recollection
    """Take the oldest perception of the lane, and return what its turn would know."""
    pending = await store.inbox.oldest(DM)
    assert pending is not None
    store.inbox.take(pending.seq, {}, NOW)
    return await store.turns.recall(pending, nonce="nonce", now=NOW, limits=LIMITS)


async def test_scale_no_wake_is_lost_at_a_release(postgres_url: str) -> None:
    """A row that comes between the last look and the release keeps the lane; so does one that comes after it."""
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        await exchange(one, heard(n=1))
        assert await taken_by(one) == [DM]
        mark = await one.leases.heard(DM)
        assert await one.inbox.oldest(DM) is None
        await two.inbox.accept((heard(n=2),), NOW)

        assert not await one.leases.release(DM, mark)
        await exchange(one, heard(n=3))
        await exchange(one, heard(n=2))
        assert await let_go(one, DM)
        assert await taken_by(two) == []
        await two.inbox.accept((heard(n=4),), NOW)
        assert await taken_by(two) == [DM]


async def test_scale_f2_what_a_dead_worker_had_begun_is_void_at_the_taking(postgres_url: str) -> None:
    """What it had taken is pending again; what it may have sent is in doubt, and looked for before it is repeated."""
    async with worker(postgres_url, "w1", clean=False) as one:
        await one.inbox.accept((heard(n=1), heard(at=OPS)), NOW)
        assert await taken_by(one) == [DM, OPS]
        await one.turns.commit(thought(await one.turns.recall(
            await taken(one, heard(n=1)), nonce="n", now=NOW, limits=LIMITS), "Perhaps visible."))  # fmt: skip
        await taken(one, heard(at=OPS))
        await one.flush()
    async with worker(postgres_url, "w2") as two:
        assert await taken_by(two) == []  # its leases are not past
        before = await two.inbox.oldest(OPS)
        await past(postgres_url)
        assert await taken_by(two) == [DM, OPS]
        parts, after = two.outbox.deliveries(DM), await two.inbox.oldest(OPS)

    assert before is not None
    assert after is not None
    assert (before.state, after.state) == ("taken", "pending")
    assert [one.state for one in parts] == ["unknown_after_send"]


async def test_scale_f4_who_takes_its_own_lane_again_doubts_what_it_was_sending(postgres_url: str) -> None:
    """A process was paused for longer than its lease, and no one took over: its own post may be visible, as another's."""
    async with worker(postgres_url, "w1") as one:
        await one.inbox.accept((heard(),), NOW)
        await taken_by(one)
        before = one.leases.store_of(DM)
        await before.turns.commit(thought(await recalled_by(before), "Perhaps visible."))
        await past(postgres_url)

        assert await taken_by(one) == [DM]
        with pytest.raises(StaleTurn):
            await before.outbox.doubt(DM)
        parts = one.leases.store_of(DM).outbox.deliveries(DM)

    assert [part.state for part in parts] == ["unknown_after_send"]


async def test_scale_what_was_seen_is_believed_under_an_old_token(postgres_url: str) -> None:
    """A settle under an old token is believed, and nothing else of it is."""
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        await one.inbox.accept((heard(),), NOW)
        await taken_by(one)
        slow = one.leases.store_of(DM)
        intent = thought(await recalled_by(slow), "Hi.", "And more.")
        await slow.turns.commit(intent)
        await past(postgres_url)
        await taken_by(two)

        await slow.outbox.settle(intent.utterances[0].key, "r-0", NOW)
        with pytest.raises(StaleTurn):
            await slow.outbox.attempt(intent.utterances[1].key)
        left = two.outbox.deliveries(DM)

    assert [one.utterance.key for one in left] == [part(intent.turn, DM, n=1).key]


async def test_scale_only_a_process_that_ended_counts_as_ended(postgres_url: str) -> None:
    """One lost its lane in a pause and went on, the other ended: one ended process, whoever looks, and in any order."""
    ended = list[int]()
    async with worker(postgres_url, "w1") as one:
        async with worker(postgres_url, "w2", clean=False) as two:
            await one.inbox.accept((heard(),), NOW)
            for paused in (one, two, one, two, one):
                assert await taken_by(paused) == [DM]
                ended.append(await begun_by(paused.leases.store_of(DM)))
                await past(postgres_url)
                if paused is one:  # it goes on before anybody else looks; the other goes on after it
                    assert await one.leases.renew() == [DM]
                    await one.flush()
                    await two.leases.renew()
                    await two.flush()
            assert await taken_by(two) == [DM]
            ended.append(await begun_by(two.leases.store_of(DM)))
        await past(postgres_url)
        assert await taken_by(one) == [DM]
        ended.append(await begun_by(one.leases.store_of(DM)))

    assert ended == [0, 0, 1, 0, 1, 0, 1]


async def begun_by(lane: Store) -> int:
    """Begin the turn of what is oldest; return how many processes ended at it before."""
    pending = await lane.inbox.oldest(DM)
    assert pending
    lane.inbox.take(pending.seq, {}, NOW)
    await lane.flush()
    return pending.ended


async def test_scale_w8_a_worker_trusts_its_clock_for_less_than_the_lease(postgres_url: str) -> None:
    """Nine tenths of a lease after it asked, a worker sends nothing any more; a renewal counts from its own asking."""
    clock = Ticking()
    async with worker(postgres_url, "w1", lease_s=60.0, clock=clock) as one:
        await one.inbox.accept((heard(),), NOW)
        await taken_by(one)
        held = [one.leases.is_held(DM)]
        clock.now_s += 53.9
        held.append(one.leases.is_held(DM))
        clock.now_s += 0.2
        held.append(one.leases.is_held(DM))
        assert await one.leases.renew() == []
        held.append(one.leases.is_held(DM))

    assert held == [True, True, False, True]


async def test_scale_a_good_end_gives_every_lane_back(postgres_url: str) -> None:
    """After a stop in good order another worker takes over at once."""
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        await one.inbox.accept((heard(),), NOW)
        assert await taken_by(one) == [DM]
        await one.close(clean=True)
        assert await taken_by(two) == [DM]


async def test_scale_a_process_sees_who_else_has_a_place(postgres_url: str) -> None:
    """The other places of a role are counted while their leases last; one's own are not, nor another role's."""
    places = ("listen/slack/0", "listen/slack/1")
    async with worker(postgres_url, "one") as one, worker(postgres_url, "two") as two:
        mine = await one.leases.roles.take(places)
        alone = await one.leases.roles.others("listen/slack")
        theirs = await two.leases.roles.take([*places, "listen/slackers/0"])
        both = await one.leases.roles.others("listen/slack")
        await two.leases.roles.give_back(theirs)
        again = await one.leases.roles.others("listen/slack")

    assert sorted((*mine, *theirs)) == ["listen/slack/0", "listen/slack/1", "listen/slackers/0"]
    assert (alone, both, again) == (0, 1, 0)


async def test_scale_what_a_transaction_waits_for_others_is_counted(postgres_url: str) -> None:
    """A transaction that waits for another one's lock adds that wait, by the server's clock."""
    import psycopg  # noqa: PLC0415 - an extra

    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - likewise

    store = PostgresStore(StorePlace(postgres_url), roles="lanes")
    await store.start("one", NOW)
    before_s = store.leases.tally.lock_wait_s / store.leases.tally.batches
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(1131176053, current_schema()::regnamespace::oid::int)")
        flushing = asyncio.create_task(store.flush())
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while other.execute(waits).fetchone() == (0,):
            await asyncio.sleep(0.01)
    await flushing
    after = store.leases.tally
    await store.close(clean=True)

    assert after.lock_wait_s > 10 * before_s
    assert after.batches >= 2


LISTENING = RecallLimits(ttl_hours=72, daimons={"kothar": "whisper"})


async def felt(store: Store, conversation: str, n: int) -> tuple[str, tuple[int, ...]]:
    """Begin a turn in a lane that is held. Return the turn, and the whispers that stand in its prompt."""
    lane = store.leases.store_of(conversation)
    pending = await taken(lane, heard(at=conversation, n=n))
    known = await lane.turns.recall(pending, nonce="nonce", now=NOW, limits=LISTENING)
    return known.turn, tuple(one.whisper for one in known.intuitions)


async def test_scale_f14_a_whisper_stands_in_the_prompt_of_one_turn(postgres_url: str) -> None:
    """W4: twenty turns at once, on two workers; one feels it, another only if that turn came to nothing."""
    places = [f"slack:T1:D-{n}:" for n in range(20)]
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        whisper = Whisper(
            daimon="kothar",
            text="They wait.",
            transport="manual",
            sources=(SELF,),
            at=NOW,
            expires_at=NOW + timedelta(hours=1),
        )
        number = await one.whispers.keep_whisper(whisper)
        await one.inbox.accept([heard(at=place) for place in places], NOW)
        held = [(one, place) for place in await taken_by(one, 10)] + [(two, place) for place in await taken_by(two)]

        turns = await asyncio.gather(*(felt(store, place, 1) for store, place in held))
        feels = [n for n, (_, whispers) in enumerate(turns) if whispers]
        (store, place), (turn, whispers) = held[feels[0]], turns[feels[0]]
        store.leases.store_of(place).turns.release(turn)
        await store.inbox.accept([], NOW)  # what nobody waits for is written with it
        other, elsewhere = next((s, p) for s, p in held if s is not store)
        again = await felt(other, elsewhere, 2)

    assert (len(feels), whispers) == (1, (number,))
    assert again[1] == (number,)


async def test_scale_w4_a_whisper_is_free_again_once_its_lane_is_lost(postgres_url: str) -> None:
    """A worker died with a whisper in its prompt; who takes the lane may feel it, and so may others."""
    async with worker(postgres_url, "w1", clean=False) as one, worker(postgres_url, "w2") as two:
        number = await one.whispers.keep_whisper(
            Whisper(
                daimon="kothar", text="So.", transport="manual", sources=(SELF,), at=NOW,
                expires_at=NOW + timedelta(hours=1),
            )
        )  # fmt: skip
        await one.inbox.accept([heard(at=DM)], NOW)
        await taken_by(one)
        first = await felt(one, DM, 1)
        await past(postgres_url)
        await taken_by(two)
        second = await felt(two, DM, 1)

    assert first[1] == second[1] == (number,)


async def test_scale_f15_what_one_worker_hears_changed_every_worker_asks_again(postgres_url: str) -> None:
    """W5: after a leave that one process hears, no process shows anything by the list of before."""
    leave = heard(at=OPS, kind=Kind.LEAVE, owes=False)
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        rooms = RehearsalAdapter(), RehearsalAdapter()
        hears, thinks = (
            Membership(store, {"slack": room}, lambda: NOW) for store, room in zip((one, two), rooms, strict=True)
        )
        for _ in range(2):
            await hears.look(leave)
            await thinks.look(leave)
        before = [len(room.asked) for room in rooms]
        hears.forget(leave.audience)
        await one.inbox.accept([leave], NOW)
        await thinks.look(leave)
        await thinks.look(leave)

    assert before == [1, 1]
    assert len(rooms[1].asked) == 2


async def test_scale_f13_one_person_in_many_conversations_is_counted_once(postgres_url: str) -> None:
    """W3: fifty conversations of one person on two workers: the ledger counts each message once, whoever thought."""
    person = "slack:T1:U-everywhere"
    places = [f"slack:T1:C-{n}:" for n in range(50)]
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        await one.inbox.accept([heard(at=place, person=person) for place in places], NOW)
        held = [(one, place) for place in await taken_by(one, 25)] + [(two, place) for place in await taken_by(two, 25)]

        async def think(store: Store, place: str) -> None:
            """Run the turn of one conversation."""
            lane = store.leases.store_of(place)
            perception = heard(at=place, person=person)
            pending = await taken(lane, perception)
            known = await lane.turns.recall(pending, nonce="nonce", now=NOW, limits=LIMITS)
            said = Interaction(
                peer_id=person,
                at=NOW,
                direction="in",
                channel_type="channel",
                conversation=place,
                audience=perception.audience,
                turn=known.turn,
            )
            await lane.turns.commit(thought(known, noted=Noted(interactions=(said,))))

        await asyncio.gather(*(think(store, place) for store, place in held))
        peer = one.ledger.query_peer(person, SELF)

    assert len(held) == 50
    assert peer
    assert peer.messages == 50


async def test_scale_who_writes_is_alone(postgres_url: str) -> None:
    """While one worker's batch is open, another's waits for it: no two turns read the same counts and both add to them."""
    import psycopg  # noqa: PLC0415 - an extra

    loop, gate, is_open = asyncio.get_running_loop(), threading.Event(), asyncio.Event()

    def hold(db: Database) -> None:
        """Keep a transaction open."""
        db.value("lanes_held")  # its answer is here: so the transaction has begun
        loop.call_soon_threadsafe(is_open.set)
        gate.wait()

    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        holding = asyncio.create_task(one.core.write(hold))
        await is_open.wait()
        writing = asyncio.create_task(two.inbox.accept((heard(),), NOW))
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as server:
            is_waiting = False
            while not writing.done() and not is_waiting:
                found = await server.execute("SELECT true FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
                is_waiting = bool(await found.fetchall())
        gate.set()
        await asyncio.gather(holding, writing)

    assert is_waiting


async def test_scale_no_connection_waits_for_ever(postgres_url: str) -> None:
    """A peer that fell silent inside a transaction would hold its rows for ever: the server and the socket end it."""
    async with worker(postgres_url, "w1", lease_s=60.0) as one:

        def settings(db: Database) -> dict[str, str]:
            """Return what this transaction is bound by."""
            names = ("idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout")
            return {name: db.connection.execute(f"SHOW {name}").fetchone()[name] for name in names}

        found = await one.core.write(settings)

    assert found == {"idle_in_transaction_session_timeout": "15s", "statement_timeout": "30s", "lock_timeout": "1min"}


MUTANTS = {
    "no token in WRITE 2": (
        "lane_fence",
        "SELECT :token + 0 AS held",
        test_scale_w2_a_turn_under_an_old_token_is_refused,
    ),
    "release without what was heard": (
        "lane_release",
        "UPDATE lane SET ready = false, worker = NULL, lease_until = '-infinity' WHERE token = :token",
        test_scale_no_wake_is_lost_at_a_release,
    ),
    "own clock for leases": ("lanes_take", "clock_timestamp() + interval '5 min'", test_scale_w2_a_lane_is_held_by_one),
    "a start that voids all leases": (
        "worker_begins",
        "WITH void AS (UPDATE lane SET lease_until = '-infinity') INSERT",
        test_scale_f2_what_a_dead_worker_had_begun_is_void_at_the_taking,
    ),
    "no lock of the soul": ("BEGIN", "BEGIN; SELECT 0.0::float8 AS waited_s", test_scale_who_writes_is_alone),
}
"""Each breaks one rule: the query that is changed, how, and the test that must fail then."""


@pytest.mark.parametrize("name", MUTANTS)
async def test_scale_every_mutant_is_caught(name: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that is broken is seen by the test of that rule, so that none of these tests is idle."""
    from claudius.memory.postgres import connection, store  # noqa: PLC0415 - an extra

    query, change, caught_by = MUTANTS[name]
    load = store.load_texts

    def changed(memory: Path) -> dict[str, str]:
        """Return the queries, one of them broken."""
        texts = load(memory)
        if query == "lanes_take":  # a worker whose clock is ahead finds every lease past
            texts[query] = texts[query].replace("lease_until < clock_timestamp()", f"lease_until < {change}")
        elif query == "worker_begins":
            texts[query] = texts[query].replace("INSERT", change, 1)
        elif query in texts:
            texts[query] = change
        return texts

    monkeypatch.setattr(store, "load_texts", changed)
    if query == "BEGIN":
        monkeypatch.setitem(connection.TRANSACTIONS, "BEGIN IMMEDIATE", change)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await caught_by(postgres_url)


async def test_t16_a_call_that_outlives_its_lane_is_unknown_and_its_late_end_refused(postgres_url: str) -> None:
    """A worker that was paused in a call cannot say how it ended: whoever has the lane now says that no one knows."""
    async with worker(postgres_url, "w1") as one, worker(postgres_url, "w2") as two:
        await one.inbox.accept((heard(),), NOW)
        assert await taken_by(one) == [DM]
        paused = one.leases.store_of(DM)
        call, is_begun = await paused.calls.start(used((await recalled_by(paused)).turn, cls="send"), NOW)
        assert is_begun
        await past(postgres_url)
        assert await taken_by(two) == [DM]
        holder = two.leases.store_of(DM)
        assert await holder.calls.recover(DM, NOW, ()) == ()

        with pytest.raises(StaleTurn):
            await paused.calls.end(ended(call), NOW)
        assert await holder.calls.start(call, NOW) == (found := holder.calls.find(call.id), False)
        assert found
        assert found.state is CallState.UNKNOWN
