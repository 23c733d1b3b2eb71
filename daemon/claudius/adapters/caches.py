"""What one process remembers of a chat network: how far each channel was read, and what was answered about people."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from time import monotonic
from typing import Generic, TypeVar

from msgspec import Struct, field

from claudius.adapters.incoming import MISREAD
from claudius.errors import DeliveryRefused, DeliveryUnknown
from claudius.memory.seen import HeardPost
from claudius.perception import Perception, Place, brought
from claudius.runtime.adapter import Gap, Swept

log = logging.getLogger(__name__)

V = TypeVar("V")

MOST = 1000
"""How many messages of a channel are known individually. Everything older counts as known."""
MOST_KEPT, MOST_PEOPLE = 5_000, 10_000
"""How many entries are kept of channels and messages, and of people. The oldest one is dropped first."""
FRESH_S, STALE_S = 600.0, 86_400.0
"""How long an answer is not asked for again, and how long it stays usable while the network does not answer."""


def keep(kept: dict[str, V], key: str, value: V, most: int = MOST_KEPT) -> None:
    """Store an entry as the latest, and drop the oldest one if there are more than `most`."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


class Lookups(Generic[V]):
    """Answers of the network about people, by a key, each asked for once however many messages wait for it."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        """Keep no answer yet. `now` returns monotonic seconds for measuring durations."""
        self._now = now
        self._known: dict[str, tuple[V, float]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def get(self, key: str, within_s: float = STALE_S) -> V | None:
        """Return an answer that is not older than `within_s`, or None if there is none."""
        value, at_s = self._known.get(key, (None, 0.0))
        return value if self._now() - at_s < within_s else None

    def keep(self, key: str, value: V) -> None:
        """Store an answer as new, and drop the one stored longest ago if there are more than MOST_PEOPLE."""
        keep(self._known, key, (value, self._now()), MOST_PEOPLE)

    async def refresh(self, keys: Iterable[str], ask: Callable[[str], Awaitable[V | None]], within_s: float) -> None:
        """Ask for the answers that are not fresh, and wait up to `within_s` for them.

        `ask` must not raise. It returns None if the network does not answer.
        """
        asking = [self._task(key, ask) for key in keys if self.get(key, FRESH_S) is None]
        if asking:
            await asyncio.wait(asking, timeout=within_s)

    async def close(self) -> None:
        """Cancel the questions that are still open, and wait until their tasks have ended."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _task(self, key: str, ask: Callable[[str], Awaitable[V | None]]) -> asyncio.Task[None]:
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._learn(key, ask), name=f"who is {key}")
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return task

    async def _learn(self, key: str, ask: Callable[[str], Awaitable[V | None]]) -> None:
        if (answer := await ask(key)) is not None:
            self.keep(key, answer)


class MarkedChannel(Struct, frozen=True):
    """One channel to sweep."""

    workspace: str
    channel: str
    mark: str
    """Its history is read from this position."""
    threads: tuple[str, ...] = ()
    """Its recent threads, latest first."""


def marked_channels(gap: Gap) -> list[MarkedChannel]:
    """Return each channel heard before, in the order of its marks, with its recent threads. Pure."""
    threads: dict[str, list[str]] = {}
    for conversation in gap.conversations:
        place = Place.of(conversation)
        if place.thread:
            threads.setdefault(f"{place.workspace}:{place.channel}", []).append(place.thread)
    return [
        MarkedChannel(workspace, channel, mark, tuple(threads.get(name, ())))
        for name, mark in gap.marks.items()
        for workspace, _, channel in (name.partition(":"),)
    ]


Posts = dict[str, HeardPost]
"""By the network's own id."""


def posts_in(gap: Gap, channel: str) -> Posts:
    """Return what was heard and shown of a channel (`network:workspace:channel`) on its network. Pure."""
    mine = f"{channel.partition(':')[0]}:"
    found = [one for one in gap.known if one.key.startswith(mine) and Place.of(one.conversation).of_channel == channel]
    return {one.key.rpartition(":")[2]: one for one in found}


def root_of(post: HeardPost) -> str:
    """Return the thread in which a message stands; empty = the channel itself. Pure."""
    thread = Place.of(post.conversation).thread
    return "" if thread == post.key.rpartition(":")[2] else thread


def has_lost(post: HeardPost, now: Perception) -> bool:
    """Return whether a message shows less besides its words than it did. Pure."""
    return len(brought(now)) + len(getattr(now.extra, "files", ())) < post.brings


async def swept(
    channels: Iterable[MarkedChannel], sweep: Callable[[MarkedChannel], AsyncIterator[Swept]]
) -> AsyncIterator[Swept]:
    """Read channels, one after another; one that may not be read is skipped.

    Raises: DeliveryLater, TimeoutError at once; DeliveryUnknown once the other channels are read, or at the second one
    that the network itself fails: it is down, and each channel would wait for it.
    """
    failed: DeliveryUnknown | None = None
    for channel in channels:
        try:
            async for one in sweep(channel):
                yield one
        except DeliveryRefused as error:
            log.warning("a channel cannot be read", extra={"channel": channel.channel, "code": error.code})
        except DeliveryUnknown as error:
            if failed and not isinstance(error.__cause__, MISREAD):
                raise
            failed = error
    if failed:
        raise failed


class Reached(Struct):
    """How far each channel was heard and read, by positions compared as text."""

    newest: dict[str, str] = field(default_factory=dict)
    """The newest message of each channel that arrived or was read, by anybody. The latest channel is last."""
    lost: dict[str, str] = field(default_factory=dict)
    """The first message of a channel that arrived and could not be stored. The next sweep begins before it."""
    _read_to: dict[str, str] = field(default_factory=dict)
    """Up to here, nothing of a channel is missing."""
    _came: dict[str, dict[str, None]] = field(default_factory=dict)
    """What arrived after that, individually: its arrival proves nothing about earlier messages."""

    def known(self, channel: str, ts: str) -> None:
        """Note that a message arrived or was read: `ts` is its position in the channel."""
        newest = max(ts, self.newest.pop(channel, ""))
        self.newest[channel] = newest
        if ts <= self._read_to.setdefault(channel, ts):
            return
        came = self._came.setdefault(channel, {})
        came[ts] = None
        if len(came) > MOST:
            self.read(channel, sorted(came)[MOST // 2])

    def read(self, channel: str, to: str) -> None:
        """Note that a channel was read up to a position, so that everything before it is known."""
        self._read_to[channel] = max(to, self._read_to.get(channel, ""))
        if later := [ts for ts in self._came.pop(channel, ()) if ts > to]:
            self._came[channel] = dict.fromkeys(later)
        self.known(channel, to)

    def has(self, channel: str, ts: str) -> bool:
        """Return whether the message at position `ts` is known: it arrived, was read, or is before what was read."""
        return ts <= self._read_to.get(channel, "") or ts in self._came.get(channel, ())

    def failed(self, channel: str, ts: str) -> None:
        """Note that a message arrived and could not be stored. The earliest of each channel is kept."""
        self.lost[channel] = min(ts, self.lost.get(channel, ts))
