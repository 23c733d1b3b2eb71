"""Decide whether the soul may write first. Every rule is code and runs before any model call.

A refused message is withdrawn, or planned again for later. Where much is at stake in an answer, the cortex is asked
for counsel, which becomes a thought of the turn and grants no permission.
Source: the daimon design, section 8; the cortex design, section 7.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, tzinfo
from hashlib import sha256

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind, Stage
from claudius.cognition.timing import is_quiet, known_zone, quiet_end, read_hours
from claudius.config.schema import ConsultSettings
from claudius.intent import LAPSES_AT, PROMISE_DUE, WHAT, Intent, Planned, Schedule
from claudius.memory.inbox import Pending
from claudius.memory.store import Store
from claudius.memory.turns import FirstWords
from claudius.observed import ConsultAnswer, ConsultRequest
from claudius.perception import Cause, Kind, Origin, Perception, Place, ScheduledExtra, cause_of, internal
from claudius.psyche import Attention
from claudius.psyche.events import asks, critical
from claudius.recollection import EntryType, Recollection
from claudius.soul import SoulText

log = logging.getLogger(__name__)

PROCESS = "proactive"
APART = timedelta(hours=20)
BUSY = timedelta(minutes=30)
A_DAY, A_WEEK, IN_ALL = 1, 3, 20
AFTER_UNANSWERED = (timedelta(0), timedelta(days=3), timedelta(days=7))
"""The wait after this many unanswered messages; beyond the last entry, the soul waits until somebody writes."""
SPREAD = timedelta(minutes=30)
"""Messages held back by quiet hours are spread over this time after their end."""
AFTER_QUIET = timedelta(hours=2)
"""What would lapse in quiet hours, or was made in them, lapses so long after their end."""
SPOKEN = (EntryType.EXTERNAL_DIALOG, EntryType.DAIMON_SPEECH)
LOOKED_BACK = timedelta(days=60)
_STOP = re.compile(r"\W*(?:please\s+)?stop(?:\s+(?:it|that|please|writing(?:\s+(?:to\s+)?me)?))?\W*", re.IGNORECASE)


class FirstWordFacts(Struct, frozen=True, kw_only=True):
    """The facts that decide whether the soul may write first, here and now."""

    is_wanted: bool
    """The owner's settings allow it."""
    has_consent: bool
    """The recipient has consented."""
    has_budget: bool = True
    words: FirstWords = field(default_factory=FirstWords)


def is_to_speak(perception: Perception) -> bool:
    """Return whether a perception of the soul's own making exists only to be spoken about. Pure."""
    if is_promised(perception):
        return True
    if cause_of(perception, "", perception.at) is not Cause.UNASKED:
        return False
    return perception.kind in (Kind.SILENCE, Kind.DIRECTIVE) or internal(perception).process == PROCESS


def is_promised(perception: Perception) -> bool:
    """Return whether a perception is a promise that the soul made of itself in answering somebody. Pure."""
    return internal(perception).event == PROMISE_DUE and cause_of(perception, "", perception.at) is Cause.ASKED


def is_told_to_stop(pending: Pending, mind: Mind) -> bool:
    """Return whether somebody answers the soul's first message by telling it to stop."""
    perception = pending.perception
    if not perception.audience.startswith("private:") or not _STOP.fullmatch(perception.text.strip()):
        return False
    words = mind.store.turns.first_words(perception, mind.clock() - LOOKED_BACK)
    return bool(words.here) and (words.last_heard is None or words.here[-1] > words.last_heard)


def refusal(ground: FirstWordFacts, now: datetime) -> str:
    """Return the reason why the soul may not write first now; empty = it may. Pure."""
    words = ground.words
    if not ground.is_wanted:
        return "psyche.proactive is off"
    if not ground.has_consent:
        return "nobody there has agreed to it"
    if not ground.has_budget:
        return "no budget"
    if words.waiting:
        return "something of theirs waits"
    return _over_a_cap(words, now) or _unanswered(words, now)


def _over_a_cap(words: FirstWords, now: datetime) -> str:
    day, week = timedelta(days=1), timedelta(days=7)
    if words.here and now - words.here[-1] < APART:
        return "the last one was less than 20 hours ago"
    if sum(now - at < day for at in words.here) >= A_DAY:
        return "one a day was said here"
    if sum(now - at < week for at in words.here) >= A_WEEK:
        return "three were said here this week"
    return "twenty were said today" if sum(now - at < day for at in words.everywhere) >= IN_ALL else ""


def _unanswered(words: FirstWords, now: datetime) -> str:
    waiting = [at for at in words.here if words.last_heard is None or at > words.last_heard]
    if len(waiting) >= len(AFTER_UNANSWERED):
        return "nobody has answered the last ones: not before they write"
    if waiting and now - waiting[-1] < AFTER_UNANSWERED[len(waiting)]:
        return "nobody has answered the last one"
    return ""


def has_lapsed(perception: Perception, mind: Mind) -> bool:
    """Return whether it is too late for a perception of the soul's own."""
    until = _lapses_at(perception, mind)
    return until is not None and mind.clock() > until


