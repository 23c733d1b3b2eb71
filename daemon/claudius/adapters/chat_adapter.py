"""The part of an adapter that is the same for every chat service: it posts while logged in, and may listen as well.

The Slack and the Discord adapter derive from `ChatAdapter` and add what differs: how a connection is made, watched and
closed, and how an event becomes a perception. Posting needs no connection, so listening may begin and end meanwhile.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import aiohttp
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.adapters.caches import Reached
from claudius.errors import DeliveryLater
from claudius.foreign import status_words
from claudius.intent import ShownThought, Utterance
from claudius.perception import Perception
from claudius.proxies import named
from claudius.runtime.adapter import Accept, Gap, Link, PlainNetwork, Swept
from claudius.tool import Card

HEARING_S, SPEAKING_S = 2.0, 5.0
"""At shutdown, how long a message being received may take to become durable, and a running post to be answered."""
CLEARED_S = 2.0
"""How long clearing the last indicators may take at shutdown."""


class Timings(Struct, frozen=True):
    """How long each thing may take, in seconds."""

    tick_s: float = 1.0
    deaf_s: float = 60.0
    """After this long without an event, the history is checked for a missed one."""
    spoke_s: float = 3600.0
    """That check covers only channels where somebody spoke within this time."""
    arrives_s: float = 3.0
    """How much later than in the history a message may reach us."""
    again_s: float = 5.0
    """The pause before trying again after the network could not be reached or a message could not be stored."""


class NotConnected(Exception):
    """The network cannot be reached, does not answer, or allows no session now."""

    def __init__(self, detail: str, after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.after_s = after_s


class _Poster(Protocol):
    async def speak(self, utterance: Utterance) -> str: ...
    async def react(self, utterance: Utterance) -> str: ...
    async def find(self, utterance: Utterance, decided_at: datetime) -> str | None: ...
    async def take_back(self, conversation: str, receipt: str) -> None: ...
    async def settles(self, conversation: str, receipt: str, card: Card) -> None: ...


class _History(Protocol):
    def catch_up(self, gap: Gap) -> AsyncIterator[Swept]: ...
    async def before(self, perception: Perception, most: int) -> Sequence[Perception]: ...


class _Teller(Protocol):
    async def answer(self, perception: Perception, text: str) -> None: ...
    async def tell(self, person: str, text: str) -> None: ...
    async def show_thought(self, thought: ShownThought) -> None: ...


class ChatSession(Struct, frozen=True):
    """The parts of an adapter that exist while the network knows us."""

    poster: _Poster
    history: _History
    indicators: TypingIndicators
    teller: _Teller


S = TypeVar("S", bound=ChatSession)


class ChatAdapter(PlainNetwork, ABC, Generic[S]):
    """One bot on a chat service, which posts complete replies: a post that grows by edits has more ways to fail."""

    logs_in = True

    def __init__(self, again_s: float) -> None:
        """Prepare to listen. While nobody is logged in, a caller is told to try again after `again_s`."""
        self.link = Link()
        self._outage = Outage(self.name, self.link)
        self.ignored: Counter[str] = Counter()
        """Events that were ignored, counted by kind."""
        self._again_s = again_s
        self._accept: Accept | None = None
        self._inside: S | None = None
        self._reached = Reached()
        self._hearing: set[asyncio.Task[Any]] = set()
        self._speaking: set[asyncio.Task[Any]] = set()
        self._entering = asyncio.Lock()
        self._over, self._ended = asyncio.Event(), asyncio.Event()
        self._ended.set()

    async def log_in(self) -> None:
        """Become able to speak; try again while the network cannot be reached. Raises: AdapterRefused."""
        while not self._over.is_set():
            try:
                await self._known()
            except NotConnected as error:
                if self._ended.is_set():
                    self.link.down(self._unreached(error))
                await until(self._over, self._again_s)
            else:
                self._only_speak()
                return

    async def listen(self, accept: Accept) -> None:
        """Listen until closed, with a new connection after each one that ends.

        If it is cancelled, nothing more is accepted and the connection is closed; it may be called again then.

        Raises: AdapterRefused if the network refuses us permanently.
        """
        self._accept = accept
        self._ended.clear()
        self.link.listen()
        listening = asyncio.create_task(self._rounds(), name=f"{self.name} listens")
        try:
            await asyncio.wait((listening,))
        finally:
            await surely(self._end(listening), f"{self.name} listens no more")
        listening.result()

    async def _rounds(self) -> None:
        while not self._over.is_set():
            await either(self._listen_once(), self._over.wait(), self.name)

    async def _end(self, listening: asyncio.Task[None]) -> None:
        self._accept = None
        if not listening.done():
            await ended(self._hearing, HEARING_S)
            listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        self._ended.set()
        if listening.cancelled():
            self._only_speak()

    def _only_speak(self) -> None:
        if self._inside and self._ended.is_set():
            self.link.speaks()
        self.link.listens = not self._ended.is_set()

    def _unreached(self, error: NotConnected) -> str:
        return f"{self.name.title()} cannot be reached ({error}); it is tried again"

    async def _known(self) -> S:
        async with self._entering:
            await self._enter()
        return self._in()

    @abstractmethod
    async def _enter(self) -> None:
        """Learn who we are, so that we can speak. Raises: AdapterRefused, NotConnected."""

    @abstractmethod
    async def _listen_once(self) -> None:
        """Listen over one connection, from its begin to its end."""

    async def speak(self, utterance: Utterance) -> str:
        """Post one part and return the network's id of the post.

        Raises: DeliveryRefused, DeliveryUnknown, DeliveryLater (also while nobody is logged in).
        """
        speaking = asyncio.ensure_future(self._in().poster.speak(utterance))
        self._speaking.add(speaking)
        speaking.add_done_callback(self._speaking.discard)
        return await speaking

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:
        """Return the id of a part that is visible already, or None if it is not. Raises: as `speak`."""
        return await self._in().poster.find(utterance, decided_at)

    async def react(self, utterance: Utterance) -> str:
        """Add a reaction to the message that an utterance answers, and return a receipt. Raises: as `speak`."""
        return await self._in().poster.react(utterance)

    async def working(self, perception: Perception, *, on: bool) -> None:
        """Show or hide the typing indicator. The network is called in a separate task."""
        if self._inside and not self._over.is_set():
            (self._inside.indicators.show if on else self._inside.indicators.hide)(perception)

    async def hold(self, perception: Perception, line: str) -> None:
        """Show a line in the typing indicator, saying that this takes a moment. As `working`."""
        if self._inside and not self._over.is_set():
            self._inside.indicators.hold(perception, line)

    async def take_back(self, conversation: str, receipt: str) -> None:
        """Delete one of our posts; a missing one is no error. Raises: as `speak`."""
        await self._in().poster.take_back(conversation, receipt)

    async def settles(self, conversation: str, receipt: str, card: Card) -> None:
        """Put the verdict in place of a question's buttons; a missing post is no error. Raises: as `speak`."""
        await self._in().poster.settles(conversation, receipt, card)

    async def answer(self, perception: Perception, text: str) -> None:
        """Answer a command, where possible so that only its giver sees it. Raises: DeliveryError, OSError."""
        await self._in().teller.answer(perception, text)

    async def tell(self, person: str, text: str) -> None:
        """Send one line to a person in a direct message. Raises: DeliveryError."""
        await self._in().teller.tell(person, text)

    async def show_thought(self, thought: ShownThought) -> None:
        """Post a thought, folded or in small print, below what was said. Raises: DeliveryError."""
        await self._in().teller.show_thought(thought)

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Read what may have been missed. Raises: DeliveryLater, DeliveryUnknown, TimeoutError."""
        async for swept in self._in().history.catch_up(gap):
            yield swept

    async def context(self, perception: Perception, most: int) -> Sequence[Perception]:
        """Return the latest `most` messages before a perception, oldest first. Raises: DeliveryError, TimeoutError."""
        found = await self._in().history.before(perception, most)
        return [replace(one, conversation=perception.conversation) for one in found]

    def _in(self) -> S:
        if self._inside is None:
            raise DeliveryLater(self._again_s)
        return self._inside


class Indicator(Struct, eq=False):
    """The typing indicator of one conversation."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    status: str = ""
    """What it says, where the network shows words."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Do a part of it, in a task that nobody waits for."""
        task = asyncio.create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class TypingIndicators(ABC):
    """The typing indicators of one network, one per conversation."""

    def __init__(self) -> None:
        self._shown: dict[str, Indicator] = {}

    def show(self, perception: Perception) -> None:
        """Show the indicator in a perception's conversation until `hide`."""
        self.hide(perception)
        conversation, shown = perception.conversation, Indicator()
        before = self._shown.get(conversation)
        self._shown[conversation] = shown
        shown.begin(self._begin(perception, shown, before), f"typing indicator {conversation}")

    def hold(self, perception: Perception, line: str) -> None:  # noqa: B027 - a network may show no words there
        """Show a line in it, saying that this takes a moment."""

    def hide(self, perception: Perception) -> None:
        """Stop showing the indicator in a perception's conversation. Its task then clears it."""
        if shown := self._shown.get(perception.conversation):
            shown.over.set()

    async def close(self) -> None:
        """Clear every indicator, and cancel the tasks that do not finish in time."""
        for shown in self._shown.values():
            shown.over.set()
        await ended({task for shown in self._shown.values() for task in shown.tasks}, CLEARED_S)

    async def _begin(self, perception: Perception, shown: Indicator, before: Indicator | None) -> None:
        try:
            await asyncio.sleep(0)  # let the turn itself start first
            if before and before.tasks:
                await asyncio.wait(before.tasks)
            if not shown.over.is_set():
                await self._indicate(perception, shown)
        finally:
            if self._shown.get(perception.conversation) is shown:
                del self._shown[perception.conversation]

    @abstractmethod
    async def _indicate(self, perception: Perception, shown: Indicator) -> None:
        """Show it until it is over, then clear it. Never raises."""


