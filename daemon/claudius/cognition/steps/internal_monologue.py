"""internal_monologue: private reasoning, kept in memory and never heard."""

from __future__ import annotations

from claudius.cognition.steps.step import NOTHING, Effect, Reading, Situation, Step
from claudius.recollection import Entry, EntryType


def _gate(_: Situation) -> bool:
    return True


def _effect(reading: Reading) -> Effect:
    said = reading.thoughts.get("internal_monologue", ())
    if not said or not said[0].content.strip():
        return NOTHING
    thought = said[0]
    return Effect(
        entries=(
            Entry(
                entry_type=EntryType.INTERNAL_MONOLOGUE,
                content=thought.content.strip(),
                verb=thought.verb,
                at=reading.recollection.now,
            ),
        )
    )


STEP = Step(name="internal_monologue", gate=_gate, effect=_effect)
