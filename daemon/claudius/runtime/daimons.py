"""Asks daimons for whispers, over HTTP first and then of a model, and lets a daimon say a line after a reply.

Every gate is checked before a byte is sent. Not loaded while no daimon is on.

Source: the daimon design, sections 3 to 7.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct
from msgspec.structs import replace

from claudius.addresses import Once, check_literal
from claudius.cognition.commit import commit_whole
from claudius.cognition.daimons import (
    MAX_TOKENS,
    PURPOSE,
    SPEECH_CHARS,
    TTL_HOURS,
    Context,
    character,
    conclude_daimon,
    model_of,
    request,
    sanitised,
    told,
)
from claudius.cognition.mind import Mind, Stage
from claudius.cognition.turn_state import silent_turn
from claudius.config.schema import DaimonSettings, daimons
from claudius.cortex.asking import ask as ask_once
from claudius.errors import ClaudiusError, ProviderError, StaleTurn, UsageProblem
from claudius.foreign import plain_message, unquoted
from claudius.intent import Call, Intent
from claudius.memory.inbox import Pending
from claudius.memory.recall import RecallLimits
from claudius.memory.whispers import DaimonRecord, Transport, Whisper
from claudius.observed import DaimonSpoke, DaimonWhispered
from claudius.perception import Origin
from claudius.prompt import data_line, fence
from claudius.provider import Provider, Request, SecondVoice
from claudius.recollection import Entry, EntryType, Recollection, turn_of
from claudius.runtime.peers import TURN_S

log = logging.getLogger(__name__)

PATH = "/api/whisper"
ANSWER_BYTES = 8192
CONNECT_S, HTTP_S, MODEL_S = 1.0, 5.0, 10.0
"""For a connection, a whole request, and a model in a daimon's name."""
MOST_RETRY_S = 86_400.0

Outcome = Literal["counsel", "silence", "refused", "dreaming", "failed"]


class DaimonAnswer(Struct, frozen=True, kw_only=True):
    """The result of asking a daimon."""

    outcome: Outcome
    text: str = ""
    influence: str = ""
    retry_after_s: float = 0.0
    detail: str = ""


async def ask(daimon: DaimonSettings, token: str, body: Mapping[str, Any]) -> DaimonAnswer:
    """Ask a daimon within its timeout. Never raises for failures of the other side."""
    try:
        async with asyncio.timeout(HTTP_S):
            return await _ask(daimon, token, body)
    except TimeoutError:
        return DaimonAnswer(outcome="failed", detail="it did not answer in time")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return DaimonAnswer(outcome="failed", detail=plain_message(error))


async def _ask(daimon: DaimonSettings, token: str, body: Mapping[str, Any]) -> DaimonAnswer:
    return _read(*await _posted(daimon, token, body, HTTP_S))


async def _posted(
    daimon: DaimonSettings, token: str, body: Mapping[str, Any], within_s: float
) -> tuple[int, Mapping[str, str], bytes | None]:
    """Post a request. Returns the status, the headers, and the body; None if that is too long."""
    check_literal(urlsplit(daimon.url).hostname or "")
    url = daimon.url.rstrip("/") + PATH
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")  # escapes would make 12 bytes of one emoji
    connector = aiohttp.TCPConnector(resolver=Once(), use_dns_cache=False, force_close=True)
    timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=CONNECT_S)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
        session.post(url, data=data, headers=headers, allow_redirects=False) as response,
    ):
        return response.status, response.headers, await _bounded(response)


async def _bounded(response: aiohttp.ClientResponse) -> bytes | None:
    """Read an answer up to `ANSWER_BYTES`; None if there is more."""
    found = b""
    async for piece in response.content.iter_any():
        found += piece
        if len(found) > ANSWER_BYTES:
            return None
    return found


def _read(status: int, headers: Mapping[str, str], body: bytes | None) -> DaimonAnswer:
    """Map an HTTP answer to a `DaimonAnswer` by the table of the daimon design. Pure."""
    if status in (401, 403):
        return DaimonAnswer(outcome="refused", detail=f"it refused our token ({status})")
    if status == 503:
        text = headers.get("Retry-After", "")
        after_s = min(float(text), MOST_RETRY_S) if text.isdecimal() else 0.0
        return DaimonAnswer(outcome="dreaming", retry_after_s=after_s, detail="it dreams")
    if status not in (200, 204):
        return DaimonAnswer(outcome="failed", detail=f"it answered {status}")
    if body is None:
        return DaimonAnswer(outcome="failed", detail=f"its answer is longer than {ANSWER_BYTES} bytes")
    return _counsel(body) if status == 200 else DaimonAnswer(outcome="silence")


