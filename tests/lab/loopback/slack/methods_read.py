"""conversations.* and users.*: what the app may read.

Source: docs.slack.dev/reference/methods/<method>.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.loopback.slack.lookup import channel_of, page, require_scope
from lab.loopback.slack.records import Call
from lab.loopback.slack.rules import HISTORY_SCOPE, READ_SCOPE, Arguments, Refused
from lab.loopback.slack.service import Service
from lab.loopback.slack.shapes import channel_json, message_json, user_json
from lab.loopback.slack.state import BOT_TOKEN, BOT_USER, Channel, Message

_KINDS = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
_TIME = re.compile(r"\d{1,12}(\.\d{1,6})?")


def history(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """Read a conversation, newest first; replies only where they were broadcast.

    With `oldest` alone the pages begin at the old end. Source: slackhq/slack-api-docs#4, openclaw#87954.
    """
    channel = _readable(service, arguments)
    found = list(_between(list(channel.shown()), arguments))
    is_forward = bool(arguments.text("oldest")) and not arguments.text("latest")
    part, following = page(found if is_forward else found[::-1], arguments, default=100, most=999)
    newest_first = sorted(part, key=lambda message: message.ts, reverse=True)
    return _messages(service, newest_first, following, arguments) | {"pin_count": 0}


def replies(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """Read a thread, oldest first; every page begins with the thread's first message.

    That it does so on later pages, and outside the span of time, is our reading of what people report.
    """
    channel = _readable(service, arguments)
    named = channel.find(arguments.text("ts"))
    parent = channel.find(named.thread_ts or named.ts) if named else None
    if parent is None:
        raise Refused("thread_not_found")
    part, following = page(list(_between(channel.replies(parent.ts), arguments)), arguments, default=1000, most=1000)
    return _messages(service, [parent, *part], following, arguments)


def list_conversations(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """List the conversations that the app may know of."""
    found = [channel for channel in _listed(service, arguments) if service.space.sees(channel)]
    return _channels(found, arguments)


def own_conversations(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """List the conversations that a person is in; without a name, the app."""
    who = arguments.text("user") or BOT_USER
    found = [channel for channel in _listed(service, arguments) if who in channel.members]
    return _channels([channel for channel in found if service.space.sees(channel)], arguments)


def info(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """Show a conversation."""
    channel = channel_of(service, arguments)
    require_scope(service, READ_SCOPE[channel.kind])
    return {"channel": channel_json(channel)}


def members(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """List who is in a conversation."""
    channel = channel_of(service, arguments)
    require_scope(service, READ_SCOPE[channel.kind])
    part, following = page(channel.members, arguments, default=100, most=1000)
    return {"members": list(part), "response_metadata": {"next_cursor": following}}


def user_info(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """Show a person."""
    user = service.space.users.get(arguments.text("user"))
    if user is None:
        raise Refused("user_not_found")
    return {"user": user_json(user, has_locale=arguments.flag("include_locale"))}


def list_users(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """List the people of the workspace, those of Slack Connect left out."""
    own = [user for user in service.space.users.values() if user.team == service.space.team]
    part, following = page(own, arguments, default=len(own) or 1, most=1000)
    shown = [user_json(user, has_locale=arguments.flag("include_locale")) for user in part]
    return {"members": shown, "response_metadata": {"next_cursor": following}}


def _readable(service: Service, arguments: Arguments) -> Channel:
    channel = channel_of(service, arguments)
    require_scope(service, HISTORY_SCOPE[channel.kind])
    if BOT_USER not in channel.members:
        raise Refused("not_in_channel")
    return channel


def _between(found: Sequence[Message], arguments: Arguments) -> Sequence[Message]:
    """Keep what lies in the span; its ends belong to it only with `inclusive`."""
    oldest, latest = arguments.text("oldest"), arguments.text("latest")
    for name, value in (("oldest", oldest), ("latest", latest)):
        if value and not _TIME.fullmatch(value):
            raise Refused(f"invalid_ts_{name}")
    ends = {_micros(value) for value in (oldest, latest) if value} if arguments.flag("inclusive") else set()
    low, high = _micros(oldest or "0"), _micros(latest or "999999999999")
    return [message for message in found if low < _micros(message.ts) < high or _micros(message.ts) in ends]


def _micros(ts: str) -> int:
    seconds, _, rest = ts.partition(".")
    return int(seconds) * 1_000_000 + int(rest.ljust(6, "0") or 0)


def _messages(service: Service, found: Sequence[Message], following: str, arguments: Arguments) -> dict[str, Any]:
    has_metadata = arguments.flag("include_all_metadata") and not service.settings.is_sparing
    answer: dict[str, Any] = {
        "messages": [
            message_json(service.space, message, url=service.url, has_metadata=has_metadata) for message in found
        ],
        "has_more": bool(following),
    }
    return answer | ({"response_metadata": {"next_cursor": following}} if following else {})


def _listed(service: Service, arguments: Arguments) -> list[Channel]:
    """Give the conversations of the types asked for. Raises: Refused: a type is unknown, or its scope missing."""
    types = (arguments.text("types") or "public_channel").replace(" ", "").split(",")
    if unknown := [name for name in types if name not in _KINDS]:
        raise Refused("invalid_types", *unknown)
    kinds = {_KINDS[name] for name in types}
    needed = {READ_SCOPE[kind] for kind in kinds}
    if missing := needed - service.space.tokens[BOT_TOKEN].scopes:
        require_scope(service, min(missing))
    is_live_only = arguments.flag("exclude_archived")
    found = [channel for channel in service.space.channels.values() if channel.kind in kinds]
    return [channel for channel in found if not (is_live_only and channel.is_archived)]


def _channels(found: Sequence[Channel], arguments: Arguments) -> dict[str, Any]:
    part, following = page(found, arguments, default=100, most=1000)
    return {"channels": [channel_json(channel) for channel in part], "response_metadata": {"next_cursor": following}}


METHODS: Mapping[str, Callable[[Service, Arguments, Call], dict[str, Any]]] = {
    "conversations.history": history, "conversations.replies": replies, "conversations.list": list_conversations,
    "conversations.info": info, "conversations.members": members, "users.info": user_info, "users.list": list_users,
    "users.conversations": own_conversations,
}  # fmt: skip