async def until(event: asyncio.Event, seconds: float) -> None:
    """Return when the event is set, or after that many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


CANCEL_AGAIN_S = 0.5
"""After this long, a task that did not end when it was cancelled is cancelled again."""


async def either(one: Coroutine[Any, Any, object], other: Coroutine[Any, Any, object], name: str) -> None:
    """Run two coroutines until one of them ends, and cancel the other. Raises what the one that ended raises."""
    doing = [asyncio.create_task(work, name=name) for work in (one, other)]
    try:
        done, _ = await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
    finally:
        while left := [task for task in doing if not task.done()]:
            for task in left:
                task.cancel()
            # `asyncio.wait_for` on Python 3.11 loses a cancellation that comes just as what it waits for ends, and
            # discord.py opens each socket by it: that task would go on for ever.
            await asyncio.wait(left, timeout=CANCEL_AGAIN_S)
    for task in done:
        task.result()


async def surely(work: Coroutine[None, None, None], name: str) -> None:
    """Run work to its end even if the caller is cancelled meanwhile."""
    doing = asyncio.create_task(work, name=name)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise


async def ended(tasks: set[asyncio.Task[Any]], within_s: float) -> None:
    """Wait for tasks to end, and cancel those that do not end in time."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=within_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


REFUSED = 407
"""The status with which a proxy refuses us; no server behind it does."""


