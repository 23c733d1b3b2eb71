"""Hands: the one place where a tool is started. Each call is a row that says, durably, how far it has come.

A call runs in a task of its own, so that a turn need not wait for it: what takes longer than a turn may goes on by
itself, and its end is heard. The holder of a conversation's lane does its calls and keeps the lane meanwhile; one that
lost it cannot say how a call ended, and the next holder judges what it left.

Source: the tools design, sections 3, 4 and 15.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic

from msgspec.structs import replace

from claudius.cognition.hooks import show_tool
from claudius.cognition.mind import Mind
from claudius.cognition.output.gate import masked
from claudius.errors import StaleTurn, ToolError, ToolRefused, ToolTimedOut
from claudius.foreign import plain_message, unquoted
from claudius.memory.calls import args_sha256
from claudius.memory.store import Store
from claudius.runtime.access import Membership
from claudius.tool import TIMED_OUT, CallState, Onlookers, Tool, ToolCall, cut

log = logging.getLogger(__name__)

STOPPED, GONE = "stopped", "this tool is not there any more"


class IdleHands:
    """The `Hands` of what runs outside of lanes: it is shown the tools, so that its prompts share their bytes."""

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        """Show `tools`, by name."""
        self.offered = tools

    async def onlookers(self, audience: str, speaker: str, *, anew: bool) -> Onlookers:  # noqa: ARG002 - the protocol's signature
        """Know of nobody."""
        return Onlookers()

    async def do(self, call: ToolCall, tool: Tool) -> ToolCall:  # noqa: ARG002 - as above
        """Refuse. Raises: ToolRefused."""
        raise ToolRefused(tool.name, "nothing is done outside of a conversation")


class ToolRunner:
    """The tools of one process, and the calls that are under way in it."""

    def __init__(self, mind: Mind, wake: Callable[[str], None], members: Membership) -> None:
        """Do the tools that `mind` is shown; `wake` has a conversation look again, `members` knows who sees it."""
        self._mind, self._wake, self.members = mind, wake, members
        self.tools: Callable[[], Sequence[Tool]] = mind.hands.offered if mind.hands else tuple
        self._running: dict[str, tuple[ToolCall, asyncio.Task[ToolCall]]] = {}
        self._is_closing = False
        self.ended = Counter[tuple[str, ...]]()
        """How many calls ended since the start, by tool and state."""

    @property
    def waiting(self) -> int:
        """How many calls wait for consent."""
        return len(self._mind.store.calls.waiting())

    @property
    def unknown(self) -> int:
        """Of how many calls nobody knows whether they happened, since the start."""
        return sum(count for (_, state), count in self.ended.items() if state == CallState.UNKNOWN)

    def of(self, store: Store, conversation: str) -> LaneHands:
        """Return what does the calls of one conversation, and writes to the store as the holder of its lane."""
        return LaneHands(self, replace(self._mind, store=store), conversation)

    def tool(self, call: ToolCall) -> Tool | None:
        """Return the tool of a call, if it can be used and is still the one that was asked for."""
        found = next((one for one in self.tools() if one.name == call.tool), None)
        return found if found and (found.pin, found.cls, found.off) == (call.pin, call.cls, "") else None

    def is_busy(self, conversation: str = "") -> bool:
        """Return whether a call is under way in a conversation, or anywhere."""
        return any(conversation in ("", call.conversation) for call, _ in self._running.values())

    def under_way(self, call: str) -> asyncio.Task[ToolCall] | None:
        """Return the task of a call that is under way here."""
        return self._running[call][1] if call in self._running else None

    def begin(self, call: ToolCall, tool: Tool, store: Store, *, is_started: bool = True) -> asyncio.Task[ToolCall]:
        """Do a call that has just been recorded as started, or is as soon as its tool is ready."""
        doing = self._do(call, tool, store) if is_started else self._start(call, tool, store)
        task = asyncio.create_task(doing, name=f"tool {call.id}")
        self._running[call.id] = call, task
        task.add_done_callback(lambda done: self._ended(call, done))
        return task

    def stop(self, conversation: str, whose: Sequence[str]) -> None:
        """Cancel what only looks or reads there, for these people (none = for anybody); anything else goes on."""
        for call, task in self._running.values():
            is_theirs = not whose or call.person in whose
            if call.conversation == conversation and is_theirs and call.cls.is_safe:
                task.cancel(STOPPED)

    async def close(self, within_s: float = 0.0) -> None:
        """Let the calls end for `within_s` seconds; what is left is judged by the next process."""
        tasks = [task for _, task in self._running.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=within_s)
            self._is_closing = True
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _ended(self, call: ToolCall, done: asyncio.Task[ToolCall]) -> None:
        del self._running[call.id]
        if not done.cancelled():
            if error := done.exception():
                log.error("a call was not kept", extra={"call": call.id, "error": unquoted(error)})
            elif (state := done.result().state).is_final:
                self.ended[call.tool, state] += 1
        self._wake(call.conversation)

    async def _start(self, call: ToolCall, tool: Tool, store: Store) -> ToolCall:
        await _ready(call, tool)
        try:
            call, is_begun = await store.calls.start(call, self._mind.clock())
        except StaleTurn:
            is_begun = False
        return await self._do(call, tool, store) if is_begun else call

    async def _do(self, call: ToolCall, tool: Tool, store: Store) -> ToolCall:
        """Run a tool to its end, record that, and show both. Returns the call as it ended."""
        began_s = monotonic()
        show_tool(self._mind.hooks, call, self._mind.clock())
        while True:
            ended = await self._run(call, tool)
            try:
                if ended.state is CallState.APPROVED:
                    call, is_renewed = await store.calls.again(call, self._mind.clock())
                    if is_renewed:
                        continue
                    ended = replace(ended, state=CallState.UNKNOWN)
                is_kept = await store.calls.end(ended, self._mind.clock(), is_heard=ended.reason != STOPPED)
            except StaleTurn:
                is_kept = False
            if is_kept:
                show_tool(self._mind.hooks, ended, self._mind.clock(), began_s)
            else:
                facts = {"call": call.id, "state": ended.state, "chars": len(ended.result)}
                log.warning("a call's end came too late: another process has judged it", extra=facts)
            return ended

    async def _run(self, call: ToolCall, tool: Tool) -> ToolCall:
        """Run a tool once. Returns the call with its end; `approved` = its server died, and it may be made again."""
        config = self._mind.config().tools
        args = {**call.args, tool.key_arg: call.id} if tool.key_arg else call.args
        try:
            if tool.ready:
                async with asyncio.timeout(config.call_seconds):
                    await tool.ready()
            async with asyncio.timeout(tool.timeout_s or config.call_seconds):
                text = str(await tool.run(args, call))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_closing or task is None:
                raise
            task.uncancel()
            return replace(call, state=CallState.FAILED, reason=STOPPED)
        except Exception as error:  # noqa: BLE001 - a tool may be the owner's own code; its call ends as its class says
            return self._without_result(call, tool, error)
        return replace(call, state=CallState.DONE, result=self._shown(text))

    def _without_result(self, call: ToolCall, tool: Tool, error: Exception) -> ToolCall:
        """Return a call that ended with an error: without an answer, its class says what that means."""
        unanswered = CallState.FAILED if call.cls.is_safe else CallState.UNKNOWN
        match error:
            case TimeoutError():
                return replace(call, state=unanswered, reason=TIMED_OUT)
            case ToolTimedOut() | OSError():
                is_renewed = tool.key_arg and isinstance(error, ConnectionError)
                state = CallState.APPROVED if is_renewed else unanswered
                return replace(call, state=state, reason=plain_message(error))
            case ToolError():  # it said so itself, or nothing was sent
                return replace(
                    call,
                    state=CallState.FAILED,
                    reason=error.detail,
                    result=self._shown(error.said.words() or error.detail),
                )
        log.error("a tool failed", extra={"call": call.id, "tool": call.tool}, exc_info=error)
        return replace(call, state=CallState.FAILED, reason=f"it failed ({type(error).__name__})")

    def _shown(self, text: str) -> str:
        """Return a result as it is kept and shown: cut, its secrets masked."""
        most = self._mind.config().tools.result_chars
        return cut(masked(cut(text, 4 * most), self._mind.secrets), most)


class LaneHands:
    """Does the calls of one conversation, for the holder of its lane: the `Hands` of its turns."""

    def __init__(self, runner: ToolRunner, mind: Mind, conversation: str) -> None:
        """Do calls with `runner`; the store of `mind` is that of the lane's holder."""
        self._runner, self._mind, self._store, self._conversation = runner, mind, mind.store, conversation
        self._turn, self._waited_s = "", 0.0
        self.offered = runner.tools

    async def onlookers(self, audience: str, speaker: str, *, anew: bool) -> Onlookers:
        """Return who can see what is said to an audience. Raises: StoreError."""
        return await self._runner.members.onlookers(audience, speaker, self._mind.config().owners, anew=anew)

    async def do(self, call: ToolCall, tool: Tool) -> ToolCall:
        """Do a call, or go on with one that an earlier run of its turn began; return it as it stands.

        `started` if it takes longer than its turn may: then it goes on by itself. If the turn is cancelled, a call that
        only looks or reads is, too. Raises: ToolRefused if the call's id is that of another one, StoreError.
        """
        task = self._runner.under_way(call.id)
        if call.turn != self._turn:
            self._turn, self._waited_s = call.turn, 0.0
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        left_s = max(0.0, self._mind.config().tools.turn_seconds - self._waited_s)
        try:
            if task is None:
                await _ready(call, tool, left_s)
                call, is_begun = await self._started(call)
                if not is_begun:
                    return call
                task = self._runner.begin(call, tool, self._store)
            await asyncio.wait({task}, timeout=max(0.0, left_s + began_s - loop.time()))
        except asyncio.CancelledError:
            if call.cls.is_safe and task and not task.done():
                task.cancel(STOPPED)
            raise
        finally:
            self._waited_s += loop.time() - began_s
        return task.result() if task.done() else replace(call, state=CallState.STARTED)

    async def _started(self, call: ToolCall) -> tuple[ToolCall, bool]:
        known, is_begun = await self._store.calls.start(call, self._mind.clock())
        if args_sha256(known) != args_sha256(call) and known.args:  # without arguments its record has expired
            raise ToolRefused(call.tool, "another call has this id")
        return known, is_begun

    async def recover(self) -> None:
        """Judge what others left open in this conversation, and begin what is to be done. Raises: StoreError."""
        if [one for one in self._store.calls.open(self._conversation) if one.state is not CallState.WAITING]:
            keyed = {one.name for one in self.offered() if one.key_arg}
            for call in await self._store.calls.recover(self._conversation, self._mind.clock(), keyed):
                await self.begin(call)

    async def begin(self, call: ToolCall) -> None:
        """Begin a call that was allowed, outside of its turn; its end is heard. Raises: StoreError."""
        if self._runner.under_way(call.id):
            return
        tool = self._runner.tool(call)
        if tool and tool.ready and not call.cls.is_safe:
            self._runner.begin(call, tool, self._store, is_started=False)
            return
        call, is_begun = await self._store.calls.start(call, self._mind.clock())
        if not is_begun:
            return
        if tool is None:
            ended = replace(call, state=CallState.FAILED, reason=GONE)
            await self._store.calls.end(ended, self._mind.clock())
            return
        self._runner.begin(call, tool, self._store)


async def _ready(call: ToolCall, tool: Tool, within_s: float | None = None) -> None:
    """Have a tool run whose call is made once, before that is recorded: who is killed meanwhile has done nothing."""
    if tool.ready and not call.cls.is_safe:
        with suppress(ToolError, TimeoutError):  # its call fails likewise, and says so
            async with asyncio.timeout(within_s):
                await tool.ready()
