"""Check how the networks are set up, through their own APIs and through what was ever heard of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping

from claudius.cli.checks import Check
from claudius.cli.records import records
from claudius.config import Loaded, load
from claudius.home import Home

SLACK_EVENTS = {
    "mention": "app_mention",
    "message": "message.channels, message.groups, message.im",
    "join": "member_joined_channel",
    "reaction": "reaction_added",
    "home": "app_home_opened",
}
"""Each kind of thing heard, and the event subscription that brings it."""


def half_set(loaded: Loaded) -> Iterator[Check]:
    """Report each network that has only one of its tokens: it hears nothing, and nothing else says so."""
    from claudius.compose import TOKENS

    for network, tokens in TOKENS.items():
        is_wanted = not {"auto", network}.isdisjoint(loaded.config.adapters)
        missing = [name for name in tokens if not loaded.secret(name)]
        if is_wanted and missing and len(missing) < len(tokens):
            detail = f"{missing[0]} is not set, so nothing is heard there"
            yield Check(
                network, ok=False, detail=detail, fix=f"put it into .env; docs/{network}.md says where it stands"
            )


def networks(home: Home) -> Iterator[Check]:
    """Query each network that has tokens about its setup, and check which events were ever heard."""
    from claudius.cli.discord_checks import ask_discord
    from claudius.cli.slack_checks import ask_slack

    loaded = load(home, os.environ)

    async def all_of(checks: AsyncIterator[Check]) -> list[Check]:
        return [check async for check in checks]

    if loaded.secret("SLACK_BOT_TOKEN") and loaded.secret("SLACK_APP_TOKEN"):
        yield from asyncio.run(all_of(ask_slack(loaded)))
        yield from _heard(home, "slack", SLACK_EVENTS)
    if loaded.secret("DISCORD_TOKEN"):
        yield from asyncio.run(all_of(ask_discord(loaded)))


def _heard(home: Home, network: str, events: Mapping[str, str]) -> Iterator[Check]:
    """Report which kinds of event never came: a missing subscription looks like a quiet workspace."""
    with records(home) as kept:
        found = kept.kinds_heard(network)
    never = [event for kind, event in events.items() if kind not in found]
    if not found:
        detail = "nothing was ever heard"
        fix = "write to it directly; if it stays deaf, its event subscriptions are missing: reinstall from the manifest"
        yield Check(f"{network} events", ok=False, detail=detail, fix=fix)
    else:
        detail = f"never heard yet: {'; '.join(never)}" if never else "every kind was heard"
        yield Check(f"{network} events", ok=True, detail=detail)