class Outage:
    """Follows the requests of an adapter, and reports why the latest did not arrive."""

    def __init__(self, name: str, link: Link) -> None:
        self._name, self._link, self._why = name, link, ""
        link.reason = self.line

    def line(self) -> str:
        """Return the reason in words for `claudius status`; empty if the way is open, as far as is known."""
        return f"{self._name.title()} cannot be reached ({self._why}); it is tried again" if self._why else ""

    def follow(self, trace: aiohttp.TraceConfig) -> aiohttp.TraceConfig:
        """Follow the requests of the session that is made with this configuration."""
        trace.on_request_exception.append(self._failed)
        trace.on_request_end.append(self._ended)
        return trace

    async def _failed(self, _: object, __: object, failed: aiohttp.TraceRequestExceptionParams) -> None:
        self._note(_why(failed.exception, str(failed.url)))

    async def _ended(self, _: object, __: object, ended: aiohttp.TraceRequestEndParams) -> None:
        is_refused = ended.response.status == REFUSED
        self._note(f"{named(str(ended.url))} refuses us: {status_words(REFUSED)}" if is_refused else "")

    def _note(self, why: str) -> None:
        self._why = why
        if why and not self._link.connected:
            self._link.down(why)


def _why(error: BaseException, url: str) -> str:
    match error:
        case aiohttp.ClientProxyConnectionError():
            return f"{named(url)} does not answer"
        case aiohttp.ClientHttpProxyError():
            return f"{named(url)} refuses us: {status_words(error.status)}"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted: SSL_CERT_FILE names an authority of your own"
    return ""


def is_refused_by_proxy(error: BaseException) -> bool:
    """Return whether a proxy refused a request, so that nothing arrived. Pure."""
    response: Any = getattr(error, "response", None)
    return isinstance(error, aiohttp.ClientHttpProxyError) or REFUSED in (
        getattr(error, "status", 0),
        getattr(response, "status_code", 0),
    )
