"""A sentence typed in pieces is one turn, on Slack and on Discord; one piece that is deleted goes, and the others stay."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from both import Side
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.adapter_contract.stage import DM
from ear import echo


def lines(home: Home) -> list[str]:
    """Return what people said, as it is kept."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as kept:
        return [
            row[0]
            for row in kept.execute("SELECT content FROM entry WHERE entry_type = 'userMessage' ORDER BY number, n")
        ]


async def test_pieces_of_a_sentence_are_answered_once_and_each_can_be_deleted(side: Side, home: Home) -> None:
    """Two pieces in a direct message get one reply; once the first is deleted, its words are in no later prompt."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice, CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY="direct") as soul:
        first = await side.stage.say(DM, "my quokka")
        await side.stage.say(DM, "which pump did we order?")
        await side.stage.until_visible(1)
        await soul.idle()
        together = lines(home)
        await side.stage.delete(DM, [first])
        await side.stage.until_told()
        await soul.idle()
        await side.stage.say(DM, "And when does it come?")
        await side.stage.until_visible(2)
        await soul.idle()

    assert together == ["my quokka", "which pump did we order?"]
    assert len(await side.stage.visible()) == 2
    assert "quokka" in voice.requests[0].tail
    assert "quokka" not in str(voice.requests[-1])
    assert "which pump did we order?" in str(voice.requests[-1])
    assert lines(home)[:2] == ["", "which pump did we order?"]
