"""Which waiting perceptions of a conversation one turn answers together, and which wait for the rest of a sentence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

from claudius.cognition.mind import Mind
from claudius.cognition.turn_state import is_more
from claudius.memory.inbox import Pending
from claudius.perception import MessageExtra, Origin, Perception, Place, private
from claudius.runtime.failures import Retry

TOGETHER = 10
"""The most messages that one reply answers."""
FRAGMENT_CHARS, FRAGMENT_S = 40, 1.2
"""A short message without an end waits so long for the next one."""
_TYPED_IN_PIECES = ("slack", "discord")
"""The networks on whose direct messages a sentence is typed in pieces."""
_NO_END = frozenset(",;:、，；：،؛'\"’”»「『(")
"""Punctuation after which a sentence goes on."""
_CLOSING = ")]}'\"’”»」』*_~ "
_EMOJI_NAME = re.compile(r":[a-z0-9_+'-]+:")


async def next_turn(first: Pending, mind: Mind, now: datetime) -> Pending | Retry:
    """Return what is answered together with the oldest perception of its conversation, as one turn.

    A perception that gave way to a newer one goes with the next; by `runtime.merge_while_busy`, one person's waiting
    messages are grouped. If the last of them is the beginning of a sentence, returns when to look again;
    so too where the oldest is to be tried again later.
    """
    if first.not_before and first.not_before > now:
        return Retry((first.not_before - now).total_seconds())
    group = await _grouped(first, mind)
    waits_s = (group[-1].heard_at - now).total_seconds() + FRAGMENT_S
    is_set_back = waits_s > 2 * FRAGMENT_S  # it was heard before a start, by a clock that has been set since
    if waits_s > 0 and not is_set_back and goes_on([one.perception for one in group], mind):
        return Retry(min(waits_s, FRAGMENT_S))
    return await mind.store.inbox.join(group) if len(group) > 1 else first


async def _grouped(first: Pending, mind: Mind) -> Sequence[Pending]:
    is_merged = _is_merged(first.perception, mind)
    if first.is_stopped or not (first.held or is_merged):
        return (first,)
    waiting = await mind.store.inbox.unfinished(first.perception.conversation)
    held = list(takewhile(lambda one: bool(one.held), waiting))
    rest = waiting[len(held) :]
    group = [*held, *rest[:1]]
    if is_merged and group:
        person = group[-1].perception.person
        group += takewhile(lambda one: is_more(one.perception, person), rest[1:])
    return [one for one in group[:TOGETHER] if (one.perception.owes and not one.is_stopped) or one is group[0]]


def _is_merged(perception: Perception, mind: Mind) -> bool:
    """Return whether what one person says there meanwhile is answered in one reply."""
    if perception.origin is not Origin.EXTERNAL or not perception.owes:  # what the clock brings is answered by itself
        return False
    mode = mind.config().runtime.merge_while_busy
    return _is_direct(perception) if mode == "direct" else mode


def _is_direct(perception: Perception) -> bool:
    is_there = Place.of(perception.conversation).network in _TYPED_IN_PIECES
    return is_there and perception.audience.startswith(private(""))


def goes_on(heard: Sequence[Perception], mind: Mind) -> bool:
    """Return whether the next message of that person probably belongs to these, and is answered with them."""
    last = heard[-1]
    return len(heard) < TOGETHER and _is_merged(last, mind) and _is_direct(last) and is_fragment(last)


def is_fragment(perception: Perception) -> bool:
    """Return whether a message looks like the beginning of a sentence that goes on in the next one. Pure.

    It is short, and has neither an end mark of any script, nor an emoji, nor a file or a text of another.
    """
    text, extra = perception.text.strip(), perception.extra
    if not text or len(text) > FRAGMENT_CHARS or _EMOJI_NAME.search(text):
        return False
    if isinstance(extra, MessageExtra) and (extra.files or extra.shown):
        return False
    if any(unicodedata.category(sign) in ("So", "Sk") for sign in text):
        return False
    last = text.rstrip(_CLOSING)[-1:]
    return not (unicodedata.category(last or ".") == "Po" and last not in _NO_END)
