"""Processes of our own, each in its own process group: JSON lines both ways, a limit on a line, killed on demand.

And threads of our own, which keep no process alive.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from claudius.errors import Crashed, Cut, Unavailable

T = TypeVar("T")

LINE_BYTES = 4 * 1_048_576
"""The longest line that is read of a child or a stream."""
ENDLESS = "it wrote more than 4 MB in one piece"
PATIENCE_S = 5.0
"""How long a child may take to end by itself."""
STDERR_CHARS = 2_000
INHERITED = tuple(
    """PATH HOME USER LANG LC_ALL LC_CTYPE TZ SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy""".split()  # noqa: SIM905 - a list of names reads best as words
)
"""Everything that a child sees of the daemon's environment."""


def bounding(ended: Callable[[], None] = lambda: None) -> Callable[[Any], Awaitable[None]]:
    """Return a hook for the responses of httpx2 that breaks one off at a line longer than LINE_BYTES.

    A library would collect the whole line, again at each piece. `ended` is called then.
    """
    import httpx2  # noqa: PLC0415 - it comes with an extra, and takes long to load

    class Bounded(httpx2.AsyncByteStream):
        """A body's pieces, as long as its lines are short enough."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            length = 0
            async for piece in self._inner:
                _, newline, rest = piece.rpartition(b"\n")
                length = len(rest) if newline else length + len(piece)
                if length > LINE_BYTES:
                    ended()
                    raise httpx2.RemoteProtocolError("a line without end")
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: httpx2.Response) -> None:
        response.stream = Bounded(response.stream)

    return bound


class Children:
    """Some children. All are killed at once, including one that is just being started."""

    def __init__(self) -> None:
        self._alive: set[Child] = set()
        self._is_closed = False

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Child:
        """Start a child with exactly this environment. Raises: Unavailable."""
        child = await Child.start(argv, env=env, cwd=cwd)
        self._alive.add(child)
        if self._is_closed:
            child.kill()
        return child

    async def end(self, child: Child) -> int:
        """Wait for a child to end, reap it, and return its exit code."""
        try:
            return await child.end()
        finally:
            self._alive.discard(child)

    def close(self) -> None:
        """Kill all children, and any that would still be started."""
        self._is_closed = True
        for child in self._alive:
            child.kill()


class Child:
    """A running child. Whoever starts one ends it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = ""
        self._listener = asyncio.create_task(self._gather(), name=f"stderr-{process.pid}")

    @classmethod
    async def start(cls, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Self:
        """Start a child in its own process group, with exactly this environment. Raises: Unavailable."""
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
                limit=LINE_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"{argv[0]} cannot be started: {error.strerror}") from error
        return cls(process)

    @property
    def pid(self) -> int:
        """Its process id, which is also its group's."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.returncode is None

    @property
    def complaint(self) -> str:
        """The last STDERR_CHARS characters that it wrote to stderr."""
        return self._stderr

    @property
    def rss_bytes(self) -> int:
        """Its resident memory, or 0 if the system does not tell."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    async def write(self, line: str) -> None:
        """Write to its input. Raises: Crashed if it no longer reads."""
        assert self._process.stdin  # noqa: S101 - opened above
        self._process.stdin.write(line.encode("utf-8", "replace"))
        try:
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Crashed from error

    def end_input(self) -> None:
        """Close its input. It ends when it has answered."""
        assert self._process.stdin  # noqa: S101 - opened above
        self._process.stdin.close()

    async def lines(self) -> AsyncGenerator[dict[str, Any], None]:
        """Read its messages, also several of a line, until it ends. Raises: Cut for an endless or broken line."""
        assert self._process.stdout  # noqa: S101 - opened above
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError as error:
                raise Cut(ENDLESS) from error
            if not line:
                return
            if not line.lstrip().startswith((b"{", b"[{")):
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                if not line.lstrip().startswith(b"{"):
                    continue
                raise Cut("it wrote a line that is no JSON") from error
            for message in found if isinstance(found, list) else (found,):
                yield message

    def kill(self) -> None:
        """Kill it and whatever it started, now."""
        if self.is_alive:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self, patience_s: float = PATIENCE_S) -> int:
        """Wait until it has ended, kill it after `patience_s` seconds, reap it, and return its exit code."""
        try:
            self.end_input()
            async with asyncio.timeout(patience_s):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self.kill()
            code = await self._process.wait()
            await asyncio.gather(self._listener, self._drain())
        return code

    async def _drain(self) -> None:
        """Read the remaining output, so that the pipe closes."""
        assert self._process.stdout  # noqa: S101 - opened above
        while await self._process.stdout.read(LINE_BYTES):
            pass

    async def _gather(self) -> None:
        assert self._process.stderr  # noqa: S101 - opened above
        while piece := await self._process.stderr.read(STDERR_CHARS):
            self._stderr = (self._stderr + piece.decode("utf-8", "replace"))[-STDERR_CHARS:]


async def in_own_thread(call: Callable[[], T], name: str) -> T:
    """Run a function in a thread of its own: one that hangs takes no place of another, and keeps no process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def end(method: str, value: Any) -> None:
        if not future.done():
            getattr(future, method)(value)

    def work() -> None:
        ended: tuple[str, Any]
        try:
            ended = ("set_result", call())
        except Exception as error:  # noqa: BLE001 - it is raised where the call is awaited
            ended = ("set_exception", error)
        with suppress(RuntimeError):  # the process stops
            loop.call_soon_threadsafe(end, *ended)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future
