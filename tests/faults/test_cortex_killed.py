"""kill -9 during a reflection: nothing is applied by half or twice, and no event is lost."""

import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from reflecting import ANN, NOW, OPS, answer, minutes, second

TESTS = Path(__file__).parents[1]
LIFE = """
import asyncio, itertools, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from claudius.home import Home
from reflecting import ANN, answer, minutes, second

def says(n):
    told = [{"peer_id": ANN, "action": "thank", "text": f"for {n}"}]
    believed = [{"key": f"belief-{n}", "value": f"value {n}", "rationale": "r"}]
    return answer((ANN, n % 4), beliefs=believed, directives=told)

async def live(home):
    async with second(home, *(says(n) for n in range(1000))) as it:
        for n in itertools.count():
            for _ in range(5):
                await it.hear(f"line {n}")
            print("heard", n, flush=True)
            it.now += minutes(60 * 25)
            records = await it.cortex.look()
            assert [one.outcome for one in records] == ["done"], records
            print("reflected", n, flush=True)

home = Home(Path(sys.argv[1]))
home.create()
asyncio.run(live(home))
"""


def killed(home: Home, after: int, spins: int) -> list[str]:
    """Run a second mind until it has printed this many lines and a little longer, then kill it. Returns its output."""
    process = subprocess.Popen(
        [sys.executable, "-c", LIFE, str(home.root), str(TESTS)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        said = [process.stdout.readline() for _ in range(after)]
        for _ in range(spins):
            pass
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    return [line.split()[0] for line in said if line.strip()]


@pytest.mark.parametrize("seed", range(6))
async def test_a_kill_leaves_whole_cycles_only(home: Home, seed: int) -> None:
    """Each recorded cycle has its one assessment, belief, directive and interactions; an unrecorded one has none."""
    chance = random.Random(seed)  # noqa: S311 - when it is killed is no secret
    said = killed(home, chance.randrange(2, 14), chance.randrange(0, 400_000))

    with closing(sqlite3.connect(home.database)) as database:
        cycles = {cycle for (cycle,) in database.execute("SELECT cycle FROM reflection WHERE outcome = 'done'")}
        assessed = database.execute("SELECT count(*) FROM assessment").fetchone()[0]
        directed = database.execute("SELECT count(*) FROM inbox WHERE key LIKE 'cortex:%'").fetchone()[0]
        believed = {int(key.split("-")[1]) + 1 for (key,) in database.execute("SELECT key FROM belief")}
        taken = dict(database.execute("SELECT cycle, count(*) FROM interaction WHERE cycle IS NOT NULL GROUP BY cycle"))
        waiting = database.execute("SELECT count(*) FROM interaction WHERE cycle IS NULL").fetchone()[0]
        heard = database.execute("SELECT count(*) FROM interaction").fetchone()[0]

    assert said.count("reflected") <= len(cycles) <= said.count("heard")
    assert cycles == set(range(1, len(cycles) + 1))
    assert assessed == directed == len(cycles)
    assert believed == ({max(cycles)} if cycles else set())
    assert taken == dict.fromkeys(cycles, 5)
    assert waiting == heard - 5 * len(cycles)

    async with second(home, answer((ANN, 1))) as it:
        it.now = NOW + minutes(60 * 24 * 1000)
        it.heard = 10_000
        if waiting < 5:
            await it.hear("after")
            it.now += minutes(31)
        records = await it.cortex.look()
        grounds = it.store.ledger.grounds(OPS, [ANN], 100)
        assert it.store.ledger.unreflected(1000) == []

    assert [one.cycle for one in records] == [len(cycles) + 1]
    assert len(grounds.peers[0].timeline) == min(100, heard + (waiting < 5))


async def test_a_cycle_that_was_written_is_not_written_again(home: Home) -> None:
    """If the process dies after the commit but before it knows of it, the next start takes up nothing twice."""
    async with second(home, answer((ANN, 2)), answer((ANN, 2))) as it:
        await it.hear_often(5)
        await it.cortex.look()
        it.begin(home)
        assert await it.cortex.look() == ()
        it.now += minutes(600)
        assert await it.cortex.look() == ()
        trust = it.store.ledger.latest_trust()

    assert trust == {ANN: 2}
    assert isinstance(it.store, SqliteStore)
