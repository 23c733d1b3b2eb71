"""The door of REST v10: reads a call, checks the token, counts it, lets ordered faults happen; and gives out files."""

import asyncio
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from lab.loopback.discord.asking import read
from lab.loopback.discord.faults import HEADERS, too_many
from lab.loopback.discord.records import Call
from lab.loopback.discord.routes import ACTS, TABLE, Route
from lab.loopback.discord.rules import NOT_FOUND, UNAUTHORIZED, Refused
from lab.loopback.discord.service import Service
from lab.loopback.discord.shapes import signature

ELSEWHERE = Route("unknown", "*", "/{rest:.*}")
CDN = Route("get_attachment", "GET", "/attachments/{channel}/{file}/{name}", needs_token=False)


@dataclass(frozen=True, slots=True)
class Rest:
    """Every path of the API, and of the files."""

    service: Service

    def add_to(self, app: web.Application) -> None:
        """Put the paths up."""
        app.router.add_get(CDN.path, self.file)
        for route in (*TABLE, ELSEWHERE):
            app.router.add_route(route.verb, f"/api/v10{route.path}", functools.partial(self.answer, route))

    async def answer(self, route: Route, request: web.Request) -> web.StreamResponse:
        """Answer one call.

        A call whose caller has gone away is carried out all the same, as the real service does.
        """
        call = self._call(route.name, request, raw=await request.read())
        response = await self._respond(route, request, call)
        is_gone = request.transport is None or call.fault == "reset"
        call.status = 0 if is_gone else response.status
        self.service.journal.changes.happened()
        return response

    def _call(self, name: str, request: web.Request, raw: bytes) -> Call:
        journal = self.service.journal
        where = {**request.query, **request.match_info}
        headers = dict(request.headers)
        call = Call(len(journal.calls) + 1, journal.now(), name, request.method, request.path, where, headers, raw)
        journal.calls.append(call)
        journal.changes.happened()
        return call

    async def _respond(self, route: Route, request: web.Request, call: Call) -> web.StreamResponse:
        facts = call.where | _fields(call.raw)
        fault = self.service.faults.take(route.name, facts)
        headers: Mapping[str, str] = {}
        if fault:
            call.fault = fault.kind
            await asyncio.sleep(fault.delay_s)
            if not fault.is_applied and fault.kind != "delay":
                return await fault.break_off(request, 200, b"{}")
        else:
            top = request.match_info.get(route.top, "")
            verdict = self.service.limits.count(route.name, top, is_interaction=not route.needs_token)
            headers = verdict.headers
            if verdict.wait_s:
                return too_many(verdict.wait_s, "global" if verdict.is_global else "user", headers)
        status, body = self._apply(route, request, call)
        if fault and fault.kind != "delay":
            return await fault.break_off(request, status, body)
        kind = HEADERS if body else {"Via": HEADERS["Via"]}
        return web.Response(status=status, body=body or None, headers={**kind, **headers})

    def _apply(self, route: Route, request: web.Request, call: Call) -> tuple[int, bytes]:
        if route.needs_token and request.headers.get("Authorization") != f"Bot {self.service.space.token}":
            return 401, _written(UNAUTHORIZED)
        act = ACTS.get(route.name)
        if act is None:
            return 404, _written(NOT_FOUND)
        try:
            status, body = act(read(self.service, call, request, call.raw))
        except Refused as no:
            call.code = no.code
            return no.status, _written(no.body)
        call.is_applied = True
        return status, b"" if status == 204 else _written(body)

    async def file(self, request: web.Request) -> web.StreamResponse:
        """Give a file to the one who has its signed URL, until that runs out."""
        call = self._call(CDN.name, request, b"")
        fault = self.service.faults.take(CDN.name, call.where)
        if fault:
            call.fault = fault.kind
            await asyncio.sleep(fault.delay_s)
            if fault.kind != "delay":
                return await fault.break_off(request, 200, b"")
        file = self.service.space.files.get(request.match_info["file"])
        expires = request.query.get("ex", "")
        is_signed = file is not None and request.query.get("hm") == signature(file, expires)
        if file is None or not is_signed or int(expires, 16) < self.service.space.clock.now():
            call.status = 404
            return web.Response(status=404, text="This content is no longer available.")
        call.status, call.is_applied = 200, True
        return web.Response(body=file.content, headers={"Content-Type": file.mimetype})


def _written(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _fields(raw: bytes) -> dict[str, Any]:
    """Read the fields of a JSON body, for faults that are picky; anything else has none."""
    try:
        found = json.loads(raw)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
