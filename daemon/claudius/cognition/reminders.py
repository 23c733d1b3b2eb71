"""Plan reminders that somebody asked for, and the soul's own dated promises, as part of a turn. Pure.

Both are found in the text by rule, so no model needs a format for them; the time of a reminder is said by rule too.
Source: the process design, section 8; the daimon design, section 8; the cortex design, section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from string import Template

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.conclude.conclusion import NODDED, spoken, utter
from claudius.cognition.output.rules import SAID
from claudius.cognition.proactive import PROCESS
from claudius.cognition.processes import sections
from claudius.cognition.timing import zone_at
from claudius.cognition.turn_state import schedule_id
from claudius.config import Config
from claudius.intent import PROMISE_DUE, WHAT, Intent, Planned, Schedule
from claudius.ledger_types import Promise
from claudius.memory.plans import MOST_OPEN, TOO_MANY
from claudius.perception import Origin
from claudius.psyche.promises import WHAT_CHARS, grace_s, matter, stems
from claudius.psyche.reminding import (
    SIGNS,
    asks_time,
    is_undertaking,
    own_words,
    refuses,
    request_in,
    statements,
    undertaking_in,
)
from claudius.psyche.times import due, language_of, names_hour, names_instant, repeats, said_as
from claudius.recollection import Entry, EntryType, Recollection
from claudius.soul import SoulText

REQUEST_CHARS = 300
POST_CHARS = 1900
"""A reply longer than this says a reminder's time in a post of its own: no network takes less in one post."""
FULL = "I cannot keep another reminder here: too many wait already."
WORDS = {
    "planned": "I will remind you $at.",
    "once": "I will remind you $at, once.",
    "when": "When shall I remind you?",
    "full": FULL,
}
"""Said if the soul's own text has no line for it."""
_ENDS = (".", "!", "…", ".”", "!”")


class Reminder(Struct, frozen=True, kw_only=True):
    """A request for a reminder in a turn, and what became of it."""

    request: str
    """The sentence that asked for it, as it was said."""
    plan: Schedule | None = None
    """None = it named no time yet."""
    is_said: bool = False
    """The reply names the time itself."""
    zone: tzinfo = UTC


def reminded(
    intent: Intent, recollection: Recollection, soul: SoulText, config: Config
) -> tuple[Intent, Reminder | None]:
    """Plan the reminder that was asked for unless the reply refuses, and what the soul says it will deliver. Pure.

    In an answer, both count as asked for by the person answered. A reminder comes at any hour, a promise of the soul's
    own outside quiet hours. A promise in a turn that answers nobody is only a reason to write first.
    """
    perception = recollection.perceptions[-1] if recollection.perceptions else None
    noted = intent.noted
    if not intent.utterances or perception is None or noted is None or perception.is_bot:
        return intent, None
    if intent.planned is not None and intent.planned.closes:
        return intent, None
    is_answer = perception.origin is Origin.EXTERNAL
    zone = zone_at(recollection, config.clock.timezone)
    request = named = said = ""
    before = recollection.past[-1].entries if recollection.past else ()
    texts = [perception.text, *[one.content for one in before if one.entry_type is EntryType.USER_MESSAGE]]
    may_ask = is_answer and not (intent.planned and intent.planned.schedules)
    if may_ask and any(map("\n".join(texts).lower().__contains__, SIGNS)):
        request, named = _requested(perception.text, before, recollection.now, zone)
        said = own_words("\n".join([one.body for one in intent.utterances if one.kind in ("reply", "proactive")]))
    if request and refuses(said):
        return replace(intent, changes={**intent.changes, "reminder": "declined"}), None
    at = _asked_for(named, said, recollection.now, zone) if request else None
    mine = [("promise", one) for one in noted.promises if one.side == "mine"]
    if at:
        others = [one for one in mine if not is_undertaking(one[1].what)]  # that is what was asked for
        mine = [("reminder", _accepted(request, at, recollection)), *others]
    made: list[tuple[Schedule, Promise]] = []
    for number, (occasion, promise) in enumerate(mine):
        what = request if occasion == "reminder" else promise.what
        plan = _plan(occasion, number, what, promise.due_at, intent, recollection, soul)
        made.append((plan, replace(promise, plan=plan.id, stems=stems(matter(promise.what)))))
    reminder = None
    if request and not (mine and not at):
        is_said = at is not None and any(_names(one, at, recollection.now, zone) for one in statements(said))
        reminder = Reminder(request=request, plan=made[0][0] if at else None, is_said=is_said, zone=zone)
    if not mine:
        return intent, reminder
    planned = intent.planned or Planned()
    theirs = (one for one in noted.promises if one.side == "theirs")
    planning = replace(
        intent,
        planned=replace(planned, schedules=(*planned.schedules, *(plan for plan, _ in made))),
        noted=replace(noted, promises=(*theirs, *(promise for _, promise in made))),
        changes={**intent.changes, **_told(mine)},
    )
    return planning, reminder


