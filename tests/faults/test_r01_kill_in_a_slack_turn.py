"""R1 over Slack: kill -9 at each write of a turn, from the event to the receipt. Nothing is lost or said twice."""

import asyncio
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from slack_daemon import PATIENCE_S, SlackDaemon, slack_daemon

pytestmark = pytest.mark.slow

PAGE = "pwrite64"
WRITES = (PAGE, "fdatasync", "sendto", "write")
PUSH_POINTS = 8
POLL_S = 0.02

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


@asynccontextmanager
async def traced(daemon: SlackDaemon, trace: Path, *options: str) -> AsyncIterator[None]:
    """Trace every thread of the daemon for the length of a block."""
    assert daemon.process
    pid = daemon.process.pid
    argv = ("strace", "-f", "-p", str(pid), "-o", str(trace), *options)
    tracer = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE)
    assert tracer.stderr
    said = (await asyncio.wait_for(tracer.stderr.readline(), PATIENCE_S)).decode()
    if "attached" not in said:
        await tracer.wait()
        pytest.skip(f"strace may not attach here: {said.strip()}")
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # after a kill strace may wait for ever for a thread that is dead already
            tracer.kill() if is_dead(pid) else tracer.terminate()
        await asyncio.wait_for(tracer.communicate(), PATIENCE_S)


async def points(daemon: SlackDaemon, trace: Path) -> list[tuple[str, int]]:
    """Return the writes of one undisturbed turn, by system call, as the tracer counts them in a thread.

    Of the pages of one transaction, which nothing else of its thread parts, the first, the middle and the last: who dies
    at another one leaves the same, for a transaction is there once its last page is.
    """
    async with traced(daemon, trace, "-e", "trace=" + ",".join(WRITES)):
        await daemon.slack.say("D1", "U1", "undisturbed")
        await daemon.slack.until_visible(1, within_s=PATIENCE_S)
        await daemon.drained(heard=1)
    counted, found, pages = Counter[tuple[str, str]](), set[tuple[str, int]](), defaultdict[str, list[int]](list)
    for thread, call in [*re.findall(r"^(\d+)\s+(\w+)\(", trace.read_text(), re.MULTILINE)]:
        counted[thread, call] += 1
        if call == PAGE:
            pages[thread].append(counted[thread, call])
            continue
        found |= {(call, counted[thread, call]), *transaction(pages.pop(thread, []))}
    return sorted(found.union(*map(transaction, pages.values())))


def transaction(pages: Sequence[int]) -> set[tuple[str, int]]:
    """Return the points of one transaction. Pure."""
    return {(PAGE, pages[place]) for place in (0, len(pages) // 2, -1) if pages}


async def killed_at(daemon: SlackDaemon, trace: Path, call: str, number: int) -> bool:
    """Say something under a tracer that kills at the `number`-th `call`. Returns whether it was killed."""
    assert daemon.process
    options = ("-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
    answered = len(await daemon.slack.visible()) + 1
    async with traced(daemon, trace, *options):
        await daemon.slack.say("D1", "U1", f"{call} {number}")
        dying = asyncio.create_task(died(daemon.process.pid))
        answering = asyncio.create_task(settled(daemon, answered))
        await asyncio.wait((dying, answering), return_when=asyncio.FIRST_COMPLETED)
        for task in (dying, answering):
            task.cancel()
        await asyncio.gather(dying, answering, return_exceptions=True)
    was_killed = is_dead(daemon.process.pid)  # by now nobody kills it any more: its last writes come after its answer
    if was_killed:
        await daemon.ended()
        await started(daemon)
    await settled(daemon, answered)
    return was_killed


async def started(daemon: SlackDaemon) -> None:
    """Start it, and wait until it has emptied the database's log, which would count among the writes of a turn."""
    log = daemon.home.database.with_name(f"{daemon.home.database.name}-wal")
    before = emptied(log) if log.exists() else 0
    await daemon.start()
    await daemon.until(lambda: not log.stat().st_size or emptied(log) > before, what="an empty log")


def emptied(log: Path) -> int:
    """Return how often it was emptied before what stands in it now (`checkpoint sequence` of its header)."""
    return int.from_bytes(log.read_bytes()[12:16])


async def died(pid: int) -> None:
    """Wait until a process is dead, whether its tracer has noticed or not."""
    while not is_dead(pid):
        await asyncio.sleep(POLL_S)


def is_dead(pid: int) -> bool:
    """Return whether a process is no more, or waits to be buried."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


async def settled(daemon: SlackDaemon, answers: int) -> None:
    """Wait until this much is visible and nothing waits."""
    await daemon.slack.until_visible(answers, within_s=PATIENCE_S)
    await daemon.drained(heard=answers)


async def run(root: Path, count: int | None) -> None:
    """Kill at this many points, evenly spread. The next process must answer each message."""
    async with slack_daemon(root) as daemon:
        await started(daemon)
        found = await points(daemon, root / "trace")
        chosen = found if count is None else [found[place * len(found) // count] for place in range(count)]
        deaths = 0
        for call, number in chosen:
            deaths += await killed_at(daemon, root / "trace", call, number)
        await daemon.stop()

        assert deaths >= len(chosen) // 2
        assert len(await daemon.slack.visible()) == len(chosen) + 1
        assert not daemon.rows("SELECT 1 FROM outbox WHERE kind != 'reply'")
        assert not await daemon.judged()


@needs_strace
async def test_r01_kill_at_points_of_a_slack_turn(tmp_path: Path) -> None:
    """R1 (CI): the points are spread over the writes of a turn, one after the other in one home."""
    await run(tmp_path, PUSH_POINTS)


@needs_strace
@pytest.mark.nightly
async def test_r01_kill_at_every_write_of_a_slack_turn(tmp_path: Path) -> None:
    """R1 (nightly): every write of a turn that leaves something else behind."""
    await run(tmp_path, None)
