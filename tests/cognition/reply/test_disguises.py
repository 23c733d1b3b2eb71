"""Structure in disguise: what a model marks as its thought in a way of its own is no plain speech."""

from __future__ import annotations

import pytest

from claudius.cognition.output.gate import StreamGate, gate
from claudius.cognition.output.ladder import NeedsRepair, climb
from claudius.cognition.output.rules import OutputRules
from claudius.cognition.reply.disguises import is_disguised, is_structured
from claudius.cognition.reply.parser import Parser
from replies import cut_up, read

TAGS = [
    "Hello. [internal_monologue]S1[/internal_monologue]", "[internal monologue] S1", "{user_model_update: S1}",
    "&amp;lt;internal_monologue&amp;gt;S1", "%3Cinternal_monologue%3ES1", "&#060;internal_monologue&#062;S1",
    "&ltinternal_monologue&gtS1", "‹internal_monologue›S1", "<ns:internal_monologue>S1", r"\x3cinternal_monologue\x3eS1",
    "〈Internal Monologue〉S1",
]  # fmt: skip
PLAIN_ONLY = [
    "<antThinking>S1</antThinking>Hi", "<reflection>S1</reflection>Hi", "<analysis>S1</analysis>Hi",
    "<|channel|>analysis<|message|>S1<|end|>Hi", "<|begin_of_thought|>S1", "<｜tool▁calls▁begin｜>S1",
    "[THINK]S1[/THINK]Hi", "◁think▷S1◁/think▷Hi", "<іnternal_monologue>S1</іnternal_monologue>Hi",
    '{"monologue": "S1", "dialogue": "Hi"}', "{'inner_thoughts': 'S1'}", "Hi. (internal monologue) S1",
    "Hi. *internal monologue* S1", "Hi. internal_monologue S1", "Hi. InternalMonologue S1",
]  # fmt: skip


@pytest.mark.parametrize("text", TAGS + PLAIN_ONLY)
def test_a_thought_in_disguise_is_not_spoken_as_plain_words(text: str) -> None:
    """A reply without a tag of ours is spoken whole only where nothing in it is marked as a step or as reasoning."""
    assert is_structured(text)
    assert isinstance(climb(read(text)[0], OutputRules(fallback="FIXED")), NeedsRepair)


@pytest.mark.parametrize("text", TAGS)
def test_a_step_s_name_in_disguise_ends_what_is_said(text: str) -> None:
    """Within the words aloud it asks for a repair; where they are streamed, nothing behind it is shown; the gate holds."""
    reply = f"<external_dialogue>Well. {text}</external_dialogue>"
    parser, stream = Parser(), StreamGate(OutputRules(fallback="FIXED"))

    shown = "".join(stream.show(parser.feed(piece)) for piece in cut_up(reply, [3]))

    assert isinstance(climb(read(reply)[0], OutputRules(fallback="FIXED")), NeedsRepair)
    assert "S1" not in shown
    assert gate(text, OutputRules(fallback="FIXED")).hits == ("G1",)


@pytest.mark.parametrize(
    "text",
    [
        "My internal monologue is my own.", "I think, therefore [I am].", "a <| b |> c", "Use <name> or <имя>.", "[1] a *thought*",
        "He said: (thinking) no.", "An internal-monologue column?", "Is 5 < 6? The analysis says so.", '{"name": "thought"}',
    ],
)  # fmt: skip
def test_plain_words_stay_plain(text: str) -> None:
    """Words that only speak of thinking, foreign tags and brackets are said as they are."""
    assert not is_structured(text)
    assert not is_disguised(text)
