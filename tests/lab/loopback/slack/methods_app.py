"""The app's own methods: who it is, its sockets, reactions, status, home, files.

Source: docs.slack.dev/reference/methods/<method>.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lab.loopback.slack.lookup import channel_of
from lab.loopback.slack.records import Call
from lab.loopback.slack.rules import Arguments, Refused
from lab.loopback.slack.service import Service, Status
from lab.loopback.slack.shapes import file_json
from lab.loopback.slack.state import APP, BOT, BOT_USER, Channel, Message


def auth_test(service: Service, _: Arguments, __: Call) -> dict[str, Any]:
    """Say who the app is."""
    team = service.space.team
    facts = {"url": "https://loopback.slack.com/", "team": "Loopback", "user": "claudius", "team_id": team}
    return facts | {"user_id": BOT_USER, "bot_id": BOT, "is_enterprise_install": False}


def open_connection(service: Service, _: Arguments, __: Call) -> dict[str, Any]:
    """Give the URL of a socket; it works once, and soon."""
    where = service.url.replace("http://", "ws://", 1)
    return {"url": f"{where}/link/?ticket={service.sockets.ticket()}&app_id={APP}"}


def add_reaction(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """React to a message."""
    channel, message, name = _reactable(service, arguments)
    if channel.is_archived:
        raise Refused("is_archived")
    if BOT_USER in message.reactions.get(name, []):
        raise Refused("already_reacted")
    service.react(message, BOT_USER, name, is_added=True)
    service.journal.enter("app", "react", channel.id, ts=message.ts, user=BOT_USER, text=name, raw=call.raw)
    return {}


def remove_reaction(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Take a reaction off."""
    channel, message, name = _reactable(service, arguments)
    if BOT_USER not in message.reactions.get(name, []):
        raise Refused("no_reaction")
    service.react(message, BOT_USER, name, is_added=False)
    service.journal.enter("app", "unreact", channel.id, ts=message.ts, user=BOT_USER, text=name, raw=call.raw)
    return {}


def set_status(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Show in a thread that the app works; an empty status takes it off."""
    channel = channel_of(service, arguments, "channel_id")
    thread_ts, status = arguments.text("thread_ts"), arguments.text("status")
    if channel.find(thread_ts) is None:
        raise Refused("invalid_thread_ts")
    messages = [str(one) for one in arguments.get("loading_messages") or []]
    if len(messages) > 10:
        raise Refused("invalid_arguments", "no more than 10 items allowed [json-pointer:/loading_messages]")
    service.statuses.pop((channel.id, thread_ts), None)
    if status:
        service.statuses[channel.id, thread_ts] = Status(status, messages, service.space.clock.now())
    service.journal.enter(
        "app", "status", channel.id, ts=thread_ts, thread_ts=thread_ts, text=status, blocks=messages, raw=call.raw
    )
    return {}


def publish_view(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Set one viewer's App Home."""
    user, view = arguments.text("user_id"), arguments.get("view")
    if user not in service.space.users:
        raise Refused("user_not_found")
    if not isinstance(view, dict) or view.get("type") != "home" or not isinstance(view.get("blocks"), list):
        raise Refused("invalid_arguments", "missing required field: blocks [json-pointer:/view]")
    before = service.space.homes.get(user)
    if arguments.text("hash") and before and before["hash"] != arguments.text("hash"):
        raise Refused("hash_conflict")
    facts = {"id": f"V{user}", "team_id": service.space.team, "hash": service.space.next_ts(), "app_id": APP}
    shown = service.space.homes[user] = view | facts | {"bot_id": BOT}
    service.journal.enter("app", "home", "", to=user, user=BOT_USER, blocks=view["blocks"], raw=call.raw)
    return {"view": shown}


def file_info(service: Service, arguments: Arguments, _: Call) -> dict[str, Any]:
    """Show a file, one from Slack Connect too."""
    file = service.space.files.get(arguments.text("file"))
    if file is None:
        raise Refused("file_not_found")
    return {"file": file_json(file, url=service.url, is_asked=True), "comments": [], "paging": {}}


def _reactable(service: Service, arguments: Arguments) -> tuple[Channel, Message, str]:
    if not (arguments.text("channel") and arguments.text("timestamp")):
        raise Refused("no_item_specified")
    channel = channel_of(service, arguments)
    message = channel.find(arguments.text("timestamp"))
    if message is None:
        raise Refused("message_not_found")
    name = arguments.text("name").strip(":")
    if not name or " " in name:
        raise Refused("invalid_name")
    return channel, message, name


METHODS: Mapping[str, Callable[[Service, Arguments, Call], dict[str, Any]]] = {
    "auth.test": auth_test,
    "apps.connections.open": open_connection,
    "reactions.add": add_reaction,
    "reactions.remove": remove_reaction,
    "assistant.threads.setStatus": set_status,
    "views.publish": publish_view,
    "files.info": file_info,
}