def _lapses_at(perception: Perception, mind: Mind) -> datetime | None:
    """Return when a perception lapses: never in the quiet hours that it waits through, nor soon after; None = never."""
    at = internal(perception).lapses_at
    if at is None:
        return None
    zone, hours = _zone(perception, mind), read_hours(mind.config().clock.quiet)
    nights = [one for one in (perception.at, at) if is_quiet(one, zone, hours)]
    return max([at, *[quiet_end(one, zone, hours) + AFTER_QUIET for one in nights]])


def _zone(perception: Perception, mind: Mind) -> tzinfo:
    """Return the zone of whoever hears what is said about a perception."""
    is_one = perception.audience.startswith("private:") or is_promised(perception)  # a promise is somebody's anywhere
    own = mind.store.people.zone(perception.person) if is_one else ""
    return known_zone(own, mind.config().clock.timezone)


async def withheld(pending: Pending, mind: Mind) -> bool:
    """Withdraw or postpone a perception that the soul may not write about. Returns False if it may; asks no model."""
    perception, now = pending.perception, mind.clock()
    verdict = judge(perception, mind, now)
    if verdict is None:
        return False
    log.info("not written first", extra={"conversation": perception.conversation, "reason": verdict.reason})
    if again := _again(perception, verdict, _lapses_at(perception, mind)):
        await mind.store.plans.plan(again)
    await mind.store.inbox.withdraw(pending.seq, verdict.reason)
    return True


class Withheld(Struct, frozen=True):
    """Why the soul does not write first now. `until`: when to try again; None = never."""

    reason: str
    until: datetime | None = None


def judge(perception: Perception, mind: Mind, now: datetime) -> Withheld | None:
    """Return why the soul may not write about a perception now; None if it may.

    A promise that it made of itself waits for the end of quiet hours, and needs nothing else.
    """
    zone = _zone(perception, mind)
    if is_promised(perception):
        until = _morning(perception, mind.config().clock.quiet, now, zone)
        return Withheld("waits for the morning: quiet hours", until) if until > now else None
    config, is_shared = mind.config(), perception.audience.startswith("shared:")
    # in a shared channel the owner's consent for that channel counts, else the person's
    listener = Place.of(perception.conversation).of_channel if is_shared else perception.person
    ground = FirstWordFacts(
        is_wanted=config.psyche.proactive,
        has_consent=consents(listener, mind.store),
        has_budget=mind.stage() is Stage.OPEN,
        words=mind.store.turns.first_words(perception, now - LOOKED_BACK),
    )
    if reason := refusal(ground, now):
        return Withheld(f"not written first: {reason}")
    if ground.words.under_way:  # plans that fall due together, as after a night without power, are judged in turn
        return Withheld("waits until another one is said there", now + BUSY)
    free = free_at(ground.words, now)
    until = _morning(perception, config.clock.quiet, free, zone)
    if until <= now:
        return None
    reason = "waits for the morning: quiet hours" if until > free else "waits until they are done with what they say"
    return Withheld(reason, until)


def allowed(intent: Intent, recollection: Recollection, mind: Mind) -> Intent:
    """Return a turn as it may be committed: unasked utterances must obey the rules of writing first or are removed.

    Every utterance passes here, whatever its turn was about. Thoughts stay; words held until the morning are thought
    again then. Owed answers, and what somebody asked for, pass at any hour.
    """
    now = mind.clock()
    causes = {cause_of(one, recollection.participation, now) for one in recollection.perceptions}
    if not intent.utterances or causes - {Cause.UNASKED}:
        return intent
    perception = recollection.perception
    verdict = judge(perception, mind, now)
    if verdict is None:
        first = (replace(one, kind="proactive") if one.kind == "reply" else one for one in intent.utterances)
        return replace(intent, utterances=tuple(first))
    log.info("not said", extra={"conversation": intent.conversation, "reason": verdict.reason})
    planned = intent.planned or Planned()
    again = _again(perception, verdict, _lapses_at(perception, mind))
    if again and not planned.closes:
        planned = replace(planned, schedules=(*planned.schedules, again))
    return replace(
        intent,
        utterances=(),
        rung="silent",
        entries=tuple(one for one in intent.entries if one.entry_type not in SPOKEN),
        thoughts=tuple(one for one in intent.thoughts if one.step != "external_dialogue"),
        changes={**intent.changes, "not_said": verdict.reason},
        planned=planned if planned != Planned() else None,
    )


def follows(recollection: Recollection, attention: Attention, news: str) -> Planned | None:
    """Return what follows from news, or from an event in the soul's own conversation. Pure.

    It is a silent turn, or one that may speak unasked, which `withheld` may refuse; it takes place at once, under the
    rules of that conversation. None = the event meant too little. `news`: what the soul tells itself when news came in.
    """
    perception, about = recollection.perception, internal(recollection.perception)
    (there, audience), person, text, what = about.there, perception.person, perception.text, about.what
    if perception.kind is Kind.NEWS:
        there, audience = recollection.conversation, recollection.audience
        person = audience.removeprefix("private:") if audience.startswith("private:") else ""
        text, what = news, perception.text
    if attention.outcome != "think" or attention.change is None or not there or not text:
        return None
    made = Schedule(
        id=int.from_bytes(sha256(f"{there}\0{perception.kind}".encode()).digest()[:6], "big"),
        conversation=there,
        at=recollection.now,
        text=text,
        process=about.process or PROCESS,
        params={WHAT: what},
        key=perception.kind.value,
        audience=audience,
        person=person,
    )
    return Planned(schedules=(made,))


