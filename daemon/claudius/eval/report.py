"""Show a result: a table, one page, one JSON document, and the differences from an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import mean

import msgspec
from msgspec import Struct

from claudius.decoding import decoder
from claudius.errors import UsageProblem
from claudius.eval.checks import Result
from claudius.eval.judging import TRUSTED
from claudius.eval.run import ACTED, Evaluation, PlayedScene, PlayedSuite
from claudius.provider import dollars

DRAWS = 2000
"""Resamplings of the scenes for an interval of 95 %."""
NOT_MEASURED = "not measured: no model spoke"
SHOWN_FAULTS = 20
"""The most failed checks that the terminal shows."""


class Difference(Struct, frozen=True, kw_only=True):
    """How one suite's share of held checks, or its judged score, differs between two results."""

    suite: str
    what: str
    before: float
    after: float
    low: float
    high: float

    @property
    def is_none(self) -> bool:
        """Whether chance explains the change."""
        return self.low <= 0 <= self.high


def read_outcome(path: Path) -> Evaluation:
    """Read a result that `--json` printed. Raises: UsageProblem."""
    try:
        return decoder(Evaluation).decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageProblem(f"{path}: {error}: give a file that `claudius eval --json` wrote") from error


def faults(outcome: Evaluation) -> Iterator[tuple[str, str, Result]]:
    """Yield each counted check that does not hold, with its suite and scene."""
    for suite in outcome.suites:
        for scene in suite.scenes:
            yield from ((suite.suite, scene.scene, one) for one in scene.checks if not one.ok and one.score is None)


def table(outcome: Evaluation) -> Iterator[str]:
    """Yield the lines that a terminal shows."""
    yield f"{'suite':<14} {'scenes':>6} {'checks':>7} {'held':>7} {'turns':>6} {'calls':>6} {'tokens':>7}   judged"
    for suite in outcome.suites:
        found = suite.figures
        if not suite.is_measured:
            yield f"{suite.suite:<14} {NOT_MEASURED}"
            continue
        counts = f"{_scenes(suite):>6} {found['checks']:>7.0f} {found['share_ok']:>7.1%} {found['turns']:>6.0f}"
        costs = f"{found['calls_a_turn']:>6.2f} {found['tokens_a_turn']:>7.0f}"
        yield f"{suite.suite:<14} {counts} {costs}   {_judged(suite, outcome)}"
        shares = [f"{name} {value:.0%}" for name, value in found.items() if name.startswith(ACTED)]
        yield from (f"  {', '.join(shares[n : n + 8])}" for n in range(0, len(shares), 8))
    wrong = list(faults(outcome))
    for suite_name, scene, one in wrong[:SHOWN_FAULTS]:
        yield f"  {suite_name}/{scene}{_step(one)} {one.check}: {one.detail}"
    if len(wrong) > SHOWN_FAULTS:
        yield f"  … and {len(wrong) - SHOWN_FAULTS} more: --json names them all"
    yield from (f"  doubt: {one}" for one in outcome.doubts)
    yield _made_with(outcome)


