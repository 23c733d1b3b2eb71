"""Kill a command at its file-changing system calls, and look what the next start finds and what its repetition ends in.

A row of the table that is printed: command, points, and what the kills led to.
"""

import re
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from claudius.memory.sqlite import SqliteStore
from claudius.perception import Perception, private
from driven import CLAUDIUS, Machine, Ran, reply
from reflecting import answer

ADA, BEN, CARL = "terminal:local:ada", "terminal:local:as-ben", "terminal:local:as-carl"
WAITING = "terminal:local:main:waiting"
ACCEPTED = ("accepted:1", "accepted:2")
"""The keys of two messages that were accepted and not answered."""
PATIENCE_S = 240
EACH = 3
"""How many of the calls are taken that do the same to the same file, evenly; within a part of git's own store, too."""
FAILED = re.compile(r"\) = -1 E")
"""What failed changed nothing: who dies at it leaves what who dies at the next call leaves."""
BY_CHANCE = re.compile(r"(?<=/\.git/)t\w{6}\b|(?<=/tmp/)[\w-]+|[0-9a-f]{6,}|\d+")
"""The parts of a path that differ from run to run."""
BETWEEN_RENAMES = ("rename", "renameat", "renameat2")
MOVES = (*BETWEEN_RENAMES, "unlink", "unlinkat", "rmdir", "fsync", "fdatasync")
WRITES = (
    "mkdir", "mkdirat", "link", "linkat", "symlink", "ftruncate", "truncate", "chmod", "fchmod", "pwrite64", "write",
)  # fmt: skip
WAY_BACK = re.compile(r"claudius backup restore \S+ --yes|move the whole home aside")
PLAN = 1_000_000_000_001
EDITOR = '#!/bin/sh\nprintf "# Cara\\n\\nA carpenter.\\n" > "$1"\n'
CLAUDE_CODE = """#!/bin/sh
mkdir -p "$HOME/.claude/plugins"
tell() { echo "{\\"version\\": 2, \\"plugins\\": {$1}}" > "$HOME/.claude/plugins/installed_plugins.json"; }
[ "$2" != install ] || tell '"claudius@claudius": []'
[ "$2" != uninstall ] || tell ''
"""
"""What these commands run beside us, as far as it matters here."""
PORTRAIT = {
    "user_model_check": "true",
    "user_model_update": "## Persona\nBuilds bridges, number {}.",
    "model_change_note": "learned her trade",
}


class Point(NamedTuple):
    """One system call of a command: its name, and which call of that name it is in its thread."""

    call: str
    number: int
    path: str


@dataclass(frozen=True, slots=True)
class Change:
    """A command that changes something, and how it is run here."""

    args: tuple[str, ...]
    stdin: str = ""
    env: dict[str, str] = field(default_factory=dict)
    few: int = 1
    """How many points a push takes."""
    is_again: bool = True
    """Whether its repetition ends in the same state; one that says something says it again."""
    codes: tuple[int, ...] = (0,)
    """How its repetition may end: one that finds nothing left to do says so."""
    is_whole: bool = True
    """Whether all of it happens at once, and not one file after the other."""
    wakes: bool = False
    """Whether only a soul that wakes finishes it."""


class Killed(NamedTuple):
    """What kills of one command led to."""

    command: str
    points: int
    of: int
    outcomes: Counter[str]


def said(text: str, key: str, at: datetime) -> Perception:
    """Return a message of ada at a terminal that no one answers yet."""
    return Perception(
        key=key, conversation=WAITING, audience=private(ADA), person=ADA, name="ada", text=text, at=at, position=key
    )


async def accept(machine: Machine) -> None:
    """Accept two messages that no one answers yet."""
    store, now = SqliteStore(machine.home / "state" / "claudius.db"), datetime.now(UTC)
    await store.open()
    await store.inbox.accept([said(f"waiting {key}", key, now + timedelta(seconds=1)) for key in ACCEPTED], now)
    await store.close(clean=True)


def furnish(machine: Machine) -> None:
    """Give a machine a soul that knows two people, planned, believed and was copied; a copy is older than the rest."""
    machine.env["CLAUDIUS_CORTEX_ENABLED"] = "1"
    for number in (1, 2):
        machine.scripted(reply("Noted.", **{tag: text.format(number) for tag, text in PORTRAIT.items()}))
        machine.ok("chat", "--once", f"I build bridges, number {number}.")
    for name in ("Ben", "Carl"):
        machine.scripted(reply("Good morning."))
        machine.ok("chat", "--once", f"I am {name}.", "--as", name.lower(), "--conversation", name)
    machine.ok("users", "link", ADA, CARL)
    belief = {"key": "ada-builds", "value": "Ada builds.", "rationale": "Said so.", "peer_id": ADA}
    machine.scripted(answer((ADA, 3), beliefs=[belief]))
    machine.ok("cortex", "reflect")
    machine.ok("backup", "create", str(machine.root / "copy.db"))
    machine.ok("backup", "create", "--portable", str(machine.root / "export"))
    machine.ok("chat", "--once", "Remind me tomorrow at 9 to pay the rent.", env={"CLAUDIUS_PROVIDERS": "rehearsal"})
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as kept, kept:
        kept.execute("UPDATE due SET id = ? WHERE kind LIKE 'schedule/%'", (PLAN,))
    machine.ok("config", "set", "memory.window", "7")
    for name, text in {"editor": EDITOR, "claude": CLAUDE_CODE}.items():
        (machine.bin / name).write_text(text)
        (machine.bin / name).chmod(0o755)
    machine.ok("ensoul", "install")
    (machine.home / "soul" / "soul.md").write_text("# Beata\n\nA baker.\n")
    machine.env["EDITOR"] = str(machine.bin / "editor")
    machine.scripted(*[reply("So it is.")] * 9)
    del machine.env["CLAUDIUS_CORTEX_ENABLED"]  # so that only its own command reflects
    (machine.home / "state" / "reserve").unlink(missing_ok=True)  # 16 MiB that would be copied with each home


