"""Catch up on what was said while the adapter was not listening, and read earlier messages for context.

Channels and threads are read within Slack's rate limits.

Source: the reliability design, section 5; the chat design, section 1.4.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import inf
from operator import itemgetter
from time import monotonic
from typing import Any

from msgspec import Struct, field
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.caches import MarkedChannel, Posts, Reached, has_lost, marked_channels, posts_in, root_of, swept
from claudius.adapters.incoming import MISREAD, deleted
from claudius.adapters.slack.incoming import NETWORK, SlackBot, SlackMessage, from_history, moment, perceive, stamp
from claudius.adapters.slack.people import SlackPeople
from claudius.adapters.slack.text import MENTIONS, object_of, text_of
from claudius.adapters.slack.web_api import FAILURES, classify_read, code_of, next_cursor
from claudius.errors import DeliveryLater, DeliveryRefused
from claudius.foreign import unquoted
from claudius.perception import Perception, Place, edited
from claudius.runtime.adapter import Gap, Swept

log = logging.getLogger(__name__)

PAGE = 200
MOST = 1000
"""How many messages of one channel a sweep processes. Any more are only counted."""
MOST_LOOKED_AT = 5 * MOST
NEW_PLACES = 50
"""How many conversations without a stored position are read: a first message may have come while we were away."""
KINDS = "public_channel,private_channel,mpim,im"
CLOCKS_DIFFER = timedelta(minutes=1)
"""How far our clock may be ahead of Slack's."""
BURST = 30
EVERY_S = 60 / 50
"""Slack's third tier: fifty calls a minute."""


class Pace(Struct):
    """A rate limiter that lets a burst of calls through and then one per interval."""

    burst: int = BURST
    every_s: float = EVERY_S
    now: Callable[[], float] = monotonic
    _free_at: float = field(default=-inf)

    def is_free(self) -> bool:
        """Return whether the next call is allowed at once."""
        now = self.now()
        return max(self._free_at, now - self.burst * self.every_s) + self.every_s <= now

    async def step(self) -> None:
        """Wait until the next call is allowed: at once within a burst, else `every_s` seconds after the one before."""
        now = self.now()
        self._free_at = max(self._free_at, now - self.burst * self.every_s) + self.every_s
        if self._free_at > now:
            try:
                await asyncio.sleep(self._free_at - now)
            except asyncio.CancelledError:
                self._free_at -= self.every_s  # no call was made
                raise


