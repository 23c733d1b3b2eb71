"""Plan one turn: what the psyche makes of a perception, which steps are asked, what is shown, where the history begins.

Every gate lives here. `cognition.turn` calls `attend_to` before a hop: if the psyche is off, or fails (which is
logged), everything owed goes to the model. `cognition.hop` calls `plan` for each process of a turn. `show` decides
which user models a prompt shows (the Samantha-Dreams gate). Source: seed 000, "User Model"; the pipeline design,
section 2.1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.history import MESSAGE_CHARS, rendered
from claudius.cognition.proactive import PROCESS
from claudius.cognition.processes import Process, sections
from claudius.cognition.remembering import remember
from claudius.cognition.reply.tags import TOOL_USE
from claudius.cognition.steps import PSYCHE_STEPS, Situation, step
from claudius.config.schema import Config
from claudius.errors import RowInvalid
from claudius.foreign import unquoted
from claudius.intent import ApologyKind
from claudius.memory.store import Store
from claudius.perception import SELF, Kind, Origin
from claudius.provider import Form, Profile
from claudius.psyche import Attention, GateSettings, attend, set_back
from claudius.psyche.change import Change
from claudius.psyche.events import FAILED_EFFECTS, OVERRIDDEN_EFFECTS
from claudius.psyche.personality import BadPersonality, Fingerprint, Kernel, kernel
from claudius.psyche_types import FAULTS, Felt
from claudius.recollection import Entry, EntryType, PastTurn, Person, Recollection, Remembered, Shown, once
from claudius.soul import SoulFile, SoulText

OTHER_MODELS = 2
SPEECH, THOUGHT = "external_dialogue", "internal_monologue"
BEFORE_WORDS = (THOUGHT, "chosen_action")
"""The steps that decide what is said, or whether anything is: not asked of a model that writes its words alone."""
PORTRAIT = ("user_model_check", "user_model_update", "model_change_note")
DECIDED = ("appraisal", "acts")
"""Asked in every process that speaks."""
MAX_UNANSWERED = 2
"""After this many true checks in a row whose update was missing or refused, a true check shows nothing."""


class Showing(Struct, frozen=True):
    """The gate's decision on one person: what is shown, and the rule that decided it."""

    shown: tuple[Shown, ...]
    reason: str


def _model_checks(past: PastTurn) -> list[Entry]:
    return [
        entry
        for entry in past.entries
        if entry.entry_type is EntryType.MENTAL_QUERY and entry.metadata.get("query") == "user_model_check"
    ]


def _noticed(checks: Sequence[Entry]) -> bool:
    """Return whether the last check was true, unless too many in a row had no effect."""
    if not checks or not checks[-1].metadata.get("result"):
        return False
    in_vain = 0
    for check in reversed(checks):
        fate = str(check.metadata.get("update", ""))
        if not check.metadata.get("result") or not (fate == "missing" or fate.startswith("refused")):
            break
        in_vain += 1
    return in_vain < MAX_UNANSWERED


def show(person: Person, past: Sequence[PastTurn], *, interval: int) -> Showing:
    """Decide what the prompt shows of a person, given the history that it renders. Pure.

    `past`: the turns in this prompt's history, oldest first; `interval`: the number of the person's turns after which
    the model is pointed out again, 0 = never.
    """
    models = person.models[: 1 + OTHER_MODELS]
    whole = tuple(
        [
            Shown(person=one.person, audience=one.audience, version=one.version, writable=place == 0, text=one.markdown)
            for place, one in enumerate(models)
        ]
    )
    if person.turns_here == 0:
        return Showing(whole, "first turn")
    checks = [one for turn in past for one in once(turn, _model_checks)]
    if _noticed([one for one in checks if one.metadata.get("person") == person.person]):
        return Showing(whole, "the soul noticed something")
    last = [(turn, shown) for turn in past for shown in turn.shown if shown.person == models[0].person]
    above = {shown.audience: shown.version for _, shown in last if not shown.pointer}
    if [one for one in models if above.get(one.audience, one.version) != one.version]:
        return Showing(whole, "it changed")
    if models[0].audience not in above:
        return Showing(whole, "it left the history")
    newest = whole[0]
    later = [turn for turn in past if turn.number > last[-1][0].number]
    spoke = [{one.person for one in turn.entries if one.entry_type is EntryType.USER_MESSAGE} for turn in later]
    since = len([people for people in spoke if person.person in people])
    if 0 < interval <= since + 1:
        pointer = Shown(
            person=newest.person, audience=newest.audience, version=newest.version, writable=True, pointer=True
        )
        return Showing((pointer,), "interval")
    return Showing((), "still in the history")


