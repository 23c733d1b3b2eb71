"""The entry points of the psyche: `attend` runs before the model, `settle` after it. Pure.

`attend` advances the numbers, applies the event, weighs salience and meaning, checks the gate's four conditions and
returns words. `settle` adds how the reply took what was heard; a table maps that to numbers.
Source: the psyche design, sections 1 and 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from claudius.perception import CONSUMED, SELF, Kind, MessageExtra, Origin, Perception, can_react, internal
from claudius.psyche.bands import edge_bands, edge_words, emotional_state, engagement, mood_of, numbers_bands, sentences
from claudius.psyche.change import Change, Event, edge_of, feel, matching_arcs
from claudius.psyche.context import (
    appraisals_of,
    context_of,
    event_of,
    felt_before,
    happening_of,
    messages_of,
    new_mood,
    recent_word,
)
from claudius.psyche.events import (
    HIT,
    MESSAGES,
    OWN,
    THRESHOLD,
    EventContext,
    GateSettings,
    Happening,
    Judgement,
    Outcome,
    PsycheState,
    Triviality,
    claim,
    is_addressed,
)
from claudius.psyche.personality import Kernel
from claudius.psyche.state import HURT_S, Stimulus, apply_appraisal, coloured, frustrates, moves_only_view, tinted
from claudius.psyche_types import Appraisal, Edge, Felt, Numbers, Psyche
from claudius.recollection import Recollection, Remembered, once

BOT_STREAK = 6
"""After this many bot messages in a row, without a human, the soul is silent."""
AHEAD = timedelta(hours=14)
"""A day has come once it has come anywhere."""
SHORT_WORDS = 3
"""What is overheard and has no more words than this is no reason to join in, unless it asks something."""
TIRED = 0.3
"""The energy below which the threshold rises."""
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


def judge(happening: Happening, state: PsycheState, context: EventContext, threshold: float = THRESHOLD) -> Judgement:
    """Decide whether the soul thinks about, reacts to or ignores an event. Pure."""
    claims = salience(happening, state)
    strongest = max(claims)
    numbers, heard, since = state.numbers, happening.heard, context.since_thought_s
    pressed, heat, mattering = max(numbers.drives), arc_heat(state), stakes(state.edge)
    meaning = 0.50 * strongest + 0.15 * pressed + 0.15 * heat + 0.15 * mattering - 0.10 * (1.0 - numbers.energy)
    theta = threshold + 0.05 * max(0.0, TIRED - numbers.energy) / TIRED
    kind = triviality(happening, state, context)
    choices = choose(happening, state, context)
    window_s = claim(happening.kind, happening.address, happening.level).window_s
    holds = {
        "M": meaning >= theta,
        "trivial": kind != "trivial",
        "cooldown": "self_harm" in heard.critical or since is None or since >= window_s,
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


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """The result of attention for the rest of the turn. Words reach the prompt; numbers do not."""

    outcome: Outcome = "think"
    speaks: bool = True
    """An utterance is wanted: a reply is owed, or the soul chooses to speak."""
    called: bool = False
    """The message is addressed to the soul: a reply is owed, or its name was called in a group."""
    reaction: str = ""
    """The emoji of a `react`; empty = a line, or nothing."""
    felt: Felt = Felt()
    told: Mapping[str, Any] = {}
    """What `claudius why` shows about it."""
    change: Change | None = None
    """The change that the event makes to the numbers; None = none (the psyche is off)."""
    numbers: Numbers | None = None
    """The soul's numbers after the event, before the reply."""
    kernel: Kernel = Kernel()
    """The traits as they stand, drift included."""
    remembered: Remembered = Remembered()
    """The lines of memory for the prompt; they are looked for whether or not the soul feels."""


