"""What breaks is seen: health, metrics, alerts and doctor of a real daemon agree on it, and on its end."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from driven import reply
from lab.loopback.discord import state as discord
from lab.loopback.model import ModelServer, Reply
from operated import operated
from slack_daemon import PATIENCE_S


async def test_a_deaf_slack_is_seen_and_told_on_discord(tmp_path: Path) -> None:
    """A socket that answers pings and brings no events is no ear; the owner hears of it where the soul still hears."""
    async with operated(tmp_path) as soul:
        slack = soul.daemon.slack
        await slack.say("D1", "U1", "before")
        await slack.until_visible(1, within_s=PATIENCE_S)
        await slack.sicken("deaf", is_lasting=True)
        for n in range(3):
            await slack.say("D1", "U1", f"unheard {n}")
            await slack.until_visible(2 + n, within_s=PATIENCE_S)  # the probe found it
        said = await soul.agree_on("network", "slack", check="slack")
        told = [one for one in await soul.discord.world.visible() if one.channel == discord.DM]
        await slack.heal()
        await slack.say("D1", "U1", "heard again")
        await soul.recovers("network", "slack", check="slack")

    assert said["networks"] == {"terminal": True, "slack": False, "discord": True}
    assert (said["voice"], said["store"]) == (True, True)
    assert any("slack" in one.text for one in told)


async def test_a_dead_discord_is_seen_and_told_on_slack(tmp_path: Path) -> None:
    """A gateway that takes no socket is a network that is not heard."""
    async with operated(tmp_path) as soul:
        world, before = soul.discord.world, len(await soul.daemon.slack.visible())
        await world.refuse_upgrades(-1)
        await world.drop_sockets()
        said = await soul.agree_on("network", "discord", check="discord")
        told = (await soul.daemon.slack.visible())[before:]
        await world.heal()
        await soul.recovers("network", "discord", check="discord")

    assert said["networks"] == {"terminal": True, "slack": True, "discord": False}
    assert [one.channel for one in told] == ["D1"]
    assert "discord" in told[0].text


async def test_a_spent_budget_is_seen(tmp_path: Path) -> None:
    """The owner is told at 80 % and at 100 %; only the latter fails."""
    dear = {"deltas": [reply("That was dear.")], "usage": {"input_tokens": 9, "output_tokens": 9, "cost_usd": 0.85}}
    async with operated(tmp_path) as soul:
        await soul.run("config", "set", "budget.daily_usd", "1")
        await soul.daemon.stop()
        soul.daemon.machine.scripted(dear, dear)
        await soul.daemon.start()
        await soul.settled()
        await soul.run("chat", "--once", "one")

        async def is_near() -> bool:
            """Return whether the first alert has come."""
            return len(soul.alerts("budget", "daily")) == 1

        await soul.until(is_near, "80 % is told")
        near, _ = await soul.health()
        await soul.run("chat", "--once", "two")
        said = await soul.agree_on("budget", "daily", check="daily", times=2)
        await soul.run("config", "set", "budget.daily_usd", "100")
        await soul.recovers("budget", "daily", check="daily")

    assert near == 200
    assert "$1.70 of $1.00" in said["reasons"][0]


async def test_a_dead_model_is_seen(tmp_path: Path) -> None:
    """A model that answers with errors is no voice; its first reply makes all well again."""
    async with ModelServer([Reply(fault="status", status=500, keep=True)], default=reply("Back.")) as model:
        env = {"CLAUDIUS_PROVIDERS": "openai_compat", "CLAUDIUS_OPENAI_BASE_URL": f"{model.url}/v1"}
        async with operated(tmp_path, **env) as soul:
            await soul.daemon.slack.say("D1", "U1", "anybody there?")
            said = await soul.agree_on("voice", "", check="voice")
            samples = await soul.metrics()
            model.reset()
            await soul.run("chat", "--once", "and now?")
            await soul.recovers("voice", "", check="voice")

    assert said["voice"] is False
    assert samples["claudius_voice_up", frozenset()] == 0
    failures = {dict(labels)["error"] for name, labels in samples if name == "claudius_provider_failures_total"}
    assert failures == {"Overloaded"}


async def test_a_failed_backup_is_seen(tmp_path: Path) -> None:
    """The nightly backup that could not be written is a problem until there is a newer one."""
    async with operated(tmp_path) as soul:
        directory = soul.daemon.home.backups
        shutil.rmtree(directory)
        directory.write_text("in the way")
        with closing(sqlite3.connect(soul.daemon.home.database)) as kept, kept:
            kept.execute("UPDATE job SET next_due = '2026-01-05T03:30:00.000000Z' WHERE job = 'backup'")
        said = await soul.agree_on("backup", "", check="backup")
        directory.unlink()
        await soul.run("backup", "create")
        await soul.recovers("backup", "", check="backup")

    assert "the last backup failed" in said["reasons"][0]


async def test_an_alert_is_told_once_across_a_restart(tmp_path: Path) -> None:
    """A restart does not repeat what the owners were told; the document of the webhook holds no words of people."""
    async with operated(tmp_path) as soul:
        await soul.discord.world.refuse_upgrades(-1)
        await soul.discord.world.drop_sockets()
        await soul.agree_on("network", "discord", check="discord")
        await soul.daemon.stop()
        await soul.daemon.start()
        await soul.agree_on("network", "discord", check="discord")
        await soul.discord.world.heal()
        await soul.recovers("network", "discord", check="discord")

    assert soul.alerts("network", "discord") == ["firing", "resolved"]
    assert {"text", "kind", "subject", "state", "detail", "fix", "since", "at"} <= soul.posted[0].keys()
    assert json.dumps(soul.posted[0])
