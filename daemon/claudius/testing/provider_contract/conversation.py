"""Conversation cases: what a second and a third request contain, and what they never contain."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from claudius.provider import Message
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import (
    ASK,
    SYSTEM,
    Voice,
    after,
    asked,
    case,
    ending,
    hear,
    in_order,
    speaking,
    whole,
)


@case("P20", "the third message's request holds the first two exchanges and the system", "say", "server")
async def _(voice: Voice) -> None:
    first = replace(ASK, tail="heard 1", conversation="c")
    async with speaking(voice, "said 1", "said 2", "said 3") as provider:
        ending(await hear(provider, first))
        second = after(first, "heard 1", "said 1", "heard 2")
        ending(await hear(provider, second))
        ending(await hear(provider, after(second, "heard 2", "said 2", "heard 3")))

    last = asked(voice)[-1]
    assert in_order([SYSTEM, "heard 1", "said 1", "heard 2", "said 2", "heard 3"], whole(last))
    assert whole(last).count("heard 1") == 1


@case("P21", "what was shown once only is not in the next request", "say", "server")
async def _(voice: Voice) -> None:
    first = replace(ASK, tail="heard 1\nwhisper-canary", conversation="c", keep_session=False)
    async with speaking(voice, "said 1", "said 2") as provider:
        ending(await hear(provider, first))
        ending(await hear(provider, after(first, "heard 1", "said 1", "heard 2")))

    assert in_order(["heard 1", "said 1", "heard 2"], whole(asked(voice)[-1]))
    assert "whisper-canary" not in whole(asked(voice)[-1])


@case("P22", "a reply that never came to be is not in the next request", "say", "server")
async def _(voice: Voice) -> None:
    first = replace(ASK, tail="heard 1", conversation="c")
    async with speaking(voice, "voided-canary", "said 1", "said 2") as provider:
        ending(await hear(provider, first))
        ending(await hear(provider, first))
        other = replace(first, tail="heard 3", history=(Message("user", "heard 0"), Message("assistant", "said 0")))
        ending(await hear(provider, other))

    for call in asked(voice)[1:]:
        assert "voided-canary" not in whole(call)
    assert in_order(["heard 0", "said 0", "heard 3"], whole(asked(voice)[-1]))


@case("P23", "a changed history and a changed system are in force at once", "say", "server")
async def _(voice: Voice) -> None:
    first = replace(ASK, tail="heard 1", conversation="c")
    async with speaking(voice, "said 1", "said 2", "said 3") as provider:
        ending(await hear(provider, first))
        second = after(first, "heard 1", "said 1", "heard 2")
        ending(await hear(provider, replace(second, system="Another soul.")))
        shorter = (Message("user", "a summary"), Message("assistant", "said 2"))
        ending(await hear(provider, replace(second, history=shorter, tail="heard 3")))

    _, changed, compacted = (whole(call) for call in asked(voice))
    assert "Another soul." in changed
    assert SYSTEM not in changed
    assert in_order([SYSTEM, "a summary", "said 2", "heard 3"], compacted)
    assert "heard 1" not in compacted


@case("P24", "calls run side by side, and each hears its own", "say", "server")
async def _(voice: Voice) -> None:
    replies = [Reply(text=f"reply {number}", when=f"question {number}.", gap_s=0.01) for number in range(4)]
    async with speaking(voice, *replies) as provider:
        requests = [replace(ASK, tail=f"question {number}.", conversation=f"c{number}") for number in range(4)]
        heard = await asyncio.gather(*(hear(provider, request) for request in requests))

        assert [ending(events).text for events in heard] == [f"reply {number}" for number in range(4)]


@case("P25", "two calls of one conversation at once do not mix", "say", "server")
async def _(voice: Voice) -> None:
    first = replace(ASK, tail="heard 1", conversation="c")
    second = after(first, "heard 1", "said 1", "question 2.")
    replies = [Reply(text="reply 2", when="question 2.", gap_s=0.02), Reply(text="reply 3", when="question 3.")]
    async with speaking(voice, "said 1", *replies) as provider:
        ending(await hear(provider, first))
        both = (second, replace(second, tail="question 3."))
        heard = await asyncio.gather(*(hear(provider, request) for request in both))

        assert [ending(events).text for events in heard] == ["reply 2", "reply 3"]
    assert not any("question 2." in whole(call) and "question 3." in whole(call) for call in asked(voice))
