"""Post utterances, look whether a part is already visible, and show that the soul thinks.

Each part is one message under its nonce. Discord clears the typing indicator after ten seconds or on our post.

Source: the chat design, section 2; the reliability design, section 6.
"""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import b32encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import discord
from msgspec.structs import replace

from claudius.adapters.caches import keep
from claudius.adapters.chat_adapter import Indicator, TypingIndicators, either
from claudius.adapters.discord.api_errors import (
    FAILURES,
    MISSING_ACCESS,
    THREAD_EXISTS,
    UNKNOWN_CHANNEL,
    UNKNOWN_MESSAGE,
    classify,
    classify_look,
    code_of,
)
from claudius.adapters.discord.gateway import Gateway
from claudius.adapters.discord.incoming import DIRECT, NETWORK, DiscordBot, KnownChannels, position, stamp
from claudius.adapters.discord.text import read, title
from claudius.errors import DeliveryLater, DeliveryRefused, DeliveryUnknown
from claudius.foreign import unquoted
from claudius.intent import Utterance
from claudius.perception import Perception, Place
from claudius.tool import Card

log = logging.getLogger(__name__)

NONCE_CHARS = 25
NONCE_HOLDS = timedelta(seconds=120)
"""How long Discord reliably remembers a nonce: within it, a second post with the same nonce is the first one."""
LOOKED_AT = 1000
"""How many messages since the answered one are searched."""
BEFORE = timedelta(minutes=5)
"""If an utterance answers no message, the search begins this long before it was decided, because clocks differ."""
ARCHIVED_AFTER_MINUTES: Final = 1440
OPENED_AGAIN_S = 1.0
NO_REPLY = "160002"
"""Discord's error code: a reply needs the permission to read the history."""


def _written(utterance: Utterance) -> str:
    """Return a part as it is posted: its receipts follow in small text, and arguments are no format. Pure."""
    if utterance.card:
        return _asked(utterance.card)
    return replace(utterance, receipts=tuple([f"-# {line}" for line in utterance.receipts])).whole


def _is(content: str, utterance: Utterance) -> bool:
    """Return whether a post is this part: a question may name those who decide it otherwise now. Pure."""
    written = _written(utterance).strip()
    return content.startswith(written.rpartition("\n")[0]) if utterance.card else content == written


def _asked(card: Card) -> str:
    """Return a question for consent, or what was decided. Pure."""
    args = f"```\n{card.args}\n```" if card.args else ""
    return "\n".join(filter(None, (card.question, args, f"-# {card.told}")))


def _buttons(card: Card) -> discord.ui.View:
    """Return the buttons of a question. The library keeps no view: a press is heard after any restart."""
    view = discord.ui.View(timeout=None)
    for verb, label in card.buttons:
        view.add_item(discord.ui.Button(label=label, custom_id=f"tool:{verb}:{card.call}"))
    view.stop()
    return view


PRESSED = re.compile(r"tool:(allow|talk|deny):([a-z2-7]{16}/\d{1,3})")
"""The id of a button of a question: the verb, and the call."""


