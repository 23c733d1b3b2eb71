"""Import what somebody else wrote: whatever a module of theirs raises is one kind of error."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from types import ModuleType
from typing import Any

from msgspec import Struct, field

from claudius.cognition.working_memory import WorkingMemory


def module_of(name: str) -> ModuleType:
    """Import a module. Raises: ImportError with the cause in one line, for any error that the import raised."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise
    except Exception as error:
        raise ImportError(f"{name}: {type(error).__name__}: {error}") from error


class Interruption(StrEnum):
    """What a turn does if something new is heard in its conversation before any of its output is visible."""

    QUEUE = "queue"
    """The turn continues; the new perception waits."""
    YIELD = "yield"
    """The turn stops at its next `think` or loop head: its thoughts are kept, its messages join the next turn."""
    REPLACE = "replace"
    """The model call is cancelled, nothing is kept, and its messages join the next turn."""


class Participation(StrEnum):
    """How a message is handled that is not owed a reply because of its place."""

    ALWAYS = "always"
    """Every message is owed a reply."""
    ADDRESSED = "addressed"
    """The message is stored; no model is asked."""
    GROUP = "group"
    """Attention decides, in code."""
    CONSUME = "consume"
    """The message is only stored: no reply is ever owed here."""


class Transition(Struct, frozen=True):
    """The next process: `to` is a registered name; `memory` is what the turn leaves in working memory."""

    memory: WorkingMemory | None = None
    to: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    execute_now: bool = False
    """Run the next process at once, in this turn, on the same perception."""


Outcome = WorkingMemory | Transition
Run = Callable[..., Awaitable[Any]]
Judge = Callable[[Mapping[str, Any]], str | Transition | None]


class Wording(Struct, frozen=True):
    """A reference to a process's text, read by step when a turn begins, so that an edit takes effect at once."""

    name: str


def wording(name: str) -> Wording:
    """Use the text of a process, `soul/processes/NAME.md`, as its instruction overrides."""
    return Wording(name)


class Process(Struct, frozen=True, kw_only=True):
    """One behaviour mode of a conversation."""

    name: str
    steps: tuple[str, ...] = ()
    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further verbs per step, in addition to those of the step's own file."""
    intervals: Mapping[str, int] = field(default_factory=dict)
    """Interval of each periodic step, in turns; overrides the settings."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Step → this process's wording, sent beside the step's name."""
    wording: str = ""
    """The process whose text the overrides are read from; empty = `overrides` holds them."""
    interruption: Interruption = Interruption.QUEUE
    participation: Participation | None = None
    """None = the setting of the place."""
    linger: timedelta | None = None
    """After this much silence the conversation returns to its entry process; None = never."""
    moods: tuple[str, ...] = ()
    """The process lasts while the conversation's mood is one of these; empty = any mood."""
    silence_ok: bool = False
    """A turn that owes no reply may end silently."""
    may_execute_now: bool = False
    next: tuple[str, ...] | None = None
    """The processes it may go to; None = any."""
    should_transition: Judge | None = None
    run: Run | None = None
    """The function of a programmatic process; None = declarative."""
    description: str = ""

    @property
    def is_simple(self) -> bool:
        """Whether one fused call decides the whole turn: no chain, no function, no interruption."""
        return self.run is None and not self.may_execute_now and self.interruption is Interruption.QUEUE


def declared(name: str, module: ModuleType) -> Process:
    """Read a declarative process from its module. Raises: AttributeError if it lists no steps."""
    overrides = getattr(module, "INSTRUCTION_OVERRIDES", {})
    participation = getattr(module, "PARTICIPATION", None)
    follows = getattr(module, "NEXT", None)
    return Process(
        name=name,
        steps=tuple(module.COGNITIVE_STEPS),
        verbs=dict(getattr(module, "VERBS", {})),
        intervals=dict(getattr(module, "INTERVALS", {})),
        overrides={} if isinstance(overrides, Wording) else dict(overrides),
        wording=overrides.name if isinstance(overrides, Wording) else "",
        interruption=Interruption(getattr(module, "INTERRUPTION", Interruption.QUEUE)),
        participation=Participation(participation) if participation else None,
        linger=getattr(module, "LINGER", None),
        moods=tuple(getattr(module, "MOODS", ())),
        silence_ok=bool(getattr(module, "SILENCE_OK", False)),
        may_execute_now=bool(getattr(module, "MAY_EXECUTE_NOW", False)),
        next=None if follows is None else tuple(follows),
        should_transition=getattr(module, "should_transition", None),
        description=(module.__doc__ or "").strip().partition("\n")[0],
    )


def mental_process(
    *,
    interruption: Interruption = Interruption.QUEUE,
    participation: Participation | None = None,
    linger: timedelta | None = None,
    silence_ok: bool = False,
    may_execute_now: bool = False,
    next: tuple[str, ...] | None = None,  # noqa: A002 - the word of the design
) -> Callable[[Run], Process]:
    """Make a programmatic process of `async def name(turn, memory, **params)`; its name is the function's."""

    def made(run: Run) -> Process:
        return Process(
            name=getattr(run, "__name__", "process"),
            interruption=interruption,
            participation=participation,
            linger=linger,
            silence_ok=silence_ok,
            may_execute_now=may_execute_now,
            next=next,
            run=run,
            description=(run.__doc__ or "").strip().partition("\n")[0],
        )

    return made
