"""Sentences that ask for no reminder, and replies that are no undertaking, plan nothing and bring nobody a message."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from case_rows import Row, rows
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive
from minds import Clock, by_tag, minds, say, until

ACTS = ("reply-43", "reply-45", "reply-46")
"""Undertakings that are not in the first person of English: only a model can tell. The later issue deletes this list."""
HOURS = 48


def at(text: str, clock: Clock) -> Clock:
    """Set a clock to an instant."""
    clock.now = datetime.fromisoformat(text)
    return clock


async def days_after(soul: Alive, clock: Clock) -> None:
    """Let the next 48 hours pass, half an hour a step, and whatever is due happen."""
    for _ in range(2 * HOURS):
        clock.forward(minutes=30)
        soul.server.tick()
        await until(lambda: all(datetime.fromisoformat(one["due_at"]) > clock() for one in soul.records().plans()))
    await soul.idle()


@pytest.mark.parametrize("row", rows("reminders", "reply", later=ACTS))
async def test_only_what_is_to_be_delivered_by_a_named_time_is_planned(home: Home, row: Row) -> None:
    """A reply that only sounds like a promise plans nothing, asks no model later, and posts nothing, by day or night."""
    row.knows_only("plans", "act", "at", "on")
    clock, voice = (
        at("2026-03-04T15:00:00+00:00", Clock()),
        Scripted(default=by_tag(external_dialogue=row.input["reply"])),
    )
    async with minds(home, voice, clock=clock, settings={"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}) as soul:
        said = await say(soul, "It was a long day. Could you look at my plan?")
        plans = [datetime.fromisoformat(one["due_at"]) for one in soul.records().plans()]
        if "plans" in row.right:
            await days_after(soul, clock)
        posts, calls = [one.text for one in soul.network.visible], len(voice.requests)

    if "plans" in row.right:
        assert len(plans) == row.right["plans"] == 0
        assert (posts, calls) == ([row.input["reply"]], 1)
    elif "on" in row.right:
        assert [f"{one:%Y-%m-%d}" for one in plans] == [row.right["on"]]
    else:
        wanted = [datetime.fromisoformat(one) for one in row.right["at"]]
        assert all(abs(one - other) < timedelta(seconds=90) for one, other in zip(plans, wanted, strict=True))
    assert said[0].startswith(row.input["reply"])


@pytest.mark.parametrize("row", rows("reminders", "no_request"))
async def test_what_asks_for_no_reminder_is_not_taken_for_one(home: Home, row: Row) -> None:
    """Nothing is planned, and the reply is left as the model gave it."""
    row.knows_only("plans")
    clock, voice = at("2026-03-25T09:00:00+00:00", Clock()), Scripted(default=by_tag(external_dialogue="So it is."))
    async with minds(home, voice, clock=clock, settings={"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}) as soul:
        said = await say(soul, row.input["says"])
        plans = list(soul.records().plans())

    assert len(plans) == row.right["plans"]
    assert said == ["So it is."]
