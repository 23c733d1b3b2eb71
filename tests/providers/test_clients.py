"""Many calls of one server at once: each client has few of them, and none waits for another to end."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from importlib import import_module

import pytest

from claudius.compose import PROVIDERS
from claudius.config.load import Loaded
from claudius.home import Home
from claudius.providers.replies import CALLS, Clients
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, hear
from lab.loopback.model import MODEL, ModelServer

AT_ONCE = 150


@pytest.mark.parametrize("name", ["anthropic_api", "openai_compat"])
async def test_none_of_many_calls_waits_for_another(
    name: str, server: ModelServer, settings: Callable[..., Loaded], home: Home
) -> None:
    """All of them reach a server that answers none of them, over clients with few connections each."""
    server.default = Reply(fault="hang")
    provider = import_module(PROVIDERS[name]).build(settings(CLAUDIUS_OPENAI_MODEL=MODEL), home)
    calls = [asyncio.ensure_future(hear(provider, ASK)) for _ in range(AT_ONCE)]
    async with asyncio.timeout(30):
        while len(server.asked) < AT_ONCE:
            await asyncio.sleep(0.01)
    under_way = sorted(provider._clients._calls.values())
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    left = len(provider._clients._calls)
    await provider.aclose()

    assert under_way == [AT_ONCE % CALLS, *[CALLS] * (AT_ONCE // CALLS)]
    assert left == 1


async def test_a_client_is_used_again_before_another_is_built() -> None:
    """The oldest one with room comes first; one that is idle stays until the one before it has room for half."""
    built: list[int] = []
    closed: Counter[int] = Counter()

    def make() -> int:
        """Build one."""
        built.append(len(built))
        return built[-1]

    async def close(client: int) -> None:
        """Close one."""
        closed[client] += 1

    clients = Clients(make, close)
    open_ = [clients.one() for _ in range(CALLS + 1)]
    used = [await one.__aenter__() for one in open_]
    await open_[-1].__aexit__(None, None, None)
    kept = dict(closed)
    for one in open_[: CALLS // 2]:
        await one.__aexit__(None, None, None)
    async with clients.one() as again:
        pass

    assert (used, again) == ([0] * CALLS + [1], 0)
    assert (kept, dict(closed)) == ({}, {1: 1})


async def test_a_client_that_cannot_be_built_is_tried_anew() -> None:
    """Its error is told to the one who waited for it, and to no one after them."""
    tries: list[int] = []

    def make() -> int:
        """Fail once."""
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no file left")
        return len(tries)

    async def close(_: int) -> None:
        """Close one."""

    clients = Clients(make, close)
    with pytest.raises(OSError, match="no file left"):
        async with clients.one():
            pass
    async with clients.one() as second:
        pass

    assert (second, await clients.first()) == (2, 2)


async def test_a_call_that_is_cancelled_while_its_client_is_built_is_cancelled() -> None:
    """And the client serves the next call."""
    building, go_on = threading.Event(), threading.Event()

    def make() -> int:
        """Build one, slowly."""
        building.set()
        go_on.wait(20)
        return 2

    async def close(_: int) -> None:
        """Close one."""

    async def call() -> int:
        """Return the client of one call."""
        async with clients.one() as client:
            return client

    clients = Clients(make, close, first=1)
    open_ = [clients.one() for _ in range(CALLS)]
    for one in open_:
        await one.__aenter__()
    waiting = asyncio.ensure_future(call())
    await asyncio.to_thread(building.wait, 20)
    for one in open_:
        await one.__aexit__(None, None, None)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    await clients.aclose()
