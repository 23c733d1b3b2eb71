"""The chat-completions client against the loopback model."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.errors import BadConfiguration, BadRequest, Cut, Unavailable, Unreachable
from claudius.home import Home
from claudius.provider import Provider, Usage
from claudius.providers import openai_compat
from claudius.providers.streamed_completion import StreamedCompletion, stream_data
from claudius.testing.check_provider import Voice
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, SYSTEM, TEXT, ending, hear
from lab.loopback.model import ModelServer


@pytest.fixture
def voice(server: ModelServer, settings: Callable[..., Loaded], home: Home) -> Voice:
    """Return the client under test."""
    return Voice(make=lambda: openai_compat.build(settings(), home), say=server.say, server=server)


@pytest.fixture
async def provider(voice: Voice) -> AsyncIterator[Provider]:
    """Build the client, and close it at the end."""
    made = voice.make()
    yield made
    await made.aclose()


async def test_the_system_part_is_the_first_message(provider: Provider, server: ModelServer) -> None:
    """The prompt keeps its parts: the system part as system, the tail as the last user message."""
    await hear(provider, ASK)

    assert server.asked[0].messages == [("system", SYSTEM), ("user", ASK.tail)]
    assert server.asked[0].body["stream_options"] == {"include_usage": True}


async def test_limits_and_temperature_are_passed_on(provider: Provider, server: ModelServer) -> None:
    """The request's own limits and temperature are sent."""
    await hear(provider, ASK)
    await hear(provider, replace(ASK, temperature=0.5, max_tokens=7))

    plain, asked = (call.body for call in server.asked)
    assert ("temperature" in plain, asked["temperature"]) == (False, 0.5)
    assert (plain["max_tokens"], asked["max_tokens"]) == (ASK.max_tokens, 7)


async def test_openais_own_host_has_its_own_word_for_the_limit(settings: Callable[..., Loaded], home: Home) -> None:
    """OpenAI's newer models reject `max_tokens`, so its own host gets the newer name."""
    provider = openai_compat.build(settings(CLAUDIUS_OPENAI_BASE_URL="https://api.openai.com/v1"), home)

    assert provider._limit == "max_completion_tokens"
    await provider.aclose()


@pytest.mark.parametrize(
    "data",
    [
        "[1]", '{"choices": [null]}', '{"choices": {"0": {}}}', '{"choices": [{"delta": "Hi"}]}', "[" * 20_000,
        '{"choices": [{"delta": {"content": 5}}]}', '{"choices": [{"delta": {"tool_calls": [null]}}]}', '{"usage": "much"}',
    ],
)  # fmt: skip
def test_a_stream_of_other_things_is_cut(data: str) -> None:
    """JSON that is not a chunk is treated like invalid JSON: the chain gets a typed error."""
    with pytest.raises(Cut):
        StreamedCompletion(ASK, "m").hear(data)


def test_only_the_text_of_the_reply_that_was_asked_for_is_heard() -> None:
    """Thoughts inside or beside the content, and a second choice, are ignored."""
    said = StreamedCompletion(ASK, "m")
    parts = '[{"type": "thinking", "thinking": [{"type": "text", "text": "S1"}]}, {"type": "text", "text": "Hi"}]'

    said.hear('{"choices": [{"index": 1, "delta": {"content": "S2"}}]}')
    said.hear('{"choices": [{"index": 0, "delta": {"reasoning_content": "S1", "content": null}}]}')
    said.hear(f'{{"choices": [{{"index": 0, "delta": {{"content": {parts}}}}}]}}')

    assert said.reply.text == "Hi"


async def test_without_a_model_the_servers_first_is_asked(provider: Provider, server: ModelServer) -> None:
    """If `openai.model` is empty, the first model of GET /models is used, looked up once."""
    server.models = ("first", "second")
    done = [ending(await hear(provider, ASK)) for _ in range(2)][-1]

    assert (done.model, provider.model) == ("first", "first")
    assert [call.path for call in server.calls].count("/v1/models") == 1


async def test_a_server_without_models_is_a_bad_request(provider: Provider, server: ModelServer) -> None:
    """If the server lists no model, the error names the setting."""
    server.models = ()
    with pytest.raises(BadRequest, match=r"openai\.model"):
        await hear(provider, ASK)


