"""Faults of the Web API on order: per method, so many times, before the call is applied or after."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from lab.loopback.breaking import cut, drop

HEADERS = {"Content-Type": "application/json; charset=utf-8"}
FaultKind = Literal["delay", "hang", "rate_limit", "status", "reset", "cut", "bad_json", "error"]

FAULTS: Mapping[FaultKind, str] = {
    "delay": "answers `delay_s` later",
    "hang": "never answers",
    "rate_limit": "429 with Retry-After",
    "status": "the fault's HTTP status, without JSON",
    "reset": "resets the connection",
    "cut": "promises the whole body, sends half of it and closes",
    "bad_json": "200 with a body that is not JSON",
    "error": "200 with `ok: false` and the fault's error",
}


@dataclass(slots=True)
class Fault:
    """What goes wrong. `is_applied`: the service does what was asked, and then it goes wrong."""

    method: str
    """Of the Web API; `*` = any; `response_url` = the answers to commands."""
    kind: FaultKind
    times: int = 1
    skip: int = 0
    """So many calls pass before the first one is hit."""
    is_applied: bool = False
    delay_s: float = 0.0
    status: int = 500
    error: str = "internal_error"
    retry_after_s: int | str = 1
    where: dict[str, Any] = field(default_factory=dict)
    """Only calls with these arguments; null = any value, but it must be there."""

    def hits(self, method: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether a call is one of those."""
        return self.method in (method, "*") and all(
            name in arguments and wanted in (None, arguments[name]) for name, wanted in self.where.items()
        )

    async def break_off(self, request: web.Request, answer: Mapping[str, Any]) -> web.StreamResponse:
        """Answer in the ordered way; `answer` is what would have been said."""
        match self.kind:
            case "hang":
                await asyncio.Event().wait()
            case "rate_limit":
                return too_many(self.retry_after_s)
            case "status":
                return web.Response(status=self.status, text="<html>upstream error</html>", content_type="text/html")
            case "reset":
                drop(request, is_reset=True)
            case "cut":
                return await cut(request, json.dumps(answer).encode(), HEADERS)
            case "bad_json":
                return web.Response(text='{"ok": tru', content_type="application/json")
            case "error":
                return web.json_response({"ok": False, "error": self.error})
        return web.json_response(answer)


def too_many(retry_after_s: int | str) -> web.Response:
    """Say 429. Source: docs.slack.dev/apis/web-api/rate-limits."""
    body = {"ok": False, "error": "ratelimited"}
    return web.json_response(body, status=429, headers={"Retry-After": str(retry_after_s)})
