"""Log in to Discord, run the client's socket, and watch it: the library does not notice every fault by itself.

One client speaks, whether or not it has a socket, and may be given one and lose it any number of times. A bad token,
or a spent allowance of session starts, is reported by name instead of being retried for ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from functools import partial
from time import monotonic
from typing import Any

import aiohttp
import discord
import discord.gateway
import discord.http
import yarl
from msgspec import Struct, field

from claudius.adapters.chat_adapter import NotConnected, Outage, Timings
from claudius.adapters.discord.api_errors import FAILURES, NETWORK, TOKEN, WAITS_S
from claudius.adapters.discord.incoming import DIRECT, DiscordBot, KnownChannels, position
from claudius.adapters.incoming import MISREAD
from claudius.errors import AdapterRefused
from claudius.foreign import unquoted
from claudius.proxies import proxy_of
from claudius.runtime.adapter import Link

REMEDY = "reset it at discord.com/developers/applications, your application, Bot, and put the new one into .env"


log = logging.getLogger(__name__)

INTENTS = discord.Intents(
    guilds=True, guild_messages=True, dm_messages=True, message_content=True, guild_reactions=True, dm_reactions=True
)
"""Only message_content is privileged. Without the members intent, we cannot know who can see a channel."""
GREETINGS = frozenset({"READY", "RESUMED", "GUILD_CREATE"})
"""Events with which every session begins. They do not show that later ones arrive."""
HEARD = GREETINGS | {
    *("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK"),
    *("MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE", "INTERACTION_CREATE"),
}
"""Events that are handled. All others are only counted."""
MOST_GUILDS = 100
"""In how many guilds a person is looked up."""
RESERVE = 50
"""How many of a day's session starts are kept in reserve: past the last one, Discord resets the token."""
LEARNED_S = 5.0
"""How long what was asked about a guild is used without a socket that tells of its changes."""
SOCKETS = 3
"""How many sockets may be opened one after another without a pause."""
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
    """Set Discord's addresses, and keep the library's own log, which contains what people said, down to its errors.

    The library keeps both addresses in its classes and reads them when a client connects.
    """
    logging.getLogger("discord").setLevel(logging.ERROR)
    discord.http.Route.BASE = api_url
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)


class _Poll(discord.Poll):
    @classmethod
    def _from_data(cls, *, data: Any, message: discord.Message, state: Any) -> Any:
        ends = {"expiry": data.get("expiry") or message.created_at.isoformat()}  # the library wants an end
        return super()._from_data(data=data | ends, message=message, state=state)


discord.message.Poll = _Poll  # type: ignore[attr-defined]  # where it reads a message: new, old, answered


