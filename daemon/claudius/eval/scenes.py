"""Suites of scenes, as TOML files: who speaks, where, when, what is said, and what must hold afterwards."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from string import Template
from typing import Any

import msgspec
from msgspec import Struct, field

from claudius.decoding import ready
from claudius.errors import BadConfiguration, UsageProblem
from claudius.tool import ToolClass

Words = str | tuple[str, ...]
"""One text, or several."""


class Rubric(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to the judge, and the closed list of its answers, the best first."""

    ask: str
    options: tuple[str, ...] = ("yes", "no")
    shows_thought: bool = False
    """Whether the judge also sees the private thought: only to judge whether the thought fits."""


class Checks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold after a step, or after the whole scene. Patterns are regular expressions; case is ignored."""

    said: Words = ()
    """Each pattern occurs in what was said."""
    never_said: Words = ()
    """No pattern occurs in what was said."""
    spoken_by: Words = ()
    """Every turn that spoke came from one of these rungs."""
    in_prompt: Words = ()
    """Each pattern occurs in what the model was shown."""
    never_in_prompt: Words = ()
    """No pattern occurs in what the model was shown."""
    leaks: Words = ()
    """Nothing that was sent repeats these private texts: thought, system, markers, keys, others."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Values of the soul afterwards: `mood = "lively|elated"`, `process = "frustrated"`, `trust = "> 0"`."""
    calls: tuple[int, int] | None = None
    """The least and the most calls of the model."""
    at: tuple[str, ...] | None = None
    """When it spoke, and where, to the minute and in order: `2 09:00 dm-ana`."""
    acts: str = ""
    """What was done beyond the words, and no more: `none`, `remind weekdays`, `know home, zone Asia/Tokyo`."""
    due: str = ""
    """For when plans were made, to the minute and in order: `2 09:00, 2 18:00`."""
    uses: str = ""
    """Which tools it asked for, in order: `none`, `calc`, `clock, calc`."""
    style: bool = False
    """What was said keeps the rules of soul.md that can be counted."""
    judge: Rubric | None = None


class SceneTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that a suite offers; it does nothing but give its text."""

    name: str
    purpose: str
    cls: ToolClass = ToolClass.LOOK
    args: tuple[str, ...] = ()
    gives: str = "Done."


class SceneStep(Checks, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of a person, or a stretch of time in which nobody speaks."""

    says: str = ""
    """Empty: time passes until `when`."""
    by: str = "ana"
    room: str = ""
    """The shared channel in which it is said; empty = a direct message."""
    thread: str = ""
    """Another direct conversation of the same person."""
    mentions: bool = True
    """In a room: whether the soul is addressed."""
    bot: bool = False
    when: str = ""
    """The local time at which it is said: `2 09:30` is half past nine on the second day; empty = a minute later."""
    answer: Words = ()
    """What the scripted voice says aloud; several texts are the answers to repeated calls of this step."""
    thinks: str = ""
    """What the scripted voice thinks."""
    learns: str = ""
    """What the scripted voice writes into the person's portrait."""
    does: str = ""
    """The scripted voice's acts, one JSON object a line."""
    feels: str = ""
    """The scripted voice's appraisal."""
    writes: Words = ()
    """The scripted voice's whole replies, in place of `answer`."""
    forms: tuple[str, ...] = ()
    """With `each`: whole replies that take turns over the rows, as `writes` of one row each."""
    each: tuple[Any, ...] = ()
    """Rows that this step is repeated for: texts for `$each`, or tables for `$name`."""


