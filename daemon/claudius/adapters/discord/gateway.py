"""Log in to Discord's gateway, run the client, and watch it: the library does not notice every fault by itself.

A bad token, or a spent allowance of session starts, is reported by name instead of being retried for ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from typing import Any

import aiohttp
import discord
import discord.gateway
import discord.http
import yarl
from msgspec import Struct, field

from claudius.adapters.chat_adapter import NotConnected, Timings
from claudius.adapters.discord.api_errors import FAILURES, MISREAD, NETWORK, TOKEN, WAITS_S
from claudius.adapters.discord.incoming import DiscordBot, KnownChannels, position
from claudius.errors import AdapterRefused
from claudius.runtime.adapter import Link

REMEDY = "reset it at discord.com/developers/applications, your application, Bot, and put the new one into .env"


log = logging.getLogger(__name__)

INTENTS = discord.Intents(
    guilds=True,
    guild_messages=True,
    dm_messages=True,
    message_content=True,
    guild_reactions=True,
    dm_reactions=True,
)
"""Only message_content is privileged. Without the members intent, we cannot know who can see a channel."""
GREETINGS = frozenset({"READY", "RESUMED", "GUILD_CREATE"})
"""Events with which every session begins. They do not show that later ones arrive."""
HEARD = GREETINGS | frozenset(
    {
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "MESSAGE_REACTION_ADD",
        "MESSAGE_REACTION_REMOVE",
        "INTERACTION_CREATE",
    }
)
"""Events that are handled. All others are only counted."""
RESERVE = 50
"""How many of a day's session starts are kept in reserve: past the last one, Discord resets the token."""
LONGEST_WAIT_S = 30.0
"""A 429 that asks for a longer wait is passed to the caller, who has other work. The library accepts no less."""


_Parse = Callable[[Any], None]
"""The library's parser for one kind of event."""


async def _no_second_post(_: object, __: object, ended: aiohttp.TraceRequestEndParams) -> None:
    """Report a post that ended in an error, before the library can repeat it.

    The library would post again by itself within one call (discord.py 2.7.1, HTTPClient.request). The nonce keeps that
    from creating a second post, but only while Discord remembers it.

    Raises: ConnectionError, so that the caller looks for the post first; RateLimited.
    """
    is_post = ended.method == "POST" and ended.url.path.endswith("/messages")
    if is_post and ended.response.status >= 500:
        ended.response.close()
        raise ConnectionError(f"status {ended.response.status}")
    if ended.response.status == 429 and not tells_wait(await ended.response.read()):
        raise discord.RateLimited(WAITS_S[429])


def tells_wait(body: bytes) -> bool:
    """Return whether the library can read the wait time from a 429. A body that is not JSON reaches us unchanged. Pure.

    The library fails on a body that it cannot read, and the fact that it was a refusal is lost (discord.py 2.7.1,
    HTTPClient.request).
    """
    try:
        told = json.loads(body)
    except ValueError:
        return True
    asked_s = told.get("retry_after") if isinstance(told, dict) else None
    return isinstance(asked_s, int | float) and 0 <= asked_s < float("inf")


def point_at(api_url: str, gateway_url: str) -> None:
    """Set Discord's addresses, and keep the library's own log, which contains what people said, off the terminal.

    The library keeps both addresses in its classes and reads them when a client connects.
    """
    library = logging.getLogger("discord")
    if not library.handlers:
        library.addHandler(logging.NullHandler())
    discord.http.Route.BASE = api_url
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)


