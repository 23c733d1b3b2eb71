"""The soul as `claudius soul` and `claudius process` print it: its texts, what is wrong with them, its processes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from claudius.cognition.processes import find, known_names
from claudius.cognition.processes.checks import own_steps, process_problems
from claudius.cognition.reflection import subprocess_problems
from claudius.cognition.steps import STEPS
from claudius.config import load
from claudius.errors import BadSoul, ClaudiusError, UsageProblem, near
from claudius.home import Home, shipped
from claudius.reports.opened import records
from claudius.soul import SoulSource, SoulText, shadowed
from claudius.soul import check as check_soul


def current(home: Home) -> SoulText:
    """Return the soul as the next turn will read it."""
    return SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS)).current()


def texts(home: Home, file: str | None = None) -> dict[str, Any]:
    """Return the soul's files, or one of them. Raises: UsageProblem if there is no such file."""
    found = current(home)
    chosen = {name: item for name, item in sorted(found.files.items()) if file in (None, name)}
    if not chosen:
        nearest = near(file or "", found.files)
        raise UsageProblem(f"there is no soul file {file!r}{nearest}: choose one of {', '.join(sorted(found.files))}")
    return {
        name: {"text": item.text, "source": str(item.source), "sha256": item.sha256} for name, item in chosen.items()
    }


def checked(home: Home) -> dict[str, Any]:
    """Return whether every soul file can be used, and each problem with its fix."""
    problems = problems_of(home)
    shadows = shadowed(home.soul, shipped("soul"))
    return {
        "ok": not problems,
        "problems": [{"file": p.file, "line": p.line, "detail": p.detail, "fix": p.fix} for p in problems],
        "shadows": [{"file": str(own), "shadowed": str(other)} for own, other in shadows],
    }


def problems_of(home: Home) -> list[BadSoul]:
    """Return what is wrong with the soul's files, processes, rehearsed lines and personality."""
    from claudius.providers.rehearsal import misfits
    from claudius.psyche.personality import BadPersonality, Fingerprint

    tokens = load(home, os.environ).config.soul.dossier_tokens
    found = current(home)
    problems = list(check_soul(home.soul, shipped("soul"), tokens, tuple(STEPS), own_steps(found)))
    problems += [*process_problems(found), *subprocess_problems(found), *misfits(home)]
    personality = found.files["soul.md"]
    try:
        Fingerprint.of(personality.head)
    except BadPersonality as error:
        fix = "correct it; until then the default personality is used"
        problems.append(BadSoul(str(personality.source), 1, f"its head: {error}", fix))
    return problems


def processes(home: Home) -> list[dict[str, Any]]:
    """Return the mental processes, shipped ones first."""
    return [_row(one) for one in _known(home)]


def process(home: Home, name: str) -> dict[str, Any]:
    """Return one process, and the conversations that are in it now. Raises: ClaudiusError."""
    found = next((one for one in _known(home) if one.name == name), None)
    if found is None:
        nearest = near(name, [one.name for one in _known(home)])
        raise ClaudiusError(f"no process {name!r}{nearest}: `claudius process list` names them")
    return _row(found) | {
        "overrides": dict(found.overrides),
        "participation": found.participation.value if found.participation else None,
        "interruption": found.interruption.value,
        "linger_s": found.linger.total_seconds() if found.linger else None,
        "silence_ok": found.silence_ok,
        "may_execute_now": found.may_execute_now,
        "conversations": [row["conversation"] for row in positions(home) if row["process"] == name],
    }


def positions(home: Home) -> Sequence[Mapping[str, Any]]:
    """Return each conversation's place in its processes."""
    with records(home) as kept:
        return kept.positions()


def _known(home: Home) -> Sequence[Any]:
    soul = current(home)
    found = (find(name, soul) for name in known_names(soul))
    return [one for one in found if one is not None]


def _row(one: Any) -> dict[str, Any]:
    return {"name": one.name, "steps": list(one.steps), "next": list(one.next or ()), "description": one.description}
