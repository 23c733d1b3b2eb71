"""Ask Claude through the Agent SDK, with one warm client per conversation so that a turn has no start-up cost.

The least recently used client is closed when the pool is full. The SDK talks to a child process of ours over its own
transport interface, because its stock transport passes the daemon's whole environment to the child and keeps it in the
daemon's process group.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from claudius.children import Child, Children
from claudius.config.load import Loaded
from claudius.errors import Crashed, ProviderError, TimedOut, Unavailable
from claudius.home import Home
from claudius.provider import Done, Event, Request
from claudius.providers.claude.command import (
    RSS_LIMIT_BYTES,
    ClaudeCommand,
    ClaudeDirectories,
    child_env,
    find,
    flags,
)
from claudius.providers.claude.sessions import ClaudeReply, SessionPool, user_message
from claudius.providers.replies import refused

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKClient

NAME = "agent_sdk"
POOL = 4
"""Warm clients kept."""
START_S = 30.0
"""The SDK itself would wait a minute for a child that does not start, and then raise a bare Exception."""
IDLE_S = 900.0
"""A client unused for this many seconds is closed."""


class _Warm(Struct, eq=False):
    client: ClaudeSDKClient
    child: Child
    alarm: asyncio.TimerHandle | None = None


class AgentSdk:
    """The pool of warm clients."""

    name = NAME

    def __init__(self, command: ClaudeCommand, loaded: Loaded, places: ClaudeDirectories) -> None:
        self.model = loaded.config.claude.model
        self._command, self._loaded, self._places = command, loaded, places
        self._pool: SessionPool[_Warm] = SessionPool(POOL)
        self._children = Children()
        self._ending: set[asyncio.Task[None]] = set()

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. A warm client that has crashed before its first word is replaced by a fresh one.

        Raises: ProviderError.
        """
        warm, ended = self._pool.take(request)
        self._end(ended)
        if warm and not (warm.child.is_alive and warm.child.rss_bytes < RSS_LIMIT_BYTES):
            self._end([warm])
            warm = None
        if warm:
            hearing = ClaudeReply(NAME, request.model or self.model)
            try:
                async with aclosing(self._turn(request, warm, hearing, knows_history=True)) as events:
                    async for event in events:
                        yield event
            except Crashed:
                if hearing.has_spoken:
                    raise
            else:
                return
        fresh, hearing = await self._start(request), ClaudeReply(NAME, request.model or self.model)
        async with aclosing(self._turn(request, fresh, hearing, knows_history=False)) as events:
            async for event in events:
                yield event

    async def _turn(
        self, request: Request, warm: _Warm, hearing: ClaudeReply, *, knows_history: bool
    ) -> AsyncGenerator[Event, None]:
        if warm.alarm:
            warm.alarm.cancel()
        is_kept = False
        try:
            async with aclosing(self._heard(request, warm, hearing, knows_history=knows_history)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        is_kept = hearing.is_clean
                    yield event
        finally:
            if is_kept:
                self._keep(request, warm)
            else:
                self._end([warm])

    async def _heard(
        self, request: Request, warm: _Warm, hearing: ClaudeReply, *, knows_history: bool
    ) -> AsyncGenerator[Event, None]:
        import claude_agent_sdk as sdk  # noqa: PLC0415 - heavy, imported only when used

        try:
            await warm.client.query(_one(user_message(request, knows_history=knows_history)))
            async for message in warm.client.receive_response():
                if event := hearing.hear(_as_line(message)):
                    yield event
                if isinstance(event, Done):
                    return
        except ProviderError as error:
            error.provider = NAME
            raise
        except sdk.ClaudeSDKError as error:
            raise refused(Crashed, "Claude Code ended", said=str(error), provider=NAME) from error
        raise refused(Crashed, "Claude Code ended without a reply", said=warm.child.complaint, provider=NAME)

    async def _start(self, request: Request) -> _Warm:
        import claude_agent_sdk as sdk  # noqa: PLC0415 - heavy, imported only when used

        argv = flags(
            model=request.model or self.model,
            system_file=self._places.system_file(request.system),
            session=("--no-session-persistence",),
        )
        env = child_env(self._loaded, os.environ, max_tokens=request.max_tokens)
        child = await self._children.start([self._command.path, *argv], env=env, cwd=self._places.cwd)
        options = sdk.ClaudeAgentOptions(verbatim_prompts=True, skills=[])
        client = sdk.ClaudeSDKClient(options, transport=_transport(child))
        warm = _Warm(client, child)
        try:
            async with asyncio.timeout(START_S):
                await client.connect()
        except BaseException as error:
            await self._close(warm)
            if isinstance(error, TimeoutError):
                raise TimedOut("Claude Code did not start in time", provider=NAME) from error
            if isinstance(error, sdk.ClaudeSDKError):
                said = child.complaint or str(error)
                raise refused(Crashed, "Claude Code did not start", said=said, provider=NAME) from error
            raise
        return warm

    def _keep(self, request: Request, warm: _Warm) -> None:
        self._end(self._pool.keep(request, warm))
        if self._pool.holds(warm):
            warm.alarm = asyncio.get_running_loop().call_later(IDLE_S, self._retire, warm)

    def _retire(self, warm: _Warm) -> None:
        if self._pool.holds(warm):
            self._pool.drop(warm)
            self._end([warm])

    def _end(self, ended: Iterable[_Warm]) -> None:
        """Kill and reap clients in the background."""
        for warm in ended:
            if warm.alarm:
                warm.alarm.cancel()
            task = asyncio.get_running_loop().create_task(self._close(warm), name=f"claude-end-{warm.child.pid}")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _close(self, warm: _Warm) -> None:
        """Disconnect the SDK before its child is gone, because it would log a fatal error otherwise."""
        await warm.client.disconnect()
        warm.child.kill()
        await self._children.end(warm.child)

    async def forget(self, conversation: str) -> None:
        """Close a conversation's client, because what was said there is to be erased."""
        self._end(self._pool.pop(conversation))

    async def prepare(self) -> None:
        """Import the library, in a thread."""
        await asyncio.to_thread(importlib.import_module, "claude_agent_sdk")

    async def aclose(self) -> None:
        """Kill every client and wait until all processes have ended."""
        self._end(self._pool.empty())
        await asyncio.gather(*self._ending)
        self._children.close()
        await asyncio.gather(*self._ending)


async def _one(message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield message


def _as_line(message: object) -> Mapping[str, Any]:
    """Convert an SDK message to the child's own format, which both Claude transports parse."""
    import claude_agent_sdk as sdk  # noqa: PLC0415 - heavy, imported only when used

    match message:
        case sdk.StreamEvent():
            return {"type": "stream_event", "event": message.event, "parent_tool_use_id": message.parent_tool_use_id}
        case sdk.AssistantMessage():
            return {"type": "assistant", "error": message.error}
        case sdk.UserMessage():
            return {"type": "user"}
        case sdk.RateLimitEvent():
            return {"type": "rate_limit_event", "rate_limit_info": message.rate_limit_info.raw}
        case sdk.ResultMessage():
            names = ("subtype", "is_error", "result", "errors", "api_error_status", "terminal_reason", "session_id")
            return {"type": "result", **{name: getattr(message, name) for name in names}}
    return {}


def _transport(child: Child) -> Any:
    """Return an SDK transport over a running child."""
    from claude_agent_sdk import CLIConnectionError, ProcessError, Transport  # noqa: PLC0415 - as above

    class OurTransport(Transport):
        """The SDK's transport interface over a running child. Whoever started the child ends it."""

        async def connect(self) -> None:
            """Do nothing: the child already runs."""

        async def write(self, data: str) -> None:
            """Write one line."""
            try:
                await child.write(data)
            except Crashed as error:
                raise CLIConnectionError(error.message) from error

        async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
            """Read the child's messages. Its end is an error here."""
            async for line in child.lines():
                yield line
            raise ProcessError("the process ended")

        async def close(self) -> None:
            """Kill the child without waiting, since there is nothing to flush."""
            child.kill()

        def is_ready(self) -> bool:
            """Return whether the child runs."""
            return child.is_alive

        async def end_input(self) -> None:
            """Close the child's input."""
            child.end_input()

    return OurTransport()


def build(loaded: Loaded, home: Home) -> AgentSdk:
    """Find the command and build the provider. Raises: Unavailable if the SDK or the command is missing or too old."""
    if importlib.util.find_spec("claude_agent_sdk") is None:
        raise Unavailable("the Agent SDK is not installed: pip install 'claudius-daemon[claude]'", provider=NAME)
    command = find(loaded.config.claude.cli_path)
    places = ClaudeDirectories(home, NAME, os.environ)
    return AgentSdk(command, loaded, places)