class SlackHistory:
    """Reads one workspace's past."""

    def __init__(self, client: AsyncWebClient, us: SlackBot, people: SlackPeople, reached: Reached) -> None:
        """Read through `client`. `reached` knows how far this process has read."""
        self._client, self._us, self._people, self._reached = client, us, people, reached
        self._paces: dict[str, Pace] = defaultdict(Pace)
        """By method, since each has its own rate."""

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Read what may have been missed: first the channels heard before, latest first, then those without a position.

        Raises: DeliveryLater, DeliveryUnknown, TimeoutError if Slack cannot be read now. A channel that may not be read
        is skipped.
        """
        since = stamp(gap.since)
        latest = list(dict.fromkeys(Place.of(conversation).channel for conversation in gap.conversations))
        ranks = {channel: rank for rank, channel in enumerate(latest)}
        heard = [one for one in marked_channels(gap) if one.workspace == self._us.team and one.channel]
        heard.sort(key=lambda one: ranks.get(one.channel, len(ranks)))
        places = [*heard, *await self._unmarked(gap)]
        async for one in swept(places, partial(self._sweep, since=since, gap=gap)):
            yield one
        if gap.now:
            yield Swept(channel=f"{self._us.team}:", perceptions=(), position=stamp(gap.now - CLOCKS_DIFFER))

    async def before(self, perception: Perception, most: int) -> Sequence[Perception]:
        """Return the first message of a perception's thread and the latest ones before it, oldest first.

        Of one outside a thread, those above it; in a channel or direct message, the latest ones altogether. Raises:
        DeliveryError, also if no call is free now.
        """
        place, until = Place.of(perception.conversation), perception.position
        if place.thread and place.thread != until:
            self._must_be_free("conversations_replies")
            where = {"channel": place.channel, "ts": place.thread, "oldest": "0", "latest": until}
            found = [one for one in await self._read("conversations_replies", **where) if str(one.get("ts")) < until]
            earlier = [*found[:1], *found[1:][1 - most :]]
        else:
            self._must_be_free("conversations_history")
            span = {"latest": until} if place.thread else {}
            page = await self._call(
                "conversations_history", channel=place.channel, limit=most, include_all_metadata=True, **span
            )
            said = [one for one in page.get("messages") or () if one.get("thread_ts") in (None, one.get("ts"))]
            earlier = said[:most][::-1]
        return await self._hear(earlier, place.channel, "0", with_ours=True)

    async def _sweep(self, place: MarkedChannel, since: str, gap: Gap) -> AsyncIterator[Swept]:
        name = f"{self._us.team}:{place.channel}"
        floor, posts = max(place.mark, since), posts_in(gap, f"{NETWORK}:{self._us.team}:{place.channel}")
        refused: DeliveryRefused | None = None
        known = self._reached.newest.get(place.channel, floor)
        try:
            missed = await self._read("conversations_history", channel=place.channel, oldest=floor)
        except DeliveryRefused as error:
            missed, refused = [], error
        heard = await self._hear(missed[:MOST], place.channel, floor)
        direct = f"{NETWORK}:{self._us.team}:{place.channel}:" if place.channel.startswith("D") else ""
        yield Swept(channel=name, perceptions=heard, conversation=direct, left_out=max(0, len(missed) - MOST))
        furthest = [floor, *(str(message["ts"]) for message in missed)]
        older, begin = ([], floor) if refused else await self._older(place, floor, since)
        there = {str(one["ts"]): one for one in older}
        threads = self._threads(place, (*missed, *older), floor)
        for thread, may_have_grown in sorted(threads.items(), key=itemgetter(1)):
            after = since if posts else floor
            replies = await self._replies(place.channel, thread, after) if may_have_grown or posts else []
            there |= {str(one["ts"]): one for one in replies}
            replies = [one for one in replies if str(one["ts"]) > floor]
            yield Swept(
                channel=name,
                perceptions=await self._hear(replies[:MOST], place.channel, floor),
                conversation=f"{NETWORK}:{self._us.team}:{place.channel}:{thread}",
                left_out=max(0, len(replies) - MOST),
            )
            furthest += [str(message["ts"]) for message in replies]
        if refused:
            raise refused
        posts = {at: one for at, one in posts.items() if begin < at <= floor and root_of(one) in ("", *threads)}
        if posts and gap.now:
            changes = await self._changes(posts, there, place.channel, gap.now)
            yield Swept(channel=name, perceptions=(*changes,))
        # A message posted while we read may be in a place that was read before it, and may never arrive by itself.
        position = min(max(furthest), max(known, floor, *(str(message["ts"]) for message in missed)))
        self._reached.read(place.channel, position)
        for ts in furthest:
            self._reached.known(place.channel, ts)
        yield Swept(channel=name, perceptions=(), position=position)

    async def _older(self, place: MarkedChannel, floor: str, since: str) -> tuple[list[Any], str]:
        """Return the latest messages that were read before, and since when these are all."""
        if floor <= since:
            return [], floor
        span = {"oldest": since, "latest": floor, "inclusive": True, "limit": PAGE}
        page = await self._call("conversations_history", channel=place.channel, **span)
        found = list(page.get("messages") or ())
        return found, min(str(one["ts"]) for one in found) if found and next_cursor(page) else since

    def _threads(self, place: MarkedChannel, messages: Sequence[Any], floor: str) -> dict[str, bool]:
        """Return the recent threads and those that Slack reports as grown, each with whether it may hold something new.

        If Slack shows the latest reply of a thread that has not grown, no call is needed for it.
        """
        ends = {str(message["ts"]): str(message.get("latest_reply") or "") for message in messages}
        known = {thread: not ends.get(thread) or ends[thread] > floor for thread in place.threads}
        return known | {ts: True for ts, end in ends.items() if end > floor}

    async def _changes(
        self, known: Posts, there: Mapping[str, Any], channel: str, now: datetime
    ) -> Sequence[Perception]:
        """Return what became of messages that were heard before: it came while nobody listened."""
        left = {ts: one for ts, one in there.items() if ts in known and one.get("subtype") != "tombstone"}
        told = {ts: text_of(object_of(one, "edited"), "ts") for ts, one in left.items()}
        said = await self._hear([one for ts, one in left.items() if told[ts] or known[ts].brings], channel, "0")
        told |= {one.position: stamp(now) for one in said if has_lost(known[one.position], one)}
        changed = [edited(one, moment(at), at) for one in said if (at := told[one.position])]
        lost = [(ts, one.key, one.conversation) for ts, one in known.items() if ts not in left]
        gone = [deleted(key, place, now, stamp(now), moment(ts)) for ts, key, place in lost]
        return [*changed, *gone]

    async def _replies(self, channel: str, thread: str, floor: str) -> list[Any]:
        try:
            found = await self._read("conversations_replies", channel=channel, ts=thread, oldest=floor)
        except DeliveryRefused as error:
            if error.code != "thread_not_found":
                raise
            return []
        return [message for message in found if message.get("ts") != thread]

    async def _read(self, method: str, **where: str) -> list[Any]:
        """Read all pages of what came after `oldest`, oldest first."""
        found: dict[str, Any] = {}
        cursor: str | None = None
        seen: set[str] = set()
        while len(found) < MOST_LOOKED_AT:
            page = await self._call(method, **where, limit=PAGE, cursor=cursor)
            found |= {
                str(one.get("ts")): one for one in page.get("messages") or () if str(one.get("ts")) > where["oldest"]
            }
            cursor = next_cursor(page)
            if not cursor or cursor in seen:
                break
            seen.add(cursor)
        return [found[ts] for ts in sorted(found)]

    async def _hear(
        self, messages: Sequence[Mapping[str, Any]], channel: str, floor: str, *, with_ours: bool = False
    ) -> tuple[Perception, ...]:
        heard: list[Perception] = []
        for message in messages:
            try:
                said = from_history(message, channel, self._us, with_ours=with_ours)
            except MISREAD as error:  # one odd message must not block the others
                log.warning("a message cannot be read", extra={"ts": message.get("ts"), "error": unquoted(error)})
                continue
            if isinstance(said, SlackMessage) and said.ts > floor:
                people = await self._people.know("" if said.is_named else said.user, MENTIONS.all_in(said.raw))
                heard.append(perceive(said, self._us, people, await self._people.place(channel)))
        return tuple(heard)

    async def _unmarked(self, gap: Gap) -> list[MarkedChannel]:
        """Find conversations without a stored position. They are read from the workspace's last common position."""
        marks = {name.partition(":")[2]: mark for name, mark in gap.marks.items()}
        if not marks:
            return []
        last = marks.get("") or min(marks.values())
        try:
            found = await self._joined()
        except DeliveryRefused as error:
            log.info("conversations not listed", extra={"code": error.code})
            return []
        new = [one for one in found if str(one.get("id")) not in marks]
        new.sort(key=lambda one: float(one.get("created") or 0), reverse=True)
        return [MarkedChannel(self._us.team, str(one["id"]), last) for one in new[:NEW_PLACES]]

    async def _joined(self) -> list[Any]:
        try:
            return await self._conversations("users_conversations")
        except DeliveryRefused:
            return [one for one in await self._conversations("conversations_list") if one.get("is_member", True)]

    async def _conversations(self, method: str) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(MOST // PAGE):
            page = await self._call(method, types=KINDS, exclude_archived=True, limit=PAGE, cursor=cursor)
            found += page.get("channels") or ()
            cursor = next_cursor(page)
            if not cursor:
                break
        return found

    def _must_be_free(self, method: str) -> None:
        if not self._paces[method].is_free():
            raise DeliveryLater(EVERY_S)

    async def _call(self, method: str, **arguments: Any) -> Any:
        await self._paces[method].step()
        try:
            return await getattr(self._client, method)(**arguments)
        except FAILURES as error:
            log.info("history not read", extra={"method": method, "error": code_of(error) or unquoted(error)})
            raise classify_read(error) from error
