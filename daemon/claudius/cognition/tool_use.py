"""Use tools within a turn: read which one a reply asks for, have it done, and ask on with what came of it.

`rounds` goes on from the first reply of a hop until one asks for no tool; each further call begins with the bytes of
the one before. A call that needs consent is staged on the turn, which then ends with the question. Only
`runtime/hands.py` does a tool, through `mind.hands`. Source: the tools design, sections 2, 3, 9 and 15.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from claudius.cognition.asking import ModelReply
from claudius.cognition.asks import SPEECH, THOUGHT
from claudius.cognition.conclude.conclusion import interpret
from claudius.cognition.consent import ConsentBasis, decide, is_third, person_behind, usable
from claudius.cognition.mind import Stage
from claudius.cognition.output.gate import has_secret, leaks
from claudius.cognition.plan import Plan
from claudius.cognition.prompt.present import WORDS
from claudius.cognition.prompt.rounds import LIMIT, following, next_plan, used_entries
from claudius.cognition.reply.parser import Dialogue, Section
from claudius.cognition.reply.tags import TOOL_USE
from claudius.cognition.turn_state import TurnState, kept_json
from claudius.config.load import blot
from claudius.errors import OverBudget, ToolFailed, ToolRefused, ToolTimedOut, ToolUnknown
from claudius.perception import internal
from claudius.prompt import Prompt
from claudius.recollection import Entry, EntryType, Recollection
from claudius.tool import (
    JSON,
    TIMED_OUT,
    Asks,
    CallState,
    Decision,
    Hands,
    Refuses,
    Tool,
    ToolCall,
    ToolClass,
    ToolStep,
)

BAD_ARGS, REPEATED, REFUSED = "bad_args", "repeated", "refused"
WRITTEN_CHARS = 2000
"""The most that is kept of a request that cannot be read."""
A_DAY = timedelta(days=1)
MOST_CHOICES = 24
"""So many values that an argument may have are named where it has another."""
WAITING = 3
"""The most questions that wait in one conversation."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,),
    "object": (dict,), "null": (type(None),),
}  # fmt: skip


def read_wish(text: str) -> tuple[str, JSON] | str:
    """Read one JSON object: `{"tool", "args"}`, or `{"name", "arguments"}` as models write it by themselves. Pure.

    Arguments may be written as a text of JSON, none as null. One that stands beside them is no argument.
    Returns the tool's name and the arguments, or what is wrong with the text.
    """
    try:
        found = msgspec.json.decode(text.strip().removeprefix("```json").strip("`\n "))
        tool = found.pop("tool", None) or found.pop("name", None)
        args = found.pop("args", None) or found.pop("arguments", None) or {}
        args = msgspec.json.decode(args) if isinstance(args, str) else args
    except (msgspec.MsgspecError, RecursionError, AttributeError, TypeError):
        found = tool = args = None
    if found == {} and isinstance(tool, str) and isinstance(args, dict):
        return tool, args
    return 'it is not one JSON object such as {"tool": "NAME", "args": {}}'


def wrong_in(args: JSON, tool: Tool) -> str:
    """Say what is wrong with arguments; empty = nothing. Nested values are the tool's own to check. Pure."""
    known, more = tool.schema.get("properties", {}), tool.schema.get("additionalProperties")
    for name in tool.schema.get("required", ()):
        if name in known and name not in args:
            return f"`{name}` is missing"
    for name, value in args.items():
        if name not in known and (not more or name == tool.key_arg):
            return f"it takes no such argument: it takes {', '.join(known) or 'none'}"
        if problem := _mistyped(value, known.get(name, more)):
            return f"`{name}` {problem}"
    return ""


def _mistyped(value: Any, schema: Any) -> str:
    schema = schema if isinstance(schema, dict) else {}
    named = schema.get("type", [])
    names = [str(one) for one in (named if isinstance(named, list) else [named])]
    kinds = {kind for name in names for kind in _TYPES.get(name, (object,))}
    kind = int if isinstance(value, float) and value.is_integer() else type(value)
    if kinds and object not in kinds and kind not in kinds:
        return f"is no {' or '.join(names)}"
    choices = schema.get("enum")
    if not isinstance(choices, list) or value in choices:
        return ""
    return f"is none of {', '.join(map(str, choices[:MOST_CHOICES]))}" + ", …" * (len(choices) > MOST_CHOICES)


