"""Being let in: who we are, and whether a session may be started, so that a bad token is named, not tried for ever."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import aiohttp
import discord
import discord.gateway
import discord.http
import yarl

from claudius.adapters.discord.api_errors import FAILURES, MISREAD, NETWORK, TOKEN, WAITS_S
from claudius.adapters.discord.incoming import Us
from claudius.adapters.discord.liveness import Patience
from claudius.errors import AdapterRefused

REMEDY = "reset it at discord.com/developers/applications, your application, Bot, and put the new one into .env"


async def enter(gateway: Gateway, token: str) -> Us:
    """Log in; return who we are. Raises: AdapterRefused where the token will never do, NotNow."""
    if not token.strip():
        raise AdapterRefused(NETWORK, TOKEN, "it is not set", "put the bot's token into .env")
    try:
        await gateway.login(token)
        await gateway.check_starts()
    except discord.LoginFailure as error:
        raise AdapterRefused(NETWORK, TOKEN, "Discord does not accept it (401)", REMEDY) from error
    except FAILURES as error:
        raise NotNow(_words(error)) from error
    user, application = gateway.user, gateway.application_id
    if user is None or application is None:
        raise NotNow("Discord did not say who we are")
    return Us(str(user.id), str(application), user.display_name)


def _words(error: BaseException) -> str:
    return f"status {error.status}" if isinstance(error, discord.HTTPException) else type(error).__name__


log = logging.getLogger("claudius.discord.gateway")

INTENTS = discord.Intents(
    guilds=True,
    guild_messages=True,
    dm_messages=True,
    message_content=True,
    guild_reactions=True,
    dm_reactions=True,
)
"""Of these, one is privileged: message_content. Without the members intent nobody knows who can see a channel."""
HEARD = frozenset(
    {
        "READY",
        "RESUMED",
        "GUILD_CREATE",
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "MESSAGE_REACTION_ADD",
        "MESSAGE_REACTION_REMOVE",
        "INTERACTION_CREATE",
    }
)
"""Events that mean something; others are counted."""
RESERVE = 50
"""So many session starts of a day are kept back: past the last one Discord resets the token."""
LONGEST_WAIT_S = 30.0
"""A 429 that asks for more is told to the caller, who has other things to do. The library takes no less."""


class NotNow(Exception):
    """Discord cannot be reached, or wants no further session now."""

    def __init__(self, detail: str, after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.after_s = after_s


Change = (
    discord.RawMessageUpdateEvent
    | discord.RawMessageDeleteEvent
    | discord.RawBulkMessageDeleteEvent
    | discord.RawReactionActionEvent
)
"""What becomes of a message that was there before."""


_Parse = Callable[[Any], None]
"""The library's reader of one kind of event."""


class Listener(Protocol):
    """Who is told what a client hears."""

    def stands(self, *, is_new: bool) -> None:
        """Tell that events come; `is_new`: in a new session, so that some may be missing before."""

    def fell(self) -> None:
        """Tell that the socket is gone; it is being made again."""

    def came(self, event: str) -> None:
        """Tell that an event came, by its name."""

    async def take(self, message: discord.Message) -> None:
        """Hear a message."""

    async def heed(self, change: Change) -> None:
        """Hear what became of a message that was there before."""


async def _no_second_post(_: object, __: object, ended: aiohttp.TraceRequestEndParams) -> None:
    """Tell of a post that ended in an error. Raises: ConnectionError, for whoever posted to look first; RateLimited.

    The library would post again by itself, within one call (discord.py 2.7.1, HTTPClient.request): the nonce keeps
    that from being a second post, but only where it is known.
    """
    is_post = ended.method == "POST" and ended.url.path.endswith("/messages")
    if is_post and ended.response.status >= 500:
        ended.response.close()
        raise ConnectionError(f"status {ended.response.status}")
    if ended.response.status == 429 and not tells_wait(await ended.response.read()):
        raise discord.RateLimited(WAITS_S[429])


def tells_wait(body: bytes) -> bool:
    """Tell whether the library can read from a 429 how long to wait; a page is told to us as it is. Pure.

    What it cannot read it stumbles over, and that it was a refusal is lost (discord.py 2.7.1, HTTPClient.request).
    """
    try:
        told = json.loads(body)
    except ValueError:
        return True
    asked_s = told.get("retry_after") if isinstance(told, dict) else None
    return isinstance(asked_s, int | float) and 0 <= asked_s < float("inf")


def point_at(api_url: str, gateway_url: str) -> None:
    """Say where Discord is, and keep the library's own log, which holds what people said, off the terminal.

    The library keeps both addresses in its classes; they are read when a client connects.
    """
    library = logging.getLogger("discord")
    if not library.handlers:
        library.addHandler(logging.NullHandler())
    discord.http.Route.BASE = api_url
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)


