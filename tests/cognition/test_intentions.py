"""Intentions act: a follow-up plans itself by the rules of writing first, others colour the next plan, done ones close."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.runtime.scheduler import fire_due
from claudius.testing.alive import Alive, alive
from minds import by_tag, heard

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ANA = "rehearsal:t:ana"
ON = {"CLAUDIUS_PSYCHE_PROACTIVE": "1", "CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
ASKS = "Could you look at my kiln drawing again some day?"
SINCE = (
    '{"operation": "create", "type": "follow_up", "target": "Ana", "horizon": "medium", "description": "ask how the kiln '
    'drawing turned out"}'
)
MENDS = (
    '{"operation": "create", "type": "repair", "target": "Ana", "horizon": "medium", "description": "you were short with '
    'her"}'
)


class Wall:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = self.began = NOW

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def running(self) -> float:
        """Return how long the machine has been running."""
        return (self.now - self.began).total_seconds()


def voice(line: str, said: Callable[[Request], str] = lambda _: "So it is.") -> Scripted:
    """Return a provider that forms an intention when it is asked for help."""

    def intend(request: Request) -> str:
        return line if ASKS in heard(request) else "none"

    return Scripted(default=by_tag(intention_updates=intend, external_dialogue=said))


def intentions(soul: Alive) -> list[str]:
    """Return the types of the intentions that stand."""
    rows = soul.records()._db.connection.execute("SELECT json_extract(body, '$.type') FROM psyche_intention").fetchall()
    return [row[0] for row in rows]


def changes(soul: Alive) -> list[Any]:
    """Return what each turn says of an intention that it carried out."""
    turns = soul.records()._db.connection.execute("SELECT turn FROM turn ORDER BY record").fetchall()
    found = [(soul.records().turn(row[0]) or {}).get("changes", {}) for row in turns]
    return [one["intention"] for one in found if "intention" in one]


async def pass_days(soul: Alive, wall: Wall, days: int) -> None:
    """Let days pass, in steps of six hours."""
    for _ in range(4 * days):
        wall.now += timedelta(hours=6)
        await fire_due(wall.now, soul.mind, soul.server.wake)
        await soul.idle()


async def said_to(soul: Alive, text: str, number: int) -> None:
    """Have Ana say something, and wait until it is answered."""
    await soul.network.hear(text)
    await soul.network.until_visible(number)
    await soul.idle()


async def test_a_follow_up_comes_back_once_by_day_and_is_done(home: Home) -> None:
    """With consent it is written first three days later, outside the quiet hours; `why` says that it is done."""
    wall = Wall()
    async with alive(home, voice(SINCE), settings=ON, clock=wall, running=wall.running) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=wall.now)
        await said_to(soul, ASKS, 1)
        before = intentions(soul)
        await pass_days(soul, wall, 8)
        posts, left, told = len(soul.network.visible), intentions(soul), changes(soul)
        rows = soul.records()._db.connection.execute("SELECT at, kind FROM outbox ORDER BY at").fetchall()

    assert (before, left) == (["follow_up"], [])
    assert posts == 2
    assert [row[1] for row in rows] == ["reply", "proactive"]
    assert 8 <= datetime.fromisoformat(rows[1][0]).hour < 21
    assert told == ["done: follow up ask how the kiln drawing turned out"]


async def test_a_follow_up_that_waited_for_the_morning_is_done_though_its_day_was_over(home: Home) -> None:
    """Formed at 03:00 for the next day, due by night, written in the morning after it has faded: `why` says it is done."""
    wall = Wall()
    wall.now = wall.began = NOW.replace(hour=3)
    async with alive(
        home, voice(SINCE.replace("medium", "short")), settings=ON, clock=wall, running=wall.running
    ) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=wall.now)
        await said_to(soul, ASKS, 1)
        await pass_days(soul, wall, 3)
        posts, left, told = len(soul.network.visible), intentions(soul), changes(soul)

    assert (posts, left) == (2, [])
    assert told == ["done: follow up ask how the kiln drawing turned out"]


async def test_a_follow_up_plans_nothing_without_consent_or_leave(home: Home) -> None:
    """Without the person's yes nothing is asked of a model; with the setting off nothing is even planned."""
    for settings, plans in ((ON, 1), (ON | {"CLAUDIUS_PSYCHE_PROACTIVE": "0"}, 0)):
        wall, mouth = Wall(), voice(SINCE)
        place = Home(home.root / str(plans))
        place.create()
        async with alive(place, mouth, settings=settings, clock=wall, running=wall.running) as soul:
            await said_to(soul, ASKS, 1)
            planned = len([one for one in soul.records().plans() if one["process"] == "proactive"])
            asked = len(mouth.requests)
            await pass_days(soul, wall, 8)

            assert planned == plans
            assert len(mouth.requests) == asked
            assert len(soul.network.visible) == 1


async def test_what_is_spoken_of_needs_no_plan_any_more(home: Home) -> None:
    """Once the soul has come back to it in talk, the intention is done and its plan is gone."""
    wall = Wall()
    mouth = voice(
        SINCE, lambda request: "How did the kiln drawing turn out?" if "Hello" in heard(request)[-1] else "Yes."
    )
    async with alive(home, mouth, settings=ON, clock=wall, running=wall.running) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=wall.now)
        await said_to(soul, ASKS, 1)
        await said_to(soul, "Hello again, it was a long day.", 2)
        left, plans = intentions(soul), [one for one in soul.records().plans() if one["process"] == "proactive"]

    assert (left, plans) == ([], [])


async def test_what_is_to_be_mended_colours_the_next_plan_until_it_is_mended(home: Home) -> None:
    """The next answer is asked to mend; once the soul has said sorry, nothing asks for it and `why` says so."""
    wall = Wall()
    mouth = voice(
        MENDS, lambda request: "I am sorry that I was short." if "This time, mend" in request.tail else "Yes."
    )
    async with alive(home, mouth, settings=ON, clock=wall, running=wall.running) as soul:
        await said_to(soul, ASKS, 1)
        await said_to(soul, "Ana here, what about the glaze of the kiln?", 2)
        await said_to(soul, "Ana here, and which clay would you take?", 3)
        left, told = intentions(soul), changes(soul)
    coloured = ["This time, mend" in request.tail for request in mouth.requests if request.purpose == "turn"]

    assert coloured == [False, True, False]
    assert left == []
    assert told == ["done: repair you were short with her"]
