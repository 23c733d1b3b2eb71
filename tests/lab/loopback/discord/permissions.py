"""Who may do what in a channel. Pure.

Source: docs.discord.com/developers/topics/permissions, whose algorithm this is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

BITS = {
    "administrator": 1 << 3,
    "manage_channels": 1 << 4,
    "add_reactions": 1 << 6,
    "view_channel": 1 << 10,
    "send_messages": 1 << 11,
    "manage_messages": 1 << 13,
    "embed_links": 1 << 14,
    "attach_files": 1 << 15,
    "read_message_history": 1 << 16,
    "mention_everyone": 1 << 17,
    "use_application_commands": 1 << 31,
    "manage_threads": 1 << 34,
    "create_public_threads": 1 << 35,
    "create_private_threads": 1 << 36,
    "send_messages_in_threads": 1 << 38,
}
Permission = Literal[
    "administrator", "manage_channels", "add_reactions", "view_channel", "send_messages", "manage_messages",
    "embed_links", "attach_files", "read_message_history", "mention_everyone", "use_application_commands",
    "manage_threads", "create_public_threads", "create_private_threads", "send_messages_in_threads",
]  # fmt: skip

ALL = sum(BITS.values())
MODERATION = ("administrator", "manage_channels", "manage_messages", "manage_threads", "mention_everyone")
EVERYONE = ALL & ~sum(BITS[name] for name in MODERATION)
"""What everyone may at first."""


@dataclass(slots=True)
class Role:
    """A role of a guild."""

    id: str
    name: str
    permissions: int = 0
    position: int = 0


@dataclass(slots=True)
class Overwrite:
    """What a channel allows and denies to a role or a member."""

    id: str
    is_role: bool
    allow: int = 0
    deny: int = 0


def bits(names: Iterable[str]) -> int:
    """Add up permissions. Raises: LookupError."""
    return sum(BITS[name] for name in set(names))


def granted(roles: Iterable[Role], *, is_owner: bool) -> int:
    """Give what a person may in the whole guild; `roles` are his, that of everyone among them."""
    base = 0
    for role in roles:
        base |= role.permissions
    return ALL if is_owner or base & BITS["administrator"] else base


def in_channel(base: int, user: str, guild: str, roles: Iterable[str], overwrites: Mapping[str, Overwrite]) -> int:
    """Narrow or widen what a person may, as a channel's overwrites say: everyone's, then the roles', then his own."""
    if base & BITS["administrator"]:
        return ALL
    if everyone := overwrites.get(guild):
        base = (base & ~everyone.deny) | everyone.allow
    allow = deny = 0
    for role in roles:
        if role != guild and (overwrite := overwrites.get(role)):
            allow |= overwrite.allow
            deny |= overwrite.deny
    base = (base & ~deny) | allow
    if own := overwrites.get(user):
        base = (base & ~own.deny) | own.allow
    return base