async def test_usage_that_is_not_told_is_estimated_and_marked(provider: Provider, server: ModelServer) -> None:
    """Missing usage is estimated as characters / 4 and marked as an estimate."""
    server.say(Reply(text=TEXT, usage=False))
    usage = ending(await hear(provider, ASK)).usage

    asked = len(SYSTEM) + len(ASK.tail)
    assert usage == Usage(input_tokens=asked // 4, output_tokens=len(TEXT) // 4, estimated=True)


async def test_cached_tokens_are_counted_apart(provider: Provider, server: ModelServer) -> None:
    """Usage: `input_tokens` excludes the tokens that the server read from its cache."""
    request = ASK.__class__(system="s" * 8000, history=(), tail="t", max_tokens=9)

    first, second = [ending(await hear(provider, request)).usage for _ in range(2)]

    assert first.cache_read_tokens == 0
    assert second.cache_read_tokens > 0
    assert second.input_tokens + second.cache_read_tokens == first.input_tokens


@pytest.mark.parametrize(
    ("env", "base_url", "sent"),
    [
        ({"CLAUDIUS_OPENAI_API_KEY": "one"}, "http://127.0.0.1:9/v1", "Bearer one"),
        ({"GROQ_API_KEY": "two"}, "https://api.groq.com/openai/v1", "Bearer two"),
        ({"GROQ_API_KEY": "two"}, "http://127.0.0.1:9/v1", None),
        ({"GROQ_API_KEY": "two"}, "https://api.groq.com.evil.example/v1", None),
    ],
)
async def test_a_key_goes_to_its_own_host_only(
    env: dict[str, str], base_url: str, sent: str | None, settings: Callable[..., Loaded], home: Home
) -> None:
    """Groq's key is sent only to Groq; the general key only to the configured server."""
    provider = openai_compat.build(settings(CLAUDIUS_OPENAI_BASE_URL=base_url, **env), home)

    assert provider._client.headers.get("Authorization") == sent
    await provider.aclose()


async def test_nobody_there_is_unreachable(settings: Callable[..., Loaded], home: Home, server: ModelServer) -> None:
    """The error about a refused connection names the server."""
    provider = openai_compat.build(settings(CLAUDIUS_OPENAI_BASE_URL="http://127.0.0.1:9/v1"), home)

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
        await hear(provider, ASK)
    await provider.aclose()


@pytest.mark.parametrize("base_url", ["file:///etc/passwd", "127.0.0.1:11434/v1", "http://", "http://x:y"])
def test_a_base_url_is_a_web_address(base_url: str, settings: Callable[..., Loaded], home: Home) -> None:
    """Anything but a web address is refused before any request, and the line names the setting."""
    with pytest.raises((BadConfiguration, Unavailable), match=r"CLAUDIUS_OPENAI_BASE_URL|openai\.base_url"):
        openai_compat.build(settings(CLAUDIUS_OPENAI_BASE_URL=base_url), home)


@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"])
async def test_a_line_may_be_folded_and_end_in_any_way(end: bytes) -> None:
    """Server-sent events: comments are skipped; CR, LF or both end a line; several data lines form one event."""
    stream = (
        b': keep-alive\n\ndata: {"model": "m",\ndata: "choices": [{"delta": {"content": "Hi"}}]}\n\n'
        b'data:{"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]'
    ).replace(b"\n", end)

    response = httpx.Response(200, content=_bytewise(stream))

    heard = [data async for data in stream_data(response)]

    assert len(heard) == 3
    assert heard[-1] == "[DONE]"


async def _bytewise(stream: bytes) -> AsyncIterator[bytes]:
    for byte in stream:
        yield bytes([byte])


async def test_a_server_may_answer_at_once() -> None:
    """A server may answer with one document although a stream was requested."""
    body = {"model": "m", "choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    client = httpx.AsyncClient(transport=transport, base_url="http://model.test/v1/")
    provider = openai_compat.OpenAICompat(client, "m", base_url="http://model.test/v1")

    assert ending(await hear(provider, ASK)).text == "whole"
    await provider.aclose()
