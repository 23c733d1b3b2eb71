"""Mental processes: what one is, how one is read from a text or a module, which are known, and which a turn runs.

An owner's text in `soul/processes/` holds its options in the head, its words below, and a heading for each step. A text
or module that cannot be used is logged, and the conversation goes on in its entry process.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cache, lru_cache
from types import MappingProxyType, ModuleType
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from claudius.cognition.steps import STEPS, Step, placed, step_of, unfit
from claudius.cognition.working_memory import WorkingMemory
from claudius.decoding import ready
from claudius.errors import BadSoul, near
from claudius.foreign import unquoted
from claudius.perception import internal
from claudius.psyche.context import MOOD
from claudius.recollection import Recollection
from claudius.soul import SoulFile, SoulText

log = logging.getLogger(__name__)

ENTRY, GREETING = "main_process", "greeting"
AUTONOMOUS, INSTEAD = "problem_solving", "deep_work"
"""Without the implicit semantic machine, the second runs in place of the first."""

PROCESSES: dict[str, str] = {
    "main_process": "claudius.cognition.processes.shipped:MAIN_PROCESS",
    "greeting": "claudius.cognition.processes.shipped:GREETING",
    "deep_work": "claudius.cognition.processes.shipped:DEEP_WORK",
    "frustrated": "claudius.cognition.processes.shipped:FRUSTRATED",
    "proactive": "claudius.cognition.processes.shipped:PROACTIVE",
    "looking_inward": "claudius.cognition.processes.shipped:LOOKING_INWARD",
    "problem_solving": "claudius.cognition.ism:problem_solving",
}


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


wording = Wording
"""Use the text of a process, `soul/processes/NAME.md`, as its instruction overrides."""


class Process(Struct, frozen=True, kw_only=True):
    """One behaviour mode of a conversation."""

    name: str
    steps: tuple[str, ...] = ()
    own: Mapping[str, Step] = field(default_factory=dict)
    """Those of its steps that are the owner's own."""
    order: tuple[str, ...] = STEPS
    """Every shipped step, and its own ones in their places among them."""
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


_HEADING = re.compile(r"^## +([\w ]+?) *$", re.MULTILINE)
ANY = "*"
"""In a table of transitions: any value; in `steps`: those of the shipped process of that name, with all its options."""


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """The head of a process that is written as a text."""

    python: str = ""
    """`module:function`: that function is the process, and the text below is its wording."""
    steps: tuple[str, ...] = ()
    verbs: dict[str, tuple[str, ...]] = {}
    intervals: dict[str, int] = {}
    interruption: Interruption = Interruption.QUEUE
    participation: Participation | None = None
    linger_hours: Annotated[float, Meta(gt=0)] | None = None
    silence_ok: bool = False
    after: str = ""
    """The next process after each turn, unless a transition says otherwise."""
    transitions: dict[str, dict[str, str]] = {}
    """Soul-state key or step → resulting value → next process."""


@lru_cache(maxsize=256)
def _sections(text: str) -> tuple[str, Mapping[str, str]]:
    opening, *parts = _HEADING.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return opening.strip(), MappingProxyType({name.strip(): body.strip() for name, body in pairs})


def sections(file: SoulFile | None) -> Mapping[str, str]:
    """Return the body under each level-2 heading of a process's text. Pure."""
    return _sections(file.text)[1] if file else MappingProxyType({})


def described(file: SoulFile) -> str:
    """Return the text before the first heading of a process's text, as one line. Pure."""
    return " ".join(_sections(file.text)[0].split())


def is_process(file: SoulFile) -> bool:
    """Return whether a text defines a whole process, and not only the wording of one. Pure."""
    return "steps" in file.head or "python" in file.head


