"""model_change_note: one line on what shifted; it becomes the version's note and its git commit message."""

from __future__ import annotations

from claudius.cognition.steps.step import Situation, Step


def _gate(situation: Situation) -> bool:
    return situation.person is not None and situation.seen


STEP = Step(name="model_change_note", gate=_gate, after="user_model_check")
