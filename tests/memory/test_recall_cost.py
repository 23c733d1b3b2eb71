"""The queries that a turn's recall runs for the ledger and the second mind: counted, not timed."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from claudius.home import Home
from claudius.ledger_types import Noted
from claudius.memory import moments
from claudius.memory.database import parse
from claudius.memory.ranking import Floor, asked_for, rank
from claudius.memory.recall import RecallLimits
from claudius.memory.sqlite import SqliteStore
from claudius.perception import Perception, private
from contracts.store.ground import ANA, BEN, NOW, assess, exchange, heard, taken
from contracts.store.ledger import belief, line, reflected


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[SqliteStore]:
    """Yield a store."""
    home.create()
    store = SqliteStore(home.database)
    await store.start("boot", NOW)
    yield store
    await store.close(clean=True)


async def asked(home: Home, *, beliefs: bool, is_assessed: bool) -> list[str]:
    """Return every statement of one recall in a conversation with some history."""
    async with opened(home) as store:
        for n in range(1, 4):
            said = heard(n=n)
            await exchange(store, said, noted=Noted(interactions=(line(said),)))
        await store.ledger.reflect(reflected(put=(belief(sources=(private(ANA),), audience=private(ANA)),)))
        if is_assessed:
            await assess(store, ANA, 2, "Good.", NOW)
        pending = await taken(store, heard(n=9))
        statements: list[str] = []
        with store.core.snapshot() as db:
            db.connection.set_trace_callback(statements.append)
        limits = RecallLimits(ttl_hours=72, beliefs=beliefs)
        found = await store.turns.recall(pending, nonce="n", now=NOW, limits=limits)
    assert found.peers[0].messages == 3
    assert bool(found.beliefs) is beliefs
    assert bool(found.peers[0].assessments) is is_assessed
    return [one for one in statements if one.lstrip().startswith(("SELECT", "WITH", "--"))]


@pytest.mark.parametrize("is_assessed", [False, True])
async def test_beliefs_cost_at_most_one_question_more(home: Home, *, is_assessed: bool) -> None:
    """NFR-CX-01: with the cortex on, a recall runs at most one more query.

    With it off, a person who was never assessed costs one query: their counts, audience by audience.
    """
    counts = {}
    for beliefs in (True, False):
        counts[beliefs] = await asked(Home(home.root / str(beliefs)), beliefs=beliefs, is_assessed=is_assessed)

    assert len(counts[True]) - len(counts[False]) == (0 if is_assessed else 1)
    own = [one for one in counts[False] if re.search("(FROM|CROSS JOIN) (assessment|belief|peer|peer_tally) ", one)]
    assert len(own) == 1 + is_assessed


async def told(home: Home, channels: int, perception: Perception) -> list[str]:
    """Return every statement of a turn's two reads, where the speaker and another share so many channels."""
    async with opened(home) as store:
        for n in range(channels):
            await store.people.know_members(f"shared:slack:T1:c{n}", (ANA, BEN), NOW)
        pending = await taken(store, perception)
        statements: list[str] = []
        with store.core.snapshot() as db:
            db.connection.set_trace_callback(statements.append)
        found = await store.turns.recall(pending, nonce="n", now=NOW, limits=RecallLimits(ttl_hours=72))
        assert found.shown_from.count("shared:") >= channels
        await store.moments.remember(perception, {"walnut": 1.0}, found)
    return statements


@pytest.mark.parametrize("place", ["slack:T1:D-ana:", "slack:T1:c0:1"])
async def test_channels_in_common_cost_no_question_more(home: Home, place: str) -> None:
    """A turn asks as often where its speaker shares 500 channels with the soul as where they share two."""
    counts = {}
    for channels in (2, 500):
        counts[channels] = await told(Home(home.root / str(channels)), channels, heard(n=9, at=place, person=ANA))

    assert len(counts[500]) == len(counts[2])


async def test_many_who_wrote_cost_no_question_more(home: Home) -> None:
    """A turn asks as often where twenty have written in its conversation as where six have."""
    counts = {}
    for writers in (6, 20):
        async with opened(Home(home.root / str(writers))) as store:
            for n in range(writers):
                await exchange(store, heard(n=n, at="slack:T1:c0:1", person=f"slack:T1:P{n}"))
            pending = await taken(store, heard(n=99, at="slack:T1:c0:1", person=ANA))
            statements: list[str] = []
            with store.core.snapshot() as db:
                db.connection.set_trace_callback(statements.append)
            found = await store.turns.recall(pending, nonce="n", now=NOW, limits=RecallLimits(ttl_hours=72))
            assert len(found.past) == writers
            counts[writers] = len(statements)

    assert counts[20] == counts[6]


