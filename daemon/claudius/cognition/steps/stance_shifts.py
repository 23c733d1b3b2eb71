"""stance_shifts: changes of stance towards someone, in words; tables, not the model, map them to numbers."""

from __future__ import annotations

from claudius.cognition.addressing import people
from claudius.cognition.steps.step import NOTHING, Effect, Reading, Situation, Step
from claudius.psyche.mapping import read_shifts


def _gate(situation: Situation) -> bool:
    return "stance_shifts" in situation.asks


def _effect(reading: Reading) -> Effect:
    said = reading.thoughts.get("stance_shifts", ())
    if not said or "stance_shifts" not in reading.asked:
        return NOTHING
    shifts, dropped = read_shifts("\n".join(one.content for one in said), people(reading.recollection))
    told = [{"person": one.person, "stance": one.stance, "strength": one.strength} for one in shifts]
    changes = {"stances": told} if told else {}
    return Effect(shifts=shifts, changes=changes, flags=("dropped:stance_shifts",) if dropped else ())


STEP = Step(name="stance_shifts", gate=_gate, effect=_effect)
