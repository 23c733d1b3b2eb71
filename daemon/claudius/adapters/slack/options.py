"""What the owner set for Slack."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True):
    """What the owner set."""

    bot_token: str
    app_token: str
    api_url: str
    status: str = ""
    """Shown beside our name while the soul thinks; empty = no sign."""
