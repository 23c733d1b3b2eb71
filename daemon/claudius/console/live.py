"""What happens now, for every open tab: one listener of the soul's stream, and a seat in one's own conversations.

The console is a client of the control socket like any terminal; where no daemon runs, the first word said wakes the
soul in this process. Source: the console design, W10 to W13.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from claudius.console.walls import Refusal
from claudius.errors import ClaudiusError, TryAgain
from claudius.foreign import unquoted
from claudius.home import Home
from claudius.memory.records import Records
from claudius.reports.opened import records
from claudius.reports.session import attach, session
from claudius.runtime.control import ControlConnection, connect

log = logging.getLogger(__name__)

KEPT_EVENTS = 1000
BEAT_S = 15.0
LOOK_S = 1.0
"""How often to look whether a daemon runs, and whether something else changed the database or a soul file."""
HEARD_S = 30.0
"""How long a word may take to be heard: the soul may have to wake for it."""
LINGER_S = 2.0
"""How long a seat stays taken after its last tab went: a page that is loaded again misses no word."""
OWN = "terminal:local:main:"
"""How the conversations begin in which the owner may write here."""
Tell = Callable[[str, Mapping[str, Any]], Awaitable[None]]
ENDS = ("gate", "error", "speech")
"""Kinds that tell the end of a turn; the first comes once it is durable."""
_KINDS = {"delta": "speak.delta"}
"""Kinds of a terminal client's frames that have another name here."""


