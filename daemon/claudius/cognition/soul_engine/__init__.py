"""The pure heart of a turn: plan what is asked, build the prompt, read the reply, conclude what changes."""

from __future__ import annotations

from claudius.cognition.soul_engine.assembly import (
    build_prompt,
    prompt_sha256,
    repair_tail,
    system_text,
)
from claudius.cognition.soul_engine.conclusion import (
    TOO_LONG,
    Kept,
    conclude,
    conclude_apology,
    conclude_heard,
    conclude_unthought,
    draft_utterance,
    lines_for,
)
from claudius.cognition.soul_engine.gate import StreamGate
from claudius.cognition.soul_engine.interpretation import interpret, plain_reply
from claudius.cognition.soul_engine.ladder import NeedsRepair, Spoken, climb
from claudius.cognition.soul_engine.output_rules import OutputRules, output_rules
from claudius.cognition.soul_engine.parsed import Parsed
from claudius.cognition.soul_engine.parser import Parser
from claudius.cognition.soul_engine.planning import EngineSettings, Plan, compact, plan
from claudius.cognition.soul_engine.render import merged, render_summary, render_turn
from claudius.cognition.soul_engine.snapshot import Erased, freeze, rebuild, thaw, with_soul

__all__ = [
    "TOO_LONG",
    "EngineSettings",
    "Erased",
    "Kept",
    "NeedsRepair",
    "OutputRules",
    "Parsed",
    "Parser",
    "Plan",
    "Spoken",
    "StreamGate",
    "build_prompt",
    "climb",
    "compact",
    "conclude",
    "conclude_apology",
    "conclude_heard",
    "conclude_unthought",
    "draft_utterance",
    "freeze",
    "interpret",
    "lines_for",
    "merged",
    "output_rules",
    "plain_reply",
    "plan",
    "prompt_sha256",
    "rebuild",
    "render_summary",
    "render_turn",
    "repair_tail",
    "system_text",
    "thaw",
    "with_soul",
]
