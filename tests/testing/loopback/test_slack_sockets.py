"""The sockets of the Slack on loopback: tickets, several at once, and every way in which one can end or fall ill."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.sockets import Reason
from lab.loopback.slack.state import APP_TOKEN
from lab.loopback.slack.world import SlackWorld
from slack_ear import Ear

Listen = Callable[[], Awaitable[Ear]]


async def test_a_ticket_opens_one_socket(client: AsyncWebClient) -> None:
    """The first upgrade says hello, the second is refused."""
    url = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(url) as socket:
            hello = await socket.receive_json()

        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(url)

    assert (hello["type"], hello["num_connections"], hello["connection_info"]) == ("hello", 1, {"app_id": "A1"})
    assert refused.value.status == 404


async def test_a_ticket_is_good_for_a_while_only(client: AsyncWebClient, slack: SlackWorld) -> None:
    """A ticket that lay about opens nothing, nor does one that was spoilt on order."""
    old = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
    await slack.shift_clock(3600)
    await slack.spoil_tickets(1)
    dead = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]

    async with aiohttp.ClientSession() as session:
        for url in (old, dead):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(url)

    assert await slack.sockets() == []


async def test_sockets_share_the_events(listen: Listen, slack: SlackWorld) -> None:
    """Each event goes to one of them; `hello` told each how many there are."""
    first, second = await listen(), await listen()

    for number in range(4):
        await slack.say("D1", "U1", str(number))
    await slack.until_quiet()

    assert sorted(event["text"] for event in first.events + second.events) == ["0", "1", "2", "3"]
    assert (len(first.events), len(second.events)) == (2, 2)


async def test_there_are_never_more_than_ten_sockets(client: AsyncWebClient, slack: SlackWorld) -> None:
    """The eleventh is refused."""
    async with aiohttp.ClientSession() as session:
        held = [
            await session.ws_connect((await client.apps_connections_open(app_token=APP_TOKEN))["url"])
            for _ in range(10)
        ]

        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect((await client.apps_connections_open(app_token=APP_TOKEN))["url"])

        assert len(await slack.sockets()) == len(held)


@pytest.mark.parametrize("end", ["close", "drop", "warning", "refresh_requested", "age"])
async def test_after_every_end_the_client_is_back_with_one_socket(end: str, listen: Listen, slack: SlackWorld) -> None:
    """Close frame, reset, both announcements, old age: bolt opens a new one, and what is said then is heard."""
    await slack.set(refresh_grace_s=0.05, connection_s=0.3 if end == "age" else 18060)
    ear = await listen()
    await slack.set(connection_s=18060)

    match end:
        case "close":
            await slack.close_sockets()
        case "drop":
            await slack.drop_sockets()
        case "warning" | "refresh_requested":
            reason: Reason = "warning" if end == "warning" else "refresh_requested"
            await slack.disconnect(reason)
    await slack.until_connected(1, opened=2)
    await slack.say("D1", "U1", "Still there?")
    await slack.until_quiet()

    assert [event["text"] for event in ear.events] == ["Still there?"]


async def test_a_deaf_socket_answers_pings_and_brings_nothing(listen: Listen, slack: SlackWorld) -> None:
    """The client takes it for live; the event is never acknowledged and stands in history."""
    ear = await listen()
    await slack.sicken("deaf")
    await slack.set(ack_deadline_s=0.05)
    (before,) = await slack.sockets()

    await slack.say("D1", "U1", "Hello?")
    await slack.until_fate("timeout", 1)

    (after,) = await slack.sockets()
    assert after["pings"] >= before["pings"]
    assert await ear.handler.client.is_connected()
    assert ear.bodies == []


async def test_a_half_open_socket_is_noticed_by_the_clients_pings(listen: Listen, slack: SlackWorld) -> None:
    """It is read and never answered, not even its end: the client opens another one."""
    ear = await listen()
    await slack.sicken("half_open")

    await slack.until_connected(1, opened=2)
    await slack.say("D1", "U1", "Back?")
    await slack.until_quiet()

    assert [event["text"] for event in ear.events] == ["Back?"]


async def test_a_refused_upgrade_is_tried_again_at_the_same_dead_url(client: AsyncWebClient, slack: SlackWorld) -> None:
    """The trap of python-slack-sdk#1446: one ticket, refused for ever, until the URL is forgotten."""
    ear = Ear(client)
    ear.handler.client.ping_interval = 0.02
    await slack.refuse_upgrades(1)
    connecting = asyncio.create_task(ear.handler.connect_async())
    await slack.until_called("apps.connections.open", 1)

    with pytest.raises(TimeoutError):
        await slack.until_connected(1, within_s=0.5)
    tickets = len(await slack.calls("apps.connections.open"))
    ear.handler.client.wss_uri = None
    await slack.until_connected(1)
    await connecting
    await ear.handler.close_async()

    assert tickets == 1
    assert len(await slack.calls("apps.connections.open")) == 2


async def test_the_server_pings_and_pongs(client: AsyncWebClient, slack: SlackWorld) -> None:
    """A raw socket sees pings of the server's, and a pong to its own; a half-open one sees nothing more."""
    await slack.set(ping_s=0.02)
    url = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
    async with aiohttp.ClientSession() as session, session.ws_connect(url, autoping=False) as socket:
        hello = await socket.receive_json()
        await socket.ping(b"mine")
        seen = set()
        while not {aiohttp.WSMsgType.PING, aiohttp.WSMsgType.PONG} <= seen:
            seen.add((await socket.receive()).type)
        await slack.sicken("half_open", is_lasting=True)
        await socket.ping(b"mine")
        late = await _types_until_silence(socket)
        (open_one,) = await slack.sockets()

    assert hello["debug_info"]["approximate_connection_time"] == 18060
    assert aiohttp.WSMsgType.PONG not in late
    assert open_one["health"] == "half_open"


async def _types_until_silence(socket: aiohttp.ClientWebSocketResponse) -> set[aiohttp.WSMsgType]:
    seen = set()
    while True:
        try:
            seen.add((await socket.receive(timeout=0.2)).type)
        except TimeoutError:
            return seen
