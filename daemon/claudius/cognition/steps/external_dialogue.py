"""external_dialogue: what is said aloud. Its entry and utterance are made after the output ladder and gate judge it."""

from __future__ import annotations

from claudius.cognition.steps.step import Situation, Step


def _gate(situation: Situation) -> bool:
    return situation.speaks


STEP = Step(name="external_dialogue", gate=_gate)