class DiscordPoster:
    """Posts utterances through one client."""

    def __init__(
        self, client: Gateway, us: DiscordBot, places: KnownChannels, clock: Callable[[], datetime], call_s: float
    ) -> None:
        """Post through `client`. Facts about threads are kept in `places`. One call may take `call_s`."""
        self._client, self._us, self._places, self._clock = client, us, places, clock
        self._call_s = call_s

    async def speak(self, utterance: Utterance) -> str:
        """Post one part, opening its thread if there is none, and return the post's id.

        Where no thread can be opened, the part is posted in the channel as a reply to the message.

        Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown.
        """
        place = Place.of(utterance.conversation)
        if place.thread and place.thread not in self._places.closed:
            await self._open(place)
        is_beside = place.thread in self._places.closed
        target = place.channel if is_beside or not place.thread else place.thread
        try:
            message = await self._post(target, place, utterance, answers=place.thread if is_beside else "")
        except DeliveryRefused as error:
            if not is_beside or error.code != NO_REPLY:
                raise
            message = await self._post(target, place, utterance)
        keep(self._places.spoken, str(message.id), utterance.key)
        return str(message.id)

    async def react(self, utterance: Utterance) -> str:
        """Add a reaction to the latest message that an utterance answers, and return a receipt. Idempotent.

        Raises: as `speak`; DeliveryRefused also if it answers no message of Discord.
        """
        place, message = Place.of(utterance.conversation), _trigger(utterance, -1).lstrip("0")
        if not message:
            raise DeliveryRefused(str(UNKNOWN_MESSAGE))
        # a thread's first message is in the channel, not in the thread
        is_within = place.thread and place.thread != message and place.thread not in self._places.closed
        channel = self._client.get_partial_messageable(int(place.thread if is_within else place.channel))
        async with self._call():
            await channel.get_partial_message(int(message)).add_reaction(utterance.body)
        return f"{message}:{utterance.body}"

    async def take_back(self, conversation: str, receipt: str) -> None:
        """Delete the post with the id `receipt`. One that is already gone is no error. Raises: as `speak`."""
        await self._on(conversation, receipt, lambda post: post.delete())

    async def settles(self, conversation: str, receipt: str, card: Card) -> None:
        """Put the verdict in place of a question's buttons. A post that is gone is no error. Raises: as `speak`."""
        changed: dict[str, Any] = {"content": _asked(card), "allowed_mentions": discord.AllowedMentions.none()}
        await self._on(conversation, receipt, lambda post: post.edit(**changed, view=None))

    async def _on(
        self, conversation: str, receipt: str, act: Callable[[discord.PartialMessage], Awaitable[Any]]
    ) -> None:
        """Do something to a post, in the thread or, if none could be opened, in the channel."""
        place = Place.of(conversation)
        for target in filter(None, (place.thread, place.channel)):
            channel = self._client.get_partial_messageable(int(target), guild_id=_guild(place))
            try:
                async with asyncio.timeout(self._call_s):
                    await act(channel.get_partial_message(int(receipt)))
            except FAILURES as error:
                if code_of(error) not in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE):
                    raise classify(error) from error
            else:
                return

    async def find(self, utterance: Utterance, decided_at: datetime) -> str | None:
        """Look whether a part is visible and return its id, or None if it is not or posting again cannot duplicate it.

        Raises: DeliveryRefused if the history cannot be read, DeliveryLater or DeliveryUnknown if it cannot be read
        now.
        """
        place = Place.of(utterance.conversation)
        after = _trigger(utterance) or stamp(decided_at - BEFORE)
        targets = [place.thread, place.channel] if place.thread else [place.channel]
        if place.thread and int(place.thread) != int(after):
            targets = targets[:1]  # it answers a message in the thread, so the thread exists
        try:
            for target in targets:
                if found := await self._look_in(target, place, utterance, after):
                    return found
        except DeliveryRefused:
            if self._clock() - decided_at > NONCE_HOLDS:
                raise
        return None

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        """Limit the time of one call, and raise its failure as a delivery error."""
        try:
            async with asyncio.timeout(self._call_s):
                yield
        except FAILURES as error:
            raise classify(error) from error

    async def _post(self, target: str, place: Place, utterance: Utterance, *, answers: str = "") -> discord.Message:
        channel = self._client.get_partial_messageable(int(target), guild_id=_guild(place))
        options: dict[str, Any] = {}
        if answers:
            options["reference"] = discord.MessageReference(
                message_id=int(answers), channel_id=int(target), guild_id=_guild(place), fail_if_not_exists=False
            )
        if utterance.card:
            options["view"] = _buttons(utterance.card)
        async with self._call():
            return await channel.send(
                _written(utterance),
                nonce=nonce(utterance.key),
                allowed_mentions=discord.AllowedMentions.none(),
                suppress_embeds=True,
                **options,
            )

    async def _open(self, place: Place) -> None:
        """Ensure that a thread exists, or note that none can be opened. Raises: DeliveryRefused, DeliveryLater."""
        is_private = place.thread == place.channel  # and it existed before us
        if is_private or place.thread in self._places.opened or self._client.get_channel(int(place.thread)):
            return
        try:
            async with asyncio.timeout(self._call_s):
                name = self._places.titles.get(place.thread) or await self._title(place)
                await self._client.http.start_thread_with_message(
                    int(place.channel), int(place.thread), name=name, auto_archive_duration=ARCHIVED_AFTER_MINUTES
                )
        except FAILURES as error:
            code = code_of(error)
            # 10008: the thread was opened on no message of the channel, as in a forum, or that message is gone
            if code not in (THREAD_EXISTS, UNKNOWN_MESSAGE):
                self._stay_beside(place, error)
                return
        keep(self._places.opened, place.thread, None)

    def _stay_beside(self, place: Place, error: BaseException) -> None:
        found = classify(error)
        if not isinstance(found, DeliveryRefused):  # nothing was posted, so nothing is in doubt
            raise found if isinstance(found, DeliveryLater) else DeliveryLater(OPENED_AGAIN_S)
        if code_of(error) in (UNKNOWN_CHANNEL, MISSING_ACCESS):
            raise found from error
        log.info("no thread can be opened", extra={"channel": place.channel, "code": found.code})
        keep(self._places.closed, place.thread, None)

    async def _title(self, place: Place) -> str:
        """Return a thread name for a message that an earlier process heard."""
        channel = self._client.get_partial_messageable(int(place.channel), guild_id=_guild(place))
        try:
            message = await channel.fetch_message(int(place.thread))
        except (discord.Forbidden, discord.NotFound):
            return self._us.name
        names = {str(user.id): user.display_name for user in message.mentions}
        return title(read(message.content, self._us.user, names), self._us.name)

    async def _look_in(self, target: str, place: Place, utterance: Utterance, after: str) -> str | None:
        channel = self._client.get_partial_messageable(int(target), guild_id=_guild(place))
        ours: list[discord.Message] = []
        looked_at = 0
        try:
            async with asyncio.timeout(self._call_s):
                if not await self._client.may_read(place.workspace, place.channel):
                    raise DeliveryRefused("read_message_history")
                history = channel.history(limit=LOOKED_AT, after=discord.Object(int(after)), oldest_first=True)
                async for message in history:
                    looked_at += 1
                    if str(message.author.id) == self._us.user and message.type.value in (0, 19):
                        ours.append(message)
        except FAILURES as error:
            if code_of(error) == UNKNOWN_CHANNEL and target == place.thread:
                return None  # the thread was never opened
            raise classify_look(error) from error
        # Earlier parts were posted before this one, so none of them is this part, even if the text is the same.
        for message in ours[utterance.part :]:
            known = self._places.spoken.get(str(message.id), utterance.key)
            if known == utterance.key and _is(message.content.strip(), utterance):
                return str(message.id)
        if looked_at >= LOOKED_AT:
            raise DeliveryUnknown("too much was said since to look through")
        return None


