"""Run the hops of a turn: one process after another on the same perception, each with any number of model calls.

`cognition.turn` calls `begin` and `run`. A fused turn, the default, is one hop with one call. All hops together produce
one intent; if `run` raises, nothing is kept. Source: the process design, sections 3 to 6; the pipeline design, sections
3 and 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from claudius.cognition.acts import ACTS
from claudius.cognition.asking import ModelReply, acts_of, answers, ask_model, thoughts
from claudius.cognition.asks import QUERY, SPEECH, THOUGHT, external_dialogue
from claudius.cognition.conclude.conclusion import conclude, heard
from claudius.cognition.conclude.transitions import allowed, joined, judge, moved, stayed
from claudius.cognition.function_process import Turn, TurnEnded, Yielded
from claudius.cognition.history import section
from claudius.cognition.judging import judged
from claudius.cognition.mind import StepVoice
from claudius.cognition.output.gate import has_secret
from claudius.cognition.output.rules import SAID
from claudius.cognition.plan import Plan, plan
from claudius.cognition.processes import Interruption, Process, Transition, find
from claudius.cognition.prompt.assembly import build_prompt, form_of, shows_intuition, this_turn
from claudius.cognition.prompt.function_prompts import Drawn, Wanted, draw, fresh, given_by, prompt_of
from claudius.cognition.prompt.rounds import used_entries
from claudius.cognition.reply.parser import Parsed, read_bool
from claudius.cognition.reply.tags import TOOL_USE
from claudius.cognition.steps import answered
from claudius.cognition.tool_use import has_ended, rounds
from claudius.cognition.turn_state import Superseded, TurnState, Words, is_more, recorded
from claudius.cognition.working_memory import DEFAULT, MemoryEntry, WorkingMemory
from claudius.errors import ProcessError
from claudius.intent import USED, Intent, Thought, Thoughts
from claudius.perception import internal
from claudius.prompt import Prompt
from claudius.provider import Message
from claudius.recollection import EntryType, ProcessState, StateKey
from claudius.soul import SoulText
from claudius.tool import CallState, ToolStep

MAX_HOPS = 10
"""The most processes that may run one after the other in one turn."""

Group = tuple[str, ...]
"""The steps requested in one call."""
Answer = tuple[Group, ModelReply]
"""The steps of one call of a declarative hop, and its reply."""


def begin(turn: TurnState, process: Process) -> None:
    """Set the turn to its first process."""
    known = turn.recollection
    turn.process, turn.is_guest = process, bool(internal(known.perception).process)
    turn.plan = plan(process, known, turn.settings, turn.attention)
    state = known.process
    if turn.is_guest:
        state = ProcessState(process=process.name, params=dict(internal(known.perception).params))
    elif state.process != process.name:
        state = ProcessState(process=process.name, previous_process=state.process or state.previous_process)
    turn.process_state = state


async def run(turn: TurnState) -> Intent:
    """Run the processes of a turn, starting with its current one, and return everything the turn changes.

    Raises: Superseded if the turn yielded to a new perception and nothing is kept; ProcessError, Unreadable,
    ProviderError.
    """
    gives_way = turn.surface.is_open or turn.process.interruption is Interruption.REPLACE
    if turn.process.is_simple and not gives_way:
        return await _hops(turn)
    hearing = turn.surface.hearing
    await hearing.begin()
    doing = asyncio.ensure_future(_hops(turn))
    arrived, listening = asyncio.ensure_future(hearing.arrived.wait()), asyncio.ensure_future(hearing.listen())
    try:
        await asyncio.wait((doing, arrived), return_when=asyncio.FIRST_COMPLETED)
        # a new perception replaces the turn, but only before any text was shown
        if not doing.done() and gives_way and not turn.streamed and _is_replaced(turn):
            raise Superseded
        return await doing
    finally:
        for task in (doing, arrived, listening):
            task.cancel()
        await asyncio.gather(doing, arrived, listening, return_exceptions=True)


def _is_replaced(turn: TurnState) -> bool:
    """Return whether what arrived replaces the turn: whatever it is, or more of what the person says. Pure."""
    person = turn.recollection.perception.person
    return turn.process.interruption is Interruption.REPLACE or any(
        is_more(one, person) for one in turn.surface.hearing.pending
    )


async def _hops(turn: TurnState) -> Intent:
    limit, known = MAX_HOPS, turn.recollection
    while True:
        transition = await (_declared(turn) if turn.process.run is None else _function(turn))
        if transition is None:
            if not turn.is_guest:
                turn.process_state = stayed(turn.process_state, turn.process.name, known.now, turn.kept)
            return _ended(turn)
        before = known.process if turn.is_guest else turn.process_state
        ran = before.process if turn.is_guest else turn.process.name
        turn.process_state = moved(before, ran, transition, known.now)
        turn.moves.append({"from": turn.process.name, "to": transition.to, "execute_now": transition.execute_now})
        turn.is_guest, turn.kept = False, None
        if not transition.execute_now:
            return _ended(turn)
        if len(turn.moves) > limit:
            raise ProcessError(
                f"process {turn.process.name}", f"more than {limit} processes one after the other in one turn"
            )
        turn.process = find(transition.to, turn.soul) or turn.process
        turn.plan = plan(turn.process, known, turn.settings, turn.attention)


def _granted(turn: TurnState, wanted: Transition | None) -> Transition | None:
    """Return the transition if it is allowed; None if it is not, or if it resolves to the current process."""
    autonomous = turn.settings.autonomous
    transition = wanted and allowed(turn.process, wanted, turn.soul, autonomous=autonomous)
    if not wanted or not transition or wanted.to != transition.to == turn.process.name:
        return None
    return transition


async def _function(turn: TurnState) -> Transition | None:
    """Run a process function on the turn's perception and return its transition."""
    process, state = turn.process, turn.process_state
    assert process.run is not None  # noqa: S101 - the caller checks this
    turn.hops.append(process.name)
    facade = Turn(turn)
    source = facade.source
    memory = source.base + turn.entries
    try:
        outcome = await process.run(facade, memory, **state.params)
    except TurnEnded as ended:
        outcome, turn.has_yielded = ended.memory, isinstance(ended, Yielded)
    wanted = outcome if isinstance(outcome, Transition) else None
    left = (wanted.memory or memory) if wanted else outcome
    if not isinstance(left, WorkingMemory):
        kind = type(outcome).__name__
        raise ProcessError(f"process {process.name}", f"returned a {kind}: return the memory, or a Transition")
    known = {entry.id for entry in turn.entries}
    turn.entries += [entry for entry in fresh(left, source.base) if entry.id not in known]
    transition = _granted(turn, wanted)
    is_last = not (transition and transition.execute_now)
    if is_last and facade.must_stop and not turn.lines:
        turn.has_yielded = True
    if is_last and turn.plan.owes and not turn.lines and not turn.has_yielded:
        (line,) = await answers(turn, source, left, (external_dialogue(),))
        facade.say(line)
    return transition


