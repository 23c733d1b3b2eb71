"""Define the owner's settings for Slack."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True):
    """The owner's settings."""

    bot_token: str
    app_token: str
    api_url: str
    status: str = ""
    """Shown beside our name while the soul thinks. Empty = no typing indicator."""
