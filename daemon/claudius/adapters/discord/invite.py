"""The address at which an owner brings the bot into a guild. Pure.

Source: docs.discord.com/developers/topics/oauth2, "Bot Authorization Flow"; …/topics/permissions.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from urllib.parse import urlencode

PERMISSIONS = {
    "Add Reactions": 1 << 6,
    "View Channels": 1 << 10,
    "Send Messages": 1 << 11,
    "Read Message History": 1 << 16,
    "Create Public Threads": 1 << 35,
    "Send Messages in Threads": 1 << 38,
}
SCOPES = ("bot", "applications.commands")


def invite_url(application: str) -> str:
    """Return the address for an application's id."""
    query = {"client_id": application, "scope": " ".join(SCOPES), "permissions": str(sum(PERMISSIONS.values()))}
    return f"https://discord.com/oauth2/authorize?{urlencode(query)}"


def application_in(token: str) -> str:
    """Return the bot's id that stands in its token, the application's too since 2016; empty where there is none."""
    first = token.partition(".")[0]
    try:
        found = urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except ValueError:
        return ""
    return found if found.isdigit() and 17 <= len(found) <= 20 else ""
