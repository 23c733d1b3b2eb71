"""What linking and erasing do to rows: counts go with their person, and unlinked rows belong to their id again."""

import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from archiving import Kept
from claudius.home import Home, shipped
from claudius.ledger_types import Noted
from claudius.memory.documents import short_id
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite.file import add_functions
from claudius.perception import private
from claudius.recollection import turn_of
from contracts.store.ground import ANA, BEN, DM, NOW, OPS, Ground, awake, exchange, heard
from contracts.store.ledger import OPS_AUDIENCE, line, messages, talk

OTHER, THERE = "discord:@me:7", "discord:@me:D-ana:"
ROWS: dict[str, dict[str, Any]] = {
    "interaction": {"peer_id": ANA, "direction": "in", "channel_type": "dm", "scope": 1, "preview": "x"},
    "promise": {
        "peer_id": ANA,
        "side": "theirs",
        "what": "x",
        "stems": "[]",
        "made_at": "",
        "due_at": "",
        "grace_s": 0,
        "state": "open",
    },
    "fact": {"person": ANA, "short": 1, "kind": "name", "text": "x", "keys": "", "about": "", "stated_s": 0},
    "matter": {"person": ANA, "short": 1, "text": "x", "opened_at": "2026"},
    "moment": {
        "person": ANA,
        "position": "",
        "at_s": 0,
        "name": "Ana",
        "text": "x",
        "pictures": "",
        "importance": 50,
        "is_own": 0,
    },
    "psyche_trace": {"person": ANA, "kernel": "k", "inputs": "{}", "after": "{}", "edges": "[]"},
    "step": {
        "person": ANA,
        "n": 9,
        "purpose": "turn",
        "request_sha256": "",
        "response": "",
        "stop_reason": "end",
        "provider": "p",
        "model": "m",
        "input_tokens": 0,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "output_tokens": 0,
        "estimated": 0,
        "ms": 0,
    },
}
"""The rows that a turn writes under the canonical id of a person's linked ids."""


def put(kept: sqlite3.Connection, turn: str, conversation: str) -> None:
    """Write one row of each table, as a turn of a linked id does."""
    for table, row in ROWS.items():
        columns = {column[1] for column in kept.execute(f"PRAGMA table_info({table})")}
        more = {"turn": turn, "conversation": conversation, "at": "2026", "audience": "a"}
        full = {name: given for name, given in (more | row).items() if name in columns}
        names, marks = ", ".join(full), ", ".join(f":{name}" for name in full)
        kept.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", full)  # noqa: S608 - names of this file


async def test_rows_of_a_turn_follow_the_id_that_spoke_in_it(home: Home) -> None:
    """Ledger, promises, facts, moments, traces and calls follow."""
    async with awake(Ground(lambda: SqliteStore(home.database))) as store:
        ours = await exchange(store, heard(n=1, person=ANA))
        await exchange(store, heard(n=1, at=THERE, person=OTHER))
        await store.people.link(ANA, OTHER)
        theirs = await exchange(store, heard(n=2, at=THERE, person=OTHER))
        with closing(sqlite3.connect(home.database)) as kept, kept:
            add_functions(kept)
            put(kept, ours.turn, DM)
            put(kept, theirs.turn, THERE)

        await store.people.unlink(OTHER, NOW)

    with closing(sqlite3.connect(home.database)) as kept:
        for table, row in ROWS.items():
            column = "peer_id" if "peer_id" in row else "person"
            found = dict(kept.execute(f"SELECT turn, {column} FROM {table}").fetchall())  # noqa: S608 - names of this file
            assert (table, found[ours.turn], found[theirs.turn]) == (table, ANA, OTHER)


async def test_a_portrait_s_file_moves_back_to_its_own_folder(home: Home) -> None:
    """The other id's portrait moves back from the canonical id's folder to its own, and nothing is imported."""
    kept = await Kept.begin(home)
    await exchange(kept.store, heard(n=1, person=ANA))
    await exchange(kept.store, heard(n=1, at=THERE, person=OTHER))
    await kept.learn("of bees")
    await kept.archived("of owls", person=OTHER)
    await kept.store.people.link(ANA, OTHER)
    await kept.store.documents.set_model(OTHER, private(OTHER), "of more owls", "note", "owner", NOW)
    await kept.settle()
    together = files_of(home)

    await kept.store.people.unlink(ANA, NOW)
    rounds = [await kept.round() for _ in range(3)]
    await kept.end()

    assert together == {short_id(ANA): {"of bees", "of more owls"}}
    assert files_of(home) == {short_id(ANA): {"of bees"}, short_id(OTHER): {"of more owls"}}
    assert sum(done.imported for done in rounds) == 0


def files_of(home: Home) -> dict[str, set[str]]:
    """Return the files in each person's folder."""
    found: dict[str, set[str]] = {}
    for file in (home.memory / "users").glob("*/*.md"):
        found.setdefault(file.parent.name.rpartition("-")[2], set()).add(file.read_text("utf-8"))
    return found


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
