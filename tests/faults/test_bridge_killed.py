"""D5 with real processes: `kill -9` of the daemon or of the session at each point: each message is answered once."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from driven import CLAUDIUS, Ran, reply
from slack_daemon import PATIENCE_S, SlackDaemon, slack_daemon

pytestmark = pytest.mark.slow

BENCH, MODEL = "From the bench.", "From the model."
AGAIN = ("owed", "shown", "before commit")
"""Where a daemon is killed whose successor asks the session once more."""
STATIONS = (*AGAIN, "after commit", "said", "a session that waits", "a session that thinks")


async def bridge(daemon: SlackDaemon, *words: str, stdin: str = "") -> Ran:
    """Run `claudius bridge`."""
    return await asyncio.to_thread(daemon.machine.run, "bridge", *words, stdin=stdin)


async def killed(daemon: SlackDaemon, *words: str) -> None:
    """Begin `claudius bridge` with these words, and kill it while it waits for an answer."""
    env = daemon.machine.environment()
    process = await asyncio.create_subprocess_exec(str(CLAUDIUS), "bridge", *words, env=env)
    await daemon.until(lambda: connected(process.pid), what="a connection")
    process.kill()
    await process.wait()


def connected(pid: int) -> bool:
    """Return whether a process has a socket open."""
    with suppress(OSError):  # one that was closed meanwhile
        return any("socket:" in str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir())
    return False


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("station", STATIONS)
async def test_each_message_is_answered_once(
    tmp_path: Path, station: str, store: str, request: pytest.FixtureRequest
) -> None:
    """After the kill, one reply stands there, the session's, for the loan goes on; a late `say` is refused."""
    served = {"CLAUDIUS_STORE_URL": request.getfixturevalue("postgres_url"), "CLAUDIUS_WORKER_LEASE_S": "3"}
    dies = tmp_path / "dies"
    more = {"TEST_DIES": str(dies)} | (served if store == "postgres" else {})
    async with slack_daemon(tmp_path, CLAUDIUS_OWNERS="slack:T1:U1", **more) as daemon:
        daemon.machine.scripted(*[reply(MODEL)] * 5)
        await daemon.start()
        hello = (await asyncio.to_thread(daemon.machine.ok, "chat", "--once", "Hello!", "--json")).json["turn"]
        await daemon.slack.say("D1", "U1", "Hello, from here!")
        await daemon.slack.until_visible(1, within_s=PATIENCE_S)
        await asyncio.to_thread(daemon.machine.ok, "users", "link", "terminal:local:ada", "slack:T1:U1")
        assert "at the bench" in (await bridge(daemon, "on")).stdout
        if station == "a session that waits":
            await killed(daemon, "next", "--wait", "60")
        await daemon.slack.say("D1", "U1", "Is the kiln ready?")
        turn = ""
        if station != "owed":
            turn = (await bridge(daemon, "next", "--wait", "60", "--json")).json["turn"]
        if station == "a session that thinks":  # its successor is given the same
            assert (await bridge(daemon, "next", "--json")).json["turn"] == turn
        if station.endswith("commit"):
            dies.write_text(station, "utf-8")
            assert (await bridge(daemon, "say", turn, stdin=reply(BENCH))).code == 75
            assert await daemon.ended() == -signal.SIGKILL
            dies.unlink()
        if station in ("said", "a session that waits", "a session that thinks"):
            assert f"said: {BENCH}" in (await bridge(daemon, "say", turn, stdin=reply(BENCH))).stdout
        if station == "owed":
            while not (await daemon.status())["bridge"]["waiting"]:
                await asyncio.sleep(0.02)
        if not station.startswith("a session"):
            await daemon.kill()
            await daemon.start()
        if station in AGAIN:
            turn = (await bridge(daemon, "next", "--wait", "60", "--json")).json["turn"]
            assert f"said: {BENCH}" in (await bridge(daemon, "say", turn, stdin=reply(BENCH))).stdout
        await daemon.slack.until_visible(2, within_s=PATIENCE_S)
        late = await bridge(daemon, "say", turn or "x", stdin=reply("Too late."))
        await bridge(daemon, "off")
        await daemon.slack.say("D1", "U1", "And the second one?")
        await daemon.slack.until_visible(3, within_s=PATIENCE_S)
        await daemon.stop()
        seen = [entry.text.partition("\n\n")[0] for entry in await daemon.slack.visible()]  # then what it can do
        judged = await daemon.judged() if store == "sqlite" else []
        broken = [one for one in judged if hello not in one]  # which was said at the terminal

    assert (late.code, seen, broken) == (75, [MODEL, BENCH, MODEL], [])
