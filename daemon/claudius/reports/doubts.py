"""What can be doubted about a soul by looking at its files, without a model: missing parts, samples, its guard.

A doubt is no problem: the file can be used, and its owner may mean it. `claudius soul check` and `claudius eval` tell
it. No word of a language is read here: parts are counted, and texts compared with those that they were written for.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from msgspec import Struct

from claudius.cognition.plan import soul_name
from claudius.cognition.processes import find, known_names
from claudius.recollection import MOODS
from claudius.soul import SoulText, tokens

PARTS = 4
"""Who it is, how it speaks, what it values, how its moods sound."""
LEAST_TOKENS = 60
"""A personality shorter than this leaves most of the voice to the model."""
SAMPLES = ("exchanges.md", "plain.md")
"""Texts in the soul's voice. `soul` in their heads says whose they are, `of` for which soul.md they were written."""
THINKS, SPEAKS = "internal_monologue", "external_dialogue"


class Doubt(Struct, frozen=True):
    """What an owner should look at, and what to do if it is not meant."""

    file: str
    detail: str
    fix: str

    @property
    def message(self) -> str:
        """One line."""
        return f"{self.file}: {self.detail}: {self.fix}"


def doubts(soul: SoulText, shipped: SoulText) -> list[Doubt]:
    """Return what is doubtful about a soul, by file. Pure."""
    return [*_personality(soul), *_samples(soul), *_silent(soul), *_guard(soul, shipped)]


def mark(soul: SoulText) -> str:
    """Return what names the text of a soul.md, for `of` in the heads of its samples. Pure."""
    return sha256(" ".join(soul.text("soul.md").split()).encode()).hexdigest()[:12]


def _personality(soul: SoulText) -> Iterator[Doubt]:
    text = soul.text("soul.md")
    said = [part for part in text.split("\n## ")[1:] if len(part.strip().splitlines()) > 1]
    if len(said) < PARTS:
        detail = f"{len(said)} of {PARTS} parts say something"
        yield Doubt("soul.md", detail, "say under headings who it is, how it speaks, what it values, its moods")
    if (size := tokens(text)) < LEAST_TOKENS:
        yield Doubt("soul.md", f"is {size} tokens long", "a model fills the rest with its own manner: say more")
    if gone := [mood for mood in MOODS if mood not in text]:
        yield Doubt("soul.md", f"does not say how it sounds when {', '.join(gone)}", "name each mood in this spelling")


def _samples(soul: SoulText) -> Iterator[Doubt]:
    name, now = soul_name(soul.text("soul.md")), mark(soul)
    for sample in SAMPLES:
        head = soul.files[sample].head if sample in soul.files else {}
        if str(head.get("soul", name)).casefold() != name:
            fix = f'write your own, with soul = "{name.title()}" and of = "{now}" in its head'
            yield Doubt(sample, f"is {head['soul']}'s and left out, so nothing shows this soul's voice", fix)
        elif head.get("of") != now:
            fix = f'read it against soul.md; if it fits, write of = "{now}" into its head'
            yield Doubt(sample, "was written for another soul.md, and may contradict this one", fix)


def _silent(soul: SoulText) -> Iterator[Doubt]:
    for name in known_names(soul):
        process = find(name, soul)
        if process and SPEAKS in process.steps and THINKS not in process.steps:
            yield Doubt(f"processes/{name}.md", "speaks without a thought before", f'add "{THINKS}" to its steps')
    for name, step in soul.steps.items():
        if not step.on_demand and f"<{name}" not in step.instruction:
            yield Doubt(f"steps/{name}.md", "does not name its tag", f'begin it with "In <{name}>: "')


def _guard(soul: SoulText, shipped: SoulText) -> Iterator[Doubt]:
    if soul.text("reading.md").split() != shipped.text("reading.md").split():
        detail = "is not the shipped text, which keeps other people's words from being orders"
        yield Doubt("reading.md", detail, "delete yours, unless you know that it does so too")
