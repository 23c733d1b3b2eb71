"""Parse the model's answers to the psyche's own steps and map stances to numbers by `stances.toml`. Pure.

Answers are one JSON object per line; a bad line is dropped alone. A line must not hold a number; a stance must be on
the closed list or map to it. Source: the psyche design, section 10.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.psyche.cues import Cues, Hit
from claudius.psyche.intentions import HORIZONS, MOST_UPDATES, OPERATIONS, TYPES, IntentionUpdate
from claudius.psyche.personality import Kernel
from claudius.psyche.scrubber import numbers_itself
from claudius.psyche.state import DRIVE_BASE, HOUR_S, comfort_target, push, trust_base
from claudius.psyche.words import Token, tokens
from claudius.psyche_types import DRIVES, Edge, Numbers

DESCRIPTION_CHARS = 160
TOPIC_CHARS = 40
ACTIONS = ("none", "react", "stay_silent")


def read_shifts(text: str, people: Mapping[str, str]) -> tuple[tuple[Shift, ...], int]:
    """Return the mapped stance shifts of an answer, and how many lines were dropped. Pure.

    `people` maps what a prompt calls a person (the short name, or a unique display name) to their id.
    """
    found: list[Shift] = []
    dropped = 0
    for line in _lines(text):
        shift = _shift(line, people) if line is not None and len(found) < MOST_STANCES else None
        if shift:
            found.append(shift)
        else:
            dropped += 1
    return tuple(found), dropped


def read_updates(text: str, people: Mapping[str, str]) -> tuple[tuple[IntentionUpdate, ...], int]:
    """Return the validated intention updates of an answer, and how many lines were dropped. Pure."""
    found: list[IntentionUpdate] = []
    dropped = 0
    for line in _lines(text):
        update = _update(line, people) if line is not None and len(found) < MOST_UPDATES else None
        if update:
            found.append(update)
        else:
            dropped += 1
    return tuple(found), dropped


def read_action(text: str) -> tuple[str, str]:
    """Return the action that the soul chooses instead of speaking, and the name of a reaction. Pure."""
    action, _, name = text.strip().strip(".").partition(":")
    action = action.strip().lower().replace(" ", "_")
    return (action, name.strip()[:TOPIC_CHARS]) if action in ACTIONS else (ACTIONS[0], "")


def _lines(text: str) -> Iterator[dict[str, Any] | None]:
    for raw in text.splitlines():
        line = raw.strip().removeprefix("- ").rstrip(",")
        if not line:
            continue
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            yield None
            continue
        is_words = isinstance(value, dict) and all(isinstance(one, str) or one is None for one in value.values())
        yield value if is_words else None


def _shift(line: dict[str, Any], people: Mapping[str, str]) -> Shift | None:
    person = people.get(_word(line, "target").casefold())
    strength = STRENGTHS.get(_word(line, "strength") or "clear")
    stance, description = _word(line, "stance"), _word(line, "description")
    if not person or strength is None or numbers_itself(stance) or numbers_itself(description):
        return None
    found = read_stance(stance, description)
    return Shift(person=person, stance=found.stance, strength=strength) if found else None


def _update(line: dict[str, Any], people: Mapping[str, str]) -> IntentionUpdate | None:
    operation, kind, horizon = (_word(line, key) for key in ("operation", "type", "horizon"))
    description, target = _word(line, "description")[:DESCRIPTION_CHARS], _word(line, "target")
    horizon = horizon or ("short" if operation != "create" else "")
    if operation not in OPERATIONS or kind not in TYPES or horizon not in HORIZONS or numbers_itself(description):
        return None
    target = people.get(target.casefold(), target.casefold()[:TOPIC_CHARS]) if target else ""
    return IntentionUpdate(operation=operation, type=kind, target=target, horizon=horizon, description=description)


def _word(line: dict[str, Any], key: str) -> str:
    return " ".join(str(line.get(key) or "").split())


STRENGTHS = {"slight": 0.5, "clear": 1.0, "strong": 1.5}
MOST_EDGE = 0.25
"""The most that all changes of one turn to one person's edge may sum to."""
AGAIN_S = 24 * HOUR_S
"""Repeating a stance towards the same person within this time halves its effect each time."""
MOST_STANCES = 3

_BEFORE = frozenset(
    (
        "not",
        "no",
        "never",
        "cannot",
        "without",
        "hardly",
        "barely",
        "less",
        "stop",
        "stops",
        "stopped",
        "dont",
        "doesnt",
    )
)
_THWARTED = frozenset(
    (
        "unlikely",
        "hard",
        "refuse",
        "refuses",
        "refused",
        "struggle",
        "struggles",
        "struggling",
        "fail",
        "fails",
        "failed",
        "unable",
        "pretend",
        "pretends",
        "pretending",
    )
)
_TRAILING = (("but", "can't"), ("but", "won't"), ("but", "cannot"), ("but", "not", "yet"))


class StanceRow(NamedTuple):
    """One row of the table of stances."""

    sign: str
    edge: tuple[float, float, float, float]
    drives: dict[str, float]
    opposite: str


class Stance(NamedTuple):
    """A stance of the closed list, and its sign."""

    stance: str
    sign: str


class Shift(Struct, frozen=True, kw_only=True):
    """One mapped change of stance: the person, the stance and its strength."""

    person: str
    stance: str
    strength: float = 1.0