def nonce(key: str) -> str:
    """Return the nonce under which Discord treats two posts of one part as the same post. Pure."""
    try:
        whole = UUID(key).bytes
    except ValueError:
        whole = key.encode()
    return b32encode(whole).decode()[:NONCE_CHARS]


def _trigger(utterance: Utterance, which: int = 0) -> str:
    """Return the position of a message that an utterance answers, by default the first, or "" if none. Pure."""
    network, _, message = (utterance.answers[which] if utterance.answers else "").partition(":")
    return position(message) if network == NETWORK and message.isdigit() else ""


def _guild(place: Place) -> int | None:
    return None if place.workspace == DIRECT else int(place.workspace)


REFRESH_S = 8.0


class DiscordTypingIndicators(TypingIndicators):
    """The typing indicators of one client."""

    def __init__(self, client: discord.Client, places: KnownChannels, *, is_shown: bool) -> None:
        """Show nothing at all unless `is_shown`."""
        super().__init__()
        self._client, self._places, self._is_shown = client, places, is_shown

    async def _indicate(self, perception: Perception, shown: Indicator) -> None:
        if not self._is_shown:
            return
        place, message = Place.of(perception.conversation), perception.key.removeprefix(f"{NETWORK}:")
        # The reply may open a thread that does not exist yet, so the indicator is shown where the message is.
        is_there = place.thread and (
            place.thread in self._places.opened
            or self._client.get_channel(int(place.thread))
            or (message.isdigit() and message != place.thread)  # it was said in the thread
        )
        target = int(place.thread if is_there else place.channel)
        try:
            await either(self._type(target), shown.over.wait(), "typing")  # none is sent after the reply
        except FAILURES as error:
            log.info("no typing indicator", extra={"channel": target, "error": unquoted(error)})

    async def _type(self, target: int) -> None:
        while True:
            await self._client.http.send_typing(target)
            await asyncio.sleep(REFRESH_S)
