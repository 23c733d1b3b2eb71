"""One turn, from hearing to a committed intent: the only orchestrator. It reads, asks, decides, and writes once."""

from __future__ import annotations

import logging
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.attending import attend_to
from claudius.cognition.budget import Stage
from claudius.cognition.chain import Opening
from claudius.cognition.commit import commit
from claudius.cognition.encounter import show_calls, show_heard, show_prompt
from claudius.cognition.fold import fold_expired
from claudius.cognition.hearing import Hearing
from claudius.cognition.mind import Mind, Show
from claudius.cognition.motion import move
from claudius.cognition.pipeline import Thinking, think
from claudius.cognition.processes import Process, route
from claudius.cognition.reflection import Idle, reflect
from claudius.cognition.second_thought import Hold, think_twice
from claudius.cognition.soul_engine import (
    TOO_LONG,
    EngineSettings,
    Kept,
    build_prompt,
    conclude,
    conclude_apology,
    conclude_unthought,
    freeze,
    ground,
    lines_for,
    plan,
    private_texts,
    prompt_sha256,
    zones,
)
from claudius.cognition.soul_engine.feeling import mood_before
from claudius.cognition.soul_engine.moving import transit
from claudius.config import daimon_modes
from claudius.errors import OverBudget, ProcessError, TooLong
from claudius.intent import ApologyKind, Intent
from claudius.memory.store import Pending, RecallLimits
from claudius.psyche import Attention
from claudius.recollection import Recollection, Summary, unrecalled
from claudius.soul import SoulText

log = logging.getLogger("claudius.turn")

UPDATES = ("user_model_update", "model_change_note")


class Turned(Struct, frozen=True):
    """A committed turn: what it knew, and what it changed."""

    intent: Intent
    recollection: Recollection
    pending: Pending
    is_joined: bool = False
    """Whoever else speaks in the conversation has had the chance to."""


