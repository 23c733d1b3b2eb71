"""Intentions, tendencies and emoji: what the soul means to do, how it leans, how it reacts, without a model. Pure.

Source: the psyche design, sections 7 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from claudius.psyche.models import Standing
from claudius.psyche.state import DAY_S, DRIVE_BASE, HOUR_S, drifted, level
from claudius.psyche_types import Intention

TENDENCIES = ("approach", "speak", "escalate", "engage", "disclose")


def engagement(standing: Standing, salience: float) -> float:
    """Return how much the soul wants to take part in an event, in about [-0.3, 1]. Pure."""
    return (
        0.30 * standing.kernel.sociability
        + 0.25 * max(0.0, standing.edge.warmth)
        + 0.15 * level(standing.numbers, "relatedness")
        + 0.15 * standing.numbers.energy
        + 0.15 * salience
        - 0.25 * standing.edge.tension
    )


def tendencies(standing: Standing, salience: float) -> dict[str, float]:
    """Return the five tendencies, each in [0, 1]; 0.5 = neutral. Pure."""
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
    """Choose the line that acknowledges a message without thought; deterministic per turn. Pure."""
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
    """Return the emoji that a model named by sign or word; thumbs-up for an unknown one. Pure."""
    word = name.strip().strip(":").lower().replace(" ", "_")
    for sign, names in _NAMED.items():
        if sign in name or word in names:
            return _SHOWN.get(sign, sign)
    return "👍"


def emoji(classes: Iterable[str]) -> str:
    """Return the emoji with which the soul reacts to the cue classes it heard. Pure."""
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


TYPES = ("avoid", "raise", "support", "protect", "distance", "follow_up", "repair", "learn")
OPERATIONS = ("create", "boost", "lower", "drop")
MOST_UPDATES = 3
MOST = 12
LEAST = 0.15
SHOWN_FROM, MOST_SHOWN = 0.35, 2


class Horizon(NamedTuple):
    """The initial priority, half-life and lifetime of intentions of one horizon."""

    priority: float
    half_s: float
    ends_s: float


HORIZONS = {
    "short": Horizon(0.70, 12 * HOUR_S, 1 * DAY_S),
    "medium": Horizon(0.55, 7 * DAY_S, 14 * DAY_S),
    "long": Horizon(0.40, 45 * DAY_S, 90 * DAY_S),
}
DRIVE_EFFECTS = {
    "support": ("relatedness", -0.03),
    "protect": ("relatedness", -0.03),
    "distance": ("autonomy", -0.03),
    "learn": ("novelty", -0.03),
}


class IntentionUpdate(Struct, frozen=True, kw_only=True):
    """One validated update of an intention."""

    operation: str
    type: str
    target: str
    horizon: str
    description: str


def advance_intentions(kept: Sequence[Intention], at_s: float) -> tuple[Intention, ...]:
    """Decay intentions to an instant and drop those that have faded or expired. Pure."""
    alive = []
    for one in kept:
        horizon = HORIZONS[one.horizon]
        elapsed_s = max(0.0, at_s - one.at_s)
        faded = replace(
            one,
            at_s=max(at_s, one.at_s),
            priority=drifted(one.priority, 0.0, horizon.half_s, elapsed_s),
        )
        if faded.priority >= LEAST and at_s - one.born_s <= horizon.ends_s:
            alive.append(faded)
    return tuple(alive)


def update_intentions(
    kept: Sequence[Intention],
    updates: Sequence[IntentionUpdate],
    *,
    turn: str,
    at_s: float,
    sources: tuple[str, ...],
    person: str,
) -> tuple[Intention, ...]:
    """Apply the updates of one turn; the intentions are already advanced to `at_s`. Pure.

    Only intentions of the same sources are touched: an intention in one place neither blocks nor drops one in another.
    """
    found = list(kept)
    for n, update in enumerate(updates[:MOST_UPDATES]):
        same = (update.type, update.target, sources)
        place = next((at for at, one in enumerate(found) if (one.type, one.target, one.sources) == same), -1)
        if place < 0:
            if update.operation == "create":
                found.append(_born(update, f"{turn}/{n}", at_s, sources, person))
        elif update.operation == "drop":
            del found[place]
        else:
            priority = found[place].priority
            priority = priority * 0.6 if update.operation == "lower" else priority + 0.25 * (1.0 - priority)
            found[place] = replace(found[place], priority=priority)
    strongest = sorted(found, key=lambda one: -one.priority)[:MOST]
    return tuple(one for one in found if one in strongest and one.priority >= LEAST)


def drive_effects(updates: Sequence[IntentionUpdate]) -> list[tuple[str, float]]:
    """Return the effects on the drives of creating intentions. Pure."""
    return [
        DRIVE_EFFECTS[update.type]
        for update in updates[:MOST_UPDATES]
        if update.operation == "create" and update.type in DRIVE_EFFECTS
    ]


def _born(update: IntentionUpdate, name: str, at_s: float, sources: tuple[str, ...], person: str) -> Intention:
    return Intention(
        intention=name,
        type=update.type,
        target=update.target,
        horizon=update.horizon,
        description=update.description,
        at_s=at_s,
        born_s=at_s,
        priority=HORIZONS[update.horizon].priority,
        sources=sources,
        person=person,
    )
