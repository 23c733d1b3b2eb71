"""Read and write Slack's message text, and fetch its files.

Files are fetched with the bot's token, only from Slack's own file hosts.

Source: docs.slack.dev/reference/objects/file-object; the chat design, section 6.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aiohttp
from msgspec import Struct, field
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.incoming import MentionSyntax, download, hosts_of
from claudius.adapters.slack.shown import heard_in
from claudius.adapters.slack.web_api import FAILURES
from claudius.runtime.adapter import Fetched

KNOWN: Mapping[str, Collection[str]] = {"slack.com": ("files.slack.com",)}


async def fetch(client: AsyncWebClient, file: Mapping[str, Any], most_bytes: int) -> Fetched:
    """Return a file that a message named. Raises: ValueError, OSError."""
    name, kind, url = (str(file.get(key) or "") for key in ("name", "type", "url"))
    try:
        if not url:  # it comes through Slack Connect, where the event holds only the id
            answer = await client.files_info(file=str(file.get("id")))
            known = answer.get("file") or {}
            name, kind, url = (str(known.get(key) or "") for key in ("name", "mimetype", "url_private_download"))
        token = {"Authorization": f"Bearer {client.token}"}
        content, is_kind = await download(url, most_bytes, hosts_of(client.base_url, KNOWN), token)
    except (*FAILURES, aiohttp.ClientError) as error:
        raise error if isinstance(error, OSError) else ConnectionError(type(error).__name__) from error
    if is_kind == "text/html" and kind != "text/html":
        raise PermissionError("Slack shows its sign-in page: is the scope files:read granted?")
    return Fetched(content, name, kind)


async def transcribed(client: AsyncWebClient, file: Mapping[str, Any], pauses_s: Sequence[float]) -> Mapping[str, Any]:
    """Return a clip with what Slack heard in it, looking again after each pause. Raises: OSError."""
    for pause_s in pauses_s if file.get("is_awaited") else ():
        await asyncio.sleep(pause_s)
        try:
            answer = await client.files_info(file=str(file.get("id")))
        except FAILURES as error:
            raise error if isinstance(error, OSError) else ConnectionError(type(error).__name__) from error
        file = {**file, "is_awaited": False, **heard_in(answer.get("file") or {})}
        if not file["is_awaited"]:
            break
    return file


_ENTITY = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_TOKEN = re.compile(r"<([^<>]*)>|&(?:lt|gt|amp);")
MENTIONS = MentionSyntax(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")


class Read(Struct, frozen=True):
    """A text as people see it, and the users that it mentions."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)
    """The name of each mentioned user, by id."""


def read(raw: str, us: str, names: Mapping[str, str]) -> Read:
    """Decode a raw text: entities once, mentions as `@name`, links as label and address. Pure.

    A leading mention of us (`us`) is removed. A user without a name in `names` is shown by id.
    """
    seen: dict[str, str] = {}

    def shown(found: re.Match[str]) -> str:
        inner = found[1]
        if inner is None:
            return _ENTITY[found[0]]
        if inner.startswith("@"):
            user, _, label = inner[1:].partition("|")
            seen[user] = names.get(user) or _decoded(label) or user
            return "@" + seen[user]
        return _special(inner)

    return Read(_TOKEN.sub(shown, MENTIONS.without(us, raw)), seen)


def _special(inner: str) -> str:
    what, _, label = inner.partition("|")
    label = _decoded(label)
    match what[:1]:
        case "#":
            return "#" + (label or what[1:])
        case "!":
            return label if what.startswith("!date^") else "@" + (label.lstrip("@") or what[1:].partition("^")[0])
        case _:
            address = _decoded(what)
            plain = re.sub(r"^(?:mailto:|tel:|https?://)", "", address).rstrip("/")
            return address if label in ("", address) else label if label == plain else f"{label} ({address})"


def _decoded(text: str) -> str:
    return re.sub(r"&(?:lt|gt|amp);", lambda found: _ENTITY[found[0]], text)


_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_STYLES = (
    (re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE), r"*\1*"),
    (re.compile(r"\*\*(?=\S)([^\n]+?)(?<=\S)\*\*"), r"*\1*"),
    (re.compile(r"~~(?=\S)([^\n]+?)(?<=\S)~~"), r"~\1~"),
    (re.compile(r"\[([^\[\]\n]{1,300})\]\(([a-z]{2,8}:[^()\s|]{1,2000})\)"), r"<\2|\1>"),
    (re.compile(r"^([ \t]*)[-*+][ \t]+", re.MULTILINE), r"\1• "),
)


def mrkdwn(markdown: str) -> str:
    """Return Markdown in Slack's older mrkdwn format, for a server that does not know `markdown_text`. Pure."""
    escaped = markdown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    parts = _CODE.split(re.sub(r"^&gt; ?", "> ", escaped, flags=re.MULTILINE))
    return "".join(re.sub(r"^```\w+\n", "```\n", part) if n % 2 else _styled(part) for n, part in enumerate(parts))


def _styled(text: str) -> str:
    for pattern, instead in _STYLES:
        text = pattern.sub(instead, text)
    return text
