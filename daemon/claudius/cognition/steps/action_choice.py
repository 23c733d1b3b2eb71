"""action_choice: which action the soul takes next. Only the implicit semantic machine asks it."""

from __future__ import annotations

from claudius.cognition.steps.step import Step

STEP = Step(name="action_choice")