def free_at(words: FirstWords, now: datetime) -> datetime:
    """Return when the people there have been quiet long enough; `now` if they already have. Pure."""
    return max(now, words.last_heard + BUSY) if words.last_heard else now


def _again(perception: Perception, verdict: Withheld, lapses_at: datetime | None) -> Schedule | None:
    """Return the same perception planned for later; None if it is dropped. Pure.

    Waiting in the lane itself would block later messages. A perception that has lapsed by then is dropped.
    """
    extra = internal(perception)
    if verdict.until is None or perception.origin is not Origin.INTERNAL or perception.kind is Kind.NEWS:
        return None  # a program's words never become a plan of the soul's own
    if lapses_at and verdict.until > lapses_at:
        return None
    digest = sha256(perception.key.encode("utf-8", "surrogatepass")).digest()
    ends = {LAPSES_AT: lapses_at.isoformat()} if lapses_at else {}
    event = {"event": extra.event} if extra.event == PROMISE_DUE else {}
    plan = extra if isinstance(extra, ScheduledExtra) else ScheduledExtra()
    return Schedule(
        id=int.from_bytes(digest[:6], "big"),
        conversation=perception.conversation,
        at=verdict.until,
        text=extra.what if plan.made_as else perception.text,  # what introduces it is said anew
        process=extra.process if is_promised(perception) else extra.process or PROCESS,
        params={**extra.params, WHAT: extra.what, **ends, **event},
        audience=perception.audience,
        person=perception.person,
        asked_by=extra.asked_by,
        in_answer=extra.in_answer,
        instead_of=plan.schedule,
        made_as=plan.made_as,
    )


def consents(person: str, store: Store) -> bool:
    """Return whether a person, or the owner for a channel, has consented to the soul writing first."""
    return bool(person) and store.people.wants_proactive(person)


def _morning(perception: Perception, quiet: str, now: datetime, zone: tzinfo) -> datetime:
    """Return when it may be said: now, or after the quiet hours, spread so that messages do not coincide."""
    hours = read_hours(quiet)
    if not is_quiet(now, zone, hours):
        return now
    share = int(sha256(perception.key.encode("utf-8", "surrogatepass")).hexdigest()[:8], 16) / 2**32
    return quiet_end(now, zone, hours) + SPREAD * share


HIGH = frozenset({"money", "credentials", "permission", "destructive"})
DISTRUST = -3
Hold = Callable[[str], Awaitable[None]]
"""Shows the holding line in the typing indicator, so that no second message is posted."""


def at_stake(recollection: Recollection) -> tuple[str, ...]:
    """Return the classes of what is at stake in a message; empty = it needs no second thought. Pure."""
    one = recollection.perception
    if one.origin is not Origin.EXTERNAL:
        return ()
    found = sorted(critical(one.text) & HIGH)
    assessed = recollection.peers[0].assessments if recollection.peers else ()
    if assessed and assessed[0].trust <= DISTRUST and asks(one.text):
        found.append("distrust")
    return tuple(found)


def is_wanted(settings: ConsultSettings, conversation: str) -> bool:
    """Return whether the owner enabled second thoughts for this conversation. Pure."""
    channels = settings.channels
    return settings.enabled and (not channels or any(conversation.startswith(channel) for channel in channels))


async def think_twice(recollection: Recollection, mind: Mind, soul: SoulText, hold: Hold | None) -> Recollection:
    """Ask for counsel if much is at stake, and return the recollection with it as the soul's own thought."""
    if mind.consult is None or not is_wanted(mind.config().cortex.consult, recollection.conversation):
        return recollection
    classes = at_stake(recollection)
    if not classes:
        return recollection
    line = soul.steps["external_dialogue"].hold
    if hold and line:
        await hold(line)
    one = recollection.perception
    counsel = await mind.consult(
        ConsultRequest(
            turn=recollection.turn,
            audience=recollection.audience,
            peer_id=recollection.speaker.person if recollection.speaker else one.person,
            name=one.name,
            text=one.text,
            classes=classes,
        )
    )
    return replace(recollection, second_thought=worded(counsel))


def worded(counsel: ConsultAnswer) -> str:
    """Format a counsel as one thought. Pure."""
    parts = [f"{counsel.verdict}: {counsel.reasoning}"]
    if counsel.conditions:
        parts.append("Only if: " + "; ".join(counsel.conditions) + ".")
    if counsel.suggested_response:
        parts.append(f"It could be said so: {counsel.suggested_response}")
    return " ".join(parts)
