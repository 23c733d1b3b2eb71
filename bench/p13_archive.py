"""P13: what git costs: a turn's p50 beside a running archive, 1,000 updates until HEAD has them, and their bytes."""

from __future__ import annotations

import asyncio
import difflib
import subprocess
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import script
from claudius.memory.archive import Archive
from claudius.perception import private
from command import Bench, alone
from figures import Beside, Figure, bound, percentile
from ours import Soul
from sides import alternate, environment, side

HERE = Path(__file__).resolve().parent
TURNS, QUICK_TURNS = 150, 60
LEARNS_EVERY = 5
UPDATES, QUICK_UPDATES = 1000, 200
PEOPLE = 20
SECTIONS = ("Persona", "Speaking Style", "Worldview", "Working Patterns")
LINES = 6
NOTE = "they said something new"
BESIDE = bound("P13.turn")
LAG = bound("P13.lag")
BYTES = bound("P13.bytes")


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate an archiving and a plain soul; then our worker and plain git, on the same versions."""
    yield _beside(bench)
    yield from _lag(bench)


def _beside(bench: Bench) -> Figure:
    turns = QUICK_TURNS if bench.is_quick else TURNS
    with ExitStack() as stack:
        sides = {}
        for name, archives in (("on", True), ("off", False)):
            root = bench.home(name)
            soul = stack.enter_context(side(HERE / "ours.py", root))
            soul.ask("begin", root=str(root / "soul"), learns_every=LEARNS_EVERY, archives=archives)
            sides[name] = lambda soul=soul: percentile(soul.ask("turns", count=turns)["ms"], 0.5)
        found = alternate(bench.rounds, sides)
    return Figure(
        id="P13",
        name="p50 of a turn, archive on",
        unit="ms",
        samples=found["on"],
        beside=(Beside(name="archive off", bound=BESIDE, samples=found["off"]),),
        note=f"a user model is updated every {LEARNS_EVERY} turns; what is left is committed between rounds, untimed",
    )


@dataclass(frozen=True, slots=True)
class Held:
    """One repository that holds every version."""

    took_s: float
    size: int
    """Bytes of its objects."""


def _lag(bench: Bench) -> Iterator[Figure]:
    updates = QUICK_UPDATES if bench.is_quick else UPDATES
    versions = [(number % PEOPLE, _version(number)) for number in range(updates)]
    found = alternate(
        bench.rounds,
        {
            "ours": lambda: asyncio.run(_archive(bench.home("a"), versions)),
            "git": lambda: _fast_import(bench.home("g"), versions),
        },
    )
    yield Figure(
        id="P13",
        name=f"{updates:,} updates until HEAD has them",
        unit="s",
        samples=[one.took_s for one in found["ours"]],
        beside=(Beside(name="git fast-import", bound=LAG, samples=[one.took_s for one in found["git"]]),),
    )
    diffs = _diffs(versions)
    yield Figure(
        id="P13",
        name="bytes an update",
        unit="B",
        is_counted=True,
        samples=[one.size / updates for one in found["ours"]],
        beside=(Beside(name="zlib of the diff", bound=BYTES, samples=[diffs] * bench.rounds),),
        note=f"git fast-import of the same: {found['git'][0].size / updates:.0f} B",
    )


def _version(number: int) -> str:
    """Return a portrait of four sections. Each update of a person rewrites half of one section. Pure."""
    turn, person = divmod(number, PEOPLE)
    sections = []
    for place, heading in enumerate(SECTIONS):
        edition = (turn - place + len(SECTIONS) - 1) // len(SECTIONS)
        lines = [script.prose(60, _seed(person, place, line, edition)) for line in range(LINES)]
        sections.append(f"## {heading}\n" + "".join(f"- {line}\n" for line in lines))
    return "# Somebody\n\n" + "\n".join(sections)


def _seed(person: int, place: int, line: int, edition: int) -> int:
    """Return the seed of one line's words, which change in every second edition. Pure."""
    return hash((person, place, line, (edition + line % 2) // 2))


async def _archive(root: Path, versions: Sequence[tuple[int, str]]) -> Held:
    """Write every version to the store, then time our worker until HEAD has all. The oracle asks git."""
    soul = Soul(root / "soul")
    await soul.open()
    now = soul.mind.clock()
    for person, markdown in versions:
        who = f"terminal:local:p{person}"
        await soul.store.documents.set_model(who, private(who), markdown, NOTE, "owner", now)
    archive = Archive(soul.store, soul.home.memory, soul.home.backups, clock=soul.mind.clock)
    started = time.perf_counter()
    while soul.store.documents.unarchived(1):
        await archive.round()
    took_s = time.perf_counter() - started
    await archive.close()
    await soul.close()
    assert int(_git(soul.home.memory, "rev-list", "--count", "HEAD")) == len(versions)
    return Held(took_s, _size(soul.home.memory / ".git" / "objects"))


def _fast_import(root: Path, versions: Sequence[tuple[int, str]]) -> Held:
    """Import the same versions with `git fast-import`, one commit each."""
    stream = b"".join(_commit(number, person, markdown.encode()) for number, (person, markdown) in enumerate(versions))
    _git(root, "init", "--quiet", "--initial-branch=main")
    started = time.perf_counter()
    _git(root, "fast-import", "--quiet", given=stream)
    took_s = time.perf_counter() - started
    assert int(_git(root, "rev-list", "--count", "HEAD")) == len(versions)
    return Held(took_s, _size(root / ".git" / "objects"))


def _commit(number: int, person: int, content: bytes) -> bytes:
    head = f"commit refs/heads/main\ncommitter C <c@localhost> {1_700_000_000 + number} +0000\n"
    file = f"data {len(NOTE)}\n{NOTE}\nM 100644 inline users/p{person}.md\ndata {len(content)}\n"
    return (head + file).encode() + content + b"\n"


def _git(root: Path, *args: str, given: bytes = b"") -> str:
    ran = subprocess.run(["git", *args], cwd=root, env=environment(root), input=given, capture_output=True, check=True)
    return ran.stdout.decode()


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _diffs(versions: Sequence[tuple[int, str]]) -> float:
    """Return the mean size of an update as a compressed unified diff."""
    last: dict[int, str] = {}
    total = 0
    for person, markdown in versions:
        before, after = last.get(person, "").splitlines(keepends=True), markdown.splitlines(keepends=True)
        total += len(zlib.compress("".join(difflib.unified_diff(before, after, "a", "b")).encode()))
        last[person] = markdown
    return total / len(versions)


if __name__ == "__main__":
    alone(__file__)