def hands_of(turn: TurnState) -> Hands | None:
    """Return what does tools in this turn; None if none are offered in it."""
    is_small = turn.settings.profile == "plain" and not turn.config.tools.small
    return turn.mind.hands if turn.config.tools.enabled and not is_small else None


async def tools_here(turn: TurnState) -> tuple[str, ...]:
    """Return the tools that may be used in this turn, as its prompt names them, by name."""
    hands = hands_of(turn)
    if hands is None or WORDS not in turn.soul.files:
        return ()
    offered = sorted(hands.offered(), key=attrgetter("name"))
    known = await _basis(turn, hands, offered)
    said = [(one.name, usable(one, known)) for one in offered]
    return tuple([f"{name} ({note})" if note else name for name, note in said if note is not None])


async def _basis(turn: TurnState, hands: Hands, tools: Sequence[Tool], *, anew: bool = False) -> ConsentBasis:
    """Return what decisions on tools are made from; `anew`: ask the network now who can see the conversation."""
    known, plan = turn.recollection, turn.plan
    if not [one for one in tools if one.cls is not ToolClass.LOOK or one.where]:  # nothing depends on who is there
        return ConsentBasis(recollection=known, config=turn.config)
    return ConsentBasis(
        recollection=known,
        config=turn.config,
        onlookers=await hands.onlookers(known.audience, known.perception.person, anew=anew),
        grants=turn.mind.store.calls.grants(known.conversation, person_behind(known), known.now),
        used=turn.used,
        hidden=turn.rules.hidden if anew else "",  # no call is decided on before there is a plan
        remembered=plan.remembered,
        history_from=plan.history_from,
    )


def find(turn: TurnState, name: str) -> Tool | None:
    """Return a tool that is offered in this turn."""
    hands = hands_of(turn)
    return next((one for one in hands.offered() if one.name == name), None) if hands else None


Next = Callable[[Prompt, Plan], Awaitable[ModelReply]]
"""Asks the model for the steps of a plan."""


async def rounds(turn: TurnState, first: ModelReply, plan: Plan, ask: Next) -> ModelReply:
    """Use the tools that a reply asks for, one a round; return the last reply, with the thought of the first one.

    `plan`: what was asked; `ask` makes the call of each further round. Raises: ProviderError, OverBudget, StoreError.
    """
    reply = first
    thought = tuple([one for one in first.parsed.sections if one.name == THOUGHT])
    while TOOL_USE in plan.asked and (section := next((one for one in reply.parsed.sections if one.is_wish), None)):
        if section.late:
            return _with(reply, f"late:{TOOL_USE}")
        done = await _done(turn, section.text)
        if done is None:
            return _with(reply, f"dropped:{TOOL_USE}")
        turn.used.append(done)
        if has_ended(turn):
            return _ended(turn, reply, done, thought if reply is not first else ())
        if turn.mind.stage(turn.recollection.perception) is Stage.REFUSING:
            raise OverBudget
        own = [*(_thoughts(turn, first) if reply is first else ()), *used_entries(done, turn.recollection.now)]
        turn.guard([one.content for one in own if one.entry_type is EntryType.INTERNAL_MONOLOGUE])
        plan = next_plan(plan, own[-1])
        assert reply.prompt is not None  # noqa: S101 - one call gave it
        prompt = following(reply.prompt, own, plan, turn.soul, turn.recollection.nonce)
        flags = (f"held:{SPEECH}",) if reply.parsed.dialogues else ()
        reply = _with(await ask(prompt, plan), *flags, sections=thought)
    return reply


def has_ended(turn: TurnState) -> bool:
    """Return whether the use of a tool ended the turn's thoughts: with a question, or with a line that says it all."""
    return bool(turn.used) and turn.used[-1].state in (CallState.WAITING, CallState.STARTED, CallState.UNKNOWN)