class Gateway(discord.Client):
    """A client that caches no messages or members, pings nobody, and knows when not to identify."""

    def __init__(self, handlers: Mapping[str, Callable[..., Awaitable[None]]], timings: DiscordTimings) -> None:
        """Call `handlers`, each by the name of the library's event."""
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(_no_second_post)
        super().__init__(
            http_trace=trace,
            intents=INTENTS,
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=timings.guild_ready_s,
            max_ratelimit_timeout=LONGEST_WAIT_S,
        )
        self._timings = timings
        for event, handler in handlers.items():
            setattr(self, f"on_{event}", handler)
        parsers = self._connection.parsers
        parsers.update({event: partial(self._parse, event, parse) for event, parse in parsers.items()})

    def _parse(self, event: str, parse: _Parse, facts: Any) -> None:
        """Confine an event that the library cannot read to that event, so that the session does not end."""
        try:
            parse(facts)
        except MISREAD as error:
            has_words = isinstance(facts, Mapping) and {"id", "channel_id", "content"} <= facts.keys()
            if event == "MESSAGE_UPDATE" and has_words:
                self.dispatch("part_of_message", parse, facts)
            else:
                log.warning("an event cannot be read", extra={"kind": event, "error": repr(error)})

    async def on_part_of_message(self, parse: _Parse, part: Mapping[str, Any]) -> None:
        """Complete a partial message update with the rest of its message, and parse it."""
        try:
            parse({**part, **await self.http.get_message(int(part["channel_id"]), int(part["id"]))})
        except FAILURES as error:
            log.warning("a change cannot be read", extra={"id": part["id"], "error": repr(error)})

    async def enter(self, token: str) -> DiscordBot:
        """Log in and return who we are. Raises: AdapterRefused if the token can never work, NotConnected."""
        if not token.strip():
            raise AdapterRefused(NETWORK, TOKEN, "it is not set", "put the bot's token into .env")
        try:
            await self.login(token)
            await self.check_starts()
        except discord.LoginFailure as error:
            raise AdapterRefused(NETWORK, TOKEN, "Discord does not accept it (401)", REMEDY) from error
        except FAILURES as error:
            detail = f"status {error.status}" if isinstance(error, discord.HTTPException) else type(error).__name__
            raise NotConnected(detail) from error
        user, application = self.user, self.application_id
        if user is None or application is None:
            raise NotConnected("Discord did not say who we are")
        return DiscordBot(str(user.id), str(application), user.display_name)

    async def check_starts(self) -> None:
        """Check that a session may be started. Raises: NotConnected, and what a failed call raises."""
        _, _, starts = await self.http.get_bot_gateway()
        if starts["remaining"] < RESERVE:
            wait_s = starts["reset_after"] / 1000
            raise NotConnected(f"only {starts['remaining']} session starts are left for today; waiting", wait_s)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002 - library signature
        """Wait as Discord requires before a further session."""
        if not initial:
            await asyncio.sleep(self._timings.identify_s)
            await self.check_starts()

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002 - library signature
        """Log an internal error instead of printing it."""
        log.error("an event was not understood", extra={"kind": event_method}, exc_info=True)  # noqa: LOG014 - called while an exception is handled

    async def stay_connected(self) -> None:
        """Keep a client connected until closed. Raises: NotConnected, and the error with which the library gives up."""
        try:
            await self.connect()
        except AttributeError as error:
            if self.ws is not None:
                raise
            # The library tries to resume a first socket that was never open (discord.py 2.7.1, Client.connect).
            raise NotConnected("the gateway opens no socket") from error

    async def hang_up(self) -> None:
        """Close every socket, session and thread, within a time limit whatever the other side does."""
        beats = [  # keep-alive threads, also that of a socket given up before it identified
            thread
            for thread in threading.enumerate()
            if isinstance(thread, discord.gateway.KeepAliveHandler) and thread.ws._dispatch == self.dispatch  # noqa: SLF001 - nothing else tells whose it is
        ]
        settling = self._connection._ready_task  # noqa: SLF001 - no public name exists
        if settling:
            settling.cancel()  # it outlives the client and then calls a closed loop (discord.py 2.7.1, close)
        try:
            async with asyncio.timeout(self._timings.close_s):
                for beat in beats:
                    await beat.ws.close()
                await self.close()
        except TimeoutError:
            log.info("a socket did not close in time")
            await self.http.close()
        for beat in beats:
            beat.stop()


class DiscordTimings(Timings, frozen=True):
    """How long each thing may take, in seconds."""

    guild_ready_s: float = 2.0
    """After this long without a further guild, all guilds count as known."""
    identify_s: float = 5.0
    """The pause before a further session."""
    lost_s: float = 5.0
    """A socket that is resumed sooner counts as never lost."""
    client_s: float = 120.0
    """After this long without a connection, a fresh client starts at once: the library's own waits keep growing."""
    close_s: float = 5.0
    """How long the other side may take to close a socket."""
    send_s: float = 60.0
    """How long a post may take, including waits for rate limits."""


class Pulse(Struct):
    """Since when a client has had no socket. None = it has one."""

    down_at: float | None = field(default_factory=monotonic)

    def down_s(self) -> float:
        """Return for how many seconds the client has had no socket; 0 = it has one."""
        return 0.0 if self.down_at is None else monotonic() - self.down_at


async def watch(pulse: Pulse, link: Link, timings: DiscordTimings, is_deaf: Callable[[], Awaitable[bool]]) -> None:
    """Return when a fresh client is needed."""
    while True:
        down_s = pulse.down_s()
        if link.connected and down_s >= timings.lost_s:
            link.down("the connection is lost and being made again")
        if down_s >= timings.client_s:
            link.down("nothing is heard from Discord; connecting from the beginning")
            log.warning("a fresh client is made", extra={"reason": "lost"})
            return
        if pulse.down_at is None and await is_deaf():
            log.warning("a fresh client is made", extra={"reason": "deaf"})
            link.deaf()
            return
        await asyncio.sleep(timings.tick_s)


LOOKED_AT = 20
"""How many of the newest messages are examined, since some are our own."""


class DiscordProbe:
    """Compares the newest message in the last active channel with the last message that arrived."""

    def __init__(self, places: KnownChannels, timings: DiscordTimings) -> None:
        self._places, self._timings = places, timings
        self._spoke_at: float | None = None
        self._came_at = self._asked_at = monotonic()

    def came(self) -> None:
        """Note that an event of any kind arrived now."""
        self._came_at = self._asked_at = monotonic()

    def spoke(self) -> None:
        """Note that somebody wrote a message now."""
        self._spoke_at = monotonic()

    async def is_deaf(self, client: discord.Client) -> bool:
        """Return whether a message was said that did not arrive. Checks rarely, and only if somebody spoke recently."""
        now = monotonic()
        if self._spoke_at is None or now - self._spoke_at > self._timings.spoke_s or not self._places.newest:
            return False
        if now - self._asked_at < self._timings.deaf_s:
            return False
        self._asked_at = now
        place = next(reversed(self._places.newest))
        if not await self._is_ahead(client, place):
            return False
        before = self._came_at
        await asyncio.sleep(self._timings.arrives_s)
        return self._came_at == before and await self._is_ahead(client, place)

    async def _is_ahead(self, client: discord.Client, place: str) -> bool:
        try:
            found = [one async for one in client.get_partial_messageable(int(place)).history(limit=LOOKED_AT)]
            # our own later messages must not hide earlier ones of others
            others = [position(str(one.id)) for one in found if one.author != client.user]
        except FAILURES as error:
            log.info("not asked whether we are deaf", extra={"error": repr(error)})
            return False
        return max(others, default="") > self._places.newest.get(place, "")
