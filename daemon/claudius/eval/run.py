"""Run suites: every scene is played in a home of its own, checked, and put into one result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import claudius
from claudius.cognition.steps import STEPS
from claudius.eval.checks import Result, check
from claudius.eval.judging import Judge
from claudius.eval.scenes import Scene, Suite
from claudius.eval.stage import Played, furnish, homes, play
from claudius.eval.voices import Metered, Playing, Price, Purse, Repeating, dearest
from claudius.home import shipped
from claudius.provider import Provider
from claudius.providers.scripted import Scripted
from claudius.reports.doubts import doubts
from claudius.soul import SoulSource, SoulText

NO_MODEL = frozenset({"scripted", "rehearsal"})
"""The voices behind which there is no model: what they say is no measure of a soul."""
ACTED = ("acts", "due", "uses")
"""The checks whose share is told for each group of scenes: those that one repeated scene was written out to."""


class PlayedScene(Struct, frozen=True, kw_only=True):
    """One scene of a result."""

    scene: str
    checks: tuple[Result, ...]
    rungs: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    """What the model wrote, in order; `--replay` plays it again."""
    calls: int = 0
    tokens: int = 0
    first_word_ms: tuple[float, ...] = ()
    is_played: bool = True
    """False: the cap was reached before it ended."""


class PlayedSuite(Struct, frozen=True, kw_only=True):
    """One suite of a result."""

    suite: str
    about: str
    scenes: tuple[PlayedScene, ...]
    figures: Mapping[str, float] = {}
    is_measured: bool = True
    """False: it needs a model, and none spoke."""


class Evaluation(Struct, frozen=True, kw_only=True):
    """One evaluation: what was measured, and of what."""

    claudius: str
    soul_sha256: str
    voice: str
    judge: str
    kappa: float | None
    seed: int
    begun_at: str
    budget_usd: float
    cost_usd: float
    calls: int
    suites: tuple[PlayedSuite, ...]
    doubts: tuple[str, ...] = ()
    """What can be doubted about the soul by reading its files."""


class Run(Struct, frozen=True, kw_only=True):
    """How an evaluation is made."""

    suites: Sequence[Suite]
    purse: Purse
    seed: int = 0
    voice: Provider | None = None
    """None = the scripted voice."""
    price: Price = dearest
    judge: Judge | None = None
    recorded: Mapping[tuple[str, str], Sequence[str]] | None = None
    """The replies of a recorded run, by suite and scene."""
    recorded_voice: str = "recorded"
    """Who spoke in it."""
    soul: Path | None = None
    """The owner's soul files."""
    soul_file: Path | None = None
    tell: Callable[[str], None] = lambda _: None
    """Called with the name of each scene before it is played."""

    @property
    def voice_name(self) -> str:
        """Who speaks in the scenes."""
        if self.recorded is not None:
            return self.recorded_voice
        return f"{self.voice.name}/{self.voice.model}" if self.voice else "scripted"


async def evaluate(run: Run, begun_at: str) -> Evaluation:
    """Play every scene of every suite, and check it."""
    kappa = await run.judge.measure() if run.judge else None
    with homes() as root:
        suites = [await _suite(run, suite, root) for suite in run.suites]
        furnish(root / "home", run.soul, run.soul_file)
        soul, plain = _soul(root / "home" / "soul"), _soul(shipped("soul"))
    return Evaluation(
        claudius=claudius.__version__,
        soul_sha256=soul.sha256,
        voice=run.voice_name,
        judge=run.judge.name if run.judge else "",
        kappa=kappa,
        seed=run.seed,
        begun_at=begun_at,
        budget_usd=run.purse.cap_usd,
        cost_usd=round(run.purse.spent_usd, 6),
        calls=run.purse.calls,
        suites=tuple(suites),
        doubts=tuple(one.message for one in doubts(soul, plain)),
    )


async def _suite(run: Run, suite: Suite, root: Path) -> PlayedSuite:
    if suite.needs_model and is_no_model(run.voice_name):
        return PlayedSuite(suite=suite.name, about=suite.about, scenes=(), figures=figures(()), is_measured=False)
    scenes = [await _scene(run, suite, scene, root) for scene in suite.scene]
    return PlayedSuite(suite=suite.name, about=suite.about, scenes=tuple(scenes), figures=figures(scenes))