class Live:
    """The live part of one console. Tabs share its connections and its last thousand events."""

    def __init__(self, home: Home) -> None:
        """Serve the tabs of the console of `home`."""
        self._home = home
        self._events: deque[dict[str, Any]] = deque(maxlen=KEPT_EVENTS)
        self._n = 0
        self._grew = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._places: dict[str, SharedSeat] = {}
        self._awake = AsyncExitStack()
        self._waking = asyncio.Lock()
        self._is_woken = False
        self._ended = False

    def start(self) -> None:
        """Begin to listen and to look."""
        self._begin(self._listen(), "console stream")
        self._begin(self._look(), "console look")

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End every stream, then let the soul sleep if this process woke it."""
        self._ended = True
        async with self._grew:
            self._grew.notify_all()
        for task in (going := tuple(self._tasks)):
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for place in tuple(self._places.values()):
            await place.leave()
        await self._awake.aclose()

    async def tell(self, kind: str, more: Mapping[str, Any] | None = None) -> None:
        """Tell every tab of an event."""
        at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        async with self._grew:
            self._n += 1
            event = {"at": at, "conversation": "", "turn": "", "text": "", **(more or {}), "n": self._n, "kind": kind}
            self._events.append(event)
            self._grew.notify_all()

    async def follow(self, after: int | None, conversation: str = "") -> AsyncGenerator[dict[str, Any], None]:
        """Yield events as they come, those after the event `after` first; `gone` where they are no longer kept.

        Without `after`, those of turns under way come first, from their beginning. With `conversation`, sit in it for
        as long as this runs.
        """
        async with AsyncExitStack() as stack:
            if conversation.startswith(OWN):
                await (await stack.enter_async_context(self._sitting(conversation))).seat()
            reached = self._before_what_goes_on() if after is None else after
            first = self._events[0]["n"] if self._events else self._n + 1
            if reached < first - 1 or reached > self._n:
                reached = self._n
                yield {"n": reached, "kind": "gone"}
            yield {"n": reached, "kind": "beat"}
            while not self._ended:
                fresh = [event for event in self._events if event["n"] > reached]
                for event in fresh:
                    reached = event["n"]
                    yield event
                if fresh:
                    continue
                try:
                    async with asyncio.timeout(BEAT_S), self._grew:
                        await self._grew.wait()
                except TimeoutError:
                    yield {"n": reached, "kind": "beat"}

    def _before_what_goes_on(self) -> int:
        """Return the number of the event before the first of a turn that has not ended."""
        newest = {event["conversation"]: event["turn"] for event in self._events if event["turn"]}
        ended = {event["turn"] for event in self._events if event["kind"] in ENDS}
        going_on = set(newest.values()) - ended
        return next((event["n"] - 1 for event in self._events if event["turn"] in going_on), self._n)

    async def say(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Say one line; return once it is heard. An id is heard once. Raises: Refusal."""
        conversation, words = str(said.get("conversation") or ""), str(said.get("text") or "")
        if not conversation.startswith(OWN):
            raise Refusal(403, "elsewhere", "you read here; write in your own conversation")
        if not words.strip():
            raise Refusal(400, "usage", "nothing was said")
        if not (name := str(said.get("id") or "")):
            raise Refusal(400, "usage", "a line needs an `id` of its own, so that it is heard once")
        await self._wake()
        async with self._sitting(conversation) as place:
            if (seat := await place.seat()) is None:
                raise Refusal(503, "later", "the soul cannot be reached: try again")
            frame = await seat.ask(name, {"op": "say", "id": name, "text": words}, HEARD_S)
        if frame.get("event") == "refused":
            raise Refusal(409, "refused", str(frame.get("message")))
        return {"id": frame.get("id"), "key": frame.get("key"), "new": frame.get("new")}

    async def shown(self, conversation: str, key: str) -> None:
        """Acknowledge a speech that a page has drawn."""
        if place := self._places.get(conversation):
            await place.shown(key)

    async def _wake(self) -> None:
        """Run the soul in this process until the end, if no daemon runs."""
        async with self._waking:
            if not self._is_woken and not await self._is_running():
                await self._awake.enter_async_context(session(self._home))
                self._is_woken = True

    async def _is_running(self) -> bool:
        try:
            async with connect(self._home.socket):
                return True
        except OSError:
            return False

    @asynccontextmanager
    async def _sitting(self, conversation: str) -> AsyncIterator[SharedSeat]:
        """Be one of those who share the seat in a conversation; it is left a moment after the last one went."""
        if (place := self._places.get(conversation)) is None:
            place = self._places[conversation] = SharedSeat(self._home, conversation, self.tell)
        place.users += 1
        try:
            yield place
        finally:
            self._begin(self._rise(place, conversation), f"console rises from {conversation}")

    async def _rise(self, place: SharedSeat, conversation: str) -> None:
        await asyncio.sleep(LINGER_S)
        place.users -= 1
        if not place.users:
            del self._places[conversation]
            await place.leave()

    async def _listen(self) -> None:
        """Hear the soul's own stream, whenever a daemon runs."""
        was_awake: bool | None = None
        while True:
            try:
                async with connect(self._home.socket) as connection:
                    await connection.send({"op": "stream", "deltas": True})
                    while frame := await connection.receive():
                        if "kind" in frame:
                            await self.tell(str(frame["kind"]), frame)
                        elif was_awake is not True:
                            was_awake = True
                            await self.tell("changed", {"text": "awake"})
            except (OSError, ValueError):
                pass
            if was_awake is not False:
                was_awake = False
                await self.tell("changed", {"text": "asleep"})
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        """Tell when anything changed the database, or a soul file, whoever it was."""
        version, mark, files = 0, "", self._files()
        kept: Records | None = None
        with ExitStack() as stack:
            while True:
                await asyncio.sleep(LOOK_S)
                with suppress(ClaudiusError):
                    if kept is None and self._home.database.exists():
                        kept = stack.enter_context(records(self._home, is_lasting=True))
                    version, found = kept.marks(version) if kept else (0, "")
                    if found and mark and found != mark:
                        await self.tell("changed")
                    mark = found or mark
                now = await asyncio.to_thread(self._files)
                if now != files:
                    files = now
                    await self.tell("soul")
                for place in tuple(self._places.values()):
                    with suppress(ClaudiusError):  # whoever sits there is told
                        await place.seat()

    def _files(self) -> dict[str, float]:
        with suppress(OSError):
            return {str(path): path.stat().st_mtime for path in self._home.soul.rglob("*.md")}
        return {}


