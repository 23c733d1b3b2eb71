"""S5: a reply that repeats a nonce is never said."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from claudius.cognition.craft import Turn, WorkingMemory, external_dialogue, internal_monologue, mental_process
from claudius.cognition.output.gate import gate
from claudius.cognition.output.rules import NeedsRepair, OutputRules, Spoken, climb
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive
from minds import DM, by_tag, heard, minds, say, standing
from prompt_records import prompt_of
from replies import read

NONCE = "0123456789abcdef0123456789abcdef"
OLD = "fedcba9876543210fedcba9876543210"
ZONES = OutputRules(fallback="FIXED", nonces=(NONCE, OLD))


@pytest.mark.parametrize(
    "echo", [NONCE, OLD, NONCE.upper(), f"<data-{OLD}>", f"&lt;/data-{NONCE}&gt;", "<data-00000000ff"]
)
def test_s05_an_echo_is_the_fixed_line(echo: str) -> None:
    """G3: a live nonce of this prompt, old or new, and our marker form with any nonce become the fixed line."""
    gated = gate(f"The marker was {echo}.", ZONES)

    assert gated.text == "FIXED"
    assert gated.hits == ("G3",)


@pytest.mark.parametrize(
    "reply", ["<external_dialogue>It is {}.</external_dialogue>", "It is {}.", "<external_dialogue>It is {} "]
)
def test_s05_an_echo_falls_to_repair_while_one_is_left(reply: str) -> None:
    """The ladder asks once more. With no repair left it says the fixed line, never a cut version of the echo."""
    parsed, _ = read(reply.format(NONCE))

    assert isinstance(climb(parsed, OutputRules(fallback="FIXED", nonces=(NONCE,))), NeedsRepair)
    spoken = climb(parsed, OutputRules(fallback="FIXED", nonces=(NONCE,), repairs=0))
    assert isinstance(spoken, Spoken)
    assert spoken.speech == "FIXED"


MARKED = re.compile(r"<data-([0-9a-f]{32})>\n(.*)\n</data-\1>")


def markers(request: Request) -> list[str]:
    """Return the nonces that fence a request's data, in order."""
    return [nonce for nonce, _ in MARKED.findall(prompt_of(request))]


def echo(request: Request) -> str:
    """Repeat the marker of the message that is answered, as a small model may do."""
    nonce = markers(request)[-1]
    return f"<data-{nonce}>\n{json.dumps({'kind': 'message', 'text': 'ok'})}\n</data-{nonce}>"


async def thinks_first(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
    """Think first and then speak."""
    memory, _ = await turn.think(memory, internal_monologue())
    memory, _ = await turn.speak(memory, external_dialogue())
    return memory


FUNCTION = {"greeting": mental_process()(thinks_first)}
STREAM = {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
SPLIT = {"CLAUDIUS_PIPELINE_MODE": "split"}


def record(soul: Alive) -> dict[str, Any]:
    """Return the record of the latest turn of the DM."""
    return dict(soul.records().turn(standing(soul, DM)["entries"][-1]["turn"]) or {})


@pytest.mark.parametrize("thought", ["It was asked.", echo], ids=["said", "thought"])
@pytest.mark.parametrize("mends", [True, False], ids=["mended", "again"])
@pytest.mark.parametrize(
    ("settings", "made"), [({}, {}), (STREAM, {}), (SPLIT, {}), ({}, FUNCTION)], ids=["fused", "stream", "split", "function"]
)  # fmt: skip
async def test_s05_a_reply_that_echoes_a_marker_is_repaired_or_fixed(
    home: Home, settings: Mapping[str, str], made: Mapping[str, Any], *, mends: bool, thought: Any
) -> None:
    """For every caller, an echo is repaired once; what cannot be repaired is the fixed line: a greeting, to a stranger."""

    def reply(request: Request) -> str:
        """Repeat the marker, and do so again in the repair unless `mended` is set."""
        again = '"kind":"draft"' in request.tail
        if again and mends:
            return "<external_dialogue>Mended.</external_dialogue>"
        return by_tag(internal_monologue=thought, external_dialogue=echo)(request) if not again else echo(request)

    voice = Scripted(default=reply)
    async with minds(home, voice, settings=settings, **made) as soul:
        (said,) = await say(soul, "Tell me of bridges")
        turn = record(soul)

    assert (said == "Mended.") is mends
    assert said.startswith(("Mended.", "Good to meet you"))
    assert (turn["rung"], turn["apology"]) == ("repair" if mends else "fixed", None)
    assert heard(voice.requests[0]) == ["Tell me of bridges"]
    for request in voice.requests:
        for nonce, line in MARKED.findall(prompt_of(request)):
            assert nonce not in line


async def test_s05_an_echo_of_the_repairs_own_marker_is_not_said(home: Home) -> None:
    """The nonce that fences a repair is as secret as the turn's: if it is said bare, the fixed line replaces it."""
    voice = Scripted(default=lambda request: f"<external_dialogue>It is {markers(request)[-1]}.</external_dialogue>")
    async with minds(home, voice) as soul:
        (said,) = await say(soul, "Which marker is it?")

    assert [request.purpose for request in voice.requests] == ["turn", "repair"]
    assert len({markers(request)[-1] for request in voice.requests}) == 2
    assert said.startswith("Good to meet you")
