"""The soul as values: its files, the text of each cognitive step, and one consistent snapshot of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any, Literal

from msgspec import Struct, field

from claudius.errors import BadSoul

StepValue = Literal["text", "bool", "markdown", "line", "lines"]


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
    tag: str
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
    on_demand: bool = False
    """True: it appears, slots filled, only in the prompts of turns that ask for it, never in the system part."""
    hold: str = ""
    """external_dialogue: the line shown while the cortex is consulted."""

    def acknowledgements(self, mood: str) -> tuple[str, ...]:
        """Return the lines that answer a message needing no thought, in this mood."""
        return self.acknowledge_in.get(mood) or self.acknowledge

    def apology(self, kind: str, turn: str) -> str:
        """Return the line for one kind of apology, with the turn's reference."""
        return fill(self.apologies[kind], f"steps/{self.name}.md: apologies.{kind}", 0, {"turn": turn})


class SoulText(Struct, frozen=True, dict=True):
    """A consistent snapshot of every soul file. A turn uses the same one from start to end."""

    files: Mapping[str, SoulFile]
    steps: Mapping[str, StepText]
    """By step name, in `STEPS` order."""
    sha256: str
    """The hash of all names and contents; it identifies an epoch of the system prompt."""

    @property
    def derived(self) -> dict[Any, Any]:
        """A cache of what callers computed from this value; a changed copy starts with an empty one."""
        return self.__dict__

    def text(self, name: str) -> str:
        """Return a file's text; empty if there is none."""
        found = self.files.get(name)
        return found.text if found else ""


def dossiers(text: SoulText, budget_tokens: int) -> tuple[tuple[SoulFile, ...], tuple[SoulFile, ...]]:
    """Split the dossiers, in name order, into those that fit the budget together and those left out. Pure."""
    included: list[SoulFile] = []
    left_out: list[SoulFile] = []
    for name in sorted(name for name in text.files if name.startswith("dossiers/")):
        size = tokens(text.files[name].text)
        fits = size <= budget_tokens
        budget_tokens -= size if fits else 0
        (included if fits else left_out).append(text.files[name])
    return tuple(included), tuple(left_out)


def tokens(text: str) -> int:
    """Estimate a text's tokens: characters / 4, rounded up. Pure."""
    return -(-len(text) // 4)


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
        raise BadSoul(
            where, line and line + above, detail, f"known here: {known}; write $$ for the sign itself"
        ) from error
