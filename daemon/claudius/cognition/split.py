"""One call a step: the same thoughts through the same door, each step with a voice of its own where it has one.

Source: the pipeline design, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from claudius.cognition.answering import request_of
from claudius.cognition.mind import Mind, Voice
from claudius.cognition.pipeline import Reading, Reply, Thinking, call, concluded
from claudius.cognition.soul_engine import Parsed, Parser, Plan, StreamGate, prompt_sha256
from claudius.cognition.soul_engine.asks import SPEECH
from claudius.cognition.soul_engine.assembly import this_turn
from claudius.cognition.soul_engine.in_mind import Asked, Drawn, Scene, draw, prompt_of
from claudius.cognition.soul_engine.readers import read_bool
from claudius.cognition.soul_engine.render import section
from claudius.cognition.working_memory import WorkingMemory
from claudius.intent import Call, Thoughts

Group = tuple[str, ...]


def groups(plan: Plan, voices: Mapping[str, Voice], *, split: bool) -> tuple[Group, ...]:
    """Part the asked steps into calls: one each, or one for all that have no voice of their own. Pure."""
    if split:
        return tuple((name,) for name in plan.asked)
    found: dict[str, list[str]] = {}
    for name in plan.asked:
        check = plan.conditional.get(name, "")
        found.setdefault(name if name in voices else f"if {check}" if check in voices else "", []).append(name)
    return tuple(tuple(group) for group in found.values())


def first_asked(plan: Plan, scene: Scene, group: Group) -> Asked:
    """Return what the first call of a plan asks. Pure."""
    return Asked(tags=group, lines=(), head=this_turn(_narrowed(plan, group), scene.soul))


def drawn(plan: Plan, scene: Scene, memory: WorkingMemory, group: Group) -> Drawn:
    """Return the first call as a snapshot keeps it. Pure."""
    return draw(scene, memory, first_asked(plan, scene, group))


async def think_apart(thinking: Thinking, scene: Scene, memory: WorkingMemory, calls: tuple[Group, ...]) -> Thoughts:
    """Ask group by group, each with what the former gave; join the replies, climb the ladder. Raises: ProviderError."""
    replies: list[tuple[Group, Reply]] = []
    earlier: list[str] = []
    for group in calls:
        if not _is_open(thinking.plan, group, replies):
            continue
        wanted = replace(first_asked(thinking.plan, scene, group), earlier="\n".join(earlier))
        reply = await _ask(thinking, scene, memory, wanted, group)
        replies.append((group, reply))
        earlier += _given(reply.parsed, group)
        thinking.guard(one.text for one in reply.parsed.sections if one.name in group)
    return await concluded(thinking, _joined(thinking.plan, replies))


def _narrowed(plan: Plan, group: Group) -> Plan:
    conditional = {name: check for name, check in plan.conditional.items() if name in group and check in group}
    return replace(plan, asked=group, conditional=conditional)


def _is_open(plan: Plan, group: Group, replies: list[tuple[Group, Reply]]) -> bool:
    """Tell whether a conditional step's check, asked apart from it, said a clear yes."""
    check = plan.conditional.get(group[0])
    if check is None or check in group:
        return True
    return any(read_bool(reply.parsed.values(check)) for asked, reply in replies if check in asked)


async def _ask(thinking: Thinking, scene: Scene, memory: WorkingMemory, wanted: Asked, group: Group) -> Reply:
    prompt = prompt_of(scene, memory, wanted)
    voice = thinking.mind.voices.get(group[0]) if len(group) == 1 else None
    request = request_of(prompt, scene, group[0] if len(group) == 1 else "turn")
    mind: Mind = thinking.mind
    if voice:
        mind, request = replace(mind, provider=voice.provider), replace(request, model=voice.model)
    show = thinking.show if SPEECH in group else None
    reading = Reading(Parser(), StreamGate(thinking.zones) if show else None, show)
    made = await call(
        mind,
        thinking.recollection.turn,
        request,
        prompt_sha256(prompt),
        n=_number(thinking),
        paid=thinking.paid,
        reading=reading,
    )
    thinking.calls = (*thinking.calls, made)
    await thinking.mind.store.flush()
    parsed = reading.parser.finish(truncated=made.stop_reason == "max_tokens")
    return Reply(parsed, made.stop_reason == "refusal", reading.shown)


def _number(thinking: Thinking) -> int:
    known: tuple[Call, ...] = (*thinking.calls, *thinking.paid.values())
    return max((made.n for made in known if made.n < 100), default=-1) + 1


def _given(parsed: Parsed, group: Group) -> Iterator[str]:
    for name in group:
        if name == SPEECH:
            if parsed.winner:
                yield section(name, parsed.winner.text, parsed.winner.verb)
            elif parsed.raw.strip() and not parsed.sections and not parsed.dialogues:
                yield section(name, parsed.raw.strip())
        else:
            yield from (section(name, one.text, one.verb) for one in parsed.sections if one.name == name)


def _joined(plan: Plan, replies: list[tuple[Group, Reply]]) -> Reply:
    """Join replies as if one had given all: of each what it was asked for, of the first what nobody asked for, too."""
    spoken = [reply for group, reply in replies if SPEECH in group]
    sections = tuple(
        one
        for place, (group, reply) in enumerate(replies)
        for one in reply.parsed.sections
        if one.name in group or (place == 0 and one.name not in plan.asked)
    )
    raw = spoken[0].parsed.raw if spoken else ""
    parsed = Parsed(
        raw=raw,
        sections=sections,
        dialogues=tuple(one for reply in spoken for one in reply.parsed.dialogues),
        flags=tuple(dict.fromkeys(flag for _, reply in replies for flag in reply.parsed.flags)),
        truncated=any(reply.parsed.truncated for reply in spoken),
    )
    return Reply(parsed, any(reply.refused for reply in spoken), "".join(reply.streamed for reply in spoken))
