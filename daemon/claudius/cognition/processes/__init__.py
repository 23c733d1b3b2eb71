"""Mental processes: which steps a conversation's mode asks, and where it may go next."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from claudius.recollection import Recollection

ENTRY = "main_process"

PROCESSES: dict[str, str] = {
    "main_process": "claudius.cognition.processes.main_process",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One behaviour mode of a conversation, as its module declares it."""

    name: str
    steps: tuple[str, ...]
    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further verbs per step, over those of the step's own file."""
    intervals: Mapping[str, int] = field(default_factory=dict)
    """How often a periodic step is asked, in turns; over the settings."""


@cache
def process(name: str) -> Process:
    """Load a process by its name or import string. Raises: ModuleNotFoundError, AttributeError."""
    module = importlib.import_module(PROCESSES.get(name, name))
    return Process(
        name=name,
        steps=tuple(module.COGNITIVE_STEPS),
        verbs=dict(getattr(module, "VERBS", {})),
        intervals=dict(getattr(module, "INTERVALS", {})),
    )


def route(recollection: Recollection) -> Process:
    """Choose the process of this turn: the conversation's saved one if it is registered, else the entry. Pure."""
    saved = recollection.process.process
    return process(saved if saved in PROCESSES else ENTRY)