def _with(reply: ModelReply, *flags: str, sections: tuple[Section, ...] = ()) -> ModelReply:
    """Return a reply with more flags, and with sections before its own, which then holds no other thought."""
    parsed = reply.parsed
    own = tuple([one for one in parsed.sections if not (sections and one.name == THOUGHT)])
    parsed = replace(parsed, sections=(*sections, *own), flags=tuple(dict.fromkeys((*parsed.flags, *flags))))
    return replace(reply, parsed=parsed)


def _thoughts(turn: TurnState, reply: ModelReply) -> list[Entry]:
    """Return the thought of a reply as its entry will be stored."""
    kind, now = EntryType.INTERNAL_MONOLOGUE, turn.recollection.now
    said = [one for one in interpret(reply.parsed, turn.plan, turn.soul)[0] if one.step == THOUGHT]
    open_ones = [one for one in said if one.content.strip() and not has_secret(one.content, turn.rules)]
    return [Entry(entry_type=kind, content=one.content.strip(), verb=one.verb, at=now) for one in open_ones]


def _ended(turn: TurnState, reply: ModelReply, done: ToolStep, thought: tuple[Section, ...]) -> ModelReply:
    """End the rounds with words that no model is asked for, or with those that stand beside a question."""
    parsed = reply.parsed
    if done.state == CallState.WAITING and parsed.winner:
        return _with(reply, sections=thought)
    line = Dialogue(text=ending_line(turn), state="complete")
    said = replace(parsed, dialogues=(line,), truncated=False)
    if done.state != CallState.WAITING:  # what it would have done stands on what the tool was to give
        said = replace(said, sections=tuple([one for one in parsed.sections if one.name == THOUGHT]))
    return _with(replace(reply, parsed=said, is_canned=True), sections=thought)


def ending_line(turn: TurnState) -> str:
    """Return the fixed line with which the use of a tool ended the turn."""
    done = turn.used[-1]
    kind = {CallState.WAITING: "asking", CallState.STARTED: "late"}.get(CallState(done.state), "unknown")
    return turn.soul.steps[TOOL_USE].line(kind, tool=done.tool, call=done.id)


async def used(turn: TurnState, name: str, args: JSON) -> ToolStep:
    """Have a tool done for a process function. Raises: ToolUnknown, ToolRefused."""
    tool = find(turn, name)
    if tool is None:
        raise ToolUnknown(name, f"there is no such tool here: {', '.join(turn.settings.tools) or 'none'}")
    if wrong := wrong_in(args, tool):
        raise ToolRefused(name, wrong)
    done = await carry_out(turn, tool, kept_json(args))
    turn.used.append(done)
    return done


def given(done: ToolStep) -> str:
    """Return what a tool gave. Raises: ToolRefused, ToolTimedOut, ToolFailed."""
    if done.state in (REFUSED, LIMIT):
        raise ToolRefused(done.tool, done.text)
    if done.state == CallState.FAILED:
        raise (ToolTimedOut if done.text == TIMED_OUT else ToolFailed)(done.tool, done.text)
    return done.text


async def _done(turn: TurnState, text: str) -> ToolStep | None:
    """Have done what a section asks for; None if it cannot be read, and was told so before."""
    text = blot(text, turn.mind.secrets)
    wish = read_wish(text)
    name, args = ("", {}) if isinstance(wish, str) else wish
    tool = find(turn, name)
    wrong = wrong_in(args, tool) if tool else f"there is no such tool: {', '.join(turn.plan.tools)}"
    if tool and not wrong:
        return await carry_out(turn, tool, args)
    if any(step.state == BAD_ARGS for step in turn.used):
        return None
    wrong = wish if isinstance(wish, str) else wrong
    return ToolStep(id="", tool=name[:WRITTEN_CHARS], state=BAD_ARGS, text=wrong, written=text[:WRITTEN_CHARS])


