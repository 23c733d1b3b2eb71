"""The tools of a soul: those that ship, its owner's own, and those of servers."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from claudius.children import in_own_thread
from claudius.config.load import Loaded
from claudius.config.schema import Config, OwnTool
from claudius.errors import BadConfiguration
from claudius.failure import of_a_part
from claudius.home import Home
from claudius.memory.calls import Pin
from claudius.memory.store import Store
from claudius.runtime.control import ControlConnection
from claudius.tool import JSON, Tool, ToolCall, ToolClass, schema_of
from claudius.tools.mcp import McpHands, Servers
from claudius.tools.pins import PURPOSE_CHARS

log = logging.getLogger(__name__)

HELP = "tool_help"
"""It is offered only beside tools whose line in a prompt does not say all of them."""


def built_in(
    modules: Iterable[str],
    store: Store | None,
    config: Callable[[], Config],
    others: Callable[[], Sequence[Tool]] = tuple,
) -> Callable[[], Sequence[Tool]]:
    """Return what lists every tool: those that ship, and `others`. `store`: None = they are only listed."""

    def listed() -> Sequence[Tool]:
        found = others()
        return (*[one for one in ours if found or one.name != HELP], *found)

    made = [importlib.import_module(module).build(store, config, listed) for module in dict.fromkeys(modules)]
    ours = [tool for tools in made for tool in tools]
    return listed


class OfferedTools:
    """What others than Claudius itself offer; asked for each turn."""

    def __init__(
        self,
        home: Home,
        settings: Callable[[], Loaded],
        pins: Callable[[], Sequence[Pin]],
        now: Callable[[], datetime],
        reserved: Collection[str],
        learn: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        """Start no server. `pins` reads what the owner agreed to; `learn` is told the secrets that a server is given.

        `reserved`: the names of the tools that ship. Raises: BadConfiguration if one of the owner's is none.
        """
        self.servers = Servers(partial(McpHands, home.run / "hands"), settings, pins, now, learn)
        self._settings, self._reserved = settings, reserved
        self._named: Mapping[str, Any] = settings().config.tools.own
        self._own = self._load()

    def __call__(self) -> tuple[Tool, ...]:
        """Return all of them, by name, also those that are `off`; each the same object until it changes."""
        settings = self._settings().config.tools
        named = settings.own
        if named != self._named:
            self._named = named
            try:
                self._own = self._load()
            except BadConfiguration as error:  # the former ones stay, as with every broken edit
                log.warning("broken settings are not in force", extra={"problem": error.message})
        servers = self.servers.tools() if settings.servers else ()
        return tuple(sorted([*self._own, *servers], key=lambda one: one.name))

    async def serve(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Serve `claudius tools`: which are off and why; with `again`, once what failed is forgotten."""
        if frame.get("again"):
            self.servers.again()
        await connection.send({"event": "tools", "off": {one.name: one.off for one in self() if one.off}})

    def _load(self) -> tuple[Tool, ...]:
        taken = {*self._reserved, *self._settings().config.tools.servers}
        return tuple(_tool(name, one, taken) for name, one in sorted(self._named.items()))


def _tool(name: str, given: str | OwnTool, taken: Collection[str]) -> Tool:
    own, key = given if isinstance(given, OwnTool) else OwnTool(call=given), f"tools.own.{name}"
    if name in taken or not name.isidentifier():
        raise BadConfiguration("config.toml", key, "is a name in use, or none", "choose another name, of letters")
    module, _, attribute = own.call.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
        about = function.__tool__
        schema = schema_of(function)
    except Exception as error:
        detail = f"{own.call!r} is no tool: {of_a_part(error)}"
        raise BadConfiguration("config.toml", key, detail, "docs/hands.md shows the shape") from error
    cls = about["cls"]
    return Tool(
        name=name,
        purpose=str(about["purpose"])[:PURPOSE_CHARS],
        cls=cls,
        schema=schema,
        run=partial(_run, function),
        source="own",
        where=own.where or (() if cls is ToolClass.LOOK else ("owner",)),
    )


async def _run(function: Callable[..., Any], args: JSON, call: ToolCall) -> str:
    if inspect.iscoroutinefunction(function):
        return str(await function(**args))
    return str(await in_own_thread(partial(function, **args), f"tool-{call.id}"))
