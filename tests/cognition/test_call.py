"""The one place that awaits a model: repair, streaming, and the result of a broken reply."""

import asyncio

import pytest

from claudius.errors import AuthFailed, BadRequest, Cut, Overloaded, RefusedReply, TimedOut, TooLong
from claudius.home import Home
from claudius.provider import Request, Usage
from claudius.providers.scripted import Line, Scripted
from claudius.testing.alive import Alive, alive

NO_ACTS = "<acts>none</acts>"
GOOD = f"<internal_monologue>PRIVATE</internal_monologue>{NO_ACTS}<external_dialogue>All is well.</external_dialogue>"
LONG = "The port is nearly done, and what is left of it is small. It lacks only the"
STREAM = {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}


async def one(soul: Alive, text: str = "m") -> str:
    """Say one thing. Returns what became visible of the answer."""
    before = len(soul.network.visible)
    await soul.network.hear(text)
    return (await soul.network.until_visible(before + 1))[-1].text


def turn_of(soul: Alive) -> dict[str, object]:
    """Return the record of the latest turn."""
    kept = soul.records()
    entries = (kept.conversation("rehearsal:t:dm-ana:") or {})["entries"]
    return dict(kept.turn(entries[-1]["turn"]) or {})


async def test_a_reply_without_tags_is_spoken_as_it_is(home: Home) -> None:
    """Plain: the reply holds no tag of ours, so all of it is dialogue."""
    async with alive(home, Scripted(["Hello there."])) as soul:
        assert await one(soul) == "Hello there."
        assert turn_of(soul)["rung"] == "plain"


async def test_a_private_reply_is_repaired_by_one_call(home: Home) -> None:
    """Repair: same system and history, with only external_dialogue asked. The first reply's sections are kept."""
    voice = Scripted(["<internal_monologue>S1</internal_monologue>", "<external_dialogue>Mended.</external_dialogue>"])
    async with alive(home, voice) as soul:
        said = await one(soul)
        turn = turn_of(soul)

    assert said == "Mended."
    assert [request.purpose for request in voice.requests] == ["turn", "repair"]
    assert voice.requests[0].system == voice.requests[1].system
    assert voice.requests[0].history == voice.requests[1].history
    assert turn["rung"] == "repair"
    assert [thought["step"] for thought in turn["thoughts"]] == ["internal_monologue", "external_dialogue"]  # type: ignore[attr-defined]  # plain JSON
    assert len(turn["calls"]) == 2  # type: ignore[arg-type]  # plain JSON


async def test_what_cannot_be_repaired_is_the_fixed_line(home: Home) -> None:
    """Fixed: the first line to a stranger is a greeting and holds nothing of either broken reply."""
    voice = Scripted(["<internal_monologue>S1</internal_monologue>", "<internal_monologue>S2</internal_monologue>"])
    async with alive(home, voice) as soul:
        said = await one(soul)

    assert "S1" not in said
    assert "S2" not in said
    assert len(voice.requests) == 2
    assert said.startswith("Good to meet you")


async def test_a_failing_repair_call_is_not_a_failing_turn(home: Home) -> None:
    """If the second call fails, the ladder goes on without it; a first line is no apology."""
    voice = Scripted(["<internal_monologue>S1</internal_monologue>", AuthFailed()])
    async with alive(home, voice) as soul:
        assert (await one(soul)).startswith("Good to meet you")


@pytest.mark.parametrize("fault", [Line(deltas=("x",), stop_reason="refusal"), RefusedReply()], ids=["stop", "error"])
async def test_a_refusal_is_not_asked_again(home: Home, fault: Line | RefusedReply) -> None:
    """After a refusal no second call is made."""
    voice = Scripted([fault])
    async with alive(home, voice) as soul:
        await one(soul)

    assert len(voice.requests) == 1


@pytest.mark.parametrize("fault", [Cut(), TimedOut(), Overloaded()], ids=lambda fault: type(fault).__name__)
async def test_a_drop_in_mid_reply_is_a_truncation(home: Home, fault: Exception) -> None:
    """After the first delta the turn is not retried: one repair, and then what there is of the dialogue."""
    broken = Line(deltas=(f"{NO_ACTS}<external_dialogue>{LONG}",), fault=fault, after=1)  # type: ignore[arg-type]  # plain JSON
    voice = Scripted([broken, AuthFailed()])
    async with alive(home, voice) as soul:
        said = await one(soul)
        turn = turn_of(soul)

    assert said == "The port is nearly done, and what is left of it is small. …"
    assert turn["rung"] == "cut"
    assert turn["entries"][-1]["metadata"]["truncated"]  # type: ignore[index]  # plain JSON


