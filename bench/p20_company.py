"""P20: what a company feels: a burst of messages, and a turn by somebody who shares many channels with the soul.

The burst goes through the whole daemon with the real client libraries, Slack and a model of one second on loopback in
another process: what has its answer must not wait for what begins. The channels are counted in one process, in pairs.
So are the calls of a model that are under way at once: each may cost what it does among few.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from claudius.compose import PROVIDERS
from claudius.config.load import load
from claudius.home import Home
from claudius.provider import Request
from command import Bench, alone
from figures import Beside, Figure, bound, within
from loopback import model
from ours import Soul
from process import daemon
from script import MESSAGE_CHARS, prose
from sides import side

HERE = Path(__file__).resolve().parent
BURST, QUICK_BURST = 1000, 200
CALL_S = 1.0
CHANNELS, FEW = 1000, 2
TURNS, QUICK_TURNS = 60, 30
AT_ONCE, FEW_AT_ONCE, CALLS, QUICK_CALLS = 250, 25, 1_000, 250
HALF, WHOLE, CHANNELS_COST, BOUNDED = map(bound, ("P20.half", "P20.whole", "P20.channels", "P20.calls"))


def measure(bench: Bench) -> Iterator[Figure]:
    """Have everybody write at once, a few times; then take turns with few channels and with many in turn."""
    people, rounds = (QUICK_BURST, 1) if bench.is_quick else (BURST, min(3, bench.rounds))
    with ExitStack() as stack:
        town = stack.enter_context(side(HERE / "town.py", bench.home("town")))
        addresses = town.ask("open", people=people)
        awake = stack.enter_context(daemon(bench.home("daemon"), addresses))
        town.ask("talk", numbers=list(range(1, people + 1)))
        found, cpu_s = [], []
        for number in range(rounds):
            at, before = 1 + people * (number + 1), awake.cpu_ms()
            found.append(town.ask("burst", numbers=list(range(at, at + people)), delay_s=CALL_S))
            cpu_s.append((awake.cpu_ms() - before) / 1000)
        answered = town.ask("end")
    assert answered == people * (rounds + 1), answered
    name = f"a burst of {people}, a model of {CALL_S:g} s"
    for what, samples, key in (
        ("first answer", [one["first_s"] - CALL_S for one in found], "P20.first"),
        ("slowest acknowledgement", [one["ack_s"] for one in found], "P20.ack"),
    ):
        yield Figure(id="P20", name=f"{name}: {what}", unit="s", samples=samples, beside=(within(key, rounds),))
    whole = Beside(name="the whole", bound=HALF, samples=[one["all_s"] for one in found])
    halves = [one["half_s"] for one in found]
    yield Figure(id="P20", name=f"{name}: half of the answers", unit="s", samples=halves, beside=(whole,))
    spent = Beside(name="turns × CPU of a turn", bound=WHOLE, samples=cpu_s)
    wholes = [one["all_s"] - CALL_S for one in found]
    yield Figure(id="P20", name=f"{name}: all answers, less one call", unit="s", samples=wholes, beside=(spent,))
    many, few = asyncio.run(_in_pairs(bench.home("channels"), QUICK_TURNS if bench.is_quick else TURNS))
    anchor = Beside(name=f"{FEW} channels", bound=CHANNELS_COST, samples=few)
    yield Figure(id="P20", name=f"CPU of a turn, {CHANNELS} channels", unit="ms", samples=many, beside=(anchor,))
    for name in ("anthropic_api", "openai_compat"):
        with model(bench.home(name), [{"text": prose(MESSAGE_CHARS, 0), "delay_s": CALL_S, "keep": True}]) as url:
            count = QUICK_CALLS if bench.is_quick else CALLS
            crowd, alone_ = asyncio.run(_under_way(bench.home(f"{name} home"), name, url, count, rounds))
        anchor = Beside(name=f"{FEW_AT_ONCE} at once", bound=BOUNDED, samples=alone_)
        yield Figure(
            id="P20", name=f"CPU of a call, {AT_ONCE} at once, {name}", unit="ms", samples=crowd, beside=(anchor,)
        )


async def _under_way(root: Path, name: str, url: str, count: int, rounds: int) -> tuple[list[float], list[float]]:
    """Return the CPU of a call among many that are under way, and among few; in turn."""
    settings = {
        "CLAUDIUS_PROVIDERS": name,
        "ANTHROPIC_API_KEY": "sk-ant-bench",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDIUS_OPENAI_BASE_URL": f"{url}/v1",
        "CLAUDIUS_OPENAI_MODEL": "claude-loopback",
        "CLAUDIUS_OPENAI_PROFILE": "full",
    }
    home = Home(root)
    home.create()
    voice = importlib.import_module(PROVIDERS[name]).build(load(home, settings), home)
    request = Request(system="You are here.", history=(), tail=prose(MESSAGE_CHARS, 1), max_tokens=200)
    found: dict[int, list[float]] = {AT_ONCE: [], FEW_AT_ONCE: []}

    async def caller(calls: Iterator[int]) -> None:
        for _ in calls:
            async for _ in voice.complete(request):
                pass

    for number in range(rounds + 1):
        for at_once, samples in found.items():
            made = max(at_once, count if at_once == AT_ONCE else count // 4)
            calls, began = iter(range(made)), time.process_time()
            await asyncio.gather(*(caller(calls) for _ in range(at_once)))
            if number:  # the first round imports the library and opens the connections
                samples.append(1000 * (time.process_time() - began) / made)
    await voice.aclose()
    return found[AT_ONCE], found[FEW_AT_ONCE]


async def _in_pairs(root: Path, turns: int) -> tuple[list[float], list[float]]:
    """Return the CPU of turns with many channels, and of the same ones with few."""
    found: dict[int, list[float]] = {CHANNELS: [], FEW: []}
    souls: dict[int, Soul] = {}
    for channels in found:
        soul = souls[channels] = Soul(root / str(channels))
        await soul.open()
        for n in range(channels):
            await soul.store.people.know_members(f"shared:slack:T1:c{n}", ("slack:T1:ana",), datetime.now(UTC))
    for number in range(turns + 3):
        for channels, soul in sorted(souls.items(), reverse=bool(number % 2)):  # who comes first reads a text for both
            text = prose(MESSAGE_CHARS, number)
            began = time.process_time()
            await soul.turn("slack:T1:D-ana:", "slack:T1:ana", text=text)
            if number >= 3:  # the first ones warm the caches
                found[channels].append(1000 * (time.process_time() - began))
    for soul in souls.values():
        await soul.close()
    return found[CHANNELS], found[FEW]


if __name__ == "__main__":
    alone(__file__)
