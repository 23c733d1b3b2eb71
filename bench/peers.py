"""Claudius beside other agents that answer in a chat: in one run, on one fake model, in a namespace without a network.

    bench/peers --install DIR               put the peers of AGENTS into DIR, from the package indexes
    bench/peers --from DIR [--only NAME]… [--turns N] [--page]

A peer that is not in DIR is skipped by name. `--page` writes docs/measured.md. Every peer has its own home and its own
defaults; the model is the test lab's, it answers at once with the same words and calls no tool. Tokens are counted
alike for all: characters of the request ÷ 4; what it shares with the beginning of an earlier one counts a tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from aiohttp import web

import script
from anchors.agents import AGENTS, INSTALLED, MODEL, NODE, Agent, until_ready
from anchors.naive import common, whole
from claudius.testing.model_calls import Reply
from ground import look
from lab.loopback.model import Call, ModelServer
from sides import children_s

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "measured.md"
INSIDE = "BENCH_NAMESPACE"
SITTING, TOLD_AT = 200, (1, 20, 200)
BLOCK = 20
"""CPU of a turn is read for so many turns at a time; the first block warms and does not count."""
CROWD, CALL_S = 200, 1.0
STARTS = 3
KEPT_REQUESTS = 400
READ = 0.1
"""What a token costs that was read from a cache."""
THINGS = (
    "locker", "bicycle", "passport", "garage", "piano", "telescope", "canoe", "greenhouse", "violin", "caravan", "kiln",
    "aquarium", "printer", "lawnmower", "accordion", "chandelier", "thermostat", "beehive", "sextant", "typewriter",
)  # fmt: skip
"""What the twenty facts are about."""

Row = dict[str, str]


@dataclass(slots=True)
class Asked:
    """One request: its tokens, and how many of them it shares with an earlier one's beginning."""

    tokens: float
    shared: float
    text: str = field(repr=False)

    @property
    def billed(self) -> float:
        """Tokens at full price that cost as much."""
        return self.tokens - self.shared + READ * self.shared


class Fake(ModelServer):
    """A model that answers everybody with the same words, and counts what it is asked."""

    def __init__(self) -> None:
        """Answer at once."""
        super().__init__(default=self._words)
        self.delay_s = 0.0
        self.requests: list[Asked] = []

    def _words(self, call: Call) -> Reply:
        number = len(self.requests)
        text = script.plain_reply(number) if "external_dialogue" in call.raw.decode() else script.spoken(number)
        return Reply(text=text, delay_s=self.delay_s)

    async def _route(self, request: web.Request, call: Call) -> web.StreamResponse:
        if call.method == "POST" and call.path in {"/v1/messages", "/v1/chat/completions"}:
            text = whole(call.body)
            shared = max((common(text, one.text) for one in self.requests[-KEPT_REQUESTS:]), default=0)
            self.requests.append(Asked(len(text) / 4, shared / 4, text))
        return await super()._route(request, call)


# -- processes ---------------------------------------------------------------------------------------------------------


