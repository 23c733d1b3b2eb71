"""The gate: decide whether the soul thinks about an event, reacts to it or ignores it, and its tendencies. Pure.

An event makes four claims on attention (salience); meaning, triviality, cooldown and choice decide. Who else is present
plays no part. Source: the psyche design, sections 5, 7 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from claudius.psyche.events import (
    HIT,
    MESSAGES,
    OWN,
    EventContext,
    Happening,
    Judgement,
    Outcome,
    PsycheState,
    Triviality,
    Weighing,
    claim,
    is_addressed,
)
from claudius.psyche.state import DRIVE_BASE
from claudius.psyche_types import DRIVES, Edge

BOT_STREAK = 6
"""After this many bot messages in a row, without a human, the soul is silent."""
SHORT_WORDS = 3
"""What is overheard and has no more words than this is no reason to join in, unless it asks something."""
TIRED = 0.3
"""The energy below which the threshold rises."""
AT_EASE = 0.5
"""The comfort with somebody at which it neither opens nor closes the soul."""
WARM_CLASSES = frozenset(("gratitude", "praise", "celebration", "grief", "joy", "laughter"))
ENGAGED = 0.45
"""From this engagement upwards, the soul reacts to messages that do not address it."""


class Salience(NamedTuple):
    """The four claims, each in [0, 1]."""

    person: float
    topic: float
    object: float
    inner: float


def stakes(edge: Edge) -> float:
    """Return how much a person matters to the soul, positively or negatively, in [0, 1]. Pure."""
    return max(abs(edge.warmth), abs(edge.trust), edge.tension)


def arc_heat(state: PsycheState) -> float:
    """Return the highest intensity of the arcs that the event is about; 0 if there are none. Pure."""
    return max([arc.intensity for arc, _ in state.arcs], default=0.0)


def salience(happening: Happening, state: PsycheState) -> Salience:
    """Compute the four claims. Pure."""
    heard, address = happening.heard, happening.address
    base, bonus, _ = claim(happening.kind, address, happening.level)
    person = min(1.0, base + bonus * stakes(state.edge))
    if happening.kind in MESSAGES:
        if address in ("thread", "named") and heard.is_question and not happening.mentions_other:
            person += 0.20
        if not is_addressed(happening.kind, address) and heard.critical & {"destructive", "self_harm"}:
            person += 0.50
        if address == "thread" and happening.mentions_other:
            person = min(0.30, person)
    heat = arc_heat(state)
    return Salience(
        person=min(1.0, person),
        topic=0.4 + 0.3 * heat**1.5 if heat else 0.0,
        object=0.25 if happening.has_attachments else 0.0,
        inner=(0.5 if happening.kind in OWN else 0.3) * max(state.numbers.drives) ** 1.5,
    )


def judge(happening: Happening, state: PsycheState, context: EventContext, weighing: Weighing) -> Judgement:
    """Decide whether the soul thinks about, reacts to or ignores an event. Pure."""
    claims = salience(happening, state)
    strongest = max(claims)
    numbers = state.numbers
    w1, w2, w3, w4, w5 = weighing.weights
    pressed, heat, mattering = max(numbers.drives), arc_heat(state), stakes(state.edge)
    meaning = w1 * strongest + w2 * pressed + w3 * heat + w4 * mattering - w5 * (1.0 - numbers.energy)
    theta = weighing.threshold + 0.05 * max(0.0, TIRED - numbers.energy) / TIRED
    kind = triviality(happening, state, context)
    choices = choose(happening, state, context)
    window_s = {
        "addressed": 0.0,
        "thread": weighing.window_thread_s,
        "ambient": weighing.window_ambient_s,
        "proactive": weighing.window_proactive_s,
    }[claim(happening.kind, happening.address, happening.level).window]
    holds = {
        "M": meaning >= theta,
        "trivial": kind != "trivial",
        "cooldown": context.since_thought_s is None or context.since_thought_s >= window_s,
        "choice": bool(choices),
    }
    failed = tuple([name for name, does in holds.items() if not does])
    return Judgement(
        outcome=_outcome(happening, state, context, failed, strongest),
        m=meaning,
        theta=theta,
        salience=strongest,
        triviality=kind,
        failed=failed,
        choices=choices,
        parts=dict(claims._asdict(), drive=pressed, arc=heat, stakes=mattering, energy=numbers.energy),
    )


def triviality(happening: Happening, state: PsycheState, context: EventContext) -> Triviality:
    """Return the triviality class of an event: the first that fits. Pure."""
    heard, is_message = happening.heard, happening.kind in MESSAGES
    addressed = is_addressed(happening.kind, happening.address)
    if is_message and heard.critical:
        return "critical"
    if not is_message and happening.kind not in OWN:
        return "trivial"
    if is_message and not happening.has_attachments:
        if heard.is_trivial and not context.has_open_question:
            return "trivial"
        says_little = len(heard.words) <= SHORT_WORDS and not heard.is_question
        if not addressed and (says_little or context.is_repeat):
            return "trivial"
    matched = max([match for _, match in state.arcs], default=0.0)
    if (
        heard.is_question
        or not heard.classes.isdisjoint(("grief", "joy"))
        or matched >= 0.5
        or context.is_first_contact
    ):
        return "significant"
    return "moderate"


def choose(happening: Happening, state: PsycheState, context: EventContext) -> tuple[str, ...]:
    """Return the choices that an event offers; none if the soul cannot speak. Pure."""
    if not context.can_speak or context.bot_streak >= BOT_STREAK:
        return ()
    heard, address = happening.heard, happening.address
    found = {
        "respond": is_addressed(happening.kind, address) or heard.is_question or "request" in heard.classes,
        "disclose": not heard.classes.isdisjoint(("grief", "joy")),
        "engage": max([match for _, match in state.arcs], default=0.0) >= HIT
        or state.edge.tension >= 0.3
        or address in ("thread", "named"),
        "consult": bool(heard.critical),
        "initiate": happening.kind in OWN,
    }
    return tuple([name for name, holds in found.items() if holds])


def _outcome(
    happening: Happening, state: PsycheState, context: EventContext, failed: tuple[str, ...], strongest: float
) -> Outcome:
    if not failed:
        return "think"
    if happening.kind not in MESSAGES or not context.can_speak or context.bot_streak >= BOT_STREAK:
        return "ignore"
    if is_addressed(happening.kind, happening.address):
        return "react"
    nods = (
        context.can_react
        and not context.reacted_recently
        and not happening.heard.classes.isdisjoint(WARM_CLASSES)
        and engagement(state, strongest) >= ENGAGED
    )
    return "react" if nods else "ignore"


TENDENCIES = ("approach", "speak", "escalate", "engage", "disclose")


def engagement(state: PsycheState, salience: float) -> float:
    """Return how much the soul wants to take part in an event, in about [-0.3, 1]. Pure."""
    return (
        0.30 * state.kernel.sociability
        + 0.25 * max(0.0, state.edge.warmth)
        + 0.15 * state.numbers.drives[DRIVES.index("relatedness")]
        + 0.15 * state.numbers.energy
        + 0.15 * salience
        - 0.25 * state.edge.tension
    )


def tendencies(state: PsycheState, salience: float) -> dict[str, float]:
    """Return the five tendencies, each in [0, 1]; 0.5 = neutral. Pure."""
    numbers, edge, kernel = state.numbers, state.edge, state.kernel
    needs = dict(zip(DRIVES, numbers.drives, strict=True))
    unsafe, lonely = needs["safety"] - DRIVE_BASE, needs["relatedness"] - DRIVE_BASE
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
        "engage": engagement(state, salience) - 0.5,
        "disclose": 0.25 * edge.trust
        + 0.2 * edge.warmth
        + 0.3 * (edge.comfort - AT_EASE)
        - 0.3 * unsafe
        - 0.2 * edge.tension
        + 0.2 * lonely
        - 0.2,
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


ACTIONS = ("none", "react", "stay_silent")
_NAME_CHARS = 40


def read_action(text: str) -> tuple[str, str]:
    """Return the action that the soul chooses instead of speaking, and the name of a reaction. Pure."""
    action, _, name = text.strip().strip(".").partition(":")
    action = action.strip().lower().replace(" ", "_")
    return (action, name.strip()[:_NAME_CHARS]) if action in ACTIONS else (ACTIONS[0], "")


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
