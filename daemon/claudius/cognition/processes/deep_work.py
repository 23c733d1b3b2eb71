"""deep_work: one task, precise and complete, nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from claudius.cognition.processes.process import wording

COGNITIVE_STEPS = ("internal_monologue", "external_dialogue", "soul_state_check", "soul_state_update")
INSTRUCTION_OVERRIDES = wording("deep_work")
LINGER = timedelta(hours=8)
MOODS = ("focused", "frustrated", "sardonic")  # a quarrel somewhere else ends no work here
NEXT = ("main_process",)


def should_transition(parse_result: Mapping[str, Any]) -> str | None:
    """Leave when the mood left focused, or the task was let go. Pure."""
    moved = parse_result.get("soul_state", {})
    has_left = moved.get("emotionalState", "focused") != "focused"
    return "main_process" if has_left or moved.get("currentTask") == "" else None
