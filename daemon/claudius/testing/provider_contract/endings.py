"""Ending cases: a call is freed when it is abandoned, keeps its deadlines, and has bounded output."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from msgspec.structs import replace

from claudius.config.schema import ModelSettings
from claudius.errors import TimedOut
from claudius.provider import Delta, Event
from claudius.providers.chain import Chain
from claudius.providers.replies import REPLY_CHARS
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import (
    ASK,
    TEXT,
    Voice,
    asked,
    case,
    children,
    ending,
    fails,
    hear,
    said,
    speaking,
    streaming,
    until,
)


@case("P30", "closing early frees the call, and the next one works", "say", "server")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(text=TEXT, fault="hang_mid"), "after") as provider:
        async with aclosing(streaming(provider, replace(ASK, conversation="c"))) as events:
            async for event in events:
                if isinstance(event, Delta):
                    break
        await until(lambda: asked(voice)[0].gone)

        assert ending(await hear(provider, replace(ASK, conversation="c"))).text == "after"


@case("P31", "cancelling the task frees the call, and the next one works", "say", "server")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(fault="hang"), "after") as provider:
        task = asyncio.create_task(hear(provider, ASK))
        await until(lambda: bool(asked(voice)))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await until(lambda: asked(voice)[0].gone)

        assert ending(await hear(provider, ASK)).text == "after"


@case("P32", "closing the provider leaves no task and no process", "say")
async def _(voice: Voice) -> None:
    tasks, processes = asyncio.all_tasks(), children()
    async with speaking(voice, "said 1", "said 2") as provider:
        await hear(provider, replace(ASK, conversation="c1"))
        await hear(provider, replace(ASK, conversation="c2"))
    await until(lambda: asyncio.all_tasks() <= tasks and children() <= processes)


@case("P33", "a reply without end is bounded", "say", "server")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(fault="huge", megabytes=100)) as provider:
        done = ending(await hear(provider, ASK))

        assert len(done.text) <= REPLY_CHARS
        assert done.stop_reason == "max_tokens"


@case("P34", "a line without end is bounded", "say", "server")
async def _(voice: Voice) -> None:
    megabytes = 8 if voice.asks_again else 100
    async with speaking(voice, Reply(fault="huge_line", megabytes=megabytes, keep=True)) as provider:
        heard: list[Event] = []
        error = await fails(provider, ASK, heard)

        assert error is None or error.retryable
        assert len(said(heard)) <= REPLY_CHARS


@case("P70", "a hang before the first delta is TimedOut, and the call is freed", "say", "server")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(fault="hang", keep=True)) as provider:
        patience_s = 2.0 if voice.asks_again else 0.2
        chain = Chain([provider], ModelSettings(first_byte_s=patience_s, idle_s=60.0, total_s=60.0, retries=0))
        await _times_out(chain)
        await until(lambda: all(call.gone for call in asked(voice)))


@case("P71", "a hang in the middle is TimedOut, and the call is freed", "say", "server")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(text=TEXT, fault="hang_mid", keep=True)) as provider:
        chain = Chain([provider], ModelSettings(first_byte_s=60.0, idle_s=0.2, total_s=60.0, retries=0))
        assert said(await _times_out(chain))
        await until(lambda: all(call.gone for call in asked(voice)))


@case("P72", "a reply that drips for ever is TimedOut", "say", "server")
async def _(voice: Voice) -> None:
    drip = Reply(deltas=("drop ",) * 1000, gap_s=0.05, keep=True)
    async with speaking(voice, drip) as provider:
        patience_s = 2.0 if voice.asks_again else 0.5
        await _times_out(
            Chain([provider], ModelSettings(first_byte_s=60.0, idle_s=60.0, total_s=patience_s, retries=0))
        )


async def _times_out(chain: Chain) -> list[Event]:
    heard: list[Event] = []
    assert isinstance(await fails(chain, ASK, heard), TimedOut), f"it did not time out: {heard!r}"
    return heard