class Gateway(discord.Client):
    """A client that caches no messages or members, pings nobody, and knows when not to identify."""

    def __init__(
        self, handlers: Mapping[str, Callable[..., Awaitable[None]]], timings: DiscordTimings, outage: Outage
    ) -> None:
        """Call `handlers`, each by the name of the library's event."""
        trace = outage.follow(aiohttp.TraceConfig())
        trace.on_request_end.append(_no_second_post)
        super().__init__(
            http_trace=trace,
            proxy=proxy_of(discord.http.Route.BASE),
            intents=INTENTS,
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=timings.guild_ready_s,
            max_ratelimit_timeout=LONGEST_WAIT_S,
        )
        self.http.ws_connect = self._open_socket  # type: ignore[method-assign] # asked by the library's sockets
        self._timings, self._opened_at = timings, deque([-math.inf] * SOCKETS, SOCKETS)
        self.is_told = False
        """Whether a socket tells of the changes of guilds; else each is asked about when it matters."""
        self._learned_at: dict[int, float] = {}
        self._learning: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        for event, handler in handlers.items():
            setattr(self, f"on_{event}", handler)
        parsers = self._connection.parsers
        parsers.update({event: partial(self._parse, event, parse) for event, parse in parsers.items()})

    def _parse(self, event: str, parse: _Parse, facts: Any) -> None:
        """Confine an event that the library cannot read to that event, so that the session does not end."""
        if event == "READY":
            self.is_told = True
        try:
            parse(facts)
        except MISREAD as error:
            has_words = isinstance(facts, Mapping) and {"id", "channel_id", "content"} <= facts.keys()
            if event == "MESSAGE_UPDATE" and has_words:
                self.dispatch("part_of_message", parse, facts)
            else:
                log.warning("an event cannot be read", extra={"kind": event, "error": unquoted(error)})

    async def on_part_of_message(self, parse: _Parse, part: Mapping[str, Any]) -> None:
        """Complete a partial message update with the rest of its message, and parse it."""
        try:
            parse({**part, **await self.http.get_message(int(part["channel_id"]), int(part["id"]))})
        except FAILURES as error:
            log.warning("a change cannot be read", extra={"id": part["id"], "error": unquoted(error)})

    async def _open_socket(self, url: str, **how: Any) -> aiohttp.ClientWebSocketResponse:
        """Open a socket through the proxy of its own address: the gateway has another host than the API."""
        await asyncio.sleep(
            self._opened_at[0] + SOCKETS * self._timings.socket_s - monotonic()
        )  # the library has no pause
        self._opened_at.append(monotonic())
        http = copy(self.http)
        http.proxy = proxy_of(url)
        return await discord.http.HTTPClient.ws_connect(http, url, **how)

    async def enter(self, token: str) -> DiscordBot:
        """Log in and return who we are; it takes no socket.

        Raises: AdapterRefused if the token can never work, NotConnected.
        """
        if not token.strip():
            raise AdapterRefused(NETWORK, TOKEN, "it is not set", "put the bot's token into .env")
        try:
            await self.login(token)
        except FAILURES as error:
            raise _unreached(error) from error
        user, application = self.user, self.application_id
        if user is None or application is None:
            raise NotConnected("Discord did not say who we are")
        return DiscordBot(str(user.id), str(application), user.display_name)

    async def prepare(self) -> None:
        """Make ready for a socket that begins a session. Raises: AdapterRefused if the token is void, NotConnected."""
        try:
            await self.check_starts()
        except FAILURES as error:
            raise _unreached(error) from error
        self.ws = None  # type: ignore[assignment] # as before a client's first socket

    async def check_starts(self) -> None:
        """Check that a session may be started. Raises: NotConnected, and what a failed call raises."""
        _, _, starts = await self.http.get_bot_gateway()
        if (left := starts["remaining"]) < RESERVE:
            raise NotConnected(f"only {left} session starts are left for today; waiting", starts["reset_after"] / 1000)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002 - library signature
        """Wait as Discord requires before a further session."""
        if not initial:
            await asyncio.sleep(self._timings.identify_s)
            await self.check_starts()

    async def present(self, is_heard: Callable[[str], bool]) -> Sequence[discord.Guild]:
        """Return the guilds that we are in and that are heard, as they are now. Raises what an API call raises."""
        if not self.is_told:
            listed = {one.id: one async for one in self.fetch_guilds(limit=None, with_counts=False)}
            known, state = {one.id: one for one in self.guilds}, self._connection
            for number in known.keys() - listed.keys():
                state._remove_guild(known[number])  # noqa: SLF001 - as GUILD_DELETE does
            for number in listed.keys() - known.keys():
                state._add_guild(listed[number])  # noqa: SLF001 - as READY does, which names them only
            heard = [number for number in listed if is_heard(str(number))]
            await asyncio.gather(*(self.current(number) for number in heard[:MOST_GUILDS]))
        return [one for one in self.guilds if is_heard(str(one.id))]

    async def current(self, number: int) -> discord.Guild | None:
        """Return a guild as it is now, or None if a socket tells of no such guild. Raises what an API call raises."""
        async with self._learning[number]:
            if not self.is_told and monotonic() - self._learned_at.get(number, -LEARNED_S) >= LEARNED_S:
                await self._learn(number)
        return self.get_guild(number)

    async def may_read(self, workspace: str, channel: str) -> bool:
        """Return whether we may read a history. Without the permission, Discord returns an empty one and no error."""
        guild = await self.current(int(workspace)) if workspace != DIRECT else None
        found = guild.get_channel(int(channel)) if guild else None
        return not (guild and found and guild.me) or found.permissions_for(guild.me).read_message_history

    async def _learn(self, number: int) -> None:
        user, http = self.user, self.http
        whole, channels, active, us = await asyncio.gather(
            http.get_guild(number, with_counts=False),
            http.get_all_guild_channels(number),
            http.get_active_threads(number),
            http.get_member(number, user.id if user else 0),
        )
        told: Any = {**whole, "channels": channels, "threads": active["threads"], "members": [us]}
        self._connection._add_guild_from_data(told)  # noqa: SLF001 - as GUILD_CREATE does, which tells the same
        self._learned_at[number] = monotonic()

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002 - library signature
        """Log an internal error instead of printing it."""
        log.error("an event was not understood", extra={"kind": event_method}, exc_info=True)  # noqa: LOG014 - called while an exception is handled

    async def stay_connected(self) -> None:
        """Keep a socket until it is ended. Raises: NotConnected, and the error with which the library gives up."""
        try:
            await self.connect()
        except AttributeError as error:
            if self.ws is not None:
                raise
            # The library tries to resume a first socket that was never open (discord.py 2.7.1, Client.connect).
            raise NotConnected("the gateway opens no socket") from error

    async def hang_up(self) -> None:
        """Close every socket and end its thread, within a time limit whatever the other side does."""
        beats = [  # keep-alive threads, also that of a socket given up before it identified
            thread
            for thread in threading.enumerate()
            if isinstance(thread, discord.gateway.KeepAliveHandler) and thread.ws._dispatch == self.dispatch  # noqa: SLF001 - nothing else tells whose it is
        ]
        settling = self._connection._ready_task  # noqa: SLF001 - no public name exists
        if settling:
            settling.cancel()  # it outlives the socket and then calls a closed loop (discord.py 2.7.1, close)
        self.is_told = False
        try:
            async with asyncio.timeout(self._timings.close_s):
                await asyncio.gather(*(beat.ws.close() for beat in beats))
        except TimeoutError:
            log.info("a socket did not close in time")
        for beat in beats:
            beat.stop()

    async def close(self) -> None:
        """Close every socket and the client, within a time limit whatever the other side does."""
        await self.hang_up()
        await super().close()


