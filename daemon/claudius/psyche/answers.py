"""The psyche's own steps as the model answers them: one JSON line each, a bad line dropped alone. Pure.

Source: the psyche design, section 10. No line may hold a number; a stance is of a closed list or mapped to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from claudius.psyche.intentions import HORIZONS, MOST_UPDATES, OPERATIONS, TYPES, IntentionUpdate
from claudius.psyche.mapping import MOST_STANCES, STRENGTHS, Shift, read_stance
from claudius.psyche.scrubber import numbers_itself

DESCRIPTION_CHARS = 160
TOPIC_CHARS = 40
ACTIONS = ("none", "react", "stay_silent")


def read_shifts(text: str, people: Mapping[str, str]) -> tuple[tuple[Shift, ...], int]:
    """Return the stances of an answer, mapped, and how many lines were dropped. Pure.

    `people` gives a person's id by what a prompt calls them: the short name, or a display name that is theirs alone.
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
    """Return the intentions of an answer, checked, and how many lines were dropped. Pure."""
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
    """Return what the soul chooses to do besides speaking, and the name of a reaction. Pure."""
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
