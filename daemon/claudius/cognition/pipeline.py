"""The one place of a turn that awaits a model: one call, and at most one repair."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind, Show
from claudius.cognition.soul_engine import (
    EngineSettings,
    Ground,
    NeedsRepair,
    Parsed,
    Parser,
    Plan,
    StreamGate,
    Zones,
    climb,
    interpret,
    private_texts,
    prompt_sha256,
    repair_tail,
)
from claudius.config import blot
from claudius.errors import ProviderError, RefusedReply
from claudius.intent import Call, Thoughts
from claudius.prompt import Prompt
from claudius.provider import Delta, Done, Event, Provider, Request, Reset, Usage, estimate
from claudius.recollection import Recollection
from claudius.soul import SoulText


class Thinking(Struct, kw_only=True):
    """One turn's thinking: what is asked, with what, and what is paid for already."""

    mind: Mind
    plan: Plan
    prompt: Prompt
    prompt_sha256: str
    recollection: Recollection
    soul: SoulText
    settings: EngineSettings
    ground: Ground
    zones: Zones
    paid: Mapping[str, Call] = field(default_factory=dict)
    """Finished calls of an earlier, unfinished run, by the sha256 of their request."""
    show: Show | None = None
    calls: tuple[Call, ...] = ()
    own: tuple[str, ...] = ()
    """Private texts of this very turn that stand in the prompt of its next call."""

    def guard(self, texts: Iterable[str]) -> None:
        """Let nothing that this turn says from now on repeat these, which its next call is shown."""
        self.own = (*self.own, *texts)
        private = private_texts(self.recollection, self.own)
        self.ground, self.zones = replace(self.ground, private=private), replace(self.zones, private=private)


class Reply(Struct, frozen=True):
    """One reply, read."""

    parsed: Parsed
    refused: bool
    streamed: str
    """What was shown of it."""


async def think(thinking: Thinking) -> Thoughts:
    """Ask the model, read its reply, repair it once where nothing can be spoken. Raises: ProviderError."""
    first = await _ask(thinking, thinking.prompt, thinking.prompt_sha256, "turn", thinking.show)
    return await concluded(thinking, first)


async def concluded(thinking: Thinking, first: Reply) -> Thoughts:
    """Climb the ladder with a reply, by one repair call where nothing in it can be spoken.

    Of a turn that asked for no words none are said.
    """
    spoken = climb(first.parsed, thinking.ground, refused=first.refused, streamed=first.streamed)
    if isinstance(spoken, NeedsRepair):
        thinking.guard(first.parsed.private)
        tail = repair_tail(thinking.recollection, thinking.soul, spoken.broken)
        prompt = replace(thinking.prompt, tail=tail)
        try:
            second: Parsed | None = (await _ask(thinking, prompt, prompt_sha256(prompt), "repair", None)).parsed
        except ProviderError:
            second = None
        spoken = climb(first.parsed, replace(thinking.ground, repairs=0), repair=second)
    if isinstance(spoken, NeedsRepair):  # pragma: no cover - no repairs are left
        raise AssertionError("the ladder asks for one repair at most")
    thoughts, flags = interpret(first.parsed, thinking.plan, thinking.soul)
    if not thinking.plan.speaks:
        flags = (*flags, "unasked:external_dialogue") if spoken.speech else flags
        spoken = replace(spoken, speech="", rung="silent", truncated=False)
    return Thoughts(
        thoughts=thoughts,
        speech=spoken.speech,
        verb=spoken.verb,
        rung=spoken.rung,
        flags=tuple(dict.fromkeys((*spoken.flags, *flags))),
        streamed=first.streamed,
        truncated=spoken.truncated,
        calls=thinking.calls,
    )


async def _ask(thinking: Thinking, prompt: Prompt, sha: str, purpose: str, show: Show | None) -> Reply:
    """Make one call of the turn, or take it from an earlier run; read it as it comes."""
    has_intuition = "## Daimonic Intuition" in prompt.tail
    request = Request(
        system=prompt.system,
        history=prompt.history,
        tail=prompt.tail,
        max_tokens=thinking.settings.max_tokens,
        cached=prompt.cached,
        conversation=thinking.recollection.conversation if purpose == "turn" else "",
        keep_session=not has_intuition,
        purpose=purpose,
    )
    reading = Reading(Parser(), StreamGate(thinking.zones) if show else None, show)
    made = await call(
        thinking.mind,
        thinking.recollection.turn,
        request,
        sha,
        n=len(thinking.calls),
        paid=thinking.paid,
        reading=reading,
    )
    thinking.calls = (*thinking.calls, made)
    parsed = reading.parser.finish(truncated=made.stop_reason == "max_tokens")
    return Reply(parsed, made.stop_reason == "refusal", reading.shown)


class Reading(Struct):
    """A reply being read while it comes: what of it may be shown already is shown."""

    parser: Parser
    gate: StreamGate | None = None
    show: Show | None = None
    shown: str = ""
    text: str = ""
    is_void: bool = False
    """The transport asked again: nothing more is shown before the end."""

    async def take(self, piece: str) -> None:
        """Read one more piece."""
        self.text += piece
        visible = self.parser.feed(piece)
        if visible and self.gate and self.show and not self.is_void:
            passed = self.gate.show(visible)
            if passed:
                self.shown += passed
                await self.show(passed)

    def restart(self) -> None:
        """Begin anew: what came so far is void, and the utterance will replace what was shown of it."""
        self.parser = Parser()
        self.text, self.shown, self.is_void = "", "", True


async def call(
    mind: Mind,
    turn: str,
    request: Request,
    sha: str,
    *,
    n: int,
    paid: Mapping[str, Call],
    reading: Reading | None = None,
) -> Call:
    """Make one model call and keep it, or return what an earlier run has paid for. Raises: ProviderError.

    `sha`: the prompt's hash, under which an earlier run has kept the call.
    A reply that breaks off after its first piece counts as one cut by its length: the ladder decides what is said.
    """
    reading = reading or Reading(Parser())
    if sha in paid:
        await reading.take(paid[sha].response)
        return paid[sha]
    started = time.monotonic()
    done = await _read(mind.provider, request, reading)
    made = Call(
        n=n,
        purpose=request.purpose,
        request_sha256=sha,
        response=blot(reading.text, mind.secrets),
        stop_reason=done.stop_reason,
        usage=done.usage,
        provider=done.provider or mind.provider.name,
        model=done.model or mind.provider.model,
        ms=round((time.monotonic() - started) * 1000),
    )
    mind.store.keep_call(turn, made)
    return made


async def _read(provider: Provider, request: Request, reading: Reading) -> Done:
    """Read one reply to its end, as far as it came. Raises: ProviderError where nothing came."""
    try:
        async with aclosing(cast(AsyncGenerator[Event, None], provider.complete(request))) as events:
            async for event in events:
                match event:
                    case Delta(text):
                        await reading.take(text)
                    case Reset():
                        reading.restart()
                    case Done():
                        if event.text and not reading.text:
                            await reading.take(event.text)
                        return event
                if reading.parser.full:
                    break
    except RefusedReply:
        return Done(text="", usage=Usage(), stop_reason="refusal")
    except ProviderError:
        if not reading.text:
            raise
    return Done(text="", usage=estimate(request, reading.text), stop_reason="max_tokens")
