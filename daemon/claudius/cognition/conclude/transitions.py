"""How a conversation moves from process to process: values in, its next state out.

Source: the process design, sections 3, 4 and 8.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from claudius.cognition.conclude.feeling import mood_moved
from claudius.cognition.processes import find, resolved
from claudius.cognition.processes.process import Process, Transition
from claudius.cognition.reply.readers import read_bool
from claudius.errors import ProcessError
from claudius.intent import Intent
from claudius.perception import Origin
from claudius.psyche.mood import MOOD
from claudius.recollection import ProcessState, Recollection
from claudius.soul import SoulText

log = logging.getLogger("claudius.processes")

_CHECKS = ("user_model_check", "soul_state_check")


def is_borrowed(recollection: Recollection) -> bool:
    """Tell whether the process of this turn was named by its perception, for this turn alone. Pure."""
    perception = recollection.perception
    return perception.origin is Origin.INTERNAL and bool(perception.extra.get("process"))


def rested(recollection: Recollection, ran: str) -> ProcessState:
    """Return the state after a turn that named no other process. Pure."""
    if is_borrowed(recollection):
        return recollection.process
    return stayed(recollection.process, ran, recollection.now)


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
    """Return the state after a transition: fresh, and knowing the last process that was another. Pure."""
    earlier = ran if transition.to != ran else before.previous_process if before.process == ran else before.process
    return ProcessState(
        process=transition.to,
        previous_process=earlier or None,
        params=dict(transition.params),
        entered_at=now,
    )


def parse_result(intent: Intent, recollection: Recollection) -> dict[str, Any]:
    """Return what a declarative process judges by: values by step, and what of the state this turn moved. Pure.

    The mood is that of this conversation as it stands after the turn, where the turn moved it or took up work.
    """
    found: dict[str, Any] = {thought.step: thought.content for thought in intent.thoughts}
    for check in _CHECKS:
        if check in found:
            found[check] = read_bool([one.content for one in intent.thoughts if one.step == check])
    state = {change.key: change.value for change in intent.state}
    state.pop(MOOD, None)
    if mood := mood_moved(recollection, intent):
        state[MOOD] = mood
    return {**found, "soul_state": state, "psyche": dict(intent.attention.get("words", {}))}


def judge(process: Process, intent: Intent, recollection: Recollection) -> Transition | None:
    """Ask a declarative process where it goes next. Pure. Raises: ProcessError for neither name nor transition."""
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
    """Return a transition as it may be made; None, with a log line, where it may not. Pure, but for that line."""
    to = resolved(transition.to, autonomous=autonomous)
    listed = process.next is None or transition.to in process.next or transition.to == process.name
    if listed and find(to, soul) is not None:
        return replace(transition, to=to)
    reason = "no such process" if listed else "not in its NEXT"
    log.warning("transition refused", extra={"mental_process": process.name, "to": transition.to, "reason": reason})
    return None


def told(ran: str, transition: Transition) -> dict[str, Any]:
    """Say a transition for `claudius why`. Pure."""
    return {"from": ran, "to": transition.to, "execute_now": transition.execute_now}
