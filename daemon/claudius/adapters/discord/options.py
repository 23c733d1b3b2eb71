"""What the owner set for Discord."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True):
    """What the owner set."""

    token: str
    api_url: str
    gateway_url: str
    guilds: tuple[str, ...] = ()
    """The guilds whose members are heard; * = every one."""
    is_typing_shown: bool = True
