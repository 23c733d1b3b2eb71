"""Whom the soul has met is greeted once, wherever they write next."""

from datetime import UTC, datetime

import pytest

from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive
from minds import by_tag, minds, say

THREADS = [f"rehearsal:t:hall:{number}" for number in range(1, 6)]
ELSEWHERE = "rehearsal:t:yard:1"


def ran(soul: Alive) -> list[str]:
    """Return the process of each turn, oldest first."""
    found = soul.records().turns_between(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    return [str(one["process"]) for one in found]


async def processes(home: Home, *places: str) -> list[str]:
    """Have Ana write once in each place, one after the other; "" is her direct messages. Return what ran in each."""
    async with minds(home, Scripted(default=by_tag())) as soul:
        for place in places:
            await say(soul, "Is the bridge painted?", conversation=place, is_shared=bool(place))
        return ran(soul)


@pytest.mark.parametrize(
    "places", [(*THREADS, ELSEWHERE, ""), ("", *THREADS)], ids=["from a channel", "from direct messages"]
)
async def test_who_writes_in_many_places_is_greeted_once(home: Home, places: tuple[str, ...]) -> None:
    """A mention in a new thread, in another channel or a direct message after it is met by an ordinary process."""
    found = await processes(home, *places)

    assert found.count("greeting") == 1
    assert len(found) == len(places)


async def test_each_newcomer_is_greeted(home: Home) -> None:
    """Whom the soul has not met is greeted although it knows others; another account of whom it met is not."""
    async with minds(home, Scripted(default=by_tag())) as soul:
        await say(soul, "Is the bridge painted?")
        await say(soul, "Is the bridge painted?", person="ben")
        await soul.network.hear("!help", person="annie")
        await soul.idle()
        await soul.mind.store.people.link("rehearsal:t:ana", "rehearsal:t:annie")
        await say(soul, "It is me.", person="annie")
        processes_run = [one for one in ran(soul) if one != "None"]

    assert processes_run == ["greeting", "greeting", "main_process"]
