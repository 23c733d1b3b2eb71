"""external_dialogue: what is said aloud. Its entry and utterance are made once ladder and gate have judged it."""

from __future__ import annotations

from claudius.cognition.steps.step import Situation, Step


def _gate(situation: Situation) -> bool:
    return situation.speaks


STEP = Step(name="external_dialogue", gate=_gate)