def attend(recollection: Recollection, perception: Perception, gate_settings: GateSettings) -> Attention:
    """Decide whether the soul thinks about, reacts to or ignores a perception, and say in words what it feels. Pure."""
    psyche = recollection.psyche or Psyche()
    kernel = tinted(gate_settings.kernel, psyche.drift)
    now_s = recollection.now.timestamp()
    earlier = tuple([said for turn in recollection.past for said in once(turn, messages_of)])
    happening = happening_of(perception, recollection, earlier, gate_settings)
    speaker = recollection.speaker
    person = speaker.person if speaker else ""
    matches = matching_arcs(psyche.arcs, happening.heard.stems)
    event = event_of(recollection, perception, happening, matches, now_s, person)
    moved = feel(psyche, event, kernel)
    named, about = dict(matches), internal(perception)
    state = PsycheState(
        numbers=replace(moved.numbers, bands=numbers_bands(moved.numbers)),
        edge=moved.edge or _missed(psyche, perception, kernel, now_s),
        arcs=tuple([(arc, 1.0) for arc in moved.arcs if not about.there[1] or about.there[1] in arc.sources])
        if happening.kind in ("tick", "milestone")
        else tuple([(arc, named[arc.arc]) for arc in moved.arcs if arc.arc in named]),
        kernel=kernel,
    )
    is_known = person in [peer.peer_id for peer in recollection.peers]  # only what may be shown to this audience
    today = (recollection.now + AHEAD).date()
    due = [one for one in recollection.matters if one.person == person and one.when and one.when <= today]
    context = context_of(perception, recollection, happening, is_known=is_known, has_open_subject=bool(due))
    judged = judge(happening, state, context, gate_settings.threshold)
    owed = recollection.owes
    called = owed or (happening.kind in MESSAGES and is_addressed(happening.kind, happening.address))
    outcome = _answerable(judged.outcome, recollection, gate_settings, called=called)
    felt_now = emotional_state(mood_of(state.numbers))
    change = Change(
        turn=recollection.turn,
        audience=recollection.audience,
        event=event,
        compiled=gate_settings.kernel,
        outcome=outcome,
        m=judged.m,
        theta=judged.theta,
        mood=felt_now,
        milestone="" if recollection.audience == SELF else gate_settings.milestone,
    )
    is_answered = not (isinstance(perception.extra, MessageExtra) and perception.extra.participation == CONSUMED)
    by_emoji = outcome == "react" and (not called or gate_settings.acknowledges_by_emoji)
    felt = Felt(
        record=_record(recollection, psyche, state, judged, now_s) if outcome == "think" else {},
        emotional_state=""
        if outcome != "think" and felt_now == felt_before(recollection)  # without thought, a focus elsewhere stays
        else new_mood(recollection, felt_now, task=recollection.task, word=recent_word(recollection)),
        asks=("chosen_action",) if not called and happening.kind in MESSAGES else (),
    )
    return Attention(
        outcome=outcome,
        speaks=owed or (outcome == "think" and happening.kind in MESSAGES),
        called=called,
        reaction=emoji(happening.heard.classes) if by_emoji and can_react(perception) else "",
        felt=felt,
        told=_told(happening, judged, state, outcome, event, owed=owed, called=called, is_answered=is_answered),
        change=change,
        numbers=state.numbers,
        kernel=kernel,
    )


def settle(
    attention: Attention, recollection: Recollection, *, appraisals: Sequence[Appraisal] = (), hint: str = ""
) -> Change | None:
    """Return the change that a concluded turn makes to the numbers; None if the psyche is off. Pure.

    What was said elsewhere may colour the soul's words; only what was said here makes it frustrated here.
    """
    change = attention.change
    if change is None or attention.numbers is None:
        return change
    numbers, speaker = attention.numbers, change.event.person
    for one in appraisals:
        if not moves_only_view(one, speaker):
            numbers = coloured(apply_appraisal(numbers, one, attention.kernel), one)
    since_s = change.event.at_s - HURT_S
    lately = [one for turn in recollection.past for one in once(turn, appraisals_of) if one.at_s >= since_s]
    return replace(
        change,
        appraisals=tuple(appraisals),
        hint=hint,
        mood=emotional_state(mood_of(replace(numbers, bands=numbers_bands(numbers)))),
        hurts=bool(appraisals) and frustrates((*lately, *appraisals)),
    )


