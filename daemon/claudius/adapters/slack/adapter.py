"""Connect Slack to the soul: receive events in Socket Mode through one Bolt middleware and post through the Web API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from time import time
from typing import Any

import aiohttp
from msgspec import Struct
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.chat_adapter import (
    HEARING_S,
    SPEAKING_S,
    ChatAdapter,
    ChatSession,
    NotConnected,
    ended,
    surely,
    until,
)
from claudius.adapters.incoming import Ignored
from claudius.adapters.slack.commands import HOME_OPENED, SlackTeller, asked_by, commanded, is_decision
from claudius.adapters.slack.connection import (
    BOT_TOKEN,
    SlackProbe,
    SlackTimings,
    Socket,
    bolt,
    identify,
    open_ticket,
    watch,
)
from claudius.adapters.slack.history import SlackHistory
from claudius.adapters.slack.incoming import (
    NETWORK,
    Goodbye,
    MembershipChange,
    SlackBot,
    SlackMessage,
    Who,
    afterwards,
    called_since,
    interpret,
    perceive,
    perceive_move,
)
from claudius.adapters.slack.outgoing import SlackPoster, SlackTypingIndicators
from claudius.adapters.slack.people import SlackPeople
from claudius.adapters.slack.text import MENTIONS, fetch, transcribed
from claudius.adapters.slack.web_api import web_client
from claudius.errors import AdapterRefused, ClaudiusError, OverBudget
from claudius.foreign import unquoted
from claudius.perception import Kind, Perception, Place, Standing
from claudius.runtime.adapter import Accept, Fetched

log = logging.getLogger(__name__)


class SlackOptions(Struct, frozen=True):
    """The owner's settings."""

    bot_token: str
    app_token: str
    api_url: str
    status: str = ""
    """Shown beside our name while the soul thinks. Empty = no typing indicator."""


class _Session(ChatSession, frozen=True):
    """The parts that exist once Slack has told who we are."""

    client: AsyncWebClient
    us: SlackBot
    people: SlackPeople
    probe: SlackProbe


