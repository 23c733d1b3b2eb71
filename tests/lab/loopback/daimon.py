"""A daimon on loopback: it answers `POST /api/whisper` as it is told, and keeps what it was asked."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from claudius.runtime.daimons import PATH

LINE = "They need assurance, not answers."


@dataclass(frozen=True, slots=True, kw_only=True)
class Whispers:
    """One answer."""

    status: int = 200
    body: Any = None
    """JSON, or bytes as they are."""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class DaimonServer:
    """Listens while it is entered. Answers are taken in order, the last one again and again."""

    def __init__(self, answers: Iterable[Whispers] = ()) -> None:
        """Answer so; without answers, with one good line."""
        self._answers = list(answers) or [Whispers(body={"whisper": LINE, "influence": "subtle"})]
        self._runner: web.AppRunner | None = None
        self._let_go = asyncio.Event()
        self.heard: list[Heard] = []
        self.port = 0

    async def __aenter__(self) -> Self:
        """Listen."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        """Hang up."""
        self._let_go.set()
        if self._runner:
            await self._runner.cleanup()

    def environment(self, name: str = "KOTHAR") -> dict[str, str]:
        """Return what a person sets to be whispered to by it."""
        prefix = "CLAUDIUS_KOTHAR_" if name == "KOTHAR" else f"CLAUDIUS_DAIMON_{name}_"
        return {
            f"{prefix}ENABLED": "1",
            f"{prefix}URL": f"http://127.0.0.1:{self.port}",
            f"{prefix}AUTH_TOKEN": "token-of-the-daimon",
        }

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        is_asked = request.path == PATH and request.can_read_body
        body = await request.json() if is_asked else await request.read()
        self.heard.append(Heard(request.method, request.path, dict(request.headers), body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer.hangs:
            await self._let_go.wait()
        if isinstance(answer.body, bytes):
            return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))
        if answer.body is None:
            return web.Response(status=answer.status, headers=dict(answer.headers))
        return web.json_response(answer.body, status=answer.status, headers=dict(answer.headers))
