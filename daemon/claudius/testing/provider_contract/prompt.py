"""Prompt cases: which parts of it reach the model, and that they arrive verbatim."""

from __future__ import annotations

from msgspec.structs import replace

from claudius.provider import Message
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import (
    ASK,
    SYSTEM,
    TEXT,
    Voice,
    asked,
    case,
    ending,
    hear,
    in_order,
    speaking,
    whole,
)


@case("P10", "system, history and tail are sent in that order", "say", "server")
async def _(voice: Voice) -> None:
    history = (Message("user", "first heard"), Message("assistant", "first said"), Message("user", "second heard"))
    request = replace(ASK, history=history, tail="the tail", cached=2)
    async with speaking(voice, TEXT) as provider:
        await hear(provider, request)

    (call,) = asked(voice)
    assert in_order([SYSTEM, "first heard", "first said", "second heard", "the tail"], whole(call))
    assert "the tail" in call.tail


@case("P11", "history keeps its roles, and the tail is the end of the last user message", "say", "server", "exact")
async def _(voice: Voice) -> None:
    history = (Message("user", "first heard"), Message("assistant", "first said"))
    async with speaking(voice, TEXT) as provider:
        await hear(provider, replace(ASK, history=history, tail="the tail"))

    spoken = [(role, text) for role, text in asked(voice)[0].messages if role != "system"]
    assert spoken == [("user", "first heard"), ("assistant", "first said"), ("user", "the tail")]


@case("P12", "a prompt is sent verbatim, whatever it looks like", "say", "server")
async def _(voice: Voice) -> None:
    lines = ("/cost", "!ls -la", "@/etc/hostname", "-p", "--help", "# memo", "a\\nb", "\x1b[31m", "x" * 200_000)
    async with speaking(voice, Reply(text=TEXT, keep=True)) as provider:
        for line in lines:
            assert ending(await hear(provider, replace(ASK, tail=line))).text == TEXT

    assert [call.tail for call in asked(voice)] == list(lines)


@case("P13", "a history that begins with the soul's words, holds blanks, ends with a hearer's", "say", "server")
async def _(voice: Voice) -> None:
    history = (
        Message("assistant", "I spoke first"),
        Message("user", " "),
        Message("assistant", ""),
        Message("user", "and they last"),
    )
    async with speaking(voice, TEXT) as provider:
        ending(await hear(provider, replace(ASK, history=history)))

    assert in_order(["I spoke first", "and they last", "Well?"], whole(asked(voice)[0]))