class Gateway(discord.Client):
    """A client that keeps no messages and no members, pings nobody, and knows when not to identify."""

    def __init__(self, listener: Listener, patience: Patience) -> None:
        """Tell `listener`."""
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(_no_second_post)
        super().__init__(
            http_trace=trace,
            intents=INTENTS,
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=patience.guild_ready_s,
            max_ratelimit_timeout=LONGEST_WAIT_S,
        )
        self._listener, self._patience = listener, patience
        parsers = self._connection.parsers
        parsers.update({event: partial(self._parse, event, parse) for event, parse in parsers.items()})

    def _parse(self, event: str, parse: _Parse, facts: Any) -> None:
        """Let an event that the library cannot read end as one event, not as the whole session."""
        try:
            parse(facts)
        except MISREAD as error:
            if event == "MESSAGE_UPDATE" and _tells_words(facts):
                self.dispatch("part_of_message", parse, facts)
            else:
                log.warning("an event cannot be read", extra={"kind": event, "error": repr(error)})

    async def on_part_of_message(self, parse: _Parse, part: Mapping[str, Any]) -> None:
        """Read a change that tells a part of its message with the rest of it."""
        try:
            parse({**part, **await self.http.get_message(int(part["channel_id"]), int(part["id"]))})
        except FAILURES as error:
            log.warning("a change cannot be read", extra={"id": part["id"], "error": repr(error)})

    async def check_starts(self) -> None:
        """Look whether a session may be started. Raises: NotNow, and what a failed call raises."""
        _, _, starts = await self.http.get_bot_gateway()
        if starts["remaining"] < RESERVE:
            wait_s = starts["reset_after"] / 1000
            raise NotNow(f"only {starts['remaining']} session starts are left for today; waiting", wait_s)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002 - the library's signature
        """Wait as Discord wants it before a further session."""
        if not initial:
            await asyncio.sleep(self._patience.identify_s)
            await self.check_starts()

    async def on_ready(self) -> None:
        """Events come, in a new session."""
        self._listener.stands(is_new=True)

    async def on_resumed(self) -> None:
        """Events come again; none is missing."""
        self._listener.stands(is_new=False)

    async def on_disconnect(self) -> None:
        """The socket is gone."""
        self._listener.fell()

    async def on_socket_event_type(self, event: str) -> None:
        """Note that something came."""
        self._listener.came(event)

    async def on_message(self, message: discord.Message) -> None:
        """Hear a message."""
        await self._listener.take(message)

    async def on_raw_message_edit(self, change: discord.RawMessageUpdateEvent) -> None:
        """Hear that a message was changed."""
        await self._listener.heed(change)

    async def on_raw_message_delete(self, change: discord.RawMessageDeleteEvent) -> None:
        """Hear that a message was taken down."""
        await self._listener.heed(change)

    async def on_raw_bulk_message_delete(self, change: discord.RawBulkMessageDeleteEvent) -> None:
        """Hear that several messages were taken down."""
        await self._listener.heed(change)

    async def on_raw_reaction_add(self, change: discord.RawReactionActionEvent) -> None:
        """Hear that somebody reacted to a message."""
        await self._listener.heed(change)

    async def on_raw_reaction_remove(self, change: discord.RawReactionActionEvent) -> None:
        """Hear that somebody took a reaction away."""
        await self._listener.heed(change)

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the library's signature
        """Log a fault of ours, instead of printing it."""
        log.error("an event was not understood", extra={"kind": event_method}, exc_info=True)  # noqa: LOG014 - the library calls it while it handles one


def _tells_words(facts: object) -> bool:
    return isinstance(facts, Mapping) and {"id", "channel_id", "content"} <= facts.keys()


async def hang_up(gateway: Gateway, patience: Patience) -> None:
    """Leave no socket, session or thread; bounded, whatever the other side does."""
    beats, settling = _beats(gateway), gateway._connection._ready_task  # noqa: SLF001 - nothing else names it
    if settling:
        settling.cancel()  # it outlives the client, and then tells a loop that is gone (discord.py 2.7.1, close)
    try:
        async with asyncio.timeout(patience.close_s):
            for beat in beats:
                await beat.ws.close()
            await gateway.close()
    except TimeoutError:
        log.info("a socket did not close in time")
        await gateway.http.close()
    for beat in beats:
        beat.stop()


def _beats(gateway: Gateway) -> list[discord.gateway.KeepAliveHandler]:
    """Return the threads that keep a client's sockets alive, also one that was given up before it identified."""
    return [
        thread
        for thread in threading.enumerate()
        if isinstance(thread, discord.gateway.KeepAliveHandler) and thread.ws._dispatch == gateway.dispatch  # noqa: SLF001 - nothing else tells whose it is
    ]


async def connect(gateway: Gateway) -> None:
    """Keep a client connected until it is closed. Raises: NotNow, and what the library gives up with."""
    try:
        await gateway.connect()
    except AttributeError as error:
        if gateway.ws is not None:
            raise
        # The library means to resume a first socket that was never open (discord.py 2.7.1, Client.connect).
        raise NotNow("the gateway opens no socket") from error
