"""Steps of the owner's own, each a text in `soul/steps/` that a process names: asked in the turn, kept as a thought.

The answer is private like every section: the parser knows the tag, the ladder and the gate let none of it out. An
answer of true may open another step (`after`). Source: the doors design, section 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from claudius.cognition.reply.parser import Section, clean_text, one_line, read_bool
from claudius.cognition.reply.tags import NAMES, TAGS, Names, canonical
from claudius.cognition.steps import NOTHING, STEPS, Effect, Reading, Situation, Step
from claudius.cognition.steps import step as shipped_step
from claudius.recollection import Entry, EntryType
from claudius.soul import SoulText, StepText

VALUES = ("text", "bool", "line")
LINE_CHARS = 400
STEP = "step"
"""The key of an entry's metadata under which a thought names the owner's step that it answers."""
_NAME = re.compile(r"[a-z][a-z_]{1,38}")


def unfit(name: str, soul: SoulText) -> str:
    """Return why a process text cannot ask a step of the owner's own; empty if it can. Pure."""
    worded = soul.steps.get(name)
    if worded is None:
        return f"there is no text steps/{name}.md that can be used"
    if not _NAME.fullmatch(name) or canonical(name) in NAMES.tags:
        return f"its tag is ours, or no tag: {name!r}"
    if worded.value not in VALUES or worded.has_slots:
        return f"only a function can ask it: its value is none of {', '.join(VALUES)}, or it has slots"
    if worded.after and (worded.after not in soul.steps or soul.steps[worded.after].value != "bool"):
        return f"its head: after: {worded.after!r} is no step whose value is bool"
    way = [name]
    while way[-1] not in way[:-1] and (check := soul.steps.get(way[-1])) and check.after:
        way.append(check.after)
    return f"its head: after: it waits for itself: {' → '.join(way)}" if way[-1] in way[:-1] else ""


def names_of(soul: SoulText) -> Names:
    """Return the tags that a reply may hold: ours, and those of the owner's steps. Pure."""
    if "names" not in soul.derived:
        own = [name for name in soul.steps if name not in STEPS and not unfit(name, soul)]
        soul.derived["names"] = Names.of((*TAGS, *own)) if own else NAMES
    found: Names = soul.derived["names"]
    return found


def step_of(name: str, soul: SoulText) -> Step:
    """Return a step, shipped or the owner's. Raises: KeyError if it is unknown."""
    if name in STEPS:
        return shipped_step(name)
    worded = soul.steps[name]
    return Step(name=name, gate=partial(_is_due, worded), after=worded.after or None, effect=partial(_noted, worded))


def _is_due(worded: StepText, situation: Situation) -> bool:
    every = situation.intervals.get(worded.name, worded.every)
    return every > 0 and situation.number % every == 0


def _noted(worded: StepText, reading: Reading) -> Effect:
    checks = [one.content for one in reading.thoughts.get(worded.after, ())]
    content = reading.thoughts[worded.name][0].content
    if not content or (worded.after and not read_bool(checks)):
        return NOTHING
    at = reading.recollection.now
    kind, verb = EntryType.INTERNAL_MONOLOGUE, f"noted {worded.name.replace('_', ' ')}"
    return Effect(entries=(Entry(entry_type=kind, content=content, verb=verb, at=at, metadata={STEP: worded.name}),))


def answered(kind: EntryType | None, about: Mapping[str, Any]) -> str:
    """Return the owner's step that an entry answers; empty if it answers none. Pure."""
    return str(about.get(STEP, "")) if kind is EntryType.INTERNAL_MONOLOGUE else ""


def answer(worded: StepText, found: Sequence[Section]) -> Section:
    """Read what was written for a step of the owner's own, as it is kept. Pure."""
    text = clean_text(found[0].text)
    if worded.value == "bool":
        text = str(read_bool([one.text for one in found])).lower()
    return Section(name=worded.name, text=one_line(text, LINE_CHARS) if worded.value == "line" else text)


def placed(listed: Iterable[str], after: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return every shipped step in its order, and each other one of `listed` behind the one it is listed behind. Pure.

    `after`: other step → the check that it stands directly behind, whatever it is listed behind.
    """
    found, at = [*STEPS], 0
    for name in sorted(listed, key=after.__contains__):
        if name not in found:
            check = after.get(name)
            at = found.index(check) + 1 if check in found else at
            found.insert(at, name)
        at = found.index(name) + 1
    return found
