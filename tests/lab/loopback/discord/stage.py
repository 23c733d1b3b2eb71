"""Sets the stage: who is there, which channels, what is allowed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.loopback.discord import events
from lab.loopback.discord.limits import Limit
from lab.loopback.discord.permissions import Overwrite, Role, bits
from lab.loopback.discord.service import Service
from lab.loopback.discord.state import BOT_USER, GUILD, Channel, ChannelKind, Member, User, Webhook


@dataclass(frozen=True)
class Stage:
    """What a test sets up."""

    service: Service

    async def add_user(self, user: str, name: str, *, guilds: Sequence[str] = (GUILD,), **facts: Any) -> str:
        """Let a person exist and be in these guilds, silently; facts are the fields of `User`."""
        self.service.space.users[user] = User(user, name, **facts)
        for guild in guilds:
            self.service.space.guilds[guild].members.setdefault(user, Member(user))
        return user

    async def add_guild(self, guild: str, name: str, owner: str, members: Sequence[str] = ()) -> str:
        """Found a guild, silently; our bot comes in by `join`, or stands among the members."""
        self.service.space.add_guild(guild, name, owner, [owner, *members])
        return guild

    async def prefer(self, guild: str, locale: str) -> None:
        """Set the language of a guild, silently: before anybody logs in."""
        self.service.space.guilds[guild].locale = locale

    async def add_channel(self, channel: str, name: str = "", *, kind: ChannelKind = "text", guild: str = GUILD) -> str:
        """Make a channel."""
        made = self.service.space.channels[channel] = Channel(channel, kind, name or f"channel-{channel}", guild)
        self.service.post.bring([events.placed(self.service.shapes, made, "CREATE")])
        return channel

    async def delete_channel(self, channel: str) -> None:
        """Take a channel away, with its threads."""
        space = self.service.space
        gone = space.channels.pop(channel)
        for thread in [one.id for one in space.channels.values() if one.parent == channel]:
            del space.channels[thread]
        self.service.post.bring([events.placed(self.service.shapes, gone, "DELETE")])

    async def open_dm(self, user: str) -> str:
        """Give the DM of the app and a person."""
        return self.service.space.dm(user).id

    async def add_webhook(self, channel: str, name: str) -> str:
        """Make a webhook; give its id, by which it speaks."""
        hook = Webhook(self.service.space.next_id(), channel, name)
        self.service.space.webhooks[hook.id] = hook
        return hook.id

    async def add_role(self, guild: str, name: str, permissions: Sequence[str] = (), users: Sequence[str] = ()) -> str:
        """Make a role with these permissions and give it to these members; give its id."""
        where = self.service.space.guilds[guild]
        role = Role(self.service.space.next_id(), name, bits(permissions), len(where.roles))
        where.roles[role.id] = role
        told = [events.role_changed(where, role, "CREATE")]
        for user in users:
            where.members[user].roles.append(role.id)
            told.append(events.member_changed(self.service.shapes, where, user))
        self.service.post.bring(told)
        return role.id

    async def permit(self, guild: str, permissions: Sequence[str], *, role: str = "") -> None:
        """Set what a role may do; without one, everyone."""
        where = self.service.space.guilds[guild]
        found = where.roles[role or guild]
        found.permissions = bits(permissions)
        self.service.post.bring([events.role_changed(where, found, "UPDATE")])

    async def overwrite(
        self, channel: str, target: str = BOT_USER, *, allow: Sequence[str] = (), deny: Sequence[str] = ()
    ) -> None:
        """Set what a channel allows and denies to a role or a member."""
        place = self.service.space.channels[channel]
        is_role = target in self.service.space.guilds[place.guild or ""].roles
        place.overwrites[target] = Overwrite(target, is_role, bits(allow), bits(deny))
        self.service.post.bring([events.placed(self.service.shapes, place, "UPDATE")])

    async def set(self, **changes: Any) -> None:
        """Change settings; names are the fields of `Settings`."""
        for name, value in changes.items():
            setattr(self.service.settings, name, value)

    async def shift_clock(self, ahead_s: float) -> None:
        """Put the server's clock forward; heartbeats keep their own time."""
        self.service.space.clock.ahead_s += ahead_s

    async def revoke(self) -> None:
        """Take the bot's token back: every socket is closed with 4004, and every call is refused."""
        self.service.space.token = f"revoked.{self.service.space.next_id()}"
        self.service.sessions.open.clear()
        await self.service.gateway.each(lambda socket: socket.close(4004))

    async def limit(self, route: str, calls: int, within_s: float) -> None:
        """Set how often a route may be called, and have limits held."""
        self.service.limits.set_instead[route] = Limit(calls, within_s)
        self.service.settings.has_rate_limits = True