def page(outcome: Evaluation, differences: Sequence[Difference] = ()) -> str:
    """Return the result as one Markdown page. Pure."""
    lines = ["# What `claudius eval` measured", "", _made_with(outcome), ""]
    lines += ["| suite | what | scenes | checks | held | turns | calls a turn | tokens a turn | judged |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for suite in outcome.suites:
        found = suite.figures
        if not suite.is_measured:
            lines.append(f"| `{suite.suite}` | {_cell(suite.about)} | {NOT_MEASURED} | | | | | | |")
            continue
        counts = f"{_scenes(suite)} | {found['checks']:.0f} | {found['share_ok']:.1%} | {found['turns']:.0f}"
        costs = f"{found['calls_a_turn']:.2f} | {found['tokens_a_turn']:.0f}"
        lines.append(f"| `{suite.suite}` | {_cell(suite.about)} | {counts} | {costs} | {_judged(suite, outcome)} |")
    lines += ["", "## What did not hold", ""]
    lines += list(_not_held(outcome)) or ["Nothing: every counted check holds."]
    lines += ["", "## Doubts about the soul's files", "", *([f"- {one}" for one in outcome.doubts] or ["None."])]
    lines += ["", "## Figures", ""]
    for suite in filter(lambda one: one.is_measured, outcome.suites):
        lines.append(f"- `{suite.suite}`: " + ", ".join(f"{name} {value:g}" for name, value in suite.figures.items()))
    if differences:
        lines += ["", "## Against the earlier result", "", *compared(differences)]
    return "\n".join(lines) + "\n"


def _not_held(outcome: Evaluation) -> Iterator[str]:
    """Yield one line a scene in which a counted check does not hold, with the first of them."""
    wrong: dict[str, list[Result]] = {}
    for suite_name, scene_name, one in faults(outcome):
        wrong.setdefault(f"{suite_name}/{scene_name}", []).append(one)
    for suite in outcome.suites:
        for scene in suite.scenes:
            if found := wrong.get(f"{suite.suite}/{scene.scene}"):
                counted = sum(one.score is None for one in scene.checks)
                first = f"{_step(found[0])} {found[0].check}: {_cell(found[0].detail)}"
                yield f"- `{suite.suite}/{scene.scene}`: {counted - len(found)} of {counted} checks hold; first{first}"


def compared(differences: Sequence[Difference]) -> Iterator[str]:
    """Yield one line a difference."""
    for one in differences:
        change = "none" if one.is_none else f"{one.after - one.before:+.3f}"
        yield (
            f"{one.suite} {one.what}: {one.before:.3f} → {one.after:.3f}, change {change}"
            f" (95 % interval {one.low:+.3f} … {one.high:+.3f})"
        )


def against(outcome: Evaluation, earlier: Evaluation) -> list[Difference]:
    """Return how each suite that both results hold differs; scenes of one result alone are left out. Pure."""
    past = {suite.suite: {scene.scene: scene for scene in suite.scenes} for suite in earlier.suites}
    found = []
    for suite in outcome.suites:
        for what in ("held", "judged"):
            pairs = list(_pairs(suite.scenes, past.get(suite.suite, {}), what))
            if pairs:
                found.append(_difference(suite.suite, what, pairs, outcome.seed))
    return found


def _pairs(scenes: Sequence[PlayedScene], past: Mapping[str, PlayedScene], what: str) -> Iterator[tuple[float, float]]:
    """Yield each scene's values before and after, where both results have one."""
    for scene in scenes:
        if scene.scene in past:
            before, after = _value(past[scene.scene], what), _value(scene, what)
            if before is not None and after is not None:
                yield before, after


def _difference(suite: str, what: str, pairs: Sequence[tuple[float, float]], seed: int) -> Difference:
    chance = Random(f"{seed} {suite} {what}")  # noqa: S311 - no secret
    changes = [after - before for before, after in pairs]
    drawn = sorted(mean(chance.choices(changes, k=len(changes))) for _ in range(DRAWS))
    return Difference(
        suite=suite,
        what=what,
        before=mean(before for before, _ in pairs),
        after=mean(after for _, after in pairs),
        low=drawn[int(DRAWS * 0.025)],
        high=drawn[int(DRAWS * 0.975) - 1],
    )


def _value(scene: PlayedScene, what: str) -> float | None:
    counted = [float(one.ok) for one in scene.checks if one.score is None and one.check not in ("judge", "prefer")]
    judged = [one.score for one in scene.checks if one.score is not None]
    values = counted if what == "held" else judged
    return mean(values) if values else None


def _judged(suite: PlayedSuite, outcome: Evaluation) -> str:
    asked = [one for scene in suite.scenes for one in scene.checks if one.check in ("judge", "prefer")]
    if not asked:
        return "–"
    if outcome.kappa is None or outcome.kappa < TRUSTED:
        return f"not judged (κ {outcome.kappa or 0:.2f})"
    scores = [one.score for one in asked if one.score is not None]
    agreed = f"{mean(scores):.2f}" if scores else "–"
    return f"{agreed} (κ {outcome.kappa:.2f}, {len(asked) - len(scores)} of {len(asked)} split)"


def _scenes(suite: PlayedSuite) -> str:
    played = sum(scene.is_played for scene in suite.scenes)
    return str(played) if played == len(suite.scenes) else f"{played}/{len(suite.scenes)}"


def _step(one: Result) -> str:
    return f" step {one.step}" if one.step else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _made_with(outcome: Evaluation) -> str:
    facts: Mapping[str, str] = {
        "claudius": outcome.claudius,
        "soul": outcome.soul_sha256[:12],
        "voice": outcome.voice,
        "judge": outcome.judge or "none",
        "seed": str(outcome.seed),
        "cost": f"{dollars(outcome.cost_usd)} of ${outcome.budget_usd:.2f}",
    }
    return ", ".join(f"{name} {value}" for name, value in facts.items())
