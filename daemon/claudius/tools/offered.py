"""The tools of a soul that do not ship with it: its owner's own, and those of servers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from claudius.config import Config, Loaded
from claudius.errors import BadConfiguration
from claudius.home import Home
from claudius.memory.pins import Pin
from claudius.runtime.control import ControlConnection
from claudius.tool import Tool
from claudius.tools.mcp import McpHands, Servers
from claudius.tools.own import own_tools

log = logging.getLogger(__name__)


class OfferedTools:
    """What others than Claudius itself offer; asked for each turn."""

    def __init__(self, servers: Servers, config: Callable[[], Config], reserved: Collection[str]) -> None:
        """`reserved`: the names of the tools that ship. Raises: BadConfiguration if one of the owner's is none."""
        self.servers, self._config, self._reserved = servers, config, reserved
        self._named: Mapping[str, Any] = config().tools.own
        self._own = self._load()
        self._parts: tuple[tuple[Tool, ...], tuple[Tool, ...]] = ((), ())
        self._all: tuple[Tool, ...] = ()

    def __call__(self) -> tuple[Tool, ...]:
        """Return all of them, by name, also those that are `off`; the same tuple until something changed."""
        if self._config().tools.own != self._named:
            self._named = self._config().tools.own
            try:
                self._own = self._load()
            except BadConfiguration as error:  # the former ones stay, as with every broken edit
                log.warning("broken settings are not in force", extra={"problem": error.message})
        parts = (self._own, self.servers.tools())
        if parts[0] is not self._parts[0] or parts[1] is not self._parts[1]:
            self._parts = parts
            self._all = tuple(sorted([*parts[0], *parts[1]], key=lambda one: one.name))
        return self._all

    def problems(self) -> Mapping[str, str]:
        """Return what the owner is told of each server that cannot be used as agreed."""
        return self.servers.problems()

    async def close(self) -> None:
        """End every server."""
        await self.servers.close()

    async def serve(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Serve `claudius tools`: which are off and why; with `again`, once what failed is forgotten."""
        if frame.get("again"):
            self.servers.again()
        await connection.send({"event": "tools", "off": {one.name: one.off for one in self() if one.off}})

    def _load(self) -> tuple[Tool, ...]:
        return own_tools(self._named, lambda name: name in self._reserved or name in self._config().tools.servers)


def offered_tools(
    home: Home,
    settings: Callable[[], Loaded],
    pins: Callable[[], Sequence[Pin]],
    now: Callable[[], datetime],
    reserved: Collection[str],
    learn: Callable[[Iterable[str]], None] = lambda _: None,
) -> OfferedTools:
    """Return what the owner's functions and servers offer; no server is started. Raises: BadConfiguration.

    `pins` reads what the owner agreed to; `learn` is told the secrets that a server is given.
    """
    servers = Servers(partial(McpHands, home.run / "hands"), settings, pins, now, learn)
    return OfferedTools(servers, lambda: settings().config, reserved)
