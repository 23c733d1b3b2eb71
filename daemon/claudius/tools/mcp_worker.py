"""The hands: a process of its own that starts MCP servers, lists their tools and calls them.

JSON lines from `claudius.tools.mcp`: `{"id", "do": "list" | "call" | "cancel", "server", …}`. Each is answered
by one line of its id: `{"tools", "bad"}`, `{"text", "failed"}`, or `{"error", "sent"}`, where `sent` says whether
the call had left. Without an id come `{"server"}` with `pid`, `changed` or `closed`.
Source: the tools design, section 7.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    PaginatedRequestParams,
    jsonrpc_message_adapter,
)

from claudius.children import ENDLESS, LINE_BYTES, Child, bounding
from claudius.errors import ClaudiusError, Crashed, Cut
from claudius.tool import cut
from claudius.tools.pins import MOST_PAGES, MOST_TOOLS, flaw

CONNECT_S = 30.0
IDLE_S = 900.0
"""How long a server stays without a call."""
CANCEL_S = 2.0
"""How long a server may take over a call that was cancelled; then it is killed."""
KEPT_CHARS = 100_000
"""The most that goes to the daemon of a result: three quarters of it from its head, the rest from its end."""
MEMORY_BYTES = 600_000_000
"""What this process and its servers may take together, but for what they share; the largest is killed at more."""
LOOK_S = 0.5
COMPLAINT_CHARS = 200
_ANSWERS = ("application/json", "text/event-stream")


class McpConnection:
    """One server, owned by one task from its start to its end, as the SDK's cancel scopes need."""

    def __init__(self, name: str, spec: Mapping[str, Any], hands: McpConnections) -> None:
        self.name, self._spec, self._hands = name, spec, hands
        self.child: Child | None = None
        self.calls: dict[int, anyio.CancelScope] = {}
        self.why = ""
        """Why it ended, in words of ours; empty = it may be opened again as it is."""
        self.said = ""
        """What it answered in place of what it offers."""
        self.status = 0
        """How it last answered over HTTP, where that was no answer; 0 = it was one."""
        self._tools: dict[str, dict[str, Any]] = {}
        self._bad: list[str] = []
        self._jobs: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()

    def give(self, job: Mapping[str, Any]) -> None:
        """Queue a job for the task that owns the connection."""
        self._jobs.put_nowait(job)

    def end(self, why: str = "") -> None:
        """End it once its task comes to it; the next job starts it anew. The first reason stays, also none."""
        if self in self._hands:
            self.why = self.why or (why and (self._refusal() or why))
        self._hands.forget(self)
        self._jobs.put_nowait(None)

    async def live(self) -> None:
        """Connect, do jobs until it is idle, dead or closed, and answer what is left."""
        try:
            await self._connected()
        except* (MCPError, OSError, RuntimeError, ValueError, ClaudiusError, httpx2.HTTPError, TimeoutError) as group:
            self.why = self.why or _why(group)
        finally:
            self._hands.forget(self)
            if self.child:
                self.child.kill()
                with anyio.CancelScope(shield=True):
                    await self.child.end(0)
            left = [self._jobs.get_nowait() for _ in range(self._jobs.qsize())]
            for job in left:
                if job:
                    self._hands.say({"id": job["id"], "sent": False, **self._gone()})
            self._hands.say({"server": self.name, "closed": self.why, "pid": self.child.pid if self.child else 0})

    async def _connected(self) -> None:
        patience_s = self._spec.get("patience_s", CONNECT_S)
        with anyio.move_on_after(patience_s) as limit:
            async with Client(self._transport(), cache=None) as client:
                limit.deadline = math.inf
                async with anyio.create_task_group() as running:
                    await self._work(client, running)
                    running.cancel_scope.cancel()
        if limit.cancelled_caught:
            self.why = self.why or f"it did not answer within {patience_s:.0f} s"

    async def _work(self, client: Client, running: anyio.abc.TaskGroup) -> None:
        while True:
            with anyio.move_on_after(IDLE_S) as idle:
                job = await self._jobs.get()
            if idle.cancelled_caught:
                if self.calls:
                    continue
                return
            if job is None:
                return
            running.start_soon(self._list if job["do"] == "list" else self._call, client, job)

    async def _list(self, client: Client, job: Mapping[str, Any]) -> None:
        self._bad, self._tools = [], {}
        cursor: str | None = None
        try:
            for page in range(MOST_PAGES + 1):
                if page == MOST_PAGES:
                    self._bad.append(f"more than {MOST_PAGES} pages")
                    break
                params = PaginatedRequestParams(cursor=cursor) if cursor else None
                with anyio.fail_after(CONNECT_S):
                    found = await client.session.list_tools(params=params)
                cursor = found.next_cursor
                if not cursor:
                    break
        except (MCPError, RuntimeError, ValueError, TimeoutError) as error:
            why = {"error": _why(error)} if not self.why and _why(error) else {}
            self._hands.say({"id": job["id"], "sent": False, **self._gone(), **why})
            return
        tools = list(self._tools.values())
        if len(tools) > MOST_TOOLS:
            self._bad.append(f"{len(tools)} tools, of which {MOST_TOOLS} count")
        self._hands.say({"id": job["id"], "tools": tools[:MOST_TOOLS], "bad": self._bad[:MOST_TOOLS]})

    async def _call(self, client: Client, job: Mapping[str, Any]) -> None:
        said: dict[str, Any] | None = None
        try:
            with anyio.CancelScope() as scope:
                self.calls[job["id"]] = scope
                result = await client.session.call_tool(job["tool"], job["args"])
                text = "\n".join([one.text for one in result.content if one.type == "text"])
                said = {"text": cut(text, KEPT_CHARS), "failed": bool(result.is_error)}
            if scope.cancelled_caught:
                said = {"error": "it was cancelled", "sent": True}
        except MCPError as error:
            if self.status:  # an error of the way: 4xx = it was not done, and 404 = a new session does it
                self.end()
                said = {"error": self._refusal(), "sent": self.status >= HTTPStatus.INTERNAL_SERVER_ERROR}
                if self.status != HTTPStatus.NOT_FOUND:
                    said |= {"alive": True}
                    own = error.error.message if error.code != INTERNAL_ERROR else ""
                    said = {"text": cut(own, KEPT_CHARS), "failed": True} if own and not said["sent"] else said
            elif not self.why and error.code != CONNECTION_CLOSED:
                said = {"text": cut(error.error.message, KEPT_CHARS), "failed": True}
        except (RuntimeError, ValueError):  # the call was made
            said = {"error": "what it sent back has none of the forms of MCP", "sent": True, "alive": True}
        finally:
            self._hands.say({"id": job["id"], **(said or {"sent": True, **self._gone()})})
            del self.calls[job["id"]]
        if scope.cancelled_caught:  # nobody tells whether it stopped; what it still does ends with it
            self._hands.forget(self)
            self._hands.say({"server": self.name, "changed": True})
            await anyio.sleep(CANCEL_S)
        if self not in self._hands and not self.calls:
            self.end()

    def cancel(self, call: int) -> None:
        """Cancel a call: the server is told, and is not used again."""
        if scope := self.calls.get(call):
            scope.cancel()

    def noticed(self, item: SessionMessage | Exception) -> SessionMessage | JSONRPCError | JSONRPCResponse | None:
        """Return what goes on to the session, or back to the server; None for news. Raises: ValueError.

        What a server asks for is refused here, one after the other: the session would hold all of it at once. Its
        definitions are read here, and its results, because the session would drop all of one for a single flaw.
        """
        if isinstance(item, Exception):
            raise ValueError from item
        message = item.message
        if isinstance(message, JSONRPCNotification):
            if message.method == "notifications/tools/list_changed":
                self._hands.say({"server": self.name, "changed": True})
            return None
        if isinstance(message, JSONRPCRequest):
            if message.method == "ping":
                return JSONRPCResponse(jsonrpc="2.0", id=message.id, result={})
            refusal = ErrorData(code=METHOD_NOT_FOUND, message="not offered")
            return JSONRPCError(jsonrpc="2.0", id=message.id, error=refusal)
        if isinstance(message, JSONRPCError):
            self._failed(message.error)
        if isinstance(message, JSONRPCResponse):
            if isinstance(tools := message.result.get("tools"), list):
                message.result["tools"] = list(self._good(tools))
            elif "capabilities" not in message.result and isinstance(message.result.get("content") or [], list):
                content = [{"type": "text", "text": _text(message.result)}]
                kind = {key: one for key, one in message.result.items() if key == "resultType"}
                message.result = {"content": content, "isError": message.result.get("isError") is True} | kind
        return item

    def _failed(self, error: ErrorData) -> None:
        if not self._tools and error.code != METHOD_NOT_FOUND:
            self.said = error.message
        if error.code == CONNECTION_CLOSED and self.child:
            error.code = INTERNAL_ERROR  # many servers use it for errors of their own

    def _good(self, tools: list[Any]) -> Iterator[dict[str, Any]]:
        """Note the definitions that can be offered; yield what the session needs of them for its headers."""
        for one in tools[: MOST_TOOLS + 1]:
            problem = flaw(one)
            if problem or one["name"] in self._tools:
                self._bad.append(problem or f"{one['name']}: a second one of this name")
                continue
            name, schema, hints = one["name"], one["inputSchema"], one.get("annotations")
            about = {"description": one.get("description") or "", "hints": hints if isinstance(hints, dict) else {}}
            self._tools[name] = {"name": name, "schema": schema, **about}
            yield {"name": name, "inputSchema": {"type": "object", "properties": schema.get("properties", {})}}
        if len(tools) > MOST_TOOLS + 1:
            self._bad.append(f"{len(tools)} tools on one page")

    def _refusal(self) -> str:
        wants = ": it wants a token (--env)" if self.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) else ""
        return f"it answered with HTTP {self.status}{wants}" if self.status else ""

    async def _answered(self, response: httpx2.Response) -> None:
        kind, status = response.headers.get("content-type", "").partition(";")[0], response.status_code
        is_good = status in (HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT) or kind in _ANSWERS
        if response.request.method == "POST":
            self.status = 0 if is_good and response.is_success else status

    def _gone(self) -> dict[str, str]:
        """Return why it is gone, and its own last words."""
        last = (self.said or (self.child.complaint if self.child else "")).strip().splitlines()[-1:]
        return {"error": self.why or "it ended", "complaint": "".join(last)[:COMPLAINT_CHARS]}

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, Any]]:
        streams: tuple[Any, Any]
        async with AsyncExitStack() as stack:
            if self._spec.get("url"):
                headers = {"Authorization": f"Bearer {self._spec['token']}"} if self._spec.get("token") else {}
                times = httpx2.Timeout(CONNECT_S, read=None)
                hooks = [bounding(lambda: self.end(ENDLESS)), self._answered]
                http = httpx2.AsyncClient(headers=headers, event_hooks={"response": hooks}, timeout=times)
                await stack.enter_async_context(http)
                far = streamable_http_client(self._spec["url"], http_client=http, max_sse_event_size=LINE_BYTES)
                streams = await stack.enter_async_context(far)
            else:
                env = {**os.environ, **self._spec.get("env", {})}
                self.child = await Child.start(self._spec["command"], env=env, cwd=Path.cwd())
                self._hands.say({"server": self.name, "pid": self.child.pid})
                lines, checked = self.child.lines(), jsonrpc_message_adapter.validate_python
                streams = (SessionMessage(checked(line)) async for line in lines), _Input(self.child)
            yield _Heard(self, *streams), streams[1]


