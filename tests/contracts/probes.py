"""Pure functions of one argument, for table-driven checks: a gate's decision, how well a person is known.

A row is plain data; missing values are neutral. Source: the psyche design, section 6.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from claudius.cortex.triggers import is_farming
from claudius.memory.ledger import Tally
from claudius.psyche import change as subjects
from claudius.psyche.attend import judge
from claudius.psyche.change import Event, feel
from claudius.psyche.context import REPEAT, REPEAT_S, importance, stimulus_of
from claudius.psyche.events import (
    MESSAGES,
    NOTHING_HEARD,
    EventContext,
    Happening,
    PsycheState,
    classify,
    is_addressed,
    scope,
)
from claudius.psyche.personality import Kernel
from claudius.psyche.words import likeness, stems, tokens
from claudius.psyche_types import DRIVES, Arc, Edge, Numbers, Psyche

SOUL = "claudius"
NOW_S = 1_767_225_600.0


def first_farming(scopes: Sequence[int], trusts: Sequence[int] = ()) -> int | None:
    """Return the index of the first burst that fires; None if none does. Pure."""
    return next((at for at in range(len(scopes)) if is_farming(scopes[: at + 1], trusts)), None)


def gate(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what attention decides on one row of event and state. Pure."""
    event, state = row.get("event", {}), row.get("state", {})
    kind, address = event.get("kind", "message"), event.get("address", "dm")
    person = event.get("from", "someone")
    kernel = Kernel(**state.get("kernel", {}))
    arcs = tuple(
        Arc(
            arc=str(n),
            label="arc",
            stems=tuple(sorted(stems(" ".join(arc["topic"])))),
            at_s=NOW_S,
            intensity=arc["intensity"],
        )
        for n, arc in enumerate(state.get("arcs", ()))
        if arc.get("visible", True)
    )
    heard = NOTHING_HEARD
    if kind in MESSAGES or kind == "news":
        where = address if kind in MESSAGES else "ambient"
        text, novelty = event.get("text", ""), event.get("novelty", 0.3)
        heard = classify(text, where, soul_name=SOUL, novelty=novelty)
    happening = Happening(
        kind=kind,
        address=address,
        heard=heard,
        level=event.get("level", 0.0),
        mentions_other=bool(event.get("mentions_other")),
        has_attachments=bool(event.get("attachments")),
    )
    matched = subjects.matching_arcs(arcs, heard.stems)
    if kind in ("tick", "milestone"):
        matched = tuple((arc.arc, 1.0) for arc in arcs)
    psyche = Psyche(numbers=_numbers(state), edges=(_edge(state, person),), arcs=arcs)
    heat = max((arc.intensity for arc in arcs if arc.arc in dict(matched)), default=0.0)
    moved = feel(
        psyche,
        Event(
            at_s=NOW_S,
            kind=kind,
            address=address,
            person=person,
            name="",
            stimulus=stimulus_of(kind, heard, event.get("text", "")),
            importance=importance(
                critical=bool(heard.critical),
                moved=not heard.classes.isdisjoint(("grief", "joy")),
                novelty=heard.novelty,
                heat=heat,
            ),
            matches=matched,
        ),
        kernel,
    )
    standing = PsycheState(
        numbers=moved.numbers,
        edge=moved.edge or Edge(person=person, at_s=NOW_S),
        arcs=tuple((arc, dict(matched)[arc.arc]) for arc in moved.arcs if arc.arc in dict(matched)),
        kernel=kernel,
    )
    found = judge(happening, standing, _around(event, state, happening))
    return {
        "attention": found.outcome,
        "m": found.m,
        "theta": found.theta,
        "salience": found.salience,
        "triviality": found.triviality,
        "failed": list(found.failed),
        "choices": list(found.choices),
    }


def tally(times: Iterable[datetime]) -> Tally:
    """Count messages given in any order."""
    counted = Tally()
    for at in sorted(set(times)):
        counted = counted.heard(at)
    return counted


def info_score(row: Mapping[str, Any]) -> int:
    """Return how much is known of a peer with `{"timestamps": [RFC 3339, any order], "assessments": n}`, 0 to 10."""
    times = [datetime.fromisoformat(text) for text in row.get("timestamps", ())]
    counted = row.get("assessments", 0)
    return tally(times).info_score(counted if isinstance(counted, int) else len(counted))


def farming(stream: Mapping[str, Any]) -> dict[str, Any]:
    """Look for the farming pattern in `{"scopes": []}` or `{"bursts": [[{"text", "attachments"}]]}`, and `"trust": []`.

    Returns `{"fires", "at"}`: `at` is the index of the first burst that fires, None if none does.
    """
    scopes = [*(stream.get("scopes") or ()), *(sum(map(_scope, burst)) for burst in stream.get("bursts") or ())]
    at = first_farming(scopes, list(stream.get("trust") or ()))
    return {"fires": at is not None, "at": at}


def _scope(message: Mapping[str, Any]) -> int:
    attachments = message.get("attachments", 0)
    return scope(str(message.get("text", "")), attachments if isinstance(attachments, int) else len(attachments))


def _numbers(state: Mapping[str, Any]) -> Numbers:
    neutral = Numbers(at_s=NOW_S)
    given = state.get("drives", {})
    one, two, three, four, five = (given.get(drive, level) for drive, level in zip(DRIVES, neutral.drives, strict=True))
    return replace(
        neutral,
        energy=state.get("energy", neutral.energy),
        valence=state.get("valence", neutral.valence),
        arousal=state.get("arousal", neutral.arousal),
        drives=(one, two, three, four, five),
    )


def _edge(state: Mapping[str, Any], person: str) -> Edge:
    return Edge(person=person, at_s=NOW_S, **state.get("relationship", {}))


def _around(event: Mapping[str, Any], state: Mapping[str, Any], happening: Happening) -> EventContext:
    said = {token.word for token in tokens(event.get("text", "")) if not token.ends_sentence}
    repeats = (
        likeness(said, {token.word for token in tokens(one["text"]) if not token.ends_sentence})
        for one in state.get("recent", ())
        if one.get("age_s", 0.0) <= REPEAT_S
    )
    return EventContext(
        since_thought_s=state.get("since_last_cognition_s"),
        has_open_question=bool(state.get("open_question")),
        can_speak=bool(state.get("can_speak", True)),
        bot_streak=int(state.get("bot_streak", 0)),
        is_repeat=not is_addressed(happening.kind, happening.address)
        and bool(said)
        and max(repeats, default=0.0) >= REPEAT,
        reacted_recently=bool(state.get("reacted_recently")),
    )
