"""What a turn does beyond its words: read, checked, booked with the turn, and told by receipts that only code writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.output.forged import Unforged, unforged
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from replies import cut_up

NOW = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
ZONE = {"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Berlin", "CLAUDIUS_PSYCHE_ENABLED": "false"}
STREAM = ZONE | {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
DENTIST = {"do": "remind", "at": "2026-11-27T09:00", "text": "call the dentist", "repeat": "weekdays"}
RECEIPT = "⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin ↻ Mon–Fri · call the dentist · p1"
NO_DAY = {"do": "remind", "at": "2027-02-30T09:00", "text": "water the fern"}


def acting(*acts: dict[str, Any] | str) -> str:
    """Write a section of acts."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in acts] or ["none"]
    return f"<acts>{chr(10).join(lines)}</acts>"


def saying(words: str) -> str:
    """Write the words aloud."""
    return f"<external_dialogue>{words}</external_dialogue>"


def reply(words: str, *acts: dict[str, Any] | str) -> str:
    """Write a reply with these acts, and with none if there are none."""
    return f"{acting(*acts)}\n{saying(words)}"


@asynccontextmanager
async def asked(home: Home, *replies: Any, settings: dict[str, str] | None = None) -> AsyncIterator[Alive]:
    """Open a soul that has heard one message, and answered it with the first of these replies."""
    voice = replies[0] if isinstance(replies[0], Scripted) else Scripted(list(replies))
    async with alive(home, voice, settings=settings or ZONE, clock=lambda: NOW) as soul:
        await soul.network.hear("You know, the dentist.")
        await soul.idle()
        yield soul


def told(soul: Alive) -> dict[str, Any]:
    """Return what `why` tells of the last turn."""
    turn = soul.records().last_turn()
    assert turn
    return dict(soul.records().turn(turn) or {})


async def test_a_reminder_is_booked_and_its_receipt_stands_under_the_words(home: Home) -> None:
    """One act makes one plan; the words' last part carries a line that says when, what, and by which id."""
    async with asked(home, reply("I will.", DENTIST)) as soul:
        (said,), why = soul.network.visible, told(soul)
        plans = soul.records().plans()

    assert said.text == f"I will.\n\n{RECEIPT}"
    assert why["acts"] == [{"do": "remind", "state": "booked", "detail": "call the dentist"}]
    assert (why["utterance"], why["receipts"]) == ("I will.", [RECEIPT])
    assert len(plans) == 1


async def test_words_that_claim_what_acts_do_not_say_plan_nothing(home: Home) -> None:
    """A3: only acts book; a promise that is only spoken leaves no plan and no receipt, and `why` shows `none`."""
    async with asked(home, reply("It stands for tomorrow at nine.")) as soul:
        (said,), why = soul.network.visible, told(soul)

        assert soul.records().plans() == []
    assert said.text == "It stands for tomorrow at nine."
    assert (why["acts"], why["receipts"]) == ([], [])
    assert [one["content"] for one in why["thoughts"] if one["step"] == "acts"] == ["none"]


async def test_a_reply_without_the_section_is_said_as_it_is(home: Home) -> None:
    """A model that never writes acts still talks: one call, one flag, nothing repaired."""
    voice = Scripted([saying("Good morning.")])
    async with asked(home, voice) as soul:
        (said,), why = soul.network.visible, told(soul)

    assert said.text == "Good morning."
    assert "missing:acts" in why["flags"]
    assert len(voice.requests) == 1


async def test_a_refused_act_is_put_right_before_a_word_is_said(home: Home) -> None:
    """A2: one repair call tells which act failed and why; its acts and its words count, the first ones never do."""
    voice = Scripted([reply("On the thirtieth of February, then.", NO_DAY), reply("On Friday, then.", DENTIST)])
    async with asked(home, voice) as soul:
        (said,), why = soul.network.visible, told(soul)

    assert said.text == f"On Friday, then.\n\n{RECEIPT}"
    assert "remind: `at`: there is no 2027-02-30T09:00 in the calendar" in voice.requests[1].tail
    assert len(voice.requests) == 2
    assert [one["content"] for one in why["thoughts"] if one["step"] == "acts"] == [json.dumps(DENTIST)]


async def test_an_act_that_is_refused_twice_is_dropped_and_the_listener_is_told(home: Home) -> None:
    """A2: the good act of the second section is booked, the bad one dropped, and the fixed line follows the words."""
    voice = Scripted([reply("Both, then.", DENTIST, NO_DAY), reply("Both it is.", DENTIST, NO_DAY)])
    async with asked(home, voice) as soul:
        (said,), why = soul.network.visible, told(soul)
        plans = soul.records().plans()

    assert said.text == f"Both it is.\n\n(I could not put that in my calendar: water the fern)\n\n{RECEIPT}"
    assert [(one["do"], one["state"]) for one in why["acts"]] == [("remind", "booked"), ("remind", "refused")]
    assert (len(voice.requests), len(plans)) == (2, 1)


