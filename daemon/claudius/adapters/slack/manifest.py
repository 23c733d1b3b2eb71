"""Build the app manifest: everything that Slack must know to let Claudius hear and speak.

Pure. Slack's form accepts it unchanged.

Source: docs.slack.dev/reference/app-manifest; the chat design, section 1.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCOPES: Mapping[str, str] = {
    "app_mentions:read": "hear that it is mentioned",
    "channels:history": "hear and read the public channels that it is in",
    "groups:history": "the private ones",
    "im:history": "direct messages",
    "mpim:history": "group messages",
    "channels:read": "see who is in a public channel",
    "groups:read": "in a private one",
    "im:read": "in a direct message",
    "mpim:read": "in a group message",
    "im:write": "begin a direct message",
    "users:read": "see names, and who is a guest",
    "chat:write": "speak, and show that it thinks",
    "commands": "take slash commands",
    "reactions:read": "see reactions",
    "reactions:write": "show that it thinks, in a direct message",
    "files:read": "read files that it is shown",
}
"""What the bot may do, and why."""

EVENTS = (
    "app_mention",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
    "member_joined_channel",
    "member_left_channel",
    "channel_left",
    "group_left",
    "channel_archive",
    "group_archive",
    "app_home_opened",
    "tokens_revoked",
    "app_uninstalled",
)

COMMANDS: Mapping[str, tuple[str, str]] = {
    "/claudius": ("your own memory: what I know of you, and why I said something", "whoami | why | forget me"),
    "/ensoul": ("whether I listen in this channel", "on | off | listen | status"),
}
"""Each slash command, with its purpose and its usage."""


def manifest(name: str = "Claudius") -> dict[str, Any]:
    """Return the manifest of an app of that name. Pure."""
    return {
        "_metadata": {"major_version": 1},
        "display_information": {
            "name": name,
            "description": "A soul that lives in your chat.",
            "background_color": "#2b2a33",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": True},
            "slash_commands": [
                {"command": command, "description": about, "usage_hint": usage, "should_escape": True}
                for command, (about, usage) in COMMANDS.items()
            ],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True},
            "org_deploy_enabled": False,
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }
