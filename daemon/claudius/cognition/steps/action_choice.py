"""action_choice: which of its actions the soul takes next. Asked by the implicit semantic machine alone."""

from __future__ import annotations

from claudius.cognition.steps.step import Step

STEP = Step(name="action_choice")
