"""What somebody asked to be reminded of, and what the soul said it would do by a time: planned with the turn.

Read off the words by rule, as promises are: any voice can be asked, and none needs a format for it. Pure.
Source: the process design, section 8; the daimon design, section 8.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from string import Template

from msgspec.structs import replace

from claudius.cognition.first_word import PROCESS
from claudius.cognition.processes import sections
from claudius.cognition.soul_engine.conclusion import utter
from claudius.cognition.soul_engine.entries import spoken
from claudius.cognition.staged import schedule_id
from claudius.cognition.timing import zone_at
from claudius.config import Config
from claudius.intent import Intent, Planned, Schedule
from claudius.memory.plans import MOST_OPEN, TOO_MANY
from claudius.perception import Origin
from claudius.psyche.promises import due, promises
from claudius.psyche.scope import sentences
from claudius.recollection import Recollection
from claudius.soul import SoulText

REQUEST_CHARS = 300
FULL = "I cannot keep another reminder here: too many wait already."
"""Said where the soul's own text has no line for it."""
_VERB = r"(?:remind|nudge|ping|poke|wake)"
_ASKS = re.compile(rf"\b{_VERB}\s+(?:me|us)\b", re.IGNORECASE)
_UNDERTAKES = re.compile(
    rf"\b(?:will|['’]ll|can|going\s+to|shall|let\s+me)\s+(?:\w+\s+)?{_VERB}\s+you\b", re.IGNORECASE
)
_DECLINES = re.compile(
    r"\b(?:can(?:no|['’])t|cannot|(?:won['’]t|will\s+not)(?!\s+forget)|unable|not\s+able)\b", re.IGNORECASE
)


def reminded(intent: Intent, recollection: Recollection, soul: SoulText, config: Config) -> Intent:
    """Plan what a turn leaves to be brought up at its time. Pure.

    Asked for by a person, it comes whatever the hour; a promise of the soul's own is a reason to write first, no more.
    """
    said = "".join(one.body for one in intent.utterances if one.kind == "reply")
    perception = recollection.perceptions[-1] if recollection.perceptions else None
    if not said or perception is None or perception.origin is not Origin.EXTERNAL or perception.is_bot:
        return intent
    if intent.planned is not None and (intent.planned.schedules or intent.planned.closes):
        return intent  # a process of its own plans for itself
    zone = zone_at(perception, config.clock.timezone)
    if request := _requested(perception.text):
        at = _asked_for(request, said, recollection.now, zone)
        return _planned(intent, recollection, soul, at, "reminder", request) if at else intent
    if not config.psyche.proactive:
        return intent
    promise = next(iter(promises(said, recollection.now, zone)), None)
    return _planned(intent, recollection, soul, promise.due_at, "promise", promise.what) if promise else intent


def within_limit(intent: Intent, recollection: Recollection, soul: SoulText, waiting: int) -> Intent:
    """Tell whoever asked for a reminder that it is not kept, where `waiting` plans leave no room for it. Pure.

    What nobody asked for is refused by the store, and told in the turn's changes alone.
    """
    planned = intent.planned
    if planned is None:
        return intent
    room = max(0, MOST_OPEN - waiting + len(planned.cancels))
    refused = [one for one in planned.schedules[room:] if one.asked_by]
    if not refused:
        return intent
    line = sections(soul.files.get(f"processes/{PROCESS}.md")).get("full", FULL)
    said = tuple(one.body for one in intent.utterances if one.kind == "reply")
    return replace(
        intent,
        planned=replace(planned, schedules=tuple(one for one in planned.schedules if one not in refused)),
        utterances=utter(recollection, (*said, line), intent.verb),
        entries=(*intent.entries, spoken(recollection, line, intent.verb)),
        changes={**intent.changes, "reminder": f"refused: {TOO_MANY}"},
    )


def _requested(text: str) -> str:
    """Return the sentence in which somebody asks to be reminded; empty where none does. Pure."""
    if not _ASKS.search(text):
        return ""
    found = next((one for one in sentences(text) if _ASKS.search(one)), "")
    return " ".join(found.split())[:REQUEST_CHARS]


def _asked_for(request: str, said: str, now: datetime, zone: tzinfo) -> datetime | None:
    """Return when to remind, where the soul did not decline: as it said itself, else as it was asked. Pure."""
    undertaking = next((one for one in sentences(said) if _UNDERTAKES.search(one)), "")
    if not undertaking and _DECLINES.search(said):
        return None
    at = (due(undertaking, now, zone) if undertaking else None) or due(request, now, zone)
    return at if at is not None and at > now else None


def _planned(
    intent: Intent, recollection: Recollection, soul: SoulText, at: datetime, occasion: str, what: str
) -> Intent:
    perception, is_asked = recollection.perceptions[-1], occasion == "reminder"
    words = sections(soul.files.get(f"processes/{PROCESS}.md")).get(occasion, "$what")
    key = f"{occasion}:{intent.turn}"
    made = Schedule(
        id=schedule_id(intent.turn, intent.conversation, 0, key),
        conversation=intent.conversation,
        at=at,
        text=Template(words).safe_substitute(what=what),
        process="" if is_asked else PROCESS,
        key=key,
        audience=recollection.audience,
        person=perception.person,
        asked_by=perception.person if is_asked else "",
    )
    planned = intent.planned or Planned()
    changes = {**intent.changes, occasion: f"{at:%Y-%m-%d %H:%M:%S} UTC"}
    return replace(intent, planned=replace(planned, schedules=(*planned.schedules, made)), changes=changes)