SHOWN = {
    "said": "SELECT conversation, entry_type, content FROM entry WHERE entry_type IN ('userMessage', 'externalDialog')"
    " AND conversation <> 'terminal:local:main:after' AND conversation <> 'terminal:local:main:waiting'",
    "portraits": "SELECT person, audience, markdown FROM user_model WHERE newest = 1",
    "state": "SELECT key, audience, value FROM soul_state WHERE newest = 1 AND key IN ('emotionalState', 'userName')",
    "plans": "SELECT text FROM due WHERE fired_turn IS NULL AND text <> ''",
    "beliefs": "SELECT key, state, ttl_minutes IS NULL FROM belief",
    "modes": "SELECT daimon, mode FROM daimon",
    "links": "SELECT person, canonical FROM person_link WHERE person <> canonical",
    "people": "SELECT person FROM person",
}
"""What a soul is, to whoever looks: by statement, so that a damaged or empty database shows."""


def seen(machine: Machine) -> dict[str, Any]:
    """Return what a soul is now: what it holds, and its owner's files."""
    database = machine.home / "state" / "claudius.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as kept:
        found: dict[str, Any] = {name: sorted(map(repr, kept.execute(sql))) for name, sql in SHOWN.items()}
        assert [one for (one,) in kept.execute("PRAGMA integrity_check")] == ["ok"]
        assert not kept.execute("PRAGMA foreign_key_check").fetchall()
    own = [machine.home / "config.toml", machine.home / ".env", *(machine.home / "soul").rglob("*.md")]
    found["files"] = {str(path.relative_to(machine.home)): path.read_text() for path in own if path.is_file()}
    return found


def acts(machine: Machine) -> list[str]:
    """Return the audit log, without whose doing each act was."""
    with closing(sqlite3.connect(f"file:{machine.home / 'state' / 'claudius.db'}?mode=ro", uri=True)) as kept:
        return [repr(row) for row in kept.execute("SELECT at, act FROM audit ORDER BY at, id")]


def lost(machine: Machine) -> list[str]:
    """Return the accepted messages that neither wait nor were answered once."""
    with closing(sqlite3.connect(f"file:{machine.home / 'state' / 'claudius.db'}?mode=ro", uri=True)) as kept:
        kept.row_factory = sqlite3.Row
        rows = {row["key"]: row for row in kept.execute("SELECT key, state, turn, reason FROM inbox")}
        replies = Counter(turn for (turn,) in kept.execute("SELECT turn FROM outbox WHERE part = 0"))
    is_kept = {
        key: rows[key]["state"] in ("pending", "taken", "thought", "committed") or replies[rows[key]["turn"]] == 1
        for key in ACCEPTED if key in rows
    }  # fmt: skip
    return [key for key in ACCEPTED if not is_kept.get(key)]


def traced(machine: Machine, change: Change, trace: Path, *more: str) -> int:
    """Run a command under the tracer; return its exit code."""
    argv = ["strace", "-f", "-qq", "-y", "-o", str(trace), *more, str(CLAUDIUS), *_words(machine, change)]
    ended = subprocess.run(
        argv,
        env=machine.environment(change.env),
        cwd=machine.user,
        input=change.stdin.encode(),
        capture_output=True,
        timeout=PATIENCE_S,
        umask=0o022,
        check=False,
    )
    return ended.returncode


def run(machine: Machine, change: Change) -> Ran:
    """Run a command undisturbed."""
    return machine.run(*_words(machine, change), env=change.env, stdin=change.stdin, within_s=PATIENCE_S)


def _words(machine: Machine, change: Change) -> list[str]:
    return [word.format(root=machine.root, plan=PLAN) for word in change.args]


