"""What a turn does beyond its words: read, checked, booked with the turn, and told by receipts that only code writes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.cognition import ism
from claudius.cognition.acts import ActsBasis, read_acts
from claudius.cognition.function_process import Turn
from claudius.cognition.output.gate import StreamGate
from claudius.cognition.output.rules import OutputRules
from claudius.cognition.processes import Process
from claudius.cognition.reading import ReplyReading, Unforged, unforged
from claudius.cognition.reply.parser import Parser
from claudius.cognition.working_memory import WorkingMemory
from claudius.errors import DeliveryLater
from claudius.home import Home
from claudius.perception import Perception
from claudius.providers.scripted import Line, Scripted
from claudius.recollection import unrecalled
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from minds import by_tag, registered, until
from replies import cut_up

NOW = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
ZONE = {"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Berlin", "CLAUDIUS_PSYCHE_ENABLED": "false"}
STREAM = ZONE | {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
DENTIST = {"do": "remind", "at": "2026-11-27T09:00", "text": "call the dentist", "repeat": "weekdays"}
RECEIPT = "⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin ↻ Mon–Fri · call the dentist · p1"
HEARD = Perception(
    key="rehearsal:m1", conversation="rehearsal:t:dm-ana:", audience="dm:ana", person="ana", name="Ana", text="m", at=NOW,
    position="1", owes=True,
)  # fmt: skip
KNOWN = unrecalled("t1", (HEARD,), "n", NOW)
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
    async with asked(home, reply("I will remind you tomorrow at nine.")) as soul:
        (said,), why = soul.network.visible, told(soul)

        assert soul.records().plans() == []
    assert said.text == "I will remind you tomorrow at nine."
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


async def test_of_two_sections_the_first_counts(home: Home) -> None:
    """What a model writes twice is not done twice."""
    async with asked(home, acting(DENTIST) + reply("I will.", DENTIST | {"text": "another"})) as soul:
        assert [one.text for one in soul.network.visible] == [f"I will.\n\n{RECEIPT}"]


async def test_a_section_that_is_not_closed_is_asked_for_once_more(home: Home) -> None:
    """Acts that break off are not guessed: nothing of them is booked unless the repair writes them whole."""
    broken = saying("I will.") + f"<acts>{json.dumps(DENTIST)[:30]}"
    voice = Scripted([broken, reply("Now I will.", DENTIST)])
    async with asked(home, voice) as soul:
        assert [one.text for one in soul.network.visible] == [f"Now I will.\n\n{RECEIPT}"]
    assert "the section was not written to its end" in voice.requests[1].tail


async def test_a_secret_in_an_act_is_not_booked(home: Home) -> None:
    """The section is dropped whole where a key stands in it, and so is what it would do; the words are said."""
    async with asked(home, reply("I will.", DENTIST | {"text": "sk-ant-REDACTED"})) as soul:
        (said,), why = soul.network.visible, told(soul)

        assert soul.records().plans() == []
    assert (said.text, why["acts"]) == ("I will.", [])
    assert "secret:acts" in why["flags"]


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
    st.sampled_from(
        ["⏰", "✖ p3", "✎ f7\n", "p1", "\n", "\r\n", " ", "-# ", "> ", "\u200b", "I will.", ":alarm_clock:", "a"]
    )
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
    sign, dress = (
        data.draw(st.sampled_from("⏰✖✎◷")),
        data.draw(st.sampled_from(["", "- ", "> ", "**", "-# ", "\u200b"])),
    )

    assert unforged(f"One.\n{dress}{sign} tomorrow · P12") == "One."
    assert unforged(f"One.\n{dress}{sign} tomorrow") == f"One.\n{dress}{sign} tomorrow"
    assert unforged(f"One.\n{dress}see p12") == f"One.\n{dress}see p12"


THOUGHT = "<internal_monologue>They want the dentist.</internal_monologue>"
PIECES = st.lists(st.integers(1, 40), min_size=1, max_size=6)


class Shown:
    """What a listener has seen of a reply, each time that more was shown."""

    def __init__(self) -> None:
        self.text = ""

    async def __call__(self, piece: str) -> None:
        """Take one more piece."""
        self.text += piece


def reading_of(shown: Shown) -> ReplyReading:
    """Return a reading that shows what it may, where acts are asked."""
    known = ActsBasis(recollection=KNOWN, zone="Europe/Berlin")
    return ReplyReading(
        Parser(), StreamGate(OutputRules()), shown, may_show=lambda section: not read_acts(section.text, known).refused
    )


@given(PIECES, st.booleans(), st.booleans())
async def test_nothing_is_shown_before_the_acts_have_closed_and_hold(
    sizes: list[int],
    acts_first: bool,  # noqa: FBT001 - drawn
    good: bool,  # noqa: FBT001 - drawn
) -> None:
    """A11: in any order and any pieces, refused acts show no word, and good ones all that may be shown of them."""
    acts, words = acting(DENTIST if good else NO_DAY), saying("Tomorrow at nine, and on every working day after it.")
    shown = Shown()
    reading = reading_of(shown)

    for piece in cut_up(THOUGHT + (acts + words if acts_first else words + acts), sizes):
        is_closed = reading.parser.closed("acts") is not None
        assert is_closed or not shown.text
        await reading.take(piece)

    assert "Tomorrow at nine, and on every working day after it.".startswith(shown.text)
    assert bool(shown.text) == good


async def test_no_word_of_a_refused_reply_is_seen_on_a_network_that_streams(home: Home) -> None:
    """A11: the first words that anybody sees are those of the repair, in one message."""
    bad, good = reply("On the thirtieth of February, then.", NO_DAY), reply("On Friday, then.", DENTIST)
    voice, seen = Scripted([Line(deltas=tuple(bad)), Line(deltas=tuple(good))]), list[str]()
    async with asked(home, voice, settings=STREAM) as soul:
        seen += [one.text for one in soul.network.visible]

    assert seen == [f"On Friday, then.\n\n{RECEIPT}"]


@pytest.mark.parametrize("mode", ["fused", "split"])
async def test_every_mode_reads_acts_alike(home: Home, mode: str) -> None:
    """Asked in one call or in one a step, the same acts make the same plan and the same receipt."""
    voice = Scripted(default=by_tag(acts=json.dumps(DENTIST), external_dialogue="I will."))
    async with asked(home, voice, settings=STREAM | {"CLAUDIUS_PIPELINE_MODE": mode}) as soul:
        assert [one.text for one in soul.network.visible] == [f"I will.\n\n{RECEIPT}"]
        assert len(soul.records().plans()) == 1


async def does_one(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
    """Do one act by code, refuse another, and speak with acts of the model's own."""
    memory = turn.act(memory, "remind", at="2026-11-27T09:00", text="by code")
    with pytest.raises(ValueError, match="there is no 2027-02-30T09:00 in the calendar"):
        turn.act(memory, "remind", at="2027-02-30T09:00", text="never")
    memory, _ = await turn.speak(memory, does=True)
    return memory


