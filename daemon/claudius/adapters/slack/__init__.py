"""The Slack adapter.

`incoming` converts events, `connection` runs and watches the socket, and the other modules are named after what they
do.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from claudius.config.load import Loaded
from claudius.errors import ClaudiusError

if TYPE_CHECKING:
    from claudius.adapters.slack.adapter import SlackAdapter


def build(loaded: Loaded, clock: Callable[[], datetime]) -> SlackAdapter:  # noqa: ARG001 - signature of every adapter
    """Build the adapter. Raises: ClaudiusError if slack-bolt is not installed."""
    try:
        from claudius.adapters.slack.adapter import SlackAdapter, SlackOptions  # noqa: PLC0415 - the manifest needs no bolt
    except ModuleNotFoundError as error:
        raise ClaudiusError(
            f"slack needs the package {error.name!r}: run ./setup.sh, or pip install 'claudius-daemon[slack]'"
        ) from error
    settings = loaded.config.slack
    return SlackAdapter(
        SlackOptions(
            bot_token=loaded.secret("SLACK_BOT_TOKEN"),
            app_token=loaded.secret("SLACK_APP_TOKEN"),
            api_url=settings.api_url.rstrip("/") + "/",
            status=settings.status,
        )
    )
