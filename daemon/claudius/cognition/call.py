"""Make one model call: send it or reuse a paid reply, parse the stream, and show what the output gate allows.

`ask_model` is the only function in a turn that awaits a model. If the stream breaks after its first piece, the partial
reply counts as cut off by length; if nothing arrived, it raises ProviderError.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, aclosing
from typing import cast

from msgspec import Struct

from claudius.cognition.hooks import ThoughtStream, show_prompt
from claudius.cognition.mind import Show, StepVoice
from claudius.cognition.output.gate import StreamGate
from claudius.cognition.prompt.assembly import prompt_sha256
from claudius.cognition.prompt.function_prompts import Drawn
from claudius.cognition.remembering import REHEARSAL
from claudius.cognition.reply.parser import Parsed, Parser
from claudius.cognition.timing import known_zone
from claudius.cognition.turn_state import SUMMARY_CALL, FirstCall, TurnState
from claudius.config import blot
from claudius.errors import OverBudget, ProviderError, RefusedReply
from claudius.failure import Failure, failure_of
from claudius.intent import Call
from claudius.memory.knowledge import greeted, told
from claudius.observed import Thinking
from claudius.prompt import Prompt
from claudius.provider import (
    Delta,
    Done,
    Event,
    Failing,
    FormStep,
    Provider,
    Request,
    Reset,
    Usage,
    estimate,
    patience_of,
)


class ModelReply(Struct, frozen=True):
    """One parsed reply."""

    parsed: Parsed
    text: str
    """The full reply, with secrets masked."""
    is_refused: bool = False
    streamed: str = ""
    """The part of the reply that was already shown."""


async def ask_model(  # noqa: PLR0913 - the ways in which a request may differ; each has a default
    turn: TurnState,
    prompt: Prompt,
    purpose: str,
    *,
    steps: Sequence[str] = (),
    form: tuple[FormStep, ...] = (),
    drawn: Drawn | None = None,
    voice: StepVoice | None = None,
    streams: bool = False,
    conversation: str = "",
    keep_session: bool = True,
    number: int | None = None,
) -> ModelReply:
    """Make one model call for a turn and store it, or reuse the paid reply of an earlier run.

    `form`: the sections that a server may enforce. `conversation` lets a transport continue that conversation's
    session; `keep_session` says whether the prompt may stay in it. `drawn` is the form in which a snapshot stores the
    prompt. A reply that breaks off after its first piece counts as cut off by length, and the ladder decides what is
    said. Raises: ProviderError, StoreError; OverBudget if other processes have meanwhile booked what is left.
    """
    mind, sha = turn.mind, prompt_sha256(prompt)
    if turn.first is None and number is None:
        turn.first = FirstCall(sha, turn.plan, drawn)
    turn.asked += [step for step in steps if step not in turn.asked]
    provider = voice.provider if voice else mind.provider
    is_final = not turn.process.may_execute_now and not turn.lines  # nothing may be shown before the last hop
    show = turn.surface.show if streams and is_final else None
    thoughts = ThoughtStream(mind.hooks, turn.recollection, mind.secrets) if mind.hooks.has(Thinking.point) else None
    gate = StreamGate(turn.rules) if show else None
    reading = _Reading(Parser(think=thoughts.tell if thoughts else None), gate, show, turn.surface.tell, thoughts)
    made = turn.paid.get(sha)
    if made is not None:
        await reading.take(made.response)
    else:
        if turn.calls:
            await mind.store.flush()  # a paid reply must be durable before the next call is paid for
        request = Request(
            system=prompt.system,
            history=prompt.history,
            tail=prompt.tail,
            max_tokens=turn.settings.max_tokens,
            cached=prompt.cached,
            conversation=conversation,
            keep_session=keep_session,
            purpose=purpose,
            model=voice.model if voice else None,
            is_first=turn.recollection.is_first,
            known=await _known(turn) if provider.name == REHEARSAL else "",
            images=() if voice else turn.images,
            form=form,
            tries_shut=any(one.is_owner for one in turn.recollection.perceptions),
        )
        with ExitStack() as undo:
            undo.callback(mind.store.turns.call_failed, turn.recollection.conversation)
            if not await mind.may_ask(turn.recollection):
                raise OverBudget
            if thoughts:
                undo.callback(thoughts.void)
            show_prompt(mind.hooks, turn.recollection, steps, prompt, provider.model)
            started = time.monotonic()
            if turn.surface.read and patience_of(provider, request):
                await turn.surface.read(f"… reading about {estimate(request, '').input_tokens:,} tokens")
            with turn.surface.waiting():
                done = await _read(turn, provider, request, reading)
            undo.pop_all()
        if number is None:  # above every call of this turn and of earlier runs
            known = (*turn.calls, *turn.paid.values())
            number = max([call.n for call in known if call.n < SUMMARY_CALL], default=-1) + 1
        made = Call(
            n=number,
            purpose=purpose,
            request_sha256=sha,
            response=blot(reading.text, mind.secrets),
            stop_reason=done.stop_reason,
            usage=done.usage,
            provider=done.provider or provider.name,
            model=done.model or provider.model,
            ms=round((time.monotonic() - started) * 1000),
        )
        mind.store.turns.keep_call(turn.turn, made)
    turn.calls.append(made)
    turn.streamed += reading.shown
    parsed = reading.parser.finish(truncated=made.stop_reason == "max_tokens")
    if thoughts:
        thoughts.end()
    return ModelReply(parsed, made.response, made.stop_reason == "refusal", reading.shown)


async def _known(turn: TurnState) -> str:
    """Return who the speaker is to the soul, as far as it may be said aloud here; "" if nobody spoke."""
    perception = turn.recollection.perception
    if turn.recollection.speaker is None:
        return ""
    known = await turn.mind.store.people.known_in(perception)
    return "\n".join([greeted(known), *told(known, known_zone(known.zone, turn.settings.zone))])


class _Reading(Struct):
    """A reply being read as it streams; speakable text is shown at once."""

    parser: Parser
    gate: StreamGate | None = None
    show: Show | None = None
    tell: Callable[[Failure], Awaitable[object]] | None = None
    thoughts: ThoughtStream | None = None
    shown: str = ""
    text: str = ""
    is_void: bool = False
    """The transport restarted the request, so nothing more is shown before the end."""

    async def hear(self, event: Event) -> None:
        """Read the next event."""
        match event:
            case Delta(text):
                await self.take(text)
            case Reset():
                self.restart()
            case Failing(error, is_told):
                if self.tell and is_told:
                    await self.tell(failure_of(error))
            case Done(text=text):
                if not self.text:
                    await self.take(text)

    async def take(self, piece: str) -> None:
        """Read the next piece."""
        self.text += piece
        visible = self.parser.feed(piece)
        if visible and self.gate and self.show and not self.is_void:
            passed = self.gate.show(visible)
            if passed:
                self.shown += passed
                await self.show(passed)

    def restart(self) -> None:
        """Start over: discard the text so far. The final utterance will replace what was shown of it."""
        self.parser = Parser(think=self.thoughts.tell if self.thoughts else None)
        self.text, self.shown, self.is_void = "", "", True
        if self.thoughts:
            self.thoughts.void()


async def _read(turn: TurnState, provider: Provider, request: Request, reading: _Reading) -> Done:
    """Read one reply to its end, or as far as it arrived. Raises: ProviderError if nothing arrived."""
    try:
        async with aclosing(cast(AsyncGenerator[Event, None], provider.complete(request))) as events:
            async for event in events:
                await reading.hear(event)
                if isinstance(event, Done):
                    return event
                if reading.parser.full:
                    break
    except RefusedReply as error:
        await turn.fail(failure_of(error))
        return Done(text="", usage=Usage(), stop_reason="refusal")
    except ProviderError as error:
        if not reading.text:
            raise
        await turn.fail(failure_of(error))
    return Done(text="", usage=estimate(request, reading.text), stop_reason="max_tokens")
