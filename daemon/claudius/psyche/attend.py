"""The entry points of the psyche: `attend` runs before the model, `settle` after it. Pure.

`attend` advances the numbers, applies the event, weighs salience and meaning, checks the gate's four conditions and
returns words. `settle` maps what was thought back to numbers by tables.
Source: the psyche design, sections 1 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from claudius.perception import SELF, Kind, Origin, Perception, can_react, internal
from claudius.psyche import arcs as subjects
from claudius.psyche.bands import (
    edge_bands,
    edge_words,
    emotional_state,
    energy_words,
    manner_words,
    mood_words,
    moved_words,
    numbers_bands,
    packet,
    wants_words,
)
from claudius.psyche.change import Change, Event, edge_of, feel
from claudius.psyche.classify import classify
from claudius.psyche.context import (
    FRUSTRATED,
    NEUTRAL,
    context_of,
    event_of,
    felt_before,
    happening_of,
    is_moved,
    messages_of,
    new_mood,
    recent_word,
    stimulus_of,
)
from claudius.psyche.events import MESSAGES, GateSettings, Happening, Judgement, Outcome, PsycheState, is_addressed
from claudius.psyche.gate import emoji, judge
from claudius.psyche.mapping import SHOWN_FROM, IntentionUpdate, Shift, advance_intentions
from claudius.psyche.personality import Kernel
from claudius.psyche.state import Stimulus, advance, apply, tinted
from claudius.psyche_types import Appraisal, Edge, Felt, Intention, Numbers, Psyche
from claudius.recollection import Recollection, Remembered, once

STANCE_EVERY = 5
HURT_S = 2 * 3600.0
"""How long what was said in a conversation can make the soul frustrated there."""
OPEN_SUBJECTS = ("follow_up", "raise", "support")
"""The intentions that leave something of a person's open: what they say then is never only acknowledged."""


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
    is_moved: bool = False
    """Someone has spoken of grief here, so only a quiet mood fits."""
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
    matches = subjects.matches(psyche.arcs, happening.heard.stems)
    event = event_of(recollection, perception, happening, matches, earlier, gate_settings, now_s, person)
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
    aims = [one for one in advance_intentions(psyche.intentions, now_s) if one.priority >= SHOWN_FROM]
    is_open = any(one.person == person and one.type in OPEN_SUBJECTS for one in aims)
    context = context_of(perception, recollection, happening, is_known=is_known, has_open_subject=is_open)
    judged = judge(happening, state, context, gate_settings.weighing)
    near = happening.heard.stems | happening.heard.words | _names(recollection).keys()
    relevant = [one for one in aims if not one.target or one.target in near]
    owed = recollection.owes
    called = owed or (happening.kind in MESSAGES and is_addressed(happening.kind, happening.address))
    outcome = _answerable(judged.outcome, recollection, gate_settings, called=called)
    grieves = is_moved(recollection, happening)
    felt_now = NEUTRAL if grieves else emotional_state(state.numbers.bands, kernel)
    change = Change(
        turn=recollection.turn,
        audience=recollection.audience,
        event=event,
        compiled=gate_settings.kernel,
        outcome=outcome,
        m=judged.m,
        theta=judged.theta,
        mood=felt_now,
        hurts=_hurts(recollection, happening, event, gate_settings, kernel),
        max_arcs=gate_settings.max_arcs,
        milestone="" if recollection.audience == SELF else gate_settings.milestone,
    )
    by_emoji = outcome == "react" and (not called or gate_settings.acknowledges_by_emoji)
    felt = Felt(
        record=_record(recollection, psyche, state, judged, relevant, now_s, grieves) if outcome == "think" else {},
        emotional_state=""
        if outcome != "think" and felt_now == felt_before(recollection)  # without thought, a focus elsewhere stays
        else new_mood(recollection, felt_now, task=recollection.task, word=recent_word(recollection), is_moved=grieves),
        manner=manner_words([one for one in relevant if person in (one.person, one.target)])
        if outcome == "think" and relevant
        else "",
        asks=_asks(recollection, state, judged, happening, event, relevant, called=called, is_about_arc=bool(matches)),
    )
    return Attention(
        outcome=outcome,
        speaks=owed or (outcome == "think" and happening.kind in MESSAGES),
        called=called,
        reaction=emoji(happening.heard.classes) if by_emoji and can_react(perception) else "",
        felt=felt,
        told=_told(happening, judged, state, outcome, event, owed=owed, called=called),
        change=change,
        is_moved=grieves,
    )


