"""mental_query: is a statement true? Asked by programmatic processes alone, which fill in the statement."""

from __future__ import annotations

from claudius.cognition.steps.step import Step

STEP = Step(name="mental_query")
