"""Connect a command to the soul: through the running process's socket, or by running the soul in this command."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from msgspec import Struct, field

from claudius.errors import AlreadyRunning, BadHome, ClaudiusError, TryAgain, UsageProblem
from claudius.home import Home
from claudius.runtime.control import ControlConnection, connect

JOIN_S = 30.0
"""How long to wait for a process that holds the home to open, or close, its socket."""
LOOK_AGAIN_S = 0.1
ANSWER_S = 10.0
GRACE_S = 8.0
"""How long a command that runs the soul itself lets what it began go on."""


class HeldBack(TryAgain):
    """The soul is not awake yet."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


@asynccontextmanager
async def session(home: Home, join_s: float = JOIN_S, grace_s: float = GRACE_S) -> AsyncIterator[ControlConnection]:
    """Yield a connection to the soul of `home`; if no process holds the home, this one does until the end.

    `grace_s`: how long what it began may go on then. Raises: ClaudiusError if neither succeeds within `join_s`.
    """
    deadline = time.monotonic() + join_s
    while True:
        try:
            async with connect(home.socket) as connection:
                yield connection
                return
        except (FileNotFoundError, ConnectionRefusedError):
            pass
        try:
            from claudius.compose import compose

            server = (await compose(home)).server
            try:
                await server.start()
                async with connect(home.socket) as connection:
                    yield connection
                    return
            finally:
                await server.stop(grace_s=grace_s)
        except AlreadyRunning:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(LOOK_AGAIN_S)


class SentLine(Struct):
    """One line that was sent, and its state."""

    text: str
    attached: str = ""
    """A text that is shown with it."""
    id: str = field(default_factory=lambda: str(uuid4()))
    is_heard: bool = False
    """Whether the soul has accepted it; it is then durable."""
    failure: dict[str, str] | None = None
    """What kept its answer from coming, if anything did."""

    @property
    def frame(self) -> dict[str, str]:
        """What says it to the soul."""
        said = {"op": "say", "id": self.id, "text": self.text}
        return said | {"attached": self.attached} if self.attached else said

    @property
    def key(self) -> str:
        """The key of the soul's perception of it."""
        return f"terminal:{self.id}"


async def attach(connection: ControlConnection, hello: Mapping[str, Any]) -> dict[str, Any] | None:
    """Attach to a conversation; None if the connection was lost.

    Raises: UsageProblem if the soul refuses, HeldBack if it is not awake yet.
    """
    try:
        await connection.send(hello)
        answer = await connection.receive()
    except ConnectionError:
        return None
    if answer is not None and answer.get("event") == "later":
        raise HeldBack(str(answer.get("message")), float(answer.get("wait_s", "inf")))
    if answer is not None and answer.get("event") != "attached":
        raise UsageProblem(f"that conversation cannot be joined: {answer.get('message')}")
    return answer


async def say_once(home: Home, conversation: str, text: str, within_s: float) -> str:
    """Say one line to the running soul and return its reply, with its receipts.

    Raises: OSError if none is running; ClaudiusError if the line is not accepted, or no reply comes in time.
    """
    line, said = SentLine(text), ""
    try:
        async with asyncio.timeout(within_s), connect(home.socket) as connection:
            if not await attach(connection, {"op": "chat", "conversation": conversation}):
                raise TryAgain("the soul went away: try again")
            await connection.send({"op": "say", "id": line.id, "text": text})
            while (frame := await connection.receive()) is not None:
                if frame["event"] == "refused":
                    raise ClaudiusError(f"not accepted: {frame['message']}")
                if frame["event"] == "speech":
                    if line.key in frame["answers"]:
                        said = "\n".join([frame["body"], *frame.get("receipts", ())])
                    await connection.send({"op": "shown", "key": frame["key"]})
                if said and frame["event"] == "noted":
                    return said
    except TimeoutError:
        raise TryAgain(f"no reply within {within_s:g} s; what you said is kept") from None
    raise TryAgain("the soul went away; what you said is kept")


async def ask(home: Home, op: str, **words: object) -> dict[str, Any] | None:
    """Send one request to the running process; None if none is running. Raises: TryAgain if it does not answer.

    The process may wait as long as a `wait_s` among the words says.
    """
    within_s = ANSWER_S + float(str(words.get("wait_s", 0)))
    try:
        async with asyncio.timeout(within_s), connect(home.socket) as connection:
            await connection.send({"op": op, **words})
            return await connection.receive()
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (NotADirectoryError, PermissionError) as error:
        raise BadHome(f"{home.root}: {error.strerror}; set CLAUDIUS_HOME to a directory that you own") from error
    except (ConnectionError, TimeoutError) as error:
        raise TryAgain(f"the process that holds {home.root} does not answer: try again") from error


async def wake_and_ask(home: Home, op: str, *, grace_s: float = GRACE_S, **words: object) -> dict[str, Any]:
    """Send one request to the soul, which runs in this process if no other holds the home.

    Raises: ClaudiusError with what it answers instead; TryAgain if it went away.
    """
    async with session(home, grace_s=grace_s) as connection:
        await connection.send({"op": op, **words})
        answer = await connection.receive()
    if answer is None:
        raise TryAgain("the soul went away before it answered: try again")
    if answer["event"] == "error":
        raise ClaudiusError(str(answer["message"]))
    return answer
