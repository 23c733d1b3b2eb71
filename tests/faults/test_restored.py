"""A copy of the database is put back: what was answered since the copy was made is not answered again."""

import asyncio
from pathlib import Path

import pytest

from slack_daemon import MENTION, PATIENCE_S, SlackDaemon, slack_daemon


async def lived(daemon: SlackDaemon) -> str:
    """Answer one message before a copy and two after it, and miss one; return the copy's path. The daemon is stopped."""
    slack = daemon.slack
    await daemon.start()
    await slack.say("D1", "U1", "before the copy")
    await slack.until_visible(1, within_s=PATIENCE_S)
    await daemon.drained(heard=1)
    copy = (await asyncio.to_thread(daemon.machine.ok, "backup", "create", "--json")).json["path"]
    await slack.say("D1", "U1", "after the copy")
    await slack.say("C1", "U1", f"{MENTION} in a channel, after the copy")
    await slack.until_visible(3, within_s=PATIENCE_S)
    await daemon.drained(heard=3)
    await daemon.stop()
    await slack.say("D1", "U1", "while it was away", deliver=False)
    return str(copy)


async def replies(daemon: SlackDaemon) -> int:
    """Start the daemon, have something new said, and return how many replies there are once nothing is left to do."""
    slack = daemon.slack
    before = daemon.log().count('"swept"')
    await daemon.start()
    await daemon.until(lambda: daemon.log().count('"swept"') > before, what="the history is read")
    answered = len(await slack.visible())
    await slack.say("D1", "U1", "after the restore")
    await slack.until_visible(answered + 1, within_s=PATIENCE_S)
    await daemon.drained()
    await daemon.stop()
    return len(await slack.visible())


async def test_what_was_answered_since_the_copy_is_not_answered_again(tmp_path: Path) -> None:
    """The replaced database says what was answered: only what was missed gets a reply, and everything exactly one."""
    async with slack_daemon(tmp_path) as daemon:
        copy = await lived(daemon)
        restored = await asyncio.to_thread(daemon.machine.ok, "backup", "restore", copy, "--yes")

        assert await replies(daemon) == 5
        assert "counts as answered" not in restored.stdout
        assert not daemon.counts()["inbox"]["dead"]


@pytest.mark.parametrize("loss", ["gone", "damaged"])
async def test_without_the_old_database_nothing_from_before_the_restore_is_answered(tmp_path: Path, loss: str) -> None:
    """No one knows what was answered: the restore counts it as such, says so, and what is said afterwards is answered."""
    async with slack_daemon(tmp_path) as daemon:
        copy = await lived(daemon)
        database = daemon.home.database
        if loss == "gone":
            for file in database.parent.glob("claudius.db*"):
                file.unlink()
        else:
            pages = bytearray(database.read_bytes())
            pages[len(pages) // 2 :] = bytes(len(pages) - len(pages) // 2)
            database.write_bytes(pages)
        restored = await asyncio.to_thread(daemon.machine.ok, "backup", "restore", copy, "--yes")

        assert await replies(daemon) == 4
        assert "counts as answered" in restored.stdout