async def test_a_process_function_does_acts_by_the_same_reader(home: Home) -> None:
    """What code does and what the model does in `speak` are booked together; a refused act is asked for once more."""
    bad, good = json.dumps(NO_DAY), json.dumps(DENTIST | {"text": "by the model"})
    voice = Scripted(default=by_tag(acts=lambda request: good if "could not be used" in request.tail else bad))
    with registered(greeting=Process(name="greeting", run=does_one)):
        async with asked(home, voice) as soul:
            (said,) = soul.network.visible
            why = told(soul)

    assert [line.rpartition(" · ")[0].rpartition(" · ")[2] for line in why["receipts"]] == ["by code", "by the model"]
    assert said.text.startswith("So it is.\n\n⏰")
    assert [one["state"] for one in why["acts"]] == ["booked", "booked"]


async def test_the_implicit_machine_answers_with_acts(home: Home) -> None:
    """Its `respond` carries acts as any reply does."""
    chosen = json.dumps({"actions": ["respond"], "reasoning": "it is plain"})
    voice = Scripted(default=by_tag(action_choice=chosen, acts=json.dumps(DENTIST), external_dialogue="I will."))
    with registered(greeting=replace(ism.problem_solving, name="greeting")):
        async with asked(home, voice, settings=ZONE | {"CLAUDIUS_ISM_ENABLED": "true"}) as soul:
            assert [one.text for one in soul.network.visible] == [f"I will.\n\n{RECEIPT}"]
    assert "action_choice" in voice.requests[0].tail


async def test_a_receipt_is_said_once_though_the_soul_was_killed_before_it_spoke(home: Home) -> None:
    """The receipt is committed with the words: the next life says both once, and books nothing anew."""
    network = RehearsalAdapter()
    network.faults.append((DeliveryLater(3600), False))
    async with alive(
        home, Scripted([reply("I will.", DENTIST)]), settings=ZONE, clock=lambda: NOW, network=network, clean=False
    ) as soul:
        await soul.network.hear("You know, the dentist.")
        await until(lambda: not network.faults)
        assert network.visible == []
    after = NOW + timedelta(hours=2)
    async with alive(home, Scripted([]), settings=ZONE, clock=lambda: after) as soul:
        await soul.network.until_visible(1)

        assert [one.text for one in soul.network.visible] == [f"I will.\n\n{RECEIPT}"]
        assert len(soul.records().plans()) == 1
