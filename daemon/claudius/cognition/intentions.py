"""Act on the soul's intentions: plan what it means to follow up, and close what it has done. Pure.

`commit` calls `acted` for every turn that has intentions. A plan is only a reason to write first: the rules of writing
first decide when it comes due. Source: the psyche design, section 10; the daimon design, section 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from string import Template

from msgspec.structs import replace

from claudius.cognition.proactive import PROCESS
from claudius.cognition.processes import sections
from claudius.cognition.turn_state import schedule_id
from claudius.config import Config
from claudius.intent import WHAT, Intent, Planned, Schedule
from claudius.perception import internal
from claudius.psyche.change import Change
from claudius.psyche.events import HIT
from claudius.psyche.mapping import IntentionUpdate, advance_intentions
from claudius.psyche.words import overlap, stems, tokens
from claudius.psyche_types import Intention
from claudius.recollection import Recollection
from claudius.soul import SoulText

FOLLOW_UP, RAISE, REPAIR = "follow_up", "raise", "repair"
AFTER = {"short": timedelta(hours=20), "medium": timedelta(days=3), "long": timedelta(days=14)}
"""When the soul comes back to what it means to follow up, by the horizon of the intention."""
MENDING = frozenset(("reconcile", "resolve", "forgive", "deescalate"))
"""The stances that repair a relationship."""
AIM = "aim"
"""The parameter of a plan that names the target of the intention behind it."""


def acted(intent: Intent, change: Change, recollection: Recollection, soul: SoulText, config: Config) -> Intent:
    """Return a turn with the plans of its new intentions, and with those closed that it has carried out. Pure."""
    said = " ".join(one.body for one in intent.utterances if one.kind in ("reply", "proactive"))
    aims = recollection.psyche.intentions if recollection.psyche else ()
    if AIM not in internal(recollection.perception).params:  # what is written by plan may have faded overnight
        aims = advance_intentions(aims, change.event.at_s)
    done = [one for one in aims if one.sources == (intent.audience,) and _is_done(one, said, change, recollection)]
    closed = tuple(
        IntentionUpdate(operation="drop", type=one.type, target=one.target, horizon=one.horizon, description="")
        for one in done
    )
    planned = _planned(intent, (*closed, *change.updates), recollection, soul, config)
    told = {"intention": "; ".join(f"done: {_named(one)}" for one in done)} if done else {}
    return replace(
        intent,
        psyche=replace(change, updates=(*closed, *change.updates)) if closed else change,
        planned=planned,
        changes={**intent.changes, **told},
    )


def _is_done(aim: Intention, said: str, change: Change, recollection: Recollection) -> bool:
    """Return whether a turn has carried out an intention: it spoke of it, or repaired the relationship."""
    if aim.type == REPAIR:
        mended = any(shift.stance in MENDING for shift in change.shifts)
        words = {token.word for token in tokens(said)}
        is_sorry = "sorry" in words or any(word.startswith("apolog") for word in words)
        return (mended or is_sorry) and (aim.target or aim.person) in _present(recollection)
    if aim.type not in (FOLLOW_UP, RAISE) or not said:
        return False
    if internal(recollection.perception).params.get(AIM) == aim.target:
        return aim.type == FOLLOW_UP
    about = stems(f"{aim.description} {'' if ':' in aim.target else aim.target}")
    return overlap(stems(said), about) >= HIT


def _present(recollection: Recollection) -> frozenset[str]:
    speaker = recollection.speaker
    return frozenset([speaker.person] if speaker else []) | {one.person for one in recollection.others}


def _planned(
    intent: Intent, updates: Sequence[IntentionUpdate], recollection: Recollection, soul: SoulText, config: Config
) -> Planned | None:
    """Return the turn's plans with those that its intentions make and cancel; a later plan replaces an earlier one."""
    planned, perception = intent.planned or Planned(), recollection.perception
    wanted = [one for one in updates if one.type == FOLLOW_UP]
    if not config.psyche.proactive or planned.closes or not wanted or internal(perception).process == PROCESS:
        return intent.planned
    words = sections(soul.files.get(f"processes/{PROCESS}.md")).get(FOLLOW_UP, "$what")
    person = perception.person or intent.audience.partition("private:")[2]
    made = [
        Schedule(
            id=_id(intent, one),
            conversation=intent.conversation,
            at=intent.at + AFTER[one.horizon],
            text=Template(words).safe_substitute(what=one.description or _named(one)),
            process=PROCESS,
            params={AIM: one.target, WHAT: one.description or _named(one)},
            key=_key(one),
            audience=intent.audience,
            person=person,
        )
        for one in wanted
        if one.operation == "create"
    ]
    gone = tuple(_id(intent, one) for one in wanted if one.operation == "drop")
    return replace(planned, schedules=(*planned.schedules, *made), cancels=(*planned.cancels, *gone))


def _id(intent: Intent, update: IntentionUpdate) -> int:
    return schedule_id(intent.turn, intent.conversation, 0, _key(update))


def _key(update: IntentionUpdate) -> str:
    return f"{FOLLOW_UP}:{update.target}"


def _named(one: Intention | IntentionUpdate) -> str:
    words: Iterable[str] = (one.type.replace("_", " "), "" if ":" in one.target else one.target, one.description)
    return " ".join(filter(None, words))
