"""Read in English what a message asks of the books, and write it as acts. What is not read whole is not guessed. Pure."""

from __future__ import annotations

import re
from datetime import datetime

from msgspec import Struct

from claudius.providers.rehearsal.times import Told, is_unread, peel

_I = re.IGNORECASE
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=\S)|\n+")
_OPENS = (
    r"^\W*(?:(?:please|hey|hi|hello|ok|okay|and|then|so|also|claudius|thanks|yes|no|actually|oh|well|"
    r"(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to|i (?:want|need) you to)\b[,\s]*)*+"
)
_REMIND = re.compile(rf"{_OPENS}(.*?),? ?(?:please )?\b(?:remind|nudge|ping|wake) (?:me|us)(?: up)?\b(.*)$", _I)
_SET = re.compile(
    rf"{_OPENS}(?:set|make|add|create|give|i need|i want)(?: me| us| up)? an? (reminder|alarm|timer|nudge|shout)\b(.*)$",
    _I,
)
_LET = re.compile(rf"{_OPENS}(?:don't|do not) let me forget\b(.*)$|{_OPENS}reminder:(.*)$", _I)
_ASKS = re.compile(r"\W*(?:what|why|how|who|whom|whose|where|which|if|whether|when)\b", _I)
_TASK = re.compile(r"\s*\b(?:to|that|about|of)\b\s+(?=\D)|, ", _I)
_FILLER = re.compile(r"\b(?:again|please|once|then|just)\b|\W+", _I)

NAMELESS = "what you asked for"


class Wanted(Struct, frozen=True):
    """A reminder that somebody asks for."""

    task: str
    when: Told | None
    """None = no time is told in a form that is read."""


def wanted_in(text: str, now: datetime) -> Wanted | None:
    """Return the first reminder that a message asks for, or None. Pure."""
    for sentence in _SENTENCES.split(text.replace("’", "'").strip()):
        if found := _REMIND.match(sentence):
            if not _ASKS.match(found[2]) and not _FILLER.sub("", peel(found[1], now)[0]):
                return _wanted(found[1], found[2], "", now)
        elif found := _SET.match(sentence):
            rest = re.sub(r"^ for (?=an? |half |\w+ (?:min|hour|day|week))", " in ", found[2])
            return _wanted("", re.sub(r"^ for ", " at " if re.match(r" for \d", rest) else " ", rest), found[1], now)
        elif found := _LET.match(sentence):
            return _wanted("", f" to {(found[1] or found[2]).strip().removeprefix('to ')}", "", now)
    return None


def _wanted(before: str, rest: str, name: str, now: datetime) -> Wanted:
    head, *tasks = _TASK.split(rest, maxsplit=1)
    task = tasks[0] if tasks else ""
    left, told = peel(f"{before} {head}", now)
    if _FILLER.sub("", left):
        return Wanted(task or left.strip(), None)
    if not told.is_whole:
        task, told = peel(task, now, told)
        if is_unread(task):
            return Wanted(task, None)
    return Wanted(task.strip(" ,.!?") or name or NAMELESS, told if told.is_any else None)