async def _scene(run: Run, suite: Suite, scene: Scene, root: Path) -> PlayedScene:
    run.tell(f"{suite.name}/{scene.id}")
    if run.purse.is_empty or (run.voice and run.purse.cap_usd <= 0):
        return PlayedScene(scene=scene.id, checks=(), is_played=False)
    played = await _played(run, suite, scene, root, scene.settings)
    checks = list(check(played))
    if run.judge:
        checks += await run.judge.of(played)
        if scene.prefer:
            rival = await _played(run, suite, scene, root, scene.rival)
            checks.append(await run.judge.preferred(scene.prefer, played, rival))
    return PlayedScene(
        scene=scene.id,
        checks=tuple(checks),
        rungs=played.whole.rungs,
        said=tuple(f"{post.at} {post.room}: {post.text}" for post in played.whole.posts),
        replies=played.replies,
        calls=len(played.replies),
        tokens=played.tokens,
        first_word_ms=tuple(round(one, 1) for one in played.first_word_ms),
        is_played=not run.purse.is_empty,
    )


async def _played(run: Run, suite: Suite, scene: Scene, root: Path, settings: Mapping[str, str]) -> Played:
    script: Playing | Repeating | None = None
    if run.recorded is not None:
        script = Repeating(run.recorded.get((suite.name, scene.id), ()))
    elif run.voice is None:
        script = Playing(f"{run.seed} {suite.name} {scene.id}")
    voice = run.voice if script is None and run.voice else Scripted(default=script or "")
    home = root / "home"
    furnish(home, run.soul, run.soul_file)
    metered = Metered(voice, None if script else run.purse, run.price)
    return await play(scene, home, metered, script, settings)


def figures(scenes: Sequence[PlayedScene]) -> dict[str, float]:
    """Return the figures of a suite: the share of checks that hold, of each rung, and what a turn costs. Pure."""
    counted = [one for scene in scenes for one in scene.checks if one.score is None]
    rungs = [rung for scene in scenes for rung in scene.rungs]
    turns, calls = max(len(rungs), 1), sum(scene.calls for scene in scenes)
    found = {
        "checks": float(len(counted)),
        "share_ok": _share(sum(one.ok for one in counted), len(counted)),
        "turns": float(len(rungs)),
        "spoken_without_fixed": _share(sum(rung != "fixed" for rung in rungs), len(rungs)),
        "calls_a_turn": round(calls / turns, 3),
        "tokens_a_turn": round(sum(scene.tokens for scene in scenes) / turns, 1),
        "fixed_in_a_row": float(max((_longest(scene.rungs, "fixed") for scene in scenes), default=0)),
    }
    found |= {f"rung_{rung}": _share(rungs.count(rung), len(rungs)) for rung in sorted(set(rungs))}
    acted = [
        (f"{one.check}_{scene.scene.rpartition('-')[0]}", one.ok)
        for scene in scenes
        for one in scene.checks
        if one.check in ACTED
    ]
    for name in sorted({name for name, _ in acted}):
        held = [ok for other, ok in acted if other == name]
        found[name] = _share(sum(held), len(held))
    waits = sorted(one for scene in scenes for one in scene.first_word_ms)
    if waits:
        found["first_word_p50_ms"] = waits[len(waits) // 2]
    return found


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0


def _longest(rungs: Sequence[str], wanted: str) -> int:
    longest = length = 0
    for rung in rungs:
        length = length + 1 if rung == wanted else 0
        longest = max(longest, length)
    return longest


def is_no_model(voice: str) -> bool:
    """Return whether no model spoke under this name. Pure."""
    return voice.partition("/")[0] in NO_MODEL


def _soul(directory: Path) -> SoulText:
    return SoulSource(directory, shipped("soul"), steps=STEPS).current()


def recorded(suites: Sequence[PlayedSuite]) -> Iterator[tuple[tuple[str, str], Sequence[str]]]:
    """Yield the replies of each scene of an earlier result. Pure."""
    for suite in suites:
        for scene in suite.scenes:
            yield (suite.suite, scene.scene), scene.replies