def _unreached(error: BaseException) -> NotConnected | AdapterRefused:
    """Return what a call means that failed before there was a socket. Pure."""
    if isinstance(error, discord.GatewayNotFound) and error.__cause__:
        error = error.__cause__
    status = error.status if isinstance(error, discord.HTTPException) else 0
    if status == 401 or isinstance(error, discord.LoginFailure):
        return AdapterRefused(NETWORK, TOKEN, "Discord does not accept it (401)", REMEDY)
    return NotConnected(f"status {status}" if status else type(error).__name__)


class DiscordTimings(Timings, frozen=True):
    """How long each thing may take, in seconds."""

    guild_ready_s: float = 2.0
    """After this long without a further guild, all guilds count as known."""
    identify_s: float = 5.0
    """The pause before a further session."""
    socket_s: float = 1.0
    """The shortest time between two sockets, on the average of some."""
    lost_s: float = 5.0
    """A socket that is resumed sooner counts as never lost."""
    client_s: float = 120.0
    """After this long without a connection, a fresh socket is opened at once: the library's own waits keep growing."""
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
    """Return when a fresh socket is needed."""
    while True:
        down_s = pulse.down_s()
        if link.connected and down_s >= timings.lost_s:
            link.down("the connection is lost and being made again")
        if down_s >= timings.client_s:
            link.down("nothing is heard from Discord; connecting from the beginning")
            log.warning("a fresh socket is opened", extra={"reason": "lost"})
            return
        if pulse.down_at is None and await is_deaf():
            log.warning("a fresh socket is opened", extra={"reason": "deaf"})
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

    def begin(self) -> None:
        """Compare only what is said from now on: another process may have heard what was said before."""
        self._spoke_at = None

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
            log.info("not asked whether we are deaf", extra={"error": unquoted(error)})
            return False
        return max(others, default="") > self._places.newest.get(place, "")
