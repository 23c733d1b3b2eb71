"""F1: a daemon and workers, real processes on a real PostgreSQL, killed at random under traffic of a loopback Slack."""

import asyncio
import os
import random
from collections import defaultdict
from pathlib import Path

import pytest

from company import company

SIZES = {"push": (6, 16, 128, 200), "full": (60, 100, 4_000, 1800), "nightly": (200, 100, 4_000, 3600)}
"""Kills, conversations, messages at least, and seconds to wait at most, by the profile of the tests."""
KILLS, PLACES, MESSAGES, PATIENCE_S = SIZES[os.environ.get("CLAUDIUS_TEST_PROFILE", "push")]
WORKERS = 3


@pytest.mark.timeout(2 * PATIENCE_S)
async def test_scale_f1_random_kills_lose_nothing_and_double_nothing(postgres_url: str, tmp_path: Path) -> None:
    """0 lost, 0 double, 0 out of order, whichever process is killed, and whenever."""
    chance = random.Random(1)  # noqa: S311 - no secret
    said: dict[str, list[str]] = defaultdict(list)
    async with company(tmp_path, postgres_url, workers=WORKERS) as soul:
        people = soul.slack.world
        dms = {}
        for n in range(PLACES):
            person = f"U9{n:03d}"
            await people.add_user(person, f"p{n}")
            dms[await people.open_dm(person)] = person
        is_over = asyncio.Event()

        async def talk() -> int:
            """Have people talk as long as processes are killed, now and then heard twice; return how often."""
            count = 0
            while count < MESSAGES or not is_over.is_set():
                place, person = chance.choice(list(dms.items()))
                said[place].append(f"{person} {len(said[place])}")
                if times := chance.choice((0, 0, 1, 2)):
                    await people.double_events(times)
                await people.say(place, person, said[place][-1])
                count += 1
                await soul.until_said(count - PLACES, PATIENCE_S)
            return count

        talking = asyncio.create_task(talk())
        for _ in range(KILLS):
            more = chance.randint(0, 2 * MESSAGES // KILLS)
            reached = asyncio.create_task(soul.until_said(soul.said() + more, PATIENCE_S))
            await asyncio.wait((talking, reached), return_when=asyncio.FIRST_COMPLETED)  # few may be left to say
            reached.cancel()
            n = chance.choice(list(soul.running))
            await soul.kill(n)
            await soul.start(n)
        is_over.set()
        wanted = await talking
        try:
            await people.until_visible(wanted, within_s=PATIENCE_S)
        except TimeoutError:
            raise AssertionError(soul.logs()) from None
        await soul.drained(PATIENCE_S)
        shown = await people.visible()
        thought = [soul.machine(n).requests for n in range(WORKERS + 1)]
        thinkers = [n for n, requests in enumerate(thought) if requests.exists()]
        calls = sum(requests.read_text().count("\n") for requests in thought if requests.exists())

    found: dict[str, list[str]] = defaultdict(list)
    for one in shown:
        found[one.channel].append(one.text.removeprefix("re ").partition("\n\n")[0])
    assert {place: sorted(texts) for place, texts in found.items()} == {
        place: sorted(texts) for place, texts in said.items()
    }
    committed, overtaken = soul.kept()
    assert found == committed
    assert not overtaken
    assert len(thinkers) > 1
    assert calls <= wanted + 16 * KILLS  # whatever a process held when it was killed is thought again