async def take_turn(
    pending: Pending,
    mind: Mind,
    show: Show | None = None,
    hearing: Hearing | None = None,
    *,
    post_chars: int | None = None,
    hold: Hold | None = None,
) -> Turned:
    """Think one perception through and commit what comes of it.

    `post_chars`: the longest post of the network that is answered, in UTF-16 units; None = any.

    Raises: ProviderError where the model gave nothing, OverBudget, Unreadable, ProcessError, Superseded where something
    was heard that it gave way to, StaleTurn, StoreError. Nothing is kept then but the finished model calls, which a
    re-run does not pay for again.
    """
    config, soul = mind.config(), mind.soul()
    shortest = _shorter(post_chars, config.reply.post_chars)
    settings = EngineSettings.of(config, post_chars=shortest, assesses=not mind.reflects())
    now, nonce = _inputs(pending, mind)
    mind.store.take(pending.seq, {"now": now.isoformat(), "nonce": nonce}, mind.clock())
    recollection = await _recall(pending, mind, now, nonce)
    if pending.perception.extra.get("over_budget"):
        raise OverBudget
    show_heard(mind.hooks, recollection)
    process = route(recollection, soul, autonomous=settings.autonomous)
    attention = await attend_to(recollection, soul, config, mind.store, has_process=not process.is_simple)
    if attention.outcome != "think":
        lines = lines_for(attention, recollection, soul)
        intent = conclude_unthought(recollection, process, settings, attention, lines)
        return Turned(await _keep(intent, recollection, recollection.summary, mind), recollection, pending)
    frugal = await _budget(mind)
    paid = {call.request_sha256: call for call in pending.calls}
    before = recollection.summary
    recollection, folding = await fold_expired(recollection, mind, soul, settings, paid)
    recollection = await think_twice(recollection, mind, soul, hold)
    mood = mood_before(recollection, attention.change.mood if attention.change else "")
    process = route(recollection, soul, autonomous=settings.autonomous, mood=mood)
    if frugal:
        process = replace(process, steps=tuple(name for name in process.steps if name not in UPDATES))
    if not process.is_simple or config.pipeline.mode == "split" or mind.voices:
        opening = Opening(
            mind=mind,
            soul=soul,
            settings=settings,
            recollection=recollection,
            paid=paid,
            show=show,
            hearing=hearing or Hearing(),
            folding=folding,
            attention=attention,
        )
        intent = await _move(opening, process)
        return Turned(await _keep(intent, recollection, before, mind), recollection, pending)
    thinking = _prepare(recollection, process, soul, settings, mind, attention)
    show = show if thinking.plan.speaks else None
    thinking.paid, thinking.show, thinking.calls = paid, show, folding
    show_prompt(mind.hooks, recollection, thinking.plan.asked, thinking.prompt, mind.provider.model)
    try:
        thoughts = await think(thinking)
    except TooLong:
        half = replace(settings, budget_tokens=max(1, settings.budget_tokens // 2), window=2)
        thinking = _prepare(recollection, process, soul, half, mind, attention)
        thinking.paid, thinking.show, thinking.calls = paid, show, folding
        thoughts = await think(thinking)
    recollection, planned = thinking.recollection, thinking.plan
    snapshot, blobs = freeze(recollection, planned, thinking.settings, soul)
    kept = Kept(
        prompt_sha256=thinking.prompt_sha256,
        snapshot=snapshot,
        blobs=blobs,
        attention={
            "outcome": "think",
            "reason": "owed" if planned.owes else "asked by the soul itself",
            **attention.told,
        },
        psyche=attention,
    )
    intent = conclude(planned, recollection, thoughts, soul, thinking.settings, thinking.zones, kept)
    intent = transit(intent, process, recollection, soul, autonomous=settings.autonomous)
    if TOO_LONG in intent.flags:
        log.warning("a reply was cut short", extra={"turn": intent.turn})
    return Turned(await _keep(intent, recollection, before, mind), recollection, pending)


async def _keep(intent: Intent, recollection: Recollection, before: Summary | None, mind: Mind) -> Intent:
    """Commit a turn with what it adds to the ledger, and tell whoever looks on.

    Raises: ProcessError where it says nothing and a reply is owed: what is committed without a word is never answered.
    """
    if not intent.utterances and any(one.owes and one.key in intent.answers for one in recollection.perceptions):
        raise ProcessError(f"process {intent.process}", "ended without a word where a reply is owed")
    summary = intent.summary if recollection.summary is before else recollection.summary
    intent = replace(intent, summary=summary)
    if recollection.intuitions:
        from claudius.cognition.daimonic import felt  # noqa: PLC0415 - not loaded while no daimon whispers

        intent = felt(intent, recollection)
    show_calls(mind.hooks, recollection, intent.calls)
    return await commit(intent, recollection, mind)


async def _move(opening: Opening, process: Process) -> Intent:
    """Take a turn through its processes; once more with half the history where the prompt is too long."""
    try:
        return await move(opening, process)
    except TooLong:
        settings = opening.settings
        half = replace(settings, budget_tokens=max(1, settings.budget_tokens // 2), window=2)
        return await move(replace(opening, settings=half), process)


def _shorter(network: int | None, own: int) -> int | None:
    return None if network is None else min(network, own)


def _prepare(
    recollection: Recollection,
    process: Process,
    soul: SoulText,
    settings: EngineSettings,
    mind: Mind,
    attention: Attention | None = None,
) -> Thinking:
    """Plan and assemble."""
    planned = plan(process, recollection, settings, attention)
    prompt = build_prompt(planned, recollection, soul, settings)
    stands = ground(planned, recollection, soul, settings, private_texts(recollection))
    return Thinking(
        mind=mind,
        plan=planned,
        prompt=prompt,
        prompt_sha256=prompt_sha256(prompt),
        recollection=recollection,
        soul=soul,
        settings=settings,
        ground=stands,
        zones=zones(stands, recollection, soul, mind.secrets),
    )


async def apologise(pending: Pending, mind: Mind, kind: ApologyKind) -> Intent:
    """End a perception that cannot be thought by one typed apology, and commit that.

    It takes what was heard and a fixed line, and nothing else: whatever the turn failed on, in recall, route, plan,
    psyche or ledger, the apology would fail on too.
    """
    heard = unrecalled(pending.turn, pending.perceptions, mind.nonce(), mind.clock())
    intent = conclude_apology(heard, kind, mind.soul(), pending.calls)
    return await commit(intent, heard, mind, is_turn=False)


async def afterthought(turned: Turned, mind: Mind) -> None:
    """Do, while a conversation is idle, what its subprocesses do."""
    await reflect(Idle(intent=turned.intent, recollection=turned.recollection, pending=turned.pending), mind)


def _inputs(pending: Pending, mind: Mind) -> tuple[datetime, str]:
    """Return the run's time and nonce: those of an earlier, unfinished run where there was one."""
    earlier = pending.inputs
    now = datetime.fromisoformat(earlier["now"]) if "now" in earlier else mind.clock()
    return now, earlier.get("nonce") or mind.nonce()


async def _recall(pending: Pending, mind: Mind, now: datetime, nonce: str) -> Recollection:
    config = mind.config()
    limits = RecallLimits(
        ttl_hours=config.memory.ttl_hours,
        aged_at=mind.aged_at(),
        beliefs=mind.reflects(),
        psyche=config.psyche.enabled,
        daimons=daimon_modes(config),
    )
    return await mind.store.recall(pending, nonce=nonce, now=now, limits=limits)


async def _budget(mind: Mind) -> bool:
    """Tell whether to save on model updates. Raises: OverBudget."""
    found = await mind.stage()
    if found is Stage.REFUSING:
        raise OverBudget
    return found is Stage.UPDATES_OFF