WORDING = 5
"""Grows when the same snapshot and soul files give other bytes.

2: the Temperament names only what is marked; the scale of trust stands in the step that asks for it. 4: what a third
party's tool gave is whole in one later prompt. 5: a plan by another clock than The Present's names its zone.
"""


class EngineSettings(Struct, frozen=True, kw_only=True):
    """The settings that shape a prompt and its effects; stored with the turn so that it can be rebuilt."""

    soul_state_interval: int = 3
    user_model_interval: int = 5
    model_bytes: int = 8192
    shrink_floor: float = 0.6
    window: int = 20
    budget_tokens: int = 8000
    message_chars: int = MESSAGE_CHARS
    """The most that is shown of each message heard now."""
    summary_chars: int = 1500
    dossier_tokens: int = 1000
    max_tokens: int = 4096
    repairs: int = 1
    post_chars: int | None = None
    """The longest post of the place to answer, in UTF-16 units; None = no limit."""
    is_plain: bool = False
    """Whether that place shows neither tables nor headings below the third level."""
    autonomous: bool = False
    """Whether the implicit semantic machine may be used."""
    assesses: bool = False
    """Whether turns assess their peer now and then, because no cortex does."""
    psyche: bool = False
    zone: str = ""
    """The speaker's IANA time zone, in which the prompt names the present; empty = the prompt does not name it."""
    wording: int = 1
    """The version of the words that the code puts in a prompt: that of a kept turn is 1 if it says nothing else."""
    profile: Profile = "full"
    form: Form = "tags"
    """How a reply gets its sections."""
    tools: tuple[str, ...] = ()
    """The tools that may be used here, by this speaker, now, as the prompt names them."""

    @classmethod
    def of(
        cls,
        config: Config,
        *,
        post_chars: int | None = None,
        is_plain: bool = False,
        assesses: bool = False,
        zone: str = "",
    ) -> EngineSettings:
        """Take the settings from the configuration; those that differ per turn are parameters."""
        return cls(
            soul_state_interval=config.soul_state.interval,
            user_model_interval=config.user_model.interval,
            window=config.memory.window,
            budget_tokens=config.history.budget_tokens,
            max_tokens=config.pipeline.max_tokens,
            post_chars=post_chars,
            is_plain=is_plain,
            assesses=assesses,
            autonomous=config.ism.enabled,
            psyche=config.psyche.enabled,
            zone=zone,
            wording=WORDING,
        )


