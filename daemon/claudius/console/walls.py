"""The walls before every route: name, origin, user, token, kind and size of a request; headers of every answer.

Source: the console design, W16 to W27.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from claudius.config.load import blot, held
from claudius.console.access import Entrance, uid_of
from claudius.errors import BadConfiguration, BadSoul, ClaudiusError, StaleTurn, StoreError, TryAgain, UsageProblem
from claudius.reports.clock import NoDaimon
from claudius.reports.plain import encode
from claudius.reports.replaying import NotAgreed
from claudius.reports.soul import ChangedMeanwhile, NoSoulFile

log = logging.getLogger(__name__)

BODY_BYTES = 256 * 1024
MOST_CONNECTIONS = 64
_OURS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_OPEN = "/api/enter"
"""The only route below /api/ that is asked without a token."""
_NO_CHANGE = frozenset(
    {_OPEN, *(f"/api/{name}" for name in ("live", "say", "shown", "stop", "link", "close", "replay", "soul/check"))}
)
"""Routes that are posted to and change nothing but what is said; the soul limits how much it is told."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Headers of every answer. A page's file is asked for again each time, so that no tab runs an older release's."""


class Refusal(ClaudiusError):
    """A request that is not answered."""

    def __init__(self, status: int, error: str, detail: str, fix: str = "", **more: object) -> None:
        """`status` is HTTP's; `error` is one word for programs, `detail` and `fix` are for people; `more` is JSON."""
        super().__init__(detail)
        self.status, self.error, self.fix, self.more = status, error, fix, more


def document(body: Any, status: int = 200) -> web.Response:
    """Answer one JSON document; the walls blot secrets in it, as in every command."""
    text = encode(body)
    answer = web.Response(text=text, status=status, content_type="application/json")
    if len(text) > 1024:
        answer.enable_compression()
    return answer


def refused(refusal: Refusal) -> web.Response:
    """Answer a refusal as `{"error", "detail", "fix"}`, and what else it tells."""
    body = {"error": refusal.error, "detail": refusal.message, "fix": refusal.fix, **refusal.more}
    return web.json_response(body, status=refusal.status)


def refusal_of(error: ClaudiusError) -> Refusal:
    """Return the HTTP form of an error that a command would print. Pure."""
    match error:
        case Refusal():
            return error
        case ChangedMeanwhile():
            return Refusal(409, "stale", error.message, now={"text": error.text, "sha256": error.sha256})
        case NotAgreed():
            return Refusal(409, "agree", error.message, tokens=error.tokens)
    kinds = (
        (NoSoulFile, 404, "unknown"),
        (NoDaimon, 404, "unknown"),
        (BadSoul, 400, "soul"),
        (UsageProblem, 400, "usage"),
        (StaleTurn, 409, "stale"),
    )
    later = ((kind, 503, "later") for kind in (TryAgain, StoreError, BadConfiguration))
    found = (found[1:] for found in (*kinds, *later) if isinstance(error, found[0]))
    return Refusal(*next(found, (404, "unknown")), error.message)


class Walls:
    """The checks before every route of one console."""

    def __init__(self, entrance: Entrance, connections: Callable[[], int], env: Mapping[str, str]) -> None:
        """Let in whom `entrance` knows; `connections` returns how many are open now; `env` holds secrets to blot."""
        self._entrance, self._connections, self._env = entrance, connections, env
        self._users: WeakKeyDictionary[asyncio.Transport, int | None] = WeakKeyDictionary()

    def middleware(self) -> Middleware:
        """Return aiohttp's middleware."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            """Refuse what does not come from the owner's own page, before any route sees it."""
            try:
                await self._examine(request)
                answer = await handler(request)
            except ClaudiusError as error:
                answer = refused(refusal_of(error))
            except web.HTTPException as error:  # no such path, no such method, too large
                answer = refused(Refusal(error.status, "http", error.reason))
            if isinstance(answer, web.Response) and answer.content_type == "application/json" and answer.text:
                answer.text = blot(answer.text, held(self._env))
            resource = request.match_info.route.resource
            route = resource.canonical if resource else "unknown"
            log.info("served", extra={"method": request.method, "route": route, "status": answer.status})
            return answer

        return guarded

    async def _examine(self, request: web.Request) -> None:
        if not _OURS.fullmatch(request.headers.get("Host", "")):
            raise Refusal(421, "misdirected", "this console answers to 127.0.0.1, localhost and [::1] alone")
        if self._connections() > MOST_CONNECTIONS:
            raise Refusal(503, "busy", "too many connections are open", "close some tabs")
        _came_from_here(request)
        await self._own_user(request)
        if not request.path.startswith("/api/"):
            return
        if request.path != _OPEN and not self._entrance.knows(request.headers.get("Authorization", "")):
            raise Refusal(
                401, "closed", "this door is closed", "`claudius console --link` gives a link that works once"
            )
        if request.method == "POST":
            if request.content_type != "application/json":
                raise Refusal(415, "kind", "a body is application/json")
            if (request.content_length or 0) > BODY_BYTES:
                raise Refusal(413, "size", f"a body has at most {BODY_BYTES // 1024} KiB")
            if request.path not in _NO_CHANGE and not self._entrance.may_change():
                raise Refusal(429, "rate", "too many changes within a minute", "wait a minute")

    async def _own_user(self, request: web.Request) -> None:
        """Refuse a process of another user, where the kernel tells whose it is. Looked up once a connection."""
        transport = request.transport
        if transport is None:
            raise Refusal(403, "user", "the connection is gone")
        if transport not in self._users:
            peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            self._users[transport] = await asyncio.to_thread(uid_of, peer[:2], own[:2]) if peer and own else None
        if self._users[transport] not in (None, os.geteuid()):
            raise Refusal(403, "user", "this console is its owner's alone")


def _came_from_here(request: web.Request) -> None:
    """Refuse what another page sent. Opening `/` by a link from elsewhere is allowed: a page holds no datum."""
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    is_opened = request.path == "/" and request.method in ("GET", "HEAD")
    is_navigated = is_opened and request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    if origin is not None and origin != f"http://{request.headers['Host']}":
        raise Refusal(403, "origin", "another page asked")
    if site is not None and site != "same-origin" and not is_navigated:
        raise Refusal(403, "site", "another page asked")


async def headed(request: web.Request, answer: web.StreamResponse) -> None:
    """Put the headers on every answer."""
    answer.headers.update(HEADERS)
    if request.path.startswith("/api/"):
        answer.headers["Cache-Control"] = "no-store"
    answer.headers.pop("Server", None)
