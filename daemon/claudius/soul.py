"""Who the soul is: its text files, the owner's over the shipped ones, read again whenever one changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

StepValue = Literal["text", "bool", "markdown", "line", "lines"]


@dataclass(frozen=True, slots=True)
class SoulFile:
    """One text file of the soul: `name` is relative (`steps/recall.md`), `text` without its head."""

    name: str
    text: str
    source: Path
    sha256: str
    """Of the whole file's bytes as read."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """The TOML block between `+++` lines at the file's start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepText:
    """What the model reads of one cognitive step, and how its reply is to be read."""

    name: str
    tag: str
    instruction: str
    value: StepValue = "text"
    verbs: tuple[str, ...] = ()
    default_verb: str = ""
    fallback: str = ""
    """external_dialogue: the fixed line, in character, where nothing else can be spoken."""
    apologies: Mapping[str, str] = field(default_factory=dict)
    """external_dialogue: one line per kind of apology."""


@dataclass(frozen=True, slots=True)
class SoulText:
    """One consistent reading of every soul file. A turn uses one such value from its start to its end."""

    files: Mapping[str, SoulFile]
    steps: Mapping[str, StepText]
    """By step name, in `STEPS` order."""
    sha256: str
    """Of names and contents together: an epoch of the system prompt."""

    def text(self, name: str) -> str:
        """Return a file's text, empty where there is none."""
        found = self.files.get(name)
        return found.text if found else ""
