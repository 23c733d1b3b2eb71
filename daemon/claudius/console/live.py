"""What happens now, for every open tab: one listener of the soul's stream, and a seat in one's own conversations.

The console is a client of the control socket like any terminal; where no daemon runs, the first word said wakes the
soul in this process. Source: the console design, W10 to W13.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from typing import Any

from claudius.console.walls import Refusal
from claudius.errors import ClaudiusError, TryAgain
from claudius.foreign import unquoted
from claudius.home import Home
from claudius.memory.records import Records
from claudius.reports.opened import records
from claudius.reports.session import attach, session
from claudius.runtime.control import Connection, connect

log = logging.getLogger(__name__)

KEPT_EVENTS = 1000
BEAT_S = 15.0
LOOK_S = 1.0
"""How often to look whether a daemon runs, and whether something else changed the database or a soul file."""
HEARD_S = 30.0
"""How long a word may take to be heard: the soul may have to wake for it."""
OWN = "terminal:local:main:"
"""How the conversations begin in which the owner may write here."""
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
        self._seats: dict[str, Seat] = {}
        self._awake = AsyncExitStack()
        self._is_woken = False
        self._ended = False

    def start(self) -> None:
        """Begin to listen and to look."""
        for work, name in ((self._listen(), "console stream"), (self._look(), "console look")):
            self._tasks.add(asyncio.create_task(work, name=name))

    async def stop(self) -> None:
        """End every stream, then let the soul sleep if this process woke it."""
        self._ended = True
        async with self._grew:
            self._grew.notify_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for seat in tuple(self._seats.values()):
            await seat.leave()
        await self._awake.aclose()

    async def tell(self, kind: str, more: Mapping[str, Any] | None = None) -> None:
        """Tell every tab of an event."""
        at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        async with self._grew:
            self._n += 1
            event = {"at": at, "conversation": "", "turn": "", "text": "", **(more or {}), "n": self._n, "kind": kind}
            self._events.append(event)
            self._grew.notify_all()

    async def follow(self, after: int | None, conversation: str = "") -> AsyncIterator[dict[str, Any]]:
        """Yield events as they come, those after the event `after` first; `gone` where they are no longer kept.

        With `conversation`, sit in it for as long as this runs.
        """
        seat = await self._seat(conversation) if conversation.startswith(OWN) else None
        if seat:
            seat.tabs += 1
        try:
            reached = self._n if after is None else after
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
        finally:
            if seat:
                seat.tabs -= 1
                if not seat.tabs:
                    self._seats.pop(conversation, None)
                    await seat.leave()

    async def say(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Say one line; return once it is heard. An id is heard once. Raises: Refusal."""
        seat = await self._own_seat(str(said.get("conversation") or ""), wake=True)
        words, name = str(said.get("text") or ""), str(said.get("id") or "")
        if not words.strip():
            raise Refusal(400, "usage", "nothing was said")
        if not name:
            raise Refusal(400, "usage", "a line needs an `id` of its own, so that it is heard once")
        frame = await seat.ask({"op": "say", "id": name, "text": words}, HEARD_S)
        if frame.get("event") == "refused":
            raise Refusal(409, "refused", str(frame.get("message")))
        return {"id": frame.get("id"), "key": frame.get("key"), "new": frame.get("new")}

    async def shown(self, conversation: str, key: str) -> None:
        """Acknowledge a speech that a page has drawn."""
        if seat := self._seats.get(conversation):
            with suppress(ConnectionError):
                await seat.connection.send({"op": "shown", "key": key})

    async def _own_seat(self, conversation: str, *, wake: bool) -> Seat:
        if not conversation.startswith(OWN):
            raise Refusal(403, "elsewhere", "you read here; write in your own conversation")
        if wake and not self._is_woken and not await self._is_running():
            await self._awake.enter_async_context(session(self._home))
            self._is_woken = True
        seat = await self._seat(conversation)
        if seat is None:
            raise Refusal(503, "later", "the soul cannot be reached: try again")
        return seat

    async def _is_running(self) -> bool:
        try:
            async with connect(self._home.socket):
                return True
        except OSError:
            return False

    async def _seat(self, conversation: str) -> Seat | None:
        known = self._seats.get(conversation)
        if known and not known.is_gone:
            return known
        stack = AsyncExitStack()
        try:
            connection = await stack.enter_async_context(connect(self._home.socket))
            hello = {"op": "chat", "conversation": conversation.removeprefix(OWN), "stream": True}
            if await attach(connection, hello) is None:
                raise ConnectionError("it went away")
        except (OSError, TryAgain) as error:
            await stack.aclose()
            log.debug("no seat", extra={"error": unquoted(error)})
            return None
        seat = Seat(self, conversation, connection, stack)
        seat.tabs = known.tabs if known else 0
        self._seats[conversation] = seat
        return seat

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
        async with AsyncExitStack() as stack:
            await self._looking(stack, version, mark, files)

    async def _looking(self, stack: AsyncExitStack, version: int, mark: str, files: dict[str, float]) -> None:
        kept: Records | None = None
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
            for conversation, seat in tuple(self._seats.items()):
                if seat.is_gone and seat.tabs:
                    await self._seat(conversation)

    def _files(self) -> dict[str, float]:
        with suppress(OSError):
            return {str(path): path.stat().st_mtime for path in self._home.soul.rglob("*.md")}
        return {}


class Seat:
    """A place in one of the owner's own conversations, shared by the tabs that show it."""

    def __init__(self, live: Live, conversation: str, connection: Connection, stack: AsyncExitStack) -> None:
        """Tell `live` of each frame that comes over `connection`, until it ends; `stack` closes it."""
        self.connection = connection
        self.tabs = 0
        self.is_gone = False
        self._live, self._conversation, self._stack = live, conversation, stack
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._task = asyncio.create_task(self._pump(), name=f"console seat {conversation}")

    async def ask(self, frame: Mapping[str, Any], within_s: float) -> dict[str, Any]:
        """Send a line and return what became of it. Raises: Refusal if nothing did in time."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[str(frame["id"])] = future
        try:
            await self.connection.send(frame)
            async with asyncio.timeout(within_s):
                return await future
        except (ConnectionError, TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not future.cancelled():
                raise
            raise Refusal(503, "later", "the soul was not reached: say it again, it is heard once") from error
        except ClaudiusError as error:  # too long
            raise Refusal(413, "size", error.message) from error
        finally:
            self._asked.pop(str(frame["id"]), None)

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
                await self._live.tell(_KINDS.get(kind, kind), {"conversation": self._conversation, **frame})
        except (OSError, ValueError) as error:
            log.debug("a seat was lost", extra={"error": unquoted(error)})
        finally:
            self.is_gone = True
            for future in self._asked.values():
                future.cancel()
