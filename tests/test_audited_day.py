"""A day of an owner and an operator, through the front door: the audit log holds all that was done, and no words."""

import asyncio
import json
from pathlib import Path
from typing import Any

from claudius.memory.erasure import Erasures
from lab.loopback.slack.state import BOT_USER
from slack_daemon import SlackDaemon, slack_daemon

ANA, BEN = "slack:T1:U1", "slack:T1:U2"
OPERATOR = "terminal:local:ada"
WORDS = ("I keep bees on the roof", "who are you", "Hello", "A quieter soul", "bees")


async def told(daemon: SlackDaemon, count: int) -> list[str]:
    """Wait for so many private answers to commands; return them."""
    async with asyncio.timeout(60):
        while len(found := [one for one in await daemon.slack.trace() if one.kind == "response"]) < count:
            await asyncio.sleep(0.02)
    return [one.text for one in found]


async def test_the_audit_log_replays_a_day(tmp_path: Path) -> None:
    """Nothing that was done is missing, in order; refusals and words are not there; an erasure leaves no id."""
    async with slack_daemon(tmp_path) as daemon:
        await daemon.slack.add_user("U2", "ben")
        await daemon.slack.add_channel("D2", kind="im", members=["U2", BOT_USER])
        await daemon.slack.join("C1", "U2", deliver=False)
        ok = daemon.machine.ok

        async def run(*args: str, env: dict[str, str] | None = None) -> Any:
            """Run a command of the operator."""
            return await asyncio.to_thread(ok, *args, env=env)

        onboarded = (await run("onboard", "--yes", "--adapters", "slack", "--providers", "scripted", "--json")).json
        await daemon.start()
        await daemon.slack.say("D1", "U1", onboarded["owner"])
        await daemon.slack.until_visible(1, within_s=60)
        await daemon.slack.slash("D2", "U2", "/claudius", "pause")
        (refused,) = [one for one in await told(daemon, 1) if "owner can" in one]
        for number, word in enumerate(("status", "usage", "pause"), 2):
            await daemon.slack.slash("C1", "U1", "/claudius", word)
            await told(daemon, number)
        await daemon.slack.say("D2", "U2", "I keep bees on the roof")
        await daemon.until(lambda: daemon.counts()["inbox"]["pending"], what="a message that waits")
        waiting = await daemon.slack.visible()
        await daemon.slack.slash("C1", "U1", "/claudius", "resume")
        await daemon.slack.until_visible(len(waiting) + 1, within_s=60)
        await daemon.slack.slash("C1", "U1", "/ensoul", "on")
        await told(daemon, 6)
        await run("config", "set", "log.level", "DEBUG")
        await run("users", "show", BEN, "--json")
        await run("users", "export", BEN)
        daemon.machine.shim("tee", "")
        editor = daemon.machine.bin / "an-editor"
        editor.write_text('#!/bin/sh\nprintf "A quieter soul\\n" >> "$1"\n')
        editor.chmod(0o755)
        await run("soul", "edit", "dossiers/house.md", env={"EDITOR": str(editor)})
        await run("state", "set", "currentTopic", "bees")
        by_hand = daemon.home.config.read_text() + "\n[history]\nbudget_tokens = 2000\n"
        daemon.home.config.write_text(by_hand)
        await daemon.until(lambda: daemon.rows("SELECT 1 FROM audit WHERE who = 'files'"), what="an edit is noticed")
        await run("users", "forget", BEN, "--yes")
        found = (await run("audit", "--json")).json
        await daemon.stop()

    erased = Erasures(daemon.home.state).aliases([BEN])[BEN]
    assert "owner can" in refused
    assert [(one["act"], one["who"], one["target"], one["from"]) for one in found] == [
        ("setting", OPERATOR, "adapters", "cli"),
        ("setting", OPERATOR, "providers", "cli"),
        ("owner", ANA, ANA, "slack:T1"),
        ("setting", ANA, "owners", "slack:T1"),
        ("status", ANA, "", "slack:T1:C1"),
        ("usage", ANA, "", "slack:T1:C1"),
        ("pause", ANA, "", "slack:T1:C1"),
        ("setting", ANA, "runtime.paused", "slack:T1:C1"),
        ("resume", ANA, "", "slack:T1:C1"),
        ("setting", ANA, "runtime.paused", "slack:T1:C1"),
        ("ensoul", ANA, "on slack:T1:C1", "slack:T1:C1"),
        ("setting", OPERATOR, "log.level", "cli"),
        ("read", OPERATOR, erased, "cli"),
        ("export", OPERATOR, erased, "cli"),
        ("soul", OPERATOR, "dossiers/house.md", "cli"),
        ("state", OPERATOR, "currentTopic", "cli"),
        ("setting", "files", "history.budget_tokens", "files"),
        ("forget", OPERATOR, erased, "cli"),
    ]
    assert found == sorted(found, key=lambda one: str(one["at"]))
    assert not [word for word in (*WORDS, BEN) if word in json.dumps(found)]