def points(machine: Machine, change: Change, trace: Path) -> list[Point]:
    """Run a command undisturbed; return the calls by which it changed files, in order; of many equal ones, a few."""
    assert traced(machine, change, trace, "--seccomp-bpf", "-e", "trace=" + ",".join((*MOVES, *WRITES))) == 0, (
        change.args
    )
    counted, found = Counter[tuple[str, str]](), list[Point]()
    for line in trace.read_text(errors="replace").splitlines():
        match = re.match(r"(\d+)\s+(\w+)\((.*)", line)
        if not match:
            continue
        thread, call, rest = match.groups()
        counted[thread, call] += 1
        place = re.search(rf"{re.escape(str(machine.root))}[^\">,]*", rest)
        if place and not FAILED.search(rest):
            within = re.sub(r"/\.git/(\w+)/.*", r"/.git/\1", place[0].removeprefix(str(machine.root)))
            found.append(Point(call, counted[thread, call], BY_CHANCE.sub("#", within)))
    alike = Counter((one.call, one.path) for one in found)
    met = Counter[tuple[str, str]]()
    kept = list[Point]()
    for one in found:
        kind = one.call, one.path
        place, met[kind] = met[kind], met[kind] + 1
        if alike[kind] <= EACH or place * EACH // alike[kind] != (place - 1) * EACH // alike[kind]:
            kept.append(one)
    return kept


def spread(found: Sequence[Point], count: int) -> list[Point]:
    """Choose `count` points, evenly, of those at which something moves, goes or becomes durable."""
    strong = [one for one in found if one.call in MOVES] or list(found)
    return [
        strong[place * len(strong) // count + len(strong) // (2 * count)] for place in range(min(count, len(strong)))
    ]


def kill(
    first: Machine, change: Change, tmp: Path, *, every: bool, calls: Sequence[str] = (), is_whole: bool = False
) -> Killed:
    """Kill a command at its points, each in a copy of `first`, and check what follows. Raises: AssertionError.

    `every`: at all of them, else at a few, or at each of `calls`. `is_whole`: exit code 78 is wrong then, too.
    """
    tmp.mkdir(exist_ok=True)
    old = seen(first)
    whole = copied(first, tmp / "whole")
    found = points(whole, change, tmp / "trace")
    new = seen(whole)
    outcomes = Counter[str]()
    chosen = found if every else [one for one in found if one.call in calls] or spread(found, change.few)
    for place, point in enumerate(chosen):
        machine = copied(first, tmp / f"m{place}")
        try:
            outcome = _killed_at(machine, change, point, tmp / "trace", (old, new), every=every)
            assert not is_whole or not outcome.startswith("78"), outcome
            outcomes[outcome] += 1
        except AssertionError as error:
            raise AssertionError(f"claudius {' '.join(change.args)}, killed at {point}: {error}") from error
        shutil.rmtree(machine.root)
    return Killed(" ".join(change.args), len(chosen), len(found), outcomes)


def copied(first: Machine, root: Path) -> Machine:
    """Return a copy of a machine."""
    shutil.copytree(first.root, root, symlinks=True)
    env = {name: value.replace(str(first.root), str(root)) for name, value in first.env.items()}
    return Machine(root, env)


def killed(machine: Machine, change: Change, trace: Path, point: Point) -> int:
    """Run a change that is killed at a point; return its exit code."""
    inject = f"inject={point.call}:signal=KILL:when={point.number}"
    return traced(machine, change, trace, "-e", f"trace={point.call}", "-e", inject)


def _killed_at(
    machine: Machine,
    change: Change,
    point: Point,
    trace: Path,
    both: tuple[dict[str, Any], dict[str, Any]],
    *,
    every: bool,
) -> str:
    old, new = both
    before = acts(machine)
    code = killed(machine, change, trace, point)
    wakes = change.wakes or (every and change.few > 1)
    start = machine.run(
        *(("chat", "--once", "after", "--conversation", "after") if wakes else ("state", "show")), within_s=PATIENCE_S
    )
    if start.code == 78:
        assert WAY_BACK.search(start.stderr), start.stderr
        return "78 with the way back"
    assert start.code == 0, start.shown
    now = seen(machine)
    which = "old" if now == old else "new" if now == new else "between"
    assert which != "between" or not change.is_whole, _difference(now, old, new)
    assert not lost(machine), "an accepted message is lost"
    ran = run(machine, change)
    assert ran.code in change.codes, ran.shown
    assert not change.is_again or seen(machine) == new, f"{ran.shown} {_difference(seen(machine), new)}"
    assert not lost(machine), "an accepted message is lost, once the command was repeated"
    assert set(before) <= set(acts(machine)), "an act is gone from the audit log"
    return which if code else f"{which}, not killed"


def _difference(now: dict[str, Any], *others: dict[str, Any]) -> str:
    return (
        "; ".join(
            f"{name}: {now[name]} is neither of {[other[name] for other in others]}"
            for name in now
            if now[name] not in [other[name] for other in others]
        )
        or f"a mixture: {[[name for name in now if now[name] == other[name]] for other in others]}"
    )


def shown(rows: Sequence[Killed]) -> Iterator[str]:
    """Yield the lines of the table."""
    for one in rows:
        led = ", ".join(f"{outcome} {count}" for outcome, count in sorted(one.outcomes.items()))
        yield f"{one.command:<44} {one.points:>4} of {one.of:<4} {led}"
