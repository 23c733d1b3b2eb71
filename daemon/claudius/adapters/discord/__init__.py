"""The Discord adapter.

`incoming` converts messages, `gateway` runs and watches the connection, and the other modules are named after what they
do.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from claudius.config.load import Loaded
from claudius.errors import ClaudiusError

if TYPE_CHECKING:
    from claudius.adapters.discord.adapter import DiscordAdapter


def build(loaded: Loaded, clock: Callable[[], datetime]) -> DiscordAdapter:
    """Build the adapter. Raises: ClaudiusError if discord.py is not installed."""
    try:
        from claudius.adapters.discord.adapter import DiscordAdapter, DiscordOptions  # noqa: PLC0415 - an invite link needs no library
    except ModuleNotFoundError as error:
        raise ClaudiusError(
            f"discord needs the package {error.name!r}: run ./setup.sh, or pip install 'claudius-daemon[discord]'"
        ) from error
    settings = loaded.config.discord
    options = DiscordOptions(
        token=loaded.secret("DISCORD_TOKEN"),
        api_url=settings.api_url.rstrip("/"),
        gateway_url=settings.gateway_url,
        guilds=settings.guilds,
        is_typing_shown=settings.typing,
    )
    return DiscordAdapter(options, clock)
