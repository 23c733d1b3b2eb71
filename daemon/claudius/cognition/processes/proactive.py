"""proactive: to write first, for one good reason; borrowed for a turn, never a conversation's home."""

from __future__ import annotations

from claudius.cognition.processes.process import wording

COGNITIVE_STEPS = ("internal_monologue", "external_dialogue")
INSTRUCTION_OVERRIDES = wording("proactive")
SILENCE_OK = True
NEXT = ()
