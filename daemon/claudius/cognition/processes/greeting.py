"""greeting: the first words with someone the soul never met."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from claudius.cognition.processes.process import wording

COGNITIVE_STEPS = (
    "internal_monologue",
    "external_dialogue",
    "user_model_check",
    "user_model_update",
    "model_change_note",
)
INSTRUCTION_OVERRIDES = wording("greeting")
LINGER = timedelta(hours=24)
NEXT = ("main_process", "deep_work")


def should_transition(parse_result: Mapping[str, Any]) -> str:
    """Go on after one turn: to work, where the mood says so. Pure."""
    mood = parse_result.get("soul_state", {}).get("emotionalState")
    return "deep_work" if mood == "focused" else "main_process"
