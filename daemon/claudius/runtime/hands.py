"""Have tools done for turns: the only place that starts one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from claudius.errors import ToolError
from claudius.tool import Caller, CallState, Grant, Tool, ToolCall


class PlainHands:
    """Does tools of class `look` for one process, and remembers what came of each call."""

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools
        self._calls: dict[str, ToolCall] = {}

    def offered(self) -> Sequence[Tool]:
        """Return every tool."""
        return self._tools()

    async def known(self, call: str) -> ToolCall | None:
        """Return a call by its id; None if there is none."""
        return self._calls.get(call)

    async def grants(self, conversation: str, person: str) -> Sequence[Grant]:
        """Return the consents in force there."""
        del conversation, person
        return ()

    async def spent(self, person: str) -> int:
        """Return how many calls a person had made in the last 24 hours."""
        del person
        return 0

    async def do(self, call: ToolCall, tool: Tool, caller: Caller) -> ToolCall:
        """Do an approved call; return it as it ended."""
        if call.state.is_final:
            return call
        try:
            text, state = await tool.run(call.args, caller), CallState.DONE
        except ToolError as error:
            text, state = error.detail, CallState.FAILED
        self._calls[call.id] = replace(call, state=state, result=text)
        return self._calls[call.id]
