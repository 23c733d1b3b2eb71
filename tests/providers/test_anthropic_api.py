"""The Anthropic API's client: the real library against the loopback model."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import anthropic
import httpx2
import pytest
from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.errors import Cut, Unavailable, Unreachable
from claudius.home import Home
from claudius.provider import Done, Message, Provider, Request
from claudius.providers import anthropic_api
from claudius.testing.check_provider import Voice
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, ending, fails, hear
from lab.loopback.model import ModelServer


@pytest.fixture
def voice(server: ModelServer, settings: Callable[..., Loaded], home: Home) -> Voice:
    """Return the client under test."""
    return Voice(make=lambda: anthropic_api.build(settings(), home), say=server.say, server=server)


@pytest.fixture
async def provider(voice: Voice) -> AsyncIterator[Provider]:
    """Build the client, and close it at the end."""
    made = voice.make()
    yield made
    await made.aclose()


async def test_breakpoints_stand_where_a_later_call_reads(provider: Provider, server: ModelServer) -> None:
    """Cache: marks are at the end of system, of what the last call held, and of history; the tail is never marked."""
    history = tuple(Message("user" if n % 2 == 0 else "assistant", f"message {n}") for n in range(4))
    await hear(provider, replace(ASK, history=history, cached=2))

    body = server.asked[0].body
    marked = [block["text"] for message in body["messages"] for block in message["content"] if "cache_control" in block]
    assert marked == ["message 1", "message 3"]
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}


async def test_a_growing_conversation_is_read_from_the_cache(voice: Voice) -> None:
    """Cache: each call reads everything that the previous call marked, whatever the tails contained."""
    provider, history, reads = voice.make(), (), []
    for turn in range(4):
        request = Request(
            system="s" * 400,
            history=history,
            tail=f"state {turn}\nheard {turn}",
            max_tokens=9,
            cached=max(0, 2 * turn - 2),
        )
        reads.append(ending(await hear(provider, request)).usage)
        history = (*history, Message("user", f"heard {turn}"), Message("assistant", "I hear you."))

    assert reads[0].cache_read_tokens == 0
    for before, now in pairwise(reads):
        assert now.cache_read_tokens == before.cache_read_tokens + before.cache_write_tokens
    await provider.aclose()


async def test_neighbours_of_one_role_keep_their_bytes(provider: Provider, server: ModelServer) -> None:
    """Cache: a message that follows another never changes the block in which the earlier one was sent."""
    await hear(provider, replace(ASK, history=(Message("user", "overheard"),), tail="first"))
    await hear(provider, replace(ASK, history=(Message("user", "overheard"), Message("user", "heard")), tail="second"))

    blocks = [[block["text"] for block in call.body["messages"][0]["content"]] for call in server.asked]
    assert blocks == [["overheard", "first"], ["overheard", "heard", "second"]]


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        ({"disabled"}, {"thinking": {"type": "disabled"}}),
        ({"between_tools"}, {"thinking": {"type": "between_tools"}}),
        (set(), {"output_config": {"effort": "low"}}),
    ],
)
async def test_a_model_is_asked_for_as_little_thinking_as_it_allows(
    accepted: set[str], sent: dict[str, object], provider: Provider, server: ModelServer
) -> None:
    """Models reject some kinds of thinking with a 400: the accepted kind is found once, then remembered."""
    server.thinking = frozenset(accepted)
    ending(await hear(provider, ASK))
    found = len(server.asked)
    ending(await hear(provider, ASK))

    last = server.asked[-1].body
    assert {key: last[key] for key in ("thinking", "output_config") if key in last} == sent
    assert len(server.asked) == found + 1


async def test_the_temperature_is_left_out(provider: Provider) -> None:
    """The API version of 2026-10-21 rejects sampling parameters for every model."""
    assert ending(await hear(provider, replace(ASK, temperature=0.5))).text


async def test_an_unknown_model_has_no_price(provider: Provider) -> None:
    """Cost: an unknown price is None, never zero."""
    assert ending(await hear(provider, ASK)).usage.cost_usd is None


async def test_the_key_goes_to_the_configured_server_only(provider: Provider, server: ModelServer) -> None:
    """A redirect is not followed, because the key would be sent along."""
    server.say(Reply(fault="status", status=307, headers={"Location": "http://127.0.0.1:9/v1/messages"}))
    with pytest.raises(Exception, match="HTTP 307"):
        await hear(provider, ASK)


def test_without_a_key_it_cannot_be_built(settings: Callable[..., Loaded], home: Home) -> None:
    """The error Unavailable names the missing setting."""
    with pytest.raises(Unavailable, match="ANTHROPIC_API_KEY"):
        anthropic_api.build(settings(ANTHROPIC_API_KEY=""), home)


def test_without_the_library_it_is_unavailable(
    settings: Callable[..., Loaded], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the extra that installs the library."""
    monkeypatch.setitem(sys.modules, "anthropic", None)

    with pytest.raises(Unavailable, match=r"\[api\]"):
        anthropic_api.build(settings(), home)


async def test_nobody_there_is_unreachable(settings: Callable[..., Loaded], home: Home) -> None:
    """A refused connection is the retryable error Unreachable."""
    provider = anthropic_api.build(settings(ANTHROPIC_BASE_URL="http://127.0.0.1:9"), home)

    assert isinstance(await fails(provider, ASK), Unreachable)
    await provider.aclose()


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "delta": None},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": None}},
        "no object",
        {"type": "message_start", "message": {"usage": []}},
        {"type": "content_block_start", "content_block": None},
        {"type": "message_start", "message": None},
    ],
    ids=str,
)
def test_an_event_of_another_shape_cuts_the_stream(event: Any) -> None:
    """The library does not check shapes: a malformed event becomes a typed error, and no turn fails with a bug."""
    with pytest.raises(Cut):
        anthropic_api._Said(ASK, "m").hear(event)


async def test_done_names_the_model_that_answered(provider: Provider) -> None:
    """A request's own model overrides the setting, and Done names it."""
    done = (await hear(provider, replace(ASK, model="claude-other")))[-1]

    assert isinstance(done, Done)
    assert (done.provider, done.model) == ("anthropic_api", "claude-other")


async def test_a_reply_that_nobody_counted_is_estimated() -> None:
    """If a server omits the usage, it is estimated and marked as an estimate."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "counted by nobody"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    answer = httpx2.Response(200, content=stream.encode(), headers={"content-type": "text/event-stream"})
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: answer))
    client = anthropic.AsyncAnthropic(api_key="sk-ant-none", http_client=http)
    provider = anthropic_api.AnthropicApi(lambda: client, "claude-sonnet-5-5")

    usage = ending(await hear(provider, ASK)).usage

    assert usage.estimated
    assert usage.input_tokens > 0
    assert usage.output_tokens == len("counted by nobody") // 4
    await provider.aclose()
