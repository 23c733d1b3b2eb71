"""What the psyche costs: one update, ten idle years against one minute, and recall over many moments.

Run alone: `bench/psyche.py [--json] [--samples N]`. It measures one thread's processor time, and judges nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "daemon"))

from claudius.home import shipped
from claudius.memory.database import Database, load_queries
from claudius.memory.moments import find_moments
from claudius.memory.psyche import move_psyche, recall_psyche
from claudius.memory.ranking import asked_for, rank
from claudius.memory.sqlite.file import open_writer
from claudius.memory.sqlite.schema import create_database, load_migrations
from claudius.perception import Perception, private
from claudius.psyche import Attention, GateSettings, attend, settle
from claudius.psyche.events import classify
from claudius.psyche.personality import Kernel
from claudius.psyche.state import advance
from claudius.psyche.words import stems, tokens
from claudius.psyche_types import Numbers, Psyche
from claudius.recollection import Person, ProcessState, Recollection, UserModel

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
PERSON = "terminal:local:ada"
LINES = (
    "Can you summarise the thread about the release pipeline for me, please?",
    "The build is red again and nobody knows why.",
    "thanks, that was really helpful!",
    "my dad died last week and I feel lonely",
    "You never listen. That is not what I asked.",
    "ok",
)
CHARS = 2000


def perception(text: str, n: int) -> Perception:
    """Return one message."""
    at = NOW + timedelta(minutes=n)
    return Perception(
        key=f"k{n}",
        conversation="terminal:local:main:main",
        audience=private(PERSON),
        person=PERSON,
        name="Ada",
        text=text,
        at=at,
        position=f"{n:020d}",
    )


def recollection(text: str, n: int, psyche: Psyche) -> Recollection:
    """Return the recollection of one turn."""
    person = Person(person=PERSON, name="Ada", models=(UserModel(person=PERSON, audience=private(PERSON), version=0),))
    return Recollection(
        turn=f"turn{n:012d}",
        nonce="0" * 32,
        now=NOW + timedelta(minutes=n),
        conversation="terminal:local:main:main",
        audience=private(PERSON),
        perceptions=(perception(text, n),),
        speaker=person,
        process=ProcessState(process="main_process"),
        turns=n,
        version=n,
        psyche=psyche,
    )


def clocked(work: Callable[[int], object], samples: int) -> dict[str, float]:
    """Return median and p99 of many runs, in milliseconds."""
    for n in range(min(50, samples)):
        work(n)
    took = []
    for n in range(samples):
        began = time.thread_time()
        work(n)
        took.append(1000 * (time.thread_time() - began))
    took.sort()
    return {"p50_ms": round(median(took), 4), "p99_ms": round(took[int(0.99 * (len(took) - 1))], 4), "samples": samples}


def updates(samples: int) -> dict[str, dict[str, float]]:
    """Time what every turn does."""
    gate_settings = GateSettings(kernel=Kernel(), soul_name="claudius")
    start = Psyche(numbers=Numbers(at_s=NOW.timestamp()))
    known = [recollection(LINES[n % len(LINES)], n, start) for n in range(64)]
    attended: list[Attention] = [attend(one, one.perception, gate_settings) for one in known]
    long = (" ".join(LINES) + " ") * 10

    def heard(n: int) -> object:
        tokens.cache_clear()
        stems.cache_clear()
        return classify(LINES[n % len(LINES)], "dm", soul_name="claudius", novelty=0.3)

    def update(n: int) -> object:
        tokens.cache_clear()
        stems.cache_clear()
        one = known[n % len(known)]
        return attend(one, one.perception, gate_settings)

    def fold(n: int) -> object:
        change = settle(attended[n % len(attended)])
        assert change
        return change.fold(start)

    first = Numbers(at_s=0.0, valence=-0.9)
    return {
        "classify": clocked(heard, samples),
        f"classify, {CHARS:,} characters": clocked(
            lambda _: classify(long[:CHARS], "dm", soul_name="claudius", novelty=0.3), samples // 10
        ),
        "attend: classify, move, judge, word": clocked(update, samples),
        "settle and fold": clocked(fold, samples),
        "one idle minute": clocked(lambda _: advance(first, 60.0), samples),
        "ten idle years": clocked(lambda _: advance(first, 10 * 365 * 86_400.0), samples),
    }


def recalls(samples: int, count: int, directory: Path) -> dict[str, dict[str, float]]:
    """Time recall over `count` kept moments, in a database of its own."""
    path = directory / f"{count}.db"
    create_database(path, load_migrations(shipped("memory") / "schema"))
    with closing(open_writer(path)) as connection:
        return recalls_of(Database(connection, load_queries(shipped("memory") / "queries")), samples, count)


def recalls_of(db: Database, samples: int, count: int) -> dict[str, dict[str, float]]:
    """Keep `count` moments in an empty database, and time recall over them."""
    chance = random.Random(3)
    words = [
        f"{a}{b}" for a in "bcdfghjklmnprstv" for b in ("anor", "elim", "ight", "owan", "undra", "ystem", "etal", "ika")
    ]
    weights = [1 / (n + 1) for n in range(len(words))]
    db.connection.execute("BEGIN")
    for n in range(count):
        text = " ".join(chance.choices(words, weights, k=12))
        db.run(
            "moment_keep",
            turn=f"t{n}",
            position="",
            at_s=n,
            person=PERSON,
            name="Ada",
            conversation="c",
            audience=private(PERSON),
            text=text,
            pictures="",
            importance=40,
            is_own=0,
        )
    db.connection.execute("COMMIT")
    asked = [asked_for(" ".join(chance.choices(words, weights, k=10))) for _ in range(64)]
    heard = perception("x", 1)

    def recall(n: int) -> object:
        one = asked[n % len(asked)]
        return rank(one, find_moments(db, one, heard), NOW.timestamp(), most=32)

    found = {
        f"recall over {count:,}": clocked(recall, samples),
        "read in a turn's snapshot": clocked(lambda _: recall_psyche(db, (PERSON,)), samples),
    }

    class Moving:
        """The part of an intent that the fold reads."""

        turn = ""
        psyche = settle(
            attend(
                recollection(LINES[0], 1, Psyche()),
                perception(LINES[0], 1),
                GateSettings(kernel=Kernel(), soul_name="claudius"),
            )
        )

    def move(n: int) -> object:
        Moving.turn = f"turn{count}-{time.perf_counter_ns()}-{n}"
        return move_psyche(db, Moving, "2026-01-05T12:00:00.000000Z")  # type: ignore[arg-type] - enough of an intent

    db.connection.execute("BEGIN")
    found["fold and write in a turn's commit, without its sync"] = clocked(move, samples)
    db.connection.execute("COMMIT")
    return found


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--samples", type=int, default=3000, help="how often each is clocked")
    given = parser.parse_args()
    figures = updates(given.samples)
    with TemporaryDirectory() as directory:
        for count in (6_000, 100_000):
            figures |= recalls(min(given.samples, 1000), count, Path(directory))
    if given.json:
        print(json.dumps(figures, indent=1))
        return
    for name, found in figures.items():
        print(f"{name:<52} p50 {found['p50_ms']:9.4f} ms   p99 {found['p99_ms']:9.4f} ms")


if __name__ == "__main__":
    main()
