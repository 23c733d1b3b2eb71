"""Connected, yet deaf: where nothing comes for a while, the history is asked whether something should have come.

Source: the chat design, section 1.6 (OpenClaw #17216, #109062, #128809). A quiet workspace restarts nothing.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic, time

from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.reached import Reached
from claudius.adapters.slack.hearing import Said, Us, from_history
from claudius.adapters.slack.refusals import FAILURES, code_of
from claudius.adapters.slack.watch import Patience

LOOKED_AT = 50
"""So many of the newest messages are looked at, with the newest word in the thread of each."""
A_WHILE = 20
"""So many channels are asked at most within the time after which one counts as silent."""
ANSWERS_S = 5.0
"""So long the watch over the socket stands still for an answer."""

log = logging.getLogger("claudius.slack.deafness")


class Probe:
    """Compares the history of channels where somebody spoke of late with what came of them."""

    def __init__(self, client: AsyncWebClient, us: Us, reached: Reached, patience: Patience) -> None:
        """Ask through `client` what `reached` should know."""
        self._client, self._us, self._reached, self._patience = client, us, reached, patience
        self._began_at = self._asked_at = self._heard_at = monotonic()
        self._silent_since: dict[str, float] = {}

    def heard(self, channel: str) -> None:
        """Note that something came from a channel."""
        self._heard_at = self._silent_since[channel] = monotonic()

    async def __call__(self) -> float | None:
        """Return for how many seconds nothing came at all, where something was said that did not come; else None.

        Asked seldom, and only of channels where somebody spoke of late.
        """
        now = monotonic()
        channel = self._silent(now)
        if not channel or now - self._asked_at < self._patience.deaf_s / A_WHILE:
            return None
        self._asked_at = self._silent_since[channel] = now
        if not await self._missing(channel):
            return None
        await asyncio.sleep(self._patience.arrives_s)
        missing = await self._missing(channel)
        for ts in missing:
            self._reached.known(channel, ts)  # told once: whoever reads the history now finds it, or nobody will
        return monotonic() - self._heard_at if missing else None

    def _silent(self, now: float) -> str:
        """Return the channel that is silent for longest, of those where somebody spoke of late; empty = none."""
        spoke_after = f"{time() - self._patience.spoke_s:.6f}"
        silent = {
            channel: since
            for channel, newest in reversed(self._reached.newest.items())
            if newest > spoke_after
            and now - (since := self._silent_since.get(channel, self._began_at)) >= self._patience.deaf_s
        }
        return min(silent, key=lambda channel: silent[channel], default="")

    async def _missing(self, channel: str) -> list[str]:
        """Return what the history holds of others, and what threads end with, that did not come."""
        try:
            async with asyncio.timeout(ANSWERS_S):
                page = await self._client.conversations_history(channel=channel, limit=LOOKED_AT)
        except FAILURES as error:
            self._asked_at = monotonic() + self._patience.deaf_s  # nobody is pressed for what is only a precaution
            log.info("not asked whether we are deaf", extra={"error": code_of(error) or repr(error)})
            return []
        found: list[str] = []
        for message in page.get("messages") or ():
            if isinstance(from_history(message, channel, self._us), Said):  # what we said since hides nothing
                found.append(str(message["ts"]))
            if last := message.get("latest_reply"):
                found.append(str(last))
        return [ts for ts in found if not self._reached.has(channel, ts)]
