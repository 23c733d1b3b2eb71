"""Delivery: streams a reply while it is generated, sends every committed part, oldest first, and takes replies back.

The outbox row is durable before the first visible character. A send whose response was lost is looked up before it is
repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.conclude.conclusion import draft_utterance
from claudius.cognition.hooks import Hooks, show_sending
from claudius.cognition.mind import Mind
from claudius.cognition.output.gate import masked, rewrite
from claudius.cognition.output.rules import Mentionable
from claudius.cognition.turn import Turned
from claudius.config.schema import Config
from claudius.errors import (
    DeliveryError,
    DeliveryLater,
    DeliveryRefused,
    DeliveryUnknown,
    StoreAway,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from claudius.foreign import unquoted
from claudius.intent import SIGN_ONLY, ShownThought, Utterance
from claudius.memory.erasing import Posted
from claudius.memory.inbox import Pending
from claudius.memory.outbox import Delivery
from claudius.memory.store import Store
from claudius.perception import Kind, Origin, Place, private
from claudius.runtime.access import is_owner
from claudius.runtime.adapter import Adapter, shown_name
from claudius.runtime.commands.words import is_direct
from claudius.runtime.failures import AGAIN, Retry, backoff_s

log = logging.getLogger(__name__)


class Stream:
    """Streams one turn's words into the one message that delivery completes."""

    def __init__(self, pending: Pending, adapter: Adapter, mind: Mind) -> None:
        self._utterance = draft_utterance(pending.turn, pending.perception)
        self._adapter, self._mind = adapter, mind
        self._is_open = False

    async def __call__(self, text: str) -> None:
        """Show the next piece."""
        if not self._is_open:
            await self._mind.store.outbox.open_stream(self._utterance, self._mind.clock())
            self._is_open = True
        await self._adapter.show(self._utterance, text)


CAP_S = 300.0
NOTE_AGAIN_S = 5.0
"""How long to wait before it is recorded again that a part is, or may be, visible, while nothing can be written."""
ABSENT_ONCE = "absent once"
"""Why a part waits that was looked for once and not found: a second look proves it absent."""


class _GivenUp(Struct, frozen=True):
    """A part will never be sent, nor will the later parts of its turn."""


class Post(Struct, frozen=True):
    """What delivery works with: the store, one network, a monotonic clock, and how long it keeps trying."""

    store: Store
    adapter: Adapter
    clock: Callable[[], datetime]
    give_up_hours: float
    hooks: Hooks = field(default_factory=Hooks)
    line_of: Callable[[str], str] = lambda _: ""
    """The line that a turn says if a reply is owed and its reaction cannot be added; empty = none."""


async def deliver(parts: Sequence[Delivery], post: Post) -> Retry | None:
    """Send the committed parts of a conversation, oldest first. Returns when to go on, if a part has to wait.

    None = nothing is left to send, or nobody is there to hear it now.
    """
    given_up = ""
    for part in parts:
        now = post.clock()
        if part.utterance.turn == given_up:
            continue
        if part.not_before and part.not_before > now:
            return Retry((part.not_before - now).total_seconds())
        is_in_doubt = part.state == "unknown_after_send" and part.utterance.kind != "reaction"  # twice is harmless
        ended = await (_look if is_in_doubt else _say)(part, post)
        if isinstance(ended, Retry):
            return ended
        given_up = part.utterance.turn if ended else given_up
    return None


async def _look(part: Delivery, post: Post) -> Retry | _GivenUp | None:
    """Resolve a part that may be visible already; send it again only once two looks did not find it."""
    utterance = part.utterance
    try:
        receipt = await post.adapter.find(utterance, decided_at=part.decided_at)
    except DeliveryRefused as error:
        return await _unproven(part, post, f"unproven: {error.code}", CAP_S)
    except DeliveryLater as error:
        return await _unproven(part, post, "not looked yet", error.after_s or CAP_S)
    except DeliveryUnknown as error:
        log.info("history not readable", extra={"turn": utterance.turn, "error": unquoted(error)})
        return await _unproven(part, post, "not looked yet", backoff_s(part.attempts + 1, 1.0, cap_s=CAP_S))
    if receipt is not None:
        await _settle(part, post, receipt)
        return None
    if post.adapter.appears_s and part.reason != ABSENT_ONCE:
        return await _wait(part, post, ABSENT_ONCE, post.adapter.appears_s, unknown=True)
    return await _say(part, post)


