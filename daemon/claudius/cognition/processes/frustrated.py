"""frustrated: short and dry until the mood passes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from claudius.cognition.processes.process import wording

COGNITIVE_STEPS = ("internal_monologue", "external_dialogue", "soul_state_check", "soul_state_update")
INSTRUCTION_OVERRIDES = wording("frustrated")
INTERVALS = {"soul_state_check": 1}
LINGER = timedelta(hours=2)
MOODS = ("frustrated", "sardonic")
NEXT = ("main_process", "deep_work")
AFTER = {"neutral": "main_process", "engaged": "main_process", "focused": "deep_work"}


def should_transition(parse_result: Mapping[str, Any]) -> str | None:
    """Leave with the mood. Pure."""
    return AFTER.get(parse_result.get("soul_state", {}).get("emotionalState"))