async def _declared(turn: TurnState) -> Transition | None:
    """Run a declarative process: its steps in one or several calls, then its transition rule."""
    known, count = turn.recollection, len(turn.used)
    found = await thoughts(turn, await _asked(turn))
    if turn.plan.judged and not has_ended(turn):
        found = await judged(turn, found)
    found = replace(found, used=tuple([one for step in turn.used[count:] for one in used_entries(step, known.now)]))
    turn.hops.append(turn.process.name)
    rules = turn.rules
    part = conclude(turn.plan, known, found, turn.soul, turn.said_settings, rules, turn.attention)
    transition = _granted(turn, judge(turn.process, part, turn.recollection))
    if transition and transition.execute_now:
        found = replace(found, speech="", streamed="")
        part = conclude(turn.plan, known, found, turn.soul, turn.said_settings, rules, turn.attention)
    elif found.speech:
        turn.lines.append(Words.of(found.speech, found.verb, found.rung, truncated=found.truncated, flags=found.flags))
    turn.parts.append(part)
    if not turn.process.is_simple:  # for the hops after it, its entries are lines of working memory
        own = part.entries[len(heard(turn.recollection)) :]
        turn.entries += [MemoryEntry.of(entry, f"{part.turn}+{len(turn.hops)}.{n}") for n, entry in enumerate(own)]
    return transition


