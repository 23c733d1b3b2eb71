"""One call of the API, read: parameters and JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from lab.loopback.discord.records import Call
from lab.loopback.discord.rules import Refused
from lab.loopback.discord.service import Service


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of the service. `path` and `query` hold the parameters, `body` the JSON object, if there is one."""

    service: Service
    call: Call
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any] = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)
    """The JSON array, if the body is one."""

    def number(self, name: str, usual: int, most: int) -> int:
        """Read a number of the query, at least 1. Raises: Refused: 50035."""
        try:
            return max(1, min(most, int(self.query.get(name, usual))))
        except ValueError:
            raise Refused(50035, message="Invalid Form Body") from None


def read(service: Service, call: Call, request: web.Request, raw: bytes) -> Asking:
    """Read a call. Raises: Refused: the body is not what it says it is."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if raw and kind != "application/json":
        # Source: docs.discord.com/developers/reference, "HTTP API": the type must be a valid one.
        raise Refused(50035, message="Invalid Form Body")
    try:
        found = json.loads(raw) if raw else {}
    except ValueError:
        raise Refused(50109) from None
    call.body = found
    body, items = (found, []) if isinstance(found, dict) else ({}, found)
    if not isinstance(items, list):
        raise Refused(50109)
    return Asking(service, call, dict(request.match_info), dict(request.query), body, items)
