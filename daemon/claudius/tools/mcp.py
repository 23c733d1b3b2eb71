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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, field

from claudius.children import INHERITED, Child
from claudius.config.load import Loaded
from claudius.config.schema import ToolServerSettings
from claudius.errors import Crashed, Cut, ToolFailed, ToolLost, ToolRefused, ToolTimedOut, Unavailable
from claudius.foreign import Foreign
from claudius.home import DIRECTORY_MODE
from claudius.memory.calls import Pin
from claudius.tool import JSON, Tool, ToolCall, ToolClass
from claudius.tools.pins import Definition, closed, differences, purpose

STUCK_S = 5.0
"""How long the child may take to confirm that a call was cancelled; then it is killed."""
FAILURES, WITHIN = 5, timedelta(minutes=10)
LONGEST_WAIT = timedelta(minutes=5)
DOWN = timedelta(days=1)


class _Closed(ToolFailed):
    """Nothing was sent, because the server is not open any more."""


class Listed(Struct, frozen=True):
    """What a server offers now."""

    tools: tuple[Definition, ...]
    bad: tuple[str, ...] = ()
    """What was left out, and why."""


class McpHands:
    """The child process, and what is asked of it."""

    def __init__(self, cwd: Path, changed: Callable[[str, str], None] = lambda _, __: None) -> None:
        """`cwd`: its empty directory; `changed` is told which server must be listed anew, and why, if it died."""
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
            raise ToolFailed(server, f"cannot be used: {said['error']}", Foreign(said.get("complaint", "")))
        return convert({"tools": said["tools"], "bad": said["bad"]}, Listed)

    async def call(self, server: str, tool: str, args: JSON) -> str:
        """Call a tool of a server that was listed, and return its words.

        Raises: ToolFailed if it says so itself, or nothing was sent; ToolLost if it died before it answered;
        ToolTimedOut if its answer cannot be read.
        """
        said = await self._ask({"do": "call", "server": server, "tool": tool, "args": args})
        if "text" in said:
            if said["failed"]:
                raise ToolFailed(f"{server}.{tool}", "it says that it failed", Foreign(said["text"]))
            return str(said["text"])
        if said["sent"]:
            raise (ToolTimedOut if said.get("alive") else ToolLost)(f"{server}.{tool}", f"no answer: {said['error']}")
        raise (ToolFailed if said.get("alive") else _Closed)(server, f"cannot be used: {said['error']}")

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
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        try:
            await child.write(json.dumps(job | {"id": number}) + "\n")
            return await future
        except asyncio.CancelledError:
            if job["do"] == "call":
                stopping = asyncio.create_task(self._stop(child, number), name=f"stop-{number}")
                self._stopping.add(stopping)
                stopping.add_done_callback(self._stopping.discard)
            raise
        except Crashed:
            return {"error": "the hands ended", "sent": False}
        finally:
            del self._asked[number]

    async def _stop(self, child: Child, number: int) -> None:
        """Cancel a call; a child that does not confirm it is stuck, and killed."""
        if not child.is_alive:
            return
        try:
            async with asyncio.timeout(STUCK_S):
                await self._ask({"do": "cancel", "of": number})
        except TimeoutError:
            child.kill()

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
            raise ToolFailed("hands", error.message) from error
        self._reader = asyncio.create_task(self._read(child), name="hands")
        return child

    async def _read(self, child: Child) -> None:
        with suppress(Cut):
            async for line in child.lines():
                self._heard(line)
        child.kill()
        await child.end(0)
        for server, group in self._groups.items():  # those that it could not kill itself
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
            self._changed(server, "")
        self._groups.clear()
        missing = "No module named 'mcp'" in child.complaint
        why = "install the extra: pip install 'claudius-daemon[tools]'" if missing else "the hands ended"
        for future in self._asked.values():
            if not future.done():
                future.set_result({"error": why, "sent": not missing})

    def _heard(self, line: dict[str, Any]) -> None:
        if "id" in line:
            if (future := self._asked.get(line["id"])) and not future.done():
                future.set_result(line)
        elif "pid" in line and "closed" not in line:
            self._groups[line["server"]] = line["pid"]
        else:
            if self._groups.get(line["server"]) == line.get("pid", 0):  # else it runs anew
                del self._groups[line["server"]]
            self._changed(line["server"], line.get("closed", ""))


class _State(Struct):
    """What is known of one server since this process began."""

    is_listed: bool = False
    """Whether it runs, and what it offers was compared with the pins."""
    differs: Mapping[str, str] = {}
    """What differs from the pins, by tool."""
    failures: deque[datetime] = field(default_factory=lambda: deque(maxlen=FAILURES))
    """When it failed to start, or died."""
    again_at: datetime | None = None
    down_until: datetime | None = None
    why: str = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def fail(self, why: str, now: datetime) -> None:
        """Note a failed start or a death; after several it is down."""
        self.why, self.is_listed = why, False
        while self.failures and now - self.failures[0] > WITHIN:
            self.failures.popleft()
        self.failures.append(now)
        self.again_at = now + min(timedelta(seconds=2 ** (len(self.failures) - 1)), LONGEST_WAIT)
        if len(self.failures) == FAILURES:
            self.down_until = now + DOWN

    def rest(self, now: datetime) -> str:
        """Return why it is not tried now; empty if it is."""
        if self.down_until and now < self.down_until:
            return f"its server is down: {self.why}"
        return f"its server failed a moment ago: {self.why}" if self.again_at and now < self.again_at else ""