class SlackAdapter(ChatAdapter[_Session]):
    """One bot in one workspace."""

    name = NETWORK
    places = 2
    post_chars: int | None = 3000
    introduces = True
    appears_s = 5.0

    def __init__(self, options: SlackOptions, timings: SlackTimings | None = None) -> None:
        timings = timings or SlackTimings()
        super().__init__(timings.again_s)
        self._options, self._timings = options, timings
        self._library = logging.getLogger("claudius.slack.library")
        self._library.setLevel(logging.CRITICAL)  # it logs each failed attempt with a traceback and its ticket
        self._client: AsyncWebClient | None = None
        self._goodbye = ""

    async def listen(self, accept: Accept) -> None:
        """Listen until closed.

        Raises: AdapterRefused if Slack refuses or revokes a token, or the app is removed from the workspace.
        """
        await super().listen(accept)
        if self._goodbye:
            raise AdapterRefused(
                NETWORK, BOT_TOKEN, self._goodbye, "install the app again and put its new tokens into .env"
            )

    async def _listen_once(self) -> None:
        try:
            inside = await self._known()
            ticket = await open_ticket(inside.client, self._options.app_token)
        except NotConnected as error:
            self.link.down(self._unreached(error))
            await until(self._over, self._timings.again_s)
            return
        app = bolt(inside.client, self._take, self._library)
        socket = Socket(app, self._options.app_token, self._timings.ping_s, self._library)
        filling = asyncio.create_task(inside.people.fill(), name="slack members")
        try:
            socket.open(ticket, self._hello)
            await watch(socket, self.link, self._timings, inside.probe)
        finally:
            filling.cancel()
            await surely(socket.close(), "slack closes")

    async def _enter(self) -> None:
        client = self._client
        if client is None:
            trace = self._outage.follow(aiohttp.TraceConfig())
            client = web_client(self._options.bot_token, self._options.api_url, self._library, trace)
            self._client = client
        self._settle_in(client, await identify(client))

    def _settle_in(self, client: AsyncWebClient, us: SlackBot) -> _Session:
        if self._inside is None or self._inside.us != us:
            people = SlackPeople(client, us)
            self._inside = _Session(
                client=client,
                us=us,
                people=people,
                poster=SlackPoster(client, us, self._reached),
                history=SlackHistory(client, us, people, self._reached),
                indicators=SlackTypingIndicators(client, self._options.status),
                teller=SlackTeller(client),
                probe=SlackProbe(client, us, self._reached, self._timings, self.link),
            )
        return self._inside

    def _hello(self, sockets: int) -> None:
        """Mark the connection as up, so that messages missed meanwhile are looked for."""
        if self.link.connected:
            self.link.down("another socket")
        self.link.up()
        # a socket of ours that has just closed may still be counted
        if sockets > self.link.listeners + bool(self.link.reconnects):
            self.link.detail = f"{sockets} sockets share the events: does another Claudius run with these tokens?"
            log.warning("events are shared", extra={"sockets": sockets})

    async def _take(self, body: Mapping[str, Any]) -> BoltResponse:
        """Process one payload.

        The response acknowledges it. One that cannot be stored is not acknowledged, so it comes again.
        """
        task = asyncio.current_task()
        if self._accept is None or self._inside is None or self._over.is_set() or task is None:
            return BoltResponse(status=503)
        self._hearing.add(task)
        self.link.heard()
        self.link.up()  # whatever became of the socket's greeting
        try:
            event = body.get("event")
            if not isinstance(event, Mapping) or event.get("type") == HOME_OPENED:
                return await self._ask(body, self._inside, self._accept)
            self._inside.probe.heard(str(event.get("channel")))
            await self._hear(event, self._inside, self._accept)
        except OverBudget:
            log.info("over budget")
        except Exception as error:
            is_bug = not isinstance(error, (ClaudiusError, OSError))
            log.warning("not heard, not acknowledged", extra={"error": unquoted(error)}, exc_info=is_bug)
            raise
        finally:
            self._hearing.discard(task)
        return BoltResponse(status=200)

    async def _hear(self, event: Mapping[str, Any], inside: _Session, accept: Accept) -> None:
        match await afterwards(event, inside.us, inside.people.know) or interpret(event, inside.us):
            case Perception() as perception:
                await accept(perception)
                if perception.kind is Kind.EDIT and (call := await called_since(event, inside.us, inside.people.know)):
                    await accept(call)  # known if it called us already
            case SlackMessage() as said:
                people = await inside.people.know(said.user, MENTIONS.all_in(said.raw))
                self._reached.known(said.channel, said.ts)
                await accept(perceive(said, inside.us, people, await inside.people.place(said.channel)))
            case MembershipChange() as moved:
                people = await inside.people.know(moved.user)
                await accept(perceive_move(moved, inside.us, people.get(moved.user) or Who(moved.user)))
            case Goodbye(what):
                self._goodbye = what
                self._over.set()
            case Ignored(what, channel, ts):
                self.ignored[what] += 1
                if channel and ts:
                    self._reached.known(channel, ts)

    async def _ask(self, body: Mapping[str, Any], inside: _Session, accept: Accept) -> BoltResponse:
        """Store a command or a button press before it is acknowledged. It is answered later."""
        user = asked_by(body)
        who = (await inside.people.know(user)).get(user, Who(user, Standing.OUTSIDER))
        perception = commanded(body, inside.us, who, time())
        if perception is None:
            self.ignored[str(body.get("command") or body.get("type"))] += 1
        elif is_decision(body):
            await self._in_time(accept(perception))
        else:
            await accept(perception)
        return BoltResponse(status=200)

    async def _in_time(self, keeping: Awaitable[bool]) -> None:
        """Store a press; on a slow disk it is acknowledged before it is stored, as Slack waits three seconds only."""
        task = asyncio.ensure_future(keeping)
        done, _ = await asyncio.wait([task], timeout=self._timings.press_s)
        if done:
            task.result()
            return
        self._hearing.add(task)
        task.add_done_callback(self._pressed)

    def _pressed(self, task: asyncio.Task[Any]) -> None:
        self._hearing.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.warning("a press is lost: it shows nothing, and may be made again", extra={"error": unquoted(error)})

    async def fetch(self, file: Mapping[str, Any], most_bytes: int) -> Fetched:
        """Return a file of a message.

        Raises: ValueError if it is larger than `most_bytes`; OSError if it cannot be fetched.
        """
        if self._client is None:
            raise ConnectionError("Slack was not reached yet")
        return await fetch(self._client, file, most_bytes)

    async def transcribed(self, file: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a clip with its transcript, which Slack writes within some seconds. Raises: OSError."""
        if self._client is None:
            raise ConnectionError("Slack was not reached yet")
        return await transcribed(self._client, file, self._timings.transcribed_s)

    async def members(self, audience: str) -> Sequence[str] | None:
        """Return the person ids of a channel's members, or None if Slack does not tell.

        Raises: ConnectionError if it cannot be asked now, DeliveryLater while nobody is logged in.
        """
        return await self._in().people.members(audience)

    async def name_of(self, person: str) -> str:
        """Return the name that Slack shows of a person. Raises: DeliveryLater while nobody is logged in."""
        user = person.rpartition(":")[2]
        known = (await self._in().people.know(user)).get(user)
        return known.name if known else ""

    async def lacks(self, conversation: str) -> str:
        """Return what keeps us from hearing a channel, for the person who wants us there; empty = none known."""
        return await self._inside.people.lacks(Place.of(conversation).channel) if self._inside else ""

    async def close(self) -> None:
        """Stop listening: nothing new is acknowledged from now on, and no task, socket or session stays open.

        What the soul still has to say is posted through other sessions.
        """
        self._accept = None
        await ended(self._hearing, HEARING_S)
        self._over.set()
        await self._ended.wait()
        if self._inside:
            await self._inside.indicators.close()
            await self._inside.people.close()
        if self._speaking:
            await asyncio.wait(self._speaking, timeout=SPEAKING_S)
        if self._client and self._client.session:
            await self._client.session.close()