@cache
def table() -> dict[str, StanceRow]:
    """Read the table of stances; cached for the life of the process."""
    tree: dict[str, Any] = tomllib.loads(Path(__file__).with_name("stances.toml").read_text("utf-8"))
    return {
        name: StanceRow(row["sign"], tuple(row["edge"]), row.get("drives", {}), row.get("opposite", ""))
        for name, row in tree.items()
    }


@cache
def _cues() -> tuple[tuple[str, Cues], ...]:
    tree: dict[str, Any] = tomllib.loads(Path(__file__).with_name("stances.toml").read_text("utf-8"))
    rounds = ("first_cues", "cues")
    return tuple((name, Cues.of({name: row[key]})) for key in rounds for name, row in tree.items() if key in row)


def read_stance(stance: str, description: str = "") -> Stance | None:
    """Return the stance that a name or description means; None if it is unknown or contradictory. Pure."""
    name = stance.strip().lower().replace(" ", "_").replace("-", "_")
    if name in table():
        return Stance(name, table()[name].sign)
    for text in (stance.replace("_", " "), description):
        found = _meant(tokens(text)) if text.strip() else None
        if found:
            return found
    return None


def _meant(said: Sequence[Token]) -> Stance | None:
    if _is_taken_back(said):
        return None
    masked: set[int] = set()
    found: list[str] = []
    for name, cues in _cues():
        for hit in cues.hits(said):
            span = set(range(hit.first, hit.last + 1))
            if span & masked:
                continue
            masked |= span
            if _is_thwarted(said, hit):
                return None
            found.append(_opposite(name) if _is_turned(said, hit, masked - span) else name)
    named = [name for name in found if name]
    signs = {table()[name].sign for name in named}
    if len(signs) != 1 or len(named) != len(found):
        return None
    return Stance(named[0], signs.pop())


def _opposite(name: str) -> str:
    return table()[name].opposite


def _is_turned(said: Sequence[Token], hit: Hit, masked: set[int]) -> bool:
    """Return whether a negator within three words before it, in the same clause, reverses a stance."""
    for place in range(hit.first - 1, max(-1, hit.first - 4), -1):
        word = said[place].word
        if word == "but" or said[place].ends_sentence:
            return False
        if place in masked:
            continue
        following = said[place + 1].word if place + 1 < len(said) else ""
        if word == "never" and following == "so":
            return False
        if word == "no" and following == "longer":
            return True
        if word in _BEFORE or word.endswith("n't"):
            return True
    return False


def _is_thwarted(said: Sequence[Token], hit: Hit) -> bool:
    for place in range(hit.first - 1, max(-1, hit.first - 4), -1):
        word = said[place].word
        if said[place].ends_sentence or word == "but":
            return False
        if word in _THWARTED:
            return True
    for place in range(hit.first - 1, max(-1, hit.first - 7), -1):
        if said[place].ends_sentence:
            return False
        if said[place].word == "too" and any(said[at].word == "to" for at in range(place + 1, hit.first)):
            return True
    return False


def _is_taken_back(said: Sequence[Token]) -> bool:
    words = [token.word for token in said if not token.ends_sentence]
    return any(tuple(words[-len(ending) :]) == ending for ending in _TRAILING)


def shift_edge(edge: Edge, shifts: Sequence[Shift], at_s: float, kernel: Kernel) -> Edge:
    """Apply the shifts of one turn towards one person; the edge is already advanced to `at_s`. Pure."""
    kept = {name: (since_s, times) for name, since_s, times in edge.stances if at_s - since_s < AGAIN_S}
    deltas = [0.0, 0.0, 0.0, 0.0]
    for shift in shifts[:MOST_STANCES]:
        _, times = kept.get(shift.stance, (at_s, 0))
        scale = shift.strength * 0.5**times
        deltas = [total + scale * part for total, part in zip(deltas, table()[shift.stance].edge, strict=True)]
        kept[shift.stance] = (at_s, times + 1)
    whole = sum(abs(delta) for delta in deltas)
    if whole > MOST_EDGE:
        deltas = [delta * MOST_EDGE / whole for delta in deltas]
    warmth, trust, tension, comfort = deltas
    moved = replace(
        edge,
        warmth=push(edge.warmth, warmth, 0.0, -1.0, 1.0, 1.0),
        trust=push(edge.trust, trust, trust_base(kernel), -1.0, 1.0, 1.0),
        tension=push(edge.tension, tension, 0.0, 0.0, 1.0, 1.0),
        comfort=push(edge.comfort, comfort, edge.comfort_target, 0.0, 1.0, 1.0),
        stances=tuple((name, since_s, times) for name, (since_s, times) in kept.items()),
    )
    return replace(moved, comfort_target=comfort_target(moved.warmth, moved.trust, moved.tension))


def shift_drives(numbers: Numbers, effects: Sequence[tuple[str, float]]) -> Numbers:
    """Apply the effects of stances and intentions to the drives. Pure."""
    levels = dict(zip(DRIVES, numbers.drives, strict=True))
    for drive, effect in effects:
        levels[drive] = push(levels[drive], effect, DRIVE_BASE, 0.0, 1.0, 1.0)
    one, two, three, four, five = levels.values()
    return replace(numbers, drives=(one, two, three, four, five))


def drive_effects(shifts: Sequence[Shift]) -> list[tuple[str, float]]:
    """Return the effects of a turn's shifts on the drives. Pure."""
    return [
        (drive, shift.strength * effect)
        for shift in shifts[:MOST_STANCES]
        for drive, effect in table()[shift.stance].drives.items()
    ]
