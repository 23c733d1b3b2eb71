"""Connect Slack to the soul: receive events in Socket Mode through one Bolt middleware and post through the Web API."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from time import time
from typing import Any

from msgspec import Struct
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.heard_marks import Reached
from claudius.adapters.no_streaming import Whole
from claudius.adapters.slack.commands import HOME_OPENED, Answers, asked_by, commanded
from claudius.adapters.slack.history import History
from claudius.adapters.slack.incoming import (
    NETWORK,
    Goodbye,
    Moved,
    Nothing,
    Said,
    Us,
    Who,
    interpret,
    perceive,
    perceive_move,
)
from claudius.adapters.slack.liveness import Patience, Probe, watch
from claudius.adapters.slack.message_changes import afterwards
from claudius.adapters.slack.options import Options
from claudius.adapters.slack.outgoing import Voice
from claudius.adapters.slack.people import Channels, People
from claudius.adapters.slack.socket import BOT_TOKEN, NotNow, Socket, bolt, enter
from claudius.adapters.slack.text import fetch, named_in
from claudius.adapters.slack.typing_indicator import Signs
from claudius.adapters.slack.web_api import web_client
from claudius.adapters.waiting import ended, surely, unless, until
from claudius.errors import AdapterRefused, ClaudiusError, DeliveryLater, OverBudget
from claudius.intent import Utterance
from claudius.perception import Perception, Place, Standing
from claudius.runtime.adapter import Accept, Fetched, Gap, Link, Swept

log = logging.getLogger("claudius.slack")

POST_CHARS = 3000
APPEARS_S = 5.0
HEARING_S, SPEAKING_S = 2.0, 5.0
"""At shutdown, how long an event being received may take to become durable, and a running post to be answered."""


class _Inside(Struct, frozen=True):
    """The parts that exist once Slack has told who we are."""

    us: Us
    people: People
    voice: Voice
    history: History
    signs: Signs
    probe: Probe
    answers: Answers
    channels: Channels


class SlackAdapter(Whole):
    """One bot in one workspace."""

    name = NETWORK
    post_chars: int | None = POST_CHARS
    appears_s = APPEARS_S

    def __init__(self, options: Options, patience: Patience | None = None) -> None:
        """Prepare to listen with the owner's tokens."""
        self.link = Link()
        self.ignored: Counter[str] = Counter()
        """Events that were acknowledged and ignored, counted by kind."""
        self._options, self._patience = options, patience or Patience()
        self._library = logging.getLogger("claudius.slack.library")
        self._library.setLevel(logging.CRITICAL)  # it logs each failed attempt with a traceback and its ticket
        self._accept: Accept | None = None
        self._client: AsyncWebClient | None = None
        self._inside: _Inside | None = None
        self._reached = Reached()
        self._hearing: set[asyncio.Task[Any]] = set()
        self._speaking: set[asyncio.Task[Any]] = set()
        self._over, self._ended = asyncio.Event(), asyncio.Event()
        self._ended.set()
        self._goodbye = ""

    async def listen(self, accept: Accept) -> None:
        """Listen until closed. Raises: AdapterRefused if a token is refused or revoked, or the app is removed."""
        self._accept = accept
        self._ended.clear()
        client = self._client or web_client(self._options.bot_token, self._options.api_url, self._library)
        self._client = client
        try:
            while not self._over.is_set():
                await unless(self._over, self._listen_once(client), "slack")
            if self._goodbye:
                raise AdapterRefused(
                    NETWORK, BOT_TOKEN, self._goodbye, "install the app again and put its new tokens into .env"
                )
        finally:
            self._ended.set()

    async def _listen_once(self, client: AsyncWebClient) -> None:
        """Run one client of Socket Mode from login to close."""
        try:
            let_in = await enter(client, self._options.app_token)
        except NotNow as error:
            self.link.down(f"Slack cannot be reached ({error}); it is tried again")
            await until(self._over, self._patience.again_s)
            return
        inside = self._settle_in(client, let_in.us)
        app = bolt(client, self._take, self._library)
        socket = Socket(app, self._options.app_token, self._patience.ping_s, self._library)
        filling = asyncio.create_task(inside.people.fill(), name="slack members")
        try:
            socket.open(let_in.ticket, self._hello)
            await watch(socket, self.link, self._patience, inside.probe)
        finally:
            filling.cancel()
            await surely(socket.close(), "slack closes")

    def _settle_in(self, client: AsyncWebClient, us: Us) -> _Inside:
        if self._inside is None or self._inside.us != us:
            people = People(client, us)
            self._inside = _Inside(
                us=us,
                people=people,
                voice=Voice(client, us, self._reached),
                history=History(client, us, people, self._reached),
                signs=Signs(client, self._options.status),
                probe=Probe(client, us, self._reached, self._patience),
                answers=Answers(client, us),
                channels=Channels(client, us),
            )
        return self._inside

    def _hello(self, sockets: int) -> None:
        """Mark the connection as up, so that messages missed meanwhile are looked for."""
        if self.link.connected:
            self.link.down("another socket")
        self.link.up()
        # a socket of ours that has just closed may still be counted
        if sockets > (2 if self.link.reconnects else 1):
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
            log.warning("not heard, not acknowledged", extra={"error": repr(error)}, exc_info=is_bug)
            raise
        finally:
            self._hearing.discard(task)
        return BoltResponse(status=200)

    async def _hear(self, event: Mapping[str, Any], inside: _Inside, accept: Accept) -> None:
        match await afterwards(event, inside.us, inside.people) or interpret(event, inside.us):
            case Perception() as perception:
                await accept(perception)
            case Said() as said:
                people = await inside.people.know(said.user, named_in(said.raw))
                self._reached.known(said.channel, said.ts)
                await accept(perceive(said, inside.us, people))
            case Moved() as moved:
                people = await inside.people.know(moved.user)
                await accept(perceive_move(moved, inside.us, people.get(moved.user) or Who(moved.user)))
            case Goodbye(what):
                self._goodbye = what
                self._over.set()
            case Nothing(what, channel, ts):
                self.ignored[what] += 1
                if channel and ts:
                    self._reached.known(channel, ts)

    async def _ask(self, body: Mapping[str, Any], inside: _Inside, accept: Accept) -> BoltResponse:
        """Store a command or a button press before it is acknowledged. It is answered later."""
        user = asked_by(body)
        who = (await inside.people.know(user)).get(user, Who(user, Standing.OUTSIDER))
        perception = commanded(body, inside.us, who, time())
        if perception is None:
            self.ignored[str(body.get("command") or body.get("type"))] += 1
        else:
            await accept(perception)
        return BoltResponse(status=200)

    async def answer(self, perception: Perception, text: str) -> None:
        """Answer a command so that, if possible, only the person who gave it sees the answer."""
        await self._in().answers.answer(perception, text)

    async def speak(self, utterance: Utterance) -> str:
        """Post one part and return its ts. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown."""
        speaking = asyncio.ensure_future(self._in().voice.speak(utterance))
        self._speaking.add(speaking)
        speaking.add_done_callback(self._speaking.discard)
        return await speaking

    async def take_back(self, conversation: str, receipt: str) -> None:
        """Delete one of our posts. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown."""
        await self._in().voice.take_back(Place.of(conversation).channel, receipt)

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:
        """Look whether a part is visible. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown."""
        return await self._in().voice.find(utterance, decided_at)

    async def hold(self, perception: Perception, line: str) -> None:
        """Show in the typing indicator that this takes a moment. Slack is called in the background."""
        if self._inside and not self._over.is_set():
            self._inside.signs.hold(perception, line)

    async def working(self, perception: Perception, *, on: bool) -> None:
        """Show or clear the typing indicator. Slack is called in the background."""
        if self._inside and not self._over.is_set():
            (self._inside.signs.show if on else self._inside.signs.hide)(perception)

    async def react(self, utterance: Utterance) -> str:
        """Add a reaction to the message that an utterance answers.

        Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown.
        """
        return await self._in().voice.react(utterance)

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Read what may have been missed. Raises: DeliveryLater, DeliveryUnknown, TimeoutError."""
        async for swept in self._in().history.catch_up(gap):
            yield swept

    async def context(self, perception: Perception, most: int) -> Sequence[Perception]:
        """Return the earlier messages of a thread. Raises: DeliveryError, TimeoutError."""
        return await self._in().history.before(perception, most)

    async def fetch(self, file: Mapping[str, Any], most_bytes: int) -> Fetched:
        """Return a file. Raises: ValueError, OSError."""
        if self._client is None:
            raise ConnectionError("Slack was not reached yet")
        return await fetch(self._client, file, most_bytes)

    async def members(self, audience: str) -> Sequence[str] | None:
        """Return who is in a channel now, or None if Slack does not tell.

        Raises: ConnectionError if it cannot be asked now.
        """
        return await self._in().channels.members(audience)

    async def lacks(self, conversation: str) -> str:
        """Return what keeps us from hearing a channel, or "" if Slack reports nothing. Never raises."""
        return await self._inside.channels.lacks(Place.of(conversation).channel) if self._inside else ""

    async def close(self) -> None:
        """Stop listening: nothing new is acknowledged from now on, and no task, socket or session stays open.

        What the soul still has to say is posted through other sessions.
        """
        self._accept = None
        await ended(self._hearing, HEARING_S)
        self._over.set()
        await self._ended.wait()
        if self._inside:
            await self._inside.signs.close()
            await self._inside.people.close()
        if self._speaking:
            await asyncio.wait(self._speaking, timeout=SPEAKING_S)
        if self._client and self._client.session:
            await self._client.session.close()

    def _in(self) -> _Inside:
        if self._inside is None:
            raise DeliveryLater(self._patience.again_s)
        return self._inside