async def _asked(turn: TurnState) -> ModelReply:
    """Ask the steps of a plan in one call, or group by group, passing each group the earlier answers."""
    planned, mind = turn.plan, turn.mind
    is_split = turn.config.pipeline.mode == "split"
    turn.asked += [name for name in planned.asked if name not in turn.asked]
    if turn.process.is_simple and not is_split and not mind.voices:
        prompt = build_prompt(planned, turn.recollection, turn.soul, turn.settings)
        ask = partial(_ask, turn, session=turn.recollection.conversation)
        return await rounds(turn, await ask(prompt, planned, "turn"), planned, ask)
    source = turn.source()
    memory = source.base + turn.entries
    turn.guard(line.content for line in turn.entries if line.entry_type is EntryType.INTERNAL_MONOLOGUE)
    found: list[Answer] = []
    earlier: list[str] = []
    used: tuple[Message, ...] = ()
    for group in groups(planned, mind.voices, split=is_split):
        if not _is_open(planned, group, found):
            continue
        for _, before in found:
            turn.guard(before.parsed.private)
        count, narrowed = len(turn.used), _narrowed(planned, group)
        wanted = Wanted(
            tags=group, lines=(), head=this_turn(narrowed, turn.soul), earlier="\n".join(earlier), used=used
        )
        is_one = len(group) == 1
        voice = mind.voices.get(group[0]) if is_one else None
        ask = partial(_ask, turn, voice=voice, may_show=SPEECH in group and _may_show(turn, group, found))
        prompt, drawn = prompt_of(source, memory, wanted), draw(source, memory, wanted) if turn.first is None else None
        reply = await ask(prompt, narrowed, group[0] if is_one else "turn", drawn=drawn)
        reply = await rounds(turn, reply, narrowed, ask)
        if has_ended(turn):
            found.append(((*group, SPEECH), reply))
            break
        found.append((group, reply))
        if steps := turn.used[count:]:
            used = (*used, *_used(turn, steps, earlier))
            earlier = []
        earlier += _given(reply.parsed, group)
    return _joined(planned, found)


def _used(turn: TurnState, steps: Sequence[ToolStep], earlier: Sequence[str]) -> Iterator[Message]:
    """Yield what was asked of tools after the earlier sections of a turn, and what they gave."""
    said = [*earlier]
    for step in steps:
        use, result = used_entries(step, turn.recollection.now)
        yield Message("assistant", "\n".join([*said, section(TOOL_USE, use.content)]))
        yield given_by(result.content, result.metadata, turn.recollection.nonce)
        said = []


async def _ask(
    turn: TurnState,
    prompt: Prompt,
    asked: Plan,
    purpose: str = USED,
    *,
    drawn: Drawn | None = None,
    voice: StepVoice | None = None,
    may_show: bool = True,
    session: str = "",
) -> ModelReply:
    """Ask the steps of a plan in one call."""
    return await ask_model(
        turn,
        prompt,
        purpose,
        steps=asked.asked,
        streams=asked.speaks and may_show,
        form=form_of(asked, turn.soul, turn.settings),
        drawn=drawn,
        voice=voice,
        conversation=session,
        keep_session=not session or not shows_intuition(turn.plan, turn.recollection),
    )


def groups(plan: Plan, voices: Mapping[str, StepVoice], *, split: bool) -> tuple[Group, ...]:
    """Group the asked steps into calls: one call each, or one for all steps without their own voice. Pure.

    The use of a tool is asked for with the words that it stands in place of.
    """
    if split:
        return tuple((name,) for name in plan.asked)
    found: dict[str, list[str]] = {}
    for name in plan.asked:
        check = plan.conditional.get(name, "")
        found.setdefault(
            name if name in voices and name != TOOL_USE else f"if {check}" if check in voices else "", []
        ).append(name)
    return tuple(tuple(group) for group in found.values())