def within_limit(intent: Intent, recollection: Recollection, soul: SoulText, waiting: int) -> Intent:
    """Tell the person who asked for a reminder that it is refused if `waiting` plans leave no room for it. Pure.

    Plans that nobody asked for are refused by the store and recorded only in the turn's changes.
    """
    planned, noted = intent.planned, intent.noted
    if planned is None:
        return intent
    room = max(0, MOST_OPEN - waiting + len(planned.cancels))
    refused = [one for one in planned.schedules[room:] if one.asked_by]
    if not refused:
        return intent
    line = _words(soul, "full")
    said = tuple(one.body for one in intent.utterances if one.kind == "reply")
    gone = {one.id for one in refused}
    return replace(
        intent,
        planned=replace(planned, schedules=tuple(one for one in planned.schedules if one.id not in gone)),
        noted=noted and replace(noted, promises=tuple([one for one in noted.promises if one.plan not in gone])),
        utterances=utter(recollection, (*said, line), intent.verb),
        entries=(*intent.entries, spoken(recollection, line, intent.verb)),
        changes={**intent.changes, "reminder": f"refused: {TOO_MANY}"},
    )


def confirmed(intent: Intent, reminder: Reminder, recollection: Recollection, soul: SoulText) -> Intent:
    """Add to the reply when the reminder will come, or ask for the time if none was named. Pure.

    Nothing is added where the reply says the time, or asks something back in place of a time that is missing.
    """
    planned = intent.planned.schedules if intent.planned else ()
    replies = [one.body for one in intent.utterances if one.kind != "reaction"]
    language = language_of(reminder.request)
    if reminder.plan is None:
        if asks_time(own_words("\n".join(replies))):
            return intent
        line = _words(soul, "when", language)
    elif reminder.plan not in planned or (reminder.is_said and replies):
        return intent
    else:
        at = said_as(reminder.plan.at, recollection.now, reminder.zone, language)
        line = Template(_words(soul, "once" if repeats(reminder.request) else "planned", language)).safe_substitute(
            at=at
        )
    return _said_too(intent, replies, line, recollection)


def _requested(text: str, before: Sequence[Entry], now: datetime, zone: tzinfo) -> tuple[str, str]:
    """Return the request that a message makes, or whose time it names, and the words that name the time. Pure."""
    asked = request_in(text)
    request = " ".join((asked or _left_open(before)).split())[:REQUEST_CHARS]
    if request and not asked and due(text, now, zone, is_asked=True) is None:
        return "", ""
    return request, asked or text


def _left_open(entries: Sequence[Entry]) -> str:
    """Return the request of the turn before whose time its reply asked for; "" if it asked for none. Pure."""
    heard = [one.content for one in entries if one.entry_type is EntryType.USER_MESSAGE]
    spoken_last = [one.content for one in entries if one.entry_type is EntryType.EXTERNAL_DIALOG]
    if not heard or not spoken_last or not asks_time(own_words(spoken_last[-1])):
        return ""
    return request_in(heard[-1])


