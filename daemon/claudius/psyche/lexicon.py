"""Load `lexicon.toml` once: cue classes, critical cues, and words that need no thought."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from claudius.psyche.cues import Cues
from claudius.psyche.state import Axes
from claudius.psyche.words import tokens

PAIR_CHARS = 40
"""The largest distance between the two halves of a critical cue."""


class Lexicon(Struct, frozen=True, kw_only=True):
    """Everything that classification looks up."""

    cues: Cues
    critical: Cues
    """The cues of the critical classes only."""
    vectors: Mapping[str, Axes]
    negatable: frozenset[str]
    openers: Mapping[str, str]
    """First words of a text → class."""
    imperatives: frozenset[str]
    """First words of a sentence that asks."""
    whole: Mapping[tuple[str, ...], str]
    """Whole texts → class."""
    acknowledgements: frozenset[str]
    fillers: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """Read the lexicon; cached for the life of the process. Raises: ValueError if the file is malformed."""
    tree: dict[str, Any] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
    classes, critical = tree["classes"], tree["critical"]
    lists: dict[str, list[str]] = {name: entry["cues"] for name, entry in classes.items()}
    grave: dict[str, list[str]] = {
        f"{name}!{part}": cues for name, entry in critical.items() for part, cues in entry.items()
    }
    for name, entry in classes.items():
        lists[f"{name}^"] = entry.get("first_cues", [])
    return Lexicon(
        cues=Cues.of(lists | grave),
        critical=Cues.of(grave),
        vectors={name: Axes(*entry["vector"]) for name, entry in classes.items()},
        negatable=frozenset(name for name, entry in classes.items() if entry.get("negatable", True)),
        openers={f"{name}^": name for name in classes},
        imperatives=frozenset(
            word for entry in classes.values() for cue in entry.get("sentence_cues", ()) for word in cue.split("/")
        ),
        whole={
            tuple(token.word for token in tokens(text)): name
            for name, entry in classes.items()
            for text in entry.get("whole_cues", ())
        },
        acknowledgements=frozenset(tree["trivial"]["acknowledgements"].split()),
        fillers=frozenset(tree["trivial"]["fillers"].split()),
    )
