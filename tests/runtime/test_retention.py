"""Retention for `memory.records_days`: old records go in quiet hours, space is returned, the rest stays true."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from claudius.cognition.prompt.assembly import prompt_sha256
from claudius.cognition.prompt.snapshot import rebuild
from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from minds import Wall, by_tag

NIGHT, DAY = "2026-03-02T03:00:00", "2026-03-02T12:00:00"
QUIET = {"CLAUDIUS_CLOCK_TIMEZONE": "UTC", "CLAUDIUS_CLOCK_QUIET": "22:00-08:00"}
OLD, NEW = ("Hello, how are you?", "You are useless", "thanks!"), ("I build bridges in Rome", "Well done, you!")


async def look(soul: Alive, wall: Wall) -> None:
    """Run the scheduler once, and wait until the jobs that it starts are done."""
    assert soul.services
    await soul.services.look(wall.now)
    await soul.idle()


def outcomes(home: Home) -> list[str]:
    """Return the outcome of each run of the job, oldest first."""
    with closing(sqlite3.connect(home.database)) as kept:
        rows = kept.execute(
            "SELECT reason FROM inbox WHERE conversation = 'self:claudius:inner:records' AND state = 'settled' ORDER BY seq"
        )
        return [reason for (reason,) in rows]


def awake(home: Home, wall: Wall, **settings: str) -> Any:
    """Start a soul with its scheduler."""
    voice = Scripted(default=by_tag())
    return alive(home, voice, clock=wall, running=wall.running, settings=QUIET | settings, keeps_clock=True)


async def say(soul: Alive, *lines: str, wall: Wall) -> None:
    """Say some lines, ten minutes apart, each answered."""
    for line in lines:
        answered = len(soul.network.visible)
        await soul.network.hear(line, person="ana")
        await soul.until_said(answered + 1)
        wall.passes(minutes=10)


def turns(home: Home) -> list[tuple[str, str]]:
    """Return every recorded turn, oldest first: its id and its instant."""
    with closing(sqlite3.connect(home.database)) as kept:
        return kept.execute("SELECT turn, at FROM turn WHERE audience <> 'self' ORDER BY at").fetchall()


def number(home: Home, sql: str) -> int:
    """Query the database for one number."""
    with closing(sqlite3.connect(home.database)) as kept:
        return int(kept.execute(sql).fetchone()[0])


async def test_what_is_past_its_time_goes_at_night_and_the_rest_stays_true(home: Home) -> None:
    """Old records and traces are deleted; `why` says when; later turns replay; what is felt stays."""
    wall = Wall(DAY)
    async with awake(home, wall) as soul:
        await say(soul, *OLD, wall=wall)
        wall.passes(days=200)
        await say(soul, *NEW, wall=wall)
        wall.passes(days=166, hours=2)
        await look(soul, wall)
        felt = soul.records().psyche()
        by_day = soul.records().turn(turns(home)[0][0])
        wall.passes(hours=13)
        await look(soul, wall)
        records = soul.records()
        found = [records.turn(turn) for turn, _ in turns(home)]
        kept = [one for one in found if one and one["snapshot"]]
        felt_after = records.psyche()
        replayed = [prompt_sha256(rebuild(one["snapshot"], records)) for one in kept]

    assert by_day is not None
    assert by_day["expired_at"] is None, "nothing may be deleted outside quiet hours"
    old, new = found[: len(OLD)], found[len(OLD) :]
    assert all(one and one["expired_at"] == "2027-03-04T" + one["expired_at"][11:] for one in old)
    assert all(one and not (one["snapshot"] or one["thoughts"] or one["attention"] or one["response"]) for one in old)
    assert all(one and one["utterance"] and one["expired_at"] is None for one in new)
    assert replayed == [one["prompt_sha256"] for one in kept] != []
    assert number(home, "SELECT count(*) FROM psyche_trace") == len(NEW) + 1  # and a look inward
    assert [edge.person for edge in felt_after[0].edges] == [edge.person for edge in felt[0].edges] != []
    assert number(home, "PRAGMA freelist_count") == 0
    assert outcomes(home)[-1] == f"{len(OLD)} records are past their time"


async def test_nothing_goes_where_the_owner_keeps_it_for_ever(home: Home) -> None:
    """`memory.records_days = 0`: a record that is ten years old still replays."""
    wall = Wall(DAY)
    async with awake(home, wall, CLAUDIUS_MEMORY_RECORDS_DAYS="0") as soul:
        await say(soul, *NEW, wall=wall)
        wall.passes(days=3650, hours=15)
        await look(soul, wall)
        records = soul.records()
        found = [records.turn(turn) for turn, _ in turns(home)]

    assert all(one and one["snapshot"] and not one["expired_at"] for one in found)
    assert number(home, "SELECT count(*) FROM psyche_trace") == len(NEW) + 1  # and a look inward


async def test_a_prompt_that_shows_a_turn_past_its_time_is_past_its_time_too(home: Home) -> None:
    """A record that refers to deleted turns cannot be replayed: `replay` says so and leaves nothing out silently."""
    wall = Wall(NIGHT)
    async with awake(home, wall) as soul:
        await say(soul, *NEW, wall=wall)
        store = soul.mind.store
        assert await store.turns.expire_records(wall.now - timedelta(minutes=15), wall.now, 10) == 1
        assert await store.turns.expire_records(wall.now - timedelta(minutes=15), wall.now, 10) == 0
        records = soul.records()
        later = records.turn(turns(home)[-1][0])

        assert later is not None
        with pytest.raises(LookupError, match="2026-03-02"):
            rebuild(later["snapshot"], records)


async def test_summaries_that_only_old_turns_showed_go_with_them(home: Home) -> None:
    """A text that several snapshots share stays while one of them is kept; the soul's own text stays."""
    wall = Wall(DAY)
    async with awake(home, wall, CLAUDIUS_HISTORY_BUDGET_TOKENS="200", CLAUDIUS_MEMORY_WINDOW="2") as soul:
        await say(soul, *(f"{line} {n}, and more words than fit" for n in range(4) for line in OLD), wall=wall)
        shared = number(home, "SELECT count(*) FROM blob")
        store = soul.mind.store
        assert await store.turns.expire_records(wall.now - timedelta(minutes=15), wall.now, 100) == 11
        partly = number(home, "SELECT count(*) FROM blob")
        assert await store.turns.expire_records(wall.now, wall.now, 100) == 1

    assert shared > 3
    assert partly == 2
    assert number(home, "SELECT count(*) FROM blob") == 1


