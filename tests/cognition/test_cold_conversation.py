"""A conversation that left memory costs what any other does, because the stems of its words are kept with them."""

import sqlite3
from contextlib import closing

from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.providers.scripted import Scripted
from claudius.psyche import words
from claudius.testing.alive import Alive, alive
from minds import by_tag, say

LINES = (
    "The bridge needs new ropes before winter",
    "Claudius, the boat in the harbour leaks again",
    "My sister bakes walnut cakes on Sundays",
    "Tell me of old locks with brass wards",
)
NOW = 2
"""What is said now, with and without the soul's name."""


def forget_all_but_rows(soul: Alive) -> None:
    """Drop everything that is cached in memory."""
    assert isinstance(soul.mind.store, SqliteStore)
    soul.mind.store.turns.shelf.clear()
    for worked_out in (words.tokens, words.content, words.stems, words.stem):
        worked_out.cache_clear()


async def test_earlier_messages_are_not_stemmed_again(home: Home) -> None:
    """Counted: a cold turn stems what is said now, and no earlier message."""
    async with alive(home, Scripted(default=by_tag())) as soul:
        for line in LINES:
            await say(soul, line)
        forget_all_but_rows(soul)
        await say(soul, "And what of the ropes of my bridge?")
        read = words.stems.cache_info().misses

    assert read == NOW


async def test_a_cold_turn_weighs_what_is_heard_as_a_warm_one(home: Home) -> None:
    """The kept stems give the same novelty and importance as a new computation."""
    told = {}
    for is_cold in (False, True):
        place = Home(home.root / str(is_cold))
        place.create()
        async with alive(place, Scripted(default=by_tag())) as soul:
            for line in LINES:
                await say(soul, line)
            if is_cold:
                forget_all_but_rows(soul)
            await say(soul, "And what of the ropes of my bridge?")
            found = soul.records().turn(_last(place))
            assert found
            told[is_cold] = found["attention"]["features"]

    assert told[True] == told[False]


async def test_an_edited_message_loses_the_stems_of_its_old_words(home: Home) -> None:
    """Stems of deleted words are not kept: the row has none until its new words are read."""
    async with alive(home, Scripted(default=by_tag())) as soul:
        await say(soul, LINES[0])
        with closing(sqlite3.connect(home.database)) as kept:
            (before,) = kept.execute("SELECT stems FROM entry WHERE entry_type = 'userMessage'").fetchone()
            row = kept.execute("SELECT conversation, number, position FROM entry WHERE person IS NOT NULL").fetchone()
        store = soul.mind.store
        assert isinstance(store, SqliteStore)
        values = {
            "conversation": row[0],
            "number": row[1],
            "position": row[2],
            "content": "It holds",
            "mark": "$.edited",
        }
        await store.core.write(lambda db: db.run("entry_amended", **values))
        with closing(sqlite3.connect(home.database)) as kept:
            (after,) = kept.execute("SELECT stems FROM entry WHERE entry_type = 'userMessage'").fetchone()

    assert "bridge" in before.split()
    assert after == ""


def _last(home: Home) -> str:
    with closing(sqlite3.connect(home.database)) as kept:
        return str(kept.execute("SELECT turn FROM turn ORDER BY at DESC, number DESC").fetchone()[0])