def _narrowed(plan: Plan, group: Group) -> Plan:
    conditional = {name: check for name, check in plan.conditional.items() if name in group and check in group}
    return replace(plan, asked=group, conditional=conditional, tools=plan.tools if TOOL_USE in group else ())


def _may_show(turn: TurnState, group: Group, found: Sequence[Answer]) -> bool:
    """Return whether words may be shown as they come: what is decided with them came before, and can be done."""
    if ACTS not in turn.plan.asked or ACTS in group:
        return True
    done = [acts_of(turn, reply.parsed) for asked, reply in found if ACTS in asked]
    return any(acts is not None and not acts.refused for acts in done)


def _is_open(plan: Plan, group: Group, found: Sequence[Answer]) -> bool:
    """Return whether a conditional step may run: its check, asked in another call, was clearly yes."""
    check = plan.conditional.get(group[0])
    if check is None or check in group:
        return True
    return any(read_bool(reply.parsed.values(check)) for asked, reply in found if check in asked)


def _given(parsed: Parsed, group: Group) -> Iterator[str]:
    for name in group:
        if name == SPEECH:
            if parsed.winner:
                yield section(name, parsed.winner.text, parsed.winner.verb)
            elif parsed.raw.strip() and not parsed.sections and not parsed.dialogues:
                yield section(name, parsed.raw.strip())
        else:
            yield from (section(name, one.text, one.verb) for one in parsed.sections if one.name == name)


def _joined(plan: Plan, found: Sequence[Answer]) -> ModelReply:
    """Merge the replies of several calls into one.

    Keeps from each reply the sections it was asked for, and from the first also those that no call asked for.
    """
    spoken = [reply for group, reply in found if SPEECH in group]
    sections = tuple(
        one
        for place, (group, reply) in enumerate(found)
        for one in reply.parsed.sections
        if one.name in group or (place == 0 and one.name not in plan.asked)
    )
    parsed = Parsed(
        raw=spoken[0].parsed.raw if spoken else "",
        sections=sections,
        dialogues=tuple(one for reply in spoken for one in reply.parsed.dialogues),
        flags=tuple(dict.fromkeys(flag for _, reply in found for flag in reply.parsed.flags)),
        truncated=any(reply.parsed.truncated for reply in spoken),
    )
    streamed = "".join(reply.streamed for reply in spoken)
    return ModelReply(parsed, "", any(reply.is_refused for reply in spoken), streamed)


def _ended(turn: TurnState) -> Intent:
    """Build one intent from all hops. Raises: Superseded if the turn yielded and has no entries."""
    if turn.has_yielded:
        if not turn.entries:
            raise Superseded
        turn.lines.clear()
    intent = turn.parts[0] if len(turn.hops) == len(turn.parts) == 1 else _gathered(turn)
    changes = intent.changes
    if turn.moves:
        every = {"hops": turn.moves} if len(turn.moves) > 1 else {}
        changes = {**changes, "process": turn.moves[-1] | every}
    used = [{"id": one.id, "tool": one.tool, "state": str(one.state)} for one in turn.used]
    changes = {**changes, **turn.noted, **({"tools": used} if used else {})}
    declares: dict[str, str] = {}
    if turn.moves:  # the new home may declare another participation than the old one
        now = participation(turn.process_state.process, turn.soul)
        if now != participation(turn.recollection.process.process, turn.soul):
            declares["participation"] = now
    intent = replace(
        intent,
        process=turn.process.name,
        next_process=turn.recollection.process if turn.is_guest else turn.process_state,
        steps=tuple(turn.asked),
        planned=turn.planned(**declares),
        changes=changes,
    )
    if tainted := turn.tainted:
        intent = unlearned(intent, tainted)
    intent = replace(
        recorded(turn, intent),
        asking=None if turn.has_yielded else turn.asking,
        late=tuple([one.id for one in turn.used if one.state == CallState.STARTED]),
    )
    if not turn.has_yielded:
        return acting(turn, intent)
    own = intent.entries[len(heard(turn.recollection)) :]
    return replace(intent, answers=(), held=intent.answers, entries=own, utterances=(), rung="silent", psyche=None)


