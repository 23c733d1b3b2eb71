"""Backfill: reads what was said above a message that calls the soul: in its thread, or else in its channel.

In a thread where everybody may talk to the soul, it is overheard: made durable like everything that is heard, under its
own keys, so that nothing known is stored twice; the lane takes it before the call, because it was said before. Where
others wrote too, apps above all, or a post shows more than words, and above a message outside a thread, it is shown in
this one turn and kept nowhere. Source: the chat design, section 4; the design of doors, section 8.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.errors import DeliveryError
from claudius.foreign import unquoted
from claudius.perception import Following, Kind, MessageExtra, Origin, Perception, Place, internal, whole_text
from claudius.runtime.access import admit
from claudius.runtime.adapter import Adapter
from claudius.runtime.commands.words import command_in
from claudius.shown import AROUND, RECENT, How, Quoted

log = logging.getLogger(__name__)

MOST = 20
GAP_S = 600.0
"""A thread that was overheard is read again when the soul is called into it and this long has passed."""
PATIENCE_S = 10.0
"""How long a turn waits for the earlier messages."""
MOST_KNOWN = 10_000
NEVER = float("-inf")
"""When a thread was last overheard of which not everything can be: it is read, and shown, at every turn."""
Forgotten = Callable[[Iterable[str]], Mapping[str, datetime]]
"""Returns which of some persons were forgotten, and when; anybody: "". Nothing said before is read again."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class ThreadBackfill:
    """When each thread was last overheard, in this process."""

    def __init__(self, mind: Mind, forgotten: Forgotten) -> None:
        self._mind, self._forgotten = mind, forgotten
        self._overheard: dict[str, float] = {}

    def turned_away(self, conversation: str) -> None:
        """Note that somebody wrote in a thread who may not talk to the soul: its next turn there reads that."""
        self._overheard.pop(conversation, None)
        self._overheard[conversation] = NEVER
        if len(self._overheard) > MOST_KNOWN:
            del self._overheard[next(iter(self._overheard))]

    async def read(self, perception: Perception, adapter: Adapter) -> tuple[Quoted, ...] | None:
        """Read what stands above a call, or was said in a channel before the soul's arrival.

        Returns what the turn is shown; None if something is to be taken first. A network that cannot be read now delays
        nothing. Raises: StoreError.
        """
        conversation, now = perception.conversation, monotonic()
        thread = Place.of(conversation).thread
        last = self._overheard.get(conversation)
        if thread and perception.position.endswith(thread):
            return self._above(await self._found(perception, adapter, AROUND), perception) if _calls(perception) else ()
        is_read = thread and (_calls(perception) or (last == NEVER and _is_asked(perception)))
        if not (is_read or internal(perception).says is not None) or (last is not None and now - last < GAP_S):
            return ()
        posts = await self._found(perception, adapter, MOST)
        if posts is None:
            return ()  # the next turn there tries again
        self.turned_away(conversation)
        config = self._mind.config()
        # Those that call us are known or found by a sweep, and are owed more than being overheard. The store decides
        # about the rest for the same reason: in a thread that the soul follows, it may owe a reply.
        said = [one for one in posts if one.kind is Kind.MESSAGE and not _is_ours(one)]
        admitted = [one for one in (admit(one, config) for one in said) if one]
        if thread and (len(admitted) < len(said) or [one for one in posts if _is_more(one, thread)]):
            first = [one for one in posts[:1] if one.position.endswith(thread)]
            rest = [one for one in posts[len(first) :] if not _is_ours(one)]
            return _quoted((*first, *rest[-AROUND:]), How.THREAD)
        self._overheard[conversation] = now
        overheard = [replace(one, following=Following.KEPT) for one in admitted]
        kept = await self._mind.store.inbox.accept(overheard, self._mind.clock())
        log.info("a thread was read", extra={"conversation": conversation, "new": sum(kept)})
        return None if any(kept) else ()

    async def _found(self, perception: Perception, adapter: Adapter, most: int) -> Sequence[Perception] | None:
        """Return the posts above a perception, without commands and what is forgotten; None if none can be read."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await adapter.context(perception, most)
        except (DeliveryError, OSError, TimeoutError) as error:
            facts = {"conversation": perception.conversation, "error": unquoted(error)}
            log.info("what stands above was not read", extra=facts)
            return None
        persons = {one.person for one in found} | {one.person for post in found for one in _shown(post)}
        since = self._forgotten(persons - {""})  # what we said then may hold words of anybody's
        known = [one for one in found if one.at > since.get("" if _is_ours(one) else one.person, _LONG_AGO)]
        return [_without(one, since) for one in known if not command_in(one.text)]

    def _above(self, posts: Sequence[Perception] | None, perception: Perception) -> tuple[Quoted, ...]:
        recent = [one for one in posts or () if perception.at - RECENT <= one.at and one.position < perception.position]
        return _quoted(recent, How.ABOVE)


def _is_asked(perception: Perception) -> bool:
    is_said = perception.kind in (Kind.MESSAGE, Kind.MENTION) and perception.origin is Origin.EXTERNAL
    return is_said and perception.owes


def _calls(perception: Perception) -> bool:
    is_private = perception.audience.startswith("private:")
    return perception.kind is Kind.MENTION or (is_private and _is_asked(perception))


def _is_ours(post: Perception) -> bool:
    return isinstance(post.extra, MessageExtra) and post.extra.is_ours


def _shown(post: Perception) -> Sequence[Quoted]:
    return post.extra.shown if isinstance(post.extra, MessageExtra) else ()


def _without(post: Perception, since: Mapping[str, datetime]) -> Perception:
    """Return a post without what it shows of those who were forgotten after it was written."""
    left = [
        one
        for one in _shown(post)
        if one.how in (How.PREVIEW, How.ATTACHED)  # nobody said it: a link or an app shows it
        or post.at > since.get("" if one.is_ours else one.person, _LONG_AGO)  # ours may hold anybody's words
    ]
    if not isinstance(post.extra, MessageExtra) or len(left) == len(post.extra.shown):
        return post
    gone = {one.of for one in post.extra.shown if one not in left} - {""}
    files = [one for one in post.extra.files if one.get("of") not in gone]
    return replace(post, extra=replace(post.extra, shown=tuple(left), files=tuple(files)))


def _is_more(post: Perception, thread: str) -> bool:
    """Return whether a post cannot be overheard: it shows more than words, or is ours and no answer in the thread."""
    if _is_ours(post):
        return post.position.endswith(thread)
    return any(one.how is not How.ANSWERED for one in _shown(post))


def _quoted(posts: Iterable[Perception], how: How) -> tuple[Quoted, ...]:
    """Return posts as they are shown, each with what it shows of others."""
    return tuple([one for post in posts for one in _parts(post, how)])


def _parts(post: Perception, how: How) -> Iterator[Quoted]:
    if own := whole_text(post):
        yield Quoted(
            how=how,
            text=own,
            of=post.key,
            person=post.person,
            name=post.name,
            is_bot=post.is_bot,
            is_ours=_is_ours(post),
            position=post.position,
        )
    for one in _shown(post):
        if one.how in (How.FORWARDED, How.PREVIEW):
            yield replace(one, of=one.of or post.key, position=post.position)
