"""The public API for an owner's own processes, subprocesses, steps and actions, re-exported in one place."""

from __future__ import annotations

from claudius.cognition.asks import (
    Ask,
    brainstorm,
    cognitive_step,
    decision,
    external_dialogue,
    instruction,
    internal_monologue,
    mental_query,
    spoken_dialog,
    summarize,
)
from claudius.cognition.function_process import Turn, internal
from claudius.cognition.ism import Action, Continue, End, action, run_ism
from claudius.cognition.ism import IsmResult as Ended
from claudius.cognition.processes import (
    Interruption,
    Outcome,
    Participation,
    Process,
    Transition,
    mental_process,
    wording,
)
from claudius.cognition.reflection import ReflectionTurn as Reflection
from claudius.cognition.reflection import Subprocess, subprocess
from claudius.cognition.working_memory import MemoryEntry as Entry
from claudius.cognition.working_memory import WorkingMemory
from claudius.errors import ProcessError, Unreadable

__all__ = [
    "Action", "Ask", "Continue", "End", "Ended", "Entry", "Interruption", "Outcome", "Participation", "Process",
    "ProcessError", "Reflection", "Subprocess", "Transition", "Turn", "Unreadable", "WorkingMemory", "action",
    "brainstorm", "cognitive_step", "decision", "external_dialogue", "instruction", "internal", "internal_monologue",
    "mental_process", "mental_query", "run_ism", "spoken_dialog", "subprocess", "summarize", "wording",
]  # fmt: skip
