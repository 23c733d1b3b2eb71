"""One text file of the soul, and a step's text: check the bytes, normalise the line ends, read the front matter.

A file that cannot be used raises a `BadSoul` that says what is wrong.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from claudius.decoding import ready
from claudius.errors import BadSoul

MAX_BYTES = 1_000_000
PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "summary.md": ("chars",),
    "reask.md": ("step", "reason"),
    "repair_acts.md": ("reasons",),
    "cortex.md": ("name", "guide"),
    "consult.md": ("name", "guide"),
    "triage.md": ("name",),
}
"""Each file's required `$` placeholders. Steps may hold `$verbs`, apologies `$turn`; elsewhere a `$` is literal."""

LINE_SLOTS = ("tool", "call", "who", "name", "minutes")

Stamp = tuple[int, int, int]
"""Modification time (ns), size (bytes), inode: a file whose stamp is the same is unchanged."""
Apology = Literal["provider_down", "over_budget", "unreadable", "interrupted", "too_large", "stopped"]
Mood = Literal["neutral", "engaged", "focused", "frustrated", "sardonic"]
StepValue = Literal["text", "bool", "markdown", "line", "lines"]
_T = TypeVar("_T")


class SoulFile(Struct, frozen=True):
    """One text file of the soul: `name` is relative (`steps/recall.md`), `text` excludes its front matter."""

    name: str
    text: str
    source: Path
    sha256: str
    """The hash of the whole file as read."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """The TOML front matter between `+++` lines at the file's start."""
    line: int = 1
    """The line in the file at which the text begins."""

    def fill(self, **values: object) -> str:
        """Return the text with its `$placeholders` filled in. Raises: BadSoul for one without a value."""
        return fill(self.text, str(self.source), self.line, values)


class StepText(Struct, frozen=True, kw_only=True):
    """A cognitive step's text for the model, and how to parse its reply."""

    name: str
    instruction: str
    """The instruction, with `$verbs` already filled in."""
    value: StepValue = "text"
    verbs: tuple[str, ...] = ()
    default_verb: str = ""
    fallback: str = ""
    """external_dialogue: the fixed line, in character, for when nothing else can be spoken."""
    apologies: Mapping[str, str] = field(default_factory=dict)
    """external_dialogue: one line per kind of apology; `$turn` stands for the turn's reference."""
    acknowledge: tuple[str, ...] = ()
    """external_dialogue: short lines that answer a message needing no thought, in any mood."""
    acknowledge_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """external_dialogue: mood → the lines that replace them."""
    after: str = ""
    """One of the owner's own: the check whose true answer it needs."""
    every: int = 1
    """One of the owner's own: it is asked in every so many'th turn of a conversation."""
    has_slots: bool = False
    on_demand: bool = False
    """True: it appears, slots filled, only in the tails of turns that ask for it, never in the system part."""
    acts_failed: Mapping[str, str] = field(default_factory=dict)
    """acts: language → the line that says what could not be done; `$what` stands for it."""
    hold: str = ""
    """external_dialogue: the line shown while the cortex is consulted."""
    lines: Mapping[str, str] = field(default_factory=dict)
    """The lines that are said without a model call: `$tool`, `$call`, `$who`, `$name`, `$minutes` are what they tell.

    Of external_dialogue: `rests` of a model that is asked again in `$minutes`; `first`, `first_down` and `first_rests`
    where nobody was answered before.
    """

    def failed(self, what: str, locale: str) -> str:
        """Return the line that says what could not be done: in the language of a locale, English where it has none."""
        language = locale.replace("_", "-").partition("-")[0].casefold()
        line = self.acts_failed.get(language) or self.acts_failed.get("en", "(✖ $what)")
        return fill(line, f"steps/{self.name}.md: acts_failed", 0, {"what": what})

    def line(self, kind: str, **values: str) -> str:
        """Return one of the fixed lines; what an older copy in the home lacks is said by its kind."""
        values = dict.fromkeys(LINE_SLOTS, "") | values
        return fill(self.lines.get(kind, f"({kind}: $tool)"), f"steps/{self.name}.md: lines.{kind}", 0, values)

    def acknowledgements(self, mood: str) -> tuple[str, ...]:
        """Return the lines that answer a message needing no thought, in this mood."""
        return self.acknowledge_in.get(mood) or self.acknowledge

    def apology(self, kind: str, turn: str, *, minutes: int = 0, first: str = "") -> str:
        """Return the line for one kind of apology, with the turn's reference.

        `minutes`: when the model is asked again; `first`: the soul's name, if the listener hears it for the first time.
        """
        down = "rests" if minutes else "down"
        other = (f"first_{down}", "first") if first else (down, "")
        line = dict(zip(("provider_down", "unreadable"), other, strict=True)).get(kind, "")
        if line in self.lines:
            return self.line(line, name=first, minutes=str(minutes))
        return fill(self.apologies[kind], f"steps/{self.name}.md: apologies.{kind}", 0, {"turn": turn})


