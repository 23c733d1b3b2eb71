"""Ask a small model, while the conversation is idle, the steps that its turn left for later: the judgements.

Each step is asked in a call of its own, by its own instruction, and has the effect that it has in any turn.
"""

from __future__ import annotations

from msgspec.structs import replace

from claudius.cognition.call import ask_model
from claudius.cognition.commit import commit_whole
from claudius.cognition.conclude.conclusion import conclude, heard, interpret
from claudius.cognition.mind import Mind
from claudius.cognition.prompt.assembly import build_prompt
from claudius.cognition.prompt.parts import form_of
from claudius.cognition.reflection import Idle, Subprocess
from claudius.cognition.reply.parser import read_bool
from claudius.cognition.steps import step
from claudius.cognition.turn_state import TurnState, recorded, silent_turn
from claudius.errors import ProviderError
from claudius.intent import Thought, Thoughts, turn_of
from claudius.memory.sql.recall import RecallLimits
from claudius.recollection import Person, Shown


async def judge_later(idle: Idle, mind: Mind) -> None:
    """Ask the steps that the last turn left, and commit what they change. Raises: StaleTurn, StoreError."""
    later = idle.intent.later
    pending = replace(idle.pending, turn=turn_of(f"{idle.intent.turn}/judge"))
    limits = RecallLimits(ttl_hours=mind.config().memory.ttl_hours, aged_at=mind.aged_at())
    known = await mind.store.turns.recall(pending, nonce=mind.nonce(), now=mind.clock(), limits=limits)
    turn = await silent_turn("judge", known, mind)
    plan = replace(
        turn.plan,
        process=idle.intent.process,
        asked=later,
        conditional={name: check for name in later if (check := step(name).after)},
        shown=_portrait(known.speaker),
        seen=known.speaker is not None and not known.speaker.is_bot,
    )
    turn.plan = plan
    found: list[Thought] = []
    for name in later:
        check = plan.conditional.get(name)
        if check in later and not read_bool(one.content for one in found if one.step == check):
            continue
        try:
            found += await _judged(turn, name)
        except ProviderError:
            break  # what was judged so far counts; the next turn judges again
    turn.plan = plan
    if not found:
        return
    thoughts = Thoughts(thoughts=tuple(found), speech="", verb="", rung="silent", flags=(), streamed="")
    intent = conclude(plan, known, thoughts, turn.soul, turn.settings, turn.rules, None)
    intent = replace(
        recorded(turn, intent),
        answers=(),
        entries=intent.entries[len(heard(known)) :],
        shown=(),
        utterances=(),
        next_process=known.process,
        attention={"outcome": "reflect", "reason": "idle"},
        steps=later,
    )
    await commit_whole(intent, known, mind)


async def _judged(turn: TurnState, name: str) -> tuple[Thought, ...]:
    """Ask one step in a call of its own. Raises: ProviderError, StoreError."""
    plan = turn.plan
    turn.plan = replace(plan, asked=(name,), conditional={})
    try:
        prompt = build_prompt(turn.plan, turn.recollection, turn.soul, turn.settings)
        form = form_of(turn.plan, turn.soul, turn.settings)
        reply = await ask_model(turn, prompt, name, steps=(name,), form=form)
        return interpret(reply.parsed, turn.plan, turn.soul)[0]
    finally:
        turn.plan = plan


def _portrait(speaker: Person | None) -> tuple[Shown, ...]:
    """Return the speaker's portrait that an update may write."""
    if speaker is None or speaker.is_bot or not speaker.models:
        return ()
    own = speaker.models[0]
    return (Shown(person=own.person, audience=own.audience, version=own.version, writable=True, text=own.markdown),)


judge = Subprocess(
    name="judge", order=1, is_for_later=True, work=judge_later, description="Judge what a turn left for later."
)
