"""The numbers below language: they move with every event, decide when to think, and come out as words only. Pure.

No clock, no file of the home, no model, no chance: what it needs comes in as arguments. Two doors: `attend` before the
model, `settle` after it.
"""

from claudius.psyche.attend import attend, recollect, settle
from claudius.psyche.attention import Attention, Temper
from claudius.psyche.models import Weighing

__all__ = ["Attention", "Temper", "Weighing", "attend", "recollect", "settle"]
