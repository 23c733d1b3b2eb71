"""Every tool of a soul: those that ship, the owner's own, and those of servers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """What `Hands` offers; called for each turn."""

    def __init__(self, built_in: Sequence[Tool], servers: Servers, config: Callable[[], Config]) -> None:
        """Raises: BadConfiguration if a tool of the owner's own cannot be used."""
        self._built_in, self._servers, self._config = tuple(built_in), servers, config
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
        parts = (self._own, self._servers.tools())
        if not self._all or parts[0] is not self._parts[0] or parts[1] is not self._parts[1]:
            self._parts = parts
            self._all = tuple(sorted([*self._built_in, *parts[0], *parts[1]], key=lambda one: one.name))
        return self._all

    async def serve(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Serve `claudius tools`: which are off and why; with `again`, once what failed is forgotten."""
        if frame.get("again"):
            self._servers.again()
        await connection.send({"event": "tools", "off": {one.name: one.off for one in self() if one.off}})

    def _load(self) -> tuple[Tool, ...]:
        names = {one.name for one in self._built_in}
        return own_tools(self._named, lambda name: name in names or name in self._config().tools.servers)


def offered_tools(
    home: Home,
    settings: Callable[[], Loaded],
    pins: Callable[[], Sequence[Pin]],
    now: Callable[[], datetime],
    built_in: Sequence[Tool] = (),
    learn: Callable[[Iterable[str]], None] = lambda _: None,
) -> OfferedTools:
    """Return every tool of a soul; no server is started. Raises: BadConfiguration.

    `pins` reads what the owner agreed to; `learn` is told the secrets that a server is given.
    """
    servers = Servers(partial(McpHands, home.run / "hands"), settings, pins, now, learn)
    return OfferedTools(built_in, servers, lambda: settings().config)
