"""What lies outside the Web API: the URLs for answers to commands, and the downloads of files."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from lab.loopback.slack.records import Call
from lab.loopback.slack.service import Reply, Service
from lab.loopback.slack.state import BOT, BOT_USER, Message


@dataclass(frozen=True, slots=True)
class Responses:
    """Answers to commands come in here; files go out."""

    service: Service

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Take an answer to a command or a button.

        Source: docs.slack.dev/interactivity/handling-user-interaction, "Message responses"; the texts of the errors
        are our reading.
        """
        raw = await request.read()
        body = json.loads(raw)
        call = self.service.journal.called("response_url", request.method, request.headers, body, raw)
        fault = self.service.faults.take("response_url", body)
        if fault:
            call.fault = fault.kind
            await asyncio.sleep(fault.delay_s)
            if not fault.is_applied and fault.kind != "delay":
                return await fault.break_off(request, {"ok": False, "error": fault.error})
        response = self._take(self.service.replies.get(request.match_info["key"]), body, call)
        call.status = response.status
        self.service.journal.changes.happened()
        if fault and fault.kind != "delay":
            return await fault.break_off(request, {"ok": True})
        return response

    async def file(self, request: web.Request) -> web.StreamResponse:
        """Give a file to the one who shows a token; to others a page that asks to sign in, with status 200.

        Source: docs.slack.dev/reference/objects/file-object, "Authentication"; that the page is a 200 is what people
        meet after the redirect.
        """
        name = request.headers.get("Authorization", "").removeprefix("Bearer ")
        token = self.service.space.tokens.get(name)
        if token is None or token.is_revoked or "files:read" not in token.scopes:
            return web.Response(
                text="<!DOCTYPE html><html><title>Sign in | Slack</title></html>", content_type="text/html"
            )
        file = self.service.space.files.get(request.match_info["id"].partition("-")[2])
        if file is None:
            return web.Response(status=404)
        return web.Response(body=file.content, content_type=file.mimetype)

    def _take(self, reply: Reply | None, body: dict[str, Any], call: Call) -> web.Response:
        settings = self.service.settings
        if reply is None:
            return web.json_response({"ok": False, "error": "invalid_url"}, status=404)
        is_old = self.service.space.clock.now() - reply.made_at > settings.response_life_s
        if is_old or reply.uses >= settings.response_uses:
            return web.json_response({"ok": False, "error": "expired_url" if is_old else "used_url"}, status=404)
        reply.uses += 1
        call.is_applied = True
        self._show(reply, body, call)
        return web.Response(text="ok")

    def _show(self, reply: Reply, body: dict[str, Any], call: Call) -> None:
        text, blocks = str(body.get("text", "")), list(body.get("blocks") or [])
        thread_ts = body.get("thread_ts")
        facts: dict[str, Any] = {"text": text, "blocks": blocks, "user": BOT_USER, "raw": call.raw}
        if body.get("response_type") != "in_channel":
            facts |= {"ts": self.service.space.next_ts(), "to": reply.user}
        else:
            channel = self.service.space.channels[reply.channel]
            message = Message(channel.id, self.service.space.next_ts(), text, user=BOT_USER, bot_id=BOT, blocks=blocks)
            message.thread_ts = thread_ts
            self.service.publish(channel, message)
            facts |= {"ts": message.ts}
        self.service.journal.enter("app", "response", reply.channel, thread_ts=thread_ts, **facts)
