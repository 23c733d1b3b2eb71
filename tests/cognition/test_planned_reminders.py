"""Forty plain requests for a reminder and twenty pleasantries: each request is planned, for its time, and said so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from minds import Clock, by_tag

TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parents[1] / "lab" / "reminder_requests.toml").read_text("utf-8"))
REQUESTS: Sequence[tuple[str, datetime]] = [(one["says"], one["due"]) for one in TABLE["request"]]
PLEASANTRIES: Sequence[str] = TABLE["pleasantries"]
UTC_CLOCK = {"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}


def replying(request: Request) -> str:
    """Answer each person with the pleasantry of their number."""
    number = re.search(r'"from":"\w+-(\d+)"', request.tail.rpartition("## Current Message")[2])
    assert number
    return PLEASANTRIES[int(number[1])]


@pytest.mark.parametrize("each", [2, pytest.param(len(PLEASANTRIES), marks=pytest.mark.slow)])
async def test_forty_requests_times_twenty_pleasantries(home: Home, each: int) -> None:
    """All eight hundred are planned for the time that was asked for: none is dropped, none invented.

    On a push each request meets two pleasantries, and each pleasantry four requests.
    """
    voice = Scripted(default=by_tag(external_dialogue=replying))
    languages = ["english"] * 20 + ["german"] * 20  # the same thing asked for twice at one time would be one plan
    asking = [
        (says, f"{language}-{number}")
        for place, ((says, _), language) in enumerate(zip(REQUESTS, languages, strict=True))
        for number in [(place * each + step) % len(PLEASANTRIES) for step in range(each)]
    ]
    async with alive(home, voice, clock=Clock(), settings=UTC_CLOCK) as soul:
        for says, person in asking:
            await soul.network.hear(says, person=person)
        await soul.idle()
        plans = list(soul.records().plans())
        said = [one.text for one in soul.network.visible]

    assert len(plans) == len(REQUESTS) * each
    planned = {(one["conversation"], one["params"]["what"], one["due_at"]) for one in plans}
    due = dict(REQUESTS)
    wanted = {(f"rehearsal:t:dm-{person}:", says, f"{due[says]:%Y-%m-%dT%H:%M:%S.%fZ}") for says, person in asking}
    assert planned == wanted
    assert all(re.search(r"\d\d:\d\d", one) for one in said)


async def test_what_asks_for_no_reminder_plans_none(home: Home) -> None:
    """A line that names a time is no request by that: nothing is invented, and nothing is added to the reply."""
    lines: Sequence[str] = TABLE["other"][0]["says"]
    voice = Scripted(default=by_tag(external_dialogue=replying))
    async with alive(home, voice, clock=Clock(), settings=UTC_CLOCK) as soul:
        for number, line in enumerate(lines):
            await soul.network.hear(line, person=f"other-{number % len(PLEASANTRIES)}")
        await soul.idle()
        plans = list(soul.records().plans())
        said = {one.text for one in soul.network.visible}

    assert plans == []
    assert said <= set(PLEASANTRIES)


async def answered(home: Home, asked: str, said: str, settings: dict[str, str] = UTC_CLOCK) -> list[str]:
    """Say one line and have the model answer with another. Returns what is posted."""
    async with alive(home, Scripted(default=by_tag(external_dialogue=said)), clock=Clock(), settings=settings) as soul:
        await soul.network.hear(asked)
        await soul.network.until_visible(1)
        await soul.idle()
        entries = (soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]
        posts = [one.text for one in soul.network.visible]
        assert [one["content"] for one in entries if one["entry_type"] == "externalDialog"][-1] == posts[-1]
        return posts


@pytest.mark.parametrize(
    ("asked", "said", "posts"),
    [
        ("Remind me in half an hour.", "Gladly.", ["Gladly. I will remind you at 12:30."]),
        ("Remind me in 30 seconds.", "Gladly.", ["Gladly. I will remind you at 12:00:30."]),
        ("Remind me tomorrow at 9.", "Shall I?", ["Shall I?\n\nI will remind you tomorrow at 09:00."]),
        ("Remind me on 3 May.", "Yes.", ["Yes. I will remind you on Sunday, 3 May, at 09:00."]),
        ("Remind me in a year.", "Yes.", ["Yes. I will remind you on 5 January 2027 at 12:00."]),
        ("Erinnere mich morgen um 9.", "Gern.", ["Gern. Ich erinnere dich morgen um 09:00 Uhr."]),
        ("Remind me at 5.", "I will remind you at 17:00.", ["I will remind you at 17:00."]),
        ("Remind me at 5.", "I'll ping you at 5 pm.", ["I'll ping you at 5 pm."]),
        ("Remind me tomorrow at nine.", "I'll remind you tomorrow at nine.", ["I'll remind you tomorrow at nine."]),
        ("Remind me in an hour.", "At 3 then.", ["At 3 then. I will remind you at 13:00."]),
        (
            "Remind me every Monday at 9.",
            "Yes.",
            ["Yes. I will remind you on Monday, 12 January, at 09:00, once: I keep no reminder that repeats."],
        ),
        ("Remind me to stretch.", "Gladly.", ["Gladly. When shall I remind you?"]),
        ("Remind me to stretch.", "When?", ["When?"]),
        ("Remind me at 5.", "I cannot keep time here.", ["I cannot keep time here."]),
        ("Remind me at 5.", "Nein, das kann ich nicht.", ["Nein, das kann ich nicht."]),
        ("Remind me at 5.", "x" * 1890, ["x" * 1890, "I will remind you at 17:00."]),
    ],
)
async def test_the_time_is_said_by_code(home: Home, asked: str, said: str, posts: list[str]) -> None:
    """A planned reminder is said with its time, in the language of the request, unless the reply says it itself.

    Where no time was named, the reply asks for it. A refusal is left as it is. Memory holds what was posted.
    """
    assert await answered(home, asked, said) == posts


@pytest.mark.parametrize("said", ["Gladly.", "Gladly. When?"])
async def test_a_time_that_was_asked_for_completes_the_request(home: Home, said: str) -> None:
    """A request without a time, then the time alone, is one reminder; a time that nobody asked for is none."""
    voice = Scripted(default=by_tag(external_dialogue=said))
    async with alive(home, voice, clock=Clock(), settings=UTC_CLOCK) as soul:
        for count, line in enumerate(("Remind me to stretch.", "In 10 minutes.", "In 20 minutes."), 1):
            await soul.network.hear(line)
            await soul.network.until_visible(count)
            await soul.idle()
        plans = [(one["params"]["what"], one["due_at"][:16]) for one in soul.records().plans()]
        told = [one.text for one in soul.network.visible]

    assert plans[:1] == [("Remind me to stretch.", "2026-01-05T12:10")]
    assert "12:10" in told[1]
    assert len(plans) == 1


async def test_the_time_is_said_in_the_speakers_zone(home: Home) -> None:
    """Half past twelve in London is half past one in Berlin."""
    settings = {"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Berlin"}

    assert await answered(home, "Remind me in half an hour.", "Yes.", settings) == ["Yes. I will remind you at 13:30."]


async def test_a_reminder_that_was_asked_of_a_reaction_is_planned_in_words(home: Home) -> None:
    """Where the soul would only nod at a request, the reminder is planned and its time said instead."""
    nod = by_tag(external_dialogue="", chosen_action="react: +1")
    async with alive(home, Scripted(default=nod), clock=Clock(), settings=UTC_CLOCK) as soul:
        await soul.network.hear("ok, thanks! Remind me in 10 minutes.")
        await soul.network.until_visible(1)
        await soul.idle()
        plans = [one["due_at"][:16] for one in soul.records().plans()]

    assert plans == ["2026-01-05T12:10"]
