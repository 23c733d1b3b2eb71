"""Connect people at this machine to the soul through the control socket.

A line becomes a perception under the client's own id, so a line sent again is processed once. An utterance is delivered
when a client confirms that it was shown. One that nobody saw is offered at the next attach.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct, field

from claudius.config.load import Loaded
from claudius.errors import ClaudiusError, DeliveryLater
from claudius.failure import Failure
from claudius.foreign import unquoted
from claudius.intent import Utterance
from claudius.observed import Thinking
from claudius.perception import MessageExtra, Perception, given_in, private
from claudius.prompt import valid
from claudius.runtime.adapter import Accept, Link, PlainAdapter
from claudius.runtime.control import ControlConnection
from claudius.shown import How, Quoted

log = logging.getLogger(__name__)

NETWORK = "terminal"
NAME_CHARS = 64


def own_person() -> str:
    """Return the person id of this machine's user, made of their number if the machine knows no name of theirs."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's arbitrary user
        name = f"uid-{os.geteuid()}"
    return f"{NETWORK}:local:" + re.sub(r"[^\w.@-]", "-", name)


def seat(hello: Mapping[str, Any]) -> tuple[str, str, str, bool]:
    """Return the conversation, person id, name and ownership of a client. Raises: ValueError for an invalid name.

    An account of a machine, which may be `root`, is no name: this user has one once they say it.
    """
    conversation, other = str(hello.get("conversation") or ""), str(hello.get("as") or "")
    for word in (conversation, other):
        if len(word) > NAME_CHARS or not (word.isprintable() and word == word.strip()):
            raise ValueError(f"not a name: {word!r}")
    key = f"{NETWORK}:local:main:{conversation or 'main'}"
    if other:
        return key, f"{NETWORK}:local:as-{other}", other, False
    return key, own_person(), "", True


SHOWN_S = 30.0
"""How long a client may take to show an utterance before the utterance waits for another attach."""


class _Client(Struct, eq=False):
    connection: ControlConnection
    conversation: str
    person: str
    name: str
    is_owner: bool
    locale: str
    streams: bool
    """The client shows text as it is generated."""
    think: Callable[[], None] | None = None
    """Ends the telling of private thoughts; None = the client does not want them, or may not have them."""
    awaiting: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    hearing: set[asyncio.Task[None]] = field(default_factory=set)
    in_order: asyncio.Lock = field(default_factory=asyncio.Lock)


