"""Apply the oracle to a soul that has drained, on either network."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from both import Side
from claudius.adapters.discord.outgoing import nonce
from claudius.home import Home
from lab.loopback.discord import judged as discord_judged
from lab.loopback.discord.state import CHANNEL
from lab.loopback.slack import judged as slack_judged
from lab.oracle import World, judge
from lab.stages.discord import US, DiscordStage
from lab.stages.slack import SlackStage
from slack_daemon import is_owed as is_owed_on_slack

ACCEPT: Callable[[Any], bool] = lambda _: True  # noqa: E731 - what most tests say of whom they let speak


async def world_of(side: Side, home: Home, counts: Callable[[Any], bool] = ACCEPT) -> World:
    """Return what people posted on a network, limited to the entries that count, and what they saw."""
    stage = side.stage
    if isinstance(stage, SlackStage):
        return slack_judged.as_world(
            await stage.world.trace(), is_owed=lambda entry: counts(entry) and is_owed_on_slack(entry)
        )
    assert isinstance(stage, DiscordStage)
    channels = await stage.world.channels()
    parents = {one["id"]: one["parent_id"] for one in channels if one.get("parent_id")}
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as kept:
        keys = {nonce(key): key for (key,) in kept.execute("SELECT key FROM outbox")}
    return discord_judged.as_world(
        await stage.world.trace(),
        parents=parents,
        channels=[CHANNEL, *(one["id"] for one in channels)],
        keys=keys,
        is_owed=lambda entry: (
            counts(entry)
            and (US in entry.text or entry.channel in parents or entry.channel not in {one["id"] for one in channels})
        ),
    )


async def judged(side: Side, home: Home, counts: Callable[[Any], bool] = ACCEPT) -> list[str]:
    """Return the rules of the oracle that are broken. Call it after the soul has stopped."""
    return judge(await world_of(side, home, counts), home)
