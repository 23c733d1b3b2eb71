"""Define cognitive steps as values (`Ask`): what is asked, how the answer is read and which line is remembered.

An `Ask` does nothing by itself; `asking` sends it, and `read` raises Unreadable for a bad answer. Source: the
process design, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.acts import ACTS, NONE, ReadActs
from claudius.cognition.reply.parser import truth
from claudius.decoding import decoder, misshapen
from claudius.errors import Unreadable

T = TypeVar("T")
P = ParamSpec("P")

SPEECH, THOUGHT, QUERY = "external_dialogue", "internal_monologue", "mental_query"
_FENCED = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_EDGES = " \t\n\"'`*.“”‘’"


def readable(value: Any) -> str:  # noqa: PLR0911 - one return for each kind of value
    """Write a value as plain words, never as Python syntax. Pure."""
    match value:
        case bool():
            return str(value).lower()
        case Enum():
            return readable(value.value)
        case str():
            return value
        case list() | tuple() | set() | frozenset():
            return ", ".join(readable(one) for one in value) or "nothing"
        case Mapping():
            return "; ".join(f"{name}: {readable(one)}" for name, one in value.items())
        case None:
            return "nothing"
    if isinstance(value, Struct) or is_dataclass(value):
        names = value.__struct_fields__ if isinstance(value, Struct) else [one.name for one in fields(value)]
        return "; ".join(f"{name.replace('_', ' ')}: {readable(getattr(value, name))}" for name in names)
    return str(value)


class Ask(Struct, Generic[T], frozen=True, kw_only=True):
    """One question to the model. `@cognitive_step` names it and makes it reusable."""

    step: str = ""
    """The step's file, `soul/steps/NAME.md`."""
    slots: Mapping[str, str] = field(default_factory=dict)
    """Values for the `$placeholder`s of that file; `instruction` = a line added by the caller."""
    schema: type[T] = str  # type: ignore[assignment]  # T is str where nothing else is said
    """`str`, `bool`, an `Enum`, `list[str]`, or a frozen dataclass against which a JSON object is validated."""
    remember: Callable[[Any], str] | None = readable
    """Returns the line to remember; None = remember nothing."""
    check: Callable[[Any], str | None] | None = None
    """Returns what is wrong with a readable value, in words; None = it is fine."""
    beside: str = ""
    """Another step's file, whose text is said beside this one's."""


def cognitive_step(name: str) -> Callable[[Callable[P, Ask[T]]], Callable[P, Ask[T]]]:
    """Turn a function that returns an `Ask` into a cognitive step whose text is `soul/steps/NAME.md`."""

    def made(function: Callable[P, Ask[T]]) -> Callable[P, Ask[T]]:
        @wraps(function)
        def asked(*args: P.args, **kwargs: P.kwargs) -> Ask[T]:
            return replace(function(*args, **kwargs), step=name)

        vars(asked)["step"] = name  # `claudius soul check` finds the owner's own steps by it
        return asked

    return made


def _told(instruction: str) -> dict[str, str]:
    return {"instruction": instruction} if instruction else {}


@cognitive_step(THOUGHT)
def internal_monologue(instruction: str = "") -> Ask[str]:
    """Think privately about the instruction."""
    return Ask(slots=_told(instruction))


@cognitive_step(SPEECH)
def external_dialogue(instruction: str = "") -> Ask[str]:
    """Word what will be said aloud; nobody hears it before the process says it."""
    return Ask(slots=_told(instruction))


def spoken_dialog(instruction: str = "") -> Ask[str]:
    """Word what will be said aloud for the ear, without anything that only the eye can read."""
    return replace(external_dialogue(instruction), beside="spoken_dialog")


@cognitive_step("decision")
def decision(choices: Sequence[str], about: str = "") -> Ask[Any]:
    """Choose one of several; the value is a string, the choice itself. Raises: ValueError for fewer than two."""
    if len(choices) < 2:
        raise ValueError("a decision has at least two choices")
    named = {f"choice_{n}": one for n, one in enumerate(choices)}
    of: Any = StrEnum("Choice", named)  # type: ignore[misc]  # mypy reads only literals there
    return Ask(
        slots={"choices": " | ".join(choices), **_told(about)},
        schema=of,
        remember=lambda one: f"Claudius chose {one} of {', '.join(choices)}",
    )


@cognitive_step("brainstorm")
def brainstorm(n: int, about: str = "") -> Ask[list[str]]:
    """Find `n` ideas; the value is a list of `n` lines."""
    return Ask(
        slots={"n": str(n), **_told(about)},
        schema=list[str],
        check=lambda ideas: None if len(ideas) == n else f"there are {len(ideas)} ideas, and {n} are wanted",
    )


@cognitive_step("summarize")
def summarize(about: str = "") -> Ask[str]:
    """Sum up what was said here so far; `about`: what to look at above all."""
    return Ask(slots=_told(about))


@cognitive_step("instruction")
def instruction(task: str) -> Ask[str]:
    """Carry out a task upon what is known here; the value is what comes of it, and it is private."""
    return Ask(slots=_told(task))


@cognitive_step(ACTS)
def acts() -> Ask[ReadActs]:
    """Do what is to be done beyond the words that are asked for with it: they are read and checked as one."""
    return Ask(schema=ReadActs, remember=lambda found: found.written or NONE)


@cognitive_step(QUERY)
def mental_query(statement: str) -> Ask[bool]:
    """Judge whether a statement is true."""

    def judged(is_true: bool) -> str:  # noqa: FBT001 - the value of the step
        return f"Claudius judged whether {statement}: {readable(is_true)}"

    return Ask(slots={"statement": statement}, schema=bool, remember=judged)


def read(ask: Ask[T], text: str) -> T:
    """Read a section's text as the step's value. Pure. Raises: Unreadable with the reason."""
    try:
        value: T = _read(ask.schema, text)
    except msgspec.MsgspecError as error:
        raise Unreadable(ask.step, misshapen(error)) from error
    except ValueError as error:
        raise Unreadable(ask.step, str(error)) from error
    wrong = ask.check(value) if ask.check else None
    if wrong:
        raise Unreadable(ask.step, wrong)
    return value


def _read(schema: Any, text: str) -> Any:
    if schema is str:
        if not text.strip():
            raise ValueError("it is empty")
        return text.strip()
    if schema is bool:
        said = truth(text)
        if said is None:
            raise ValueError("it is neither true nor false")
        return said
    if isinstance(schema, type) and issubclass(schema, Enum):
        return _member(schema, text)
    if get_origin(schema) is list and get_args(schema) == (str,):
        return _lines(text)
    return decoder(schema).decode(_FENCED.sub(r"\1", text).strip())


def _member(schema: type[Enum], text: str) -> Enum:
    said = text.strip(_EDGES).casefold()
    for member in schema:
        if said in (member.name.casefold(), str(member.value).casefold()):
            return member
    raise ValueError(f"it is none of {', '.join(str(member.value) for member in schema)}")


def _lines(text: str) -> list[str]:
    plain = _FENCED.sub(r"\1", text).strip()
    if plain.startswith("["):
        return decoder(list[str]).decode(plain)
    found = [_BULLET.sub("", line).strip() for line in plain.splitlines()]
    return [line for line in found if line]


def without_prefix(text: str, name: str, verbs: tuple[str, ...] = ("said",)) -> str:
    """Remove `NAME said:` or `NAME:` from the very start of a reply, by literal comparison. Pure."""
    plain = text.lstrip()
    for opening in (*(f"{name} {verb}:" for verb in verbs), f"{name}:"):
        if name and plain.startswith(opening):
            return plain.removeprefix(opening).lstrip()
    return text