class Servers:
    """The servers of the settings as tools: what was agreed to, what of it can be used now, and the calls."""

    def __init__(
        self,
        hands: Callable[[Callable[[str, str], None]], McpHands],
        settings: Callable[[], Loaded],
        pins: Callable[[], Sequence[Pin]],
        now: Callable[[], datetime],
        learn: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        """`pins` reads them without a wait; `learn` is told the secrets that a server is given, before it has them."""
        self._hands = hands(self._noticed)
        self._settings, self._pins, self._now, self._learn = settings, pins, now, learn
        self._states: dict[str, _State] = {}
        self._seen: object = None
        self._tools: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """Return every tool that the owner agreed to and classed, by name; the same objects until something changed."""
        servers = self._settings().config.tools.servers
        now = self._now()
        rests = {name: state.rest(now) for name, state in self._states.items()}
        seen = (servers, rests, {name: state.differs for name, state in self._states.items()})
        if self._seen != seen:
            self._seen = seen
            pins = sorted(self._pins(), key=lambda pin: (pin.server, pin.tool))
            self._tools = tuple(
                self._tool(pin, servers[pin.server], rests.get(pin.server, ""))
                for pin in pins
                if pin.server in servers and pin.tool in servers[pin.server].tools
            )
        return self._tools

    def again(self) -> None:
        """Forget what failed and read the pins anew: the owner looked at it."""
        self._states.clear()
        self._seen = None

    def problems(self) -> Mapping[str, str]:
        """Return what the owner is told of each server that cannot be used as agreed."""
        found = {}
        for name, state in self._states.items():
            if state.down_until and self._now() < state.down_until:
                found[name] = f"is down: {state.why}"
            elif state.differs:
                found[name] = ", ".join(f"{tool} {how}" for tool, how in state.differs.items())
        return found

    async def close(self) -> None:
        """Kill every server."""
        await self._hands.close()

    def _tool(self, pin: Pin, server: ToolServerSettings, rest: str) -> Tool:
        state = self._states.get(pin.server)
        differs = state.differs.get(pin.tool, "") if state else ""
        return Tool(
            name=f"{pin.server}.{pin.tool}", purpose=purpose(pin.description), cls=ToolClass(server.tools[pin.tool]),
            schema=closed(pin.schema, server.key_arg), run=partial(self._run, pin),
            ready=partial(self._ready, pin.server), source="server", where=server.where, pin=pin.sha256,
            is_mine=pin.tool in server.mine,
            key_arg=server.key_arg if server.key_arg in closed(pin.schema)["properties"] else "",
            timeout_s=server.timeout_s, off=f"its definition {_HOW[differs]}" if differs else rest,
        )  # fmt: skip

    async def _run(self, pin: Pin, args: JSON, _: ToolCall) -> str:
        try:
            return await self._called(pin, args)
        except _Closed:
            self._noticed(pin.server, "")
            return await self._called(pin, args)

    async def _called(self, pin: Pin, args: JSON) -> str:
        await self._ready(pin.server)
        if how := self._states[pin.server].differs.get(pin.tool):
            raise ToolRefused(f"{pin.server}.{pin.tool}", f"its definition {_HOW[how]}")
        return await self._hands.call(pin.server, pin.tool, args)

    async def _ready(self, name: str) -> None:
        """Have a server run, and what it offers compared with its pins. Raises: ToolFailed."""
        state = self._states.setdefault(name, _State())
        async with state.lock:
            if state.is_listed:
                return
            if rest := state.rest(self._now()):
                raise ToolFailed(name, rest)
            try:
                listed = await self._hands.list(name, spec(name, self._settings(), self._learn))
            except ToolFailed as error:
                state.fail(error.detail, self._now())
                raise
            pins = [pin for pin in self._pins() if pin.server == name]
            state.is_listed, state.differs = True, differences(pins, listed.tools)

    def _noticed(self, name: str, why: str) -> None:
        state = self._states.get(name)
        if state and state.is_listed:  # one that never ran is noted by who asked for it
            state.is_listed = False
            if why:
                state.fail(why, self._now())


_HOW = {"changed": "is no longer the one that was agreed to", "vanished": "is gone", "new": "is new"}


def spec(name: str, loaded: Loaded, learn: Callable[[Iterable[str]], None] = lambda _: None) -> JSON:
    """Return how a server is started or reached, with the secrets that are named for it. Raises: ToolFailed."""
    server = loaded.config.tools.servers.get(name)
    if server is None:
        raise ToolFailed(name, "is no longer in the settings")
    given = {variable: loaded.secret(variable) for variable in server.env}
    if missing := [variable for variable, value in given.items() if not value]:
        raise ToolFailed(name, f"needs {' and '.join(missing)} in .env")
    learn(given.values())
    if server.url:
        return {"url": server.url, "token": next(iter(given.values()), "")}
    return {"command": server.command, "env": given}
