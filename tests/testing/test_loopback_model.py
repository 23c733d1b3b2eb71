"""The loopback model is honest: it refuses and counts as the services do, and fails where a test tells it to."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from claudius.testing.model_calls import Reply
from lab.loopback.model import MODEL, ModelServer

HEADERS = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
BODY: dict[str, Any] = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """Run a server."""
    async with ModelServer() as running:
        yield running


@pytest.fixture
async def http(server: ModelServer) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a plain HTTP client of the server."""
    async with httpx.AsyncClient(base_url=server.url, headers=HEADERS, trust_env=False) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "body", "status", "words"),
    [
        ({"x-api-key": ""}, {}, 401, "x-api-key"),
        ({}, {"max_tokens": None}, 400, "Field required"),
        ({}, {"messages": []}, 400, "Field required"),
        ({}, {"messages": [{"role": "assistant", "content": "x"}]}, 400, "first message"),
        ({}, {"messages": [{"role": "tool", "content": "x"}]}, 400, "unexpected role"),
        ({}, {"messages": [{"role": "user", "content": " \n"}]}, 400, "non-whitespace"),
        ({}, {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, 400, "non-whitespace"),
        ({}, {"system": "  "}, 400, "non-whitespace"),
        ({}, {"temperature": 1.0}, 400, "Extra inputs"),
        ({"anthropic-version": "2023-06-01"}, {"temperature": 1.0}, 200, ""),
        ({}, {"thinking": {"type": "telepathy"}}, 400, "not supported"),
    ],
)
async def test_it_refuses_what_the_api_refuses(
    headers: dict[str, str], body: dict[str, Any], status: int, words: str, http: httpx.AsyncClient
) -> None:
    """Each refusal has the API's error shape. Source: platform.claude.com/docs/en/api/errors."""
    answer = await http.post("/v1/messages", json=BODY | body, headers=headers)

    assert answer.status_code == status
    assert words in answer.text
    assert status == 200 or answer.json()["type"] == "error"


async def test_it_accepts_what_the_claude_command_sends(http: httpx.AsyncClient, server: ModelServer) -> None:
    """The server accepts system items among the messages, beta headers, a bearer token and the beta query."""
    items = [{"role": "user", "content": "Hi"}, {"role": "system", "content": [{"type": "text", "text": "# Env"}]}]
    headers = {"Authorization": "Bearer t", "anthropic-beta": "claude-code-20250219", "x-api-key": ""}

    answer = await http.post("/v1/messages?beta=true", json=BODY | {"messages": items}, headers=headers)

    assert answer.status_code == 200
    assert server.asked[0].messages == [("user", "Hi"), ("system", "# Env")]


async def test_a_prompt_over_the_limit_is_too_long(http: httpx.AsyncClient, server: ModelServer) -> None:
    """The error about a long prompt uses the API's words."""
    server.max_prompt_tokens = 10

    answer = await http.post("/v1/messages", json=BODY | {"system": "s" * 400})

    assert answer.status_code == 400
    assert "prompt is too long: 101 tokens > 10 maximum" in answer.text


@pytest.mark.parametrize("fault", ["truncate", "reset_mid", "eof"])
async def test_a_stream_is_cut_at_the_byte_that_was_ordered(
    fault: str, server: ModelServer, http: httpx.AsyncClient
) -> None:
    """A stream ends after exactly the ordered number of bytes, in the ordered way."""
    server.say(Reply(text="one two three", fault=fault, at=100))
    got = b""

    try:
        async with http.stream("POST", "/v1/messages", json=BODY | {"stream": True}) as answer:
            async for piece in answer.aiter_raw():
                got += piece
    except httpx.HTTPError:
        assert fault != "eof"
    else:
        assert fault == "eof"

    assert len(got) == 100 or (fault == "reset_mid" and len(got) <= 100)
