"""R31: what was written from a deleted message goes with it, whenever the process is killed after the deletion."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from driven import reply
from living import kept
from slack_daemon import MENTION, PATIENCE_S, SlackDaemon, slack_daemon

SECRET = "quokka"
STATE = {"soul_state_check": "true", "soul_state_update": f"conversationSummary: they keep a {SECRET}"}


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[SlackDaemon]:
    """Yield a daemon on Slack that says again what it was told."""
    async with slack_daemon(tmp_path / "machine", CLAUDIUS_SOUL_STATE_INTERVAL="1") as made:
        made.machine.scripted(reply("I see."), reply(f"They keep a {SECRET}.", **STATE))
        await made.slack.add_user("U2", "Ben")
        await made.slack.join("C1", "U2", deliver=False)
        await made.start()
        yield made


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
@pytest.mark.parametrize("write", [1, 2, 3, 4, 5])
async def test_r31_nothing_is_left_of_a_deleted_message_whatever_is_killed(daemon: SlackDaemon, write: int) -> None:
    """Killed at any durable write from the deletion on, the next start ends what was begun: no row holds the word."""
    ts = await daemon.slack.say("C1", "U1", f"{MENTION} I keep a {SECRET}")
    await daemon.drained(heard=1)
    await daemon.slack.say("C1", "U2", f"{MENTION} what is kept here?", thread_ts=ts)
    await daemon.drained(heard=2)
    before = kept(daemon.home, SECRET)
    assert daemon.process
    tracer = await asyncio.create_subprocess_exec(
        *("strace", "-f", "-p", str(daemon.process.pid), "-o", "/dev/null", "-e", "trace=fdatasync,fsync"),
        *("-e", f"inject=fdatasync,fsync:signal=KILL:when={write}+"),
        stderr=asyncio.subprocess.PIPE,
    )
    assert tracer.stderr
    await asyncio.wait_for(tracer.stderr.readline(), PATIENCE_S)  # it is attached
    await daemon.slack.delete("C1", ts)
    await daemon.until(lambda: daemon.process and daemon.process.returncode is not None, what="it is killed")
    await daemon.ended()
    await tracer.wait()
    await daemon.start()
    await daemon.until(lambda: not kept(daemon.home, SECRET), what="nothing is left")
    await daemon.stop()

    assert {"outbox", "soul_state"} <= set(before)
    assert kept(daemon.home, SECRET) == []
