"""The processes that ship and need no function of their own, and the check of those that the owner writes.

Their words are in `soul/processes/NAME.md`. `claudius soul check` and `doctor` call the check, before a turn runs one.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from claudius.cognition.processes import (
    ANY,
    PROCESSES,
    OwnStepUnfit,
    Participation,
    Process,
    check_process,
    find,
    is_process,
    known_names,
    module_of,
    sections,
    with_own,
    written,
)
from claudius.cognition.steps import STEPS
from claudius.errors import BadSoul, near
from claudius.home import shipped
from claudius.shape import unfit_for
from claudius.soul import SoulFile, SoulText

_TALK = ("internal_monologue", "appraisal", "acts", "external_dialogue")
_USE = "tool_use"
_PORTRAIT = ("user_model_check", "user_model_update", "model_change_note")
_STATE = ("soul_state_check", "soul_state_update")
_CALMED = {"neutral": "main_process", "engaged": "main_process", "focused": "deep_work"}


def _after_talk(parse_result: Mapping[str, Any]) -> str | None:
    """Follow the mood that this turn changed: to frustration, or to work. Pure."""
    moved = parse_result.get("soul_state", {})
    if moved.get("emotionalState") == "focused":
        return "problem_solving" if moved.get("currentTask") else "deep_work"
    return "frustrated" if moved.get("emotionalState") == "frustrated" else None


def _after_greeting(parse_result: Mapping[str, Any]) -> str:
    """Leave after one turn: to work if the mood is focused, else to ordinary talk. Pure."""
    mood = parse_result.get("soul_state", {}).get("emotionalState")
    return "deep_work" if mood == "focused" else "main_process"


def _after_work(parse_result: Mapping[str, Any]) -> str | None:
    """Leave when the mood is no longer focused, or the task was dropped. Pure."""
    moved = parse_result.get("soul_state", {})
    has_left = moved.get("emotionalState", "focused") != "focused"
    return "main_process" if has_left or moved.get("currentTask") == "" else None


def _after_frustration(parse_result: Mapping[str, Any]) -> str | None:
    """Leave when the mood has passed. Pure."""
    return _CALMED.get(parse_result.get("soul_state", {}).get("emotionalState"))


MAIN_PROCESS = Process(
    name="main_process",
    steps=(*_TALK, _USE, *_PORTRAIT, *_STATE, "assess_peer"),
    next=("frustrated", "deep_work", "problem_solving"),
    should_transition=_after_talk,
    description="main_process: the ordinary mind, all steps.",
)
GREETING = Process(
    name="greeting",
    steps=(*_TALK, _USE, *_PORTRAIT),
    wording="greeting",
    linger=timedelta(hours=24),
    next=("main_process", "deep_work"),
    should_transition=_after_greeting,
    description="greeting: the first words with someone the soul never met.",
)
DEEP_WORK = Process(
    name="deep_work",
    steps=(*_TALK, _USE, *_STATE),
    wording="deep_work",
    linger=timedelta(hours=8),
    moods=("focused", "frustrated", "sardonic"),  # a quarrel in another conversation ends no work here
    next=("main_process",),
    should_transition=_after_work,
    description="deep_work: one task, precise and complete, nothing beside it.",
)
FRUSTRATED = Process(
    name="frustrated",
    steps=(*_TALK, *_STATE),
    wording="frustrated",
    intervals={"soul_state_check": 1},
    linger=timedelta(hours=2),
    moods=("frustrated", "sardonic"),
    next=("main_process", "deep_work"),
    should_transition=_after_frustration,
    description="frustrated: short and dry until the mood passes.",
)
PROACTIVE = Process(
    name="proactive",
    steps=_TALK,
    wording="proactive",
    silence_ok=True,
    next=(),
    description="proactive: to write first, for one good reason; borrowed for a turn, never a conversation's home.",
)
LOOKING_INWARD = Process(
    name="looking_inward",
    steps=("internal_monologue", *_STATE),
    wording="looking_inward",
    intervals={"soul_state_check": 1},
    silence_ok=True,
    next=(),
    description="looking_inward: to look, once talk has ended, at what it has left behind; silent, "
    "and borrowed for one turn.",
)


SPEECH = "external_dialogue"
HEADLESS = "begin it with lines of +++ and between them `steps = [...]` or `python = ...`; see docs/processes.md"
EXTEND = "docs/extend.md shows a whole one"


def own_steps(soul: SoulText) -> frozenset[str]:
    """Return the steps that the owner's own parts ask.

    A process text asks those that it names; a module those that it defines, by an `Ask` or under `@cognitive_step`.
    """
    found: set[str] = set()
    for name, file in soul.files.items():
        if name.startswith("processes/"):
            named = file.head.get("steps")
            found.update(
                sections(file), (one for one in (named if isinstance(named, list) else ()) if isinstance(one, str))
            )
        target = file.head.get("python")
        if name.partition("/")[0] in ("processes", "subprocesses") and isinstance(target, str):
            try:
                module = module_of(target.partition(":")[0])
            except ImportError:
                continue  # told with its process
            steps = (getattr(one, "step", None) for one in vars(module).values())
            found.update(step for step in steps if isinstance(step, str))
    return frozenset(found - {*STEPS, ANY})


def process_problems(soul: SoulText) -> list[BadSoul]:
    """List the owner's process texts that cannot be used, or that do not do what they say."""
    found: list[BadSoul] = []
    names = frozenset(known_names(soul))
    readable = {str(file.source) for file in soul.files.values()}
    worded = {one.wording for name in names if (one := find(name, soul))}
    for name, file in soul.files.items():
        if not name.startswith("processes/") or file.source.is_relative_to(shipped("soul")):
            continue
        stem = name.removeprefix("processes/").removesuffix(".md")
        if not file.head and stem not in PROCESSES and stem not in worded:
            found.append(BadSoul(str(file.source), 1, "no head names its steps or its python", HEADLESS))
        try:
            steps = {f"steps/{path.name}" for path in (file.source.parent.parent / "steps").glob("*.md")}
            check_process(file, steps)
            process = with_own(written(stem, file, steps), soul) if is_process(file) else find(stem, soul)
        except OwnStepUnfit as problem:
            found += [problem] * (problem.file in readable)  # another one is told by its own problem
            continue
        except BadSoul as problem:
            found.append(problem)
            continue
        if process is not None:
            found += _problems(file, process, names)
    return found


