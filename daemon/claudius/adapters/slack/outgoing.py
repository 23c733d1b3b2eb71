"""Post utterances, look whether a part is already visible, and show that the soul thinks.

Each part is one message under its key. The typing indicator is a status in a thread, or an eyes reaction in a plain DM.
It never shows a word of the reply. Slack removes a status after two minutes, so it is renewed earlier.

Source: the chat design, sections 1.4 and 1.5; the reliability design, section 6.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from html import escape
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.caches import Reached
from claudius.adapters.chat_adapter import Indicator, TypingIndicators, until
from claudius.adapters.slack.incoming import NETWORK, SlackBot, is_ours, stamp
from claudius.adapters.slack.text import mrkdwn, read
from claudius.adapters.slack.web_api import (
    FAILURES,
    NOT_UNDERSTOOD,
    SHUT_OUT,
    SHUT_OUT_S,
    classify,
    classify_look,
    code_of,
    next_cursor,
)
from claudius.errors import DeliveryError, DeliveryLater, DeliveryRefused, DeliveryUnknown
from claudius.foreign import unquoted
from claudius.intent import Utterance
from claudius.perception import Perception, Place
from claudius.tool import Card

log = logging.getLogger(__name__)

THREAD_GONE = "thread_gone"
"""Our own code: if the thread's first message was deleted, Slack posts into the channel and reports no error."""
EVENT_TYPE = "claudius_turn"
SIGNS = {
    "🙂": "slightly_smiling_face",
    "🎉": "tada",
    "❤️": "heart",
    "😄": "smile",
    "👍": "+1",
    "⏸️": "double_vertical_bar",
}
"""Slack's names for the emoji with which the soul reacts to messages."""
NO_MESSAGE, ALREADY, MISSING_SCOPE = "message_not_found", "already_reacted", "missing_scope"
BUTTON = "tool_"
"""How the actions of a question's buttons begin; the verb follows."""
ARGS_CHARS = 2000
"""The most of arguments in one section, which holds 3,000 characters when they are escaped."""
LOOKED_AT = 200
"""Messages per page of history."""
MOST_PAGES = 10
BEFORE = timedelta(minutes=5)
"""If an utterance answers no message, the search begins this long before it was decided, because clocks differ."""


