"""News over Slack: a real daemon is killed at each station between the 202 and the post; they are told once."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from driven import reply
from slack_daemon import PATIENCE_S, SlackDaemon, slack_daemon

pytestmark = pytest.mark.slow

NEWS = {"id": "ci-1", "text": "Rollback of the release pipeline."}
TALK = (
    "The release pipeline is stuck again.", "Is it the signing step of the pipeline?",
    "The release has to go out on Thursday, with or without that pipeline.", "Could we sign the release by hand?",
    "The pipeline lost its key, so no release can be signed.", "I asked for a new key for the pipeline.",
)  # fmt: skip
ANSWERED = "SELECT count(*) FROM inbox WHERE kind IN ('message', 'command') AND state = 'settled'"
STATIONS = {
    "at once": "SELECT 1",
    "after they are heard": "SELECT 1 FROM inbox WHERE kind = 'news' AND state = 'settled'",
    "after the plan fell due": "SELECT 1 FROM inbox WHERE kind = 'scheduled'",
    "after the words were kept": "SELECT 1 FROM outbox WHERE kind = 'proactive'",
}


def at(**later: float) -> dict[str, str]:
    """Return the environment of a daemon that starts that much later."""
    return {"CLAUDIUS_CLOCK": (datetime.now(UTC) + timedelta(**later)).isoformat()}


async def bring(daemon: SlackDaemon, conversation: str) -> Any:
    """Post the news at the control socket, as a program of the owner would."""
    connector = aiohttp.UnixConnector(path=str(daemon.home.socket))
    async with aiohttp.ClientSession(connector=connector) as client:
        url = "http://localhost/api/event"
        async with client.post(url, json=NEWS | {"conversation": conversation}) as answer:
            return answer.status, await answer.json()


def first_posts(daemon: SlackDaemon) -> list[tuple[Any, ...]]:
    """Return the state of each post that the soul wrote first."""
    return daemon.rows("SELECT state FROM outbox WHERE kind = 'proactive'")


@pytest.mark.parametrize("station", STATIONS)
async def test_news_are_told_once_whenever_the_daemon_is_killed(tmp_path: Path, station: str) -> None:
    """`kill -9` between the 202 and the post: the next daemon tells them in that conversation; the id again does nothing."""
    settings = {"CLAUDIUS_PSYCHE_PROACTIVE": "1", "CLAUDIUS_CLOCK_QUIET": "00:00-00:00"}
    named = '{"do": "open", "text": "the release pipeline is stuck"}'
    async with slack_daemon(tmp_path, **settings) as daemon:
        daemon.machine.scripted(*[reply("So it is.", appraisal="hurtful", acts=named)] * len(TALK))
        await daemon.start()
        for n, text in enumerate(("!proactive on", *TALK), 1):
            await daemon.slack.say("D1", "U1", text)
            await daemon.until(lambda n=n: daemon.rows(ANSWERED) == [(n,)], what=f"{n} answers")
        await daemon.drained()
        await daemon.stop()
        seen = len(await daemon.slack.visible())
        (conversation,) = daemon.rows("SELECT DISTINCT conversation FROM turn")[0]
        await daemon.slack.shift_clock(7200.0)
        await daemon.start(env=at(hours=2))

        answer = await bring(daemon, conversation)
        await daemon.until(lambda: daemon.rows(STATIONS[station]), what=station)
        await daemon.kill()
        await daemon.start(env=at(hours=2))
        await daemon.until(lambda: first_posts(daemon) == [("sent",)], what="a first post")
        again = await bring(daemon, conversation)
        await daemon.drained()
        await asyncio.wait_for(daemon.stop(), PATIENCE_S)
        posts = await daemon.slack.visible()

        assert (answer, again) == ((202, {"stored": True, "id": "ci-1"}), (202, {"stored": False, "id": "ci-1"}))
        assert len(first_posts(daemon)) == 1
        assert [entry.channel for entry in posts[seen:]] == ["D1"]
