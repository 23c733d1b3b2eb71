"""kill -9 between any two writes: everything promised is there, and nothing is there in part."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from contracts.store.ground import DM, NOW, heard

LIFE = """
import asyncio, itertools, sys
from pathlib import Path
from claudius.memory.sqlite import SqliteStore
from contracts.store.ground import NOW, call, heard, recalled, thought

async def live(path):
    store = SqliteStore(path, linger_s=0.0)
    await store.start("doomed", NOW)
    for n in itertools.count():
        one = heard(f"message {n}", n=n)
        await store.inbox.accept((one,), NOW)
        print("accepted", n, flush=True)
        found = await recalled(store, one)
        store.turns.keep_call(found.turn, call())
        intent = thought(found, "half ", "and half")
        await store.turns.commit(intent)
        print("committed", n, flush=True)
        for part in intent.utterances:
            await store.outbox.settle(part.key, "r", NOW)
        print("settled", n, flush=True)

asyncio.run(live(Path(sys.argv[1])))
"""


def killed(path: Path, after: int, delay_steps: int) -> list[str]:
    """Kill a process a moment after it has printed `after` lines; return every line that it printed."""
    process = subprocess.Popen([sys.executable, "-c", LIFE, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        said = [process.stdout.readline() for _ in range(after)]
        for _ in range(delay_steps):
            pass
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    return [line.strip() for line in said]


@pytest.mark.parametrize("seed", range(8))
async def test_what_was_promised_survives_a_kill(home: Home, seed: int) -> None:
    """After a kill, accepted messages are kept; committed turns are not rethought, settled parts not sent again."""
    chance = random.Random(seed)  # noqa: S311 - when it is killed is no secret
    said = killed(home.database, chance.randrange(1, 60), chance.randrange(0, 200_000))
    reached = {
        word: [int(line.split()[1]) for line in said if line.startswith(word)]
        for word in ("accepted", "committed", "settled")
    }

    store = SqliteStore(home.database)
    waiting = await store.start("after", NOW)
    known = await store.inbox.accept([heard(n=n) for n in reached["accepted"]], NOW)
    pending = await store.inbox.oldest(DM)
    left = await store.outbox.deliveries(DM)
    await store.close(clean=True)
    with closing(SqliteRecords(home.database)) as records:
        found = records.conversation(DM)
        assert list(records.integrity()) == []

    assert not any(known)
    assert not waiting.was_clean
    turns = found["turns"] if found else 0
    assert turns >= len(reached["committed"])
    if pending:
        assert pending.perception.position == heard(n=turns).position
    assert len(found["entries"] if found else ()) == 3 * turns
    assert all(part.state in ("pending", "unknown_after_send") for part in left)
    assert {part.utterance.turn for part in left} <= ({found["entries"][-1]["turn"]} if found else set())
    assert len(reached["settled"]) >= turns - 1 - bool(left)