async def _unproven(part: Delivery, post: Post, reason: str, wait_s: float) -> Retry | _GivenUp | None:
    if _is_late(part, post):
        await post.store.outbox.undeliverable(part.utterance.key, "unproven")
        return _GivenUp()
    return await _wait(part, post, reason, wait_s, unknown=True)


async def _say(part: Delivery, post: Post) -> Retry | _GivenUp | None:
    if part.state != "taken" and not await post.store.outbox.attempt(part.utterance.key):
        return None  # it was erased
    return await _try(part, post)


async def _try(part: Delivery, post: Post) -> Retry | _GivenUp | None:
    utterance = part.utterance
    show_sending(post.hooks, utterance, post.clock())
    try:
        receipt = await _send(await _named(utterance, post.adapter), post.adapter)
    except DeliveryRefused as error:
        return await _refused(utterance, post, error)
    except DeliveryLater as error:
        if error.after_s is None:
            await post.store.outbox.delay(utterance.key, None, "nobody is there")
            return None
        if post.adapter.link.connected and _is_late(part, post):
            if utterance.verb == SIGN_ONLY:
                await post.store.outbox.drop(utterance.key)
            else:
                await post.store.outbox.undeliverable(utterance.key, "refused for too long")
            return _GivenUp()
        return await _wait(part, post, "later", error.after_s)
    except DeliveryUnknown as error:
        log.warning("utterance may be visible", extra={"turn": utterance.turn, "error": unquoted(error)})
        wait_s = max(post.adapter.appears_s, backoff_s(part.attempts, 1.0, cap_s=CAP_S))
        return await _wait(part, post, "unknown", wait_s, unknown=True)
    if utterance.verb == SIGN_ONLY:
        await post.store.outbox.drop(utterance.key)
    else:
        await _settle(part, post, receipt)
    show_sending(post.hooks, utterance, post.clock(), receipt)
    return None


async def _refused(utterance: Utterance, post: Post, error: DeliveryRefused) -> Retry | _GivenUp:
    """Give up a part; if it was a reaction and a reply is owed, send a line instead."""
    log.warning("utterance refused", extra={"turn": utterance.turn, "code": error.code})
    if utterance.verb == SIGN_ONLY:
        await post.store.outbox.drop(utterance.key)
        return _GivenUp()
    line = post.line_of(utterance.turn) if utterance.kind == "reaction" else ""
    if line and await post.store.outbox.say_instead(utterance.key, line):
        return AGAIN
    await post.store.outbox.undeliverable(utterance.key, error.code)
    return _GivenUp()


async def _named(utterance: Utterance, adapter: Adapter) -> Utterance:
    """Return a question with the names that its network shows of those who may decide it."""
    card = utterance.card
    names = [await shown_name(adapter, one) for one in card.approvers] if card else []
    if not card or not all(names):
        return utterance
    card = replace(card, who=" or ".join(names))
    return replace(utterance, card=card, body=card.text)


async def _send(utterance: Utterance, adapter: Adapter) -> str:
    return await (adapter.react if utterance.kind == "reaction" else adapter.speak)(utterance)


async def _settle(part: Delivery, post: Post, receipt: str) -> None:
    """Record that a part is visible, retrying while nothing can be written: the part must not be sent twice."""
    key, is_last = part.utterance.key, part.utterance.part + 1 == part.utterance.parts
    while True:
        try:
            kept = await post.store.outbox.settle(key, receipt, post.clock(), is_last=is_last)
            return None if kept == receipt else await _take_down(part.utterance, post, receipt)
        except (StoreAway, StoreFull, StoreReadOnly) as error:
            log.error("what was said cannot be noted yet", extra={"key": key, "error": error.message})  # noqa: TRY400 - no trace
        await asyncio.sleep(NOTE_AGAIN_S)


async def _take_down(utterance: Utterance, post: Post, receipt: str) -> None:
    """Delete our own copy of a part, because another process was quicker: this one was paused for too long."""
    log.warning("a late copy is taken down", extra={"turn": utterance.turn})
    post.store.leases.tally.late += 1
    try:
        await post.adapter.take_back(utterance.conversation, receipt)
    except DeliveryError as error:
        log.error("a late copy stands", extra={"turn": utterance.turn, "error": unquoted(error)})  # noqa: TRY400 - no trace


