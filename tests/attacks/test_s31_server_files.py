"""S31 on PostgreSQL: the server's own data files hold nothing of a person once the tables are written anew."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from forget_rows import right
from lab.loopback.slack.state import BOT_USER
from lab.postgres import GIVEN, Server
from slack_daemon import MENTION, PATIENCE_S, SlackDaemon, slack_daemon

TOM, NAME = "U7TOMQX", "Tomaso Zanderby"
PERSON = f"slack:T1:{TOM}"
WORDS = ("zq-directword", "zq-channelword", "zq-overheard", "zq-editedaway", "zq-editedto", NAME, TOM)


def held(server: Server) -> dict[str, list[str]]:
    """Return, by word, the server's data files that hold it, once everything is written to them."""
    with psycopg.connect(server.url, autocommit=True) as made:
        made.execute("CHECKPOINT")
        named = made.execute(
            "SELECT pg_relation_filepath(oid), relname::text FROM pg_class WHERE pg_relation_filepath(oid) IS NOT NULL"
        ).fetchall()
    names: dict[str, str] = dict(named)
    assert server.data
    found: dict[str, list[str]] = {}
    for path in server.data.rglob("*"):
        inside = path.relative_to(server.data)
        if path.is_file() and inside.parts[0] not in ("pg_wal", "log"):
            content = path.read_bytes()
            for word in WORDS:
                if word.encode() in content:
                    found.setdefault(word, []).append(names.get(str(inside), str(inside)))
    return found


@pytest.fixture
async def daemon(tmp_path: Path, postgres_server: Server, postgres_url: str) -> AsyncIterator[SlackDaemon]:
    """Yield a daemon on Slack that keeps everything in PostgreSQL, whose files this test can read."""
    if postgres_server.data is None:
        pytest.skip(f"{GIVEN}: its files are not ours to read")
    async with slack_daemon(tmp_path / "machine", CLAUDIUS_STORE_URL=postgres_url) as made:
        made.machine.env |= {"CLAUDIUS_PROVIDERS": "rehearsal", "CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
        made.machine.env |= {"CLAUDIUS_WORKER_LEASE_S": "6"}
        await made.slack.add_user(TOM, NAME)
        await made.slack.join("C1", TOM, deliver=False)
        yield made


async def talked(daemon: SlackDaemon, url: str) -> None:
    """Have Tom talk, be overheard, edit, react and give commands, and Ana talk after him."""
    slack, dm = daemon.slack, await daemon.slack.open_dm(TOM)
    await slack.say(dm, TOM, "My name is Tomaso. I like zq-directword very much, you know.")
    asked = await slack.say("C1", TOM, f"{MENTION} I said zq-channelword and zq-editedaway to all of you.")
    await settled(daemon, url, 2)
    await slack.say("C1", TOM, "Only among us: zq-overheard, nobody was asked.")
    await slack.edit("C1", asked, f"{MENTION} I said zq-channelword and zq-editedto to all of you.")
    answered = next(one.ts for one in await slack.visible() if one.user == BOT_USER and one.channel == "C1")
    await slack.react("C1", answered, TOM, "tada")
    await slack.slash("C1", TOM, "/claudius", "whoami")
    await slack.open_home(TOM)
    await slack.say("C1", "U1", f"{MENTION} good morning from me.")
    await slack.until_called("views.publish", 1)
    await settled(daemon, url, 6)


async def settled(daemon: SlackDaemon, url: str, heard: int) -> None:
    """Wait until the store has taken in this much, and nothing waits."""

    def is_done() -> bool:
        """Return whether nothing waits to be overwritten."""
        with psycopg.connect(url) as made:
            row = made.execute("SELECT count(*), count(*) FILTER (WHERE state = 'settled') FROM inbox").fetchone()
        return row is not None and row[0] >= heard and row[0] == row[1]

    await daemon.until(is_done, what=f"{heard} heard and settled")


async def forgotten(daemon: SlackDaemon, *words: str) -> Any:
    """Have the owner erase Tom; return the receipt."""
    argv = ("users", "forget", PERSON, "--yes", "--json", *words)
    ran = await asyncio.to_thread(daemon.machine.run, *argv)
    assert ran.stdout, f"{ran.shown}\n{daemon.log()}"
    return ran.json


async def receipts(daemon: SlackDaemon, count: int) -> list[str]:
    """Wait for this many answers that Tom alone can see; return them."""
    await daemon.slack.until_called("response_url", count, within_s=PATIENCE_S)
    return [entry.text for entry in await daemon.slack.trace() if entry.kind == "response"]


async def test_s31_at_once_the_data_files_hold_nothing(
    daemon: SlackDaemon, postgres_server: Server, postgres_url: str
) -> None:
    """`--now`: tables, indexes and the server's statistics are rewritten before the receipt, which says so."""
    wanted = right("postgres-files", "gone_from", "receipt_has", "now") | right("canary-name", "gone_from", "or")
    await daemon.start()
    await talked(daemon, postgres_url)
    before = held(postgres_server)
    receipt = await forgotten(daemon, wanted["now"].rpartition(" ")[2])
    after = held(postgres_server)
    await daemon.stop()

    assert before.keys() == set(WORDS) - {"zq-overheard"}
    assert after == {}
    assert (receipt["verified"], receipt["later"], receipt["left"]) == (True, None, [])


async def test_s31_after_the_quiet_hour_the_data_files_hold_nothing(
    daemon: SlackDaemon, postgres_server: Server, postgres_url: str
) -> None:
    """The receipt names the hour, and verifies nothing before; the work is done though the process died meanwhile."""
    wanted = right("postgres-files", "gone_from", "receipt_has", "now")
    await daemon.start(env={"CLAUDIUS_CLOCK": "2026-03-02T12:00:00Z"})
    await talked(daemon, postgres_url)
    for count, words in enumerate(("forget me", "forget me yes"), 2):
        await daemon.slack.slash("C1", TOM, "/claudius", words)
        told = await receipts(daemon, count)
    meanwhile = held(postgres_server)
    await daemon.slack.leave("C1", TOM, deliver=False)  # the list of members is asked for again
    await daemon.kill()
    await daemon.start(env={"CLAUDIUS_CLOCK": "2026-03-02T21:00:05Z"})
    await daemon.until(lambda: not waits(postgres_url), what="the quiet hour's work is done")
    after = held(postgres_server)
    await daemon.stop()

    assert wanted["receipt_has"] == "that hour"
    assert "from 2026-03-02 21:00 UTC on" in told[-1]
    assert "verified" in told[-1]
    assert "lane" in meanwhile[TOM]
    assert after == {}


def waits(url: str) -> bool:
    """Return whether something is to be overwritten."""
    with psycopg.connect(url) as made:
        row = made.execute("SELECT overwriting FROM release").fetchone()
    return row != ("",)
