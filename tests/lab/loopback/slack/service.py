"""The whole service: the workspace, its records, its post office, and the few acts that all who post share."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from lab.loopback.breaking import Faults
from lab.loopback.slack import events
from lab.loopback.slack.envelopes import Parcel, Post
from lab.loopback.slack.events import Event
from lab.loopback.slack.faults import Fault
from lab.loopback.slack.limits import Limits
from lab.loopback.slack.records import Journal
from lab.loopback.slack.settings import Settings
from lab.loopback.slack.shapes import TOMBSTONE, message_json
from lab.loopback.slack.sockets import Sockets
from lab.loopback.slack.state import BOT_TOKEN, Channel, Message, Workspace


@dataclass(slots=True)
class Reply:
    """A `response_url`: where the answer to a command or a button may be sent."""

    channel: str
    user: str
    made_at: float
    ts: str = ""
    uses: int = 0


@dataclass(slots=True)
class Status:
    """What a thread shows while the app works."""

    status: str
    loading_messages: list[str]
    at: float


@dataclass(slots=True)
class Service:
    """Slack itself. `url` is where it is reached, without a slash at the end."""

    settings: Settings = field(default_factory=Settings)
    space: Workspace = field(default_factory=Workspace)
    url: str = ""
    faults: Faults[Fault] = field(default_factory=Faults)
    replies: dict[str, Reply] = field(default_factory=dict)
    statuses: dict[tuple[str, str], Status] = field(default_factory=dict)
    journal: Journal = field(init=False)
    limits: Limits = field(init=False)
    sockets: Sockets = field(init=False)
    post: Post = field(init=False)

    def __post_init__(self) -> None:
        """Put the parts together."""
        now = self.space.clock.now
        self.journal = Journal(now)
        self.limits = Limits(now)
        self.sockets = Sockets(self.settings, self.journal)
        self.post = Post(self.settings, self.journal, self.sockets)

    def tell(self, heard: Iterable[Event], *, is_delivered: bool = True) -> None:
        """Bring events to the app, those that it may hear."""
        scopes = self.space.tokens[BOT_TOKEN].scopes
        for event in heard:
            if not events.reaches(self.space, event, self.settings.events, scopes):
                continue
            event_id = self.space.next_id("Ev")
            payload = events.callback(event, event_id, int(self.space.clock.now()))
            if self.settings.is_sparing:
                payload["event"] = events.spared(payload["event"])
            parcel = Parcel("events_api", payload, str(event.body["type"]), event.channel, event.ts)
            if is_delivered:
                self.post.bring(parcel)
            else:
                self.post.lose(parcel)

    def publish(self, channel: Channel, message: Message, *, is_delivered: bool = True) -> None:
        """Put a new message up and tell of it; it ends a status that its thread shows."""
        channel.messages.append(message)
        if message.bot_id:  # Source: setStatus, "removed when the app sends a message"
            self.statuses.pop((channel.id, message.thread_ts or message.ts), None)
        heard = events.said(self.space, channel, message, url=self.url)
        if not self.settings.is_mention_first:
            heard.reverse()
        self.tell(heard, is_delivered=is_delivered)

    def snapshot(self, message: Message) -> dict[str, Any]:
        """Keep how a message looks before it is changed."""
        return message_json(self.space, message, url=self.url, has_metadata=True)

    def changed(self, message: Message, before: dict[str, Any], *, is_delivered: bool = True) -> str:
        """Tell of a change; give the event's ts."""
        event_ts = self.space.next_ts()
        heard = [events.changed(self.space, message, before, url=self.url, event_ts=event_ts)]
        if message.text != before["text"]:
            heard += events.named_again(self.space, message, url=self.url, event_ts=event_ts)
        self.tell(heard, is_delivered=is_delivered)
        return event_ts

    def remove(self, channel: Channel, message: Message, *, is_delivered: bool = True) -> str:
        """Take a message down and tell of it; give the event's ts.

        The first of a thread leaves a tombstone, and that is told as a change. Source: matterbridge#600,
        openclaw#22035.
        """
        before = self.snapshot(message)
        if channel.replies(message.ts):
            message.subtype, message.text, message.user = "tombstone", TOMBSTONE, "USLACKBOT"
            message.bot_id = message.client_msg_id = message.metadata = message.edited = None
            message.blocks, message.files, message.reactions, message.fields = [], [], {}, {}
            return self.changed(message, before, is_delivered=is_delivered)
        channel.messages.remove(message)
        event_ts = self.space.next_ts()
        self.tell([events.deleted(self.space, message, before, event_ts=event_ts)], is_delivered=is_delivered)
        return event_ts

    def react(self, message: Message, user: str, name: str, *, is_added: bool, is_delivered: bool = True) -> None:
        """Put a reaction on a message or take it off, and tell of it."""
        users = message.reactions.setdefault(name, [])
        if is_added:
            users.append(user)
        else:
            users.remove(user)
        if not users:
            del message.reactions[name]
        event = events.reacted(message, user, name, is_added=is_added, event_ts=self.space.next_ts())
        self.tell([event], is_delivered=is_delivered)

    def response_url(self, channel: str, user: str, ts: str = "") -> str:
        """Make a URL for answers to a command or a button."""
        key = uuid4().hex
        self.replies[key] = Reply(channel, user, self.space.clock.now(), ts)
        return f"{self.url}/response/{key}"
