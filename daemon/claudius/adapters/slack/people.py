"""Find out about Slack's people and channels: who somebody is, who is in a channel, and whether we hear it.

What Slack says of a person is fresh for ten minutes, and usable for a day while Slack cannot be asked.

Source: the chat design, section 1.7; the design of daimons, section 9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.caches import Lookups
from claudius.adapters.slack.incoming import NETWORK, SlackBot, Who, known
from claudius.adapters.slack.web_api import FAILURES, classify, code_of, next_cursor
from claudius.errors import DeliveryRefused
from claudius.foreign import unquoted
from claudius.perception import Standing
from claudius.prompt import valid

log = logging.getLogger(__name__)

MOST_PAGES = 20
ANSWER_S = 2.0
"""How long a caller waits for Slack's answer."""
REINSTALL = "the app lacks the scope {} (compare its manifest with `claudius slack manifest`, and reinstall it)"
ABSENT = frozenset({"not_in_channel", "channel_not_found"})
"""How Slack says that we are not in a channel. For a private one it does not even say that it exists."""


SMALL = 200
"""A workspace of up to this many members is loaded completely at the start."""
NOBODY = frozenset({"user_not_found", "user_not_visible"})


class SlackPeople(Lookups[Who]):
    """The people and channels of one workspace."""

    def __init__(self, client: AsyncWebClient, us: SlackBot) -> None:
        super().__init__()
        self._client, self._us = client, us
        self._is_filled = False
        self._places = Lookups[str]()

    async def place(self, channel: str) -> str:
        """Return what a channel is called, with its sign; "" for a direct message, or if Slack does not tell."""
        if channel.startswith("D"):
            return ""
        if (known := self._places.get(channel)) is None:
            await self._places.refresh((channel,), self._ask_place, ANSWER_S)
            known = self._places.get(channel)
        return known or ""

    async def close(self) -> None:
        """Cancel the questions that are still open, and wait until their tasks have ended."""
        await self._places.close()
        await super().close()

    async def _ask_place(self, channel: str) -> str:
        try:
            found = (await self._client.conversations_info(channel=channel)).get("channel") or {}
        except FAILURES as error:
            log.info("a channel is not known", extra={"channel": channel, "error": code_of(error) or unquoted(error)})
            return ""
        return valid(f"#{name}") if (name := str(found.get("name") or "")) and not found.get("is_mpim") else ""

    async def know(self, speaker: str, named: Sequence[str] = ()) -> dict[str, Who]:
        """Return what Slack says of a speaker, and of the mentioned users as far as it answers.

        Raises: TimeoutError if nothing is known of the speaker. An empty speaker needs no answer.
        """
        users = [user for user in dict.fromkeys((speaker, *named)) if user]
        await self.refresh(users, self._ask, ANSWER_S)
        found = {user: who for user in users if (who := self.get(user))}
        if speaker and speaker not in found:
            raise TimeoutError(f"Slack did not say who {speaker} is")
        return found

    async def fill(self) -> None:
        """Load a small workspace completely, once, so that nobody's first message waits. Never raises."""
        if self._is_filled:
            return
        self._is_filled = True
        try:
            answer = await self._client.users_list(limit=SMALL, include_locale=True)
        except FAILURES as error:
            self._is_filled = False
            log.info("members not listed", extra={"error": code_of(error) or unquoted(error)})
            return
        if not next_cursor(answer):
            for user in answer.get("members") or ():
                self.keep(str(user.get("id")), known(user, self._us))

    async def members(self, audience: str) -> Sequence[str] | None:
        """Return the person ids of the members of a shared audience, without our own, or None if Slack does not tell.

        It does not tell of a channel that we may not read, or that has more than MOST_PAGES pages of members.

        Raises: ConnectionError if it cannot be asked now.
        """
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
            cursor = next_cursor(page)
            if not cursor:
                return [f"{NETWORK}:{team}:{user}" for user in found if user != self._us.user]
        return None

    async def lacks(self, channel: str) -> str:
        """Return in words what keeps us from hearing a channel; empty = Slack reports nothing. Never raises."""
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._client.conversations_history(channel=channel, limit=1)
        except FAILURES as error:
            code = code_of(error)
            if code in ABSENT:
                return "I am not in this channel; invite me"
            needed = getattr(getattr(error, "response", None), "data", {}).get("needed") if code else ""
            return REINSTALL.format(needed or "channels:history") if code == "missing_scope" else ""
        return ""

    async def _ask(self, user: str) -> Who | None:
        try:
            answer = await self._client.users_info(user=user, include_locale=True)
        except FAILURES as error:
            if code_of(error) in NOBODY:
                return Who(user, Standing.OUTSIDER)
            log.warning("a user is not known", extra={"user": user, "error": code_of(error) or unquoted(error)})
            return None
        return known(answer.get("user") or {"id": user}, self._us)
