"""Tendencies: which way the soul leans at this event, worked out without a model; and its deterministic nods. Pure.

Source: the psyche design, sections 7 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from claudius.psyche.models import Standing
from claudius.psyche.state import DRIVE_BASE, level

TENDENCIES = ("approach", "speak", "escalate", "engage", "disclose")


def engagement(standing: Standing, salience: float) -> float:
    """Return how much the soul wants to be part of this, in about [-0.3, 1]. Pure."""
    return (
        0.30 * standing.kernel.sociability
        + 0.25 * max(0.0, standing.edge.warmth)
        + 0.15 * level(standing.numbers, "relatedness")
        + 0.15 * standing.numbers.energy
        + 0.15 * salience
        - 0.25 * standing.edge.tension
    )


def tendencies(standing: Standing, salience: float) -> dict[str, float]:
    """Return the five tendencies, each in [0, 1]; 0.5 = neither way. Pure."""
    numbers, edge, kernel = standing.numbers, standing.edge, standing.kernel
    unsafe, lonely = level(numbers, "safety") - DRIVE_BASE, level(numbers, "relatedness") - DRIVE_BASE
    leaning = {
        "approach": 0.25 * edge.warmth
        + 0.15 * numbers.valence
        + 0.2 * (kernel.sociability - 0.5)
        - 0.3 * edge.tension
        - 0.3 * unsafe,
        "speak": 0.2 * (numbers.arousal - 0.3)
        + 0.2 * (numbers.energy - 0.5)
        + 0.2 * (kernel.sociability - 0.5)
        + 0.2 * lonely,
        "escalate": 0.3 * edge.tension
        - 0.2 * edge.warmth
        - 0.2 * numbers.valence
        + 0.2 * (kernel.dominance - 0.5)
        - 0.3 * (kernel.conflict_avoidance - 0.5)
        - 0.2,
        "engage": engagement(standing, salience) - 0.5,
        "disclose": 0.25 * edge.trust + 0.2 * edge.warmth - 0.3 * unsafe - 0.2 * edge.tension + 0.2 * lonely - 0.2,
    }
    return {name: min(1.0, max(0.0, 0.5 + leaning[name])) for name in TENDENCIES}


def acknowledgement(turn: str, lines: tuple[str, ...]) -> str:
    """Choose the line that answers what needs no thought: always the same for one turn. Pure."""
    number = int.from_bytes(blake2b(turn.encode(), digest_size=8).digest(), "big")
    return lines[number % len(lines)]


_NAMED = {
    "❤": ("heart", "love", "red_heart"),
    "🎉": ("tada", "party", "celebrate", "celebration"),
    "😄": ("laugh", "laughing", "smile_big", "joy", "grin"),
    "🙂": ("smile", "slightly_smiling_face", "thanks"),
}
_SHOWN = {"❤": "❤️"}


def sign_named(name: str) -> str:
    """Return the sign that a model named, by its emoji or in a word; a thumb up where it named another. Pure."""
    word = name.strip().strip(":").lower().replace(" ", "_")
    for sign, names in _NAMED.items():
        if sign in name or word in names:
            return _SHOWN.get(sign, sign)
    return "👍"


def emoji(classes: Iterable[str]) -> str:
    """Return the sign that nods to what was heard. Pure."""
    found = frozenset(classes)
    for sign, names in (
        ("❤️", ("grief",)),
        ("🙂", ("gratitude", "praise")),
        ("🎉", ("celebration", "joy")),
        ("😄", ("laughter",)),
    ):
        if not found.isdisjoint(names):
            return sign
    return "👍"
