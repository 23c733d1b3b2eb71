"""The suite `memory`: lists of plain statements, corrections and pairs of audiences as scenes, and three sessions.

Nothing of it needs a model. On a public set of long conversations, memory is measured by /bench/locomo.py.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from claudius.eval.scenes import Scene, SceneStep, Suite, read

PAIRS = 200
"""Pairs of audiences: what was told in the first must not be shown in the second."""
PEOPLE = ("ana", "ben", "cem", "dora", "emil")
ROOMS = {"harbour": ("ana", "ben"), "market": ("cem", "dora"), "square": ("ana", "cem", "emil")}
ANSWER = "I hear you."
THINGS = ("lantern", "cutter", "anvil", "ferry", "cello", "kiln", "orchard", "ladder", "sextant", "loom")
PLACES = ("chapel", "quarry", "boathouse", "granary", "smithy", "arcade", "reservoir", "observatory")
ASKED_ON = 22
"""The day on which what was said on the first one is asked for."""


def suite(directory: Path, seed: int) -> Suite:
    """Return the suite, from the lists in `directory`. Raises: OSError, ValueError."""
    scenes = (
        *_statements(_rows(directory / "statements.toml")),
        _corrections(_rows(directory / "corrections.toml")),
        *read(directory / "sessions.toml").scene,
        *_audiences(Random(f"{seed} audiences")),  # noqa: S311 - no secret
    )
    return Suite(
        name="memory", about="What was said three weeks ago stands in the prompt when it bears on it", scene=scenes
    )


def _rows(path: Path) -> list[list[str]]:
    rows: list[list[str]] = tomllib.loads(path.read_text("utf-8"))["rows"]
    return rows


def _statements(rows: Sequence[Sequence[str]]) -> Iterator[Scene]:
    """Yield a scene for each way of asking: sixty facts are told on one day, and each is asked for three weeks on."""
    for column, way in enumerate(("question", "plan", "allusion"), 1):
        told = [SceneStep(says=row[0], answer=ANSWER) for row in rows]
        asked = [
            SceneStep(
                says=row[column],
                thread=f"later{number}",
                when=f"{ASKED_ON} 09:00" if number == 0 else "",
                in_prompt=_exactly(row[0]),
                answer=ANSWER,
            )
            for number, row in enumerate(rows)
        ]
        yield Scene(id=f"statements-by-{way}", steps=(*told, *asked))


def _corrections(rows: Sequence[Sequence[str]]) -> Scene:
    """Return the scene in which each fact is corrected a day later: the newest is shown, the older one never alone."""
    old = [SceneStep(says=row[0], answer=ANSWER) for row in rows]
    new = [SceneStep(says=row[1], answer=ANSWER, when="2 09:00" if n == 0 else "") for n, row in enumerate(rows)]
    asked = [
        SceneStep(
            says=row[2],
            thread=f"later{number}",
            when=f"{ASKED_ON} 09:00" if number == 0 else "",
            in_prompt=_newest_first(row[1], row[0]),
            answer=ANSWER,
        )
        for number, row in enumerate(rows)
    ]
    return Scene(id="corrections", steps=(*old, *new, *asked))


def _exactly(text: str) -> str:
    """Return the pattern of a text, its blanks readable. Pure."""
    return re.escape(text).replace("\\ ", " ")


def _newest_first(new: str, old: str) -> str:
    """Return the pattern of a prompt in which nothing old precedes what is new. Pure."""
    return rf"(?s)\A(?:(?!{_exactly(old)}).)*{_exactly(new)}"


def _audiences(chance: Random) -> Iterator[Scene]:
    """Yield scenes in which somebody tells something in one place and it is asked for where it may not be shown."""
    rooms = {room: tuple(them) for room, them in ROOMS.items()}
    for group in range(PAIRS // 10):
        steps: list[SceneStep] = []
        for number in range(10):
            label = group * 10 + number + 100
            secret = f"The {chance.choice(THINGS)} number {label} is hidden in the {chance.choice(PLACES)}."
            teller, asker = chance.sample(PEOPLE, 2)
            room = chance.choice([""] + [one for one in ROOMS if teller in ROOMS[one] and asker not in ROOMS[one]])
            target = chance.choice([""] + [one for one in ROOMS if asker in ROOMS[one] and one != room])
            pattern = _exactly(secret)
            steps += (
                SceneStep(by=teller, room=room, says=secret, answer=ANSWER),
                SceneStep(by=asker, room=target, says=f"Where is the thing with number {label} hidden?",
                     never_in_prompt=pattern, answer=ANSWER),
            )  # fmt: skip
        yield Scene(id=f"audiences-{group + 1:02d}", steps=tuple(steps), members=rooms)
