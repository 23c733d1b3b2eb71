"""News become a first post: told to whom they concern, if they touch what is on its mind, by day, with consent, once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from living import felt
from minds import Clock, by_tag

DM, TOKEN = "rehearsal:t:dm-ana:", "a-token-of-forty-characters-for-this-door"
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ON = {
    "CLAUDIUS_PSYCHE_PROACTIVE": "1",
    "CLAUDIUS_CLOCK_TIMEZONE": "UTC",
    "CLAUDIUS_HTTP_LISTEN": "127.0.0.1:0",
    "CLAUDIUS_HTTP_TOKEN": TOKEN,
}
TALK = (
    "The release pipeline is stuck again.",
    "Is it the signing step of the pipeline?",
    "The release has to go out on Thursday, with or without that pipeline.",
    "Could we sign the release by hand?",
    "The pipeline lost its key, so no release can be signed.",
    "I asked for a new key for the pipeline.",
)
ROLLBACK = {"id": "ci-1", "text": "Rollback of the release pipeline.", "conversation": DM}
TOLD = "The pipeline was rolled back."


@asynccontextmanager
async def talked(
    home: Home, wall: Clock, *, consent: bool = True, settings: dict[str, str] | None = None, clean: bool = True
) -> AsyncIterator[tuple[Alive, Scripted]]:
    """Yield a soul that has talked with Ana about a release, and the model that answers it."""
    named = '{"do": "open", "text": "the release pipeline is stuck"}'
    voice = Scripted(default=by_tag(external_dialogue=TOLD, appraisal="hurtful", acts=named))
    more = ON | (settings or {})
    awake = alive(home, voice, settings=more, clock=wall, running=wall.running, keeps_clock=True, clean=clean)
    async with awake as soul:
        if consent:
            await soul.network.hear("!proactive on")
            await soul.idle()
        for text in TALK:
            wall.now += timedelta(minutes=1)
            said = len(soul.network.visible)
            await soul.network.hear(text)
            await soul.until_said(said + 1)
        yield soul, voice


async def post(soul: Alive, news: dict[str, str] = ROLLBACK) -> dict[str, Any]:
    """Bring news to the soul's endpoint."""
    url = f"http://127.0.0.1:{soul.services._door.port}/api/event"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession() as client, client.post(url, json=news, headers=headers) as answer:
        assert answer.status == 202
        return dict(await answer.json())


async def settle(soul: Alive) -> None:
    """Wait until nothing is open, and no plan is due."""
    query = "SELECT count(*) FROM inbox WHERE state NOT IN ('settled', 'dead')"
    async with asyncio.timeout(20):
        while True:
            soul.server.tick()
            await asyncio.sleep(0.005)
            await soul.idle()
            now, records = soul.mind.clock(), soul.records()
            is_open = records._db.connection.execute(query).fetchone()[0]
            is_due = [plan for plan in records.plans() if datetime.fromisoformat(plan["due_at"]) <= now]
            records.close()
            if not is_open and not is_due:
                return


def about_news(voice: Scripted) -> list[Request]:
    """Return the calls that ask whether to tell news."""
    return [one for one in voice.requests if "it stands above as news" in one.tail]


def first_posts(soul: Alive) -> list[tuple[str, str]]:
    """Return where and what the soul wrote first."""
    rows = soul.records()._db.connection.execute("SELECT conversation, body FROM outbox WHERE kind = 'proactive'")
    return [tuple(row) for row in rows]


async def test_news_that_touch_its_mind_are_told_there_once(home: Home) -> None:
    """By day, to a person who agreed: one call, one post in that conversation; the same news again change nothing."""
    wall = Clock(NOON)
    async with talked(home, wall) as (soul, voice):
        wall.now += timedelta(hours=2)
        stored = [(await post(soul))["stored"]]
        await settle(soul)
        stored.append((await post(soul))["stored"])
        wall.now += timedelta(hours=1)
        await settle(soul)
        calls, told = about_news(voice), first_posts(soul)

    assert stored == [True, False]
    assert told == [(DM, TOLD)]
    assert len(calls) == 1
    assert any('"kind":"news"' in one.content for one in calls[0].history)


NOTHING: list[tuple[str, dict[str, str], bool, dict[str, str]]] = [
    ("off", {"CLAUDIUS_PSYCHE_PROACTIVE": "0"}, True, ROLLBACK),
    ("no consent", {}, False, ROLLBACK),
    ("of no concern", {}, True, ROLLBACK | {"text": "The gardening fair opens."}),
]


@pytest.mark.parametrize(
    ("settings", "consent", "news"), [case[1:] for case in NOTHING], ids=[case[0] for case in NOTHING]
)
async def test_news_are_not_told_unwanted_or_without_reason(
    home: Home, settings: dict[str, str], news: dict[str, str], *, consent: bool
) -> None:
    """With the setting off, without a yes, or where it touches nothing: no model is asked, and nothing is said."""
    wall = Clock(NOON)
    async with talked(home, wall, consent=consent, settings=settings) as (soul, voice):
        seen = len(soul.network.visible)
        wall.now += timedelta(hours=2)
        await post(soul, news)
        await settle(soul)
        wall.now += timedelta(hours=20)
        await settle(soul)
        calls, told = about_news(voice), first_posts(soul)

    assert (calls, told) == ([], [])
    assert len(soul.network.visible) == seen


async def test_news_at_night_wait_for_the_morning(home: Home) -> None:
    """What comes at 22:00 is told between 08:00 and 08:30, once; by night no model is asked."""
    wall = Clock(NOON)
    async with talked(home, wall) as (soul, voice):
        wall.now = NOON.replace(hour=22)
        await post(soul)
        await settle(soul)
        by_night = (about_news(voice), first_posts(soul))
        planned = [datetime.fromisoformat(one["due_at"]) - NOON for one in soul.records().plans()]
        wall.now = NOON + timedelta(hours=20, minutes=31)
        await settle(soul)
        in_the_morning = first_posts(soul)

    assert by_night == ([], [])
    assert len(planned) == 1
    assert timedelta(hours=20) <= planned[0] <= timedelta(hours=20, minutes=30)
    assert in_the_morning == [(DM, TOLD)]


async def test_news_in_the_middle_of_a_talk_wait_until_it_is_over(home: Home) -> None:
    """No one is interrupted: what comes a minute after their last word is told half an hour after it."""
    wall = Clock(NOON)
    async with talked(home, wall) as (soul, _):
        wall.now += timedelta(minutes=1)
        await post(soul)
        await settle(soul)
        at_once = first_posts(soul)
        wall.now += timedelta(minutes=29)
        await settle(soul)
        then = first_posts(soul)

    assert at_once == []
    assert then == [(DM, TOLD)]


async def test_what_tells_of_news_knows_whom_it_tells(home: Home) -> None:
    """The call about news holds the relation to the one person there, as a message of theirs would."""
    wall = Clock(NOON)
    async with talked(home, wall) as (soul, voice):
        wall.now += timedelta(hours=2)
        await post(soul)
        await settle(soul)
        (asked,) = about_news(voice)

    assert "Ana" in felt(asked)["text"]