class _TailHead(msgspec.Struct):
    """The front matter of tail.md: the words around this turn's steps."""

    order: str
    if_true: str
    intuition: str
    now: str = ""
    since: str = ""


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """The front matter of a step's file."""

    tag: str = ""
    """The file's own name, which it need not repeat."""
    value: StepValue = "text"
    verbs: tuple[str, ...] = ()
    default_verb: str = ""
    slots: tuple[str, ...] = ()
    """The slots that a process fills in. A step with slots appears only in the tails of turns that ask for it."""
    acts_failed: Mapping[str, str] = {}
    lines: Mapping[str, str] = {}
    rare: bool = False
    """It is seldom asked, so it too appears only in the tails of turns that ask for it."""
    after: str = ""
    every: Annotated[int, Meta(ge=1)] = 1


class _SpeechHead(_Head, forbid_unknown_fields=True, kw_only=True):
    """The front matter of external_dialogue: the lines that are spoken without a model call."""

    fallback: str
    apologies: Mapping[Apology, str]
    acknowledge: tuple[str, ...] = ()
    acknowledge_in: Mapping[Mood, tuple[str, ...]] = {}
    hold: str = ""


def bytes_of(path: Path, stamp: Stamp) -> bytes:
    """Read a file whose stamp was `stamp`. Raises: BadSoul if it is too long, unreadable, or being written."""
    if stamp[1] > MAX_BYTES:
        raise BadSoul(str(path), 0, f"is {stamp[1]:,} bytes long, {MAX_BYTES:,} are the most", "shorten it")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise BadSoul(str(path), 0, f"cannot be read ({error.strerror})", "make it a text file that you own") from error
    if (after.st_mtime_ns, after.st_size, after.st_ino) != stamp or len(data) != after.st_size:
        raise BadSoul(str(path), 0, "is being written", "it is read again in a moment")
    return data


def parse(name: str, path: Path, data: bytes) -> SoulFile:
    """Parse a file's front matter and text, and check what its kind requires. Pure. Raises: BadSoul."""
    lines = _lines(path, data)
    head, start = _head(path, lines) if lines[0] == "+++" else ({}, 0)
    while start < len(lines) and not lines[start]:
        start += 1
    if start == len(lines):
        raise BadSoul(str(path), 0, "is empty", "write its text, or delete it and restart to use the shipped one")
    text = "\n".join(lines[start:]).rstrip()
    file = SoulFile(name, text, path, hashlib.sha256(data).hexdigest(), head, start + 1)
    if name.startswith("steps/"):
        step_text(file)
    elif name == "tail.md":
        words = _converted(file, _TailHead)
        for key, line, names in (
            ("order", words.order, ("steps",)),
            ("if_true", words.if_true, ("steps",)),
            ("now", words.now, ("weekday", "date", "time", "zone")),
            ("since", words.since, ("ago",)),
        ):
            fill(line, f"{file.source}: {key}", 0, dict.fromkeys(names, ""))
    for placeholder in (needed := PLACEHOLDERS.get(name, ())):
        file.fill(**dict.fromkeys(needed, ""))
        if placeholder not in Template(file.text).get_identifiers():
            raise BadSoul(str(file.source), 0, f"${placeholder} is missing", "put it into the text where it belongs")
    return file


