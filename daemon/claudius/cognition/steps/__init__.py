"""Define what a cognitive step is, and those that ship.

A step that ships is a `Step` here, a text in `soul/steps/` and a line in `STEPS`, which stands where the
parser reads it. The code says when it is asked, how its answer is stored, and what else it changes. What is said aloud
has no effect here: its entry and utterance are made after the output ladder and gate judge it.

A step of the owner's own is a text in `soul/steps/` that a process names: asked in the turn, kept as a thought. Its
answer is private like every section: the parser knows the tag, the ladder and the gate let none of it out. An answer of
true may open another step (`after`). Source: the pipeline design, section 9; the cortex design, section 1; the doors
design, section 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from claudius.cognition.acts import called_so
from claudius.cognition.reply.parser import QUOTES, Section, clean_note, clean_text, one_line, read_bool
from claudius.cognition.reply.tags import NAMES, Names, canonical, escape_heads, is_taken
from claudius.cognition.reply.tags import STEPS as STEPS
from claudius.cognition.steps.user_model import Merged, merge_update
from claudius.intent import ModelVersion, StateChange, Thought
from claudius.ledger_types import Proposal
from claudius.memory.ledger import MAX_TRUST_DELTA, clamp_trust
from claudius.perception import SELF, Kind
from claudius.prompt import short_name
from claudius.psyche.attend import ACTIONS, read_action, sign_named
from claudius.psyche.context import APPRAISAL as APPRAISED
from claudius.psyche.context import MOOD, MOOD_WORD
from claudius.psyche.state import NOTHING as PLAIN
from claudius.psyche.state import read_appraisal
from claudius.psyche_types import Appraisal
from claudius.recollection import MOODS, STATE_DEFAULTS, Entry, EntryType, Person, Recollection, StateKey
from claudius.soul import SoulText, StepText


class Situation(Struct, frozen=True, kw_only=True):
    """The input of a step's gate."""

    recollection: Recollection
    person: Person | None
    """The speaker if the perception is external and from a human, else None."""
    speaks: bool
    """An utterance is wanted this turn."""
    number: int
    """This turn's number in its conversation, from 1."""
    intervals: Mapping[str, int]
    """Interval of each periodic step, in turns; 0 = never."""
    assesses: bool = False
    """No cortex assesses peers now, so a turn does."""
    uses: bool = False
    """Some tool may be used here, by this speaker, now."""


class Reading(Struct, frozen=True, kw_only=True):
    """The input of a step's effect: the sections of the reply by step, and what was asked."""

    thoughts: Mapping[str, tuple[Thought, ...]]
    recollection: Recollection
    person: Person | None
    asked: frozenset[str]
    """Steps that were asked, including the conditional ones."""
    seen: bool
    model_bytes: int
    """The longest user model, in bytes."""
    shrink_floor: float
    """The share of a user model that a whole rewrite must keep."""


