"""A model server on loopback: Anthropic Messages and chat completions, a prompt cache, and faults on order.

It refuses what the real services refuse (missing key, empty text, too many or wrongly ordered breakpoints, a prompt
that is too long), accepts what the real Claude CLI sends (beta headers, `system` items among the messages, a billing
header block), and records every request. Alone, it prints its port as one line of JSON:

    PYTHONPATH=tests python -m lab.loopback.model --port 0 --replies FILE

Another process drives it over `/_control/say` and `/_control/reset`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from claudius.testing.model_calls import Call, Reply
from lab.loopback import model_wire as wire
from lab.loopback.model_families import Family, is_asked, ollama_events, ollama_whole
from lab.loopback.model_faults import FAULTS, SEED, Stream, refusal
from lab.loopback.model_rules import BODY_LIMIT, refused
from lab.loopback.prompt_cache import BadCacheControl, PromptCache

__all__ = ["MODEL", "Answer", "Call", "ModelServer", "Reply", "parse_replies"]

Answer = str | Reply | Callable[[Call], "str | Reply"]

MODEL = "claude-loopback"


@dataclass(slots=True)
class ModelServer:
    """One server. `replies` are given in order; when none is left or fits, `default` answers."""

    replies: Iterable[Answer] = ()
    default: Answer = "I hear you."
    models: Sequence[str] = (MODEL,)
    keys: frozenset[str] | None = None
    """The keys that are let in; None = any, but one must be there for Anthropic's paths."""
    thinking: frozenset[str] = frozenset({"disabled", "enabled", "adaptive", "between_tools"})
    """The kinds of thinking that the model can be asked for; any other is refused."""
    max_prompt_tokens: int = 200_000
    family: Family = field(default_factory=Family)
    """Which kind of server it is, where it is asked for chat completions or by Ollama's own interface."""
    cache: PromptCache = field(default_factory=PromptCache)
    host: str = "127.0.0.1"
    port: int = 0
    """0 = any free one; then the one that was taken."""
    calls: list[Call] = field(default_factory=list)
    """Every request, oldest first, `/_control` aside."""
    _queue: list[Answer] = field(init=False)
    _runner: web.AppRunner | None = None

    def __post_init__(self) -> None:
        """Take the replies."""
        self._queue = list(self.replies)

    async def __aenter__(self) -> Self:
        """Listen."""
        app = web.Application(client_max_size=2 * BODY_LIMIT)
        app.router.add_post("/_control/say", self._say)
        app.router.add_post("/_control/reset", self._reset)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Stop; streams under way are broken off."""
        if self._runner:
            await self._runner.cleanup()

    @property
    def url(self) -> str:
        """The base URL for Anthropic's clients; chat-completions clients take `url + "/v1"`."""
        return f"http://{self.host}:{self.port}"

    @property
    def asked(self) -> list[Call]:
        """The calls of a model, oldest first: no listings, no token counts, no probes."""
        return [call for call in self.calls if is_asked(call)]

    def say(self, *answers: Answer) -> None:
        """Drop the replies that are left and take these instead; forget the calls."""
        self._queue[:] = answers
        self.calls.clear()

    def reset(self) -> None:
        """Forget calls and replies; the prompt cache stays."""
        self.calls.clear()
        self._queue.clear()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        call = Call(
            request.method, request.path, dict(request.headers), await request.read(), time.monotonic(), _port(request)
        )
        self.calls.append(call)
        try:
            response = await self._route(request, call)
        except (asyncio.CancelledError, ConnectionResetError):
            call.gone = True
            raise
        call.finished = True
        return response

    async def _route(self, request: web.Request, call: Call) -> web.StreamResponse:
        match (request.method, request.path):
            case ("POST", "/v1/messages"):
                return await self._anthropic(request, call)
            case ("POST", "/v1/chat/completions"):
                return await self._openai(request, call)
            case ("POST", "/v1/messages/count_tokens"):
                counted = PromptCache().count(call.body)
                found: Any = {"input_tokens": counted.input_tokens + counted.write_5m + counted.write_1h}
            case ("GET", "/v1/models"):
                found = self._models()
            case ("GET", "/api/tags"):
                found = {"models": [{"name": name, "model": name} for name in self.models]}
            case ("GET" | "HEAD", "/"):
                found = "Ollama is running"
            case ("POST", "/api/chat") if self.family.name == "ollama":
                return await self._ollama(request, call)
            case _ if (told := self.family.told(request.method, request.path, _json(call), self.models)) is not None:
                found = told
            case _:
                return refusal(404, "not_found_error", f"no such path: {request.path}")
        return web.json_response(found)

    def _models(self) -> dict[str, Any]:
        data = [
            self.family.listed()
            | {
                "id": name,
                "type": "model",
                "object": "model",
                "display_name": name,
                "created_at": "2026-01-01T00:00:00Z",
            }
            for name in self.models
        ]
        return {"object": "list", "data": data, "has_more": False}

    def _next(self, call: Call) -> Reply:
        text = call.raw.decode("utf-8", "replace")
        for number, answer in enumerate(self._queue):
            if isinstance(answer, Reply) and answer.when and answer.when not in text:
                continue
            if not (isinstance(answer, Reply) and answer.keep):
                del self._queue[number]
            return _reply(answer, call)
        return _reply(self.default, call)

    async def _anthropic(self, request: web.Request, call: Call) -> web.StreamResponse:
        if no := refused(call, keys=self.keys, thinking=self.thinking):
            return no
        try:
            call.counted = counted = self.cache.count(call.body)
        except BadCacheControl as error:
            return refusal(400, "invalid_request_error", str(error))
        prompt = counted.input_tokens + counted.read + counted.write_5m + counted.write_1h
        if prompt > self.max_prompt_tokens:
            limit = self.max_prompt_tokens
            return refusal(400, "invalid_request_error", f"prompt is too long: {prompt} tokens > {limit} maximum")
        call.reply = reply = self._next(call)
        model, number = str(call.body["model"]), len(self.calls)
        events = list(wire.anthropic_events(reply, counted, model, number))
        call.borders = tuple(accumulate(map(len, events)))
        whole = wire.anthropic_message(reply, counted, model, number)
        return await Stream(request, reply, "anthropic", events, whole).answer(stream=bool(call.body.get("stream")))

    async def _openai(self, request: web.Request, call: Call) -> web.StreamResponse:
        body = call.body
        if not body.get("model") or not body.get("messages"):
            return refusal(400, "invalid_request_error", "model and messages are required")
        if body["model"] not in self.models:
            return refusal(404, "not_found_error", f"model '{body['model']}' not found")
        if self.keys is not None and call.headers.get("Authorization", "").removeprefix("Bearer ") not in self.keys:
            return refusal(401, "authentication_error", "Incorrect API key provided")
        if self.family.refuses(body):
            return refusal(400, "invalid_request_error", "response_format is not supported")
        prompt, cached = self.cache.count_prefix(body["messages"])
        if prompt > self.max_prompt_tokens:
            return refusal(400, "context_length_exceeded", f"maximum context length is {self.max_prompt_tokens} tokens")
        call.reply = reply = self.family.held(body) or self._next(call)
        usage = wire.openai_usage(reply, prompt, cached)
        number = len(self.calls)
        wanted = usage if reply.usage and (body.get("stream_options") or {}).get("include_usage") else None
        events = list(wire.openai_events(reply, wanted, body["model"], number))
        call.borders = tuple(accumulate(map(len, events)))
        whole = wire.openai_message(reply, usage, body["model"], number)
        return await Stream(request, reply, "openai", events, whole).answer(stream=bool(body.get("stream")))

    async def _ollama(self, request: web.Request, call: Call) -> web.StreamResponse:
        body = call.body
        prompt, _ = self.cache.count_prefix(body["messages"])
        call.reply = reply = self.family.held(body) or self._next(call)
        events = list(ollama_events(reply, body["model"], prompt))
        whole = ollama_whole(reply, body["model"], prompt)
        return await Stream(request, reply, "ollama", events, whole).answer(stream=bool(body.get("stream", True)))

    async def _say(self, request: web.Request) -> web.Response:
        try:
            self._queue.extend(parse_replies(await request.json()))
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response({"left": len(self._queue)})

    async def _reset(self, _: web.Request) -> web.Response:
        self.reset()
        return web.json_response({})


