"""Build the semantic packet: what the soul feels, in words, for the prompt. Pure.

Numbers never leave the psyche: the packet has no digit from a number, no scale and no variable name.
Source: the psyche design, section 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from claudius.psyche import bands as words
from claudius.psyche.intentions import MOST_SHOWN, SHOWN_FROM, tendencies
from claudius.psyche.models import Standing
from claudius.psyche_types import Arc, Edge, Episode, Fact, Intention

MOST_TOWARD, MOST_ARCS, MOST_FACTS = 3, 3, 6
NAME_CHARS, OWN_WORDS_CHARS = 40, 80
REMEMBERED_CHARS = 1600
"""400 tokens."""


def packet(
    standing: Standing,
    salience: float,
    people: Sequence[tuple[str, Edge]],
    arcs: Sequence[Arc],
    intentions: Sequence[Intention],
    names: Mapping[str, str],
) -> dict[str, str]:
    """Return the record of the `## Psyche` block, in order; neutral values are left out. Pure.

    `people` are the names of those present with their edges, the speaker first. `arcs` and `intentions` are those
    that are relevant and may be shown here; `names` are display names by person.
    """
    bands = standing.numbers.bands or words.numbers_bands(standing.numbers)
    record = {"mood": words.mood_words(bands), "energy": words.energy_words(bands)}
    wants = words.wants_words(standing.numbers, bands)
    if wants != words.phrases()["drives"]["none"]:
        record["wants"] = wants
    toward = "; ".join(
        f"{_name(name)}: {words.edge_words(words.edge_bands(edge))}" for name, edge in people[:MOST_TOWARD]
    )
    if toward:
        record["toward"] = toward
    on_mind = _on_mind(arcs)
    if on_mind:
        record["on_mind"] = on_mind
    means_to = _means_to(intentions, names)
    if means_to:
        record["means_to"] = means_to
    tilt = words.tilt_words(tendencies(standing, salience))
    if tilt != words.phrases()["tilt"]["none"]:
        record["tilt"] = tilt
    return record


def remembered(
    episodes: Sequence[Episode], facts: Sequence[Fact], names: Mapping[str, str]
) -> tuple[tuple[dict[str, str], ...], tuple[str, ...]]:
    """Return the lines of the `## Remembered` block, within their budget, and the row id of each. Pure."""
    lines = [
        (
            {"when": _day(one.at_s), "from": "you" if one.is_own else _name(one.name), "text": one.text},
            f"episode:{one.id}",
        )
        for one in episodes
    ]
    lines += [
        (
            {"when": _day(one.stated_s), "from": _name(names.get(one.person, "")), "text": f"{one.key}: {one.value}"},
            f"fact:{one.id}",
        )
        for one in facts[:MOST_FACTS]
    ]
    kept, left = 0, REMEMBERED_CHARS
    for line, _ in lines:
        left -= sum(len(value) for value in line.values()) + 110  # its keys and its two markers
        if left < 0:
            break
        kept += 1
    return tuple(line for line, _ in lines[:kept]), tuple(row for _, row in lines[:kept])


def _on_mind(arcs: Sequence[Arc]) -> str:
    said = []
    for arc in sorted(arcs, key=lambda arc: -arc.intensity)[:MOST_ARCS]:
        found = words.arc_words(arc, words.arc_band(arc))
        label = " ".join(word for word in arc.label.split() if word.isalpha())
        if found and label:
            said.append(f"{label}: {found}")
    return "; ".join(said)


def _means_to(intentions: Sequence[Intention], names: Mapping[str, str]) -> str:
    said: list[str] = []
    for one in sorted(intentions, key=lambda one: -one.priority):
        if one.priority < SHOWN_FROM or len(said) == MOST_SHOWN:
            break
        if one.target:
            line = f"{words.phrases()['means_to'][one.type]} {_name(names.get(one.target, one.target))}"
        else:
            line = str(words.phrases()["means_to_alone"][one.type])
        if one.description and not any(char.isdigit() for char in one.description):
            line += f" ({one.description[:OWN_WORDS_CHARS]})"
        said.append(line)
    return "; ".join(said)


def _name(name: str) -> str:
    return " ".join(name.split())[:NAME_CHARS] or "someone"


def _day(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).date().isoformat()
