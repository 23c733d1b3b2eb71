"""The control socket with input that no client of ours sends, and the logging of errors."""

import asyncio
import json
import logging
import resource
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from claudius.adapters.terminal import TerminalAdapter
from claudius.home import Home
from claudius.perception import Perception
from claudius.runtime.control import FRAME_BYTES, ControlConnection, ControlSocket, FrameTooLong, connect, most_clients
from claudius.runtime.logs import LOG, lost, start_log

MANY = 300
"""Clients that connect at once; the kernel's default refuses those after a hundred."""


@pytest.fixture
async def socket(home: Home) -> AsyncIterator[ControlSocket]:
    """Yield a socket that answers `echo` with the frame's words."""

    async def echo(connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Return the words."""
        await connection.send({"event": "echo", "words": frame.get("words")})

    socket = ControlSocket(home.socket, {"echo": echo})
    await socket.open()
    yield socket
    await socket.close()


@pytest.mark.parametrize(
    "line", [b"garbage", b"\x00\xff", b"[]", b"null", b'{"op":', b"[" * 200_000, b'{"a":' * 200_000], ids=repr
)
@pytest.mark.usefixtures("socket")
async def test_what_is_no_frame_ends_that_connection_alone(line: bytes, home: Home) -> None:
    """Garbage, other JSON and deep nesting close only that connection: no error escapes, and the next one is served."""
    unheard: list[Mapping[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    async with connect(home.socket) as connection:
        connection._writer.write(line[:80_000_000] + b"\n")
        assert await connection.receive() is None

    async with connect(home.socket) as connection:
        await connection.send({"op": "echo", "words": "still there"})
        answer = await connection.receive()

    assert answer == {"event": "echo", "words": "still there"}
    assert unheard == []


@pytest.mark.usefixtures("socket")
async def test_many_may_knock_at_once(home: Home) -> None:
    """Hundreds of clients that connect at the same moment are all accepted."""
    connections = [connect(home.socket) for _ in range(MANY)]

    for one in await asyncio.gather(*(each.__aenter__() for each in connections)):
        await one.send({"op": "echo", "words": "hello"})
        assert await one.receive() == {"event": "echo", "words": "hello"}

    for each in connections:
        await each.__aexit__(None, None, None)


@pytest.mark.usefixtures("socket")
async def test_a_frame_that_nobody_would_take_is_not_sent(home: Home) -> None:
    """The sender gets an error, and the connection stays usable."""
    async with connect(home.socket) as connection:
        with pytest.raises(FrameTooLong, match="too long"):
            await connection.send({"op": "echo", "words": "x" * FRAME_BYTES})
        await connection.send({"op": "echo", "words": "short"})

        assert await connection.receive() == {"event": "echo", "words": "short"}


@pytest.mark.parametrize(("allowed", "most"), [(256, 128), (1024, 512), (resource.RLIM_INFINITY, 4096)])
def test_half_of_the_files_are_for_clients(allowed: int, most: int) -> None:
    """Half of the open files are for clients; without a limit on files, clients have one all the same."""
    assert most_clients(allowed) == most


async def test_a_crowd_takes_no_more_than_its_half(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients over the limit are closed at once; once one has left, the next is heard."""
    monkeypatch.setattr("claudius.runtime.control.most_clients", lambda _: 1)
    socket = ControlSocket(home.socket, {})
    await socket.open()
    async with connect(home.socket) as first, connect(home.socket) as second:
        assert await second.receive() is None
        await first.send({"op": "nonsense"})
        assert await first.receive() == {"event": "error", "message": "no such operation: nonsense"}
    await socket.close()


async def test_a_line_is_heard_whatever_its_client_calls_it(home: Home) -> None:
    """An id with a lone surrogate becomes a key that the store can keep."""
    heard: list[Perception] = []

    async def accept(perception: Perception) -> bool:
        """Record the perception."""
        heard.append(perception)
        return True

    adapter = TerminalAdapter(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    listening = asyncio.create_task(adapter.listen(accept))
    socket = ControlSocket(home.socket, {"chat": adapter.chat})
    await socket.open()
    async with connect(home.socket) as connection:
        await connection.send({"op": "chat"})
        await connection.send({"op": "say", "id": "\ud800", "text": "half"})
        frames = [await connection.receive(), await connection.receive()]
    await adapter.close()
    await listening
    await socket.close()

    assert [frame and frame["event"] for frame in frames] == ["attached", "heard"]
    assert heard[0].key.encode() == "terminal:\ufffd".encode()


def test_a_second_waking_in_one_process_logs_each_line_once(home: Home) -> None:
    """A second start of the soul in one process takes over the log, without a second handler."""
    for _ in range(3):
        start_log(home.logs, "INFO", ())

    logging.getLogger("claudius.test").info("one line")

    assert len((home.logs / LOG).read_text().splitlines()) == 1


async def test_an_error_that_no_task_hears_stands_in_the_log(home: Home) -> None:
    """An error that the event loop would print to stderr, which a daemon lacks, is logged with its traceback."""
    start_log(home.logs, "INFO", ())
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lost)

    loop.call_soon(lambda: 1 // 0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    (line,) = map(json.loads, (home.logs / LOG).read_text().splitlines())
    assert line["level"] == "ERROR"
    assert "ZeroDivisionError" in line["traceback"]
