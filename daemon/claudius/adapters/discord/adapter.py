"""Connect Discord to the soul: post through the REST API, and receive messages over the gateway while listening."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any

import discord
from msgspec import Struct

from claudius.adapters.caches import keep
from claudius.adapters.chat_adapter import (
    HEARING_S,
    SPEAKING_S,
    ChatAdapter,
    ChatSession,
    NotConnected,
    either,
    ended,
    surely,
    until,
)
from claudius.adapters.discord.api_errors import FAILURES, classify, refusal
from claudius.adapters.discord.commands import DiscordTeller, Tree, ask
from claudius.adapters.discord.gateway import (
    GREETINGS,
    HEARD,
    DiscordProbe,
    DiscordTimings,
    Gateway,
    Pulse,
    point_at,
    watch,
)
from claudius.adapters.discord.history import DiscordHistory
from claudius.adapters.discord.incoming import (
    CHANGES,
    NETWORK,
    Change,
    DiscordBot,
    DiscordMessage,
    KnownChannels,
    heeded,
    interpret,
    perceive,
    position,
)
from claudius.adapters.discord.outgoing import PRESSED, DiscordPoster, DiscordTypingIndicators
from claudius.adapters.discord.people import ChannelVisibility, DiscordPeople
from claudius.adapters.discord.text import fetch, title
from claudius.adapters.incoming import Ignored
from claudius.config.schema import Config
from claudius.errors import AdapterRefused, ClaudiusError, OverBudget
from claudius.foreign import unquoted
from claudius.perception import Kind
from claudius.runtime.adapter import Accept, Fetched
from claudius.runtime.commands.words import decision

log = logging.getLogger(__name__)


class DiscordOptions(Struct, frozen=True):
    """The owner's settings."""

    token: str
    api_url: str
    gateway_url: str
    guilds: tuple[str, ...] = ()
    """The guilds whose members are heard. * = every guild."""
    is_typing_shown: bool = True


class _Session(ChatSession, frozen=True):
    """The parts that exist while one client is logged in."""

    gateway: Gateway
    us: DiscordBot
    visibility: ChannelVisibility
    tree: Tree


