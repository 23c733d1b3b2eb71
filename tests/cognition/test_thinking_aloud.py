"""Private thought as it is written: told through one hook to the one who listens, and to no one else (W11)."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import force_setattr

from claudius.cognition.reply.parser import Parser, Section
from claudius.home import Home
from claudius.observed import Thinking
from claudius.providers.scripted import Line, Scripted
from claudius.testing.alive import alive
from ear import listening

PLAIN = {"CLAUDIUS_PSYCHE_ENABLED": "0"}
REPLY = (
    '<internal_monologue verb="noticed">Rust, again.</internal_monologue>'
    '<external_dialogue verb="said">So it is.</external_dialogue>'
)


async def events_until(connection: Any, kind: str) -> list[Any]:
    """Return the events up to the first of a kind."""
    found: list[Any] = []
    async with asyncio.timeout(20):
        while not found or found[-1]["kind"] != kind:
            found.append(await connection.receive())
    return found


def told_of(parser: Parser, *pieces: str) -> list[Section]:
    """Feed the pieces, and return what the parser told of its private sections."""
    told: list[Section] = []
    parser.think = told.append
    for piece in pieces:
        parser.feed(piece)
    parser.finish()
    return told


async def test_w11_the_first_thought_is_told_before_the_reply_has_ended(home: Home) -> None:
    """W11: a listener gets the monologue piece by piece while the model still writes, before the first word aloud."""
    voice = Scripted([Line(deltas=tuple(REPLY[at : at + 7] for at in range(0, 56, 7)), hang=True, after=8)])
    async with alive(home, voice, settings=PLAIN) as soul, listening(soul, deltas=True) as connection:
        await soul.network.hear("It rusts.")
        events = await events_until(connection, "think.delta")

    assert events[-1] | {"at": "", "turn": "", "conversation": ""} == {"at": "", "kind": "think.delta", "conversation": "", "turn": "", "text": events[-1]["text"], "step": "internal_monologue", "verb": "noticed"}  # fmt: skip
    assert "Rust, again.".startswith(events[-1]["text"])
    assert not soul.network.visible


async def test_w11_the_words_aloud_are_never_told_as_thought(home: Home) -> None:
    """W11: the pieces add up to the private sections, byte for byte; the words aloud pass the same reader unheard."""
    voice = Scripted([Line(deltas=tuple(REPLY))])
    async with alive(home, voice, settings=PLAIN) as soul, listening(soul, deltas=True) as connection:
        await soul.network.hear("It rusts.")
        events = await events_until(connection, "speak")

    assert "".join(event["text"] for event in events if event["kind"] == "think.delta") == "Rust, again."


async def test_w11_without_a_listener_nothing_is_made(home: Home) -> None:
    """W11: a stream without `deltas` gets the six kinds only; once the last listener has gone, no one is told."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice, settings=PLAIN) as soul:
        async with listening(soul, deltas=True):
            assert soul.mind.hooks.has(Thinking.point)
        async with listening(soul) as connection:
            while soul.mind.hooks.has(Thinking.point):
                await asyncio.sleep(0.002)
            await soul.network.hear("It rusts.")
            events = await events_until(connection, "speak")

    assert not [event for event in events if event["kind"].startswith("think.")]


async def test_w11_a_reply_begun_anew_voids_what_was_told(home: Home) -> None:
    """W11: after a reset the listener is told that the pieces so far do not count, and then gets the new ones."""
    begun = '<internal_monologue verb="mused">Wro'
    voice = Scripted([Line(deltas=(begun, REPLY), reset_after=1)])
    async with alive(home, voice, settings=PLAIN) as soul, listening(soul, deltas=True) as connection:
        await soul.network.hear("It rusts.")
        events = await events_until(connection, "speak")

    growing = [event for event in events if event["kind"].startswith("think.")]
    assert "think.void" in [event["kind"] for event in growing]
    last_void = max(n for n, event in enumerate(growing) if event["kind"] == "think.void")
    assert growing[0]["text"] == "Wro"
    assert growing[last_void]["text"] == ""
    assert "".join(event["text"] for event in growing[last_void + 1 :]).endswith("Rust, again.")


async def test_w11_a_thought_of_a_turn_that_is_stopped_is_void(home: Home) -> None:
    """W11: what was told of a turn that came to nothing does not count."""
    voice = Scripted([Line(deltas=(REPLY[:50], REPLY[50:]), after=1, hang=True)])
    async with alive(home, voice, settings=PLAIN, clean=False) as soul:
        told: list[Thinking] = []
        soul.mind.hooks.listen(Thinking, told.append)
        await soul.network.hear("It rusts.")
        async with asyncio.timeout(20):
            while not told:
                await asyncio.sleep(0.002)

    assert [one.is_void for one in told] == [False, True]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_w11_only_private_sections_are_told(size: int) -> None:
    """W11: foreign reasoning, a dialogue inside another and text outside all tags are no thought of the soul's."""
    text = (
        f"<thinking>FOREIGN</thinking> outside {REPLY}<user_model_check>true</user_model_check>"
        "<external_dialogue>a <external_dialogue>NESTED</external_dialogue>"
    )

    told = told_of(Parser(), *[text[at : at + size] for at in range(0, len(text), size)])

    by_step: dict[str, str] = {}
    for one in told:
        by_step[one.name] = by_step.get(one.name, "") + one.text
    assert by_step == {"internal_monologue": "Rust, again.", "user_model_check": "true"}
    assert {one.verb for one in told if one.name == "internal_monologue"} == {"noticed"}


async def test_w11_a_secret_in_a_thought_is_masked(home: Home) -> None:
    """W11, S20: a secret that the model writes into its thought is masked for listeners, however it is cut."""
    thought = '<internal_monologue verb="mused">It is CANARY-SECRET, I think.</internal_monologue>'
    voice = Scripted([Line(deltas=tuple(thought + REPLY[REPLY.index("<external") :]))])
    async with alive(home, voice, settings=PLAIN) as soul:
        force_setattr(soul.mind, "secrets", ("CANARY-SECRET",))
        async with listening(soul, deltas=True) as connection:
            await soul.network.hear("It rusts.")
            events = await events_until(connection, "speak")

    assert "".join(event["text"] for event in events if event["kind"] == "think.delta") == "It is ***, I think."
