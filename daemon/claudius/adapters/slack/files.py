"""Files of Slack: fetched with the bot's token, from where Slack keeps them alone.

Source: docs.slack.dev/reference/objects/file-object; the chat design, section 6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.downloading import download, hosts_of
from claudius.adapters.slack.refusals import FAILURES
from claudius.runtime.adapter import Fetched

KNOWN: Mapping[str, Collection[str]] = {"slack.com": ("files.slack.com",)}


async def fetch(client: AsyncWebClient, file: Mapping[str, Any], most_bytes: int) -> Fetched:
    """Return a file that a message named. Raises: ValueError, OSError."""
    name, kind, url = (str(file.get(key) or "") for key in ("name", "type", "url"))
    try:
        if not url:  # it comes through Slack Connect: its event tells nothing but the id
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
