"""Reply cases: its shape, its end, and what is not speech."""

from __future__ import annotations

from claudius.provider import Delta
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, TEXT, Voice, asked, case, ending, hear, speaking


@case("P1", "a reply is its deltas, then one Done that names who spoke")
async def _(voice: Voice) -> None:
    async with speaking(voice) as provider:
        done = ending(await hear(provider, ASK))

        assert done.provider == provider.name
        assert done.model
        assert done.usage.output_tokens >= 0


@case("P2", "a whole reply is what the model said, counted", "say")
async def _(voice: Voice) -> None:
    async with speaking(voice, TEXT) as provider:
        events = await hear(provider, ASK)
        done = ending(events)

        assert (done.text, done.stop_reason) == (TEXT, "end")
        assert sum(isinstance(event, Delta) for event in events) > 1, "it did not stream"
        assert done.usage.input_tokens + done.usage.cache_write_tokens > 0
        assert done.usage.output_tokens > 0


@case("P3", "an empty reply is an empty text, not an error", "say")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply()) as provider:
        done = ending(await hear(provider, ASK))

        assert (done.text, done.stop_reason) == ("", "end")


@case("P4", "a reply cut at its limit says so, and is not asked for again", "say")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(text=TEXT, stop_reason="max_tokens")) as provider:
        done = ending(await hear(provider, ASK))

        assert (done.text, done.stop_reason) == (TEXT, "max_tokens")
        if voice.server:
            assert len(asked(voice)) == 1


@case("P5", "a refusal says so, and is not asked for again", "say")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(text="I", stop_reason="refusal")) as provider:
        done = ending(await hear(provider, ASK))

        assert done.stop_reason == "refusal"
        if voice.server:
            assert len(asked(voice)) == 1


@case("P6", "any text arrives as it was said", "say")
async def _(voice: Voice) -> None:
    text = "Ω 李 👩‍👩‍👧 \u202eabc\u202c  \n\n\t```py\nx = '<b>'\n``` \\u0041 \"q\" \x7f & </x>\r\n. " * 40 + "\n"
    async with speaking(voice, Reply(deltas=tuple(text[at : at + 7] for at in range(0, len(text), 7)))) as provider:
        assert ending(await hear(provider, ASK)).text == text


@case("P7", "a tool call is refused: what was said stays, the model is asked once", "say", "server")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(text="Let me look.", tool="Read")) as provider:
        done = ending(await hear(provider, ASK))

        assert (done.text, done.stop_reason) == ("Let me look.", "end")
        assert len(asked(voice)) == 1


@case("P8", "thinking is not speech", "say", "server")
async def _(voice: Voice) -> None:
    async with speaking(voice, Reply(text=TEXT, thinking="They must not hear this.")) as provider:
        assert ending(await hear(provider, ASK)).text == TEXT
