"""Handle Slack's slash commands, the buttons of the App Home, and the App Home itself.

They become perceptions like everything else, and the answer goes to one person.

Source: the chat design, section 1.8.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.slack.incoming import NETWORK, SlackBot, Who
from claudius.adapters.slack.outgoing import BUTTON
from claudius.adapters.slack.text import mrkdwn, object_of, read, text_of
from claudius.adapters.slack.web_api import FAILURES, classify, classify_read
from claudius.cognition.output.splitting import in_posts
from claudius.errors import DeliveryRefused
from claudius.intent import ShownThought
from claudius.perception import CommandExtra, Kind, Perception, Place, Standing, given_in, private
from claudius.prompt import valid
from claudius.proxies import proxy_of
from claudius.runtime.commands.words import apart, by_ids, decision

log = logging.getLogger(__name__)

_CHANNEL = re.compile(r"&lt;#([A-Z0-9]+)&gt;")
HOME_OPENED = "app_home_opened"
COMMANDS = {"/claudius": "", "/ensoul": "ensoul "}
"""Each command with the word that it stands for."""
BUTTONS = {"forget_me": "forget me", "forget_me_yes": "forget me yes"}
POST_CHARS = 2800
MOST_POSTS = 4
"""A response_url may be used five times."""
MOST_SECTIONS = 40


def asked_by(body: Mapping[str, Any]) -> str:
    """Return the id of the user who asks, or "" if there is none. Pure."""
    event = body.get("event") or {}
    user = body.get("user_id") or event.get("user") or (body.get("user") or {}).get("id")
    return str(user or "")


def is_decision(body: Mapping[str, Any]) -> bool:
    """Return whether a payload is a button of a question for consent, pressed on the post that asks it. Pure."""
    if body.get("type") != "block_actions" or object_of(body, "container").get("type") != "message":
        return False
    pressed = (body.get("actions") or [{}])[0]
    return str(pressed.get("action_id")).startswith(BUTTON)


def commanded(body: Mapping[str, Any], us: SlackBot, who: Who, now_s: float) -> Perception | None:
    """Return a command, a button press or an opened App Home as a perception, or None for anything else. Pure.

    `now_s`: the wall clock, because Slack gives a command no time.
    """
    user = asked_by(body)
    person = f"{NETWORK}:{us.team}:{user}"
    text, key, channel = _asked({"trigger_id": f"{user}.{now_s:.6f}", **body}, person)
    if not (text and key and user):
        return None
    team = str(body.get("team_id") or (body.get("team") or {}).get("id") or us.team)
    receipt = str(object_of(body, "container").get("message_ts") or "") if is_decision(body) else ""
    thread = str(object_of(body, "message").get("thread_ts") or "") if receipt else ""
    where = f"{NETWORK}:{us.team}:{channel or user}:{thread}"
    said = read(text, us.user, {})
    is_home = (body.get("type") == "block_actions" and not receipt) or "event" in body
    extra = CommandExtra(
        where=where,
        is_public=None if is_home else not channel.startswith(("D", "U", "W")),
        receipt=receipt,
        locale=who.locale,
        own={"home": user} if is_home else {"response_url": str(body.get("response_url") or "")},
    )
    return Perception(
        key=key,
        conversation=apart(where, person),
        audience=private(person),
        person=person,
        name=valid(who.name),
        text=valid(by_ids(said.text, {f"{NETWORK}:{us.team}:{one}": name for one, name in said.names.items()})),
        at=datetime.fromtimestamp(now_s, UTC),
        position=f"{now_s:.6f}",
        kind=Kind.COMMAND,
        owes=False,
        standing=who.standing if team in (us.team, us.enterprise) else Standing.OUTSIDER,
        is_bot=who.is_bot,
        extra=extra,
    )


def _asked(body: Mapping[str, Any], person: str) -> tuple[str, str, str]:
    """Return the request, its dedupe key, and the channel. A key holds a whole person id or none. Pure."""
    if body.get("command") in COMMANDS:
        asked = COMMANDS[str(body["command"])] + str(body.get("text") or "")
        return asked or "help", f"{NETWORK}:cmd:{body.get('trigger_id')}", str(body.get("channel_id") or "")
    event = body.get("event") or {}
    if event.get("type") == HOME_OPENED and event.get("tab", "home") == "home":
        return "home", f"{NETWORK}:home:{person}:{event.get('event_ts')}", ""
    if body.get("type") == "block_actions":
        pressed = (body.get("actions") or [{}])[0]
        action, value = str(pressed.get("action_id")), str(pressed.get("value"))
        if is_decision(body):
            asked = decision(action.removeprefix(BUTTON), value)
            return asked, f"{NETWORK}:cmd:{body.get('trigger_id')}", text_of(object_of(body, "channel"), "id")
        return BUTTONS.get(action, ""), f"{NETWORK}:cmd:{body.get('trigger_id')}", ""
    return "", "", ""


def _marked(text: str) -> str:
    """Return our own answer in Slack's format; the mark of a channel is shown as its name. Pure."""
    return _CHANNEL.sub(r"<#\1>", mrkdwn(text))


