"""The registry of cognitive steps, in reply order. A step is a file here, a text in soul/steps, a line in `STEPS`."""

from __future__ import annotations

import importlib
from functools import cache

from claudius.cognition.steps.step import Step

STEPS: dict[str, str] = {
    "internal_monologue": "claudius.cognition.steps.internal_monologue:STEP",
    "external_dialogue": "claudius.cognition.steps.external_dialogue:STEP",
    "user_model_check": "claudius.cognition.steps.user_model_check:STEP",
    "user_model_update": "claudius.cognition.steps.user_model_update:STEP",
    "model_change_note": "claudius.cognition.steps.model_change_note:STEP",
    "soul_state_check": "claudius.cognition.steps.soul_state_check:STEP",
    "soul_state_update": "claudius.cognition.steps.soul_state_update:STEP",
    "mental_query": "claudius.cognition.steps.mental_query:STEP",
    "action_choice": "claudius.cognition.steps.action_choice:STEP",
    "assess_peer": "claudius.cognition.steps.assess_peer:STEP",
    "stance_shifts": "claudius.cognition.steps.stance_shifts:STEP",
    "intention_updates": "claudius.cognition.steps.intention_updates:STEP",
    "chosen_action": "claudius.cognition.steps.chosen_action:STEP",
}
PSYCHE_STEPS = ("stance_shifts", "intention_updates", "chosen_action")
"""Steps that the psyche asks, whatever a process lists; with the psyche off they are in no prompt."""


@cache
def step(name: str) -> Step:
    """Load a step by its name. Raises: KeyError if it is unknown."""
    module, _, attribute = STEPS[name].partition(":")
    found: Step = getattr(importlib.import_module(module), attribute)
    return found
