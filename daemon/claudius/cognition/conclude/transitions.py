"""Compute the state that a turn leaves: the change of the psyche, the conversation's mood, and its next process.

Source: the process design, sections 3, 4 and 8.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.processes import Process, Transition, find, resolved
from claudius.cognition.reply.parser import read_bool
from claudius.cognition.steps import Effect
from claudius.errors import ProcessError
from claudius.intent import Intent, StateChange
from claudius.perception import SELF
from claudius.psyche import Attention, settle
from claudius.psyche.change import Change
from claudius.psyche.context import FOCUSED, FRUSTRATED, MOOD, felt_before, mood_here, new_mood, recent_word, word_in
from claudius.psyche_types import PsycheChange
from claudius.recollection import ProcessState, Recollection, StateKey
from claudius.soul import SoulText


class Settled(Struct, frozen=True):
    """The result of a turn for the psyche."""

    state: tuple[StateChange, ...]
    change: PsycheChange | None = None
    told: Mapping[str, str] = field(default_factory=dict)
    """For `claudius why`: the new mood word."""


def settled(attention: Attention | None, effects: Collection[Effect], recollection: Recollection) -> Settled:
    """Return the soul-state changes, including the mood word from the bands, and the change of the numbers. Pure."""
    state = tuple([change for effect in effects for change in effect.state])
    if attention is None or attention.change is None:
        return Settled(state)
    hint = ([effect.mood for effect in effects if effect.mood] or [""])[0]
    change = settle(
        attention, recollection, appraisals=[one for effect in effects for one in effect.appraisals], hint=hint
    )
    kept = [one for one in state if one.key != MOOD]
    word = new_mood(
        recollection,
        change.mood if change else attention.change.mood,
        task=task_after(recollection, state),
        word=hint or recent_word(recollection),
    )
    moved = (StateChange(key=MOOD, value=word, audience=SELF),) if word else ()
    return Settled((*kept, *moved), change, {"mood": moved[0].value} if moved else {})


def joined(last: PsycheChange | None, parts: Iterable[PsycheChange | None]) -> PsycheChange | None:
    """Return the psyche change of a turn with several processes: one event, and the thoughts of each process. Pure."""
    if not isinstance(last, Change):
        return last
    known = [part for part in parts if isinstance(part, Change)]
    return replace(
        last,
        appraisals=tuple(one for part in known for one in part.appraisals),
        hint=next((part.hint for part in known if part.hint), last.hint),
        hurts=any(part.hurts for part in known),
        mood=known[-1].mood if known else last.mood,
    )


def task_after(recollection: Recollection, state: Iterable[StateChange]) -> str:
    """Return the current task of this conversation once these changes are applied. Pure."""
    for one in state:
        if one.key == StateKey.CURRENT_TASK:
            return one.value
    return recollection.task


def mood_before(recollection: Recollection, felt: str = "") -> str:
    """Return this conversation's mood before the turn's thoughts; `felt`: the mood from the current numbers. Pure."""
    felt = felt or felt_before(recollection)
    return mood_here(felt, task=recollection.task, word=recent_word(recollection))


log = logging.getLogger(__name__)

_CHECKS = ("user_model_check", "soul_state_check")


def stayed(before: ProcessState, ran: str, now: datetime, kept: Mapping[str, Any] | None = None) -> ProcessState:
    """Return the state after one more turn of the process that ran. Pure."""
    if before.process != ran:
        earlier = before.process or before.previous_process
        return ProcessState(
            process=ran, previous_process=earlier, process_memory=kept or {}, invocation_count=1, entered_at=now
        )
    return replace(
        before,
        process_memory=before.process_memory if kept is None else kept,
        invocation_count=before.invocation_count + 1,
        entered_at=before.entered_at or now,
    )


def moved(before: ProcessState, ran: str, transition: Transition, now: datetime) -> ProcessState:
    """Return the fresh state after a transition; it records the last different process. Pure."""
    earlier = ran if transition.to != ran else before.previous_process if before.process == ran else before.process
    return ProcessState(
        process=transition.to, previous_process=earlier or None, params=dict(transition.params), entered_at=now
    )


def parse_result(intent: Intent, recollection: Recollection) -> dict[str, Any]:
    """Return the input of a declarative process's transition rule: values by step, and the changed state. Pure.

    The mood is this conversation's mood after the turn, present only if the turn changed it: through what was heard, or
    through the model's own mood word, which counts as the model saw it. Taking up work counts as a change if the soul
    is already focused, but not while it is upset from another conversation. Only what was said here frustrates it.
    """
    found: dict[str, Any] = {thought.step: thought.content for thought in intent.thoughts}
    for check in _CHECKS:
        if check in found:
            found[check] = read_bool([one.content for one in intent.thoughts if one.step == check])
    state = {change.key: change.value for change in intent.state}
    state.pop(MOOD, None)
    said = word_in(intent)
    hurts = intent.psyche is not None and intent.psyche.hurts
    if said and said != FOCUSED:
        state[MOOD] = said
    elif hurts:
        state[MOOD] = FRUSTRATED
    else:
        felt = intent.psyche.mood if intent.psyche else felt_before(recollection)
        now = mood_here(felt, task=task_after(recollection, intent.state), word=said or recent_word(recollection))
        takes_up_work = said or [one for one in intent.state if one.key == StateKey.CURRENT_TASK and one.value]
        has_moved = now != mood_before(recollection) and not (now == FRUSTRATED and intent.psyche)
        if now and (has_moved or (now == FOCUSED and takes_up_work)):
            state[MOOD] = now
    return {**found, "soul_state": state, "psyche": dict(intent.attention.get("words", {}))}


def judge(process: Process, intent: Intent, recollection: Recollection) -> Transition | None:
    """Ask a declarative process for its next process. Pure. Raises: ProcessError for neither name nor transition."""
    if process.should_transition is None:
        return None
    said: object = process.should_transition(parse_result(intent, recollection))
    if said is None or said == process.name:
        return None
    if isinstance(said, str):
        return Transition(to=said)
    if isinstance(said, Transition):
        return said
    raise ProcessError(f"process {process.name}", f"should_transition returned a {type(said).__name__}")


def allowed(process: Process, transition: Transition, soul: SoulText, *, autonomous: bool) -> Transition | None:
    """Return the transition as allowed; None and a log line if it is not. Pure except for that line."""
    to = resolved(transition.to, autonomous=autonomous)
    listed = process.next is None or transition.to in process.next or transition.to == process.name
    if listed and find(to, soul) is not None:
        return replace(transition, to=to)
    reason = "no such process" if listed else "not in its NEXT"
    log.warning("transition refused", extra={"mental_process": process.name, "to": transition.to, "reason": reason})
    return None