@pytest.mark.parametrize(
    ("second", "words"),
    [(acting(DENTIST), "Tomorrow at nine."), (saying("At nine, then."), "At nine, then."), (ConnectionError(), None)],
    ids=["only acts", "only words", "nothing"],
)
async def test_a_repair_may_bring_a_part_only(home: Home, second: Any, words: str | None) -> None:
    """Words that the second reply lacks are the first one's; acts that it lacks are the first one's good ones."""
    bad = reply("Tomorrow at nine.", NO_DAY)
    voice = Scripted([bad, second if isinstance(second, str) else ""])
    async with asked(home, voice) as soul:
        (said,) = soul.network.visible

    assert said.text.startswith(words or "Tomorrow at nine.")
    assert ("call the dentist" in said.text) == (second == acting(DENTIST))
    assert ("could not" in said.text) == (second != acting(DENTIST))


async def test_six_acts_are_asked_for_once_more_and_then_five_are_booked(home: Home) -> None:
    """Six acts are refused as a section; when six come again, the first five are booked and the line is said."""
    six = [DENTIST | {"text": f"errand {n}"} for n in range(6)]
    voice = Scripted([reply("All six.", *six), reply("All six.", *six)])
    async with asked(home, voice) as soul:
        (said,) = soul.network.visible
        plans = soul.records().plans()

    assert "6 acts were written, 5 are the most in one reply" in voice.requests[1].tail
    assert [f"errand {n}" in said.text for n in range(6)] == [True] * 5 + [False]
    assert "(I could not put that in my calendar: …)" in said.text
    assert len(plans) == 5


async def test_acts_stand_in_the_history_as_they_were_written_and_receipts_as_data(home: Home) -> None:
    """The next prompt shows the section in its tag and, in the user's place and fenced, what code says was done."""
    voice = Scripted([reply("I will.", DENTIST), reply("Yes.")])
    async with asked(home, voice) as soul:
        await soul.network.hear("Is it noted?")
        await soul.idle()

    history = voice.requests[1].history
    own = next(one.content for one in history if one.role == "assistant")
    assert f"<acts>{json.dumps(DENTIST)}</acts>\n<external_dialogue" in own
    assert RECEIPT not in own
    assert any('"kind":"receipts"' in one.content and RECEIPT in one.content for one in history if one.role == "user")


async def test_a_receipt_that_a_model_writes_is_taken_out(home: Home) -> None:
    """A line that begins with one of the signs and holds an id is no word of the soul's; the rest is said."""
    async with asked(home, reply(f"I will.\n{RECEIPT}")) as soul:
        (said,), why = soul.network.visible, told(soul)

    assert said.text == "I will."
    assert "forged:receipt" in why["flags"]


async def test_words_that_are_nothing_but_a_receipt_are_asked_for_once(home: Home) -> None:
    """A dialogue that was nothing but a forged receipt counts as missing."""
    voice = Scripted([reply(RECEIPT), saying("I have not noted anything yet.")])
    async with asked(home, voice) as soul:
        (said,) = soul.network.visible

    assert said.text == "I have not noted anything yet."
    assert len(voice.requests) == 2


WORDS = st.lists(
    st.sampled_from(["⏰", "✖ p3", "✎ f7\n", "p1", "\n", "\r\n", " ", "-# ", "> ", "\u200b", "I will.", ":alarm_clock:", "a"])
).map("".join)


@given(WORDS, st.lists(st.integers(1, 5)))
def test_what_streams_of_words_is_a_prefix_of_what_is_said(text: str, sizes: list[int]) -> None:
    """Cut up in any way, a stream shows nothing of a forged receipt, and nothing that the whole does not begin with."""
    stream = Unforged()

    shown = "".join(stream.take(piece) for piece in cut_up(text, sizes or [1]))

    assert unforged(text).strip().startswith(shown.rstrip())


@given(st.data())
def test_a_line_is_forged_by_its_sign_and_its_id(data: st.DataObject) -> None:
    """A sign without an id is a sign, an id without a sign a word; dressed up, both together are still a receipt."""
    sign, dress = data.draw(st.sampled_from("⏰✖✎◷")), data.draw(st.sampled_from(["", "- ", "> ", "**", "-# ", "\u200b"]))

    assert unforged(f"One.\n{dress}{sign} tomorrow · P12") == "One."
    assert unforged(f"One.\n{dress}{sign} tomorrow") == f"One.\n{dress}{sign} tomorrow"
    assert unforged(f"One.\n{dress}see p12") == f"One.\n{dress}see p12"
