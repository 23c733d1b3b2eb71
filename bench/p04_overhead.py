"""P4: the daemon's own time a turn: event bytes in → request bytes out, and last model byte → post bytes out.

The whole daemon runs with the real client libraries of Slack and Anthropic, both services on loopback in another
process, 1,000 live conversations, one turn at a time. The ancestor is its engine alone: prompt, then parse, no network.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any

from anchors import claude
from anchors.agents import attached
from claudius.home import Home
from command import Bench, alone
from figures import Beside, Figure, bound, percentile
from ours import Soul
from process import daemon
from script import MESSAGE_CHARS, message, prose, spoken
from sides import alternate, peer_python, side

HERE = Path(__file__).resolve().parent
LIVE, QUICK_LIVE = 1000, 40
TURNS, QUICK_TURNS = 100, 15
SLOW_TURNS, QUICK_SLOW_TURNS = 20, 3
HUNG, QUICK_HUNG = 200, 30
PAST = 12
"""Earlier turns of each conversation when a cold one is compared with a warm one."""
COLD, FLOOR = bound("P4.cold"), bound("P4.floor")
WIRES = {"anthropic_api": "/v1/messages", "openai_compat": "/v1/chat/completions"}
FIRST_TOKEN_S = 0.6
ROWS = 1000

ANCESTOR = bound("P4.claudicle")
CLI = bound("P4.cli")


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate our side, and the ancestor and the CLI if they are given."""
    live, turns = (QUICK_LIVE, QUICK_TURNS) if bench.is_quick else (LIVE, TURNS)
    slow, hung = (QUICK_SLOW_TURNS, QUICK_HUNG) if bench.is_quick else (SLOW_TURNS, HUNG)
    numbers = count(1)
    with ExitStack() as stack:
        town = stack.enter_context(side(HERE / "town.py", bench.home("town")))
        addresses = town.ask("open", people=live)
        stack.enter_context(daemon(bench.home("daemon"), addresses))

        def some(how_many: int) -> list[int]:
            return list(islice(numbers, how_many))

        town.ask("talk", numbers=some(live))
        sides: dict[str, Callable[[], Any]] = {"ours": lambda: town.ask("timed", numbers=some(turns))}
        ancestor = bench.peer("claudicle", ANCESTOR, lambda path: _begin(bench, stack, path, sides, live, turns))
        cli = bench.peer("claude", CLI, lambda path: _cli(bench, path, addresses["ANTHROPIC_BASE_URL"], sides))
        found = alternate(bench.rounds, sides)
        slowly = town.ask("timed", numbers=some(slow), delay_s=FIRST_TOKEN_S)
        acks = town.ask("hung", numbers=some(hung))
        answered = town.ask("end")
    assert answered == live + (bench.rounds + 1) * turns + slow + hung, answered
    singles = [ms for one in found["ours"] for ms in one]
    if not ancestor.reason:
        samples = [percentile(one["ms"], 0.5) for one in found["claudicle"]]
        ancestor = Beside(name="claudicle", version=ancestor.version, bound=ANCESTOR, samples=samples)
    if not cli.reason:
        cli = Beside(name="claude -p", bound=CLI, samples=found["claude"])
    share = 100 * median(slowly) / (1000 * FIRST_TOKEN_S)
    yield Figure(
        id="P4",
        name=f"own time a turn, {live:,} live conversations",
        unit="ms",
        samples=[percentile(one, 0.5) for one in found["ours"]],
        singles=singles,
        beside=(ancestor, cli),
        note=(
            f"p50 {percentile(singles, 0.5):.2f} ms, p99 {percentile(singles, 0.99):.2f} ms (plan 2 ms, 10 ms); with a "
            f"model that takes 600 ms: p50 {median(slowly):.2f} ms, {share:.2f} % of it (plan 0.5 %) · {answered} "
            "messages, each answered once"
        ),
    )
    yield Figure(
        id="P4",
        name="event → ack, the model hung, p99",
        unit="ms",
        samples=[percentile(acks, 0.99)],
        singles=acks,
        note=f"{len(acks)} events at once; p50 {percentile(acks, 0.5):.1f} ms; Slack waits 3,000 ms",
    )
    for wire in WIRES:
        yield from _cpu(bench, wire, turns)
    yield _cold(bench, live)


