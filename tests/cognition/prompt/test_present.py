"""The present in every tail: the weekday, date, local time and zone, and how long the speaker was away."""

import sqlite3
from contextlib import closing

import pytest

from claudius.cognition.prompt.assembly import prompt_sha256
from claudius.cognition.prompt.snapshot import rebuild
from claudius.home import Home
from claudius.prompt import ago
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive
from minds import Clock, by_tag, minds, say

ROME = {"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Rome"}
HERE = "A direct message with Ana."
MINUTE, HOUR, DAY = 60, 3600, 86_400


def present(request: Request) -> str:
    """Return what a tail says of the present."""
    return request.tail.partition("## The Present\n")[2].partition("\n")[0]


def replayed(soul: Alive) -> list[bool]:
    """Return, for each turn, whether its prompt is rebuilt byte for byte."""
    records = soul.records()
    with closing(sqlite3.connect(f"file:{soul.home.database}?mode=ro", uri=True)) as kept:
        found = [records.turn(turn) for (turn,) in kept.execute("SELECT turn FROM turn ORDER BY number")]
    return [prompt_sha256(rebuild(one["snapshot"], records)) == one["prompt_sha256"] for one in found if one]


async def test_memory_s4_every_tail_names_the_present(home: Home) -> None:
    """S4: weekday, date, local time, zone, and how long ago this person last spoke here, however long it was."""
    voice, clock = Scripted(default=by_tag()), Clock()

    async with minds(home, voice, clock=clock, settings=ROME) as soul:
        await say(soul, "I am going to build a boat.")
        clock.forward(minutes=4)
        await say(soul, "It will be a small one.")
        clock.forward(days=21)
        await say(soul, "What do you think of larch for the planks?")
        turns = [one for one in voice.requests if "## The Present" in one.tail]

    assert [present(one) for one in turns] == [
        f"It is Monday, 5 January 2026, 13:00 (Europe/Rome). {HERE}",
        f"It is Monday, 5 January 2026, 13:04 (Europe/Rome). The speaker last spoke here four minutes ago. {HERE}",
        f"It is Monday, 26 January 2026, 13:04 (Europe/Rome). The speaker last spoke here three weeks ago. {HERE}",
    ]
    assert "2026" not in "".join(one.system for one in turns)


@pytest.mark.parametrize("mode", ["fused", "split"])
async def test_memory_s4_a_replay_takes_the_present_from_the_snapshot(home: Home, mode: str) -> None:
    """S4: neither a later clock nor another zone of the machine changes a byte of a kept turn."""
    voice, clock = Scripted(default=by_tag()), Clock()

    async with minds(home, voice, clock=clock, settings={**ROME, "CLAUDIUS_PIPELINE_MODE": mode}) as soul:
        await say(soul, "I am going to build a boat.")
        clock.forward(days=2)
        await say(soul, "It will be a small one.")

        assert "## The Present" in voice.requests[-1].tail + "".join(one.content for one in voice.requests[-1].history)
        assert replayed(soul) == [True, True]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a moment ago"),
        (89, "a moment ago"),
        (90, "two minutes ago"),
        (HOUR, "60 minutes ago"),
        (1.5 * HOUR, "two hours ago"),
        (1.5 * DAY, "two days ago"),
        (13 * DAY, "13 days ago"),
        (21 * DAY, "three weeks ago"),
        (61 * DAY, "two months ago"),
        (800 * DAY, "two years ago"),
    ],
)
def test_memory_s2_a_span_is_told_in_words(seconds: float, words: str) -> None:
    """S2, S4: the largest unit that fits; numbers up to twelve in words."""
    assert ago(seconds) == words
