"""looking_inward: to look, once talk has ended, at what it has left behind; silent, and borrowed for one turn."""

from __future__ import annotations

from claudius.cognition.processes.process import wording

COGNITIVE_STEPS = ("internal_monologue", "soul_state_check", "soul_state_update")
INTERVALS = {"soul_state_check": 1}
INSTRUCTION_OVERRIDES = wording("looking_inward")
SILENCE_OK = True
NEXT = ()