def written(name: str, file: SoulFile, names: Collection[str]) -> Process:
    """Read a process from its text; `names` are those of all soul files. Raises: BadSoul."""
    where = str(file.source)
    try:
        head = msgspec.convert(dict(file.head), ready(_Head))
    except msgspec.ValidationError as error:
        raise BadSoul(where, 1, f"its head: {error}", "docs/processes.md shows what belongs there") from error
    known = {*STEPS, *[one.removeprefix("steps/").removesuffix(".md") for one in names if one.startswith("steps/")]}
    words = {step: " ".join(body.split()) for step, body in sections(file).items() if step in known}
    if head.python:
        try:
            return replace(process(head.python), name=name, wording=name, overrides={}, description=described(file))
        except (ImportError, AttributeError, ValueError) as error:
            raise BadSoul(where, 1, f"its head: python: {error}", "install that module with Claudius") from error
    shipped = process(name) if ANY in head.steps and name in PROCESSES else Process(name=name)
    steps = tuple([one for step in head.steps for one in (shipped.steps if step == ANY else (step,))])
    strange = [step for step in (*steps, *head.verbs, *head.intervals) if step not in known]
    if strange or not steps:
        nearest = near(strange[0], known) if strange else ""
        detail = f"its head: there is no step {strange[0]!r}{nearest}" if strange else "its head lists no steps"
        raise BadSoul(where, 1, detail, f"the steps are {', '.join(sorted(STEPS))}")
    targets = [to for table in head.transitions.values() for to in table.values()]
    leads = bool(targets or head.after) or not shipped.steps
    return replace(
        shipped,
        steps=steps,
        verbs={**shipped.verbs, **head.verbs},
        intervals={**shipped.intervals, **head.intervals},
        overrides=words,
        wording="",
        interruption=head.interruption,
        participation=head.participation,
        linger=timedelta(hours=head.linger_hours) if head.linger_hours else shipped.linger,
        silence_ok=head.silence_ok or shipped.silence_ok,
        next=tuple(dict.fromkeys(filter(None, [*targets, head.after]))) if leads else shipped.next,
        should_transition=_judge(head.transitions, head.after) if leads else shipped.should_transition,
        description=described(file),
    )


def _judge(transitions: Mapping[str, Mapping[str, str]], after: str) -> Judge:
    def should_transition(parse_result: Mapping[str, Any]) -> str | None:
        moved = {**parse_result, **parse_result.get("soul_state", {})}
        for key, table in transitions.items():
            if key not in moved:
                continue
            value = moved[key]
            said = str(value).lower() if isinstance(value, bool) else str(value)
            target = table.get(said) or table.get(ANY)
            if target:
                return target
        return after or None

    return should_transition


@cache
def process(name: str) -> Process:
    """Load a process by its name or import string.

    Raises: ImportError, AttributeError, ValueError if there is no such process.
    """
    target, _, attribute = PROCESSES.get(name, name).partition(":")
    module = module_of(target)
    if not attribute:
        return declared(name, module)
    found = getattr(module, attribute)
    if not isinstance(found, Process):
        raise ValueError(f"{name} is not a mental process: decorate it with @mental_process()")
    is_worded_by_name = found.run is not None and name in PROCESSES
    return replace(found, name=name, wording=found.wording or (name if is_worded_by_name else ""))


def find(name: str, soul: SoulText) -> Process | None:
    """Return a process by its name, the owner's texts first, or by its import string; None if there is none.

    Where the owner's text cannot be used, the shipped process of that name runs on.
    Its overrides are read from the current soul.
    """
    key = "process", name
    if key not in soul.derived:
        soul.derived[key] = _found(name, soul)
    found: Process | None = soul.derived[key]
    return found


def _found(name: str, soul: SoulText) -> Process | None:
    file = soul.files.get(f"processes/{name}.md")
    try:
        if file and is_process(file):
            return with_own(written(name, file, soul.files), soul)
        if name not in PROCESSES and ":" not in name:
            return None
        found = process(name)
    except (BadSoul, ImportError, AttributeError, ValueError) as error:
        log.warning("a process cannot be used", extra={"mental_process": name, "error": unquoted(error)})
        return process(name) if isinstance(error, BadSoul) and name in PROCESSES else None
    worded = sections(soul.files.get(f"processes/{found.wording}.md")) if found.wording else {}
    words = {step: " ".join(body.split()) for step, body in worded.items() if step in STEPS}
    said = described(file) if file else found.description
    return replace(found, overrides={**found.overrides, **words}, description=said)


