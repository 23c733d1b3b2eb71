"""main_process: the ordinary mind, all steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COGNITIVE_STEPS = (
    "internal_monologue",
    "external_dialogue",
    "user_model_check",
    "user_model_update",
    "model_change_note",
    "soul_state_check",
    "soul_state_update",
    "assess_peer",
)
NEXT = ("frustrated", "deep_work", "problem_solving")


def should_transition(parse_result: Mapping[str, Any]) -> str | None:
    """Follow the mood that this turn moved: into a short temper, or into work. Pure."""
    moved = parse_result.get("soul_state", {})
    if moved.get("emotionalState") == "focused":
        return "problem_solving" if moved.get("currentTask") else "deep_work"
    return "frustrated" if moved.get("emotionalState") == "frustrated" else None
