"""user_model_check: has the soul learned something about the speaker? If so, the next turn shows the user model.

A true answer also enables `user_model_update` in this turn.
"""

from __future__ import annotations

from claudius.cognition.reply.readers import read_bool
from claudius.cognition.steps.step import NOTHING, Effect, Reading, Situation, Step
from claudius.cognition.steps.user_model_update import outcome
from claudius.recollection import Entry, EntryType


def _gate(situation: Situation) -> bool:
    return situation.person is not None


def _effect(reading: Reading) -> Effect:
    answers = reading.thoughts.get("user_model_check", ())
    if not answers or reading.person is None:
        return NOTHING
    truth = read_bool([answer.content for answer in answers])
    fate = outcome(reading).fate
    entry = Entry(
        entry_type=EntryType.MENTAL_QUERY,
        content=f"Claudius judged whether the user model of {reading.person.name} needs a change: {str(truth).lower()}",
        at=reading.recollection.now,
        metadata={
            "query": "user_model_check",
            "person": reading.person.person,
            "result": truth,
            "shown": reading.person.models[0].version if reading.seen else None,
            "update": fate,
        },
    )
    return Effect(entries=(entry,))


STEP = Step(name="user_model_check", gate=_gate, effect=_effect)
