"""The server: the paths of Slack on one port, the control of tests on another."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from lab.loopback.slack.people import People
from lab.loopback.slack.responses import Responses
from lab.loopback.slack.rules import MARKDOWN_CHARS
from lab.loopback.slack.service import Service
from lab.loopback.slack.stage import Stage
from lab.loopback.slack.trouble import Trouble
from lab.loopback.slack.web_api import WebApi
from lab.loopback.slack.world import SlackWorld

BODY_LIMIT = 100 * MARKDOWN_CHARS
"""Bytes of a request; our reading."""


@dataclass(slots=True)
class SlackServer:
    """One Slack. In-process, `world` drives it; from another process, `SlackWorld.at(control_url)` does."""

    service: Service = field(default_factory=Service)
    host: str = "127.0.0.1"
    port: int = 0
    """0 = any free one; then the one that was taken."""
    control_port: int = 0
    _commands: Mapping[str, Callable[..., Awaitable[Any]]] = field(init=False)
    _runners: list[web.AppRunner] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Gather the commands."""
        parts = (People(self.service), Stage(self.service), Trouble(self.service))
        self._commands = {
            name: command
            for part in parts
            for name, command in inspect.getmembers(part, inspect.iscoroutinefunction)
            if not name.startswith("_")
        }

    async def __aenter__(self) -> Self:
        """Listen."""
        api, responses = WebApi(self.service), Responses(self.service)
        slack = web.Application(client_max_size=BODY_LIMIT)
        slack.router.add_route("*", "/api/{method}", api.answer)
        slack.router.add_get("/link/", self._link)
        slack.router.add_post("/response/{key}", responses.answer)
        slack.router.add_get("/files-pri/{id}/{rest:.*}", responses.file)
        control = web.Application(client_max_size=BODY_LIMIT)
        control.router.add_post("/do/{name}", self._control)
        self.port = await self._serve(slack, self.port)
        self.control_port = await self._serve(control, self.control_port)
        self.service.url = f"http://{self.host}:{self.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Stop: sockets and calls under way are broken off."""
        await self.service.post.close()
        self.service.sockets.drop()
        for runner in self._runners:
            await runner.cleanup()

    @property
    def base_url(self) -> str:
        """The base URL of the Web API, for `AsyncWebClient(base_url=…)`."""
        return f"{self.service.url}/api/"

    @property
    def control_url(self) -> str:
        """Where other processes drive the server."""
        return f"http://{self.host}:{self.control_port}"

    @property
    def world(self) -> SlackWorld:
        """What a test in this process does with the server."""
        return SlackWorld(self.do)

    async def do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out one command; give plain data. Raises: ValueError: it makes no sense here; TimeoutError."""
        command = self._commands.get(name)
        if command is None:
            raise ValueError(f"no command {name!r}; there are {', '.join(sorted(self._commands))}")
        try:
            return msgspec.to_builtins(await command(**arguments))
        except LookupError as error:
            raise ValueError(f"not there: {error}") from error

    async def _serve(self, app: web.Application, port: int) -> int:
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, self.host, port).start()
        return int(runner.addresses[0][1])

    async def _link(self, request: web.Request) -> web.StreamResponse:
        return await self.service.sockets.link(request, self.service.post.acknowledge)

    async def _control(self, request: web.Request) -> web.Response:
        try:
            value = await self.do(request.match_info["name"], await request.json())
        except TimeoutError:
            return web.json_response({"error": "it did not happen in time"}, status=408)
        except (TypeError, ValueError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        return web.json_response({"value": value})
