"""The server: the paths of Slack on one port."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web

from lab.loopback.listening import listen
from lab.loopback.slack.responses import Responses
from lab.loopback.slack.rules import MARKDOWN_CHARS
from lab.loopback.slack.service import Service
from lab.loopback.slack.web_api import WebApi
from lab.loopback.slack.world import SlackWorld

BODY_LIMIT = 100 * MARKDOWN_CHARS
"""Bytes of a request; our reading."""


@dataclass(slots=True)
class SlackServer:
    """One Slack, which `world` drives."""

    service: Service = field(default_factory=Service)
    host: str = "127.0.0.1"
    port: int = 0
    """0 = any free one; then the one that was taken."""
    _runners: list[web.AppRunner] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Listen."""
        api, responses = WebApi(self.service), Responses(self.service)
        slack = web.Application(client_max_size=BODY_LIMIT)
        slack.router.add_route("*", "/api/{method}", api.answer)
        slack.router.add_get("/link/", self._link)
        slack.router.add_post("/response/{key}", responses.answer)
        slack.router.add_get("/files-pri/{id}/{rest:.*}", responses.file)
        self.port = await listen(slack, self.host, self.port, self._runners)
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
    def world(self) -> SlackWorld:
        """What a test in this process does with the server."""
        return SlackWorld(self.service)

    async def _link(self, request: web.Request) -> web.StreamResponse:
        return await self.service.sockets.link(request, self.service.post.acknowledge)
