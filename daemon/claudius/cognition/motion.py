"""A turn that one fused call does not decide: functions, chains of processes, steps asked apart, interruptions.

All of it ends in one intent, or in nothing. Source: the process design, sections 3 to 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from msgspec.structs import replace

from claudius.cognition.answering import Speaking, answers
from claudius.cognition.chain import Chain, Opening, ended, lines_of, thinking
from claudius.cognition.facade import Turn, Yielded
from claudius.cognition.hearing import Superseded
from claudius.cognition.processes import Process, find
from claudius.cognition.processes.process import Interruption, Transition
from claudius.cognition.soul_engine import Kept, conclude, plan
from claudius.cognition.soul_engine.asks import external_dialogue
from claudius.cognition.soul_engine.in_mind import Scene, fresh
from claudius.cognition.soul_engine.moving import allowed, is_borrowed, judge, moved, stayed, told
from claudius.cognition.split import drawn, groups, think_apart
from claudius.cognition.staged import Staged, Words
from claudius.cognition.working_memory import WorkingMemory
from claudius.errors import ProcessError
from claudius.intent import Intent
from claudius.recollection import EntryType, ProcessState


async def move(opening: Opening, process: Process) -> Intent:
    """Take a turn through every process that runs in it; return everything that it changes.

    Raises: Superseded where it gave way to a new perception, and nothing is kept; ProcessError, Unreadable,
    ProviderError.
    """
    await opening.hearing.begin()
    chain = _begun(opening, process)
    return await _unless_replaced(_run(chain), chain)


def _begun(opening: Opening, process: Process) -> Chain:
    recollection = opening.recollection
    planned = plan(process, recollection, opening.settings, opening.attention)
    state = recollection.process
    if is_borrowed(recollection):
        state = ProcessState(process=process.name, params=dict(recollection.perception.extra.get("params") or {}))
    elif state.process != process.name:
        state = ProcessState(process=process.name, previous_process=state.process or state.previous_process)
    staged = Staged(turn=recollection.turn, calls=list(opening.folding))
    return Chain(opening, recollection, staged, state, process, planned, planned, is_borrowed(recollection))


async def _unless_replaced(work: Coroutine[Any, Any, Intent], chain: Chain) -> Intent:
    """Run a turn; cancel it where something is heard that it gives way to, before a character of it is visible."""
    hearing = chain.opening.hearing
    doing, arrived = asyncio.ensure_future(work), asyncio.ensure_future(hearing.arrived.wait())
    beside = [arrived, asyncio.ensure_future(hearing.listen())]
    try:
        await asyncio.wait((doing, arrived), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done() and chain.process.interruption is Interruption.REPLACE and not chain.staged.streamed:
            raise Superseded
        return await doing
    finally:
        for task in (doing, *beside):
            task.cancel()
        await asyncio.gather(doing, *beside, return_exceptions=True)


async def _run(chain: Chain) -> Intent:
    opening = chain.opening
    hops, limit = 0, opening.mind.config().turn.max_hops
    while True:
        outcome = await _hop(chain)
        wanted = outcome if isinstance(outcome, Transition) else None
        autonomous = opening.settings.autonomous
        transition = allowed(chain.process, wanted, opening.soul, autonomous=autonomous) if wanted else None
        if transition is None:
            if not chain.is_guest:
                chain.state = stayed(chain.state, chain.process.name, chain.recollection.now, chain.staged.kept)
            break
        before = chain.state if not chain.is_guest else chain.recollection.process
        ran = chain.process.name if not chain.is_guest else before.process
        chain.state = moved(before, ran, transition, chain.recollection.now)
        chain.moves.append(told(chain.process.name, transition))
        chain.is_guest, chain.staged.kept = False, None
        if not transition.execute_now:
            break
        hops += 1
        if hops > limit:
            raise ProcessError(
                f"process {chain.process.name}", f"more than {limit} processes one after the other in one turn"
            )
        chain.process = find(transition.to, opening.soul) or chain.process
        chain.plan = plan(chain.process, chain.recollection, opening.settings, opening.attention)
    return ended(chain)


async def _hop(chain: Chain) -> object:
    """Run one process on the turn's perception; return its outcome."""
    if chain.process.run is None:
        return await _declared(chain)
    chain.hops.append(chain.process.name)
    turn, scene = _turn(chain)
    memory = scene.base + chain.entries
    try:
        outcome = await chain.process.run(turn, memory, **chain.state.params)
    except Yielded as yielded:
        outcome, chain.has_yielded = yielded.memory, True
    left = outcome.memory if isinstance(outcome, Transition) else outcome
    if left is None and isinstance(outcome, Transition):
        left = memory
    if not isinstance(left, WorkingMemory):
        kind = type(outcome).__name__
        raise ProcessError(f"process {chain.process.name}", f"returned a {kind}: return the memory, or a Transition")
    known = {entry.id for entry in chain.entries}
    chain.entries += [entry for entry in fresh(left, scene.base) if entry.id not in known]
    is_last = not (isinstance(outcome, Transition) and outcome.execute_now)
    if turn.must_stop and not chain.staged.lines and is_last:
        chain.has_yielded = True
    if is_last and chain.plan.owes and not chain.staged.lines and not chain.has_yielded:
        (line,) = await answers(turn._voice, scene, left, (external_dialogue(),))  # noqa: SLF001 - one room
        turn.say(line)
    return outcome


def _turn(chain: Chain) -> tuple[Turn, Scene]:
    opening, scene = chain.opening, chain.scene()
    streams = opening.show is not None and not chain.process.may_execute_now and not chain.staged.lines
    speaking = Speaking(mind=opening.mind, staged=chain.staged, paid=opening.paid, show=opening.show)
    return Turn(scene, speaking, chain.process, chain.state, opening.hearing, streams=streams), scene


async def _declared(chain: Chain) -> Transition | None:
    """Run a declarative process: its steps in one call or in several, then its judgement."""
    opening, planned, scene = chain.opening, chain.plan, chain.scene()
    memory = scene.base + chain.entries
    calls = groups(planned, opening.mind.voices, split=opening.mind.config().pipeline.mode == "split")
    if calls and not chain.hops:
        chain.drawn = drawn(planned, scene, memory, calls[0])
    chain.hops.append(chain.process.name)
    asking = thinking(chain)
    asking.guard(line.content for line in chain.entries if line.entry_type is EntryType.INTERNAL_MONOLOGUE)
    thoughts = await think_apart(asking, scene, memory, calls)
    chain.staged.calls[:], chain.staged.own = asking.calls, asking.own
    chain.staged.asked += [name for name in planned.asked if name not in chain.staged.asked]
    chain.staged.streamed += thoughts.streamed
    quiet = replace(thoughts, speech="", streamed="")
    attention = opening.attention
    kept = Kept(psyche=attention, attention=attention.told if attention else {})
    part = conclude(planned, chain.recollection, quiet, opening.soul, opening.settings, asking.zones, kept)
    transition = judge(chain.process, part, chain.recollection)
    chain.parts.append(part)
    chain.thoughts.append(thoughts)
    chain.entries += lines_of(part, chain)
    if not (transition and transition.execute_now) and thoughts.speech:
        chain.staged.lines.append(
            Words.of(thoughts.speech, thoughts.verb, thoughts.rung, truncated=thoughts.truncated, flags=thoughts.flags)
        )
    return transition