async def test_streamed_words_are_a_prefix_of_what_is_said(home: Home) -> None:
    """Streaming shows the dialogue as it arrives, in the one message that is completed at the end."""
    voice = Scripted([list(GOOD)])
    async with alive(home, voice, settings=STREAM) as soul:
        assert await one(soul) == "All is well."
        assert len(soul.network.visible) == 1


async def test_a_stream_that_breaks_is_marked_and_not_repaired(home: Home) -> None:
    """A stream cannot be unsaid: what was shown is the utterance, with a mark."""
    broken = Line(deltas=tuple(f"{NO_ACTS}<external_dialogue>{LONG}"), fault=Cut(), after=90 + len(NO_ACTS))
    voice = Scripted([broken])
    async with alive(home, voice, settings=STREAM) as soul:
        said = await one(soul)

    assert said.endswith(" …")
    assert LONG.startswith(said.removesuffix(" …"))
    assert len(voice.requests) == 1
    assert len(soul.network.visible) == 1


async def test_a_stream_that_ends_in_any_error_is_not_apologised_for(home: Home) -> None:
    """O1: what was shown is the reply. A reply and an apology for one message never stand side by side."""
    broken = Line(deltas=(f"{NO_ACTS}<external_dialogue>{LONG}", " …"), fault=BadRequest(), after=1)
    async with alive(home, Scripted([broken]), settings=STREAM) as soul:
        said = await one(soul)
        turn = turn_of(soul)

    assert said.startswith("The port is nearly done")
    assert turn["apology"] is None
    assert len(soul.network.visible) == 1


async def test_a_transport_that_asks_again_voids_what_was_streamed(home: Home) -> None:
    """Reset: streaming ends, and the final text replaces what is visible in that message."""
    voice = Scripted([Line(deltas=tuple(GOOD), reset_after=70)])
    async with alive(home, voice, settings=STREAM) as soul:
        assert await one(soul) == "All is well."
        assert len(soul.network.visible) == 1
        assert turn_of(soul)["response"] == GOOD


async def test_a_finished_call_is_not_paid_for_twice(home: Home) -> None:
    """If a turn dies after its model call, the next process concludes it from the kept result."""
    voice = Scripted(["<internal_monologue>S1</internal_monologue>", Line(hang=True)])
    async with alive(home, voice, clean=False) as soul:
        await soul.network.hear("m")
        async with asyncio.timeout(20):
            while len(voice.requests) < 2:
                await asyncio.sleep(0.01)
    again = Scripted(["<external_dialogue>Mended.</external_dialogue>"])
    async with alive(home, again) as soul:
        seen = await soul.network.until_visible(1)

    assert [request.purpose for request in again.requests] == ["repair"]
    assert seen[0].text == "Mended."


async def test_a_reply_past_its_cap_stops_being_read(home: Home) -> None:
    """A model that never ends is cut off at the reply's cap."""
    endless = Line(deltas=("<internal_monologue>", *("x" * 1000 for _ in range(2000))))
    voice = Scripted([endless, AuthFailed()])
    async with alive(home, voice) as soul:
        await one(soul)
        turn = turn_of(soul)

    assert len(str(turn["response"])) < 300_000
    assert voice.open == 0


async def test_near_the_cap_models_are_no_longer_written(home: Home) -> None:
    """Before it refuses, the soul saves on model updates."""
    costly = Line(deltas=(GOOD,), usage=Usage(output_tokens=1, cost_usd=0.96))
    voice = Scripted([costly])
    async with alive(home, voice, settings={"CLAUDIUS_BUDGET_DAILY_USD": "1"}) as soul:
        await one(soul)
        await one(soul)

    assert "user_model_update" in voice.requests[0].tail
    assert "user_model_update" not in voice.requests[1].tail.partition("## User Model")[0]


async def test_a_prompt_that_is_too_long_is_built_once_more_with_half_the_history(home: Home) -> None:
    """413: the prompt is rebuilt once, and the newest turns stay."""

    def reply(request: Request) -> str | TooLong:
        """Refuse a long history."""
        return TooLong() if len(request.history) > 30 else GOOD

    async with alive(home, voice := Scripted(default=reply)) as soul:
        for number in range(17):
            await one(soul, "x" * 1000 + str(number))

    asked = [one for one in voice.requests if one.purpose != "summary"]  # what was too long is folded when it is quiet
    assert len(asked) == 18
    assert len(asked[-1].history) < 20
