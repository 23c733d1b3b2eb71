"""A way to the soul from a command: through the running process's socket, or awake inside this very command."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from msgspec import Struct, field

from claudius.errors import AlreadyRunning, BadHome, TryAgain, UsageProblem
from claudius.home import Home
from claudius.runtime.control import Connection, connect

JOIN_S = 30.0
"""How long a process that holds the home may take to open, or close, its socket."""
LOOK_AGAIN_S = 0.1
ANSWER_S = 10.0


class HeldBack(TryAgain):
    """The soul is not awake yet."""

    def __init__(self, message: str, wait_s: float) -> None:
        """Say why, and for how many seconds still."""
        super().__init__(message)
        self.wait_s = wait_s


@asynccontextmanager
async def session(home: Home, join_s: float = JOIN_S) -> AsyncIterator[Connection]:
    """Give a connection to the soul of `home`; where no process holds the home, this one does until the end.

    Raises: ClaudiusError where it can neither be joined nor woken within `join_s` seconds.
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
            async with _awake(home) as connection:
                yield connection
                return
        except AlreadyRunning:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(LOOK_AGAIN_S)


@asynccontextmanager
async def _awake(home: Home) -> AsyncIterator[Connection]:
    from claudius.compose import compose

    server = (await compose(home)).server
    await server.start()
    try:
        async with connect(home.socket) as connection:
            yield connection
    finally:
        await server.stop()


class Line(Struct):
    """One line said, and what has come back for it."""

    text: str
    id: str = field(default_factory=lambda: str(uuid4()))
    is_heard: bool = False
    """The soul has accepted it: it is durable."""

    @property
    def key(self) -> str:
        """The key under which the soul heard it."""
        return f"terminal:{self.id}"


async def attach(connection: Connection, hello: Mapping[str, Any]) -> dict[str, Any] | None:
    """Begin to listen to a conversation; None where the process behind the connection went away.

    Raises: UsageProblem where the soul does not let us, HeldBack where it is not awake yet.
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


async def ask(home: Home, op: str, **words: str) -> dict[str, Any] | None:
    """Ask the running process one thing; None where none runs. Raises: TryAgain where it does not answer."""
    try:
        async with asyncio.timeout(ANSWER_S), connect(home.socket) as connection:
            await connection.send({"op": op, **words})
            return await connection.receive()
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (NotADirectoryError, PermissionError) as error:
        raise BadHome(f"{home.root}: {error.strerror}; set CLAUDIUS_HOME to a directory of your own") from error
    except (ConnectionError, TimeoutError) as error:
        raise TryAgain(f"the process that holds {home.root} does not answer: try again") from error
