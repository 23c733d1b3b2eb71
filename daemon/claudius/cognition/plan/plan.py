"""Plan what one turn asks of the model: the steps, the user models shown, and where the history begins.

Every gate lives here. `cognition.hop` calls `plan` for each process of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from claudius.cognition.history import fixed
from claudius.cognition.plan.shown_models import Showing, show
from claudius.cognition.processes.process import Process
from claudius.cognition.steps import STEPS, step
from claudius.cognition.steps.step import Situation
from claudius.config import Config
from claudius.perception import Kind, Origin
from claudius.psyche import Attention
from claudius.psyche_types import Felt
from claudius.recollection import PastTurn, Person, Recollection, Shown
from claudius.soul import SoulText


class EngineSettings(Struct, frozen=True, kw_only=True):
    """The settings that shape a prompt and its effects; stored with the turn so that it can be rebuilt."""

    soul_state_interval: int = 3
    user_model_interval: int = 5
    model_bytes: int = 8192
    shrink_floor: float = 0.6
    window: int = 20
    budget_tokens: int = 8000
    summary_chars: int = 1500
    dossier_tokens: int = 1000
    max_tokens: int = 4096
    repairs: int = 1
    post_chars: int | None = None
    """The longest post of the place to answer, in UTF-16 units; None = no limit."""
    autonomous: bool = False
    """Whether the implicit semantic machine may be used."""
    assesses: bool = False
    """Whether turns assess their peer now and then, because no cortex does."""
    psyche: bool = False

    @classmethod
    def of(cls, config: Config, *, post_chars: int | None = None, assesses: bool = False) -> EngineSettings:
        """Take the settings from the configuration; those that differ per turn are parameters."""
        return cls(
            soul_state_interval=config.soul_state.interval,
            user_model_interval=config.user_model.interval,
            model_bytes=config.user_model.max_bytes,
            shrink_floor=config.user_model.shrink_floor,
            window=config.memory.window,
            budget_tokens=config.history.budget_tokens,
            summary_chars=config.history.summary_chars,
            dossier_tokens=config.soul.dossier_tokens,
            max_tokens=config.pipeline.max_tokens,
            repairs=config.pipeline.repairs,
            post_chars=post_chars,
            assesses=assesses,
            autonomous=config.ism.enabled,
            psyche=config.psyche.enabled,
        )


class Plan(Struct, frozen=True, kw_only=True):
    """What one turn will ask and show, decided before any model call."""

    process: str
    asked: tuple[str, ...]
    """Every step asked, in order, including the conditional ones."""
    conditional: Mapping[str, str]
    """Conditional step → the check it depends on."""
    shown: tuple[Shown, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Gate → the rule that decided it, for `claudius why`."""
    seen: bool = False
    owes: bool = True
    history_from: int = 1
    """The number of the first past turn in the rendered history."""
    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Step → text of the process, shown beside the step's name in the tail."""
    felt: Felt = field(default_factory=Felt)
    """What the psyche adds to the prompt, in words."""

    @property
    def speaks(self) -> bool:
        """Whether something may be said: a reply is owed, or speech was asked for."""
        return self.owes or "external_dialogue" in self.asked


def plan(
    process: Process, recollection: Recollection, settings: EngineSettings, attention: Attention | None = None
) -> Plan:
    """Decide which steps are asked and what is shown. Pure."""
    felt = attention.felt if attention else Felt()
    history_from = compact(recollection.past, settings)
    past = [turn for turn in recollection.past if turn.number >= history_from]
    person = _human(recollection)
    showing = (
        show(person, past, interval=settings.user_model_interval) if person else Showing((), "no human spoke", False)
    )
    others = [show(other, past, interval=0) for other in recollection.others if not other.is_bot]
    owes = any(perception.owes for perception in recollection.perceptions)
    situation = Situation(
        recollection=recollection,
        person=person,
        speaks=owes or process.silence_ok or _is_due(recollection) or (attention is not None and attention.speaks),
        seen=showing.seen,
        number=recollection.turns + 1,
        intervals={"soul_state_check": settings.soul_state_interval} | dict(process.intervals),
        assesses=settings.assesses,
        asks=felt.asks,
    )
    asked = _asked(process, situation)
    return Plan(
        process=process.name,
        asked=asked,
        conditional={name: check for name in asked if (check := step(name).after)},
        shown=showing.shown + tuple(shown for other in others for shown in other.shown),
        reasons={"user_model": showing.reason},
        seen=showing.seen,
        owes=owes,
        history_from=history_from,
        verbs=process.verbs,
        overrides=process.overrides,
        felt=felt,
    )


def silent_plan(process: str, recollection: Recollection, settings: EngineSettings) -> Plan:
    """Return a plan without speech: no step is asked, nothing is shown, nothing is owed. Pure."""
    return Plan(
        process=process,
        asked=(),
        conditional={},
        shown=(),
        owes=False,
        history_from=compact(recollection.past, settings),
    )


def _is_due(recollection: Recollection) -> bool:
    """Return whether the soul itself planned to speak now."""
    own = (Kind.SCHEDULED, Kind.DIRECTIVE)
    return any(perception.kind in own for perception in recollection.perceptions)


def _human(recollection: Recollection) -> Person | None:
    speaker = recollection.speaker
    if speaker is None or speaker.is_bot or recollection.perception.origin is not Origin.EXTERNAL:
        return None
    return speaker


def _asked(process: Process, situation: Situation) -> tuple[str, ...]:
    listed = [name for name in STEPS if name in process.steps or name in situation.asks]
    open_now = {name for name in listed if step(name).gate(situation)}
    return tuple(name for name in listed if name in open_now and (step(name).after or name) in open_now)


def allowed_verbs(step: str, plan: Plan, soul: SoulText) -> tuple[tuple[str, ...], str]:
    """Return the verbs a step may use in this plan's process, and its default. Pure."""
    known = soul.steps[step]
    return (*known.verbs, *plan.verbs.get(step, ())), known.default_verb


def compact(past: Sequence[PastTurn], settings: EngineSettings, *, share: float = 1.0) -> int:
    """Return the number of the first turn to render. Pure.

    When the history exceeds the budget, the oldest turns are dropped until half of the budget is used. The newest
    `window` entries always stay. `share`: the share of the budget to use. Source: the pipeline design, section 10.
    """
    first = past[0].number if past else 1
    sizes = [fixed(turn).tokens for turn in past]
    left, budget_tokens = sum(sizes), max(1, int(settings.budget_tokens * share))
    if left <= budget_tokens:
        return first
    newer_entries = sum(len(turn.entries) for turn in past)
    for turn, size in zip(past, sizes, strict=True):
        newer_entries -= len(turn.entries)
        if left <= budget_tokens // 2 or newer_entries < settings.window:
            return turn.number
        left -= size
    return past[-1].number