class SlackPoster:
    """Posts utterances in one workspace."""

    def __init__(self, client: AsyncWebClient, us: SlackBot, reached: Reached) -> None:
        """Post through `client`, whose retry handlers never send anything twice. Each post is noted in `reached`."""
        self._client, self._us, self._reached = client, us, reached
        self._knows_markdown = True

    async def speak(self, utterance: Utterance) -> str:
        """Post one part and return the post's `ts`, or "" if Slack names none.

        A server that does not know `markdown_text` gets the same text as mrkdwn.

        Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown.
        """
        place = Place.of(utterance.conversation)
        post: dict[str, Any] = {
            "channel": place.channel,
            "metadata": {
                "event_type": EVENT_TYPE,
                "event_payload": {"key": utterance.key, "turn": utterance.turn, "part": utterance.part},
            },
            "unfurl_links": False,
            "unfurl_media": False,
            "link_names": False,
        }
        if place.thread:
            post["thread_ts"] = place.thread
        plain = {
            "text": "\n\n".join(
                filter(None, (mrkdwn(utterance.body), escape("\n".join(utterance.receipts), quote=False)))
            )
        }
        if not self._knows_markdown:
            return await self._post(post, **plain)
        try:
            return await self._post(post, **_formed(utterance, plain["text"]))
        except _NotUnderstood as error:
            log.warning("this Slack does not know markdown", extra={"error": unquoted(error)})
            ts = await self._post(post, **plain)
            self._knows_markdown = False
            return ts

    async def react(self, utterance: Utterance) -> str:
        """Add a reaction to the latest message that an utterance answers, and return a receipt. Idempotent.

        Raises: as `speak`; DeliveryRefused also if it answers no message of Slack or the emoji is not in SIGNS.
        """
        ts, sign = _trigger_ts(utterance, -1), SIGNS.get(utterance.body)
        if not (ts and sign):
            raise DeliveryRefused(NO_MESSAGE)
        place = Place.of(utterance.conversation)
        try:
            await self._client.reactions_add(channel=place.channel, timestamp=ts, name=sign)
        except FAILURES as error:
            if code_of(error) != ALREADY:
                raise classify(error) from error
        return f"{ts}:{sign}"

    async def take_back(self, conversation: str, ts: str) -> None:
        """Delete the post at `ts`. One that is already gone is no error. Raises: as `speak`."""
        await self._change("chat_delete", Place.of(conversation).channel, ts)

    async def settles(self, conversation: str, ts: str, card: Card) -> None:
        """Put the verdict in place of a question's buttons. A post that is gone is no error. Raises: as `speak`."""
        words = {"text": escape(card.text, quote=False), "blocks": card_blocks(card)}
        await self._change("chat_update", Place.of(conversation).channel, ts, **words)

    async def _change(self, method: str, channel: str, ts: str, **more: Any) -> None:
        try:
            await getattr(self._client, method)(channel=channel, ts=ts, **more)
        except FAILURES as error:
            if code_of(error) != NO_MESSAGE:
                raise classify(error) from error

    async def find(self, utterance: Utterance, decided_at: datetime) -> str | None:
        """Look whether a part is visible, and return its `ts`, or None if it is not.

        Raises: DeliveryRefused if the history may not be read; DeliveryLater, DeliveryUnknown if it cannot be read now.
        """
        place = Place.of(utterance.conversation)
        span: dict[str, Any] = {
            "channel": place.channel,
            "oldest": _trigger_ts(utterance) or stamp(decided_at - BEFORE),
            "inclusive": True,
            "include_all_metadata": True,
            "limit": LOOKED_AT,
        }
        try:
            for _ in range(MOST_PAGES):
                if place.thread:
                    page = await self._client.conversations_replies(ts=place.thread, **span)
                else:
                    page = await self._client.conversations_history(**span)
                for message in page.get("messages") or ():
                    if is_ours(message, self._us) and _is(message, utterance):
                        return str(message["ts"])
                span["cursor"] = next_cursor(page)
                if not span["cursor"]:
                    return None
        except FAILURES as error:
            raise classify_look(error) from error
        raise DeliveryUnknown("too much was said since to look through")

    async def _post(self, post: Mapping[str, Any], **text: Any) -> str:
        try:
            answer = await self._client.chat_postMessage(**post, **text)
        except SlackApiError as error:
            code = code_of(error)
            if text.keys() & {"markdown_text", "blocks"} and code in NOT_UNDERSTOOD:
                raise _NotUnderstood(code) from error
            if code == MISSING_SCOPE or code in SHUT_OUT:
                log.warning("the app may not speak", extra={"channel": post["channel"], "error": code})
            if code == MISSING_SCOPE:  # the message waits until the app is reinstalled
                raise DeliveryLater(SHUT_OUT_S) from error
            raise classify(error) from error
        except FAILURES as error:
            raise classify(error) from error
        ts = answer.get("ts") or (answer.get("message") or {}).get("ts")
        if not isinstance(ts, str):
            log.warning("a post has no ts", extra={"channel": post["channel"]})
            return ""  # it was posted, so posting again would duplicate it
        channel, thread = str(post["channel"]), post.get("thread_ts")
        if thread and not (answer.get("message") or {}).get("thread_ts") and await self._is_gone(channel, thread):
            try:
                await self._change("chat_delete", channel, ts)
            except DeliveryError as error:
                log.warning("a post is outside its thread", extra={"channel": channel, "error": unquoted(error)})
            raise DeliveryRefused(THREAD_GONE)
        self._reached.known(channel, ts)
        return ts

    async def _is_gone(self, channel: str, thread: str) -> bool:
        """Return whether Slack knows no such thread. A post's answer without the thread is not enough proof."""
        try:
            await self._client.conversations_replies(channel=channel, ts=thread, limit=1)
        except FAILURES as error:
            return code_of(error) == "thread_not_found"
        return False


class _NotUnderstood(Exception):
    """The server does not know an argument, and has posted nothing."""