def _problems(file: SoulFile, process: Process, names: Collection[str]) -> Iterator[BadSoul]:
    where = str(file.source)
    for to in process.next or () if is_process(file) else ():
        if to not in names and ":" not in to:
            detail = f"leads to {to!r}, which is no process{near(to, names)}"
            yield BadSoul(where, 1, detail, f"the processes are {', '.join(sorted(names))}")
    if process.run is not None:
        if problem := _function_problem(process):
            yield BadSoul(where, 1, f"its head: python: {problem}", EXTEND)
        return
    for heading in sections(file):
        if heading not in process.steps and heading not in _shipped_headings(file.name):
            is_step = heading in STEPS
            detail = f"## {heading}: " + (
                "it does not ask this step" if is_step else f"there is no such step{near(heading, STEPS)}"
            )
            line = file.line + file.text[: file.text.index(f"## {heading}")].count("\n")
            yield BadSoul(
                where, line, detail, "add it to `steps`" if is_step else f"its steps: {', '.join(process.steps)}"
            )
    is_silent = process.silence_ok or process.participation is Participation.CONSUME
    if SPEECH not in process.steps and not is_silent:
        fix = f"add {SPEECH!r} to `steps`, or say that it may be silent: `silence_ok = true`"
        yield BadSoul(where, 1, f"its head: it never speaks, because {SPEECH} is not among its steps", fix)


def _function_problem(process: Process) -> str:
    if not inspect.iscoroutinefunction(process.run):
        return "the function is not `async def`"
    problem = unfit_for(process.run, 2)
    return f"the function cannot be called with (turn, memory): {problem}" if problem else ""


def _shipped_headings(name: str) -> Collection[str]:
    """Return the headings of the shipped file of this name, some of which the code reads by themselves."""
    path: Path = shipped("soul") / name
    if not path.is_file():
        return ()
    return {line.removeprefix("## ").strip() for line in path.read_text("utf-8").splitlines() if line.startswith("## ")}