def _family(pid: int) -> list[int]:
    """Return a process and all that it started, as far as they live."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text("ascii").split())
    return found


def cpu_ms(pid: int | None) -> float:
    """Return the CPU time of a process and all that it started; without one, of the commands that have ended."""
    if pid is None:
        return 1000 * children_s()
    total = 0.0
    for one in _family(pid):
        fields = Path(f"/proc/{one}/stat").read_text("ascii").rpartition(")")[2].split()
        total += 1000 * time.clock_gettime((~one << 3) | 2)  # the clock of another process: clock_getcpuclockid(3)
        total += 1000 * sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")  # of children that ended
    return total


def rss_mib(pid: int) -> float:
    """Return the memory of a process and all that it started; what they share counts once."""
    total = 0
    for one in _family(pid):
        for line in Path(f"/proc/{one}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


class Served:
    """A peer's long-lived process."""

    def __init__(self, agent: Agent) -> None:
        """Do not start it yet."""
        self.agent = agent
        self.process: subprocess.Popen[bytes]

    async def start(self) -> float:
        """Start it. Returns the milliseconds until it answers."""
        run = self.agent.serve()
        assert run is not None
        argv, environment = run
        began = time.perf_counter()
        with (self.agent.home / "served.log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 - nothing else goes on
                [str(word) for word in argv],
                env=dict(environment),
                cwd=self.agent.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        await until_ready(self.agent, self.process)
        return 1000 * (time.perf_counter() - began)

    def stop(self, signal_: int = signal.SIGTERM) -> None:
        """End it with all that it started."""
        os.killpg(self.process.pid, signal_)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def once(agent: Agent, text: str) -> tuple[float, float]:
    """Say one thing by a command of its own. Returns its CPU and wall time in milliseconds."""
    argv, environment = agent.once(text)
    before, began = children_s(), time.perf_counter()
    ran = subprocess.run(
        [str(word) for word in argv],
        env=dict(environment),
        cwd=agent.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=180,
        check=False,
    )
    wall_ms = 1000 * (time.perf_counter() - began)
    if ran.returncode or not ran.stdout.strip():
        raise RuntimeError((ran.stderr or ran.stdout).decode("utf-8", "replace").strip()[-300:] or "no answer")
    return 1000 * (children_s() - before), wall_ms


# -- what is measured --------------------------------------------------------------------------------------------------


def _message(number: int) -> str:
    """Return the n-th message of a sitting; every fifth of the first hundred tells a fact. Pure."""
    fact, rest = divmod(number, 5)
    told = f" The number of my {THINGS[fact - 1]} is {_code(fact)}." if not rest and fact <= len(THINGS) else ""
    return script.message(number) + told


def middle(samples: Sequence[float], unit: str, digits: int = 0) -> str:
    """Return the median, and from where to where the samples lie. Pure."""
    words = [f"{one:,.{digits}f}" for one in (statistics.median(samples), min(samples), max(samples))]
    return f"{words[0]} ({words[1]}–{words[2]}) {unit}" if len(samples) > 1 else f"{words[0]} {unit}"


def _code(fact: int) -> str:
    return f"{7919 * fact % 100_000:05d}"


async def measure(agent: Agent, fake: Fake, turns: int, row: Row) -> None:
    """Measure one peer into `row`. What it cannot do, or fails at, is a cell that says so."""
    agent.configure()
    await _commands(agent, row, "one-shot, CPU, no process of it running")
    if agent.serve() is None:
        await _sitting(agent, fake, None, turns, row)
        return
    served = Served(agent)
    starts = []
    for _ in range(STARTS + 1):
        starts.append(await served.start())
        served.stop()
    row["start → ready"] = middle(starts[1:], "ms")  # the first one compiles, too
    await served.start()
    try:
        await _sitting(agent, fake, served.process.pid, turns, row)
        await _commands(agent, row, "one-shot, CPU, through it")
        await _crowd(agent, fake, served, min(CROWD, turns), row)
        await _killed(agent, fake, served, row)
    finally:
        served.stop()


async def _commands(agent: Agent, row: Row, name: str) -> None:
    try:
        texts = map(script.message, range(SITTING + 1, SITTING + STARTS + 2))
        found = [await asyncio.to_thread(once, agent, text) for text in texts][1:]
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        row[name] = f"failed: {error}"[:80]
        return
    row[name] = middle([cpu for cpu, _ in found], "ms")


async def _sitting(agent: Agent, fake: Fake, pid: int | None, turns: int, row: Row) -> None:
    """Talk for so many turns in one conversation, and ask for the facts at the end."""
    blocks: list[float] = []
    billed: list[float] = []
    shares: list[float] = []
    async with agent.talk("sitting") as say:
        for number in range(1, turns + 1):
            if number % BLOCK == 1:
                await _still(pid)
                blocks.append(cpu_ms(pid))
            before, began, cpu = len(fake.requests), time.perf_counter(), cpu_ms(pid) if number == 1 else 0.0
            await say(_message(number))
            if number == 1:
                row["first turn"] = f"{1000 * (time.perf_counter() - began):,.0f} ms"
                await _still(pid)
                row["first turn, CPU"] = f"{cpu_ms(pid) - cpu:,.0f} ms"
                if pid:
                    row["memory after the first turn"] = f"{rss_mib(pid):,.0f} MiB"
            asked = fake.requests[before:]
            billed.append(sum(one.billed for one in asked))
            if number > 1:
                shares.append(sum(one.shared for one in asked) / max(1.0, sum(one.tokens for one in asked)))
        await _still(pid)
        blocks.append(cpu_ms(pid))
        each = [(after - before) / BLOCK for before, after in pairwise(blocks)]
        row["CPU a turn"] = middle(each[1:] or each, "ms", digits=1)
        for number in TOLD_AT:
            if number <= turns:
                row[f"tokens, billed-equivalent, turn {number}"] = f"{billed[number - 1]:,.0f}"
        row[f"the same, mean of {turns} turns"] = f"{statistics.mean(billed):,.0f}"
        row["share of a request that an earlier one began with"] = f"{statistics.mean(shares):.3f}"
        if pid:
            row[f"memory after {turns} turns"] = f"{rss_mib(pid):,.0f} MiB"
        told = min(len(THINGS), turns // 5)
        known = 0
        for fact in range(1, told + 1):
            before = len(fake.requests)
            await say(f"What was the number of my {THINGS[fact - 1]}?")
            known += any(_code(fact) in one.text for one in fake.requests[before:])
        row[f"facts told early that stand in the prompt of a question, of {told}"] = str(known)


async def _still(pid: int | None) -> None:
    """Wait until a peer does nothing more for the turns before: a tenth of a second with less than 5 ms of CPU."""
    for _ in range(50 if pid else 0):
        before = cpu_ms(pid)
        await asyncio.sleep(0.1)
        if cpu_ms(pid) - before < 5:
            return


async def _crowd(agent: Agent, fake: Fake, served: Served, count: int, row: Row) -> None:
    """Have many conversations ask at once, with a model that takes a second."""
    fake.delay_s, name = CALL_S, f"{count} conversations at once, a model of {CALL_S:g} s"

    async def ask(number: int) -> None:
        async with agent.talk(f"crowd{number}") as say:
            await say(script.message(number))

    cpu, began = cpu_ms(served.process.pid), time.perf_counter()
    try:
        async with asyncio.timeout(600):
            async with asyncio.TaskGroup() as group:
                for number in range(count):
                    group.create_task(ask(number))
        row[name] = f"{time.perf_counter() - began:.1f} s"
        row["… CPU a turn"] = f"{(cpu_ms(served.process.pid) - cpu) / count:.1f} ms"
    except* (RuntimeError, OSError, TimeoutError) as errors:
        row[name] = f"failed: {errors.exceptions[0]}"[:80]
    fake.delay_s = 0.0


async def _killed(agent: Agent, fake: Fake, served: Served, row: Row) -> None:
    """Kill it while the model is being asked, and start it again."""
    last = "The kingfisher is back at the mill."
    async with agent.talk("killed") as say:
        await say("My boat is called Halcyon.")
        fake.delay_s = 60.0
        lost = asyncio.create_task(say(last))
        while not any(last in one.text for one in fake.requests):  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(0.01)
        served.stop(signal.SIGKILL)
        fake.delay_s = 0.0
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
    before = len(fake.requests)
    await served.start()
    for _ in range(100):
        if any(last in one.text for one in fake.requests[before:]):
            break
        await asyncio.sleep(0.1)
    row["kill -9 during a call: answered after the restart"] = "yes" if len(fake.requests) > before else "no"
    async with agent.talk("killed") as say:
        await say("What is my boat called?")
    known = [text for text in ("Halcyon", last) if text in fake.requests[-1].text]
    row["… and stands in the next prompt"] = {0: "nothing", 1: "what was answered before", 2: "all"}[len(known)]


# -- the run -----------------------------------------------------------------------------------------------------------


def install(into: Path, only: Sequence[str]) -> None:
    """Install the peers, each in an environment of its own below `into`."""
    for name, packages in INSTALLED.items():
        if only and name not in only:
            continue
        place, path = into / name, os.environ["PATH"]
        place.mkdir(parents=True, exist_ok=True)
        if name == "openclaw":
            npm = [shutil.which("npm") or "npm", "install", "--no-fund", "--no-audit", "--prefix", str(place)]
            runs = [[*npm, f"{NODE}@24"], [*npm, *packages]]
            path = f"{place / 'node_modules' / NODE / 'bin'}:{path}"  # npm takes what the Node in use can run
        else:
            python = str(place / "bin" / "python")
            runs = [[sys.executable, "-m", "venv", str(place)], [python, "-m", "pip", "install", "--quiet", *packages]]
        done = all(subprocess.run(argv, env=os.environ | {"PATH": path}, check=False).returncode == 0 for argv in runs)
        print(f"{name}: {'installed' if done else 'not installed'}", flush=True)


def alone_in_a_namespace() -> str:
    """Go on without any network but loopback where the system lets us. Returns what that came to."""
    if os.environ.get(INSIDE):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            fcntl.ioctl(made, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
        return "in a network namespace with nothing but loopback"
    unshare = shutil.which("unshare")
    words = [unshare or "", "--map-root-user", "--net"]
    if unshare and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
        os.execve(unshare, [*words, sys.executable, *sys.argv], os.environ | {INSIDE: "1"})  # noqa: S606 - itself
    return "with the machine's own network in reach: no namespace could be made"


def _port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


async def compared(places: Path, only: Sequence[str], turns: int, directory: Path) -> dict[str, Row]:
    """Measure one peer after the other. Returns their rows by name; the first row is the version."""
    found: dict[str, Row] = {}
    for name, kind in AGENTS.items():
        if only and name not in only:
            continue
        ours = name not in INSTALLED
        if not ours and not (places / name).exists():
            print(f"{name}: skipped, it is not in {places}", flush=True)
            continue
        home = directory / name.replace(" ", "-").replace(",", "")
        home.mkdir()
        async with Fake() as fake:
            agent = kind(name, places / name, home, fake.url, _port())
            argv, environment = agent.version()
            asked = await asyncio.to_thread(
                subprocess.run, [str(word) for word in argv], env=dict(environment), capture_output=True, check=False
            )
            version = (asked.stdout or asked.stderr).decode().strip().splitlines()[:1] or ["?"]
            found[name] = {"version": version[0]}
            try:
                await measure(agent, fake, turns, found[name])
            except (RuntimeError, OSError, TimeoutError, AssertionError) as error:
                found[name] |= {"failed": f"{type(error).__name__}: {error}"[:200]}
                print(
                    (home / "served.log").read_text("utf-8", "replace")[-2000:]
                    if (home / "served.log").exists()
                    else ""
                )
        print(json.dumps({name: found[name]}, indent=1, ensure_ascii=False), flush=True)
    return found


def table(found: Mapping[str, Row]) -> str:
    """Return the table of the page: a row a figure, a column a peer. Pure."""
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    lines = [f"| | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    lines += [f"| {name} | {' | '.join(row.get(name, '–') for row in found.values())} |" for name in names]
    return "\n".join(lines)


def main() -> None:
    """Install, or measure and print; with `--page` write the page, too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", type=Path, metavar="DIR", help="put the peers there")
    parser.add_argument("--from", type=Path, metavar="DIR", dest="places", default=Path(), help="where they are")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=f"of {', '.join(AGENTS)}")
    parser.add_argument("--turns", type=int, default=SITTING, metavar="N", help=f"a multiple of {BLOCK}")
    parser.add_argument("--page", action="store_true", help="write docs/measured.md")
    options = parser.parse_args()
    if options.install:
        install(options.install.resolve(), options.only)
        return
    where = alone_in_a_namespace()
    script.ready()
    with tempfile.TemporaryDirectory(prefix="cb-") as directory:
        ground = look(Path(directory))
        found = asyncio.run(compared(options.places.resolve(), options.only, options.turns, Path(directory)))
    said = (
        f"Measured at commit {ground.commit}, {ground.at[:10]}, {where}: {ground.cpu}, {len(ground.cores)} cores, "
        f"Python {ground.versions['python']}, load {ground.load:.1f} at the start, model {MODEL}."
    )
    if absent := [name for name in AGENTS if name not in found]:
        said += f" Not in this run: {', '.join(absent)}."
    print(f"\n{said}\n\n{table(found)}")
    if options.page:
        words = PAGE.read_text("utf-8").partition("\n<!-- bench/peers -->")[0]
        PAGE.write_text(f"{words}\n<!-- bench/peers -->\n\n{said}\n\n{table(found)}\n", "utf-8")
