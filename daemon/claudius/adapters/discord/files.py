"""Files of Discord: their signed links run out, so that a message is read again for a new one.

Source: docs.discord.com/developers/reference, "Signed Attachment CDN URLs"; the chat design, section 6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import discord

from claudius.adapters.discord.refusals import FAILURES
from claudius.adapters.downloading import download, hosts_of
from claudius.runtime.adapter import Fetched

KNOWN: Mapping[str, Collection[str]] = {"discord.com": ("cdn.discordapp.com", "media.discordapp.net")}


async def fetch(client: discord.Client, api_url: str, file: Mapping[str, Any], most_bytes: int) -> Fetched:
    """Return a file that a message named. Raises: ValueError, OSError."""
    hosts = hosts_of(api_url, KNOWN)
    try:
        try:
            content, _ = await download(str(file.get("url")), most_bytes, hosts)
        except FileNotFoundError:
            content, _ = await download(await _anew(client, file), most_bytes, hosts)
    except ValueError:  # it is too large
        raise
    except FAILURES as error:
        raise error if isinstance(error, OSError) else ConnectionError(type(error).__name__) from error
    return Fetched(content, str(file.get("name")), str(file.get("type")))


async def _anew(client: discord.Client, file: Mapping[str, Any]) -> str:
    """Return a new link to a file. Raises: FileNotFoundError, and as a call does."""
    message = await client.http.get_message(int(file["channel"]), int(file["message"]))
    for one in message["attachments"]:
        if str(one["id"]) == str(file["id"]):
            return one["url"]
    raise FileNotFoundError("the message holds it no more")
