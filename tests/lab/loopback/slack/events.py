"""The events that the app hears, as Slack words them. Pure.

Source: docs.slack.dev/reference/events/<type> and docs.slack.dev/apis/events-api.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.loopback.slack.rules import EVENT_SCOPE
from lab.loopback.slack.shapes import message_json
from lab.loopback.slack.state import APP, BOT, BOT_USER, TEAM, Channel, Message, Workspace

OPTIONAL = frozenset({"event_ts", "item_user", "edited", "deleted_ts", "response_url", "trigger_id"})
"""What no client can count on."""
_KIND_NAME = {"channel": "message.channels", "group": "message.groups", "im": "message.im", "mpim": "message.mpim"}


@dataclass(frozen=True, slots=True)
class Event:
    """One event, and the name under which an app subscribes to it."""

    name: str
    body: Mapping[str, Any]

    @property
    def channel(self) -> str:
        """The conversation that it is about."""
        item = self.body.get("item") or {}
        return str(self.body.get("channel") or item.get("channel") or "")

    @property
    def ts(self) -> str:
        """The message that it is about."""
        inner = self.body.get("message") or self.body.get("item") or {}
        return str(inner.get("ts") or self.body.get("deleted_ts") or self.body.get("ts") or "")


def said(space: Workspace, channel: Channel, message: Message, *, url: str) -> list[Event]:
    """Tell of a new message; twice where it names our app, with an `app_mention` first."""
    body = message_json(space, message, url=url, has_metadata=True)
    body |= {"channel": channel.id, "event_ts": message.ts}
    if channel.is_shared and message.team != TEAM:  # who comes through Slack Connect is named with his team
        body |= {"user_team": message.team, "source_team": message.team}
    events = [Event(_KIND_NAME[channel.kind], body | {"channel_type": channel.kind})]
    return [Event("app_mention", body | {"type": "app_mention"}), *events] if _names_us(channel, message) else events


def named_again(space: Workspace, message: Message, *, url: str, event_ts: str) -> list[Event]:
    """Tell of an edited text that names our app: an `app_mention` once more. Source: posthog#60193."""
    if not _names_us(space.channels[message.channel], message):
        return []
    body = message_json(space, message, url=url, has_metadata=True)
    return [Event("app_mention", body | {"type": "app_mention", "channel": message.channel, "event_ts": event_ts})]


def _names_us(channel: Channel, message: Message) -> bool:
    """Say whether there is an `app_mention`.

    None in direct messages (docs.slack.dev/reference/events/app_mention), none of our own (bolt-python#1350), but of
    other bots (posthog#60116).
    """
    is_place = channel.kind in ("channel", "group")
    is_plain = message.subtype in (None, "thread_broadcast", "file_share", "bot_message")
    return is_place and is_plain and f"<@{BOT_USER}" in message.text and message.bot_id != BOT


def changed(space: Workspace, message: Message, before: Mapping[str, Any], *, url: str, event_ts: str) -> Event:
    """Tell that a message is another than `before`, or say so though nothing is (links unfolded, a reply counted)."""
    after = message_json(space, message, url=url, has_metadata=True)
    return _about(
        space, message, {"subtype": "message_changed", "message": after, "previous_message": before}, event_ts
    )


def deleted(space: Workspace, message: Message, before: Mapping[str, Any], *, event_ts: str) -> Event:
    """Tell that a message is gone."""
    gone = {"subtype": "message_deleted", "deleted_ts": message.ts, "previous_message": before}
    return _about(space, message, gone, event_ts)


def _about(space: Workspace, message: Message, facts: dict[str, Any], event_ts: str) -> Event:
    channel = space.channels[message.channel]
    body: dict[str, Any] = {"type": "message", "channel": channel.id, "hidden": True, "ts": event_ts}
    body["event_ts"] = event_ts
    return Event(_KIND_NAME[channel.kind], body | {"channel_type": channel.kind} | facts)


def reacted(message: Message, user: str, name: str, *, is_added: bool, event_ts: str) -> Event:
    """Tell that a person put a reaction on a message, or took it off."""
    kind = "reaction_added" if is_added else "reaction_removed"
    item = {"type": "message", "channel": message.channel, "ts": message.ts}
    body = {"type": kind, "user": user, "reaction": name, "item": item, "event_ts": event_ts}
    return Event(kind, body | ({"item_user": message.user} if message.user else {}))


def moved(channel: Channel, user: str, *, is_joining: bool, event_ts: str) -> Event:
    """Tell that a person came into a channel or left it.

    The app itself is told of its own removal in another way: bolt-js#1847, node-slack-sdk#931.
    """
    if user == BOT_USER and not is_joining:
        kind = "channel_left" if channel.kind == "channel" else "group_left"
        return Event(kind, {"type": kind, "channel": channel.id, "actor_id": "", "event_ts": event_ts})
    kind = "member_joined_channel" if is_joining else "member_left_channel"
    letter = "C" if channel.kind == "channel" else "G"
    body = {"type": kind, "user": user, "channel": channel.id, "channel_type": letter, "team": TEAM}
    return Event(kind, body | {"event_ts": event_ts})


def archived(channel: Channel, user: str, *, event_ts: str) -> Event:
    """Tell that a channel was put away."""
    kind = "channel_archive" if channel.kind == "channel" else "group_archive"
    return Event(kind, {"type": kind, "channel": channel.id, "user": user, "event_ts": event_ts})


def opened_home(channel: Channel, user: str, view: Mapping[str, Any] | None, *, event_ts: str) -> Event:
    """Tell that a person looks at the App Home."""
    body = {"type": "app_home_opened", "user": user, "channel": channel.id, "tab": "home", "event_ts": event_ts}
    return Event("app_home_opened", body | ({"view": view} if view else {}))


def uninstalled(*, event_ts: str) -> list[Event]:
    """Tell that the app was removed: its tokens first."""
    revoked = {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [BOT_USER]}, "event_ts": event_ts}
    return [
        Event("tokens_revoked", revoked),
        Event("app_uninstalled", {"type": "app_uninstalled", "event_ts": event_ts}),
    ]


def callback(event: Event, event_id: str, event_time: int) -> dict[str, Any]:
    """Wrap an event as the Events API sends it."""
    grant = {"enterprise_id": None, "team_id": TEAM, "user_id": BOT_USER, "is_bot": True}
    return {
        "token": "verification",
        "team_id": TEAM,
        "context_team_id": TEAM,
        "api_app_id": APP,
        "event": dict(event.body),
        "type": "event_callback",
        "event_id": event_id,
        "event_time": event_time,
        "authorizations": [grant | {"is_enterprise_install": False}],
        "is_ext_shared_channel": False,
        "event_context": f"4-{event_id}",
    }


def reaches(space: Workspace, event: Event, subscribed: frozenset[str], scopes: frozenset[str]) -> bool:
    """Say whether the app is told: subscribed, allowed, and in the conversation.

    That a mention where the app is no member sends nothing is our reading.
    """
    if event.name not in subscribed or EVENT_SCOPE.get(event.name, "") not in {"", *scopes}:
        return False
    if event.name.endswith("_left") or (event.name.startswith("member_") and event.body["user"] == BOT_USER):
        return True
    channel = space.channels.get(event.channel)
    return channel is None or BOT_USER in channel.members


def spared(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event or a command without what a client cannot count on. Pure."""
    kept = {name: value for name, value in body.items() if name not in OPTIONAL}
    if "message" in kept:  # a change: what was there before is not told
        kept.pop("previous_message", None)
        kept["message"] = spared(kept["message"])
    return kept
