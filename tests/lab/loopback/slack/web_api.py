"""The door of the Web API: reads a call, checks token, scopes and arguments, lets the ordered fault happen."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from lab.loopback.slack import methods_app, methods_chat, methods_read
from lab.loopback.slack.faults import Fault, too_many
from lab.loopback.slack.records import Call
from lab.loopback.slack.rules import METHODS, Arguments, Refused, check
from lab.loopback.slack.service import Service
from lab.loopback.slack.state import Token

Method = Callable[[Service, Arguments, Call], dict[str, Any]]

HANDLERS: Mapping[str, Method] = {**methods_app.METHODS, **methods_chat.METHODS, **methods_read.METHODS}

_AS_JSON = frozenset({"blocks", "attachments", "metadata", "chunks", "view", "loading_messages"})
"""What stands as JSON inside a form. Source: docs.slack.dev/apis/web-api, "URL-encoded"."""


@dataclass(slots=True)
class WebApi:
    """Every path under /api/."""

    service: Service

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one call.

        A call whose caller has gone away is carried out all the same, as the real service does.
        """
        method, raw = request.match_info["method"], await request.read()
        broken, arguments = _arguments(request, raw)
        call = self.service.journal.called(method, request.method, request.headers, arguments, raw)
        response = await self._respond(request, call, arguments, broken)
        call.status = response.status if request.transport is not None else 0
        self.service.journal.changes.happened()
        return response

    async def _respond(
        self, request: web.Request, call: Call, arguments: Arguments, broken: Refused | None
    ) -> web.StreamResponse:
        fault = self.service.faults.take(call.method, arguments)
        if fault:
            call.fault = fault.kind
            await asyncio.sleep(fault.delay_s)
            if not fault.is_applied and fault.kind != "delay":
                return await _broken_off(fault, request, call, {"ok": False, "error": fault.error})
        elif self.service.settings.has_rate_limits:
            wait_s = self.service.limits.refuse_for_s(call.method, arguments)
            if wait_s:
                call.error = "ratelimited"
                return too_many(wait_s)
        answer = self._apply(call, arguments, broken)
        if fault and fault.kind != "delay":
            return await _broken_off(fault, request, call, answer)
        return web.json_response(answer, headers=self._headers(call))

    def _apply(self, call: Call, arguments: Arguments, broken: Refused | None) -> dict[str, Any]:
        warnings = _warnings(call)
        try:
            if broken:
                raise broken
            answer = {"ok": True} | self._carry_out(call, arguments)
            call.is_applied = True
        except Refused as no:
            call.error = no.error
            answer = {"ok": False, "error": no.error, **no.facts}
        warnings += answer.pop("warnings", [])
        if warnings:
            answer["warning"] = ",".join(warnings)
            answer["response_metadata"] = {"warnings": warnings, **answer.get("response_metadata", {})}
        return answer

    def _carry_out(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        rule, handler = METHODS.get(call.method), HANDLERS.get(call.method)
        if rule is None or handler is None:
            raise Refused("unknown_method", req_method=call.method)
        token = self._token(call, arguments)
        if token.kind != rule.kind:
            raise Refused("not_allowed_token_type")
        if rule.scopes and not token.scopes & set(rule.scopes):
            raise missing_scope(rule.scopes, token)
        check(call.method, arguments)
        return handler(self.service, arguments, call)

    def _token(self, call: Call, arguments: Arguments) -> Token:
        name = _named_token(call, arguments)
        if not name:
            raise Refused("not_authed")
        token = self.service.space.tokens.get(name)
        if token is None:
            raise Refused("invalid_auth")
        if token.is_revoked:
            raise Refused("token_revoked" if token.kind == "app" else "account_inactive")
        return token

    def _headers(self, call: Call) -> dict[str, str]:
        """Name the token's scopes. Source: docs.slack.dev/authentication/installing-with-oauth, "X-OAuth-Scopes"."""
        token = self.service.space.tokens.get(_named_token(call, Arguments(call.arguments)))
        rule = METHODS.get(call.method)
        headers = {"X-Slack-Req-Id": f"req-{call.n}", "Cache-Control": "private, no-cache, no-store"}
        if token is not None and not token.is_revoked:
            headers["X-OAuth-Scopes"] = ",".join(sorted(token.scopes))
        if rule is not None and rule.scopes:
            headers["X-Accepted-OAuth-Scopes"] = ",".join(rule.scopes)
        return headers


def missing_scope(scopes: tuple[str, ...], token: Token) -> Refused:
    """Refuse for want of a scope, naming what is needed and what there is."""
    return Refused("missing_scope", needed=",".join(scopes), provided=",".join(sorted(token.scopes)))


async def _broken_off(fault: Fault, request: web.Request, call: Call, answer: Mapping[str, Any]) -> web.StreamResponse:
    if fault.kind == "error":
        call.error = fault.error
    return await fault.break_off(request, answer)


def _named_token(call: Call, arguments: Arguments) -> str:
    """Read the token: from the header, or else from the arguments."""
    header = next((value for name, value in call.headers.items() if name.lower() == "authorization"), "")
    return header.removeprefix("Bearer ").strip() or arguments.text("token")


def _content_type(headers: Mapping[str, str]) -> str:
    return next((value for name, value in headers.items() if name.lower() == "content-type"), "").lower()


def _warnings(call: Call) -> list[str]:
    """Complain of charsets. Source: docs.slack.dev/apis/web-api, "Warnings"."""
    kind = _content_type(call.headers)
    if kind.startswith("application/json") and "charset" not in kind:
        return ["missing_charset"]
    if kind.startswith("application/x-www-form-urlencoded") and "charset" in kind:
        return ["superfluous_charset"]
    return []


def _arguments(request: web.Request, raw: bytes) -> tuple[Refused | None, Arguments]:
    """Read query and body. Source of the errors: docs.slack.dev/apis/web-api, "POST bodies"."""
    found = Arguments(request.query)
    kind = _content_type(request.headers)
    if not raw:
        return None, found
    if kind.startswith("application/json"):
        try:
            body = json.loads(raw)
        except ValueError:
            return Refused("invalid_json"), found
        if not isinstance(body, dict):
            return Refused("json_not_object"), found
        found.update(body)
    elif kind.startswith("application/x-www-form-urlencoded"):
        found.update(parse_qsl(raw.decode("utf-8", "surrogatepass"), keep_blank_values=True))
    else:
        return Refused("invalid_post_type" if kind else "missing_post_type"), found
    return _read_json(found), found


def _read_json(found: Arguments) -> Refused | None:
    for name in _AS_JSON & found.keys():
        if isinstance(found[name], str) and found[name]:
            try:
                found[name] = json.loads(found[name])
            except ValueError:
                error = {"blocks": "invalid_blocks_format", "metadata": "invalid_metadata_format"}
                return Refused(error.get(name, "invalid_arguments"))
    return None