class SharedSeat:
    """One of the owner's own conversations, as long as anybody follows it or speaks there: one seat for all of them."""

    def __init__(self, home: Home, conversation: str, tell: Tell) -> None:
        """Sit in `conversation` once a seat is wanted; `tell` is told of each frame that comes there."""
        self.users = 0
        self._home, self._conversation, self._tell = home, conversation, tell
        self._seat: Seat | None = None
        self._taking = asyncio.Lock()

    async def seat(self) -> Seat | None:
        """Return the seat, taken anew if it was lost; None if the soul cannot be reached, or nobody is left here."""
        async with self._taking:
            if self._seat and (self._seat.is_gone or not self.users):
                await self._seat.leave()
                self._seat = None
            if self._seat is None and self.users:
                self._seat = await self._take()
            return self._seat

    async def leave(self) -> None:
        """Give the seat back."""
        async with self._taking:
            if self._seat:
                await self._seat.leave()
                self._seat = None

    async def shown(self, key: str) -> None:
        """Acknowledge a speech that was drawn here."""
        if self._seat:
            with suppress(ConnectionError):
                await self._seat.connection.send({"op": "shown", "key": key})

    async def _take(self) -> Seat | None:
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(connect(self._home.socket))
                hello = {"op": "chat", "conversation": self._conversation.removeprefix(OWN), "stream": True}
                async with asyncio.timeout(HEARD_S):
                    if await attach(connection, hello) is None:
                        return None
            except (OSError, TryAgain) as error:
                log.debug("no seat", extra={"error": unquoted(error)})
                return None
            return Seat(self._tell, self._conversation, connection, stack.pop_all())


class Seat:
    """A connection that sits in a conversation."""

    def __init__(self, tell: Tell, conversation: str, connection: ControlConnection, stack: AsyncExitStack) -> None:
        """Tell of each frame that comes over `connection`, until it ends; `stack` closes it."""
        self.connection = connection
        self.is_gone = False
        self._tell, self._conversation, self._stack = tell, conversation, stack
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._task = asyncio.create_task(self._pump(), name=f"console seat {conversation}")

    async def ask(self, name: str, frame: Mapping[str, Any], within_s: float) -> dict[str, Any]:
        """Send the line of that name and return what became of it; who asks meanwhile is told the same.

        Raises: Refusal if nothing did in time.
        """
        if is_first := (future := self._asked.get(name)) is None:
            future = self._asked[name] = asyncio.get_running_loop().create_future()
            future.add_done_callback(lambda _: self._asked.pop(name, None))
        try:
            if is_first:
                await self.connection.send(frame)
            async with asyncio.timeout(within_s):
                return await asyncio.shield(future)  # a page that goes away takes nothing from one that waits as well
        except (ConnectionError, TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not future.cancelled():
                raise
            future.cancel()
            raise Refusal(503, "later", "the soul was not reached: say it again, it is heard once") from error
        except ClaudiusError as error:  # too long
            future.cancel()
            raise Refusal(413, "size", error.message) from error

    async def leave(self) -> None:
        """Leave the conversation."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._stack.aclose()

    async def _pump(self) -> None:
        try:
            while (frame := await self.connection.receive()) is not None:
                kind = str(frame.pop("event", ""))
                future = self._asked.get(str(frame.get("id"))) if kind in ("heard", "refused") else None
                if future and not future.done():
                    future.set_result({"event": kind, **frame})
                await self._tell(_KINDS.get(kind, kind), {"conversation": self._conversation, **frame})
        except (OSError, ValueError) as error:
            log.debug("a seat was lost", extra={"error": unquoted(error)})
        finally:
            self.is_gone = True
            for future in self._asked.values():
                future.cancel()