def _lines(path: Path, data: bytes) -> list[str]:
    try:
        whole = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadSoul(str(path), line, f"byte 0x{data[error.start]:02x} is not UTF-8", "save it as UTF-8") from error
    above, nul, _ = whole.partition("\0")
    if nul:
        raise BadSoul(str(path), above.count("\n") + 1, "holds NUL bytes", "save it as plain text")
    return [line.rstrip() for line in whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def _head(path: Path, lines: list[str]) -> tuple[dict[str, Any], int]:
    """Parse the TOML between the `+++` lines; also return the index of the first line after them."""
    if "+++" not in lines[1:]:
        raise BadSoul(str(path), 1, "its head has no end", "close it with a second line of +++")
    end = lines.index("+++", 1)
    try:
        return tomllib.loads("\n".join([*lines[1:end], ""])), end + 1
    except RecursionError as error:
        raise BadSoul(str(path), 1, "its head is nested too deep", "correct it") from error
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        raise BadSoul(str(path), int(at[1]) + 1 if at else 1, f"its head is not TOML: {error}", "correct it") from error


def _converted(file: SoulFile, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(file.head, ready(kind))
    except msgspec.ValidationError as error:
        fix = "docs/extend.md shows what belongs there"
        raise BadSoul(str(file.source), 1, f"its head: {error}", fix) from error


def step_text(file: SoulFile) -> StepText:
    """Parse a step file. Raises: BadSoul."""
    name, where = Path(file.name).stem, str(file.source)
    head = _converted(file, _SpeechHead if name == "external_dialogue" else _Head)
    if head.tag not in ("", name):
        raise BadSoul(where, 1, f"its head: tag is {head.tag!r}", f'write tag = "{name}"')
    verbs = tuple(" ".join(verb.lower().split()) for verb in head.verbs)
    default_verb = head.default_verb or (verbs[0] if verbs else "")
    if default_verb and default_verb not in verbs:
        raise BadSoul(where, 1, f"its head: default_verb {default_verb!r} is not among verbs", "name one of them")
    step = StepText(
        name=name,
        instruction=file.fill(verbs=", ".join(verbs), **{slot: f"${slot}" for slot in head.slots}),
        value=head.value,
        verbs=verbs,
        default_verb=default_verb,
        acts_failed=head.acts_failed,
        lines=head.lines,
        after=head.after,
        every=head.every,
        has_slots=bool(head.slots),
        on_demand=head.rare or bool(head.slots),
    )
    for language, line in head.acts_failed.items():
        fill(line, f"{where}: acts_failed.{language}", 0, {"what": ""})
    for kind, line in head.lines.items():
        fill(line, f"{where}: lines.{kind}", 0, dict.fromkeys(LINE_SLOTS, ""))
    if not isinstance(head, _SpeechHead):
        return step
    # An older copy in the home may lack this kind of apology.
    apologies = {"interrupted": head.fallback.replace("$", "$$"), **head.apologies}
    for kind, line in apologies.items():
        fill(line, f"{where}: apologies.{kind}", 0, {"turn": ""})
    missing = [kind for kind in get_args(Apology) if not apologies.get(kind, "").strip()]
    if missing or not head.fallback.strip():
        key = f"apologies.{missing[0]}" if missing else "fallback"
        raise BadSoul(where, 1, f"its head: {key} is missing", "write that line; it is said when nothing else can be")
    return replace(
        step,
        fallback=head.fallback,
        apologies=apologies,
        acknowledge=head.acknowledge,
        acknowledge_in={str(mood): lines for mood, lines in head.acknowledge_in.items()},
        hold=head.hold,
    )


def fill(text: str, where: str, line: int, values: Mapping[str, object]) -> str:
    """Fill in a template; `line` is where it begins in its file, 0 if unknown."""
    try:
        return Template(text).substitute(values)
    except (KeyError, ValueError) as error:
        unknown = isinstance(error, KeyError)
        detail = f"${error.args[0]} is not a placeholder here" if unknown else "a lone $"
        sign = f"${error.args[0]}" if unknown else "$"
        above = text.partition(sign)[0].count("\n")
        known = " and ".join(f"${name}" for name in values) or "none"
        raise BadSoul(where, line and line + above, detail, f"known here: {known}; write $$ for a literal $") from error