class Effect(Struct, frozen=True, kw_only=True):
    """The result of one step's answer."""

    entries: tuple[Entry, ...] = ()
    model: ModelVersion | None = None
    state: tuple[StateChange, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    proposal: Proposal | None = None
    """An assessment of the speaker, for the ledger."""
    appraisals: tuple[Appraisal, ...] = ()
    """How the soul took what was said; empty = it was nothing."""
    mood: str = ""
    """The model's word for the soul's mood, even if it is unchanged."""
    action: str = ""
    """The soul's choice instead of speaking: `react` or `stay_silent`; empty = it speaks."""
    sign: str = ""
    """The emoji that it puts on the message if it chooses to react."""


NOTHING = Effect()


def always(_: Situation) -> bool:
    """Ask the step whenever the process, or the psyche, lists it."""
    return True


class Step(Struct, frozen=True, kw_only=True):
    """One named act of thought. Its wording is in `soul/steps/NAME.md`."""

    name: str
    gate: Callable[[Situation], object] = lambda _: False
    """Return whether it is asked now, given that the process lists it."""
    after: str | None = None
    """The check whose true answer this step needs; the step is asked if its check is asked and `gate` holds."""
    effect: Callable[[Reading], Effect] = lambda _: NOTHING
    """Return what its answer changes; called if it was asked and answered."""


PSYCHE_STEPS = ("chosen_action",)
"""Steps that the psyche asks, whatever a process lists; with the psyche off they are in no prompt."""


def _thought(reading: Reading) -> Effect:
    thought = reading.thoughts["internal_monologue"][0]
    if not thought.content.strip():
        return NOTHING
    entry = Entry(
        entry_type=EntryType.INTERNAL_MONOLOGUE,
        content=thought.content.strip(),
        verb=thought.verb,
        at=reading.recollection.now,
    )
    return Effect(entries=(entry,))


def _chosen(reading: Reading) -> Effect:
    """Read the choice, where no reply is owed, of an emoji or of silence instead of speech."""
    action, name = read_action(reading.thoughts["chosen_action"][0].content)
    if action == ACTIONS[0]:
        return NOTHING
    sign = sign_named(name) if action == "react" else ""
    return Effect(action=action, sign=sign, changes={"action": f"{action}: {name}" if name else action})


def _answers(situation: Situation) -> bool:
    """Ask where a person who is answered has spoken."""
    return situation.person is not None and situation.speaks


def _acts(situation: Situation) -> bool:
    """Ask where somebody is answered, and where a plan or directive is carried out."""
    kinds = {one.kind for one in situation.recollection.perceptions}
    return _answers(situation) or not kinds.isdisjoint((Kind.SCHEDULED, Kind.DIRECTIVE))


def _appraised(reading: Reading) -> Effect:
    """Read how what was said landed, in closed words; a table, not the model, maps them to numbers."""
    answers = [one.content for one in reading.thoughts["appraisal"]]
    speaker = reading.person.person if reading.person else ""
    found = read_appraisal(answers, partial(called_so, now=reading.recollection), speaker)
    entry = Entry(
        entry_type=EntryType.MENTAL_QUERY,
        content="\n".join(answers).strip(),
        at=reading.recollection.now,
        metadata={"query": APPRAISED} | (asdict(found) if found else {}),
    )
    kind, strength, whom = (found.kind, found.strength, found.person) if found else (PLAIN, "clear", speaker)
    of = [one.name for one in reading.recollection.people if one.person == whom != speaker]
    return Effect(
        entries=(entry,) if entry.content else (),
        appraisals=(found,) if found and found.kind != PLAIN else (),
        changes={"appraisal": {"kind": kind, "strength": strength, "of": of[0] if of else ""}},
        flags=() if found else ("dropped:appraisal",),
    )


def _done(reading: Reading) -> Effect:
    """Keep the section as it was written; what it does is read by `cognition/acts.py` before anything is said."""
    written = reading.thoughts["acts"][0].content
    query = {"query": "acts"}
    entry = Entry(entry_type=EntryType.MENTAL_QUERY, content=written, at=reading.recollection.now, metadata=query)
    return Effect(entries=(entry,))


def _is_due(name: str, every: int, situation: Situation) -> bool:
    """Ask at every so many turns: as often as the settings or the process say, else its own text."""
    interval = situation.intervals.get(name, every)
    return interval > 0 and situation.number % interval == 0


def _is_changed(reading: Reading) -> bool:
    return read_bool([one.content for one in reading.thoughts.get("soul_state_check", ())])


STATE_CHARS = {StateKey.CONVERSATION_SUMMARY: 600}
"""The longest value of a soul-state key; 200 for the others."""
_BULLET = re.compile(r"^\s*(?:[-*+•–]\s+|\d{1,2}[.)]\s+)?")
_KEYS = {key.value.casefold(): key for key in StateKey}


def read_state(text: str) -> dict[str, str]:
    """Read `key: value` lines into soul-state keys, in the order of `StateKey`. Pure.

    The last line of a key wins; an empty value means the default; unknown keys and moods outside the five are dropped;
    values are one line, cut at their cap.
    """
    found: dict[StateKey, str] = {}
    for line in text.splitlines():
        written, colon, value = _BULLET.sub("", line).partition(":")
        key = _KEYS.get(written.strip().strip(QUOTES).casefold())
        if not colon or key is None:
            continue
        value = one_line(value, STATE_CHARS.get(key, 200)).strip("* ")
        if len(value) > 1 and value[0] == value[-1] and value[0] in QUOTES:
            value = value[1:-1].strip()
        if key is StateKey.EMOTIONAL_STATE:
            value = value.casefold().removesuffix(".")
            if value and value not in MOODS:
                continue
        found[key] = escape_heads(value, limit=STATE_CHARS.get(key, 200))
    return {key.value: found[key] for key in StateKey if key in found}


def _said(reading: Reading) -> dict[str, str]:
    return read_state("\n".join(one.content for one in reading.thoughts.get("soul_state_update", ())))


def _checked(reading: Reading) -> Effect:
    truth = _is_changed(reading)
    word = _said(reading).get(MOOD, "") if truth and "soul_state_update" in reading.asked else ""
    entry = Entry(
        entry_type=EntryType.MENTAL_QUERY,
        content=f"Claudius judged whether his own state has changed: {str(truth).lower()}",
        at=reading.recollection.now,
        metadata={"query": "soul_state_check", "result": truth} | ({MOOD_WORD: word} if word else {}),
    )
    return Effect(entries=(entry,))


def _updated(reading: Reading) -> Effect:
    if not _is_changed(reading):
        return Effect(changes={"soul_state": {"result": "refused:check"}})
    now = {value.key: value.value for value in reading.recollection.state}
    said = _said(reading)
    mood = said.get(MOOD, "")
    moved = {key: value for key, value in said.items() if value != now.get(key, STATE_DEFAULTS[key])}
    if not moved:
        return Effect(mood=mood)
    audience = reading.recollection.audience
    changes = tuple(
        StateChange(key=key, value=value, audience=SELF if key == StateKey.EMOTIONAL_STATE else audience)
        for key, value in moved.items()
    )
    return Effect(state=changes, changes={"soul_state": moved}, mood=mood)


class PortraitOutcome(Struct, frozen=True):
    """The result of an update: `fate` is `none`, `missing`, `stored`, `same`, `unseen`, `unasked` or `refused:…`."""

    fate: str
    merged: Merged | None = None


def _portrait_outcome(reading: Reading) -> PortraitOutcome:
    """Judge the update of a reply. Pure."""
    checks = reading.thoughts.get("user_model_check", ())
    updates = reading.thoughts.get("user_model_update", ())
    asked = "user_model_update" in reading.asked
    if reading.person is None or not (checks and read_bool([check.content for check in checks])):
        return PortraitOutcome("refused:check" if updates else "none")
    if not asked:
        return PortraitOutcome("unseen" if updates and not reading.seen else "unasked" if updates else "none")
    if not updates:
        return PortraitOutcome("missing")
    current = reading.person.models[0]
    merged = merge_update(
        current.markdown,
        [(update.section, update.content) for update in updates],
        max_bytes=reading.model_bytes,
        shrink_floor=reading.shrink_floor,
        person=reading.person.person,
    )
    if merged.refused:
        return PortraitOutcome(f"refused:{merged.refused}", merged)
    return PortraitOutcome("same" if merged.markdown == current.markdown else "stored", merged)


def _portrait_checked(reading: Reading) -> Effect:
    """Keep the check as a memory; if it is true and no update follows, the memory says so."""
    if reading.person is None:
        return NOTHING
    truth = read_bool([check.content for check in reading.thoughts["user_model_check"]])
    whose, fate = reading.person.name or "the speaker", _portrait_outcome(reading).fate
    entry = Entry(
        entry_type=EntryType.MENTAL_QUERY,
        content=f"Claudius judged whether the user model of {whose} needs a change: {str(truth).lower()}",
        at=reading.recollection.now,
        metadata={
            "query": "user_model_check",
            "person": reading.person.person,
            "result": truth,
            "shown": reading.person.models[0].version if reading.seen else None,
            "update": fate,
        },
    )
    told = {"user_model": {"person": reading.person.person, "result": fate}} if fate == "missing" else {}
    return Effect(entries=(entry,), changes=told)


def _portrait_updated(reading: Reading) -> Effect:
    result = _portrait_outcome(reading)
    if reading.person is None:
        return NOTHING
    if result.fate != "stored" or result.merged is None or result.merged.markdown is None:
        return Effect(changes={"user_model": {"person": reading.person.person, "result": result.fate}})
    current = reading.person.models[0]
    notes = reading.thoughts.get("model_change_note", ())
    version = ModelVersion(
        person=current.person,
        audience=current.audience,
        version=current.version + 1,
        markdown=result.merged.markdown,
        note=clean_note(notes[0].content if notes else "") or f"updated {reading.person.name}",
        suspect=result.merged.suspect,
        name=reading.person.name,
    )
    told = {name: getattr(version, name) for name in ("person", "audience", "version", "note", "suspect")}
    return Effect(model=version, changes={"user_model": {**told, "result": "stored"}})


EACH = 5
"""The step is asked at every fifth exchange with a person."""
RATIONALE_CHARS = 1000


def _is_assessed_now(situation: Situation) -> bool:
    peers = situation.recollection.peers
    if not situation.assesses or situation.person is None or not peers:
        return False
    return peers[0].peer_id == situation.person.person and (peers[0].messages + 1) % EACH == 0


def _assessed(reading: Reading) -> Effect:
    if reading.person is None:
        return NOTHING
    try:
        found = json.loads(reading.thoughts["assess_peer"][0].content)
    except (ValueError, RecursionError):
        return Effect(changes={"assessment": {"result": "unreadable"}})
    theirs = (reading.person.person, short_name(reading.person.person))  # a prompt tells the short one
    if not isinstance(found, dict) or found.get("peer_id") not in theirs:
        return Effect(changes={"assessment": {"result": "refused:person"}})
    rationale = found.get("rationale")
    why = " ".join(rationale.split())[:RATIONALE_CHARS] if isinstance(rationale, str) else ""
    trust = clamp_trust(0, found.get("trust"), 10)
    if trust is None or not why:
        return Effect(changes={"assessment": {"result": "unreadable"}})
    proposal = Proposal(
        peer_id=reading.person.person,
        trust=trust,
        rationale=why,
        author="inline",
        sources=(reading.recollection.audience,),
        limit=MAX_TRUST_DELTA,
    )
    told = {"result": "stored", "person": proposal.peer_id, "trust": trust, "rationale": why}
    return Effect(proposal=proposal, changes={"assessment": told})


_IS_HUMAN = attrgetter("person")
_SHIPPED = {
    one.name: one
    for one in (
        Step(name="internal_monologue", gate=always, effect=_thought),
        Step(name="appraisal", gate=_answers, effect=_appraised),
        Step(name="acts", gate=_acts, effect=_done),
        Step(name="tool_use", gate=lambda situation: situation.speaks and situation.uses),
        Step(name="external_dialogue", gate=attrgetter("speaks")),
        Step(name="user_model_check", gate=_IS_HUMAN, effect=_portrait_checked),
        Step(name="user_model_update", gate=_IS_HUMAN, after="user_model_check", effect=_portrait_updated),
        Step(name="model_change_note", gate=_IS_HUMAN, after="user_model_check"),
        Step(name="soul_state_check", gate=partial(_is_due, "soul_state_check", 0), effect=_checked),
        Step(name="soul_state_update", gate=always, after="soul_state_check", effect=_updated),
        Step(name="mental_query"),  # asked by functions, which supply the statement
        Step(name="action_choice"),  # asked by the implicit semantic machine
        Step(name="assess_peer", gate=_is_assessed_now, effect=_assessed),
        Step(name="chosen_action", gate=always, effect=_chosen),
    )
}


def step(name: str) -> Step:
    """Return a step that ships. Raises: KeyError if it is unknown."""
    return _SHIPPED[name]


VALUES = ("text", "bool", "line")
LINE_CHARS = 400
STEP = "step"
"""The key of an entry's metadata under which a thought names the owner's step that it answers."""
_NAME = re.compile(r"[a-z][a-z_]{1,38}")


def unfit(name: str, soul: SoulText) -> str:
    """Return why a process text cannot ask a step of the owner's own; empty if it can. Pure."""
    worded = soul.steps.get(name)
    if worded is None:
        return f"there is no text steps/{name}.md that can be used"
    if not _NAME.fullmatch(name) or is_taken(name):
        return f"its tag is ours, HTML's or a model's own, or no tag: {name!r}"
    if twins := [one for one in soul.steps if one not in (*STEPS, name) and canonical(one) == canonical(name)]:
        return f"its tag looks like that of steps/{twins[0]}.md: rename one"
    if worded.value not in VALUES or worded.has_slots:
        return f"only a function can ask it: its value is none of {', '.join(VALUES)}, or it has slots"
    if worded.after and (worded.after not in soul.steps or soul.steps[worded.after].value != "bool"):
        return f"its head: after: {worded.after!r} is no step whose value is bool"
    way = [name]
    while way[-1] not in way[:-1] and (check := soul.steps.get(way[-1])) and check.after:
        way.append(check.after)
    return f"its head: after: it waits for itself: {' → '.join(way)}" if way[-1] in way[:-1] else ""


def names_of(soul: SoulText) -> Names:
    """Return the tags that a reply may hold: ours, and those of the owner's steps. Pure."""
    if "names" not in soul.derived:
        own = [name for name in soul.steps if name not in STEPS and not unfit(name, soul)]
        soul.derived["names"] = Names.of((*STEPS, *own)) if own else NAMES
    found: Names = soul.derived["names"]
    return found


def step_of(name: str, soul: SoulText) -> Step:
    """Return a step, shipped or the owner's. Raises: KeyError if it is unknown."""
    if name in STEPS:
        return step(name)
    worded = soul.steps[name]
    return Step(
        name=name, gate=partial(_is_due, name, worded.every), after=worded.after or None, effect=partial(_noted, worded)
    )


def _noted(worded: StepText, reading: Reading) -> Effect:
    checks = [one.content for one in reading.thoughts.get(worded.after, ())]
    content = reading.thoughts[worded.name][0].content
    if not content or (worded.after and not read_bool(checks)):
        return NOTHING
    at = reading.recollection.now
    kind, verb = EntryType.INTERNAL_MONOLOGUE, f"noted {worded.name.replace('_', ' ')}"
    return Effect(entries=(Entry(entry_type=kind, content=content, verb=verb, at=at, metadata={STEP: worded.name}),))


def answered(kind: EntryType | None, about: Mapping[str, Any]) -> str:
    """Return the owner's step that an entry answers; empty if it answers none. Pure."""
    return str(about.get(STEP, "")) if kind is EntryType.INTERNAL_MONOLOGUE else ""


def answer(worded: StepText, found: Sequence[Section]) -> Section:
    """Read what was written for a step of the owner's own, as it is kept. Pure."""
    text = clean_text(found[0].text)
    if worded.value == "bool":
        text = str(read_bool([one.text for one in found])).lower()
    return Section(name=worded.name, text=one_line(text, LINE_CHARS) if worded.value == "line" else text)


def placed(listed: Iterable[str], after: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return every shipped step in its order, and each other one of `listed` behind the one it is listed behind. Pure.

    `after`: other step → the check that it stands directly behind, whatever it is listed behind.
    """
    found, at = [*STEPS], 0
    for name in sorted(listed, key=after.__contains__):
        if name not in found:
            check = after.get(name)
            at = found.index(check) + 1 if check in found else at
            found.insert(at, name)
        at = found.index(name) + 1
    return found