def unlearned(intent: Intent, tainted: str) -> Intent:
    """Leave out what a tainted turn would learn: a portrait, words about the soul's own state, an assessment. Pure."""
    state = tuple([one for one in intent.state if one.key == StateKey.EMOTIONAL_STATE])
    proposal = intent.noted.proposal if intent.noted else None
    learned = {"user_model": intent.model, "assessment": proposal, "soul_state": state != intent.state}
    left = {name: {"result": "refused:tainted"} for name, is_any in learned.items() if is_any}
    return replace(
        intent,
        tainted=tainted,
        model=None,
        state=state,
        noted=replace(intent.noted, proposal=None) if intent.noted else None,
        changes={**intent.changes, **left, "tainted": tainted},
    )


def acting(turn: TurnState, intent: Intent) -> Intent:
    """Add what the turn does beyond its words; nothing of it where a secret stood in it. Pure."""
    to = turn.recollection.addressee
    if f"secret:{ACTS}" in intent.flags or not turn.acted:
        return intent
    changes = {**intent.changes, "acts": turn.acted}
    return replace(intent, acts=tuple(turn.acts), changes=changes, locale=to.locale if to else "")


def _gathered(turn: TurnState) -> Intent:
    lines = turn.lines
    found = Thoughts(
        thoughts=(),
        speech="\n\n".join(lines),
        verb=lines[-1].verb if lines else SAID,
        rung=lines[-1].rung if lines else "silent",
        flags=tuple(dict.fromkeys(flag for line in lines for flag in line.flags)),
        streamed=turn.streamed,
        truncated=any(line.truncated for line in lines),
    )
    said = conclude(turn.plan, turn.recollection, found, turn.soul, turn.said_settings, turn.rules, turn.attention)
    kept = [one for one in turn.entries if one.entry_type not in (None, EntryType.EXTERNAL_DIALOG)]
    kept = [line for line in kept if line.region == DEFAULT]
    secret = [line for line in kept if has_secret(line.content, turn.rules)]
    own = [line for line in kept if line not in secret]
    thought = [line for line in own if line.entry_type is not EntryType.TOOL_RESULT]
    spoken = tuple(one for one in said.entries if one.entry_type is EntryType.EXTERNAL_DIALOG)
    changes: dict[str, Any] = {}
    for part in turn.parts:
        changes |= part.changes
    flags = (
        *said.flags,
        *(flag for part in turn.parts for flag in part.flags),
        *(f"secret:{_step(one)}" for one in secret),
    )
    return replace(
        said,
        entries=(*heard(turn.recollection), *[line.stored(turn.recollection.now) for line in own], *spoken),
        thoughts=(*(Thought(step=_step(one), content=one.content, verb=one.verb) for one in thought), *said.thoughts),
        state=tuple(dict.fromkeys((*said.state, *(one for part in turn.parts for one in part.state)))),
        psyche=joined(said.psyche, [part.psyche for part in turn.parts]),
        appraisals=tuple(one for part in turn.parts for one in part.appraisals),
        model=next((part.model for part in reversed(turn.parts) if part.model), None),
        changes=changes,
        flags=tuple(dict.fromkeys(flags)),
    )


def _step(line: MemoryEntry) -> str:
    if line.entry_type is EntryType.TOOL_USE:
        return TOOL_USE
    if line.entry_type is EntryType.INTERNAL_MONOLOGUE:
        return answered(line.entry_type, line.metadata) or THOUGHT
    return str(line.metadata.get("step") or line.metadata.get("query") or QUERY)


def participation(process: str, soul: SoulText) -> str:
    """Return the participation that a process declares for its conversation; empty if none. Pure."""
    found = find(process, soul) if process else None
    return found.participation.value if found and found.participation else ""