def _missed(psyche: Psyche, perception: Perception, kernel: Kernel, now_s: float) -> Edge:
    """Return the edge that a silence is about, else nobody's; the silence itself does not move it. Pure."""
    person = perception.person if perception.kind is Kind.SILENCE else ""
    return edge_of(psyche, person, now_s, kernel) if person else Edge(person="", at_s=now_s)


def _answerable(outcome: Outcome, recollection: Recollection, gate_settings: GateSettings, *, called: bool) -> Outcome:
    """Return the outcome, corrected so that a person who is owed a reply is never met with silence. Pure."""
    owing = [one for one in recollection.perceptions if one.owes and one.origin is Origin.EXTERNAL]
    if outcome == "react" and called and not gate_settings.can_acknowledge:
        return "think"
    if outcome == "ignore" and not all(one.is_bot for one in owing):
        return "think"
    return outcome


def _record(
    recollection: Recollection, psyche: Psyche, state: PsycheState, judged: Judgement, now_s: float
) -> dict[str, str]:
    people = [
        (one.name, state.edge if one is recollection.speaker else edge_of(psyche, one.person, now_s, state.kernel))
        for one in recollection.people
    ]
    present = {edge.person for _, edge in people}
    names = {one.person: one.name for turn in recollection.past for one in turn.entries if one.person and one.name}
    absent = [
        one
        for turn in reversed(recollection.past)
        for one in reversed(once(turn, appraisals_of))
        if one.person not in present and one.person in names
    ]
    people += [(str(names[one.person]), Edge(person=one.person, at_s=now_s)) for one in absent]
    is_alone = recollection.audience.startswith("private:")  # they know everything that moved the soul towards them
    appraised = (*psyche.appraisals, *absent)
    said = sentences(state, judged.salience, people, appraised, now_s, is_alone=is_alone)
    return {"text": " ".join(said)} if said else {}


def _told(
    happening: Happening,
    judged: Judgement,
    state: PsycheState,
    outcome: Outcome,
    event: Event,
    *,
    owed: bool,
    called: bool,
    is_answered: bool,
) -> dict[str, Any]:
    heard = happening.heard
    form = {"think": "words", "react": "line" if called else "emoji", "ignore": "none"}[outcome]
    return {
        "attention": outcome,
        "speak": owed or outcome != "ignore",
        "form": form,
        "kind": happening.kind,
        "address": happening.address,
        "owed": owed,
        "triviality": judged.triviality,
        "m": judged.m,
        "theta": judged.theta,
        "parts": judged.parts,
        "failed": list(judged.failed) if is_answered else ["consumed"],
        "choices": list(judged.choices),
        "features": {
            "classes": sorted(heard.classes),
            "critical": sorted(heard.critical),
            "novelty": heard.novelty,
            "load": heard.load,
            "importance": event.importance,
        },
        "words": {
            "mood": mood_of(state.numbers),
            "toward": edge_words(edge_bands(state.edge)) if state.edge.person else "",
        },
    }


def set_back(recollection: Recollection, effects: tuple[float, ...], gate_settings: GateSettings) -> Change:
    """Return the change that a failed or stopped answer makes: `effects` on the drives, and nothing else. Pure."""
    return Change(
        turn=recollection.turn,
        audience=recollection.audience,
        event=Event(
            at_s=recollection.now.timestamp(),
            kind="setback",
            address="self",
            person="",
            name="",
            stimulus=Stimulus(novelty=None, drive_effects=effects),
            importance=0.0,
        ),
        compiled=gate_settings.kernel,
        outcome="ignore",
    )
