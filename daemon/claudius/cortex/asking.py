"""Make one isolated model call (a system text and one document, no history, no session) and parse its answer.

The call has a deadline. An answer that is late or cannot be parsed is discarded whole. A consultation is such a call:
the cortex judges a risky request before the soul answers it, and if no answer comes in time, a cautious default is
returned. Source: the cortex design, sections 3 and 7.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, cast

from claudius.config.load import blot
from claudius.cortex.models import ModelAnswer, Output, Ties
from claudius.errors import ClaudiusError, TimedOut
from claudius.intent import Call
from claudius.ledger_types import Known
from claudius.observed import ConsultAnswer, Consulted, ConsultRequest
from claudius.prompt import HIDES, fence, nested_line, valid
from claudius.provider import Delta, Done, Event, Provider, Request, Reset, Usage, quiet
from claudius.soul import SoulText

log = logging.getLogger(__name__)

CONSULT_S = 20.0
"""After how long without advice the cautious default is taken."""
MAX_TOKENS = 800
JOB = "cortex"
"""The job name under which usage is booked."""
SOUL_TOKENS = 500
MOST_CHARS = 65_536
SUMMARY_CHARS = 800
_FENCED = re.compile(r"```json[ \t]*\r?\n(.*?)```", re.DOTALL | re.IGNORECASE)
_LISTS = ("assessments", "beliefs", "directives")
_UNSEEN = re.compile(f"[{HIDES}\ud800-\udfff]")
REQUEST_CHARS, REASON_CHARS, RESPONSE_CHARS, CONDITIONS = 2000, 600, 600, 4


def system_text(soul: SoulText, file: str = "cortex.md") -> str:
    """Return a system text of the cortex with its placeholders filled in. Pure."""
    values = {"name": name_of(soul.text("soul.md")), "guide": soul.text("trust.md").strip()}
    return soul.files[file].fill(**values).strip()


def shortened(text: str, tokens: int) -> str:
    """Cut prose to a number of tokens (characters / 4), at a line end if one is near. Pure."""
    if len(text) <= 4 * tokens:
        return text
    cut = text[: 4 * tokens]
    at = cut.rfind("\n")
    return cut[:at] if at > len(cut) // 2 else cut


def name_of(soul: str) -> str:
    """Return the soul's name: the start of its first heading. Pure."""
    first = next((line for line in soul.splitlines() if line.startswith("#")), "")
    return first.lstrip("# ").partition(",")[0].strip() or "this soul"


def nonce_for(ties: Ties, content: Mapping[str, Any]) -> str:
    """Return a nonce that does not occur in the document."""
    line = nested_line(content)
    while (nonce := ties.nonce()) in line:
        continue
    return nonce


def book(ties: Ties, name: str, answer: ModelAnswer, at: datetime) -> None:
    """Book a call's usage under the job `cortex`, once, whether or not its answer is used."""
    call = Call(
        n=0,
        purpose=JOB,
        request_sha256="",
        stop_reason="end",
        usage=answer.usage,
        provider=answer.provider,
        model=answer.model,
        ms=answer.ms,
    )
    ties.store.turns.book(name, call, at)


def request(
    system: str, content: Mapping[str, Any], nonce: str, *, model: str = "", max_tokens: int = MAX_TOKENS
) -> Request:
    """Return the request for one isolated call. Pure."""
    return Request(
        system=system,
        history=(),
        tail=fence(nested_line(content), nonce),
        max_tokens=max_tokens,
        keep_session=False,
        purpose=JOB,
        model=model or None,
    )


async def ask(provider: Provider, asked: Request, timeout_s: float) -> ModelAnswer:
    """Return the complete answer. Raises: ProviderError, TimeoutError; a partial answer is discarded."""
    await quiet(provider)
    started = time.monotonic()
    text = ""
    done = Done(text="", usage=Usage())
    async with asyncio.timeout(timeout_s):
        async with aclosing(cast(AsyncGenerator[Event, None], provider.complete(asked))) as events:
            async for event in events:
                match event:
                    case Delta(piece):
                        text += piece
                    case Reset():
                        text = ""
                    case Done():
                        done = event
    return ModelAnswer(
        text=text or done.text,
        usage=done.usage,
        provider=done.provider or provider.name,
        model=done.model or provider.model,
        ms=round((time.monotonic() - started) * 1000),
    )


class Unparsable(ValueError):
    """The answer is not what was asked for."""