class Plan(Struct, frozen=True, kw_only=True):
    """What one turn will ask and show, decided before any model call."""

    process: str = ""
    asked: tuple[str, ...] = ()
    """Every step asked, in order, including the conditional ones."""
    conditional: Mapping[str, str] = field(default_factory=dict)
    """Conditional step → the check it depends on."""
    shown: tuple[Shown, ...] = ()
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
    remembered: Remembered = Remembered()
    """The lines of memory in the prompt."""
    tools: tuple[str, ...] = ()
    """The tools that may be used, as the prompt names them; none if the use of one is not asked."""
    judged: tuple[str, ...] = ()
    """Steps that a model of the plain profile is asked after its words, all in one call."""

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
    speaker = recollection.speaker
    is_human = speaker and not speaker.is_bot and recollection.perception.origin is Origin.EXTERNAL
    person = speaker if is_human else None
    showing = show(person, past, interval=settings.user_model_interval) if person else Showing((), "no human spoke")
    beside = recollection.people[1:] if speaker else recollection.people
    others = [show(other, past, interval=0) for other in beside if not other.is_bot]
    owes = recollection.owes
    # the soul itself planned to speak now
    is_due = not {Kind.SCHEDULED, Kind.DIRECTIVE}.isdisjoint([one.kind for one in recollection.perceptions])
    situation = Situation(
        recollection=recollection,
        person=person,
        speaks=owes or process.silence_ok or is_due or (attention is not None and attention.speaks),
        number=recollection.spoken + 1,
        intervals={"soul_state_check": settings.soul_state_interval} | dict(process.intervals),
        assesses=settings.assesses,
        uses=bool(settings.tools),
    )
    steps = {*process.steps, *(DECIDED if SPEECH in process.steps else ())}
    wanted: tuple[str, ...] = ()
    for name in process.order:
        one = process.own.get(name) or step(name)
        is_listed = name in (felt.asks if name in PSYCHE_STEPS else steps)
        if is_listed and one.gate(situation) and (one.after is None or one.after in wanted):
            wanted = (*wanted, name)
    asked, judged = (
        (wanted, ())
        if settings.profile == "full" and settings.form != "words"
        else aloud(wanted, settings, situation.number)
    )
    # an empty portrait would only cost tokens
    written = [one.shown for one in (showing, *others) if [shown for shown in one.shown if shown.version]]
    return Plan(
        process=process.name,
        asked=asked,
        conditional={name: check for name in asked if (check := (process.own.get(name) or step(name)).after)},
        shown=tuple([one for each in written for one in each]),
        reasons={"user_model": showing.reason},
        seen=person is not None,
        owes=owes,
        history_from=history_from,
        verbs=process.verbs,
        overrides=process.overrides,
        felt=felt,
        remembered=attention.remembered if attention else Remembered(),
        tools=settings.tools if TOOL_USE in asked else (),
        judged=judged,
    )