class _Input:
    """A child's input, as the SDK writes to it."""

    def __init__(self, child: Child) -> None:
        self._child = child

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def send(self, item: SessionMessage) -> None:
        """Write a message; one that reads no more is seen to end."""
        with suppress(Crashed):
            await self._child.write(item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")


class _Heard:
    """What a server says, as the SDK reads it: without what it may not say, which is answered before more is read."""

    def __init__(self, server: McpConnection, read: AsyncIterator[SessionMessage | Exception], write: Any) -> None:
        self._server, self._read, self._write = server, read, write

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def __aiter__(self) -> AsyncIterator[SessionMessage]:
        try:
            async for item in self._read:
                passed = self._server.noticed(item)
                if isinstance(passed, SessionMessage):
                    yield passed
                elif passed:
                    await self._write.send(SessionMessage(passed))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        except (Cut, ValueError) as error:  # an over-long or a broken line, or what is no message
            self._server.end(error.message if isinstance(error, Cut) else "it wrote what is no message")
        self._server.end("it ended")


class McpConnections:
    """All servers of this process, and the line to the daemon."""

    def __init__(self) -> None:
        self._servers: dict[str, McpConnection] = {}
        self._alive: set[McpConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, server: McpConnection) -> bool:
        """Whether a server takes new jobs."""
        return self._servers.get(server.name) is server

    def say(self, line: Mapping[str, Any]) -> None:
        """Write a line for the daemon. One that is gone reads no more: this process ends with it."""
        try:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            self.kill()

    def forget(self, server: McpConnection) -> None:
        """Give a server no more jobs: the next one starts it anew."""
        if self._servers.get(server.name) is server:
            del self._servers[server.name]

    def do(self, job: Mapping[str, Any]) -> None:
        """Begin one job."""
        name = job.get("server", "")
        server = self._servers.get(name)
        if job["do"] == "cancel":
            for one in self._alive:
                one.cancel(job["of"])
            self.say({"id": job["id"], "text": "", "failed": False})
        elif server:
            server.give(job)
        elif job["do"] == "list":
            server = self._servers[name] = McpConnection(name, job["spec"], self)
            server.give(job)
            self._alive.add(server)
            task = asyncio.create_task(server.live(), name=f"server-{name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _: self._alive.discard(server))
        else:  # it ended since it was listed
            self.say({"id": job["id"], "error": "it is not open", "sent": False})

    def kill(self) -> None:
        """Kill every server and this process, now."""
        for server in self._alive:
            if server.child:
                server.child.kill()
        os._exit(0)

    async def watch(self) -> None:
        """Kill the largest server where all take too much memory; this process itself if it is the largest."""
        while True:
            await asyncio.sleep(LOOK_S)
            own = _own(os.getpid())
            sizes = {server: _tree(server.child.pid) for server in self._alive if server.child}
            if own + sum(sizes.values()) <= MEMORY_BYTES:
                continue
            largest = max(sizes, key=sizes.__getitem__, default=None)
            if largest is None or not largest.child or sizes[largest] < own:
                self.kill()
            else:
                largest.why = "it took too much memory"
                largest.child.kill()


def _own(pid: int) -> int:
    """Return the resident memory that a process shares with no other: of node, half of it is the program."""
    try:
        resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text("ascii").split()[1:3])
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def _tree(pid: int) -> int:
    """Return the own memory of a process and its children, and theirs; 0 where the system does not tell."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        children = []
    return _own(pid) + sum(_tree(int(child)) for child in children)


def _text(result: Mapping[str, Any]) -> str:
    """Return the words of a result as its server wrote it; what is no text is named. Pure."""
    parts = [_words(one if isinstance(one, dict) else {}) for one in result.get("content") or ()]
    if not parts and (structured := result.get("structuredContent")) is not None:
        parts = [json.dumps(structured, ensure_ascii=False)]
    return "\n".join(parts)


def _words(block: Mapping[str, Any]) -> str:
    inner = block.get("resource") if block.get("type") == "resource" else block
    inner = inner if isinstance(inner, dict) else {}
    text = inner.get("text")
    return text if isinstance(text, str) else f"[{inner.get('uri') or block.get('type')}]"


def _why(error: BaseException) -> str:
    """Return why a connection failed, in words of ours where the error is none of the server's."""
    if isinstance(error, BaseExceptionGroup):
        return next((why for one in error.exceptions if (why := _why(one))), "")
    if isinstance(error, ClaudiusError):
        return error.message
    if isinstance(error, TimeoutError):
        return f"it did not answer within {CONNECT_S:.0f} s"
    if isinstance(error, httpx2.HTTPError):
        return f"it cannot be reached ({type(error).__name__})"
    if isinstance(error, MCPError):
        return "" if error.code == CONNECTION_CLOSED else "it answered with an error"
    version = "it speaks a version of MCP that is not known here"
    return version if isinstance(error, RuntimeError) else "it does not speak MCP: what it sent has another form"


async def main() -> None:
    """Take jobs until the daemon is gone, then kill every server."""
    sys.setrecursionlimit(10_000)  # a schema of 500 levels costs its own tool, and no neighbour
    hands = McpConnections()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(sign, hands.kill)
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    watching = asyncio.create_task(hands.watch(), name="memory")
    while line := await reader.readline():
        hands.do(json.loads(line))
    watching.cancel()
    hands.kill()


if __name__ == "__main__":
    asyncio.run(main())