class TerminalAdapter(PlainAdapter):
    """The adapter for everyone who uses this machine."""

    name = NETWORK
    """A client shows a key once, so an utterance may be offered again at once: `find` finds nothing."""
    is_local = True

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        answered: Callable[[str], Sequence[Utterance]] | None = None,
        notices: Callable[[], Sequence[str]] = tuple,
        thoughts: Callable[[Callable[[Thinking], None]], Callable[[], None]] | None = None,
    ) -> None:
        """Use `clock` for the time of each perception.

        `answered` returns the reply to a line that is sent again because its speaker never saw the reply; attached
        clients are shown the `notices`, which say what is wrong with the soul's files and settings; `thoughts` has a
        listener told each private thought as it is written, until what it returns is called.
        """
        super().__init__()
        self.link = Link(connected=True)
        self.wake: Callable[[str], None] = lambda _: None
        """Called with each conversation that somebody attaches to; the server sets it."""
        self._clock = clock
        self._accept: Accept | None = None
        self._attached: dict[str, list[_Client]] = defaultdict(list)
        self._answered, self._notices, self._thoughts = answered, notices, thoughts
        self._closed = asyncio.Event()
        self._heard = 0
        self._newest_us = 0

    async def listen(self, accept: Accept) -> None:
        """Hear what the control socket's clients say (`chat`), until closed."""
        self._accept = accept
        await self._closed.wait()

    async def chat(self, connection: ControlConnection, hello: Mapping[str, Any]) -> None:
        """Serve one client of the control socket until it hangs up."""
        try:
            seated = seat(hello)
        except ValueError as error:
            await connection.send({"event": "error", "message": str(error)})
            return
        client = _Client(
            connection, *seated, valid(str(hello.get("locale") or ""))[:NAME_CHARS], streams=bool(hello.get("stream"))
        )
        conversation = client.conversation
        await connection.send({"event": "attached", "conversation": conversation, "person": client.person})
        self._attached[conversation].append(client)
        self._think_aloud(client, on=bool(hello.get("thoughts")))
        self.wake(conversation)
        try:
            while (frame := await connection.receive()) is not None:
                match frame.get("op"):
                    case "say":
                        # in its own task, so that confirmations are read before a failing write ends this loop
                        task = asyncio.create_task(self._hear(client, frame), name=f"hear {conversation}")
                        client.hearing.add(task)
                        task.add_done_callback(client.hearing.discard)
                    case "shown":
                        future = client.awaiting.get(str(frame.get("key")))
                        if future and not future.done():
                            future.set_result(None)
                        await connection.send({"event": "noted", "key": frame.get("key")})
                    case "thoughts":
                        self._think_aloud(client, on=bool(frame.get("on")))
                    case other:
                        await connection.send({"event": "error", "message": f"no such operation: {other}"})
        finally:
            self._think_aloud(client, on=False)
            self._attached[conversation].remove(client)
            if not self._attached[conversation]:
                del self._attached[conversation]
            for future in client.awaiting.values():
                future.cancel()

    def _think_aloud(self, client: _Client, *, on: bool) -> None:
        """Begin or end telling a client what the soul thinks in the owner's own conversation: to the owner alone."""
        if client.think:
            client.think()
            client.think = None
        if on and client.is_owner and self._thoughts:
            client.think = self._thoughts(partial(_tell_thought, client))

    async def _hear(self, client: _Client, frame: Mapping[str, Any]) -> None:
        async with client.in_order:
            try:
                now, attached = self._clock(), valid(str(frame.get("attached", "")))
                self._heard += 1
                self._newest_us = max(
                    self._newest_us, int(now.timestamp() * 1e6)
                )  # ascending even if the clock is set back
                said = valid(str(frame.get("id")))
                perception = Perception(
                    key=f"{NETWORK}:{said}",
                    conversation=client.conversation,
                    audience=private(client.person),
                    person=client.person,
                    name=client.name,
                    text=valid(str(frame.get("text", ""))),
                    at=now,
                    position=f"{self._newest_us:020d}.{self._heard:09d}",
                    is_owner=client.is_owner,
                    extra=MessageExtra(
                        locale=client.locale, shown=(Quoted(how=How.ATTACHED, text=attached),) if attached else ()
                    ),
                )
                if self._accept is None:
                    raise ConnectionAbortedError("nobody listens yet: the client finds whoever does")
                try:
                    new = await self._accept(perception)
                except ClaudiusError as error:
                    await client.connection.send({"event": "refused", "id": said, "message": error.message})
                    return
                await client.connection.send({"event": "heard", "id": said, "key": perception.key, "new": new})
                if not new and self._answered:
                    for utterance in self._answered(perception.key):
                        if utterance.person == client.person:
                            await client.connection.send(self._speech(utterance))
                self.wake(client.conversation)
            except ConnectionError as error:
                log.debug("a client went away", extra={"error": unquoted(error)})
                await client.connection.close()

    async def speak(self, utterance: Utterance) -> str:
        """Send an utterance to the attached clients. It is delivered when one of them has shown it.

        Raises: DeliveryLater if nobody confirms.
        """
        clients = self._screens(utterance.conversation, utterance.person)
        frame = self._speech(utterance)
        shown: list[asyncio.Future[None]] = []
        for client in clients:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            client.awaiting[utterance.key] = future
            try:
                await client.connection.send(frame)
            except ConnectionError:
                continue
            shown.append(future)
        is_shown, waiting = False, set(shown)
        while waiting and not is_shown:
            done, waiting = await asyncio.wait(waiting, timeout=SHOWN_S, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            is_shown = bool([future for future in done if not future.cancelled()])
        for client in clients:
            client.awaiting.pop(utterance.key, None)
        if not is_shown:
            raise DeliveryLater(None)
        return f"shown:{utterance.key}"

    async def answer(self, perception: Perception, text: str) -> None:
        """Show the answer to a command to the clients of the person who gave it, and to no others."""
        answer: dict[str, Any] = {"event": "speech", "key": perception.key, "turn": "", "body": text, "kind": "reply"}
        answer |= {"verb": "said", "apology": None, "answers": [perception.key], "notices": []}
        await self._tell(self._screens(given_in(perception), perception.person), answer)

    def _speech(self, utterance: Utterance) -> dict[str, Any]:
        said: dict[str, Any] = msgspec.to_builtins(utterance)
        return {"event": "speech", **said, "notices": list(self._notices())}

    def _screens(self, conversation: str, person: str) -> list[_Client]:
        """Return one person's clients there: what answers that person is not shown to others who are attached."""
        return [client for client in self._attached.get(conversation, ()) if client.person == person]

    async def working(self, perception: Perception, *, on: bool) -> None:
        """Tell everyone attached to the conversation that the soul is thinking, or has stopped."""
        await self._tell(self._attached.get(perception.conversation, ()), {"event": "working", "on": on})

    async def hold(self, perception: Perception, line: str) -> None:
        """Show everyone attached a line in the typing indicator, saying that this takes a moment."""
        attached = self._attached.get(perception.conversation, ())
        await self._tell(attached, {"event": "working", "on": True, "text": line})

    async def failed(self, perception: Perception, turn: str, failure: Failure) -> None:
        """Show the owner's own clients what kept an answer from coming."""
        owners = [one for one in self._screens(perception.conversation, perception.person) if one.is_owner]
        frame = {"event": "failed", "key": perception.key, "turn": turn, "again": failure.is_retried, **failure.told}
        await self._tell(owners, frame)

    def streams(self, perception: Perception) -> bool:
        """Return whether a client that will receive the answer shows text as it is generated."""
        screens = self._screens(perception.conversation, perception.person)
        return bool([client for client in screens if client.streams])

    async def show(self, utterance: Utterance, text: str) -> None:
        """Send the next piece of a reply to the clients that show text as it is generated."""
        await self._tell(
            [client for client in self._screens(utterance.conversation, utterance.person) if client.streams],
            {"event": "delta", "key": utterance.key, "turn": utterance.turn, "text": text},
        )

    async def close(self) -> None:
        """Stop listening. The control socket closes its own connections."""
        self._accept = None
        self._closed.set()

    async def _tell(self, clients: Sequence[_Client], frame: Mapping[str, Any]) -> None:
        for client in tuple(clients):
            try:
                await client.connection.send(frame)
            except ConnectionError:
                log.debug("a client went away")


def _tell_thought(client: _Client, seen: Thinking) -> None:
    """Tell a client one piece of a thought, if the turn is its own person's: in order with the words that follow."""
    if (seen.conversation, seen.audience) == (client.conversation, private(client.person)):
        kind = "void" if seen.is_void else "thinking"
        client.connection.post(
            {"event": kind, "turn": seen.turn, "step": seen.step, "verb": seen.verb, "text": seen.text}
        )


def build(loaded: Loaded, clock: Callable[[], datetime]) -> TerminalAdapter:  # noqa: ARG001 - signature of every adapter
    """Build the adapter."""
    return TerminalAdapter(clock)