def _hurts(
    recollection: Recollection, happening: Happening, event: Event, gate_settings: GateSettings, kernel: Kernel
) -> bool:
    """Return whether this event hurts, and the words of this conversation alone would make the soul frustrated. Pure.

    What was said elsewhere may colour the soul's words; it must not move a process where nobody may know of it.
    """
    if event.stimulus is None or min(*event.stimulus.axes, event.stimulus.tone) >= 0.0:
        return False
    events = [(event.at_s, event.stimulus)]
    for said in [
        one for turn in recollection.past for one in once(turn, messages_of) if event.at_s - one.at_s < HURT_S
    ]:
        heard = classify(
            said.text,
            happening.address,
            soul_name=gate_settings.soul_name,
            novelty=0.0,
            compound=gate_settings.compound,
        )
        if stimulus := stimulus_of(happening.kind, heard):
            events.insert(-1, (said.at_s, stimulus))
    numbers = Numbers(at_s=event.at_s - HURT_S)
    for at_s, stimulus in events:
        numbers = apply(advance(numbers, at_s), stimulus, kernel)
    return emotional_state(numbers_bands(numbers), kernel) == FRUSTRATED


def settle(
    attention: Attention,
    *,
    appraisals: Sequence[Appraisal] = (),
    shifts: Sequence[Shift] = (),
    updates: Sequence[IntentionUpdate] = (),
    hint: str = "",
) -> Change | None:
    """Return the change that a concluded turn makes to the numbers; None if the psyche is off. Pure."""
    change = attention.change
    if change is None:
        return None
    return replace(change, appraisals=tuple(appraisals), shifts=tuple(shifts), updates=tuple(updates), hint=hint)


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


def _names(recollection: Recollection) -> dict[str, str]:
    return {one.person: one.name for one in recollection.people}


def _record(
    recollection: Recollection,
    psyche: Psyche,
    state: PsycheState,
    judged: Judgement,
    aims: Sequence[Intention],
    now_s: float,
    grieves: bool,  # noqa: FBT001 - private, called once
) -> dict[str, str]:
    people: list[tuple[str, Edge]] = []
    for one in recollection.people:
        is_speaker = one is recollection.speaker
        people.append((one.name, state.edge if is_speaker else edge_of(psyche, one.person, now_s, state.kernel)))
    record = packet(state, judged.salience, people, [arc for arc, _ in state.arcs], aims, _names(recollection))
    return record | {"mood": moved_words()} if grieves else record


def _asks(
    recollection: Recollection,
    state: PsycheState,
    judged: Judgement,
    happening: Happening,
    event: Event,
    aims: Sequence[Intention],
    *,
    called: bool,
    is_about_arc: bool,
) -> tuple[str, ...]:
    """Return the psyche's own steps to ask. `is_about_arc`: the message is about a recurring subject."""
    asked = []
    turns_here = recollection.speaker.turns_here if recollection.speaker else 0
    is_alone = recollection.audience.startswith("private:")  # they know everything that moved the tension with them
    if event.person and (  # nothing that was said elsewhere may change which steps a channel's prompt asks
        {"conflict", "boundary", "disclose"} & {*judged.choices}
        or event.importance >= 0.35
        or (edge_bands(state.edge)[2] > 0 if is_alone else "apology" in happening.heard.classes)
        or (turns_here + 1) % STANCE_EVERY == 0
    ):
        asked.append("stance_shifts")
    if happening.heard.is_request or happening.kind == "promise_due" or is_about_arc or aims:
        asked.append("intention_updates")
    if not called and happening.kind in MESSAGES:
        asked.append("chosen_action")
    return tuple(asked)


def _told(
    happening: Happening,
    judged: Judgement,
    state: PsycheState,
    outcome: Outcome,
    event: Event,
    *,
    owed: bool,
    called: bool,
) -> dict[str, Any]:
    heard = happening.heard
    bands = state.numbers.bands
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
        "failed": list(judged.failed),
        "choices": list(judged.choices),
        "axes": heard.axes._asdict(),
        "features": {
            "classes": sorted(heard.classes),
            "critical": sorted(heard.critical),
            "valence": heard.valence,
            "novelty": heard.novelty,
            "load": heard.load,
            "importance": event.importance,
        },
        "words": {
            "mood": mood_words(bands),
            "energy": energy_words(bands),
            "wants": wants_words(state.numbers, bands),
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
        max_arcs=gate_settings.max_arcs,
    )
