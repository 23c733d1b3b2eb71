"""A mental process written as a text: its options in the head, its words below, a heading for each step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from claudius.cognition.processes.process import Interruption, Judge, Participation, Process
from claudius.errors import BadSoul
from claudius.soul import SoulFile

_HEADING = re.compile(r"^## +([\w ]+?) *$", re.MULTILINE)
ANY = "*"
"""In a table of transitions: matches any value."""


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


def written(name: str, file: SoulFile, load: Callable[[str], Process], known: frozenset[str]) -> Process:
    """Read a process from its text; `load` finds a function by its import string. Raises: BadSoul.

    `known`: the names of all cognitive steps.
    """
    where = str(file.source)
    try:
        head = msgspec.convert(dict(file.head), _Head)
    except msgspec.ValidationError as error:
        raise BadSoul(where, 1, f"its head: {error}", "docs/processes.md shows what belongs there") from error
    words = {step: " ".join(body.split()) for step, body in sections(file).items() if step in known}
    if head.python:
        try:
            return replace(load(head.python), name=name, wording=name, overrides={}, description=described(file))
        except (ImportError, AttributeError, ValueError) as error:
            raise BadSoul(where, 1, f"its head: python: {error}", "install that module beside Claudius") from error
    strange = [step for step in (*head.steps, *head.verbs, *head.intervals) if step not in known]
    if strange or not head.steps:
        detail = f"its head: there is no step {strange[0]!r}" if strange else "its head lists no steps"
        raise BadSoul(where, 1, detail, f"the steps are {', '.join(sorted(known))}")
    return Process(
        name=name,
        steps=head.steps,
        verbs=head.verbs,
        intervals=head.intervals,
        overrides=words,
        interruption=head.interruption,
        participation=head.participation,
        linger=timedelta(hours=head.linger_hours) if head.linger_hours else None,
        silence_ok=head.silence_ok,
        next=tuple(dict.fromkeys([*_targets(head.transitions), *([head.after] if head.after else [])])),
        should_transition=_judge(head.transitions, head.after),
        description=described(file),
    )


def _targets(transitions: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for table in transitions.values():
        yield from table.values()


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
