"""The psyche: numbers below language that move with every event, decide when to think and reach prompts as words. Pure.

The package uses no clock, no file of the home, no model and no randomness: everything it needs is an argument. A turn
calls `attend` before the model and `settle` after it.
"""

from claudius.psyche.attend import Attention, attend, set_back, settle
from claudius.psyche.events import GateSettings

__all__ = ["Attention", "GateSettings", "attend", "set_back", "settle"]
