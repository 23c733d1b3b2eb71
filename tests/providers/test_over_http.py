"""What holds for each client of a service: the contract, and that a cut stream is never half a reply."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from claudius.config.load import Loaded
from claudius.home import Home
from claudius.providers import anthropic_api, openai_compat
from claudius.testing.check_provider import CASES, Case, Voice, check_cut_at, check_provider
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, TEXT, ending, hear
from lab.loopback.model import ModelServer

CLIENTS: dict[str, tuple[Any, int]] = {"anthropic_api": (anthropic_api, 0), "openai_compat": (openai_compat, 2)}
"""By name, with how many events follow the reason of the end: the usage, and `[DONE]`, which not every server sends."""


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Run the test with each client in turn."""
    return str(request.param)


@pytest.fixture
def voice(client: str, server: ModelServer, settings: Callable[..., Loaded], home: Home) -> Voice:
    """Return the client under test."""
    return Voice(make=lambda: CLIENTS[client][0].build(settings(), home), say=server.say, server=server)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_it_keeps_the_contract(case: Case, voice: Voice) -> None:
    """Each numbered rule of the contract holds for the real library."""
    await check_provider(case, voice)


async def cut_at(voice: Voice, client: str, fault: str, places: Callable[[tuple[int, ...]], Iterable[int]]) -> None:
    """Cut a stream at each of these places, one after the other."""
    provider = voice.make()
    assert voice.server
    voice.server.say(TEXT)
    ending(await hear(provider, ASK))
    borders = voice.server.asked[-1].borders
    for at in places(borders):
        await check_cut_at(voice, provider, fault, at, borders, spare=CLIENTS[client][1])
    await provider.aclose()


@pytest.mark.parametrize("fault", ["truncate", "eof", "reset_mid"])
async def test_a_stream_cut_anywhere_is_never_half_a_reply(fault: str, voice: Voice, client: str) -> None:
    """A cut at any event's border, or at 50 places between, is an error or comes after the end."""
    chance = random.Random(7)  # noqa: S311 - places, no secret
    await cut_at(voice, client, fault, lambda borders: {0, *borders, *chance.sample(range(borders[-1]), 50)})


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["truncate", "eof", "reset_mid"])
async def test_a_stream_cut_at_each_byte_is_never_half_a_reply(fault: str, voice: Voice, client: str) -> None:
    """A cut at any byte is an error or comes after the end."""
    await cut_at(voice, client, fault, lambda borders: range(borders[-1] + 1))


async def test_turns_share_one_connection(voice: Voice, server: ModelServer) -> None:
    """Successive turns need no new handshake, because each reply is read to the end of its body."""
    provider = voice.make()
    server.say(TEXT, TEXT, TEXT)

    for _ in range(3):
        ending(await hear(provider, ASK))
    await provider.aclose()

    assert len({call.port for call in server.asked}) == 1


async def test_a_server_that_keeps_a_body_open_is_not_waited_for(voice: Voice, server: ModelServer) -> None:
    """A complete reply is returned although the server keeps the body open; the next call uses a new connection."""
    provider = voice.make()
    server.say(TEXT)
    ending(await hear(provider, ASK))
    (*_, end) = server.asked[-1].borders

    server.say(Reply(text=TEXT, fault="hang_mid", at=end), TEXT)
    first, second = ending(await hear(provider, ASK)), ending(await hear(provider, ASK))
    await provider.aclose()

    assert first.text == second.text == TEXT
    assert len({call.port for call in server.asked}) == 2
