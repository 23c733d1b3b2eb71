"""A connection is reused after a reply."""

from collections.abc import Callable

import pytest

from claudius.config.load import Loaded
from claudius.home import Home
from claudius.provider import Provider
from claudius.providers import anthropic_api, openai_compat
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, TEXT, ending, hear
from lab.loopback.model import ModelServer

Build = Callable[[Loaded, Home], Provider]
BUILDS = [pytest.param(one.build, id=one.NAME) for one in (anthropic_api, openai_compat)]


@pytest.mark.parametrize("build", BUILDS)
async def test_turns_share_one_connection(
    build: Build, server: ModelServer, settings: Callable[..., Loaded], home: Home
) -> None:
    """Successive turns need no new handshake, because each reply is read to the end of its body."""
    provider = build(settings(), home)
    server.say(TEXT, TEXT, TEXT)

    for _ in range(3):
        ending(await hear(provider, ASK))
    await provider.aclose()

    assert len({call.port for call in server.asked}) == 1


@pytest.mark.parametrize("build", BUILDS)
async def test_a_server_that_keeps_a_body_open_is_not_waited_for(
    build: Build, server: ModelServer, settings: Callable[..., Loaded], home: Home
) -> None:
    """A complete reply is returned although the server keeps the body open; the next call uses a new connection."""
    provider = build(settings(), home)
    server.say(TEXT)
    ending(await hear(provider, ASK))
    (*_, end) = server.asked[-1].borders

    server.say(Reply(text=TEXT, fault="hang_mid", at=end), TEXT)
    first, second = ending(await hear(provider, ASK)), ending(await hear(provider, ASK))
    await provider.aclose()

    assert first.text == second.text == TEXT
    assert len({call.port for call in server.asked}) == 2