def _counsel(body: bytes) -> DaimonAnswer:
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: the JSON is nested too deep
        return DaimonAnswer(outcome="failed", detail="its answer is no JSON")
    if not isinstance(document, dict) or not isinstance(document.get("whisper", ""), str):
        return DaimonAnswer(outcome="failed", detail="its answer is no whisper")
    text, influence = document.get("whisper", ""), document.get("influence")
    known = influence if influence in ("subtle", "strong") else ""
    return DaimonAnswer(outcome="counsel" if text.strip() else "silence", text=text, influence=known)


REST = timedelta(hours=1)
FAILURES = 3
"""After this many consecutive failures, HTTP is suspended."""


class Whispered(Struct, frozen=True, kw_only=True):
    """The result of asking one daimon."""

    daimon: str
    whisper: str = ""
    transport: Transport | None = None
    stored: bool = False
    reason: str = ""


class Daimons:
    """All daimons of one soul, and how to ask them."""

    def __init__(
        self,
        mind: Mind,
        voice: Callable[[DaimonSettings], Provider],
        token: Callable[[str], str],
        owners: Callable[[], tuple[str, ...]],
    ) -> None:
        """Ask for `mind`: `voice` builds the provider of a model daimon, `token` returns what a daimon is sent."""
        self._mind, self._build, self._token, self._owners = mind, voice, token, owners
        self._voices: dict[tuple[str, str], Provider] = {}

    def known(self, name: str) -> DaimonSettings:
        """Return a daimon by name. Raises: UsageProblem if there is none."""
        found = daimons(self._mind.config()).get(name)
        if found is None:
            raise UsageProblem(f"no daimon {name!r}: it is one of {', '.join(daimons(self._mind.config()))}")
        return found

    async def due(self, name: str, *, quiet: bool) -> Whispered:
        """Ask a daimon on schedule, subject to every gate."""
        daimon, now = self.known(name), self._mind.clock()
        standing = self._mind.store.whispers.standing(name, now)
        if reason := self._shut(name, daimon, standing, now, quiet=quiet):
            return Whispered(daimon=name, reason=reason)
        scene = self._mind.store.whispers.scene(standing.asked_at)
        if not scene.conversation:
            return Whispered(daimon=name, reason="nothing was said since it was last asked")
        return await self._whisper(name, daimon, standing, told(scene, daimon, self._owners()), now)

    async def now(self, name: str) -> Whispered:
        """Ask a daimon at once, for the owner: skips the gates, but respects the budget."""
        daimon, now = self.known(name), self._mind.clock()
        if not daimon.is_on:
            key = name if name == "kothar" else f"daimons.{name}"
            raise ClaudiusError(f"{name} is off: `claudius config set {key}.enabled true`, or .groq_enabled")
        if not self.may_spend():
            raise ClaudiusError("the day's budget has no room for whispers: `claudius usage`")
        standing = self._mind.store.whispers.standing(name, now)
        scene = self._mind.store.whispers.scene(None)
        return await self._whisper(name, daimon, standing, told(scene, daimon, self._owners()), now)

    async def converse(self, name: str, body: Mapping[str, Any]) -> str:
        """Say something to another soul, and return its words; empty if it refuses. Raises: ClaudiusError."""
        daimon = self.known(name)
        if not daimon.enabled:
            raise ClaudiusError(f"{name} does not listen: `claudius config set daimons.{name}.enabled true`")
        try:
            found = await _posted(daimon, self._token(name), {"source": "claudius", **body}, TURN_S + HTTP_S)
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            raise ClaudiusError(f"{name} cannot be reached: {plain_message(error)}") from error
        status, _, answer = found
        if status in (200, 204):
            text = json.loads(answer or b"{}").get("text") if status == 200 else ""
            return text if isinstance(text, str) else ""
        raise ClaudiusError(f"{name} refuses ({status}): its settings name this soul as a daimon, with the same token")

    async def aclose(self) -> None:
        """Close the clients of the models."""
        for voice in self._voices.values():
            await voice.aclose()

    def _shut(self, name: str, daimon: DaimonSettings, standing: DaimonRecord, now: datetime, *, quiet: bool) -> str:
        """Return the reason why a gate is shut; empty = none is."""
        if not daimon.is_on or (standing.mode or daimon.mode) in ("off", "speak"):
            return "it is off"
        if quiet:
            return "quiet hours"
        if standing.has_active:
            return "its last whisper was not felt yet"
        if standing.today >= daimon.daily_max:
            return "its whispers of the day are told"
        if not daimon.groq_enabled and self._rests(name, daimon, standing, now):
            return f"it rests: {_plain(standing.reason)}"
        return "" if self.may_spend() else "no budget"

    def may_spend(self) -> bool:
        """Return whether the day's budget has room for a daimon's model call."""
        return self._mind.stage() is Stage.OPEN

    async def _whisper(
        self, name: str, daimon: DaimonSettings, standing: DaimonRecord, context: Context, now: datetime
    ) -> Whispered:
        await self._mind.store.whispers.asked(name, now)
        answer = DaimonAnswer(outcome="failed", detail="it is not asked over HTTP")
        rests = self._rests(name, daimon, standing, now)
        if daimon.enabled and not rests:
            answer = await ask(daimon, self._token(name), context.document("claudius"))
            await self._note(name, daimon, standing, answer, now)
        elif rests:
            answer = DaimonAnswer(outcome="failed", detail=f"it rests: {_plain(standing.reason)}")
        transport: Transport = "http"
        if answer.outcome not in ("counsel", "silence") and daimon.groq_enabled:
            transport, answer = "model", await self._imagined(name, daimon, context, now)
        if answer.outcome != "counsel":
            log.info("no whisper", extra={"daimon": name, "outcome": answer.outcome, "detail": answer.detail})
            reason = "it is silent" if answer.outcome == "silence" else answer.detail
            return Whispered(daimon=name, transport=transport, reason=reason)
        return await self._keep(name, standing, context, answer, transport, now)

    async def _keep(
        self,
        name: str,
        standing: DaimonRecord,
        context: Context,
        answer: DaimonAnswer,
        transport: Transport,
        now: datetime,
    ) -> Whispered:
        text = sanitised(answer.text, name, lately=standing.lately, secrets=self._mind.secrets)
        if not text:
            return Whispered(daimon=name, transport=transport, reason="what it said cannot be kept")
        whisper = Whisper(
            daimon=name,
            text=text,
            transport=transport,
            sources=context.sources,
            at=now,
            expires_at=now + timedelta(hours=TTL_HOURS),
            influence=answer.influence,
            conversation=context.conversation,
        )
        await self._mind.store.whispers.keep_whisper(whisper)
        self._mind.hooks.emit(DaimonWhispered(daimon=name, text=text, timestamp=now))
        return Whispered(daimon=name, whisper=text, transport=transport, stored=True)

    async def _note(
        self, name: str, daimon: DaimonSettings, standing: DaimonRecord, answer: DaimonAnswer, now: datetime
    ) -> None:
        """Store the result of asking over HTTP, and until when HTTP is suspended."""
        failures, until = 0, None
        if answer.outcome == "refused":
            until = now + REST
        elif answer.outcome == "dreaming" and answer.retry_after_s:
            until = now + timedelta(seconds=answer.retry_after_s)
        elif answer.outcome == "failed":
            failures = standing.failures + 1
            until = now + REST if failures >= FAILURES else None
        reason = f"{answer.detail} [{self._print(name, daimon)}]" if answer.detail else ""
        await self._mind.store.whispers.fared(name, failures=failures, rests_until=until, reason=reason)

    async def _imagined(self, name: str, daimon: DaimonSettings, context: Context, now: datetime) -> DaimonAnswer:
        soul = self._mind.soul()
        system = character(name, daimon, soul)
        if not system:
            return DaimonAnswer(outcome="failed", detail=f"it has no character: write soul/daimons/{name}.md")
        asked = request(system, context, soul, self._mind.nonce(), daimon)
        try:
            text = await self.think(self._voice(daimon), asked, MODEL_S, f"{name}:{now.isoformat()}")
        except (ProviderError, TimeoutError) as error:
            return DaimonAnswer(
                outcome="failed",
                detail=plain_message(error) if isinstance(error, ProviderError) else "the model did not answer in time",
            )
        return DaimonAnswer(outcome="counsel" if any(map(str.isalnum, text)) else "silence", text=text)

    async def think(self, provider: Provider, asked: Request, timeout_s: float, job: str) -> str:
        """Make one call and record it. Raises: ProviderError, TimeoutError."""
        started = time.monotonic()
        answer = await ask_once(SecondVoice(provider, self._mind.slot), asked, timeout_s)
        made = Call(
            n=0,
            purpose=PURPOSE,
            request_sha256=sha256(asked.tail.encode()).hexdigest(),
            stop_reason="end",
            usage=answer.usage,
            provider=answer.provider,
            model=answer.model,
            ms=round((time.monotonic() - started) * 1000),
        )
        self._mind.store.turns.book(f"whisper:{job}", made, self._mind.clock())
        return answer.text

    def may_hear(self, daimon: DaimonSettings, audience: str) -> bool:
        """Return whether a daimon may be shown an audience: others' direct messages only with `share_private`."""
        person = audience.removeprefix("private:")
        return person == audience or person in self._owners() or daimon.share_private

    async def heard(self, name: str, daimon: DaimonSettings, asked: Request, turn: str) -> str:
        """Return what a daimon says aloud, from its own model, or the soul's if it has none. Raises as `think`."""
        voice = self._voice(daimon) if daimon.groq_enabled else self._mind.provider
        asked = replace(asked, model=model_of(daimon) if daimon.groq_enabled else None)
        return await self.think(voice, asked, MODEL_S, f"{name}:aloud:{turn}")

    def _voice(self, daimon: DaimonSettings) -> Provider:
        key = (daimon.provider, daimon.base_url)
        if key not in self._voices:
            self._voices[key] = self._build(daimon)
        return self._voices[key]

    def _print(self, name: str, daimon: DaimonSettings) -> str:
        return sha256(f"{daimon.url}:{self._token(name)}".encode()).hexdigest()[:8]

    def _rests(self, name: str, daimon: DaimonSettings, standing: DaimonRecord, now: datetime) -> bool:
        """Return whether HTTP is suspended: until its time, or until the daimon's address or token changes."""
        is_same = standing.reason.endswith(f"[{self._print(name, daimon)}]")
        return standing.rests_until is not None and now < standing.rests_until and is_same


