"""The psyche in turns of several calls: the same words everywhere, never a number, and processes may use them."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from claudius.cognition.craft import (
    Reflection,
    Turn,
    WorkingMemory,
    internal_monologue,
    mental_process,
    run_ism,
    subprocess,
)
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from cognition.processes.test_ism import answer, ponder
from cognition.processes.test_reflection import beside
from minds import by_tag, declarative, minds, say, standing, thinking

CRUEL = "You are useless and stupid, shut up, I hate you"
LINES = ("How do you do?", CRUEL, CRUEL, "Can you explain what a bridge is, please?")


def whole(request: Request) -> str:
    """Return the whole text of a request."""
    return request.system + "".join(one.content for one in request.history) + request.tail


def felt(request: Request) -> str:
    """Return the line of the psyche in a request, or an empty text."""
    found = re.search(r'^\{"kind":"psyche".*$', whole(request), re.MULTILINE)
    return found[0] if found else ""


async def choosing(turn: Turn, memory: WorkingMemory) -> Any:
    """Let the semantic machine choose."""
    return (await run_ism(turn, memory, "GOAL", "PLAYBOOK", (ponder, answer))).outcome


async def musing(reflection: Reflection, memory: WorkingMemory) -> WorkingMemory:
    """Think while no one speaks."""
    memory, _ = await reflection.think(memory, internal_monologue("How was it?"))
    return memory


VOICE = by_tag(action_choice='{"actions": ["answer"], "reasoning": "it is asked"}')


@pytest.mark.parametrize(
    ("made", "settings"),
    [
        ({}, {"CLAUDIUS_PIPELINE_MODE": "split"}),
        ({"greeting": thinking, "main_process": thinking}, {}),
        ({"greeting": choosing, "main_process": choosing}, {"CLAUDIUS_ISM_ENABLED": "1"}),
    ],
    ids=["split", "function", "machine"],
)
async def test_i4_no_number_of_the_psyche_stands_in_any_call(
    home: Home, made: Mapping[str, Any], settings: Mapping[str, str]
) -> None:
    """I4, M16: in steps, a function, the machine and a subprocess a prompt holds the psyche in words alone."""
    voice = Scripted(default=VOICE)
    processes = {name: mental_process()(run) for name, run in made.items()}

    with beside(subprocess(1)(musing)):
        async with minds(home, voice, settings=settings, **processes) as soul:
            await say(soul, *LINES)
            psyche, traits = soul.records().psyche()

    assert psyche.numbers
    [edge] = psyche.edges
    floats = [*traits, psyche.numbers.valence, psyche.numbers.arousal, psyche.numbers.energy, *psyche.numbers.drives]
    floats += [getattr(edge, axis) for axis in ("warmth", "trust", "tension", "comfort", "familiarity", "volatility")]
    assert len(voice.requests) > len(LINES)
    assert made or any(map(felt, voice.requests)), "split: hurt, it is said"
    for request in voice.requests:
        assert not re.search(r"\d", felt(request).replace('"kind":"psyche"', ""))
        for value in floats:
            assert repr(value) not in whole(request)
            assert f"{value:.3f}" not in whole(request)


async def test_each_turn_of_a_function_moves_the_numbers_once(home: Home) -> None:
    """M23: however many calls and processes a turn takes, its event is folded once."""
    made = mental_process()(thinking)
    async with minds(home, Scripted(default=VOICE), greeting=made, main_process=made) as soul:
        await say(soul, *LINES)
        psyche, _ = soul.records().psyche()

    assert psyche.version == len(LINES)


async def test_a_function_may_read_how_the_soul_feels(home: Home) -> None:
    """Processes: `turn.feeling` holds the words of the prompt, and nothing with the psyche off."""
    seen: list[Mapping[str, str]] = []

    async def reading(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Look and answer."""
        seen.append(turn.feeling)
        turn.say("Here.")
        return memory

    made = mental_process()(reading)
    async with minds(home, Scripted(), greeting=made, main_process=made) as soul:
        await say(soul, LINES[0])
    async with minds(
        home, Scripted(), settings={"CLAUDIUS_PSYCHE_ENABLED": "0"}, main_process=made, greeting=made
    ) as soul:
        await say(soul, LINES[0])

    assert seen[0] == {}, "at rest nothing is said"
    assert seen[1] == {}


async def test_a_declared_process_may_go_by_the_mood(home: Home) -> None:
    """Processes: `parse_result["psyche"]` says how the soul feels, so that the router can use it."""
    sore = declarative(
        NEXT=("frustrated",),
        COGNITIVE_STEPS=("internal_monologue", "appraisal", "external_dialogue"),
        should_transition=lambda found: "frustrated" if found["psyche"]["mood"] != "even" else None,
    )
    async with minds(home, Scripted(default=VOICE), greeting=sore, main_process=sore) as soul:
        await say(soul, LINES[0])
        calm = standing(soul)["process"]
        await say(soul, CRUEL, CRUEL, CRUEL)
        stung = standing(soul)["process"]

    assert (calm, stung) == ("greeting", "frustrated")