def _asked_for(request: str, said: str, now: datetime, zone: tzinfo) -> datetime | None:
    """Return when to remind: after the span requested, else at the time the soul named, else at that requested. Pure.

    A day that the soul names does not override the hour that was requested.
    """
    undertaking = undertaking_in(said)
    asked = due(request, now, zone, is_asked=True)
    is_exact = (
        asked is not None and (not names_instant(undertaking) or not names_hour(request)) and names_instant(request)
    )
    named = due(undertaking, now, zone, is_asked=True) if undertaking and not is_exact else None
    at = named or asked
    return at if at is not None and at > now else None


def _names(sentence: str, at: datetime, now: datetime, zone: tzinfo) -> bool:
    """Return whether a sentence names this instant by its hour. Pure."""
    named = due(sentence, now, zone, is_asked=True) if names_hour(sentence) else None
    return named is not None and abs(named - at) < timedelta(minutes=1)


def _accepted(request: str, at: datetime, recollection: Recollection) -> Promise:
    """Return the soul's own promise that results from a request it does not decline. Pure."""
    speaker, perception = recollection.speaker, recollection.perception
    return Promise(
        peer_id=speaker.person if speaker else perception.person,
        side="mine",
        what=request[:WHAT_CHARS],
        made_at=recollection.now,
        due_at=at,
        grace_s=grace_s(recollection.now, at),
        turn=recollection.turn,
        conversation=recollection.conversation,
        audience=recollection.audience,
        stems=stems(request),
    )


def _plan(
    occasion: str, number: int, what: str, at: datetime, intent: Intent, recollection: Recollection, soul: SoulText
) -> Schedule:
    perception = recollection.perception
    is_asked = perception.origin is Origin.EXTERNAL
    key = f"{occasion}:{intent.turn}:{number}"
    return Schedule(
        id=schedule_id(intent.turn, intent.conversation, 0, key),
        conversation=intent.conversation,
        at=at,
        text=Template(_words(soul, occasion) or "$what").safe_substitute(what=what),
        process="" if is_asked else PROCESS,
        params={WHAT: what} | ({"event": PROMISE_DUE} if occasion == "promise" else {}),
        key=key,
        audience=recollection.audience,
        person=perception.person,
        asked_by=perception.person if is_asked else "",
    )


def _words(soul: SoulText, name: str, language: str = "english") -> str:
    """Return a line of the soul's for planning, in the language of a request if there is one in it. Pure."""
    own = sections(soul.files.get(f"processes/{PROCESS}.md"))
    return own.get(f"{name} {language}") or own.get(name) or WORDS.get(name, "")


def _said_too(intent: Intent, replies: list[str], line: str, recollection: Recollection) -> Intent:
    """Say a line at the end of the last reply, in its own post after a long one, or in place of a reaction. Pure."""
    last = replies[-1] if replies else ""
    if not last or len(last) + len(line) > POST_CHARS:
        entries = tuple(one for one in intent.entries if last or one.verb != NODDED)
        entries, posts = (*entries, spoken(recollection, line, SAID)), (*replies, line)
    else:
        whole = f"{last} {line}" if "\n" not in last and last.endswith(_ENDS) else f"{last}\n\n{line}"
        own = max(place for place, one in enumerate(intent.entries) if one.entry_type is EntryType.EXTERNAL_DIALOG)
        entry = intent.entries[own]
        before, is_end = entry.content.removesuffix(last), entry.content.endswith(last)
        said = replace(entry, content=before + (whole if is_end else f"\n\n{line}"))
        entries, posts = (*intent.entries[:own], said, *intent.entries[own + 1 :]), (*replies[:-1], whole)
    verb = intent.verb if last else SAID
    return replace(intent, verb=verb, utterances=utter(recollection, posts, verb), entries=entries)


def _told(mine: list[tuple[str, Promise]]) -> dict[str, str]:
    """Return what is brought up and when, for `claudius why`. Pure."""
    told: dict[str, str] = {}
    for occasion, one in mine:
        at = f"{one.due_at:%Y-%m-%d %H:%M:%S} UTC"
        told[occasion] = f"{told[occasion]}, {at}" if occasion in told else at
    return told