def _plain(reason: str) -> str:
    return reason.rpartition(" [")[0] or reason


SPEAKS = ("speak", "both")
AN_HOUR = 6
"""The most lines of daimons per hour in one conversation."""
LINES = 8
"""How many of the latest spoken lines the daimon is shown."""
_ALOUD = (EntryType.USER_MESSAGE, EntryType.EXTERNAL_DIALOG, EntryType.DAIMON_SPEECH)


async def speak_up(intent: Intent, pending: Pending, mind: Mind, known: Daimons) -> None:
    """Let the first daimon that may be shown this conversation say its line, once per turn. Raises: StoreError.

    The line is optional: if anything fails, or somebody else speaks first, it is dropped.
    """
    perception = pending.perceptions[-1]
    is_closed = intent.planned is not None and intent.planned.closes
    is_theirs = perception.origin is Origin.EXTERNAL and not perception.is_bot
    has_replied = "reply" in [one.kind for one in intent.utterances]
    if is_closed or not is_theirs or not has_replied or not known.may_spend():
        return
    for name, daimon in daimons(mind.config()).items():
        if not daimon.is_on or not known.may_hear(daimon, intent.audience):
            continue
        if mind.store.whispers.mode_of(name, intent.conversation, daimon.mode) in SPEAKS:
            await _speak(name, daimon, intent, pending, mind, known)
            return


