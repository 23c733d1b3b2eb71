"""What a turn does beyond its words: read, checked, booked with the turn, and told by receipts that only code writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive

NOW = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
ZONE = {"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Berlin"}


def reply(words: str, *acts: dict[str, object] | str) -> str:
    """Write a reply with these acts, and with none if there are none."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in acts] or ["none"]
    return f"<acts>{chr(10).join(lines)}</acts>\n<external_dialogue>{words}</external_dialogue>"


async def test_a_reminder_is_booked_and_its_receipt_stands_under_the_words(home: Home) -> None:
    """One act makes one plan; the words' last part carries a line that says when, what, and by which id."""
    act = {"do": "remind", "at": "2026-11-27T09:00", "text": "call the dentist", "repeat": "weekdays"}
    voice = Scripted([reply("I will.", act)])

    async with alive(home, voice, settings=ZONE, clock=lambda: NOW) as soul:
        await soul.network.hear("Remind me every working day at nine to call the dentist.")
        await soul.idle()
        (said,) = soul.network.visible

    assert said.text.endswith("\n\n⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin ↻ Mon–Fri · call the dentist · p1")
