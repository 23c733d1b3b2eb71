"""Answers to commands and buttons. Source: docs.discord.com/developers/interactions/receiving-and-responding."""

from collections.abc import Mapping
from typing import Any

from lab.loopback.discord import drafts
from lab.loopback.discord.asking import Asking
from lab.loopback.discord.interactions import Interaction
from lab.loopback.discord.rules import Refused
from lab.loopback.discord.state import APP, BOT_USER, EPHEMERAL, LOADING, SLASH, Message

EMPTY: tuple[int, Any] = (204, None)
DEFER = 5


def respond(asking: Asking) -> tuple[int, Any]:
    """Answer for the first time: with a message, or with the promise of one."""
    service = asking.service
    one = service.interactions.by_token.get(asking.path["token"])
    if one is None or one.id != asking.path["interaction_id"] or not service.interactions.is_alive(one):
        raise Refused(10062)
    if one.is_answered:
        raise Refused(40060)
    kind, inner = int(asking.body.get("type", 0)), _inner(asking)
    match kind:
        case 4:
            message = _message(inner, one)
            drafts.fill(inner, message)
            one.original = message
            one.is_answered = True
            _show(inner, one, message, is_new=True)
        case 5:
            one.original = _message(inner, one)
            one.original.flags |= LOADING | int(inner.body.get("flags") or 0) & EPHEMERAL
            one.is_answered = True
            _put_up(inner, one, one.original)
            _enter(asking, "defer", one, one.original)
        case _:
            raise Refused(50035, message="Invalid Form Body")
    service.journal.changes.happened()
    return _callback(asking, one, kind) if asking.query.get("with_response") in ("1", "true") else EMPTY


def _callback(asking: Asking, one: Interaction, kind: int) -> tuple[int, Any]:
    message = one.original
    is_ephemeral = bool(message and message.flags & EPHEMERAL)
    body: dict[str, Any] = {
        "interaction": {
            "id": one.id,
            "type": one.kind,
            "response_message_id": message.id if message else None,
            "response_message_loading": kind == DEFER,
            "response_message_ephemeral": is_ephemeral,
        },
        "resource": {"type": kind},
    }
    if message:
        body["resource"]["message"] = asking.service.shapes.message(message)
    return 200, body


def _inner(asking: Asking) -> Asking:
    """Read the message inside a callback."""
    data = asking.body.get("data") or {}
    return Asking(asking.service, asking.call, asking.path, asking.query, data)


def _known(asking: Asking) -> Interaction:
    one = asking.service.interactions.by_token.get(asking.path["token"])
    if asking.path["application_id"] != APP or one is None:
        raise Refused(10015)
    if not asking.service.interactions.is_alive(one):
        raise Refused(50027)
    return one


def follow_up(asking: Asking) -> tuple[int, Any]:
    """Say more; after a mere promise, the first that comes keeps it."""
    one = _known(asking)
    if not one.is_answered:
        raise Refused(10015)
    if one.original and one.original.flags & LOADING:
        _edit(asking, one, one.original)
        return 200, asking.service.shapes.message(one.original)
    message = _message(asking, one)
    drafts.fill(asking, message)
    _show(asking, one, message, is_new=True)
    return 200, asking.service.shapes.message(message)


def _message(asking: Asking, one: Interaction) -> Message:
    about = {"id": one.id, "type": one.kind, "user": asking.service.shapes.user(one.user)}
    facts = {"webhook_id": APP, "application_id": APP, "interaction": about | {"authorizing_integration_owners": {}}}
    message = asking.service.compose(one.channel, BOT_USER, "", **facts)
    message.kind = SLASH if one.kind == 2 and not one.is_answered else message.kind
    return message


def _edit(asking: Asking, one: Interaction, message: Message) -> None:
    was_loading = bool(message.flags & LOADING)
    drafts.fill(asking, message)
    message.flags &= ~LOADING
    if not was_loading:
        message.edited_at = asking.service.space.clock.now()
    _show(asking, one, message, is_new=was_loading)
    if not message.flags & EPHEMERAL:
        asking.service.changed(one.channel, message)


def _show(asking: Asking, one: Interaction, message: Message, *, is_new: bool) -> None:
    """Write down what people see of it now; a promise that is kept is new to them."""
    if is_new:
        _put_up(asking, one, message)
    _enter(asking, "response" if is_new else "edit", one, message)


def _put_up(asking: Asking, one: Interaction, message: Message) -> None:
    """Put an answer where all see it, once; one for a single person is in no history."""
    if not message.flags & EPHEMERAL and one.channel.find(message.id) is None:
        asking.service.publish(one.channel, message)


def _enter(asking: Asking, kind: Any, one: Interaction, message: Message) -> None:
    asking.service.journal.enter(
        "app",
        kind,
        one.channel.id,
        message=message.id,
        user=BOT_USER,
        text=message.content,
        to=one.user if message.flags & EPHEMERAL else "",
        pings=message.pings,
        flags=message.flags,
        reference=one.id,
        raw=asking.call.raw,
    )


ROUTES: Mapping[str, Any] = {"create_interaction_response": respond, "create_followup_message": follow_up}
