"""Commit a turn's changes (WRITE 2). This is the only place that does, for every kind of turn.

Turns, apologies, reflections and daimon lines all end here. Unprompted speech is first checked against the proactive
rules; ledger entries are added; observers are notified before and after.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from msgspec.structs import replace

from claudius.acts import MatterOpened
from claudius.cognition.conclude.conclusion import draft_utterance, utterance_key
from claudius.cognition.hooks import noted, show_committed, show_concluded
from claudius.cognition.mind import Mind
from claudius.cognition.plan import soul_name
from claudius.cognition.proactive import allowed
from claudius.cognition.remembering import kept
from claudius.cognition.timing import zone_at
from claudius.errors import ProcessError
from claudius.intent import Intent, Utterance
from claudius.perception import is_terminal
from claudius.prompt import nested_line, quoted
from claudius.recollection import Recollection, StateKey
from claudius.tool import Card, ToolCall, ToolClass, may_remember

_ADDRESS = re.compile(r"https?://[\w.~:/?#@!$&+,;=%-]+", re.ASCII)
"""An address that is shown as it is; of another the characters are written out."""
CARD_CHARS = 600
"""The most that a card shows of arguments."""


async def commit(intent: Intent, recollection: Recollection, mind: Mind, *, is_turn: bool = True) -> Intent:
    """Commit the changes of a turn and return the intent as committed.

    `is_turn`: the turn recalled and heard something. False for apologies and for thoughts or lines beside a turn, which
    add nothing to the ledger or the plans.

    Raises: ProcessError if the turn says nothing although a reply is owed, because a committed turn is never answered
    again; StaleTurn if the conversation has moved on; StoreError.
    """
    if is_turn:
        is_owed = True in [one.owes and one.key in intent.answers for one in recollection.perceptions]
        if is_owed and not (intent.utterances or intent.asking):
            raise ProcessError(f"process {intent.process}", "ended without a word where a reply is owed")
        if recollection.intuitions:
            from claudius.cognition.daimons import felt  # noqa: PLC0415 - stays unloaded while no daimon whispers

            intent = felt(intent, recollection)
    intent = allowed(intent, recollection, mind)
    if is_turn:
        named = [one.text for one in intent.acts if isinstance(one, MatterOpened)]
        named += [one.value for one in intent.state if one.key == StateKey.CURRENT_TOPIC]
        psyche = intent.psyche.about(named[0]) if intent.psyche and named else intent.psyche
        intent = replace(intent, psyche=psyche, noted=noted(recollection, intent))
    show_concluded(mind.hooks, recollection, intent.calls, intent.utterances if is_turn else ())
    intent = kept(intent, recollection, soul_name(mind.soul().text("soul.md")))
    if intent.asking:
        zone = zone_at(recollection, mind.config().clock.timezone)
        card = card_of(intent.asking, [mind.store.people.name(one) for one in intent.asking.approvers], zone)
        intent = replace(intent, utterances=with_card(intent.utterances, card, recollection))
    intent = await mind.store.turns.commit(intent)
    show_committed(mind.hooks, intent)
    return intent


def with_card(said: Sequence[Utterance], card: Card, recollection: Recollection) -> tuple[Utterance, ...]:
    """Return what is said with a question for consent: a post of its own, but at the terminal. Pure."""
    if said and is_terminal(recollection.conversation):
        return (*said[:-1], replace(said[-1], card=card))
    number, first = len(said), said[-1] if said else draft_utterance(recollection.turn, recollection.perception)
    key = utterance_key(recollection.turn, number)
    asked = replace(first, key=key, body=card.text, part=number, receipts=(), card=card)
    return tuple([replace(one, parts=number + 1) for one in (*said, asked)])


def card_of(call: ToolCall, names: Sequence[str], zone: tzinfo) -> Card:
    """Return the question for consent to a call, which these may decide. Pure.

    What of the arguments has no room is named, but of a `send`, of which everything is shown.
    """
    until = (call.until or datetime.max.replace(tzinfo=UTC)).astimezone(zone)
    ends = f"until {until:%A} {until.hour}:{until:%M}"
    address = str(call.args.get("url", "")) if call.cls is ToolClass.READ and len(call.args) == 1 else ""
    address = address if _ADDRESS.fullmatch(address) else ""
    lines = "\n".join(f"{quoted(name)[1:-1]}: {nested_line(value)}" for name, value in call.args.items())
    if len(lines) > CARD_CHARS and call.cls is not ToolClass.SEND:
        lines = f"{lines[:CARD_CHARS]} … and {len(lines) - CARD_CHARS:,} characters more"
    return Card(
        call=call.id,
        tool=call.tool,
        cls=call.cls,
        question=f"May I read {address}? ({call.tool}, {ends})"
        if address
        else f"May I use {call.tool}? ({call.cls}, {ends})",
        args="\n".join(filter(None, ("" if address else lines, quoted(call.reason)[1:-1]))),
        approvers=call.approvers,
        who=" or ".join(names) or "An owner",
        until=until,
        for_talk="talk" in may_remember(call.cls, call.audience),
    )


async def commit_whole(intent: Intent, recollection: Recollection, mind: Mind) -> Intent:
    """Commit a thought from beside a turn; once started, the commit completes even if the task is cancelled.

    The next turn must not find it half done. Raises: StaleTurn, StoreError.
    """
    doing = asyncio.ensure_future(commit(intent, recollection, mind, is_turn=False))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise
