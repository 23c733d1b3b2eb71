"""soul_state_update: `key: value` lines that change the soul's state, each stored under the audience of the turn.

Source: the pipeline design, section 9.
"""

from __future__ import annotations

from claudius.cognition.reply.readers import read_bool, read_state
from claudius.cognition.steps.step import NOTHING, Effect, Reading, Situation, Step
from claudius.intent import StateChange
from claudius.perception import SELF
from claudius.recollection import STATE_DEFAULTS, StateKey


def _gate(_: Situation) -> bool:
    return True


def _effect(reading: Reading) -> Effect:
    checks = reading.thoughts.get("soul_state_check", ())
    updates = reading.thoughts.get("soul_state_update", ())
    if not updates or "soul_state_update" not in reading.asked:
        return NOTHING
    if not read_bool([check.content for check in checks]):
        return Effect(changes={"soul_state": {"result": "refused:check"}})
    now = {value.key: value.value for value in reading.recollection.state}
    said = read_state("\n".join(update.content for update in updates))
    mood = said.get(StateKey.EMOTIONAL_STATE.value, "")
    moved = {key: value for key, value in said.items() if value != now.get(key, STATE_DEFAULTS[key])}
    if not moved:
        return Effect(mood=mood)
    changes = tuple(
        StateChange(
            key=key,
            value=value,
            audience=SELF if key == StateKey.EMOTIONAL_STATE else reading.recollection.audience,
        )
        for key, value in moved.items()
    )
    return Effect(state=changes, changes={"soul_state": moved}, mood=mood)


STEP = Step(name="soul_state_update", gate=_gate, after="soul_state_check", effect=_effect)
