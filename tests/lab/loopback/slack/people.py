"""Does what people do: say, edit, react, press. Each act is written down, and told to the app unless it is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from mimetypes import guess_type
from typing import Any
from uuid import uuid4

from lab.loopback.slack import events
from lab.loopback.slack.envelopes import Parcel
from lab.loopback.slack.service import Service
from lab.loopback.slack.state import APP, TEAM, Channel, File, Message


@dataclass(frozen=True)
class People:
    """The hands of everybody but the app. Texts are as Slack sends them: `<@U1>`, `&lt;`."""

    service: Service

    async def say(  # noqa: PLR0913 - what a message can be
        self,
        channel: str,
        user: str,
        text: str,
        *,
        thread_ts: str | None = None,
        subtype: str | None = None,
        files: Sequence[str] = (),
        username: str | None = None,
        fields: Mapping[str, Any] | None = None,
        deliver: bool = True,
    ) -> str:
        """Post a message; give its ts. A bot's user posts as that bot. `fields` lie over its JSON."""
        place, who = self._channel(channel), self.service.space.users[user]
        if place.is_archived:
            raise LookupError(f"{channel} is archived: nobody can post there")
        message = Message(
            place.id,
            self.service.space.next_ts(),
            text,
            user=None if subtype == "bot_message" else user,
            thread_ts=thread_ts,
            subtype=subtype or ("file_share" if files else None),
            bot_id=who.bot_id,
            username=username,
            team=who.team,
            client_msg_id=None if who.is_bot else str(uuid4()),
            files=list(files),
            fields=dict(fields or {}),
        )
        self._enter("post", message, user, is_delivered=deliver)
        self.service.publish(place, message, is_delivered=deliver)
        return message.ts

    async def edit(self, channel: str, ts: str, text: str, *, deliver: bool = True) -> str:
        """Change the text of a message; give the ts of the change."""
        message = self._message(channel, ts)
        before, author = self.service.snapshot(message), message.user or ""
        message.text, message.edited = text, (author, self.service.space.next_ts())
        self._enter("edit", message, author, is_delivered=deliver)
        return self.service.changed(message, before, is_delivered=deliver)

    async def delete(self, channel: str, ts: str, *, deliver: bool = True) -> str:
        """Take a message down; give the ts of the event."""
        message = self._message(channel, ts)
        self._enter("delete", message, message.user or "", is_delivered=deliver)
        return self.service.remove(self._channel(channel), message, is_delivered=deliver)

    async def unfurl(self, channel: str, ts: str, title: str = "Example", *, deliver: bool = True) -> str:
        """Have Slack say that a message shows a link, or none any more, and its text is the same; give the event's ts."""
        message = self._message(channel, ts)
        before = self.service.snapshot(message)
        message.attachments[:] = [{"id": 1, "from_url": "https://example.org/", "title": title}] if title else []
        message.fields.pop("attachments", "")
        self._enter("unfurl", message, "", is_delivered=deliver)
        return self.service.changed(message, before, is_delivered=deliver)

    async def react(self, channel: str, ts: str, user: str, name: str, *, deliver: bool = True) -> str:
        """Put a reaction on a message; give the message's ts."""
        message = self._message(channel, ts)
        self.service.react(message, user, name, is_added=True, is_delivered=deliver)
        self.service.journal.enter("person", "react", channel, ts=ts, user=user, text=name, is_delivered=deliver)
        return ts

    async def unreact(self, channel: str, ts: str, user: str, name: str, *, deliver: bool = True) -> str:
        """Take a reaction off; give the message's ts."""
        message = self._message(channel, ts)
        self.service.react(message, user, name, is_added=False, is_delivered=deliver)
        self.service.journal.enter("person", "unreact", channel, ts=ts, user=user, text=name, is_delivered=deliver)
        return ts

    async def join(self, channel: str, user: str, *, deliver: bool = True) -> str:
        """Come into a channel, or be asked in: the app too; give the event's ts."""
        place, event_ts = self._channel(channel), self.service.space.next_ts()
        if user not in place.members:
            place.members.append(user)
        self.service.journal.enter("person", "join", channel, ts=event_ts, user=user, is_delivered=deliver)
        moved = events.moved(place, user, is_joining=True, event_ts=event_ts)
        self.service.tell([moved], is_delivered=deliver)
        return event_ts

    async def leave(self, channel: str, user: str, *, deliver: bool = True) -> str:
        """Leave a channel, or be removed: the app too; give the event's ts."""
        place, event_ts = self._channel(channel), self.service.space.next_ts()
        place.members.remove(user)
        self.service.journal.enter("person", "leave", channel, ts=event_ts, user=user, is_delivered=deliver)
        moved = events.moved(place, user, is_joining=False, event_ts=event_ts)
        self.service.tell([moved], is_delivered=deliver)
        return event_ts

    async def archive(self, channel: str, user: str, *, deliver: bool = True) -> str:
        """Put a channel away; give the event's ts."""
        place, event_ts = self._channel(channel), self.service.space.next_ts()
        place.is_archived = True
        self.service.journal.enter("person", "archive", channel, ts=event_ts, user=user, is_delivered=deliver)
        self.service.tell([events.archived(place, user, event_ts=event_ts)], is_delivered=deliver)
        return event_ts

    async def upload(
        self,
        channel: str,
        user: str,
        name: str,
        content: bytes,
        *,
        text: str = "",
        thread_ts: str | None = None,
        is_connect: bool = False,
        deliver: bool = True,
    ) -> str:
        """Share a file with a text; give the message's ts."""
        space = self.service.space
        made, mimetype = int(space.clock.now()), guess_type(name)[0] or "application/octet-stream"
        file = File(space.next_id("F"), name, content, mimetype, user, made, is_connect)
        space.files[file.id] = file
        return await self.say(channel, user, text, thread_ts=thread_ts, files=[file.id], deliver=deliver)

    async def describe(self, file: str, fields: Mapping[str, Any]) -> str:
        """Change what Slack says of a file; give its id."""
        self.service.space.files[file].fields = dict(fields)
        return file

    async def slash(self, channel: str, user: str, command: str, text: str = "") -> str:
        """Give a command; return its trigger id. In threads there are none (python-slack-sdk#1570)."""
        place, who, trigger_id = self._channel(channel), self.service.space.users[user], self._trigger_id()
        payload = {
            "token": "verification",
            "team_id": TEAM,
            "team_domain": "loopback",
            "channel_id": place.id,
            "channel_name": "directmessage" if place.kind == "im" else place.name,
            "user_id": user,
            "user_name": who.name,
            "command": command,
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": self.service.response_url(place.id, user),
            "trigger_id": trigger_id,
        }
        if self.service.settings.is_sparing:
            payload = events.spared(payload)
        self.service.journal.enter("person", "slash", channel, ts=trigger_id, user=user, text=f"{command} {text}")
        self.service.post.bring(Parcel("slash_commands", payload, command, channel, trigger_id))
        return trigger_id

    async def click(self, channel: str, ts: str, user: str, action_id: str, value: str = "") -> str:
        """Press a button on a message; return the trigger id. An empty `ts` means the App Home."""
        who, trigger_id = self.service.space.users[user], self._trigger_id()
        action = {"type": "button", "action_id": action_id, "block_id": "b", "value": value}
        payload: dict[str, Any] = {
            "type": "block_actions",
            "team": {"id": TEAM, "domain": "loopback"},
            "user": {"id": user, "username": who.name, "name": who.name, "team_id": who.team},
            "api_app_id": APP,
            "token": "verification",
            "trigger_id": trigger_id,
            "actions": [action | {"action_ts": self.service.space.next_ts()}],
        }
        if ts:
            place, message = self._channel(channel), self._message(channel, ts)
            payload |= {
                "container": {"type": "message", "message_ts": ts, "channel_id": place.id, "is_ephemeral": False},
                "channel": {"id": place.id, "name": place.name or "directmessage"},
                "message": self.service.snapshot(message),
                "response_url": self.service.response_url(place.id, user, ts),
            }
        else:
            payload |= {"container": {"type": "view"}, "view": self.service.space.homes.get(user)}
        self.service.journal.enter("person", "click", channel, ts=ts, user=user, text=action_id)
        self.service.post.bring(Parcel("interactive", payload, action_id, channel, ts))
        return trigger_id

    async def open_home(self, user: str) -> str:
        """Look at the App Home; give the event's ts."""
        event_ts = self.service.space.next_ts()
        view = self.service.space.homes.get(user)
        channel = self.service.space.dm(user)
        self.service.tell([events.opened_home(channel, user, view, event_ts=event_ts)])
        return event_ts

    def _channel(self, name: str) -> Channel:
        return self.service.space.channels[name]

    def _message(self, channel: str, ts: str) -> Message:
        message = self._channel(channel).find(ts)
        if message is None:
            raise LookupError(f"no message {ts} in {channel}")
        return message

    def _trigger_id(self) -> str:
        return f"{self.service.space.next_id('')}.{TEAM}.{uuid4().hex}"

    def _enter(self, kind: Any, message: Message, user: str, *, is_delivered: bool = True) -> None:
        self.service.journal.enter(
            "person",
            kind,
            message.channel,
            ts=message.ts,
            thread_ts=message.thread_ts,
            user=user,
            text=message.text,
            is_delivered=is_delivered,
        )