class OwnStepUnfit(BadSoul):
    """A step of the owner's own cannot be asked."""


def with_own(found: Process, soul: SoulText) -> Process:
    """Add a process's steps of the owner's own. Raises: BadSoul for one that cannot be asked."""
    own = [name for name in found.steps if name not in STEPS]
    for name in own:
        file = soul.files.get(f"steps/{name}.md")
        detail = unfit(name, soul)
        after = soul.steps[name].after if not detail else ""
        if not detail and after and after not in found.steps:
            detail = f"its head: after: the process {found.name} does not ask {after!r}"
        if detail:
            raise OwnStepUnfit(str(file.source) if file else f"steps/{name}.md", 1, detail, OWN)
    steps = {name: step_of(name, soul) for name in own}
    checks = {name: one.after for name, one in steps.items() if one.after}
    return replace(found, own=steps, order=tuple(placed(found.steps, checks))) if own else found


OWN = "docs/extend.md, `A step without Python`, shows what belongs there"


def known_names(soul: SoulText) -> Iterator[str]:
    """Yield the name of every process: the built-in ones, then the owner's own. Pure."""
    yield from PROCESSES
    for name, file in soul.files.items():
        stem = name.removeprefix("processes/").removesuffix(".md")
        if name.startswith("processes/") and stem not in PROCESSES and is_process(file):
            yield stem


HEAD = "between the lines of +++ stands `steps = [...]` or `python = ...`; see docs/processes.md"


def check_process(file: SoulFile, names: Collection[str]) -> None:
    """Check that a process's text can be used; any other file passes. Raises: BadSoul.

    `names` are those of all soul files; whether a step of the owner's own can be asked is not looked at.
    """
    folder, _, leaf = file.name.partition("/")
    if folder != "processes":
        return
    if is_process(file):
        written(leaf.removesuffix(".md"), file, names)
    elif file.head:
        raise BadSoul(str(file.source), 1, "its head names neither steps nor python", HEAD)


def route(recollection: Recollection, soul: SoulText, *, autonomous: bool = False, mood: str = "") -> Process:
    """Choose the process of this turn. Pure, but for a warning.

    The first that applies: the one that the perception names; the saved one, if it is known and was not idle for longer
    than its `linger`; the entry. A saved one whose moods do not include the conversation's yields to the one that it
    would lead to. `autonomous`: the implicit semantic machine may be used. `mood`: empty = it is not compared.
    """
    if name := internal(recollection.perception).process:
        if found := find(resolved(name, autonomous=autonomous), soul):
            return found
        log.warning("an unknown process was asked for", extra={"mental_process": name, "turn": recollection.turn})
    saved, since = recollection.process.process, recollection.last_at or recollection.process.entered_at
    if saved:
        found = find(resolved(saved, autonomous=autonomous), soul)
        if found is None:
            log.warning("the saved process is gone", extra={"mental_process": saved, "turn": recollection.turn})
        elif not (since and found.linger is not None and recollection.now - since > found.linger):
            if not mood or not found.moods or mood in found.moods:
                return found
            to = found.should_transition and found.should_transition({"soul_state": {MOOD: mood}})
            if isinstance(to, str) and (other := find(resolved(to, autonomous=autonomous), soul)):
                return other  # the process that follows one whose mood has passed
    found = find(_entry(recollection), soul) or find(ENTRY, soul)
    return found or process(ENTRY)


def resolved(name: str, *, autonomous: bool) -> str:
    """Return the name of the process that actually runs for this name. Pure."""
    return INSTEAD if name == AUTONOMOUS and not autonomous else name


def _entry(recollection: Recollection) -> str:
    speaker = recollection.speaker
    is_stranger = (
        recollection.turns == 0
        and speaker is not None
        and speaker.is_stranger
        and all(model.version == 0 for model in speaker.models)
    )
    return GREETING if is_stranger else ENTRY