class DiscordAdapter(ChatAdapter[_Session]):
    """One bot in all its guilds."""

    name = NETWORK
    post_chars: int | None = 2000
    is_plain = introduces = True
    appears_s = 0.0
    """A part that was not found may be posted again at once: the nonce prevents a duplicate."""

    def __init__(
        self, options: DiscordOptions, clock: Callable[[], datetime], timings: DiscordTimings | None = None
    ) -> None:
        """Prepare to listen with the owner's token. `clock` returns the current time."""
        timings = timings or DiscordTimings()
        super().__init__(timings.again_s)
        self._options, self._clock, self._timings = options, clock, timings
        self._people, self._places = DiscordPeople(options.guilds), KnownChannels()
        self._probe, self._pulse = DiscordProbe(self._places, self._timings), Pulse()
        self._sweeping: asyncio.TimerHandle | None = None
        """The sweep that is asked for soon, once for everything that could not be stored meanwhile."""

    def follow(self, config: Callable[[], Config]) -> None:
        """Read the allowed guilds and the access rules from `config` from now on."""
        self._people.follow(config)

    async def listen(self, accept: Accept) -> None:
        """Listen until closed; raises as the base does."""
        self._probe.begin()
        await super().listen(accept)

    async def _enter(self) -> None:
        if self._inside and not self._inside.gateway.is_closed():
            return
        if self._inside:
            await self._inside.indicators.close()
        point_at(self._options.api_url, self._options.gateway_url)
        gateway = self._gateway()
        try:
            self._inside = self._settle_in(gateway, await gateway.enter(self._options.token))
        except (NotConnected, AdapterRefused):
            await gateway.close()
            raise

    async def _listen_once(self) -> None:
        self._pulse, rest_s = Pulse(), 0.0
        inside = self._inside
        try:
            inside = await self._known()
            await inside.gateway.prepare()
            watching = watch(self._pulse, self.link, self._timings, lambda: self._probe.is_deaf(inside.gateway))
            await either(inside.gateway.stay_connected(), watching, "discord")
        except NotConnected as error:
            self.link.down(self._unreached(error))
            rest_s = max(error.after_s, self._timings.again_s)
        except discord.PrivilegedIntentsRequired as error:
            raise refusal(4014) or error from error
        except discord.ConnectionClosed as error:
            if refused := refusal(error.code):
                raise refused from error
            self.link.down(f"Discord closed the connection ({error.code}); it is tried again")
            rest_s = self._timings.again_s
        finally:
            if inside:
                await surely(inside.gateway.hang_up(), "discord closes")
        await until(self._over, rest_s)

    def _gateway(self) -> Gateway:
        handlers: dict[str, Callable[..., Awaitable[None]]] = {
            "ready": partial(self._connected, is_new=True),
            "resumed": partial(self._connected, is_new=False),
            "disconnect": self._disconnected,
            "socket_event_type": self._arrived,
            "message": partial(self._receive, self._hear),
            "interaction": partial(self._receive, self._press),
            **dict.fromkeys(CHANGES, partial(self._receive, self._hear_change)),
        }
        return Gateway(handlers, self._timings, self._outage)

    def _settle_in(self, gateway: Gateway, us: DiscordBot) -> _Session:
        return _Session(
            gateway=gateway,
            us=us,
            poster=DiscordPoster(gateway, us, self._places, self._clock, self._timings.send_s),
            history=DiscordHistory(gateway, us, self._people, self._places, self._reached),
            indicators=DiscordTypingIndicators(gateway, self._places, is_shown=self._options.is_typing_shown),
            teller=DiscordTeller(gateway),
            visibility=ChannelVisibility(gateway),
            tree=Tree(gateway, partial(self._receive, self._ask)),
        )

    async def _connected(self, *, is_new: bool) -> None:
        """Mark the connection as up. After a new session, missed messages are looked for."""
        self._pulse.down_at = None
        if is_new and self.link.connected:
            self.link.down("another session")
        elif self.link.connected:
            self.link.reconnects += 1
        self.link.up()
        if self._inside:
            self.link.notice = partial(self._people.nobody_heard, self._inside.gateway)
        if is_new and self._inside:
            registering = asyncio.create_task(self._inside.tree.register(), name="discord commands")
            self._hearing.add(registering)
            registering.add_done_callback(self._hearing.discard)

    async def _disconnected(self) -> None:
        if self._pulse.down_at is None:
            self._pulse.down_at = monotonic()

    async def _arrived(self, event: str) -> None:
        self._probe.came()
        if event not in GREETINGS:
            self.link.heard()
        if event not in HEARD:
            self.ignored[event] += 1

    async def _ask(self, interaction: discord.Interaction, text: str, inside: _Session, accept: Accept) -> None:
        find = partial(self._places.find, interaction.channel_id or 0, interaction.guild_id, inside.gateway)
        know = partial(self._people.know, client=inside.gateway, user=str(interaction.user.id), author=interaction.user)
        await ask(interaction, text, find, know, accept)

    async def _press(self, interaction: discord.Interaction, inside: _Session, accept: Accept) -> None:
        """Hear the button of a question for consent; the tree hears commands."""
        facts: Mapping[str, Any] = interaction.data or {}
        pressed = PRESSED.fullmatch(str(facts.get("custom_id")))
        if pressed:
            await self._ask(interaction, decision(pressed[1], pressed[2]), inside, accept)

    async def _receive(self, hear: Callable[..., Awaitable[None]], *event: Any) -> None:
        """Process one event. A message that cannot be stored is looked for in the history again.

        A change of one is lost then, because no history reports it.
        """
        task = asyncio.current_task()
        if self._accept is None or self._inside is None or self._over.is_set() or task is None:
            return
        self._hearing.add(task)
        try:
            await hear(*event, self._inside, self._accept)
        except OverBudget:
            log.info("over budget")
        except ConnectionAbortedError:
            log.info("going to sleep: whoever wakes next finds it")
        except (ClaudiusError, *FAILURES) as error:
            log.warning("not heard; it is looked for again", extra={"error": unquoted(error)})
            if self._sweeping is None:
                self._sweeping = asyncio.get_running_loop().call_later(self._timings.again_s, self._sweep)
        finally:
            self._hearing.discard(task)

    def _sweep(self) -> None:
        self._sweeping = None
        self.link.look_back()

    async def _hear(self, message: discord.Message, inside: _Session, accept: Accept) -> None:
        where = await self._places.whereabouts(message, inside.gateway)
        match interpret(message, where, inside.us):
            case DiscordMessage() as said:
                self._reached.known(f"{where.guild}:{where.channel}", said.position)
                self._places.know(where.place, said.position)
                self._probe.spoke()
                who = await self._people.know(where.guild, inside.gateway, said.user, message.author)
                perception = perceive(said, inside.us, who)
                if perception.kind is Kind.MENTION and not where.thread:
                    keep(self._places.titles, said.id, title(perception.text, inside.us.name))
                try:
                    await accept(perception)
                except (OverBudget, ConnectionAbortedError):
                    raise
                except (ClaudiusError, *FAILURES):
                    self._reached.failed(f"{where.guild}:{where.channel}", perception.position)
                    raise
            case Ignored(what):
                self.ignored[what] += 1
                self._places.know(where.place, position(str(message.id)))

    async def _hear_change(self, change: Change, inside: _Session, accept: Accept) -> None:
        where = await self._places.find(change.channel_id, change.guild_id, inside.gateway)
        know = partial(self._people.know, where.guild, inside.gateway)
        for perception in await heeded(change, where, inside.us, know, self._clock()):
            await accept(perception)

    async def fetch(self, file: Mapping[str, Any], most_bytes: int) -> Fetched:
        """Return a file of a message.

        Raises: ValueError if it is larger than `most_bytes`; OSError, DeliveryLater if it cannot be fetched.
        """
        return await fetch(self._in().gateway, self._options.api_url, file, most_bytes)

    async def sees(self, person: str, audiences: Sequence[str]) -> Sequence[str]:
        """Return those of these channels that a person can see now: members are listed to an intent that it has not.

        Raises: DeliveryLater while nobody is logged in.
        """
        return await self._in().visibility.seen(person, audiences)

    async def name_of(self, person: str) -> str:
        """Return the name that Discord shows of a person. Raises: DeliveryError."""
        try:
            return (await self._in().gateway.fetch_user(int(person.rpartition(":")[2]))).display_name
        except FAILURES as error:
            raise classify(error) from error

    async def close(self) -> None:
        """Stop listening: finish what was being received or posted, and leave no task, socket or session open."""
        self._accept = None
        if self._sweeping:
            self._sweeping.cancel()
        await ended(self._hearing, HEARING_S)
        await ended(self._speaking, SPEAKING_S)
        self._over.set()
        try:
            await self._ended.wait()
            await self._people.close()
            if self._inside:
                await self._inside.indicators.close()
                await self._inside.gateway.close()
        finally:  # also if whoever waits has no more time
            before, self._inside = self._inside, None
            if before:
                await before.gateway.http.close()