async def test_free_pages_are_given_back_in_small_steps(home: Home) -> None:
    """Each step moves as many pages as it was told, so that no writer waits for the whole file."""
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    await store.core.write(lambda db: db.connection.execute("CREATE TABLE much (it BLOB)"))
    await store.core.write(lambda db: db.connection.execute("INSERT INTO much VALUES (zeroblob(400000))"))
    await store.core.write(lambda db: db.connection.execute("DELETE FROM much"))

    before = await store.give_back(0)
    left = await store.give_back(10)
    await store.close(clean=True)

    assert before >= 90
    assert left == before - 10


async def test_a_file_of_older_days_is_written_anew_once(tmp_path: Path) -> None:
    """At the next start a database made without this feature is rewritten once, so that it can return pages."""
    home = Home(tmp_path)
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    await store.close(clean=True)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as old:
        old.execute("PRAGMA auto_vacuum = NONE")
        old.execute("VACUUM")
        assert old.execute("PRAGMA auto_vacuum").fetchone() == (0,)

    await store.open()
    await store.close(clean=True)

    assert number(home, "PRAGMA auto_vacuum") == 2
    assert number(home, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") == 1


async def test_a_day_on_which_nobody_speaks_costs_two_calls_and_the_rest_is_summarised_when_somebody_does(
    home: Home,
) -> None:
    """Eight direct messages of one day: their summaries take two calls of each later day; speech opens the gate."""
    wall = Wall(DAY)
    async with awake(home, wall) as soul:
        asked = soul.mind.provider.requests
        for n in range(8):
            await soul.network.hear("I build bridges in Rome", person=f"p{n}", conversation=f"rehearsal:dm:{n}:")
            await soul.idle()
        await look(soul, wall)
        wall.passes(hours=73)
        days = []
        for _ in range(3):
            before = len(asked)
            for _ in range(24):
                await look(soul, wall)
                wall.passes(hours=1)
            days.append(len(asked) - before)
        await soul.network.hear("Hello again", person="p9", conversation="rehearsal:dm:9:")
        for _ in range(3):
            await soul.idle()
            await look(soul, wall)
            wall.passes(hours=1)

    assert all(1 <= calls <= 2 for calls in days), days
    assert number(home, "SELECT count(*) FROM step") == len(asked), "each call is paid for"
    assert number(home, "SELECT count(*) FROM conversation WHERE entries > 0 AND conversation LIKE '%:dm:%'") == 1
