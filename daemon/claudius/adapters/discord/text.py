"""Read Discord's message text and files.

Text is decoded to the form that people see. Signed file links expire, so the message is read again for a new link.

Source: docs.discord.com/developers/reference, "Signed Attachment CDN URLs"; the chat design, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import discord

from claudius.adapters.discord.api_errors import FAILURES
from claudius.adapters.incoming import MentionSyntax, download, hosts_of, unfetched
from claudius.runtime.adapter import Fetched

KNOWN: Mapping[str, Collection[str]] = {"discord.com": ("cdn.discordapp.com", "media.discordapp.net")}


async def fetch(client: discord.Client, api_url: str, file: Mapping[str, Any], most_bytes: int) -> Fetched:
    """Return a file that a message named. Raises: ValueError, OSError."""
    hosts = hosts_of(api_url, KNOWN)
    with unfetched(*FAILURES):
        try:
            content, _ = await download(str(file.get("url")), most_bytes, hosts)
        except FileNotFoundError:
            content, _ = await download(await _anew(client, file), most_bytes, hosts)
    return Fetched(content, str(file.get("name")), f"{file.get('type')};{file.get('with', '')}")


async def _anew(client: discord.Client, file: Mapping[str, Any]) -> str:
    """Return a new link to a file. Raises: FileNotFoundError, and what an API call raises."""
    message = await client.http.get_message(int(file["channel"]), int(file["message"]))
    for one in message["attachments"]:
        if str(one["id"]) == str(file["id"]):
            return one["url"]
    raise FileNotFoundError("the message holds it no more")


MENTIONS = MentionSyntax(r"<@!?(\d+)>")
_TOKEN = re.compile(r"<(?:(@!?|@&|#)(\d+)|a?(:\w+:)\d+|(/[^<>:]+):\d+)>")
_BLANKS = re.compile(r"\s+")
TITLE_CHARS = 40


def read(raw: str, us: str, names: Mapping[str, str]) -> str:
    """Return a raw text as people see it, with names for mentions and without a leading mention of us (`us`). Pure.

    `names` has the name of each user, channel and role by its id. An id without a name is shown as the id.
    """

    def shown(found: re.Match[str]) -> str:
        sigil, number, emoji, command = found.groups()
        if sigil:
            return ("#" if sigil == "#" else "@") + names.get(number, number)
        return str(emoji or command)

    return _TOKEN.sub(shown, MENTIONS.without(us, raw))


def title(text: str, instead: str) -> str:
    """Return a thread name for a text: its first characters on one line, or `instead` if there are none. Pure."""
    line = _BLANKS.sub(" ", "".join(char for char in text if char.isprintable() or char.isspace())).strip()
    return line[:TITLE_CHARS].strip() or instead
