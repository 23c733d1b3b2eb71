"""The HTTP API below `/api/`, `/health` and `/metrics`, on the control socket and, if set, on TCP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web
from msgspec import Struct

from claudius.cognition.daimons import TTL_HOURS, Context, character, request, sanitised
from claudius.cognition.mind import Mind, Stage, day_start
from claudius.cognition.processes import Participation, find, known_names
from claudius.config.schema import DaimonSettings, daimons
from claudius.errors import BadConfiguration, ClaudiusError, StoreError, UsageProblem
from claudius.memory.inbox import HOUR_S, RateLimits, Rates, RateVerdict
from claudius.memory.whispers import Whisper
from claudius.observed import DaimonWhispered
from claudius.perception import SELF, InternalExtra, Kind, Origin, Perception, private
from claudius.provider import prepare
from claudius.runtime.control import ControlConnection
from claudius.runtime.daimons import PATH, Daimons
from claudius.runtime.health import Health
from claudius.runtime.peers import Peers, read

BODY_BYTES = 8192
A_MINUTE = 10
EVENT_PATH, PERCEIVE_PATH = "/api/event", "/api/perceive"
PROGRAM = "program "
"""Before the name of a requester whose token is for `/api/perceive`, and for nothing else."""
ID_CHARS = 200
STRANGER_CHARS = 32
"""The minimum length of a token when listening beyond loopback."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of the text format of Prometheus."""
IS_SOCKET = web.AppKey("is_socket", bool)
"""Which of the two listeners an application serves."""
OWNER = ""
"""The requester with the owner's token, or on the control socket, which only the owner may open. Others are daimons."""
DAIMON_NEWS_CHARS = 3000
"""The longest news of a daimon: as much as one post holds."""


class Monitor(Struct, frozen=True):
    """What `/health` and `/metrics` report."""

    health: Health
    metrics: Callable[[], Awaitable[str]]
    """Returns the metrics as text."""


