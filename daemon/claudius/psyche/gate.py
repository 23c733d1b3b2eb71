"""The gate: decide whether an event is thought about, by meaning, triviality, cooldown and choice. Pure.

Who else is present plays no part. Source: the psyche design, sections 5 and 7.
"""

from __future__ import annotations

from claudius.psyche.events import MESSAGES, OWN, claim, is_addressed
from claudius.psyche.intentions import engagement
from claudius.psyche.models import Around, Happening, Judgement, Outcome, Standing, Triviality, Weighing
from claudius.psyche.salience import HIT, arc_heat, salience, stakes

BOT_STREAK = 6
"""After this many bot messages in a row, without a human, the soul is silent."""
TIRED = 0.3
"""The energy below which the threshold rises."""
WARM_CLASSES = frozenset(("gratitude", "praise", "celebration", "grief", "joy", "laughter"))
ENGAGED = 0.45
"""From this engagement upwards, the soul reacts to messages that do not address it."""


def judge(happening: Happening, standing: Standing, around: Around, weighing: Weighing) -> Judgement:
    """Decide whether the soul thinks about, reacts to or ignores an event. Pure."""
    claims = salience(happening, standing)
    strongest = max(claims)
    numbers = standing.numbers
    w1, w2, w3, w4, w5 = weighing.weights
    pressed, heat, mattering = max(numbers.drives), arc_heat(standing), stakes(standing.edge)
    meaning = w1 * strongest + w2 * pressed + w3 * heat + w4 * mattering - w5 * (1.0 - numbers.energy)
    theta = weighing.threshold + 0.05 * max(0.0, TIRED - numbers.energy) / TIRED
    kind = triviality(happening, standing, around)
    choices = choose(happening, standing, around)
    failed = tuple(
        name
        for name, holds in (
            ("M", meaning >= theta),
            ("trivial", kind != "trivial"),
            ("cooldown", has_rested(happening, around, weighing)),
            ("choice", bool(choices)),
        )
        if not holds
    )
    return Judgement(
        outcome=_outcome(happening, standing, around, failed, strongest),
        m=meaning,
        theta=theta,
        salience=strongest,
        triviality=kind,
        failed=failed,
        choices=choices,
        parts=dict(claims._asdict(), drive=pressed, arc=heat, stakes=mattering, energy=numbers.energy),
    )


def triviality(happening: Happening, standing: Standing, around: Around) -> Triviality:
    """Return the triviality class of an event: the first that fits. Pure."""
    heard, is_message = happening.heard, happening.kind in MESSAGES
    addressed = is_addressed(happening.kind, happening.address)
    if is_message and heard.critical:
        return "critical"
    if not is_message and happening.kind not in OWN:
        return "trivial"
    if is_message and not happening.has_attachments:
        if heard.is_trivial and not around.has_open_question:
            return "trivial"
        if around.is_repeat and not addressed:
            return "trivial"
    matched = max((match for _, match in standing.arcs), default=0.0)
    if (
        heard.is_question
        or (addressed and heard.is_request)
        or not heard.classes.isdisjoint(("grief", "joy"))
        or matched >= 0.5
        or abs(heard.valence) >= 0.5
        or around.is_first_contact
    ):
        return "significant"
    return "moderate"


def has_rested(happening: Happening, around: Around, weighing: Weighing) -> bool:
    """Return whether the cooldown since the last thought in this conversation has elapsed. Pure."""
    window_s = {
        "addressed": 0.0,
        "thread": weighing.window_thread_s,
        "ambient": weighing.window_ambient_s,
        "proactive": weighing.window_proactive_s,
    }[claim(happening.kind, happening.address, happening.level).window]
    return around.since_thought_s is None or around.since_thought_s >= window_s


def choose(happening: Happening, standing: Standing, around: Around) -> tuple[str, ...]:
    """Return the choices that an event offers; none if the soul cannot speak. Pure."""
    if not around.can_speak or around.bot_streak >= BOT_STREAK:
        return ()
    heard, address = happening.heard, happening.address
    found = {
        "respond": is_addressed(happening.kind, address) or heard.is_question or heard.is_request,
        "conflict": min(heard.axes) <= -0.3,
        "boundary": heard.axes.bounds <= -0.3,
        "disclose": not heard.classes.isdisjoint(("grief", "joy")),
        "engage": any(match >= HIT for _, match in standing.arcs)
        or standing.edge.tension >= 0.3
        or address in ("thread", "named"),
        "consult": bool(heard.critical),
        "initiate": happening.kind in OWN,
    }
    return tuple(name for name, holds in found.items() if holds)


def _outcome(
    happening: Happening, standing: Standing, around: Around, failed: tuple[str, ...], strongest: float
) -> Outcome:
    if not failed:
        return "think"
    if happening.kind not in MESSAGES or not around.can_speak or around.bot_streak >= BOT_STREAK:
        return "ignore"
    if is_addressed(happening.kind, happening.address):
        return "react"
    nods = (
        around.can_react
        and not around.reacted_recently
        and not happening.heard.classes.isdisjoint(WARM_CLASSES)
        and engagement(standing, strongest) >= ENGAGED
    )
    return "react" if nods else "ignore"