def _json(call: Call) -> dict[str, Any]:
    return call.body if call.raw else {}


def _port(request: web.Request) -> int:
    peer = request.transport and request.transport.get_extra_info("peername")
    return int(peer[1]) if peer else 0


def _reply(answer: Answer, call: Call) -> Reply:
    if isinstance(answer, Reply):
        return msgspec.structs.replace(answer, deltas=(SEED,)) if answer.fault in ("huge", "huge_line") else answer
    return Reply(text=answer) if isinstance(answer, str) else _reply(answer(call), call)


def parse_replies(found: Any) -> list[Answer]:
    """Read replies as JSON gives them: strings, or objects with the fields of `Reply`. Raises: ValueError."""
    replies = [Reply(text=item) if isinstance(item, str) else msgspec.convert(item, Reply) for item in found]
    for reply in replies:
        if reply.fault and reply.fault not in FAULTS:
            raise ValueError(f"unknown fault {reply.fault!r}; there are {', '.join(FAULTS)}")
    return list(replies)


async def serve(port: int, replies: Iterable[Answer], default: str, models: Sequence[str]) -> None:
    """Run alone until stopped; the first line on stdout names the port."""
    async with ModelServer(replies, default=default, port=port, models=models) as server:
        sys.stdout.write(json.dumps({"port": server.port, "url": server.url}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Read the command line and serve."""
    import argparse  # noqa: PLC0415 - only when run alone

    parser = argparse.ArgumentParser(description="A model server on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--replies", type=Path, help="JSON lines: strings, or objects with the fields of Reply")
    parser.add_argument("--default", default="I hear you.", help="the reply when none is left")
    parser.add_argument("--model", action="append", help="a model's name; may be repeated")
    given = parser.parse_args()
    lines = given.replies.read_text("utf-8").splitlines() if given.replies else []
    replies = parse_replies([json.loads(line) for line in lines if line.strip()])
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(given.port, replies, given.default, given.model or (MODEL,)))


if __name__ == "__main__":
    main()
