"""Who may talk, and what a message may be owed: decided from structure alone, before any row or model call.

Source: the security design, section 4; the chat design, section 4.
"""

from __future__ import annotations

from msgspec.structs import replace

from claudius.config import Config
from claudius.perception import Following, Kind, Origin, Perception, Place, Standing

EVERYWHERE = "*"
DIRECT = "@me"
"""The workspace of Discord's direct messages."""
PAIRED = "paired"
"""Set on what a person says who was let in by a code."""


def admit(perception: Perception, config: Config) -> Perception | None:
    """Return a perception as it may come in, or None where its speaker or place is not heard. Pure."""
    if perception.origin is Origin.INTERNAL:
        return perception
    # a deletion: networks do not say whose hand it was, and nothing comes in by it
    if perception.kind is not Kind.DELETE and not _may_talk(perception, config):
        return None
    if perception.kind not in (Kind.MESSAGE, Kind.MENTION, Kind.COMMAND):
        return replace(perception, owes=False)
    if perception.audience.startswith("private:") or perception.kind is not Kind.MESSAGE:
        return perception
    return _overheard(perception, config)


def _may_talk(perception: Perception, config: Config) -> bool:
    if perception.standing is not Standing.MEMBER or not _is_in_allowed_guild(perception, config):
        return False
    return not perception.is_bot or _is_allowed_bot(perception.person, config)


def _overheard(perception: Perception, config: Config) -> Perception:
    """Say what becomes of channel talk that names nobody, or another."""
    place = Place.of(perception.conversation)
    is_kept = _hears_channel(place, config)
    follows = config.runtime.follow == "thread" and bool(place.thread) and not perception.to_other
    return replace(
        perception,
        owes=follows,
        following=Following.KEPT if is_kept or config.runtime.follow == "listen" else Following.DROPPED,
    )


def _hears_channel(place: Place, config: Config) -> bool:
    channels = {"slack": config.slack.channels, "discord": config.discord.channels}.get(place.network, ())
    return EVERYWHERE in channels or place.channel in channels


def _is_in_allowed_guild(perception: Perception, config: Config) -> bool:
    """On Discord: said in an allowed guild, or directly by somebody who shares one. An empty list admits nobody."""
    place, allowed = Place.of(perception.conversation), config.discord.guilds
    if place.network != "discord":
        return True
    if place.workspace == DIRECT and perception.extra.get(PAIRED) is True:
        return True
    guilds = perception.extra.get("guilds", ()) if place.workspace == DIRECT else (place.workspace,)
    return bool(guilds) and (EVERYWHERE in allowed or any(guild in allowed for guild in guilds))


def _is_allowed_bot(person: str, config: Config) -> bool:
    return EVERYWHERE in config.bots.allow or person in config.bots.allow