async def _speak(
    name: str, daimon: DaimonSettings, intent: Intent, pending: Pending, mind: Mind, known: Daimons
) -> None:
    recollection = await _recall(name, intent, pending, mind)
    said = [one for turn in recollection.past for one in turn.entries if one.entry_type in _ALOUD]
    lately = recollection.now - timedelta(hours=1)
    if sum(one.entry_type is EntryType.DAIMON_SPEECH and one.at > lately for one in said) >= AN_HOUR:
        return
    system = character(name, daimon, mind.soul())
    if not system:
        return
    try:
        text = await known.heard(name, daimon, _request(system, daimon, said, mind), recollection.turn)
    except (ProviderError, TimeoutError) as error:
        log.info("a daimon stays silent", extra={"daimon": name, "error": unquoted(error)})
        return
    turn = await silent_turn(f"daimon:{name}", recollection, mind)
    concluded = conclude_daimon(name, text, turn)
    if concluded is None:
        log.info("a daimon's line is not said", extra={"daimon": name})
        return
    try:
        concluded = await commit_whole(concluded, recollection, mind)
    except StaleTurn:
        log.info("a daimon came too late", extra={"daimon": name, "turn": intent.turn})
        return
    if not concluded.utterances:
        return
    mind.hooks.emit(
        DaimonSpoke(
            daimon=name,
            conversation=concluded.conversation,
            turn=concluded.turn,
            timestamp=concluded.at,
            text=concluded.utterances[0].body,
        )
    )


async def _recall(name: str, intent: Intent, pending: Pending, mind: Mind) -> Recollection:
    config = mind.config()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours, aged_at=mind.aged_at())
    again = replace(pending, turn=turn_of(f"{intent.turn}/{name}"))
    return await mind.store.turns.recall(again, nonce=mind.nonce(), now=mind.clock(), limits=limits)


def _request(system: str, daimon: DaimonSettings, said: Sequence[Entry], mind: Mind) -> Request:
    shown = (
        {"kind": "line", "from": "Claudius" if one.entry_type is EntryType.EXTERNAL_DIALOG else one.name or "someone",
         "text": one.content}
        for one in said[-LINES:]
    )  # fmt: skip
    nonce = mind.nonce()
    return Request(
        system=f"{system.strip()}\n\n{mind.soul().text('aloud.md').strip()}",
        history=(),
        tail="\n".join(fence(data_line(record), nonce) for record in shown),
        max_tokens=max(MAX_TOKENS, SPEECH_CHARS // 4),
        keep_session=False,
        purpose=PURPOSE,
        temperature=daimon.temperature,
    )