def _cpu(bench: Bench, wire: str, turns: int) -> Iterator[Figure]:
    """Alternate turns of the daemon, over Slack and at the terminal, with what a turn costs at least."""
    numbers, home = count(1), bench.home("daemon")
    with ExitStack() as stack:
        town = stack.enter_context(side(HERE / "town.py", bench.home("town")))
        floor = stack.enter_context(side(HERE / "anchors" / "floor.py", bench.home("floor")))
        addresses = town.ask("open", people=1)
        url = addresses["ANTHROPIC_BASE_URL"]
        awake = stack.enter_context(daemon(home, addresses | _wired(wire, url)))

        def slack() -> float:
            before = awake.cpu_ms()
            town.ask("timed", numbers=list(islice(numbers, turns)))
            return (awake.cpu_ms() - before) / turns

        def terminal() -> float:
            before = awake.cpu_ms()
            asyncio.run(_said(Home(home).socket, list(islice(numbers, turns))))
            return (awake.cpu_ms() - before) / turns

        sides = {
            "Slack": slack,
            "terminal": terminal,
            "floor": lambda: floor.ask("turns", url=url, path=WIRES[wire], count=turns),
        }
        found: dict[str, list[float]] = alternate(bench.rounds, sides)
        town.ask("end")
    for name in ("Slack", "terminal"):
        beside = Beside(name="commits, JSON, one stream", bound=FLOOR, samples=found["floor"])
        yield Figure(id="P4", name=f"CPU of a turn, {name}, {wire}", unit="ms", samples=found[name], beside=(beside,))


def _wired(wire: str, url: str) -> dict[str, str]:
    return {
        "CLAUDIUS_PROVIDERS": wire,
        "CLAUDIUS_OPENAI_BASE_URL": f"{url}/v1",
        "CLAUDIUS_OPENAI_MODEL": "claude-loopback",
        "CLAUDIUS_OPENAI_PROFILE": "full",
    }


async def _said(socket: Path, numbers: list[int]) -> None:
    async with attached(socket, "bench") as say:
        for number in numbers:
            assert (await say(f"{message(number)} #{number}#")).startswith(spoken(number)), number


def _cold(bench: Bench, live: int) -> Figure:
    """Take a turn in each of many conversations, alternating with turns in one conversation.

    Returns the CPU of both.
    """
    cold, warm = asyncio.run(_in_turn(bench.home("cold") / "soul", live, QUICK_TURNS if bench.is_quick else TURNS))
    return Figure(
        id="P4",
        name=f"CPU of a turn whose conversation is out of mind, {live:,} in turn",
        unit="ms",
        samples=cold,
        beside=(Beside(name="the same one at once", bound=COLD, samples=warm),),
        note=f"{PAST} turns behind each; engine and store alone, the loop's thread",
    )


async def _in_turn(root: Path, live: int, turns: int) -> tuple[list[float], list[float]]:
    soul = Soul(root)
    await soul.open()

    said = count()  # every message is new, so cached results of one conversation do not help another

    async def cpu_ms(number: int) -> float:
        text = prose(MESSAGE_CHARS, next(said))
        began = time.thread_time()
        await soul.turn(f"terminal:local:p{number}:", f"terminal:local:p{number}", text=text)
        return 1000 * (time.thread_time() - began)

    for number in (number for _ in range(PAST) for number in range(live)):
        await cpu_ms(number)
    pairs = [(await cpu_ms(number), await cpu_ms(number)) for number in range(min(turns, live))]
    await soul.close()
    return [cold for cold, _ in pairs], [warm for _, warm in pairs]


def _begin(
    bench: Bench, stack: ExitStack, path: Path, sides: dict[str, Callable[[], Any]], live: int, turns: int
) -> Beside:
    python = peer_python(path)
    driver = stack.enter_context(side(HERE / "anchors" / "claudicle.py", bench.home("claudicle"), python))
    version = driver.ask("begin", path=str(path), rows=ROWS)
    sides["claudicle"] = partial(driver.ask, "turns", count=turns, conversations=live)
    return Beside(name="claudicle", bound=ANCESTOR, version=version)


def _cli(bench: Bench, path: Path, url: str, sides: dict[str, Callable[[], Any]]) -> Beside:
    home = bench.home("claude")
    claude.turn_ms(path, url, home, f"{message(1)} #1#")
    sides["claude"] = lambda: claude.turn_ms(path, url, home, f"{message(1)} #1#")
    return Beside(name="claude", bound=CLI)


if __name__ == "__main__":
    alone(__file__)
