"""Counts per peer and audience: built from what a home kept before, and deleted with the person."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.home import Home, shipped
from claudius.ledger_types import Noted
from claudius.memory.sqlite import SqliteStore
from claudius.perception import private
from claudius.recollection import turn_of
from contracts.store.ground import ANA, BEN, DM, NOW, OPS, exchange, heard
from contracts.store.ledger import OPS_AUDIENCE, line, messages, talk

MIGRATION = next(
    text for file in (shipped("memory") / "schema").glob("*.sql") if "TABLE peer_tally" in (text := file.read_text())
)
GAPS = st.lists(st.sampled_from([1, 119, 120, 121, 3600, 86_400, 200_000]), min_size=1, max_size=12)


def tallies(database: Path) -> list[tuple[object, ...]]:
    """Return every row of the counts, audience by audience."""
    with closing(sqlite3.connect(database)) as kept:
        return kept.execute("SELECT * FROM peer_tally ORDER BY peer_id, audience").fetchall()


def counted_again(database: Path) -> None:
    """Delete the counts and have the migration rebuild them from the kept interactions."""
    (insert,) = re.findall(r"^INSERT INTO peer_tally\n.*?;", MIGRATION, re.MULTILINE | re.DOTALL)
    with closing(sqlite3.connect(database)) as kept:
        kept.execute("DELETE FROM peer_tally")
        kept.execute(insert)
        kept.commit()


@given(GAPS, st.data())
@settings(max_examples=max(10, settings().max_examples // 4))
async def test_an_older_home_is_counted_as_if_it_had_always_been(
    home: Home, gaps: list[int], data: st.DataObject
) -> None:
    """The migration computes the same counts as writing did, including bursts and days, whoever spoke where."""
    home.database.unlink(missing_ok=True)
    at, said = NOW, []
    for n, gap in enumerate(gaps, 1):
        at += timedelta(seconds=gap)
        person, place = data.draw(st.sampled_from([(ANA, DM), (ANA, OPS), (BEN, OPS)]))
        said.append(replace(heard(f"words {n}", n=n, person=person, at=place), at=at))
    store = SqliteStore(home.database)
    await store.start("boot", NOW)
    for one in said:
        turn = turn_of(one.key)
        answer = line(one, turn=turn, direction="out", at=one.at + timedelta(seconds=2))
        await exchange(store, one, noted=Noted(interactions=(line(one, turn=turn), answer)))
    await store.close(clean=True)
    before = tallies(home.database)

    counted_again(home.database)

    assert tallies(home.database) == before
    assert len(before) == len({(one.person, one.audience) for one in said})


async def test_what_cannot_be_attributed_stays_the_owners(home: Home) -> None:
    """Counts without a kept interaction are shown to the owner, and appear in no one's prompt."""
    store = SqliteStore(home.database)
    await store.start("boot", NOW)
    await talk(store, *messages(3), *messages(2, at=OPS))
    await store.close(clean=True)
    with closing(sqlite3.connect(home.database)) as kept:
        kept.execute("DELETE FROM interaction WHERE audience = ? AND preview = 'words 1'", (private(ANA),))
        kept.commit()
    counted_again(home.database)

    store = SqliteStore(home.database)
    await store.start("boot-2", NOW)
    own, there = store.ledger.query_peer(ANA, private(ANA)), store.ledger.query_peer(ANA, OPS_AUDIENCE)
    owner = store.ledger.query_peer(ANA, "self")
    await store.close(clean=True)

    assert own
    assert there
    assert owner
    assert (own.messages, there.messages, owner.messages) == (2, 2, 5)
    assert own.first_at == messages(2)[1].at
