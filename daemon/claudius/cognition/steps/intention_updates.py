"""intention_updates: what the soul intends beyond this reply, in words from closed lists."""

from __future__ import annotations

from claudius.cognition.addressing import people
from claudius.cognition.steps.step import NOTHING, Effect, Reading, Situation, Step
from claudius.psyche.mapping import read_updates


def _gate(situation: Situation) -> bool:
    return "intention_updates" in situation.asks


def _effect(reading: Reading) -> Effect:
    said = reading.thoughts.get("intention_updates", ())
    if not said or "intention_updates" not in reading.asked:
        return NOTHING
    updates, dropped = read_updates("\n".join(one.content for one in said), people(reading.recollection))
    told = [{"operation": one.operation, "type": one.type, "horizon": one.horizon} for one in updates]
    changes = {"intentions": told} if told else {}
    return Effect(intentions=updates, changes=changes, flags=("dropped:intention_updates",) if dropped else ())


STEP = Step(name="intention_updates", gate=_gate, effect=_effect)
