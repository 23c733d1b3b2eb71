"""What the rows of `cases/newcomer.json` ask for in words, as sections of soul/rehearsal.md; and whether an answer is it."""

import re
from collections.abc import Mapping

from case_rows import Row
from claudius.home import shipped
from claudius.providers.rehearsal.lines import Lines
from claudius.soul import SoulSource

LINES = Lines(SoulSource(shipped("soul"), shipped("soul"), ()).current().files["rehearsal.md"])
LOSSES = ("grief", "heartbreak", "sadness", "worry")
MEANT: Mapping[str, tuple[str, ...]] = {
    "a near, brief line": LOSSES,
    **{f"a near, brief line in {tongue}": tuple([f"{one}, in {tongue}" for one in LOSSES]) for tongue in ("German", "French", "Spanish", "Portuguese", "Italian")},
    "a warm, honest line": ("love",),
    "a light line": ("boredom",),
    "takes it, in one line": ("apology",),
    "takes it, in Italian": ("apology, in Italian",),
    "takes the thanks": ("thanks",),
    "takes the thanks, in Spanish": ("thanks, in Spanish",),
    "says goodbye": ("goodbye",),
    "says goodbye, in Portuguese": ("goodbye, in Portuguese",),
    "an honest, even line: what it is": ("what are you, bluntly",),
    "is glad with the person": ("joy",),
    "is glad, in French": ("joy, in French",),
    "is glad, in German": ("joy, in German",),
    "yes, and what it is, in two sentences": ("are you a bot",),
    "yes, and what it is": ("are you a bot",),
    "five lines: keeps, finds, reminds, corrects, forgets; and what it cannot": ("what can you do",),
    "the time": ("the time",),
    "weekday and date": ("the time",),
    "that it cannot see the weather": ("weather",),
    "a joke, or an honest line": ("joke",),
    "honest: not without a model; how to give it one": ("task",),
    "honest: not without a model": ("task",),
    "who it is, in Portuguese": ("who are you, in Portuguese",),
    "the steps for Slack, or the page": ("networks",),
    "that it cannot read files of this machine": ("files",),
    "who could read it here, honestly": ("who reads this",),
    "a sentence of sense": ("what did I say",),
    "done, or how to do it": ("forget a message",),
    "that it is forgotten, then that it knows none": ("not remembered",),
    "that it is cancelled; it is": ("cancelled",),
    "plans it": ("reminder",),
    "the cat Pixel": ("who am I",),
}  # fmt: skip
"""What a row asks for in words, as the sections of soul/rehearsal.md that answer it."""


def is_of(answer: str, section: str) -> bool:
    """Return whether an answer begins with a line of a section."""
    lines = [" ".join(line.split()) for group in LINES.sections[section].groups for line in group]
    return any(re.match(re.sub(r"\\\$\w+", ".+", re.escape(line)), " ".join(answer.split())) for line in lines)


def is_right(row: Row, answer: str) -> bool:
    """Return whether an answer is of the kind that a row asks for, and holds none of what it must not."""
    wanted = [MEANT.get(must, must) for must in row.right.get("must", ())]
    wanted += [(row.right["section"],)] if "section" in row.right else []
    is_it = all(one in answer if isinstance(one, str) else any(is_of(answer, it) for it in one) for one in wanted)
    return is_it and not any(re.search(one, answer) for one in row.right.get("never", ()))