def parse(text: str) -> Output:
    """Parse an answer: the whole text as JSON, else its first ```json fence. Pure. Raises: Unparsable."""
    found = read_object(text)
    summary = found.get("summary")
    if not isinstance(summary, str) or not summary.strip():
        raise Unparsable("it has no summary")
    dropped: list[str] = []
    lists: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for name in _LISTS:
        entries = found.get(name, [])
        if not isinstance(entries, list):
            raise Unparsable(f"{name} is not a list")
        objects = [entry for entry in entries if isinstance(entry, dict)]
        if len(objects) < len(entries):
            dropped.append(f"{name}: {len(entries) - len(objects)} that are no objects")
        if name == "assessments" and any("info_score" in entry for entry in objects):
            dropped.append("info_score: it is counted, never judged")
        lists[name] = tuple({key: value for key, value in entry.items() if key != "info_score"} for entry in objects)
    alignment = found.get("alignment")
    return Output(
        summary=one_line(summary)[:SUMMARY_CHARS],
        alignment=alignment if isinstance(alignment, dict) else {},
        dropped=tuple(dropped),
        **lists,
    )


def read_object(text: str) -> Mapping[str, Any]:
    """Parse the single JSON object in an answer. Pure. Raises: Unparsable."""
    if len(text) > MOST_CHARS:
        raise Unparsable(f"it is longer than {MOST_CHARS} characters")
    fenced = _FENCED.search(text)
    for body in (text, fenced[1] if fenced else ""):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
        raise Unparsable("it is no JSON object")
    raise Unparsable("it is not JSON")


def one_line(text: str) -> str:
    """Return a text as one line, without invisible characters. Pure."""
    return " ".join(_UNSEEN.sub(" ", text).split())


async def consult(ties: Ties, asked: ConsultRequest) -> ConsultAnswer:
    """Judge a request before the soul answers it. A late answer is discarded."""
    started = time.monotonic()
    try:
        counsel = await _judge(ties, asked)
    except (TimeoutError, TimedOut):
        counsel = cautious(asked.classes, timed_out=True)
    except (ClaudiusError, Unparsable) as error:
        log.warning("a consultation failed: %s", error)
        counsel = cautious(asked.classes)
    ties.emit(
        Consulted(
            turn=asked.turn,
            classes=list(asked.classes),
            verdict=counsel.verdict,
            timed_out=counsel.timed_out,
            elapsed_seconds=round(time.monotonic() - started, 3),
        )
    )
    return counsel


async def _judge(ties: Ties, asked: ConsultRequest) -> ConsultAnswer:
    settings, soul = ties.config().cortex, ties.soul()
    grounds = ties.store.ledger.grounds(asked.audience, (asked.peer_id,), settings.context_window)
    content = {
        "request": blot(one_line(valid(asked.text))[:REQUEST_CHARS], ties.secrets),
        "from": one_line(valid(asked.name)),
        "at_stake": list(asked.classes),
        "record": [_record(one, ties.secrets) for one in grounds.peers],
        "soul": shortened(soul.text("soul.md"), SOUL_TOKENS),
    }
    nonce = nonce_for(ties, content)
    wanted = request(system_text(soul, "consult.md"), content, nonce, model=settings.model)
    answer = await ask(ties.voice(settings.provider), wanted, CONSULT_S)
    book(ties, f"cortex:consult:{asked.turn}:{nonce}", answer, ties.clock())
    return read_counsel(answer.text)


def _record(known: Known, secrets: Sequence[str]) -> dict[str, Any]:
    peer = known.peer
    newest = peer.newest
    return {
        "peer_id": peer.peer_id,
        "messages": peer.messages,
        "since": peer.first_at.date().isoformat(),
        "info_score": peer.info_score,
        "trust": newest.trust if newest else None,
        "trajectory": list(peer.trajectory),
        "rationale": newest.rationale if newest else None,
        "timeline": [
            {
                "at": line.at.isoformat(timespec="minutes"),
                "dir": line.direction,
                "preview": blot(one_line(line.preview), secrets),
            }
            for line in known.timeline
        ],
    }


def read_counsel(text: str) -> ConsultAnswer:
    """Parse a verdict strictly. Pure. Raises: Unparsable."""
    found = read_object(text)
    verdict, conditions, response = (found.get(name) for name in ("verdict", "conditions", "suggested_response"))
    if verdict not in ("approve", "deny", "conditional") or not isinstance(found.get("reasoning"), str):
        raise Unparsable("it holds no verdict with its reasoning")
    conditions = conditions if isinstance(conditions, list) else []
    said = [one_line(one)[:REASON_CHARS] for one in conditions if isinstance(one, str)]
    return ConsultAnswer(
        verdict=verdict,
        reasoning=one_line(found["reasoning"])[:REASON_CHARS],
        conditions=tuple(said[:CONDITIONS]),
        suggested_response=one_line(response)[:RESPONSE_CHARS] if isinstance(response, str) else "",
    )


def cautious(classes: Collection[str], *, timed_out: bool = False) -> ConsultAnswer:
    """Return the default for a missing verdict: refuse, or, for money, require the owner's word. Pure."""
    is_money = "money" in classes
    return ConsultAnswer(
        verdict="conditional" if is_money else "deny",
        reasoning="no counsel came in time" if timed_out else "no counsel could be had",
        conditions=("the owner confirms it in their own words",) if is_money else (),
        timed_out=timed_out,
    )
