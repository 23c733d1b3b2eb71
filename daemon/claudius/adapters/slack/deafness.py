"""Connected, yet deaf: where nothing comes for a while, the history is asked whether something should have come.

Source: the chat design, section 1.6 (OpenClaw #17216, #109062, #128809). A quiet workspace restarts nothing.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.reached import Reached
from claudius.adapters.slack.hearing import Us, is_ours
from claudius.adapters.slack.refusals import FAILURES, code_of
from claudius.adapters.slack.watch import Patience

LOOKED_AT = 20
"""So many of the newest messages are looked at: some are our own."""

log = logging.getLogger("claudius.slack.deafness")


class Probe:
    """Compares the newest message of the channel that was last heard with the last one that came."""

    def __init__(self, client: AsyncWebClient, us: Us, reached: Reached, patience: Patience) -> None:
        """Ask through `client` what `reached` should know."""
        self._client, self._us, self._reached, self._patience = client, us, reached, patience
        self._event_at: float | None = None
        self._asked_at = monotonic()

    def heard(self) -> None:
        """Note that an event came."""
        self._event_at = self._asked_at = monotonic()

    async def __call__(self) -> bool:
        """Tell whether something was said that did not come; asked seldom, and only where somebody spoke of late."""
        now = monotonic()
        if self._event_at is None or now - self._event_at > self._patience.spoke_s or not self._reached.newest:
            return False
        if now - self._asked_at < self._patience.deaf_s:
            return False
        self._asked_at = now
        channel = next(reversed(self._reached.newest))
        if not await self._is_ahead(channel):
            return False
        before = self._event_at
        await asyncio.sleep(self._patience.arrives_s)
        return self._event_at == before and await self._is_ahead(channel)

    async def _is_ahead(self, channel: str) -> bool:
        try:
            page = await self._client.conversations_history(channel=channel, limit=LOOKED_AT)
        except FAILURES as error:
            log.info("not asked whether we are deaf", extra={"error": code_of(error) or repr(error)})
            return False
        # what we said since hides nothing that others said before it
        others = (one for one in page.get("messages") or () if not is_ours(one, self._us))
        newest = max((str(message.get("ts", "")) for message in others), default="")
        return newest > self._reached.newest.get(channel, "")
