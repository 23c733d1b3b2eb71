"""Faults of the API on order: per route, so many times, before the call is applied or after."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from lab.loopback.breaking import cut, drop

FaultKind = Literal["delay", "hang", "rate_limit", "status", "reset", "cut", "bad_json"]
Scope = Literal["user", "global", "shared", "cloudflare"]

FAULTS: Mapping[FaultKind, str] = {
    "delay": "answers `delay_s` later",
    "hang": "never answers",
    "rate_limit": "429 of the fault's `scope`; `cloudflare` is the page of a ban, without `Via`",
    "status": "the fault's HTTP status, with its body as JSON; empty = a page that is not JSON",
    "reset": "resets the connection",
    "cut": "promises the whole body, sends half of it and closes",
    "bad_json": "the usual status with a body that is not JSON",
}

HEADERS = {"Content-Type": "application/json", "Via": "1.1 google"}
"""discord.py takes a body for JSON only if its type is exactly this, and a 429 without `Via` for a ban."""


@dataclass(slots=True)
class Fault:
    """What goes wrong. `is_applied`: the service does what was asked, and then it goes wrong."""

    route: str
    """As Discord's documentation names it: `create_message`; `*` = any."""
    kind: FaultKind
    times: int = 1
    skip: int = 0
    """So many calls pass before the first one is hit."""
    is_applied: bool = False
    delay_s: float = 0.0
    status: int = 502
    body: dict[str, Any] = field(default_factory=dict)
    retry_after_s: float | str = 1.0
    scope: Scope = "user"
    where: dict[str, Any] = field(default_factory=dict)
    """Only calls with these parameters of path, query or body; null = any value, but it must be there."""

    def hits(self, route: str, facts: Mapping[str, Any]) -> bool:
        """Say whether a call is one of those."""
        return self.route in (route, "*") and all(
            name in facts and wanted in (None, facts[name]) for name, wanted in self.where.items()
        )

    async def break_off(self, request: web.Request, status: int, body: bytes) -> web.StreamResponse:
        """Answer in the ordered way; `status` and `body` are what would have been said."""
        match self.kind:
            case "hang":
                await asyncio.Event().wait()
            case "rate_limit":
                return too_many(self.retry_after_s, self.scope)
            case "status" if self.body:
                return web.Response(status=self.status, body=json.dumps(self.body), headers=HEADERS)
            case "status":
                page = b"<html>upstream error</html>"
                return web.Response(status=self.status, body=page, headers={"Content-Type": "text/html"})
            case "reset":
                drop(request, is_reset=True)
            case "cut":
                return await cut(request, body or b'{"id": ""}', HEADERS)
            case "bad_json":
                return web.Response(status=status if body else 200, body=b'{"id": "1', headers=HEADERS)
        return web.Response(status=status, body=body, headers=HEADERS)


def too_many(wait_s: float | str, scope: Scope, headers: Mapping[str, str] | None = None) -> web.Response:
    """Say 429. Source: docs.discord.com/developers/topics/rate-limits, "Exceeding A Rate Limit"."""
    whole = str(wait_s) if isinstance(wait_s, str) else str(int(wait_s) + 1)
    if scope == "cloudflare":
        page = b"<html>error code: 1015</html>"
        retry = {"Retry-After": whole, "Content-Type": "text/html"}
        return web.Response(status=429, body=page, headers=retry)
    asked = wait_s if isinstance(wait_s, str) else round(wait_s, 3)
    body = {"message": "You are being rate limited.", "retry_after": asked, "global": scope == "global"}
    told = {"X-RateLimit-Scope": scope, "Retry-After": whole, **(headers or {}), **HEADERS}
    if scope == "global":
        told["X-RateLimit-Global"] = "true"
    return web.Response(status=429, body=json.dumps(body).encode(), headers=told)