async def carry_out(turn: TurnState, tool: Tool, args: JSON) -> ToolStep:
    """Have one call of a tool done as far as it may be now; stage the question where somebody must allow it."""
    settings, known, hands = turn.config.tools, turn.recollection, hands_of(turn)
    assert hands is not None  # noqa: S101 - the tool came from there
    step = ToolStep(id="", tool=tool.name, args=args)
    count = _before(known) + len([one for one in turn.used if one.state != BAD_ARGS])
    if count >= settings.per_turn:
        return replace(step, state=LIMIT, text=f"{settings.per_turn} in one turn are the most")
    for one in turn.used:
        if one.id and (one.tool, one.args) == (tool.name, args):
            return replace(one, state=REPEATED)
    call, is_begun = _numbered(turn, _made(turn, tool, args))
    if not is_begun:
        decision = await _decided(turn, hands, tool, call)
        if isinstance(decision, ToolStep):
            return decision
        if isinstance(decision, Refuses):
            return replace(step, state=REFUSED, text=decision.why)
        if isinstance(decision, Asks):
            until = known.now + timedelta(hours=settings.consent_hours)
            turn.asking = replace(call, approvers=decision.approvers, reason=decision.why, until=until)
            return replace(step, id=call.id, state=CallState.WAITING)
        call = replace(call, state=CallState.APPROVED, allowed_by=decision.reason, grant=decision.grant)
    done = await hands.do(call, tool)
    return replace(step, id=call.id, state=done.state, text=done.result or done.reason, third=call.third)


def _before(known: Recollection) -> int:
    """Return how many calls led to this turn: those of the turn that made the call whose end it hears."""
    call = internal(known.perception).call
    return int(call.rpartition("/")[2]) + 1 if call else 0


def _made(turn: TurnState, tool: Tool, args: JSON) -> ToolCall:
    known = turn.recollection
    return ToolCall(
        id="", turn=turn.turn, conversation=known.conversation, audience=known.audience,
        person=person_behind(known) or known.perception.person, is_owner=known.perception.is_owner,
        tool=tool.name, cls=tool.cls, args=args, pin=tool.pin, asked_at=known.now, third=is_third(tool),
    )  # fmt: skip


async def _decided(turn: TurnState, hands: Hands, tool: Tool, call: ToolCall) -> Decision | ToolStep:
    """Decide on a new call, within the limits of its person and its conversation."""
    settings, kept, now = turn.config.tools, turn.mind.store.calls, turn.recollection.now
    if tool.cls is ToolClass.LOOK:
        return decide(tool, call.args, await _basis(turn, hands, (tool,)))
    told = ToolStep(id="", tool=tool.name, args=call.args, state=LIMIT)
    if kept.spent(call.person, now - A_DAY) >= settings.per_person_day:
        return replace(told, text=f"{settings.per_person_day} for one person in 24 hours are the most")
    if leaks(json.dumps(call.args, ensure_ascii=False), turn.rules):  # a card is said aloud
        return Refuses("its arguments hold private text")
    decision = decide(tool, call.args, await _basis(turn, hands, (tool,), anew=True))
    if not isinstance(decision, Asks):
        return decision
    waiting = [one for one in kept.open(call.conversation) if one.state is CallState.WAITING]
    same = [one.id for one in waiting if (one.tool, one.args) == (tool.name, call.args)]
    if same:
        return Refuses(f"{same[0]} asks for the same and waits already")
    return replace(told, text=f"{WAITING} questions wait here already") if len(waiting) >= WAITING else decision


def _numbered(turn: TurnState, call: ToolCall) -> tuple[ToolCall, bool]:
    """Return a call with its id, as an earlier run of the turn left it, and whether there was one."""
    n = _before(turn.recollection) + len({one.id for one in turn.used if one.id})
    while found := turn.mind.store.calls.find(f"{turn.turn}/{n}"):
        if (found.tool, found.args) == (call.tool, call.args):
            return found, True
        n += 1  # the reply that asked for it was lost before it was kept
    return replace(call, id=f"{turn.turn}/{n}"), False
