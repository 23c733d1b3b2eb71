"""Commands and buttons, as a person uses them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.loopback.discord.events import Event
from lab.loopback.discord.interactions import Interaction
from lab.loopback.discord.rules import allowed
from lab.loopback.discord.service import Service
from lab.loopback.discord.state import APP, BOT_USER, Channel, Message

COMMAND, COMPONENT = 2, 3
BUTTON = 2
_SUBCOMMANDS = (1, 2)


@dataclass(frozen=True)
class Pressing:
    """What a person does besides talking."""

    service: Service

    async def slash(
        self, channel: str, user: str, command: str, options: Mapping[str, Any] | None = None, *, deliver: bool = True
    ) -> str:
        """Give a command that the app registered, as in `claudius` or `/claudius forget me`; give the interaction's id.

        Raises: LookupError: it is not registered here, or has no such part.
        """
        place = self.service.space.channels[channel]
        name, *parts = command.split()
        found = self._registered(place, name)
        data = {"id": found["id"], "name": name, "type": 1} | _chosen(found, parts, options or {})
        if "guild_id" in found:
            data["guild_id"] = found["guild_id"]
        one = self.service.interactions.begin(self.service.space.next_id(), COMMAND, user, place, command)
        self._tell(one, data, deliver=deliver)
        self.service.journal.enter(
            "person", "slash", channel, user=user, text=command, reference=one.id, is_delivered=deliver
        )
        return one.id

    async def press(self, channel: str, message: str, user: str, custom_id: str, *, deliver: bool = True) -> str:
        """Press a button on a message; give the interaction's id. An id that no button has is a forged one."""
        place = self.service.space.channels[channel]
        found = place.find(message)
        if found is None:
            raise LookupError(f"no message {message} in {channel}")
        one = self.service.interactions.begin(self.service.space.next_id(), COMPONENT, user, place, custom_id)
        self._tell(one, {"custom_id": custom_id, "component_type": BUTTON}, deliver=deliver, message=found)
        self.service.journal.enter(
            "person",
            "press",
            channel,
            message=message,
            user=user,
            text=custom_id,
            reference=one.id,
            is_delivered=deliver,
        )
        return one.id

    def _registered(self, place: Channel, name: str) -> dict[str, Any]:
        commands = self.service.space.commands
        for one in [*commands.get(place.guild or "-", []), *commands.get("", [])]:
            if one["name"] == name and one["type"] == 1:
                return one
        raise LookupError(f"no command {name!r} is registered here")

    def _tell(self, one: Interaction, data: dict[str, Any], *, deliver: bool, message: Message | None = None) -> None:
        service, place = self.service, one.channel
        body: dict[str, Any] = {
            "id": one.id,
            "application_id": APP,
            "type": one.kind,
            "data": data,
            "channel_id": place.id,
            "channel": service.shapes.channel(place),
            "token": one.token,
            "version": 1,
            "locale": service.space.users[one.user].locale,
            "app_permissions": str(allowed(service.space, BOT_USER, place)),
            "entitlements": [],
            "authorizing_integration_owners": {"0": place.guild or "0"},
            "context": 0 if place.guild else 1,
            "attachment_size_limit": 10 * 1024 * 1024,
        }
        if message:
            body["message"] = service.shapes.message(message)
        if place.guild:
            guild = service.space.guilds[place.guild]
            member = service.shapes.member(guild, guild.members[one.user])
            rights = {"permissions": str(allowed(service.space, one.user, place))}
            body |= {"guild_id": guild.id, "guild_locale": guild.locale, "member": member | rights}
            body["guild"] = {"id": guild.id, "locale": guild.locale, "features": []}
        else:
            body["user"] = service.shapes.user(one.user)
        # No intent is asked for, and no view of the channel.
        service.post.bring([Event("INTERACTION_CREATE", body)], is_delivered=deliver)


def _chosen(command: Mapping[str, Any], parts: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Write what was chosen: subcommands within one another, the options innermost."""
    known = {one["name"]: one for one in command.get("options") or []}
    if parts:
        part = known.get(parts[0])
        if part is None or part["type"] not in _SUBCOMMANDS:
            raise LookupError(f"the command has no part {parts[0]!r}")
        return {"options": [{"name": parts[0], "type": part["type"], **_chosen(part, parts[1:], options)}]}
    if unknown := options.keys() - known.keys():
        raise LookupError(f"the command has no option {min(unknown)!r}")
    chosen = [{"name": name, "type": known[name]["type"], "value": value} for name, value in options.items()]
    return {"options": chosen} if chosen else {}
