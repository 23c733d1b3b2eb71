"""A13: what was asked for comes at its hour, what the soul promised waits for the listener's morning; both are said."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from living import Days, lived
from minds import by_tag, heard

SETTINGS = {
    "CLAUDIUS_CLOCK_TIMEZONE": "UTC",
    "CLAUDIUS_CLOCK_QUIET": "21:00-08:00",
    "CLAUDIUS_OWNERS": "rehearsal:t:owner",
}
QUARTER = timedelta(minutes=15)


def obedient(acts: dict[str, list[dict[str, Any]]]) -> Callable[[Request], str]:
    """Write the acts of what was said, and answer the clock in words alone."""

    def reply(request: Request) -> str:
        said = heard(request)[-1] if heard(request) else ""
        lines = "\n".join(map(json.dumps, acts.get(said, []))) or "none"
        return by_tag(acts=lines, external_dialogue="Yes." if '"kind":"message"' in request.tail else "It is time.")(
            request
        )

    return reply


def played(home: Home, story: Any, acts: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Play a story; return when the clock made the soul speak, by the wall of Rome; each time was introduced as what it is."""
    days = lived(home, Scripted(default=obedient(acts)), story, SETTINGS)
    told = [
        one.tail for one in days.voice.requests if '"kind":"scheduled"' in one.tail and "external_dialogue" in one.tail
    ]
    assert all("what they asked of you here" in tail or "what you said you would do here" in tail for tail in told)
    times = [f"{at:%d %H:%M}" for at, _, post in days.network.posts if post == "It is time."]
    assert len(times) == len(told)
    return times


REMIND = {"do": "remind", "at": "2026-01-06T02:00", "text": "turn off the kiln"}
PROMISE = {"do": "promise", "at": "2026-01-06T02:00", "text": "send the recipe"}


@pytest.mark.parametrize("room", ["", "room"])
def test_at_night_what_was_asked_for_is_said_and_a_promise_waits(home: Home, room: str) -> None:
    """A13: said at two; promised for two, and said between eight and half past, in a room as well."""

    async def story(days: Days) -> None:
        """Ask, and go to sleep."""
        await days.says("owner", "!ensoul on", "room", mentions=True)
        await days.until(1, "20:00", timedelta(hours=1))
        await days.says("ana", "Tonight, please.", room, mentions=bool(room))
        await days.until(2, "10:00", QUARTER)

    first, second = played(home, story, {"Tonight, please.": [REMIND, PROMISE]})

    assert first == "06 02:00"
    assert "06 08:00" <= second <= "06 08:30"


def test_night_is_where_the_listener_says_that_they_are(home: Home) -> None:
    """The act `zone` counts from that turn on, for acts after it and for quiet hours."""
    there = {"do": "zone", "zone": "Asia/Tokyo"}
    promise = {"do": "promise", "at": "2026-01-06T07:00", "text": "send the recipe"}

    async def story(days: Days) -> None:
        """Tell of Tokyo, at 9:00 in Rome and 17:00 there."""
        await days.says("ana", "I am in Tokyo.")
        await days.until(2, "10:00", QUARTER)

    (only,) = played(home, story, {"I am in Tokyo.": [there, promise]})

    assert "06 00:00" <= only <= "06 00:30"  # 8:00 in Tokyo, and the share of half an hour


def test_a_repetition_goes_on_after_each_time(home: Home) -> None:
    """Weekdays at nine, over a week-end."""
    act = {"do": "remind", "at": "2026-01-08T09:00", "text": "stretch", "repeat": "weekdays"}

    async def story(days: Days) -> None:
        """Ask on Monday, and see a week and a half."""
        await days.says("ana", "Each day, please.")
        await days.until(10, "10:00", timedelta(hours=1))

    assert played(home, story, {"Each day, please.": [act]}) == [
        f"{day} 09:00" for day in ("08", "09", "12", "13", "14")
    ]
