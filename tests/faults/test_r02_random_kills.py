"""R2: random kills while many people talk at once. Nothing is lost or answered twice, and the order is kept."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from lab.loopback.slack.world import SlackWorld
from slack_daemon import MENTION, PATIENCE_S, SlackDaemon, slack_daemon

pytestmark = pytest.mark.slow

SEED = "CLAUDIUS_TEST_SEED"
"""The environment variable that repeats one random run."""
UNANSWERED = 15
"""At most this many messages are unanswered at a time."""
LIFE = 90
"""The longest life, in calls, envelopes and acknowledgements that Slack sees."""


def chance_of(test: str) -> random.Random:
    """Return a random generator whose seed is printed on failure."""
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(1_000_000))
    print(f"{test}: {SEED}={seed}")  # noqa: T201 - pytest shows it where the test fails
    return random.Random(seed)  # noqa: S311 - a test's order, no secret


async def talk(slack: SlackWorld, chance: random.Random, *, messages: int, people: int) -> None:
    """Say this much in DMs, by mention in a channel, and in the threads that these open."""
    for person in range(2, people + 2):
        await slack.add_user(f"U{person}", f"person {person}")
        await slack.join("C1", f"U{person}")
    direct = [(await slack.open_dm(f"U{person}"), f"U{person}") for person in range(2, people + 2)]
    threads: list[str] = []
    for number in range(messages):
        if chance.random() < 0.5:
            channel, user = chance.choice(direct)
            await slack.say(channel, user, f"line {number}")
        elif threads and chance.random() < 0.8:
            await slack.say("C1", "U1", f"line {number}", thread_ts=chance.choice(threads))
        elif len(threads) < people:
            threads.append(await slack.say("C1", "U1", f"{MENTION} line {number}"))
        else:
            await slack.say("D1", "U1", f"line {number}")
        await slack.until_visible(number + 2 - UNANSWERED, within_s=PATIENCE_S)


async def seen(daemon: SlackDaemon, count: int) -> None:
    """Wait until Slack has seen this many more calls, envelopes and acknowledgements."""
    journal = daemon.server.service.journal

    def total() -> int:
        """Count them."""
        return len(journal.calls) + len(journal.deliveries) + sum(one.fate == "acked" for one in journal.deliveries)

    until = total() + count
    await journal.changes.until(lambda: total() >= until, PATIENCE_S)


async def run(root: Path, chance: random.Random, *, kills: int, messages: int, people: int) -> list[str]:
    """Talk while the daemon is killed again and again. Returns the rules that are broken at the end."""
    async with slack_daemon(root) as daemon:
        await daemon.start()
        await daemon.slack.say("D1", "U1", "what was said before we first woke is not ours")
        await daemon.slack.until_visible(1, within_s=PATIENCE_S)
        await daemon.stop()
        talking = asyncio.create_task(talk(daemon.slack, chance, messages=messages, people=people))
        for _ in range(kills):
            await daemon.start()
            living = asyncio.create_task(seen(daemon, chance.randrange(1, LIFE)))
            await asyncio.wait((living, talking), return_when=asyncio.FIRST_COMPLETED)
            assert living.cancel() or not living.exception()
            await daemon.kill()
        await daemon.start()
        await talking
        await daemon.slack.until_visible(messages + 1, within_s=PATIENCE_S)
        await daemon.drained(heard=messages + 1)
        await daemon.stop()
        assert daemon.codes == [0, *[-9] * kills, 0]
        return await daemon.judged()


@pytest.mark.parametrize(
    ("chance", "kills", "messages", "people"),
    [("r02", 20, 200, 4), pytest.param("r02 long", 300, 3_000, 25, marks=pytest.mark.nightly)],
)
async def test_r02_kills_while_many_talk(tmp_path: Path, chance: str, kills: int, messages: int, people: int) -> None:
    """R2: kills over messages in DMs and threads; nightly 300 over 3,000 in 50 conversations."""
    assert not await run(tmp_path, chance_of(chance), kills=kills, messages=messages, people=people)