def card_blocks(card: Card) -> list[dict[str, Any]]:
    """Return a question for consent: what is asked, with which arguments, and its buttons or the verdict. Pure.

    Everything stands as it is: nothing in it is a mention, a link or a format.
    """
    args = [card.args[at : at + ARGS_CHARS] for at in range(0, len(card.args), ARGS_CHARS)]
    shown = [card.question, *args]
    blocks: list[dict[str, Any]] = [{"type": "section", "text": _plain(one)} for one in shown]
    if not card.verdict:
        buttons = [
            {"type": "button", "action_id": f"{BUTTON}{verb}", "value": card.call, "text": _plain(label)}
            for verb, label in card.buttons
        ]
        blocks.append({"type": "actions", "elements": buttons})
    return [*blocks, {"type": "context", "elements": [_plain(card.told)]}]


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": escape(text, quote=False), "emoji": False}


def _formed(utterance: Utterance, text: str) -> dict[str, Any]:
    """Return the arguments that say a part; `text` stands for it where no blocks are shown. Pure.

    Slack takes no blocks beside `markdown_text`, so where a context block follows, the words are a block as well.
    """
    if utterance.card:
        return {"text": text, "blocks": card_blocks(utterance.card)}
    if not utterance.receipts:
        return {"markdown_text": utterance.body}
    lines = [{"type": "plain_text", "text": line, "emoji": False} for line in utterance.receipts]
    words = {"type": "markdown", "text": utterance.body}
    return {"text": text, "blocks": [words, {"type": "context", "elements": lines}]}


def _trigger_ts(utterance: Utterance, which: int = 0) -> str:
    """Return the ts of a message that an utterance answers, by default the first, or "" if none. Pure."""
    network, _, rest = (utterance.answers[which] if utterance.answers else "").partition(":")
    parts = rest.split(":")
    return parts[-1] if network == NETWORK and len(parts) == 3 else ""


def _is(message: Mapping[str, Any], utterance: Utterance) -> bool:
    """Return whether a post of ours is this part: by its key, or by its words if the server shows no keys."""
    if "metadata" in message:
        found = message["metadata"] or {}
        key = str((found.get("event_payload") or {}).get("key", ""))
        return (key if found.get("event_type") == EVENT_TYPE else "") == utterance.key
    shown, said = read(str(message.get("text") or ""), "", {}).text, utterance.whole
    words = [sorted(re.findall(r"\w+", text)) for text in (shown, said)]
    return words[0] == words[1] if words[1] else shown.strip() == said.strip()


REFRESH_S = 90.0
EYES = "eyes"


class SlackTypingIndicators(TypingIndicators):
    """The typing indicators of one workspace: in a thread its status, in a plain direct message a reaction."""

    def __init__(self, client: AsyncWebClient, status: str) -> None:
        """Show `status`. Empty = no indicator at all."""
        super().__init__()
        self._client, self._status, self._refresh_s = client, status, REFRESH_S

    def hold(self, perception: Perception, line: str) -> None:
        """Show a line in the status, saying that this takes a moment. A reaction as indicator cannot show it."""
        shown, place = self._shown.get(perception.conversation), Place.of(perception.conversation)
        if shown and self._status and place.thread and not shown.over.is_set():
            shown.status = line
            shown.begin(self._set(place, line), f"hold {perception.conversation}")

    async def _indicate(self, perception: Perception, shown: Indicator) -> None:
        place = Place.of(perception.conversation)
        if self._status and place.thread:
            shown.status = shown.status or self._status
            while not shown.over.is_set():
                await self._set(place, shown.status)
                await until(shown.over, self._refresh_s)
            if holding := shown.tasks - {asyncio.current_task()}:
                await asyncio.wait(holding)
            await self._set(place, "")
        elif self._status and perception.audience.startswith("private:"):
            where = {"channel": place.channel, "timestamp": perception.position, "name": EYES}
            await self._call("reactions_add", **where)
            await shown.over.wait()
            await self._call("reactions_remove", **where)

    async def _set(self, place: Place, status: str) -> None:
        where = {"channel_id": place.channel, "thread_ts": place.thread}
        await self._call("assistant_threads_setStatus", **where, status=status)

    async def _call(self, method: str, **arguments: str) -> None:
        try:
            await getattr(self._client, method)(**arguments)
        except FAILURES as error:
            log.info("no typing indicator", extra={"method": method, "error": code_of(error) or unquoted(error)})