async def _wait(part: Delivery, post: Post, reason: str, wait_s: float, *, unknown: bool = False) -> Retry:
    """Put a part off. If it is `unknown` whether it is visible, that is noted before anything else is done with it."""
    until = post.clock() + timedelta(seconds=wait_s)
    while True:
        try:
            await post.store.outbox.delay(part.utterance.key, until, reason, unknown=unknown)
        except (StoreAway, StoreFull, StoreReadOnly) as error:
            if not unknown:
                raise
            log.error("a doubt cannot be noted yet", extra={"key": part.utterance.key, "error": error.message})  # noqa: TRY400 - no trace
            await asyncio.sleep(NOTE_AGAIN_S)
        else:
            return Retry(wait_s)


def _is_late(part: Delivery, post: Post) -> bool:
    return post.clock() - part.decided_at > timedelta(hours=post.give_up_hours)


async def show_thought(thought: ShownThought, adapter: Adapter) -> None:
    """Show an owner a thought, where the network can fold it; once, or not at all."""
    try:
        await adapter.show_thought(thought)
    except (DeliveryError, OSError) as error:
        log.warning("a thought is not shown", extra={"turn": thought.turn, "error": unquoted(error)})


class Retraction:
    """Deletes replies whose original message was deleted, if `runtime.delete_replies` is set; in the background.

    It is tried once: a reply that the network does not delete then stays, and the log says so.
    """

    def __init__(self, mind: Mind, adapters: Mapping[str, Adapter]) -> None:
        self._mind, self._adapters = mind, adapters
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, key: str) -> None:
        """Delete the replies to a deleted message."""
        if not self._mind.config().runtime.delete_replies:
            return
        task = asyncio.create_task(self._take_back(key), name=f"take back {key}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def take_down(self, posts: Sequence[Posted]) -> Sequence[Posted]:
        """Delete these posts from their networks, if `runtime.delete_replies` is set; return those that stand."""
        if not self._mind.config().runtime.delete_replies:
            return posts
        return [one for one in posts if not await self._is_taken_back(one.conversation, one.post)]

    async def close(self) -> None:
        """Cancel the running deletions; leave no task behind."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _take_back(self, key: str) -> None:
        try:
            for conversation, receipt in self._mind.store.outbox.posts_for(key):
                await self._is_taken_back(conversation, receipt)
        except StoreError as error:
            log.warning("a reply could not be taken down", extra={"key": key, "error": unquoted(error)})

    async def _is_taken_back(self, conversation: str, receipt: str) -> bool:
        adapter = self._adapters.get(Place.of(conversation).network)
        if adapter is None:
            return False
        try:
            await adapter.take_back(conversation, receipt)
        except (DeliveryError, OSError) as error:
            log.warning("a reply could not be taken down", extra={"error": unquoted(error)})
            return False
        return True


THOUGHT = "internal_monologue"
MOST_CHARS = 1800
"""What one folded line holds on every network."""


def thought_to_show(turned: Turned, config: Config, secrets: tuple[str, ...] = ()) -> ShownThought | None:
    """Return what is shown of a turn's thought; None wherever it may not be, or was not chosen. Pure.

    A turn that felt a whisper, a belief or a directive shows none: its thought may hold what others said.
    """
    intent, known = turned.intent, turned.recollection
    heard = known.perception
    if intent.conversation not in config.runtime.thoughts or not intent.utterances:
        return None
    is_own = is_owner(heard, config) and known.audience == private(heard.person) == heard.audience
    if not is_own or not is_direct(intent.conversation, heard) or heard.origin is not Origin.EXTERNAL:
        return None
    kinds = {one.kind for one in known.perceptions}
    if known.intuitions or intent.whispers or known.beliefs or known.second_thought or Kind.DIRECTIVE in kinds:
        return None
    thoughts = [one.content.strip() for one in intent.thoughts if one.step == THOUGHT]
    text = rewrite(masked("\n\n".join(thoughts), secrets), Mentionable()).text[:MOST_CHARS]
    if not text or Place.of(intent.conversation).network == "terminal":
        return None
    return ShownThought(turn=intent.turn, conversation=intent.conversation, person=heard.person, text=text)


def is_still_chosen(thought: ShownThought, config: Config) -> bool:
    """Return whether a thought may still be shown: its words may be sent long after the turn. Pure."""
    return thought.conversation in config.runtime.thoughts and thought.person in config.owners
