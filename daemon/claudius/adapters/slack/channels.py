"""What Slack tells of a channel: who is in it, and whether we hear it.

Source: the chat design, section 1.7; the design of daimons, section 9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.slack.hearing import NETWORK, Us
from claudius.adapters.slack.refusals import FAILURES, classify, code_of
from claudius.errors import DeliveryRefused

MOST_PAGES = 20
PATIENCE_S = 2.0
"""Whoever asks waits no longer for what Slack says."""
REINSTALL = "the app lacks the scope {} (compare its manifest with `claudius slack manifest`, and reinstall it)"
ABSENT = frozenset({"not_in_channel", "channel_not_found"})
"""How Slack says that we are not there; of a private channel it does not even say that it exists."""


class Channels:
    """The channels of one workspace."""

    def __init__(self, client: AsyncWebClient, us: Us) -> None:
        """Ask `client`."""
        self._client, self._us = client, us

    async def members(self, audience: str) -> Sequence[str] | None:
        """Return who is in a channel now; None where Slack does not tell. Raises: ConnectionError where not now."""
        team, _, channel = audience.removeprefix(f"shared:{NETWORK}:").partition(":")
        if team != self._us.team:
            return None
        found: list[str] = []
        cursor = ""
        for _ in range(MOST_PAGES):
            try:
                page = await self._client.conversations_members(channel=channel, limit=1000, cursor=cursor or None)
            except FAILURES as error:
                if isinstance(classify(error), DeliveryRefused):
                    return None
                raise ConnectionError("the members are not known") from error
            found += page.get("members") or ()
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return [f"{NETWORK}:{team}:{user}" for user in found if user != self._us.user]
        return None

    async def lacks(self, channel: str) -> str:
        """Tell in words what keeps us from hearing a channel; empty = nothing that Slack tells. Never raises."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._client.conversations_history(channel=channel, limit=1)
        except FAILURES as error:
            code = code_of(error)
            if code in ABSENT:
                return "I am not in this channel; invite me"
            needed = getattr(getattr(error, "response", None), "data", {}).get("needed") if code else ""
            return REINSTALL.format(needed or "channels:history") if code == "missing_scope" else ""
        return ""
