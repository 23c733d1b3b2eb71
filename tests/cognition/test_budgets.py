"""Budgets: of the day, the month, a person and a channel. The tightest binds, and what is saved on goes in one order."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from claudius.cognition.mind import Stage, stage
from claudius.home import Home
from claudius.provider import Usage
from claudius.providers.scripted import DEFAULT, Line, Scripted
from claudius.testing.alive import Alive, alive

COSTLY = Line(deltas=(DEFAULT,), usage=Usage(output_tokens=1, cost_usd=2.0))
ROOM, OTHER = "rehearsal:t:room:", "rehearsal:t:other:"


async def says(soul: Alive, person: str, room: str = "") -> str:
    """Have a person speak, directly or in a room; return the answer."""
    before = len(soul.network.visible)
    await soul.network.hear("hello", person=person, conversation=room, is_shared=bool(room))
    await soul.idle()
    return "".join(one.text for one in soul.network.visible[before:])


@pytest.mark.parametrize("cap", ["DAILY_USD", "MONTHLY_USD"])
async def test_a_cap_of_the_soul_holds_for_everyone(cap: str, home: Home) -> None:
    """Once a day's or a month's budget is spent, everybody is refused politely, without a model call."""
    voice = Scripted(default=COSTLY)
    async with alive(home, voice, settings={f"CLAUDIUS_BUDGET_{cap}": "1"}) as soul:
        await says(soul, "ana")
        refused = await says(soul, "ben")

    assert len(voice.requests) == 1
    assert "allowed to spend" in refused


@pytest.mark.parametrize(
    ("capped", "refused", "others"),
    [
        ("PERSON", ("ana", ""), [("ben", ROOM)]),
        ("CHANNEL", ("ben", ROOM + "thread"), [("ben", OTHER), ("ana", "")]),
    ],
)
async def test_a_cap_holds_for_that_person_everywhere_or_for_all_in_that_channel(
    home: Home, capped: str, refused: tuple[str, str], others: Sequence[tuple[str, str]]
) -> None:
    """A person's budget is spent in rooms and in private alike, a channel's by whoever speaks there, and no other's is."""
    voice = Scripted(default=COSTLY)
    async with alive(home, voice, settings={f"CLAUDIUS_BUDGET_{capped}_DAILY_USD": "1"}) as soul:
        await says(soul, "ana", ROOM)
        told = await says(soul, *refused)
        for who, where in others:
            await says(soul, who, where)

    assert "allowed to spend" in told
    assert len(voice.requests) == 1 + len(others)


async def test_the_tightest_budget_binds(home: Home) -> None:
    """With several caps, the one nearest to its limit decides what is still done."""
    settings = {"CLAUDIUS_BUDGET_DAILY_USD": "100", "CLAUDIUS_BUDGET_PERSON_DAILY_USD": "2.2"}
    async with alive(home, Scripted(default=COSTLY), settings=settings) as soul:
        heard = await soul.network.hear("hello", person="ana")
        await soul.idle()
        of_the_soul, of_ana = soul.mind.stage(), soul.mind.stage(heard)
        named = [(one.name, one.of) for one in soul.mind.spending(heard)]

    assert (of_the_soul, of_ana) == (Stage.OPEN, Stage.CORTEX_OFF)
    assert named[-1] == ("budget.person_daily_usd", "rehearsal:t:ana")


def test_what_is_saved_on_goes_in_one_order() -> None:
    """Design, section 7: whispers first, then the cortex, then model updates, then a polite refusal."""
    reached = list(dict.fromkeys(stage(10.0, spent / 100) for spent in range(1101)))

    assert reached == [Stage.OPEN, Stage.WHISPERS_OFF, Stage.CORTEX_OFF, Stage.UPDATES_OFF, Stage.REFUSING]


async def test_an_erasure_leaves_the_cost_and_no_nameless_line(home: Home) -> None:
    """After an erasure the sums stay as they were; the person's line is that of everybody who was erased."""
    async with alive(home, Scripted(default=COSTLY)) as soul:
        await says(soul, "ana")
        await says(soul, "ben")
        before = soul.records().usage("person")
        await soul.server._forgetting.forget("rehearsal:t:ana", datetime.now(UTC), "rehearsal:t:owner")
        by_person, by_place = (soul.records().usage(by) for by in ("person", "conversation"))

    assert by_person["total"]["cost_usd"] == before["total"]["cost_usd"]
    assert [row["person"] for row in by_person["rows"]] == ["erased", "rehearsal:t:ben"]
    assert [row["conversation"] for row in by_place["rows"]] == ["erased", "rehearsal:t:dm-ben:"]