class HttpApi:
    """The HTTP endpoint of one soul."""

    def __init__(
        self,
        whispers: WhisperApi,
        events: EventApi,
        monitor: Monitor,
        tokens: Callable[[], Mapping[str, str]],
        listen: str = "",
    ) -> None:
        """Listen at `listen`, HOST:PORT, once opened; empty = only on the control socket. Raises: BadConfiguration.

        `tokens` maps each daimon, and each program with `PROGRAM` before it, to its token, and `OWNER` to the owner's;
        none is empty. The owner's may do everything but whisper in a daimon's name or perceive; a daimon's may ask for
        a whisper, whisper in its own name, and bring news to the owner alone; a program's may perceive.
        """
        self._whispers, self._events, self._monitor, self._tokens = whispers, events, monitor, tokens
        self._host, self._port = listening_at(listen, tokens()) if listen else ("", 0)
        self._asked: dict[str, deque[float]] = {}
        self._runners: list[web.AppRunner] = []
        self._inner: web.AppRunner | None = None
        self._preparing = asyncio.Lock()
        self.port = 0
        """The port it listens on, once opened."""

    async def open(self) -> None:
        """Listen on TCP, if configured. Raises: BadConfiguration if the address is taken."""
        if not self._port and not self._host:
            return
        runner = await self._runner(is_socket=False)
        site = web.TCPSite(runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            where = f"{self._host}:{self._port}"
            fix = "choose another port"
            raise BadConfiguration("config.toml", "http.listen", f"{where}: {error.strerror}", fix) from error
        self.port = int(runner.addresses[0][1])

    async def serve(self, connection: ControlConnection, line: bytes) -> None:
        """Serve HTTP on a connection of the control socket."""
        async with self._preparing:
            if self._inner is None:
                self._inner = await self._runner(is_socket=True)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        server = self._inner.server
        if server is None:  # pragma: no cover - a runner that was set up has one
            return
        await asyncio.get_running_loop().connect_accepted_socket(server, theirs)
        await connection.pass_on(line, ours)

    async def close(self) -> None:
        """Stop listening."""
        for runner in self._runners:
            await runner.cleanup()

    async def _runner(self, *, is_socket: bool) -> web.AppRunner:
        app = web.Application(client_max_size=BODY_BYTES)
        app[IS_SOCKET] = is_socket
        app.router.add_post(PATH, self._whisper)
        app.router.add_post(EVENT_PATH, self._event)
        app.router.add_post(PERCEIVE_PATH, self._perceive)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5, keepalive_timeout=1.0)
        await runner.setup()
        self._runners.append(runner)
        return runner

    def _who(self, request: web.Request) -> str | None:
        """Return whose token a request bears, or None if the token is not ours. Compares the whole value."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        found = None
        for name, known in self._tokens().items():
            is_it = hmac.compare_digest(token.strip().encode(), known.encode())
            if scheme.lower() == "bearer" and known and is_it:
                found = name
        return found

    def _wait_s(self, who: str) -> int:
        """Count a request. Returns how many seconds its sender must wait; 0 = the request is within the limit."""
        now, asked = time.monotonic(), self._asked.setdefault(who, deque())
        while asked and now - asked[0] >= 60:
            asked.popleft()
        if len(asked) >= A_MINUTE:
            return max(1, int(60 - (now - asked[0])) + 1)
        asked.append(now)
        return 0

    async def _health(self, request: web.Request) -> web.Response:
        """Tell whether all is well: 200, or 503 with the reasons. The details are for the owner.

        On loopback it is told without a token, too.
        """
        is_brief = "Authorization" not in request.headers and not request.app[IS_SOCKET] and is_loopback(self._host)
        if is_brief:
            self._check_source(request)
        else:
            is_brief = self._checked(request) != OWNER
        report = await self._monitor.health.look()
        return web.json_response(report.document(is_brief=is_brief), status=200 if report.is_well else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        if self._checked(request) != OWNER:
            raise web.HTTPForbidden(text="not for daimons")
        return web.Response(text=await self._monitor.metrics(), headers={"Content-Type": METRICS_TYPE})

    async def _whisper(self, request: web.Request) -> web.Response:
        who = self._checked(request)
        body = await _document(request, self._wait_s(who))
        source = body.get("source")
        if not isinstance(source, str) or not 0 < len(source) <= 64:
            raise web.HTTPBadRequest(text="source is missing")
        if body.get("mode") == "converse":
            if who == OWNER:
                raise web.HTTPForbidden(text="only another soul converses, with the token of its daimon")
            return await self._whispers.converse(who, body)
        if isinstance(body.get("context"), dict) and "whisper" not in body:
            return await self._whispers.answer(body["context"])
        if isinstance(body.get("whisper"), str) and "context" not in body:
            if who != source and not (who == OWNER and request.app[IS_SOCKET]):
                raise web.HTTPForbidden(text="that is not this token's daimon")
            return await self._whispers.take(source, body)
        raise web.HTTPBadRequest(text="send source and context, or source and whisper")

    async def _event(self, request: web.Request) -> web.Response:
        who = self._checked(request)
        name, text, conversation = _news(await _document(request, self._wait_s(who)))
        if who != OWNER:
            if conversation:
                raise web.HTTPForbidden(text="a daimon brings news to the owner alone: name no conversation")
            if len(text) > DAIMON_NEWS_CHARS:
                raise web.HTTPRequestEntityTooLarge(DAIMON_NEWS_CHARS, len(text))
            if refused := self._whispers.refused(who):
                return refused
        return await self._events.take(who, name, text, conversation)

    async def _perceive(self, request: web.Request) -> web.Response:
        program = self._checked(request).removeprefix(PROGRAM)
        body = await _document(request)
        return await self._events.perceive(program, *_news(body), body)

    def _checked(self, request: web.Request) -> str:
        """Check the source of a request, then its token. Returns who sent it. Raises: web.HTTPException."""
        self._check_source(request)
        is_ours = request.app[IS_SOCKET] and "Authorization" not in request.headers
        who = OWNER if is_ours else self._who(request)
        if who is None:
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
        if who.startswith(PROGRAM) != (request.path == PERCEIVE_PATH):
            raise web.HTTPForbidden(text="that token is not for this")
        return who

    def _check_source(self, request: web.Request) -> None:
        """Refuse browsers, and names that are not ours. Raises: web.HTTPException."""
        if "Origin" in request.headers:
            raise web.HTTPForbidden(text="not for browsers")
        host = request.headers.get("Host", "")
        name, _, port = host.rpartition(":")
        name = (name if port.isdecimal() else host).strip("[]").lower()
        if not request.app[IS_SOCKET] and name not in {self._host, "127.0.0.1", "localhost", "::1"}:
            raise web.HTTPForbidden(text="not this host")


async def _document(request: web.Request, wait_s: int = 0) -> dict[str, Any]:
    """Return a request's JSON object. Raises: web.HTTPException; also if its sender must wait."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    if wait_s:
        raise web.HTTPTooManyRequests(headers={"Retry-After": str(wait_s)})
    if (request.content_length or 0) > BODY_BYTES:
        raise web.HTTPRequestEntityTooLarge(BODY_BYTES, request.content_length or 0)
    raw = await request.read()
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise web.HTTPBadRequest(text="not JSON") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="not an object")
    return body


