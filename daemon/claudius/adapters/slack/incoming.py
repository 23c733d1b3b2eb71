"""Convert Slack's events to perceptions: who spoke, where, when, and whether it was for us, and what changed later.

Pure, but for asking who somebody is.

Source: the chat design, sections 1.2, 1.3 and 6; docs.slack.dev/reference/events/message/message_changed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.adapters.incoming import Ignored, deleted, own_text
from claudius.adapters.slack.text import MENTIONS, files_of, object_of, read, shows, text_of
from claudius.perception import (
    Kind,
    MessageExtra,
    MoveExtra,
    Perception,
    ReactionExtra,
    Standing,
    edited,
    private,
    shared,
)
from claudius.prompt import valid
from claudius.runtime.commands.words import SIGN
from claudius.shown import Quoted

NETWORK = "slack"
HEARD_SUBTYPES = frozenset({"", "thread_broadcast", "file_share", "me_message", "bot_message"})
"""Subtypes that are messages. Every other subtype reports something else."""
MOVES = {"member_joined_channel": Kind.JOIN, "member_left_channel": Kind.LEAVE}
REMOVED = frozenset({"channel_left", "group_left"})
"""We were removed from a channel. `member_left_channel` may never come for it (bolt-js#1847, node-slack-sdk#931)."""
GOODBYES = frozenset({"tokens_revoked", "app_uninstalled"})
REACTIONS = {"reaction_added": True, "reaction_removed": False}
NOT_YET = frozenset({"channel_archive", "group_archive"})
"""Events that are acknowledged and counted, and otherwise ignored for now."""
HANDLED = frozenset({"message", "app_mention", "app_home_opened", *MOVES, *REMOVED, *REACTIONS, *GOODBYES, *NOT_YET})
SLACKBOT = "USLACKBOT"
ZONE_CHARS = 64
"""No time zone and no locale has a longer name."""
_TS = re.compile(r"\d{10}\.\d{6}")


class SlackBot(Struct, frozen=True):
    """The bot's own identity in this workspace."""

    team: str
    user: str
    bot: str
    enterprise: str = ""
    """The Enterprise Grid organisation, if there is one."""


class Who(Struct, frozen=True):
    """What Slack says of a user."""

    name: str
    standing: Standing = Standing.MEMBER
    is_bot: bool = False
    zone: str = ""
    """IANA name of their time zone, if Slack tells one."""
    locale: str = ""
    """Their locale, if Slack tells one."""


class SlackMessage(Struct, frozen=True):
    """One message by somebody else, as Slack sent it, live or from history."""

    channel: str
    ts: str
    thread: str
    """Empty for a message outside a thread, and for the first of a thread."""
    user: str
    """Empty for an old-style bot."""
    bot: str
    raw: str
    teams: tuple[str, ...]
    """The teams that the message names as its speaker's."""
    username: str = ""
    files: tuple[Mapping[str, Any], ...] = ()
    """Each with its id, name, type, size in bytes and link, as far as known."""
    shown: tuple[Quoted, ...] = ()
    """What it shows besides its own words, still raw."""
    shown_files: tuple[Mapping[str, Any], ...] = ()
    is_direct: bool = False
    is_ours: bool = False

    @property
    def is_named(self) -> bool:
        """Whether a bot wrote it and it says under which name, so that nobody need be asked."""
        return bool(self.bot and self.username)


class MembershipChange(Struct, frozen=True):
    """Somebody joined a channel or left it."""

    channel: str
    ts: str
    user: str
    kind: Kind


class Goodbye(Struct, frozen=True):
    """The app was removed, or its token was revoked."""

    what: str


Event = SlackMessage | MembershipChange | Goodbye | Ignored


def timed(body: Mapping[str, Any], now_s: float) -> Mapping[str, Any]:
    """Return a payload whose event has a time, which is taken from the payload if the event has none. Pure.

    `now_s`: the wall clock, for a payload that has no time either.
    """
    event = body.get("event")
    if not isinstance(event, Mapping) or _TS.fullmatch(text_of(event, "event_ts")):
        return body
    told = body.get("event_time")
    ts = text_of(event, "ts")
    at = ts if _TS.fullmatch(ts) else f"{told if isinstance(told, int) else now_s:.6f}"
    return {**body, "event": {**event, "event_ts": at}}


def interpret(event: Mapping[str, Any], us: SlackBot) -> Event:
    """Return the content of an event of the Events API. Pure."""
    kind = str(event.get("type") or "")
    if kind in ("message", "app_mention"):
        return _message(event, us)
    if kind in MOVES:
        return MembershipChange(
            text_of(event, "channel"), text_of(event, "event_ts"), text_of(event, "user"), MOVES[kind]
        )
    if kind in REMOVED:
        return MembershipChange(text_of(event, "channel"), text_of(event, "event_ts"), us.user, Kind.LEAVE)
    if kind == "tokens_revoked":
        bots = object_of(event, "tokens").get("bot")
        return Goodbye(kind) if isinstance(bots, list) and us.user in bots else Ignored(kind)
    return Goodbye(kind) if kind in GOODBYES else Ignored(kind or "nothing")


def from_history(message: Mapping[str, Any], channel: str, us: SlackBot, *, with_ours: bool = False) -> Event:
    """Return the content of a message from `conversations.history` or `.replies`. Pure."""
    return _message({**message, "channel": channel}, us, with_ours=with_ours)


def _message(event: Mapping[str, Any], us: SlackBot, *, with_ours: bool = False) -> Event:
    subtype, channel, ts = (text_of(event, key) for key in ("subtype", "channel", "ts"))
    if subtype not in HEARD_SUBTYPES or event.get("hidden"):
        return Ignored(subtype or "hidden", channel, ts)
    user, bot = text_of(event, "user"), text_of(event, "bot_id")
    if is_ours(event, us) and not with_ours:
        return Ignored("our own", channel, ts)
    if not (channel and _TS.fullmatch(ts) and (user or bot)):
        return Ignored("incomplete", channel, ts)
    said = shows(event, us.team)
    return SlackMessage(
        channel=channel,
        ts=ts,
        thread=thread if (thread := text_of(event, "thread_ts")) != ts else "",
        user=user,
        bot=bot,
        raw=said.raw,
        teams=tuple(team for key in ("user_team", "source_team") if (team := text_of(event, key))),
        username=text_of(event, "username") or text_of(object_of(event, "bot_profile"), "name"),
        files=tuple(files_of(event)),
        shown=said.shown,
        shown_files=said.files,
        is_direct=event.get("channel_type") == "im" or channel.startswith("D"),
        is_ours=is_ours(event, us),
    )


def is_ours(message: Mapping[str, Any], us: SlackBot) -> bool:
    """Return whether a message is our own, by our user or only by our bot. Pure."""
    return message.get("user") == us.user or (bool(us.bot) and message.get("bot_id") == us.bot)


def perceive(said: SlackMessage, us: SlackBot, people: Mapping[str, Who], place: str = "") -> Perception:
    """Return a message as a perception.

    `people` holds its speaker and those it mentions, as far as Slack told; `place` is what its channel is called. Pure.
    """
    who = people.get(said.user) or Who(said.username or said.user or said.bot)
    if said.is_named:
        who = replace(who, name=said.username)
    person = f"{NETWORK}:{us.team}:{said.user or said.bot}"
    names = {user: one.name for user, one in people.items()}
    seen = read(said.raw, us.user, names)
    is_called = us.user in MENTIONS.all_in(said.raw)
    addressed = MENTIONS.at_start(said.raw)
    is_foreign = any(team not in (us.team, us.enterprise) for team in said.teams)
    conversation = conversation_of(said, us, is_called=is_called)
    extra = MessageExtra(
        can_react=True,
        named={f"{NETWORK}:{us.team}:{user}": name for user, name in seen.names.items() if user != us.user},
        files=(*said.files, *said.shown_files),
        shown=tuple(replace(one, text=valid(read(one.text, "", names).text)) for one in said.shown),
        is_ours=said.is_ours,
        zone=who.zone,
        locale=who.locale,
        place=place,
    )
    return Perception(
        key=message_key(us, said.channel, said.ts),
        conversation=conversation,
        audience=private(person) if said.is_direct else shared(conversation),
        person=person,
        name=valid(who.name),
        text=own_text((seen.text,), said.files, said.shown),
        at=moment(said.ts),
        position=said.ts,
        kind=Kind.MENTION if is_called and not said.is_direct else Kind.MESSAGE,
        to_other=bool(addressed) and addressed != us.user,
        standing=Standing.OUTSIDER if is_foreign else who.standing,
        is_bot=who.is_bot or bool(said.bot) or said.user == SLACKBOT,
        extra=extra,
    )


def perceive_move(moved: MembershipChange, us: SlackBot, who: Who) -> Perception:
    """Return a join or leave as a perception. Pure."""
    conversation, person = f"{NETWORK}:{us.team}:{moved.channel}:", f"{NETWORK}:{us.team}:{moved.user}"
    return Perception(
        key=f"{moved.kind.value}:{NETWORK}:{us.team}:{moved.channel}:{person}:{moved.ts}",
        conversation=conversation,
        audience=shared(conversation),
        person=person,
        name=valid(who.name),
        at=moment(moved.ts),
        position=moved.ts,
        kind=moved.kind,
        owes=False,
        standing=who.standing,
        is_bot=who.is_bot or moved.user == us.user,
        extra=MoveExtra(is_our_own=moved.user == us.user),
    )


def conversation_of(said: SlackMessage, us: SlackBot, *, is_called: bool) -> str:
    """Return the conversation of a message: its thread, or a new thread if it mentions us in a channel. Pure."""
    thread = said.thread or (said.ts if is_called and not said.is_direct else "")
    return f"{NETWORK}:{us.team}:{said.channel}:{thread}"


def message_key(us: SlackBot, channel: str, ts: str) -> str:
    """Return the dedupe key of a message.

    It is not an event's key, because a message can come in several events. Pure.
    """
    return f"{NETWORK}:{us.team}:{channel}:{ts}"


def moment(ts: str) -> datetime:
    """Return the time of a Slack timestamp. Pure."""
    return datetime.fromtimestamp(float(ts), UTC)


def stamp(at: datetime) -> str:
    """Return a time as a Slack timestamp. Pure."""
    return f"{at.timestamp():.6f}"


def known(user: Mapping[str, Any], us: SlackBot) -> Who:
    """Return what `users.info` says of a user. Pure."""
    profile = object_of(user, "profile")
    shown = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    name = next((str(one) for one in shown if one), str(user.get("id") or ""))
    is_bot = bool(user.get("is_bot")) or user.get("id") == SLACKBOT
    zone, locale = (valid(text_of(user, key))[:ZONE_CHARS] for key in ("tz", "locale"))
    return Who(name, _rank(user, us), is_bot, zone, locale)


def _rank(user: Mapping[str, Any], us: SlackBot) -> Standing:
    if user.get("deleted"):
        return Standing.GONE
    organisation = text_of(object_of(user, "enterprise_user"), "enterprise_id")
    is_foreign = user.get("team_id") not in (None, "", us.team) and not (
        us.enterprise and organisation == us.enterprise
    )
    if user.get("is_stranger") or is_foreign:
        return Standing.OUTSIDER
    return Standing.GUEST if user.get("is_restricted") or user.get("is_ultra_restricted") else Standing.MEMBER


TOMBSTONE = "tombstone"
"""The subtype that replaces a deleted first message of a thread. Slack reports the deletion as a change."""
SIGNS = {"+1": "👍", "thumbsup": "👍", "-1": "👎", "thumbsdown": "👎", "heart": "❤️", "octagonal_sign": SIGN}
"""Reactions that have a meaning for us. Any other goes by its name."""
Know = Callable[[str, Sequence[str]], Awaitable[Mapping[str, Who]]]
"""Asks who a speaker and those whom they mention are."""


async def afterwards(event: Mapping[str, Any], us: SlackBot, know: Know) -> Perception | Ignored | None:
    """Return the change of an earlier message that an event reports, or None if the event reports something else.

    Raises: TimeoutError if Slack does not say who it was.
    """
    kind, subtype = text_of(event, "type"), text_of(event, "subtype")
    if kind in REACTIONS:
        return await _reaction(event, us, know)
    if kind != "message" or subtype not in ("message_changed", "message_deleted"):
        return None
    after, before = object_of(event, "message"), object_of(event, "previous_message")
    is_gone = subtype == "message_deleted" or after.get("subtype") == TOMBSTONE
    if found := is_gone and (after.get("ts") or event.get("deleted_ts") or before.get("ts")):
        channel, at, gone = str(event.get("channel")), str(event.get("event_ts")), str(found)
        if not _TS.fullmatch(gone):
            return Ignored("a deletion of nothing that could be sent")
        return deleted(message_key(us, channel, gone), f"{NETWORK}:{us.team}:{channel}:", moment(at), at, moment(gone))
    return await _change(event, us, know)


async def _change(event: Mapping[str, Any], us: SlackBot, know: Know) -> Perception | Ignored:
    after, before = object_of(event, "message"), object_of(event, "previous_message")
    is_reworded, now, was = after.get("text") != before.get("text"), shows(after, us.team), shows(before, us.team)
    had, has = ({one["id"] for one in files_of(side) if one["url"]} for side in (before, after))
    if not is_reworded and set(was.shown) <= set(now.shown) and had <= has:
        return Ignored("nothing of it has gone")
    said = _changed(event, us)
    if not isinstance(said, SlackMessage):
        return said if isinstance(said, Ignored) else Ignored("an edit of something else")
    known = await know(said.user, MENTIONS.all_in(said.raw))
    told = text_of(object_of(after, "edited"), "ts")
    at = told if is_reworded and _TS.fullmatch(told) else str(event.get("event_ts"))
    return edited(perceive(said, us, known), moment(at), at)


def _changed(event: Mapping[str, Any], us: SlackBot) -> Event:
    after = {**object_of(event, "message"), "channel_type": event.get("channel_type")}
    return from_history(after, str(event.get("channel")), us)


async def called_since(event: Mapping[str, Any], us: SlackBot, know: Know) -> Perception | None:
    """Return the message that an edit made a call of us, or None. Raises: TimeoutError as `afterwards`."""
    said, before = _changed(event, us), object_of(event, "previous_message")
    if not isinstance(said, SlackMessage) or us.user in MENTIONS.all_in(text_of(before, "text")):
        return None
    found = perceive(said, us, await know(said.user, MENTIONS.all_in(said.raw)))
    return found if found.kind is Kind.MENTION else None


async def _reaction(event: Mapping[str, Any], us: SlackBot, know: Know) -> Perception | Ignored:
    item, user, is_on = object_of(event, "item"), str(event.get("user")), REACTIONS[str(event["type"])]
    channel, ts, author = str(item.get("channel")), str(item.get("ts")), event.get("item_user")
    name = str(event.get("reaction")).partition("::")[0]
    emoji = SIGNS.get(name, f":{name}:")
    is_stop = emoji == SIGN and is_on and author in (user, None)
    # Slack may leave the author out. The store knows the author.
    is_ours = author == us.user or (author is None and not is_stop)
    if user == us.user or not (is_ours or is_stop):
        return Ignored("a reaction of no meaning to us")
    who = (await know(user, ())).get(user) or Who(user)
    at, person, key = str(event.get("event_ts")), f"{NETWORK}:{us.team}:{user}", message_key(us, channel, ts)
    conversation = f"{NETWORK}:{us.team}:{channel}:"
    return Perception(
        key=f"reaction:{key}:{person}:{name}",
        conversation=conversation,
        audience=private(person) if channel.startswith("D") else shared(conversation),
        person=person,
        name=valid(who.name),
        at=moment(at),
        position=at,
        kind=Kind.REACTION,
        owes=False,
        standing=who.standing,
        is_bot=who.is_bot,
        extra=ReactionExtra(emoji=emoji, is_on=is_on, receipt=ts if is_ours else "", of="" if is_ours else key),
    )
