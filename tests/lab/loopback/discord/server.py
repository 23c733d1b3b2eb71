"""The server: the paths of Discord on one port."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web

from lab.loopback.discord.rest import Rest
from lab.loopback.discord.service import Service
from lab.loopback.discord.world import DiscordWorld
from lab.loopback.listening import listen

BODY_BYTES = 30 * 1024 * 1024
"""Of a request, with its files; our reading."""


@dataclass(slots=True)
class DiscordServer:
    """One Discord, which `world` drives."""

    service: Service = field(default_factory=Service)
    host: str = "127.0.0.1"
    port: int = 0
    """0 = any free one; then the one that was taken."""
    _runners: list[web.AppRunner] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Listen."""
        discord = web.Application(client_max_size=BODY_BYTES)
        discord.router.add_get("/gateway/", self.service.gateway.link)
        Rest(self.service).add_to(discord)
        self.port = await listen(discord, self.host, self.port, self._runners)
        self.service.url = f"http://{self.host}:{self.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Stop: sockets and calls under way are broken off."""
        self.service.interactions.close()
        await self.service.gateway.each(lambda socket: socket.cut(is_reset=False))
        for runner in self._runners:
            await runner.cleanup()

    @property
    def base_url(self) -> str:
        """The base of the API, for `discord.http.Route.BASE`."""
        return f"{self.service.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        """Where sockets are opened, for `DiscordWebSocket.DEFAULT_GATEWAY`."""
        return self.service.gateway_url

    @property
    def world(self) -> DiscordWorld:
        """What a test in this process does with the server."""
        return DiscordWorld(self.service)
