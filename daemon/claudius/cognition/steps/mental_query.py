"""mental_query: is a statement true? Only programmatic processes ask it, and they supply the statement."""

from __future__ import annotations

from claudius.cognition.steps.step import Step

STEP = Step(name="mental_query")