def aloud(steps: tuple[str, ...], settings: EngineSettings, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide the steps into the words aloud, which are asked alone, and those that judge them afterwards. Pure.

    Nothing is judged where the server does not enforce the form: what such a model writes of it cannot be used. The
    portrait, three quarters of what is judged, is asked at each `user_model_interval`-th exchange; `number` is this
    one.
    """
    now = tuple([name for name in steps if name in (TOOL_USE, SPEECH)]) or steps[:1]
    is_judged = settings.profile == "plain" and settings.form != "words"
    interval = settings.user_model_interval
    later = PORTRAIT if interval and number % interval else ()
    return now, tuple([name for name in steps if name not in (*now, *BEFORE_WORDS, *later)]) if is_judged else ()


def portrait(speaker: Person | None) -> tuple[Shown, ...]:
    """Return the speaker's portrait, which an update may write; nothing of a bot. Pure."""
    if speaker is None or speaker.is_bot or not speaker.models:
        return ()
    own = speaker.models[0]
    return (Shown(person=own.person, audience=own.audience, version=own.version, writable=True, text=own.markdown),)


def silent_plan(process: str, recollection: Recollection, settings: EngineSettings) -> Plan:
    """Return a plan without speech: no step is asked, nothing is shown, nothing is owed. Pure."""
    return Plan(process=process, owes=False, history_from=compact(recollection.past, settings))


def allowed_verbs(step: str, plan: Plan, soul: SoulText) -> tuple[tuple[str, ...], str]:
    """Return the verbs a step may use in this plan's process, and its default. Pure."""
    known = soul.steps[step]
    return (*known.verbs, *plan.verbs.get(step, ())), known.default_verb


KEPT_TOKENS = 2000
"""How much stays of a history that became too long: all of it is written into a provider's cache anew, which costs."""


def compact(past: Sequence[PastTurn], settings: EngineSettings, *, share: float = 1.0) -> int:
    """Return the number of the first turn to render. Pure.

    When the history exceeds the budget, the oldest turns are dropped until half of it is used, or `KEPT_TOKENS`.
    The newest `window` entries always stay, not counting answers to queries; with a window of 0, none has to, and half
    of the budget stays. `share`: the share of the budget to use. Source: the pipeline design, section 10.
    """
    first = past[0].number if past else 1
    sizes = [rendered(turn, settings.profile).tokens for turn in past]
    left, budget_tokens = sum(sizes), max(1, int(settings.budget_tokens * share))
    if left <= budget_tokens:
        return first
    said = [sum(one.entry_type is not EntryType.MENTAL_QUERY for one in turn.entries) for turn in past]
    newer_entries, least = sum(said), budget_tokens // 2
    if settings.window:
        least = min(least, KEPT_TOKENS)
    for turn, size, many in zip(past, sizes, said, strict=True):
        newer_entries -= many
        if left <= least or newer_entries < settings.window:
            return turn.number
        left -= size
    return past[-1].number + (not settings.window)


log = logging.getLogger(__name__)


async def attend_to(
    recollection: Recollection, soul: SoulText, config: Config, store: Store, *, has_process: bool = False
) -> Attention:
    """Return the attention that a perception gets, and for every thought the lines of memory that bear on it.

    `has_process`: a custom process runs here and must receive every owed perception, however trivial.
    """
    perception, owes = recollection.perception, recollection.owes
    # if the psyche is off or fails, everything that is owed a reply is thought about
    attention = Attention(outcome="think" if owes or perception.origin is Origin.INTERNAL else "ignore", speaks=owes)
    if config.psyche.enabled and recollection.psyche is not None:
        try:
            attention = attend(recollection, perception, gate_settings_of(soul, config, has_process=has_process))
        except FAULTS:
            log.exception("the psyche is at fault", extra={"turn": recollection.turn})
    if attention.outcome != "think" or recollection.audience == SELF:
        return attention
    try:
        lines = await remember(recollection, store, config, soul_name(soul.text("soul.md")))
    except (*FAULTS, RowInvalid):
        log.exception("memory is at fault", extra={"turn": recollection.turn})
        return attention
    return replace(attention, remembered=lines)


SETBACKS: Mapping[ApologyKind, tuple[float, ...]] = {
    "provider_down": FAILED_EFFECTS,
    "unreadable": FAILED_EFFECTS,
    "interrupted": FAILED_EFFECTS,
    "too_large": FAILED_EFFECTS,
    "stopped": OVERRIDDEN_EFFECTS,
}
"""What each failure of an owed answer does to the needs."""


def setback(recollection: Recollection, kind: ApologyKind, soul: SoulText, config: Config) -> Change | None:
    """Return what a failed or stopped answer does to the numbers; None if it does nothing."""
    if not config.psyche.enabled or not recollection.owes or kind not in SETBACKS:
        return None
    try:
        return set_back(recollection, SETBACKS[kind], gate_settings_of(soul, config))
    except FAULTS:
        log.exception("the psyche is at fault", extra={"turn": recollection.turn})
        return None


def gate_settings_of(soul: SoulText, config: Config, *, has_process: bool = False) -> GateSettings:
    """Return the parts of the soul and its settings that attention needs.

    `has_process`: a custom process runs here, so an acknowledgement must not replace it.
    """
    psyche = config.psyche
    speech = soul.steps["external_dialogue"]
    return GateSettings(
        kernel=kernel_of(soul),
        soul_name=soul_name(soul.text("soul.md")),
        threshold=psyche.threshold,
        acknowledges_by_emoji=psyche.acknowledge == "emoji",
        milestone=sections(soul.files.get(f"processes/{PROCESS}.md")).get("milestone", "") if psyche.proactive else "",
        can_acknowledge=bool(speech.acknowledge) and not has_process,
    )


def kernel_of(soul: SoulText) -> Kernel:
    """Return the traits compiled from soul.md; the default mixture if its head is invalid."""
    known = soul.derived.get("kernel")
    if known is None:
        known = soul.derived["kernel"] = compiled(soul.files["soul.md"])
    return known if isinstance(known, Kernel) else Kernel()


def compiled(file: SoulFile) -> Kernel:
    """Compile one soul.md; use the default mixture if its head is invalid."""
    try:
        return kernel(Fingerprint.of(file.head), file.text)
    except BadPersonality as error:
        log.warning("soul.md: its head is not in force", extra={"error": unquoted(error)})
        return kernel(Fingerprint(), file.text)


@lru_cache(maxsize=16)
def soul_name(text: str) -> str:
    """Return the soul's first name in lower case, from the heading of soul.md. Pure."""
    heading = next((line for line in text.splitlines() if line.startswith("# ")), "")
    words = heading.removeprefix("# ").replace(",", " ").split()
    return words[0].lower() if words else ""


def own_name(soul: SoulText) -> str:
    """Return the soul's first name as it tells it; empty if it has none. Pure."""
    return soul_name(soul.text("soul.md")).capitalize()
