"""Define the owner's settings for Discord."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True):
    """The owner's settings."""

    token: str
    api_url: str
    gateway_url: str
    guilds: tuple[str, ...] = ()
    """The guilds whose members are heard. * = every guild."""
    is_typing_shown: bool = True
