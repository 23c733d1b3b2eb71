"""What servers offer over MCP, as tools: they live in a child process, `mcp_worker`, started with the first call.

Nothing here imports the SDK, and nothing waits for a server but a call of one of its tools, or its owner's command.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, convert

from claudius.children import INHERITED, Child
from claudius.config.schema import ToolServerSettings
from claudius.errors import Crashed, Cut, ToolFailed, ToolRefused, ToolTimedOut, Unavailable
from claudius.home import DIRECTORY_MODE
from claudius.memory.pins import Pin
from claudius.tool import JSON, Caller, Tool, ToolClass
from claudius.tools.pins import Definition, closed, differences, purpose

STUCK_S = 5.0
"""How long the child may take to confirm that a call was cancelled; then it is killed."""
FAILURES, WITHIN = 5, timedelta(minutes=10)
LONGEST_WAIT = timedelta(minutes=5)
DOWN = timedelta(days=1)


class Listed(Struct, frozen=True):
    """What a server offers now."""

    tools: tuple[Definition, ...]
    bad: tuple[str, ...] = ()
    """What was left out, and why."""


class McpHands:
    """The child process, and what is asked of it."""

    def __init__(self, cwd: Path, changed: Callable[[str], None] = lambda _: None) -> None:
        """`cwd`: its empty directory; `changed` is called with a server's name once its tools must be listed anew."""
        self._cwd, self._changed = cwd, changed
        self._child: Child | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._groups: dict[str, int] = {}
        self._opening = asyncio.Lock()
        self._stopping: set[asyncio.Task[None]] = set()

    async def list(self, server: str, spec: JSON) -> Listed:
        """Return what a server offers; it is started if it does not run. Raises: ToolFailed."""
        said = await self._ask({"do": "list", "server": server, "spec": spec})
        if "tools" not in said:
            raise ToolFailed(f"{server} cannot be used: {said['error']}", provider=server)
        return convert({"tools": said["tools"], "bad": said["bad"]}, Listed)

    async def call(self, server: str, tool: str, args: JSON) -> str:
        """Call a tool of a server that was listed, and return its words.

        Raises: ToolFailed if it says so itself, or nothing was sent; ToolTimedOut if it gave no answer.
        """
        said = await self._ask({"do": "call", "server": server, "tool": tool, "args": args})
        if "text" in said:
            if said["failed"]:
                raise ToolFailed(said["text"], provider=server)
            return str(said["text"])
        if said["sent"]:
            raise ToolTimedOut(f"{server} gave no answer: {said['error']}", provider=server)
        raise ToolFailed(f"{server} cannot be used: {said['error']}", provider=server)

    async def end(self, server: str) -> None:
        """Stop a server, if it runs."""
        if self._child and self._child.is_alive:
            await self._child.write(json.dumps({"do": "close", "server": server}) + "\n")

    async def close(self) -> None:
        """Kill the child and every server."""
        if self._child:
            self._child.end_input()  # it kills its servers, and ends
            await self._child.end(STUCK_S)
            if self._reader:
                await self._reader

    async def _ask(self, job: dict[str, Any]) -> dict[str, Any]:
        async with self._opening:
            child = await self._opened()
        number = next(self._ids)
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await child.write(json.dumps(job | {"id": number}) + "\n")
            return await future
        except asyncio.CancelledError:
            stopping = asyncio.create_task(self._stop(child, number, future), name=f"stop-{number}")
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)
            raise
        except Crashed:
            return {"error": "the hands ended", "sent": False}
        finally:
            if not future.cancelled():
                self._asked.pop(number, None)

    async def _stop(self, child: Child, number: int, future: asyncio.Future[dict[str, Any]]) -> None:
        """Cancel a call; a child that does not confirm it is stuck, and killed."""
        again = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(STUCK_S):
                await child.write(json.dumps({"do": "cancel", "id": number}) + "\n")
                await again
        except (TimeoutError, Crashed):
            child.kill()
        finally:
            self._asked.pop(number, None)

    async def _opened(self) -> Child:
        if self._child and self._child.is_alive and self._reader and not self._reader.done():
            return self._child
        self._cwd.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        for left in self._cwd.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        argv = [sys.executable, "-m", "claudius.tools.mcp_worker"]
        try:
            child = self._child = await Child.start(argv, env=env, cwd=self._cwd)
        except Unavailable as error:
            raise ToolFailed(error.message) from error
        self._reader = asyncio.create_task(self._read(child), name="hands")
        return child

    async def _read(self, child: Child) -> None:
        with suppress(Cut):
            async for line in child.lines():
                self._heard(line)
        child.kill()
        await child.end(0)
        for group in self._groups.values():  # those that it could not kill itself
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()
        missing = "No module named 'mcp'" in child.complaint
        why = "install the extra: pip install 'claudius-daemon[tools]'" if missing else "the hands ended"
        for future in self._asked.values():
            if not future.done():
                future.set_result({"error": why, "sent": not missing})
        self._asked.clear()

    def _heard(self, line: dict[str, Any]) -> None:
        if "id" in line:
            if (future := self._asked.get(line["id"])) and not future.done():
                future.set_result(line)
        elif "pid" in line:
            self._groups[line["server"]] = line["pid"]
        else:
            if "closed" in line:
                self._groups.pop(line["server"], None)
            self._changed(line["server"])