def _posted(conversation: str, text: str) -> dict[str, Any]:
    """Return where a text is posted: in the conversation's channel, and in its thread if it has one. Pure."""
    place = Place.of(conversation)
    thread = {"thread_ts": place.thread} if place.thread else {}
    return {"channel": place.channel, "text": text, **thread}


class SlackTeller:
    """Tells one person something: the answer to a command, a line, a thought."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client

    async def answer(self, perception: Perception, text: str) -> None:
        """Answer where the command was given, so that nobody else sees the answer. Raises: DeliveryError, OSError."""
        user = perception.person.rpartition(":")[2]
        if perception.extra.own.get("home"):
            _, parts = in_posts(text, POST_CHARS, MOST_SECTIONS)
            is_asked = "forget me yes" in text
            button = {
                "type": "button",
                "style": "danger",
                "action_id": "forget_me_yes" if is_asked else "forget_me",
                "text": {"type": "plain_text", "text": "Yes, forget me" if is_asked else "Forget me"},
            }
            sections = [{"type": "section", "text": {"type": "mrkdwn", "text": _marked(part)}} for part in parts]
            view = {"type": "home", "blocks": [*sections, {"type": "actions", "elements": [button]}]}
            await self._call("views_publish", user_id=user, view=view)
            return
        _, parts = in_posts(text, POST_CHARS, MOST_POSTS)
        for part in parts:
            await self._say(perception, user, _marked(part))

    async def tell(self, person: str, text: str) -> None:
        """Send a line to one person in a direct message. Raises: DeliveryError."""
        user = person.rpartition(":")[2]
        await self._call("chat_postMessage", channel=user, text=mrkdwn(text), unfurl_links=False, unfurl_media=False)

    async def show_thought(self, thought: ShownThought) -> None:
        """Post a thought as a context block of plain text, which pings nobody. Raises: DeliveryError."""
        element = {"type": "plain_text", "text": f"\N{THOUGHT BALLOON} {thought.text}", "emoji": False}
        post = _posted(thought.conversation, "\N{THOUGHT BALLOON}")
        await self._call("chat_postMessage", **post, blocks=[{"type": "context", "elements": [element]}])

    async def _say(self, perception: Perception, user: str, text: str) -> None:
        reply = {"response_type": "ephemeral", "replace_original": False, "text": text}
        url = perception.extra.own.get("response_url")
        if url and await self._respond(url, reply):
            return
        post = _posted(given_in(perception), text)
        if isinstance(perception.extra, CommandExtra) and perception.extra.is_public:
            try:
                await self._call("chat_postEphemeral", user=user, **post)
            except DeliveryRefused as error:
                log.info("answered directly", extra={"code": error.code})
                post = {"channel": user, "text": text}  # the direct messages with this user
            else:
                return
        await self._call("chat_postMessage", unfurl_links=False, unfurl_media=False, link_names=False, **post)

    async def _call(self, method: str, **arguments: Any) -> None:
        try:
            await getattr(self._client, method)(**arguments)
        except FAILURES as error:
            raise classify_read(error) from error

    async def _respond(self, url: str, body: Mapping[str, Any]) -> bool:
        """Answer through a command's response_url. Returns False if that can no longer be used."""
        session = self._client.session
        if session is None:
            return True
        try:
            async with session.post(url, json=body, allow_redirects=False, proxy=proxy_of(url)) as answered:
                if answered.status >= 500:
                    raise ConnectionError(f"a command's answer was refused ({answered.status})")
                return answered.status < 300
        except FAILURES as error:
            raise classify(error) from error