def _news(body: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the id, the text and the conversation of what a request brings. Raises: web.HTTPException."""
    name, text, conversation = body.get("id"), body.get("text"), body.get("conversation", "")
    if not isinstance(name, str) or not 0 < len(name) <= ID_CHARS or not name.isprintable():
        raise web.HTTPBadRequest(text="id is missing")
    if not isinstance(text, str) or not text.strip():
        raise web.HTTPBadRequest(text="text is missing")
    if not isinstance(conversation, str):
        raise web.HTTPBadRequest(text="conversation is no name")
    return name, text.strip(), conversation


def listening_at(listen: str, tokens: Mapping[str, str]) -> tuple[str, int]:
    """Parse HOST:PORT. Pure. Raises: BadConfiguration if it is invalid or needs a stronger token."""
    host, _, port = listen.strip().rpartition(":")
    host = host.strip("[]").lower() or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise BadConfiguration(
            "config.toml", "http.listen", f"{listen!r} is not an address", "write it as 127.0.0.1:3034"
        )
    token = tokens.get(OWNER, "")
    if not token:
        raise BadConfiguration(
            ".env", "CLAUDIUS_HTTP_TOKEN", "is not set", "http.listen needs a token: write one there"
        )
    if not is_loopback(host) and min(map(len, tokens.values())) < STRANGER_CHARS:
        detail = f"beyond this machine every token needs {STRANGER_CHARS} characters or more"
        raise BadConfiguration(".env", "CLAUDIUS_HTTP_TOKEN", detail, "write longer ones, or listen on 127.0.0.1")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host's address. Pure."""
    with suppress(ValueError):  # a name is no address
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


ANSWER_S = 4.0
"""Shorter than the timeout of the soul that asks."""
OWN = DaimonSettings(provider="own", soul_md="soul.md", model="")
"""How the soul whispers: from its own text, with its own provider."""
_KEYS = ("emotionalState", "currentTopic", "currentProject")
_CHARS = 400


class WhisperApi:
    """Whispers to other souls, and accepts whispers from daimons."""

    def __init__(self, mind: Mind, daimons: Callable[[], Daimons], peers: Peers) -> None:
        """Answer for `mind`; `daimons` returns what asks daimons, loading it on first use; `peers` talks with souls."""
        self._mind, self._daimons, self._peers = mind, daimons, peers

    async def answer(self, context: Mapping[str, Any]) -> web.Response:
        """Answer `{"source", "context"}` with one call on the soul's own text; of its memory only the mood is shown."""
        mind = self._mind
        if mind.stage() is not Stage.OPEN:
            return _later(503, 3600)
        await prepare(mind.provider)  # right after a start it may not be ready, and that is no time of the model's
        soul, now, scene = mind.soul(), mind.clock(), mind.store.whispers.scene(None)
        asked = request(character("", OWN, soul), _told(context, scene.mood), soul, mind.nonce(), OWN)
        digest = hashlib.sha256(asked.tail.encode()).hexdigest()[:16]
        try:
            text = await self._daimons().think(mind.provider, asked, ANSWER_S, f"asked:{digest}:{now.isoformat()}")
        except (ClaudiusError, TimeoutError):
            return _later(503, 60)
        line = sanitised(text, "claudius", secrets=mind.secrets)
        if not line:
            return web.json_response({}, status=204)
        return web.json_response({"whisper": line, "influence": "subtle"})

    async def converse(self, source: str, body: Mapping[str, Any]) -> web.Response:
        """Answer what another soul says with a turn of its own: 200 with the words, 204 if there are none."""
        if refused := self.refused(source):
            return refused
        if self._mind.stage() is not Stage.OPEN:
            return _later(503, 3600)
        try:
            talk, number, text = read(body)
            if not self._peers.may_talk(source, talk, daimons(self._mind.config())[source].daily_max):
                return _tomorrow(self._mind.clock())
            said = await self._peers.answered(self._peers.heard(source, talk, number, text))
        except UsageProblem as error:
            return web.json_response({"error": error.message}, status=400)
        except StoreError:
            return _later(503, 60)
        return web.json_response({"text": said}) if said else web.json_response({}, status=204)

    def refused(self, source: str) -> web.Response | None:
        """Return the refusal of a daimon that is unknown or off; None if it may bring something."""
        daimon = daimons(self._mind.config()).get(source)
        if daimon is None or not daimon.is_on:
            return web.json_response({"error": "that is no daimon of mine"}, status=403)
        standing = self._mind.store.whispers.standing(source, self._mind.clock())
        return (
            web.json_response({"error": "it is off"}, status=409) if (standing.mode or daimon.mode) == "off" else None
        )

    async def take(self, source: str, body: Mapping[str, Any]) -> web.Response:
        """Take an unsolicited whisper from the daimon named."""
        if refused := self.refused(source):
            return refused
        mind, now = self._mind, self._mind.clock()
        daimon = daimons(mind.config())[source]
        standing = mind.store.whispers.standing(source, now)
        if standing.today >= daimon.daily_max:
            return _tomorrow(now)
        text = sanitised(body["whisper"], source, lately=standing.lately, secrets=mind.secrets)
        if not text:
            return web.json_response({"error": "that cannot be kept"}, status=400)
        influence = body.get("influence")
        kept = Whisper(
            daimon=source,
            text=text,
            transport="offer",
            sources=(SELF,),
            at=now,
            expires_at=now + timedelta(hours=TTL_HOURS),
            influence=influence if influence in ("subtle", "strong") else "",
        )
        number = await mind.store.whispers.keep_whisper(kept)
        mind.hooks.emit(DaimonWhispered(daimon=source, text=text, timestamp=now))
        return web.json_response({"stored": True, "id": str(number)}, status=202)


class EventApi:
    """Accepts news: what a program of the owner, or a daimon, reports to the soul, and what it is to think about."""

    def __init__(self, mind: Mind, owner: Callable[[], str], wake: Callable[[], Callable[[str], None]]) -> None:
        """Keep news for `mind`; `owner` returns the owner of this terminal, `wake` what wakes a conversation."""
        self._mind, self._owner, self._wake, self._rates = mind, owner, wake, Rates()

    async def take(self, who: str, name: str, text: str, conversation: str) -> web.Response:
        """Store one piece of news: 202, also for one that `who` brought before under this name.

        It is owed no reply, and nothing in it is an order.
        """
        owner = self._owner()
        if conversation:
            audience = self._audience(conversation)
        else:
            audience = private(owner)
            network, workspace, _ = owner.split(":", 2)
            conversation = f"{network}:{workspace}:main:main"
        perception = Perception(
            key=f"event of {who!r}:{name}" if who else f"event:{name}",
            conversation=conversation,
            audience=audience,
            text=text,
            at=self._mind.clock(),
            kind=Kind.NEWS,
            owes=False,
        )
        return await self._keep(perception, name)

    async def perceive(
        self, program: str, name: str, text: str, conversation: str, body: Mapping[str, Any]
    ) -> web.Response:
        """Wake a process with what a program perceived: 202, also for what it brought before under this name.

        It is owed a reply only if the process that `body` names answers everything. Raises: web.HTTPException.
        """
        mind, config = self._mind, self._mind.config()
        kind, named, by = body.get("kind", "event"), body.get("process", ""), body.get("from", "")
        if kind not in ("event", "message"):
            raise web.HTTPBadRequest(text="kind is event or message")
        if not isinstance(by, str) or len(by) > ID_CHARS or not by.isprintable():
            raise web.HTTPBadRequest(text="from is no name")
        soul = mind.soul()
        process = find(named, soul) if isinstance(named, str) and named in known_names(soul) else None
        if named != "" and process is None:
            raise web.HTTPBadRequest(text="there is no such process")
        if conversation not in config.perceive[program].conversations:
            raise web.HTTPForbidden(text="that conversation is not among this token's")
        audience = self._audience(conversation)
        key = f"perceived by {program!r}:{name}"
        if mind.store.inbox.state(key):  # brought again, which is no rate of anybody's
            return web.json_response({"stored": False, "id": name}, status=202)
        verdict = self._rates.judge(program, conversation, RateLimits.of(config), time.monotonic())
        if verdict is not RateVerdict.WITHIN:
            return _later(429, int(HOUR_S))
        extra = InternalExtra(
            process=named,
            event=Kind.SCHEDULED.value,  # the psyche lets the soul think about it, as about what was asked for
            what=text,
            by=by or program,
            is_message=kind == "message",
        )
        perception = Perception(
            key=key,
            conversation=conversation,
            audience=audience,
            person=audience.removeprefix(private("")) if audience.startswith(private("")) else "",
            text=text,
            at=mind.clock(),
            kind=Kind.NEWS,
            origin=Origin.INTERNAL,
            owes=process is not None and process.participation is Participation.ALWAYS,
            extra=extra,
        )
        return await self._keep(perception, name)

    async def _keep(self, perception: Perception, name: str) -> web.Response:
        try:
            new = await self._mind.store.inbox.impose(perception, "", {}, self._mind.clock())
        except StoreError:
            return _later(503, 60)
        if new:
            self._wake()(perception.conversation)
        return web.json_response({"stored": new, "id": name}, status=202)

    def _audience(self, conversation: str) -> str:
        """Return who hears a conversation. Raises: web.HTTPException if the soul does not know it."""
        audience = self._mind.store.inbox.audience(conversation)
        if not audience:
            raise web.HTTPNotFound(text="there is no such conversation")
        return audience


def _later(status: int, after_s: int) -> web.Response:
    return web.json_response({}, status=status, headers={"Retry-After": str(after_s)})


def _tomorrow(now: datetime) -> web.Response:
    return _later(429, int((day_start(now) + timedelta(days=1) - now).total_seconds()) + 1)


def _told(context: Mapping[str, Any], mood: str) -> Context:
    """Read another soul's account of itself, and add this soul's own mood. Pure."""
    state = context.get("soul_state")
    given = state if isinstance(state, Mapping) else {}
    count = context.get("interaction_count")
    return Context(
        soul_state={**{key: str(given.get(key, ""))[:_CHARS] for key in _KEYS}, "your_own_mood": mood},
        recent_monologue=str(context.get("recent_monologue", ""))[:_CHARS],
        interaction_count=count if isinstance(count, int) else 0,
        sources=(SELF,),
    )