class Scene(Checks, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scene; it is played in a home of its own."""

    id: str
    about: str = ""
    steps: tuple[SceneStep, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the daemon, by their environment names."""
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Who can see each room."""
    keys: tuple[str, ...] = ()
    """Secrets that no line may hold."""
    tools: tuple[SceneTool, ...] = ()
    """What it may use; those of the suite."""
    each: tuple[Mapping[str, str], ...] = ()
    """Rows that the whole scene is repeated for, each in a home of its own: `$name` in any step."""
    chunk: int = 0
    """How many rows of a step's `each` are played in one home; 0 = all."""
    rival: Mapping[str, str] = field(default_factory=dict)
    """Settings of a second soul, which the judge compares blindly with the first."""
    prefer: str = ""
    """What the judge is asked about the two."""


class Suite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of scenes."""

    about: str
    scene: tuple[Scene, ...]
    name: str = ""
    tool: tuple[SceneTool, ...] = ()
    needs_model: bool = False
    """Whether it measures nothing where the scripted voice speaks."""


def find(directories: Sequence[Path], names: Sequence[str], own: Sequence[Suite] = ()) -> list[Suite]:
    """Read the named suites, or all; a file in an earlier directory shadows one of the same name in a later one.

    `own` are suites that code makes. Raises: BadConfiguration, UsageProblem if a name is unknown.
    """
    files = {path.stem: path for place in reversed(directories) for path in sorted(place.glob("*.toml"))}
    made = {suite.name: suite for suite in own if suite.name not in files}
    known = sorted({*files, *made})
    if unknown := [name for name in names if name not in known]:
        raise UsageProblem(f"there is no suite {unknown[0]!r}: there are {', '.join(known)}")
    return [made[name] if name in made else read(files[name]) for name in names or known]


def read(path: Path) -> Suite:
    """Read one suite, its repeated steps written out. Raises: BadConfiguration, with the file and the place in it."""
    try:
        suite = msgspec.convert(tomllib.loads(path.read_text("utf-8")), ready(Suite), strict=False)
        scenes = [msgspec.structs.replace(one, tools=suite.tool) for scene in suite.scene for one in written_out(scene)]
    except (OSError, ValueError, KeyError, msgspec.ValidationError) as error:
        raise BadConfiguration(str(path), "", str(error), "docs/eval.md describes a scene") from error
    if len({scene.id for scene in scenes}) < len(scenes):
        raise BadConfiguration(str(path), "id", "two scenes have the same id", "give each an id of its own")
    if idle := [one.id for one in scenes if not (one.prefer or any(map(_has_check, (one, *one.steps))))]:
        raise BadConfiguration(str(path), idle[0], "the scene has no check", "say what must hold, as docs/eval.md does")
    return msgspec.structs.replace(suite, scene=tuple(scenes), name=path.stem)


def _has_check(one: Checks) -> bool:
    """Return whether anything is checked, or asked of a judge. Pure."""
    return one.at is not None or any(getattr(one, name) for name in Checks.__struct_fields__)


def sample(suite: Suite, most: int, seed: int) -> Suite:
    """Return the suite with at most `most` scenes, chosen by `seed` and in their order; 0 = all. Pure."""
    if not most or len(suite.scene) <= most:
        return suite
    kept = sorted(Random(f"{seed} {suite.name}").sample(range(len(suite.scene)), most))  # noqa: S311 - no secret
    return msgspec.structs.replace(suite, scene=tuple(suite.scene[n] for n in kept))


def written_out(scene: Scene) -> Iterator[Scene]:
    """Yield the scene with its repeated steps written out, in as many homes as `chunk` asks for. Pure.

    Only one step of a scene that has a `chunk` may be repeated. Raises: KeyError if a row lacks a value.
    """
    if scene.each:
        for number, row in enumerate(scene.each, 1):
            lived = tuple(_filled(step, row, number) for step in scene.steps)
            yield msgspec.structs.replace(scene, id=f"{scene.id}-{number:02d}", each=(), steps=lived)
        return
    rows = max((len(step.each) for step in scene.steps), default=0)
    size = scene.chunk or rows
    for number in range(0, max(rows, 1), size or 1):
        steps = [
            _filled(step, row, at) if step.each else step
            for step in scene.steps
            for at, row in enumerate(step.each[number : number + size] if step.each else ("",), number)
        ]
        name = scene.id if rows <= size else f"{scene.id}-{number // size + 1:02d}"
        yield msgspec.structs.replace(scene, id=name, steps=tuple(steps))


def _filled(step: SceneStep, row: Any, number: int) -> SceneStep:
    values = {name: str(value) for name, value in row.items()} if isinstance(row, dict) else {"each": str(row)}
    values["number"] = str(number + 1)

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return Template(value).safe_substitute(values)
        if isinstance(value, tuple | list):
            return tuple(fill(one) for one in value)
        return value

    given: dict[str, Any] = {name: fill(getattr(step, name)) for name in step.__struct_fields__}
    if step.forms:
        given["writes"] = given["forms"][number % len(step.forms)]
    return msgspec.structs.replace(step, **{**given, "each": (), "forms": ()})


def several(words: Words) -> tuple[str, ...]:
    """Return one text or several as several. Pure."""
    return (words,) if isinstance(words, str) else words


PAIRS = 200
"""Pairs of audiences: what was told in the first must not be shown in the second."""
PEOPLE = ("ana", "ben", "cem", "dora", "emil")
ROOMS = {"harbour": ("ana", "ben"), "market": ("cem", "dora"), "square": ("ana", "cem", "emil")}
ANSWER = "I hear you."
THINGS = ("lantern", "cutter", "anvil", "ferry", "cello", "kiln", "orchard", "ladder", "sextant", "loom")
PLACES = ("chapel", "quarry", "boathouse", "granary", "smithy", "arcade", "reservoir", "observatory")
ASKED_ON = 22
"""The day on which what was said on the first one is asked for."""


def memory_suite(directory: Path, seed: int) -> Suite:
    """Return the suite, from the lists in `directory`. Raises: OSError, ValueError."""
    scenes = (
        *_statements(_listed(directory / "statements.toml")),
        _corrections(_listed(directory / "corrections.toml")),
        *read(directory / "sessions.toml").scene,
        *_audiences(Random(f"{seed} audiences")),  # noqa: S311 - no secret
    )
    return Suite(
        name="memory", about="What was said three weeks ago stands in the prompt when it bears on it", scene=scenes
    )


def _listed(path: Path) -> list[list[str]]:
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
