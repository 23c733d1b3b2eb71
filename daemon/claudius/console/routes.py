"""The routes below /api/: each GET answers the document of its command, each POST does what its command does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args

from aiohttp import web
from msgspec import to_builtins

from claudius.config.load import blot, held
from claudius.console.access import Entrance, mint
from claudius.console.live import Live
from claudius.console.walls import Refusal, document
from claudius.errors import BadConfiguration, ClaudiusError
from claudius.foreign import plain_message
from claudius.home import Home
from claudius.ledger_types import OwnersHand
from claudius.memory.records import Records
from claudius.reports import (
    clock,
    conversations,
    doctor,
    ledger,
    life,
    mind,
    people,
    replaying,
    soul,
    status,
    tools,
)
from claudius.reports.opened import read
from claudius.reports.plain import encode
from claudius.runtime import receipts

ORIGIN = "console"
"""From where the audit log says that something was looked at."""
NOTED = ("/api/people/", "/api/turns/")
"""Routes that show what was learned of people, so that looking at them is in the audit log."""
HALF = "a text holds half a character"
MOST_ROWS = 200
"""Rows of a list in one answer; the rest is paged with `before`."""

Read = Callable[[Home, Mapping[str, str]], Any]


def _paged(rows: Any, query: Mapping[str, str], key: str) -> Any:
    """Return a page of a long list; `before` is the `key` of the row that it comes after."""
    if len(rows) <= MOST_ROWS and "before" not in query:
        return rows
    names = [str(row[key]) for row in rows]
    begin = names.index(query["before"]) + 1 if query.get("before") in names else 0
    return rows[begin : begin + MOST_ROWS]


def _why(home: Home, query: Mapping[str, str]) -> dict[str, Any]:
    found = conversations.explained(home, query["turn"], ORIGIN)
    if query.get("prompt") != "1":
        del found["prompt"]
    return found


def _life(home: Home, query: Mapping[str, str]) -> dict[str, Any]:
    now = life.clock_now()
    begin, end = (_instant(query[name]) if name in query else None for name in ("from", "to"))
    back = timedelta(days=min(max(1, _number(query, "days", 7)), 3660))
    return life.life(home, begin or (end or now) - back, end or now, _number(query, "px", 800))


def _diff(home: Home, query: Mapping[str, str]) -> dict[str, Any]:
    old, new = (_number(query, name, -1) for name in ("a", "b"))
    audience = query.get("audience", "")
    return people.diff(home, query["person"], old if old >= 0 else None, new if new >= 0 else None, audience, ORIGIN)


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Refusal(400, "usage", f"not an instant: {text!r}", "write it as 2026-01-01T00:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if text and not text.isascii():
        raise Refusal(400, "usage", f"not a number: {text!r}")
    try:
        return int(text) if text else default
    except ValueError:
        raise Refusal(400, "usage", f"not a number: {text!r}") from None


def _few(query: Mapping[str, str], default: int) -> int:
    return min(_number(query, "n", default), MOST_ROWS)


def _by(query: Mapping[str, str]) -> Any:
    by = query.get("by", "day")
    if by not in ("day", "model", "person", "conversation", "job"):
        raise Refusal(400, "usage", f"usage is not counted by {by!r}", "day, model, person, conversation or job")
    return by


READS: Mapping[str, Read] = {
    "/api/status": lambda home, _: status.status(home),
    "/api/doctor": lambda home, _: doctor.doctor(doctor.checks(home)),
    "/api/usage": lambda home, query: status.usage(home, _by(query)),
    "/api/backups": lambda home, _: status.backups(home),
    "/api/conversations": lambda home, query: _paged(read(home, Records.conversations), query, "conversation"),
    "/api/conversations/{id}": lambda home, query: conversations.page(home, query["id"], query.get("before", "")),
    "/api/turns/{turn}": _why,
    "/api/life": _life,
    "/api/psyche": lambda home, _: life.psyche(home, life.clock_now()),
    "/api/state": lambda home, query: read(home, lambda kept: kept.state(every_audience=query.get("all") == "1")),
    "/api/peers": lambda home, query: _paged(read(home, Records.peers), query, "peer"),
    "/api/peers/{id}": lambda home, query: ledger.peer(home, query["id"]),
    "/api/people": lambda home, query: _paged(read(home, Records.people), query, "person"),
    "/api/people/{person}": lambda home, query: to_builtins(people.person(home, query["person"], ORIGIN)),
    "/api/people/{person}/log": lambda home, query: people.log(home, query["person"], ORIGIN),
    "/api/people/{person}/blame": lambda home, query: people.blame(
        home, query["person"], query.get("audience", ""), ORIGIN
    ),
    "/api/people/{person}/diff": _diff,
    "/api/people/{person}/export": lambda home, query: people.export(home, query["person"], ORIGIN),
    "/api/beliefs": lambda home, _: read(home, lambda kept: kept.beliefs(life.clock_now())),
    "/api/evidence": lambda home, query: read(
        home, lambda kept: kept.evidence([int(one) for one in query.get("ids", "").split(",") if one.isdigit()])
    ),
    "/api/cycles": lambda home, query: read(home, lambda kept: kept.reflections(_few(query, 10))),
    "/api/soul": lambda home, _: soul.texts(home),
    "/api/soul/check": lambda home, _: soul.checked(home),
    "/api/soul/{file}": lambda home, query: soul.history(home, query["file"]),
    "/api/processes": lambda home, _: soul.processes(home),
    "/api/schedule": lambda home, _: clock.schedule(home, life.clock_now()),
    "/api/whispers": lambda home, query: read(home, lambda kept: kept.whispers(_few(query, 50))),
    "/api/daimons": lambda home, _: clock.daimons(home, datetime.now(UTC)),
    "/api/settings": lambda home, _: mind.settings(home),
    "/api/models": lambda home, _: mind.model_rows(home),
    "/api/tools": lambda home, _: tools.offered(home),
    "/api/tools/pending": lambda home, _: read(home, Records.calls_waiting),
    "/api/tools/calls": lambda home, query: read(home, lambda kept: kept.calls(_few(query, 20))),
    "/api/tools/grants": lambda home, _: read(home, lambda kept: kept.grants(datetime.now(UTC))),
}
"""Each GET and the document that it answers, that of its command's `--json`. `{…}` and the query are one mapping."""