async def keep(store: SqliteStore, number: int, text: str = "walnut", audience: str = private(ANA)) -> None:
    """Keep a moment of Ana's, in a transaction of its own."""
    place = {"turn": f"t{number}", "position": "", "at_s": 1, "conversation": "c", "audience": audience}
    said = {"person": ANA, "name": "", "text": text, "pictures": "", "importance": 0, "is_own": 0}
    await store.core.write(lambda db: db.run("moment_keep", **place, **said))


async def test_a_search_reads_few_segments_of_the_index(home: Home) -> None:
    """A word costs a look into every segment, so however many moments came one by one, there are few of them."""
    async with opened(home) as store:
        for number in range(15):
            await keep(store, number, f"walnut {number}")
        with store.core.snapshot() as db:
            (found,) = db.connection.execute("SELECT count(DISTINCT segid) AS segments FROM moment_index_idx")

    assert found["segments"] == 1


async def test_what_many_moments_hold_is_counted_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """To count a word takes the longer the more moments hold it, so its count stays until a twentieth more are kept."""
    monkeypatch.setattr(moments, "MANY", 40)
    counts = []
    async with opened(home) as store:
        for number in range(1, 44):
            await keep(store, number)
            if number in (39, 40, 42, 43):
                found = await store.moments.remember(heard(n=9), {"walnut": 1.0})
                counts.append(found.frequencies["walnut"])

    assert counts == [39, 40, 40, 43]


async def test_many_channels_are_searched_as_few_are(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way the index is read, the same is found, also once it is known what is common; nothing unseen counts."""
    words, chance, found = ["tea", *(f"w{number}x" for number in range(40))], Random(7), {}  # noqa: S311 - words of a test
    asked_ = [dict.fromkeys(chance.choices(words, k=4), 1.0) for _ in range(12)]
    async with opened(home) as store:
        for number in range(15):
            channel = f"shared:slack:T1:c{number}"
            await store.people.know_members(channel, (ANA, BEN) if number < 12 else (BEN,), NOW)
            for n in range(10):
                text = " ".join(["tea", *chance.choices(words, k=5)]) if number < 12 else "tea w1x w2x w3x w4x"
                await keep(store, 10 * number + n, text, channel)
        for few in (0, 1000):
            monkeypatch.setattr(moments, "FEW_AUDIENCES", few)
            monkeypatch.setattr(moments, "FEW_TERMS", few)
            found[few] = [await store.moments.remember(heard(n=9), terms) for terms in (*asked_, *asked_)]

    assert found[0] == found[1000]
    assert [bool(one.moments) for one in found[0]] == [True] * 24
    assert not any(one.audience.endswith(("c12", "c13", "c14")) for some in found[0] for one in some.moments.values())


async def test_what_cannot_pass_the_floor_is_not_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words that moments hold tell that none of them bears on it; what does is found as if all were read."""
    read, places = [], list[str]()
    monkeypatch.setattr(moments, "parse", lambda ids: places.append(ids) or parse(ids))
    async with opened(home) as store:
        for number, text in enumerate(("The walnut harvest was poor.", "Ben mends boats.", "Boats, a harvest, rain.")):
            await keep(store, number, text)
        for words in ("A poor walnut harvest", "Ben sails boats", "Chairs, lamps, rugs and shelves in the boats"):
            for floor in (Floor(0.44), Floor(0.44, is_question=False)):
                spared = await store.moments.remember(heard(n=9), terms := asked_for(words), floor=floor)
                whole = await store.moments.remember(heard(n=9), terms)
                assert rank(terms, spared, 1, most=9, floor=floor) == rank(terms, whole, 1, most=9, floor=floor)
                read.append(len(spared.moments))
        places.clear()
        await store.moments.remember(heard(n=9), asked_for("poor boats mend"), floor=Floor(0.9))

    assert (read, places) == ([3, 3, 3, 3, 3, 0], ["[2]", "[1]"])  # boats are common: not looked up