class Routes:
    """The handlers of one console's routes."""

    def __init__(
        self, home: Home, entrance: Entrance, live: Live, port: Callable[[], int], env: Mapping[str, str]
    ) -> None:
        """Read and change `home`; `port` returns where this console listens; `env` is what it began with."""
        self._home, self._entrance, self._live, self._port, self._env = home, entrance, live, port, env
        self._noting = asyncio.Lock()

    def add_to(self, app: web.Application) -> None:
        """Register every route."""
        for path, document_of in READS.items():
            app.router.add_get(path, self._reading(document_of))
        posts: Mapping[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            "enter": self._enter,
            "close": self._close,
            "link": self._link,
            "live": self._follow,
            "say": self._say,
            "shown": self._shown,
            "stop": self._stop,
            "beliefs/{key}": self._belief,
            "reflect": self._reflect,
            "schedule/{id}/cancel": self._cancel,
            "schedule/{id}/move": self._move,
            "daimons/{name}": self._daimon,
            "tools/{id}": self._decide,
            "settings/{key}": self._set,
            "keys/{name}": self._keep_key,
            "models/{name}": self._model,
            "soul/check": self._check,
            "soul/{file}": self._save,
            "replay": self._replay,
            "ask": self._ask,
            "people/{person}/revert": self._revert,
            "people/{person}/link": self._joined,
            "people/{person}/forget": self._forget,
        }
        for name, handler in posts.items():
            app.router.add_post(f"/api/{name}", handler)

    def _reading(self, document_of: Read) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            asked = {**request.query, **request.match_info}
            if any("\0" in value for value in asked.values()):
                raise ClaudiusError("nothing here has a NUL in its name")
            if not request.path.startswith(NOTED):
                return document(await asyncio.to_thread(document_of, self._home, asked))
            async with self._noting:  # each writes a line into the audit log
                return document(await asyncio.to_thread(document_of, self._home, asked))

        return answer

    async def _enter(self, request: web.Request) -> web.Response:
        if self._entrance.is_refused():
            raise Refusal(429, "rate", "too many wrong tickets", "wait a minute")
        token = self._entrance.enter(str((await body(request)).get("ticket") or ""))
        if token is None:
            fix = "`claudius console --link` gives a link that works once"
            raise Refusal(401, "closed", "this link was used, or is too old", fix)
        return document({"token": token, "until": "12 hours after its last use"})

    async def _close(self, _: web.Request) -> web.Response:
        self._entrance.close()
        return document({"closed": True})

    async def _link(self, _: web.Request) -> web.Response:
        address = await asyncio.to_thread(mint, self._home, self._port())
        return document({"ticket": address.rpartition("#")[2]})

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        asked = await body(request)
        after = asked.get("after")
        if after is not None and not isinstance(after, int):
            raise Refusal(400, "usage", "`after` is the number of an event")
        stream = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await stream.prepare(request)
        try:
            async with aclosing(self._live.follow(after, str(asked.get("conversation") or ""))) as events:
                async for event in events:
                    await stream.write(json.dumps(event).encode() + b"\n")
        except (ConnectionError, asyncio.CancelledError):
            pass  # the page went away
        return stream

    async def _say(self, request: web.Request) -> web.Response:
        return document(await self._live.say(await body(request)), 202)

    async def _shown(self, request: web.Request) -> web.Response:
        asked = await body(request)
        await self._live.shown(str(asked.get("conversation") or ""), str(asked.get("key") or ""))
        return document({"noted": True})

    async def _stop(self, request: web.Request) -> web.Response:
        asked = await body(request)
        return document(await self._live.say({**asked, "text": "!stop"}), 202)

    async def _belief(self, request: web.Request) -> web.Response:
        asked = (await body(request)).get("hand")
        hand = next((one for one in get_args(OwnersHand) if one == asked), None)
        if hand is None:
            raise Refusal(400, "usage", f"a belief cannot be changed by {asked!r}", "pin, dispute or delete")
        key, now = request.match_info["key"], life.clock_now()
        return document(await asyncio.to_thread(ledger.change, self._home, key, hand, now))

    async def _reflect(self, _: web.Request) -> web.Response:
        return document(await ledger.reflect(self._home))

    async def _cancel(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(clock.cancel, self._home, request.match_info["id"])
        return document({"cancelled": request.match_info["id"]})

    async def _move(self, request: web.Request) -> web.Response:
        plan, at = request.match_info["id"], str((await body(request)).get("at", ""))
        await asyncio.to_thread(clock.move, self._home, plan, at)
        return document({"moved": plan, "at": at})

    async def _daimon(self, request: web.Request) -> web.Response:
        name, asked = request.match_info["name"], await body(request)
        if asked.get("whisper"):
            return document(await clock.whisper(self._home, name))
        mode = str(asked.get("mode"))
        if mode not in ("whisper", "speak", "both", "off"):
            raise Refusal(400, "usage", f"{mode!r} is not a mode", "whisper, speak, both or off")
        await asyncio.to_thread(clock.set_mode, self._home, name, mode)
        return document({"daimon": name, "mode": mode})

    async def _decide(self, request: web.Request) -> web.Response:
        call, verb = request.match_info["id"], str((await body(request)).get("verb"))
        if verb not in ("allow", "talk", "deny"):
            raise Refusal(400, "usage", f"{verb!r} decides nothing", "allow, talk or deny")
        said = await asyncio.to_thread(tools.decide, self._home, call, verb)
        return document({"id": call, "said": said})

    async def _set(self, request: web.Request) -> web.Response:
        key, text = request.match_info["key"], str((await body(request)).get("value", ""))
        try:
            text.encode()
            await asyncio.to_thread(mind.set_on_the_page, self._home, key, text, ORIGIN, self._env)
        except BadConfiguration as error:
            raise Refusal(400, "usage", error.message, error.fix) from None
        except UnicodeEncodeError:
            raise Refusal(400, "usage", HALF) from None
        return document({"key": key, "but": mind.overridden(self._home, key)})

    async def _keep_key(self, request: web.Request) -> web.Response:
        """Keep a key that is never answered again, by this route or another."""
        name, value = request.match_info["name"], str((await body(request)).get("value", ""))
        await asyncio.to_thread(mind.keep_key, self._home, name, value.strip(), ORIGIN)
        but = mind.outranked(self._home, name, self._env)
        return document({"key": name, "is_set": bool(value.strip()), "but": but})

    async def _model(self, request: web.Request) -> web.StreamResponse:
        name, verb = request.match_info["name"], (await body(request)).get("verb")
        if verb == "use":
            await asyncio.to_thread(mind.use, self._home, name, ORIGIN)
            return document({"used": name})
        if verb != "get":
            raise Refusal(400, "usage", f"{verb!r} is nothing to do with a model", "get or use")
        return await _streamed(request, mind.downloaded(self._home, name), held(self._env))

    async def _check(self, request: web.Request) -> web.Response:
        files = drafts(await body(request))
        return document(await asyncio.to_thread(soul.checked, self._home, files))

    async def _save(self, request: web.Request) -> web.Response:
        """Write a soul file, where it still is what the page saw."""
        asked, file = await body(request), request.match_info["file"]
        text, was = asked.get("text"), asked.get("was_sha256")
        if not isinstance(text, str) or not isinstance(was, str):
            raise Refusal(400, "usage", "a soul file is saved as a text over the one that was seen: `was_sha256`")
        drafts({"files": {file: text}})
        saved = partial(soul.save, self._home, file, text, was, datetime.now(UTC), origin=ORIGIN)
        return document(await asyncio.to_thread(saved))

    async def _replay(self, request: web.Request) -> web.Response:
        asked = await body(request)
        found = await asyncio.to_thread(replaying.replays, self._home, turns(asked), drafts(asked))
        return document(found)

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        """Ask turns again, once their tokens are agreed to; stream a row a turn."""
        asked = await body(request)
        tokens = asked.get("agreed_tokens")
        if not isinstance(tokens, int):
            raise Refusal(400, "usage", "`agreed_tokens` is how many tokens you agree to")
        rows = replaying.ask(self._home, turns(asked), drafts(asked), tokens)
        return await _streamed(request, rows, held(self._env))

    async def _revert(self, request: web.Request) -> web.Response:
        asked, who, now = await body(request), request.match_info["person"], datetime.now(UTC)
        version, audience, newest = asked.get("version"), str(asked.get("audience") or ""), asked.get("was")
        if not isinstance(version, int):
            raise Refusal(400, "usage", "`version` is the number of a version")
        known = await asyncio.to_thread(people.person, self._home, who, ORIGIN)
        current = [model.version for model in known.models if audience in ("", model.audience)]
        if newest is not None and newest not in current:
            raise Refusal(409, "stale", "this portrait was changed meanwhile", "look at it again")
        return document(await asyncio.to_thread(people.revert, self._home, who, version, audience, now))

    async def _joined(self, request: web.Request) -> web.Response:
        who, other = request.match_info["person"], str((await body(request)).get("other") or "")
        return document(await asyncio.to_thread(people.link, self._home, who, other))

    async def _forget(self, request: web.Request) -> web.Response:
        """Erase a person whose name was typed out, and answer the receipt."""
        typed = str((await body(request)).get("name") or "")
        known = await asyncio.to_thread(people.person, self._home, request.match_info["person"], ORIGIN)
        if typed not in (known.name or known.person, known.person):
            raise Refusal(400, "usage", "that is not the person's name", "type it out as it is shown")
        receipt = await people.forget(self._home, known.person)
        return document({**receipt, "lines": receipts.of(receipt)})


async def _streamed(
    request: web.Request, rows: AsyncGenerator[Any, None], secrets: Sequence[str]
) -> web.StreamResponse:
    """Answer rows as JSON lines while they come; what fails before the first is a refusal, what fails later a row."""
    first = await anext(rows)
    stream = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await stream.prepare(request)

    async def write(row: Any) -> None:
        await stream.write(blot(encode(row), secrets).encode() + b"\n")

    async with aclosing(rows):
        with suppress(ConnectionError):  # the page went away
            await write(first)
            try:
                async for row in rows:
                    await write(row)
            except (ClaudiusError, OSError) as error:
                await write({"error": {"detail": plain_message(error), "fix": ""}})
    return stream


def drafts(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of soul files that a page has not saved, by name. Raises: Refusal."""
    found = asked.get("files") or {}
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise Refusal(400, "usage", "`files` are texts by name")
    try:
        "".join((*found, *found.values())).encode()
    except UnicodeEncodeError:
        raise Refusal(400, "usage", HALF) from None
    return found


def turns(asked: Mapping[str, Any]) -> list[str]:
    """Return the turns that a page names; none = the newest. Raises: Refusal."""
    found = asked.get("turns") or []
    if not isinstance(found, list) or not all(isinstance(turn, str) for turn in found):
        raise Refusal(400, "usage", "`turns` are the names of turns")
    return found


async def body(request: web.Request) -> dict[str, Any]:
    """Return a request's JSON object. Raises: Refusal."""
    try:
        found = json.loads(await request.text())
    except (ValueError, RecursionError, ConnectionError):
        raise Refusal(400, "usage", "a body is one JSON object") from None
    if not isinstance(found, dict):
        raise Refusal(400, "usage", "a body is one JSON object")
    return found
