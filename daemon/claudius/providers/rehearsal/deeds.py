"""Read in English what a message asks of the books, as acts; what is not read whole is not guessed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import available_timezones

from msgspec import Struct
from msgspec.structs import replace

from claudius.acts import MOST_ACTS
from claudius.memory.ranking import stemmed
from claudius.providers.rehearsal.lines import Lines, plain
from claudius.providers.rehearsal.reading import FORGET, Noticed, ReadRequest, Short, facts_in, quoted, sentences
from claudius.providers.rehearsal.times import TimeTold, is_unread, peel, zone_named

Act = Mapping[str, Any]

_I = re.IGNORECASE
_OPENS = (
    r"^\W*(?:(?:please|hey|hi|hello|ok|okay|and|then|so|also|claudius|thanks|yes|no|actually|oh|well|"
    r"(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to|i (?:want|need) you to)\b[,\s]*)*+"
)
_REMIND = re.compile(rf"{_OPENS}(.*?),? ?(?:please )?\b(?:remind|nudge|ping|wake) (?:me|us)(?: up)?\b(.*)$", _I)
_SET = re.compile(
    rf"{_OPENS}(?:set|make|add|create|give|i need|i want)(?: me| us| up)? an? (reminder|alarm|timer|shout)\b(.*)$", _I
)
_LET = re.compile(rf"{_OPENS}(?:don't|do not) let me forget\b(.*)$|{_OPENS}reminder:(.*)$", _I)
_ASKS = re.compile(r"\W*(?:what|why|how|who|whom|whose|where|which|if|whether|when)\b", _I)
_TASK = re.compile(r"\s*\b(?:to|that|about|of)\b\s+(?=\D)|, ", _I)
_FILLER = re.compile(r"\b(?:again|please|once|then|just)\b|\W+", _I)
NAMELESS = "what you asked for"

_LIST = re.compile(
    r"\b(?:what|which|list|show|tell me)\b.*\b(?:reminders?|plans)\b|\bwhat(?:'s| is| have you) planned\b"
    r"|\bwhat will you remind me\b",
    _I,
)
_CANCEL = re.compile(rf"{_OPENS}(cancel|drop|delete|remove|stop|forget|scrap) (.+)$", _I)
_MOVE = re.compile(
    rf"{_OPENS}(?:move|postpone|reschedule|change|shift|push|put off|delay) (.+) (?:back )?(?:to|until|till|for) (.+)$",
    _I,
)
_PLAN = re.compile(r"\b(?:remind(?:ers?|ing)|plans?|alarms?|timers?|p\d+)\b", _I)
_PLAN_WORDS = re.compile(
    r"\b(?:remind\w*|plans?|alarms?|timers?|me|us|about|for|to|of|the|my|please|that|this|last)\b", _I
)
_ZONE = re.compile(
    r"\bmy time ?zone is(?: now)? ([\w/+ -]+)"
    r"|\b(?:i(?:'m| am)?|we(?:'re| are)?)(?: now)?(?: live| work)? (?:in|on) ([\w/ ]+?) time\b",
    _I,
)
_OPENED = re.compile(
    r"\b(?:driving |job |final )?(?:interview|exam|test|appointment|surgery|operation|wedding|presentation|viewing"
    r"|audition|hearing|check-?up|race|match)\b.*",
    _I,
)
_CLOSED = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: just| finally)? (?:got|passed|failed|won|lost|aced|nailed|made it"
    r"|(?:didn't|did not) (?:get|pass|make))\b|\bit's over\b"
    r"|\b(?:it|that|the \w+) (?:went|is over|was (?:cancelled|great|fine|awful|terrible|good|bad))\b",
    _I,
)
_NEGATION = re.compile(r"\b(?:do|does|did)(?:n't| not)\b|\bnot\b|n't\b|\bno longer\b|\bany ?more\b|\bnever\b", _I)
_ENDED = re.compile(
    r"\bno longer\b|\bany ?more\b|\b(?:i|we)(?:'ve| have)?(?: just| finally)? (?:left|quit|stopped|gave up|given up)\b",
    _I,
)


class Deeds(Struct, frozen=True, kw_only=True):
    """What a message asks of the books."""

    acts: tuple[Act, ...] = ()
    sections: tuple[str, ...] = ()
    """The sections of the lines that answer."""
    about: str = ""
    """What they are about: a plan, a fact, a zone."""
    learned: tuple[Noticed, ...] = ()
    known: tuple[Noticed, ...] = ()
    """What was told before, and stands under `## Known`."""


class Errand(Struct, frozen=True):
    """A reminder that somebody asks for."""

    task: str
    when: TimeTold | None
    """None = no time is told in a form that is read."""


def deeds_of(seen: ReadRequest, lines: Lines) -> Deeds:
    """Return what a message asks of the books: one thing of the clock, or what it tells of its speaker. Pure."""
    for read in (_reminder, _plans, _cancelled, _moved, _forgotten, _zoned):
        if found := read(seen, lines):
            return found
    return _told(seen, lines)


def _reminder(seen: ReadRequest, lines: Lines) -> Deeds | None:
    wanted = wanted_in(seen.message, seen.now) if seen.now else None
    if wanted is None and seen.now and _asked_when(seen, lines):
        rest, told = peel(seen.message, seen.now)
        before = wanted_in(seen.said[-1], seen.now)
        if before and told.is_any and not _FILLER.sub("", rest):
            wanted = Errand(before.task, told)
    if wanted is None or seen.now is None:
        return None
    if wanted.when is None:
        return Deeds(sections=("reminder without a time",))
    act = {
        "do": "remind",
        "at": wanted.when.at(seen.now),
        "text": quoted(wanted.task, 200),
        "repeat": wanted.when.repeat,
    }
    act["until"] = wanted.when.until.isoformat() if wanted.when.until else ""
    return Deeds(acts=({key: value for key, value in act.items() if value},), sections=("reminder",))


def _asked_when(seen: ReadRequest, lines: Lines) -> bool:
    asked = [line for group in lines.sections["reminder without a time"].groups for line in group]
    return bool(seen.said and seen.spoken and any(line in seen.spoken[-1] for line in asked))


def wanted_in(text: str, now: datetime) -> Errand | None:
    """Return the first reminder that a message asks for, or None. Pure."""
    for sentence in sentences(text):
        if found := _REMIND.match(sentence):
            if not _ASKS.match(found[2]) and not _FILLER.sub("", peel(found[1], now)[0]):
                return _wanted(found[1], found[2], "", now)
        elif found := _SET.match(sentence):
            rest = re.sub(r"^ for (?=an? |half |\w+ (?:min|hour|day|week))", " in ", found[2])
            return _wanted("", re.sub(r"^ for ", " at " if re.match(r" for \d", rest) else " ", rest), found[1], now)
        elif found := _LET.match(sentence):
            return _wanted("", f" to {(found[1] or found[2]).strip().removeprefix('to ')}", "", now)
    return None


def _wanted(before: str, rest: str, name: str, now: datetime) -> Errand:
    head, *tasks = _TASK.split(rest, maxsplit=1)
    task = tasks[0] if tasks else ""
    left, told = peel(f"{before} {head}", now)
    if _FILLER.sub("", left):
        return Errand(task or left.strip(), None)
    if not told.is_whole:
        task, told = peel(task, now, told)
        if is_unread(task):
            return Errand(task, None)
    return Errand(task.strip(" ,.!?") or name or NAMELESS, told if told.is_any else None)


def _plans(seen: ReadRequest, _lines: Lines) -> Deeds | None:
    if not _LIST.search(seen.message):
        return None
    return Deeds(sections=("plans" if seen.plans else "no plan",))


def _cancelled(seen: ReadRequest, lines: Lines) -> Deeds | None:
    found = _CANCEL.match(seen.message.strip().rstrip(".!? "))
    if found is None or not (found[1].lower() == "cancel" or _PLAN.search(found[2])):
        return None
    if re.search(r"\b(?:all|every|everything)\b", found[2], _I) and seen.plans:
        return Deeds(acts=({"do": "cancel", "plan": "all"},), sections=("cancelled",))
    meant = _meant(found[2], seen.plans, lines)
    if len(meant) != 1 and not re.findall(r"\bp\d+\b", found[2]):
        return Deeds(sections=("which plan" if seen.plans else "no plan",))
    acts = tuple([{"do": "cancel", "plan": one.id} for one in meant[:MOST_ACTS]])
    return Deeds(acts=acts, sections=("cancelled" if acts else "which plan" if seen.plans else "no plan",))


def _moved(seen: ReadRequest, lines: Lines) -> Deeds | None:
    found = _MOVE.match(seen.message.strip().rstrip(".!? "))
    meant = _meant(found[1], seen.plans, lines) if found else ()
    if found is None or seen.now is None or not (meant or _PLAN.search(found[1])):
        return None
    if len(meant) != 1:
        return Deeds(sections=("which plan" if seen.plans else "no plan",))
    words = (
        found[2] if re.match(r"\D*(?:\d{4}-|\d{1,2}(?:st|nd|rd|th|\s+[a-z]))|[a-z]", found[2], _I) else f"at {found[2]}"
    )
    rest, told = peel(words, seen.now)
    if rest or not told.is_any:
        return Deeds(sections=("reminder without a time",))
    if told.hour and not told.day and not told.span_min:
        told = replace(told, day=_day_of(meant[0], seen.now))
    act = {"do": "move", "plan": meant[0].id, "at": told.at(seen.now)}
    return Deeds(acts=(act | ({"repeat": told.repeat} if told.repeat else {}),), sections=("moved",))


def _day_of(plan: Short, now: datetime) -> date | None:
    """Return the day that a line of `## Plans` names: `Thu 27 Nov 9:00: call Ines`."""
    found = re.match(r"\w+ (\d{1,2} \w+)", plan.text)
    return peel(found[1], now - timedelta(days=1))[1].day if found else None


def _meant(words: str, among: Sequence[Short], lines: Lines) -> tuple[Short, ...]:
    """Return which lines somebody means: by id, as the last one, or by what is shared with one line alone."""
    if ids := re.findall(r"\b[pfm]\d+\b", words.lower()):
        return tuple([one for one in among if one.id in ids])
    wanted = _stems(_PLAN_WORDS.sub(" ", words), lines)
    if not wanted and (re.search(r"\b(?:that|this|it|last)\b", words, _I) or len(among) == 1):
        return tuple(sorted(among, key=lambda one: int(one.id[1:]))[-1:])
    near = [(len(wanted & frozenset(stemmed(one.text))), one) for one in among]
    best = max([share for share, _ in near], default=0)
    return tuple([one for share, one in near if share == best and best * 2 >= len(wanted) > 0])


def _stems(words: str, lines: Lines) -> frozenset[str]:
    return frozenset(stemmed(" ".join(word for word in plain(words).split() if word not in lines.words.small_words)))


def _forgotten(seen: ReadRequest, lines: Lines) -> Deeds | None:
    found = FORGET.match(seen.message)
    if found is None:
        return None
    kept = [one for fact in facts_in(found[1], lines)[0] for one in seen.known if fact.is_in(one)]
    meant = kept or _meant(found[1], [*seen.known, *seen.matters], lines)
    acts = tuple([{"do": "forget", "fact" if one.id[0] == "f" else "matter": one.id} for one in meant[:MOST_ACTS]])
    return Deeds(acts=acts, sections=("forgotten" if acts else "no such fact",))


def _zoned(seen: ReadRequest, _lines: Lines) -> Deeds | None:
    found = _ZONE.search(seen.message)
    if found is None or "?" in seen.message:
        return None
    zone = zone_named(found[1] or found[2], available_timezones())
    acts = ({"do": "zone", "zone": zone},) if zone else ()
    return Deeds(acts=acts, sections=("zone" if zone else "no such zone",), about=zone)


def _told(seen: ReadRequest, lines: Lines) -> Deeds:
    """Return what a message tells of its speaker: matters that begin and end, facts that hold and that end."""
    acts: list[Act] = []
    sections: list[str] = []
    learned: list[Noticed] = []
    known: list[Noticed] = []
    for sentence in sentences(seen.message):
        if sentence.endswith("?"):
            continue
        if found := _matter(sentence, seen, lines):
            acts.append(found)
            sections.append("closed" if found["do"] == "close" else "opened")
            continue
        told = [fact for fact in facts_in(sentence, lines)[0] if fact not in learned]
        for one in _ended(sentence, seen, lines, is_told=bool(told)):
            acts.append({"do": "no_longer", "fact": one.id, "text": quoted(sentence, 100)})
            sections.append("no longer")
        for fact in told:
            if any(fact.is_in(one) for one in seen.known):
                known.append(fact)
            elif len(acts) < MOST_ACTS:
                learned.append(fact)
                acts.append(_known(fact, seen))
    return Deeds(
        acts=tuple(acts[:MOST_ACTS]),
        sections=tuple(dict.fromkeys(sections)),
        learned=tuple(learned),
        known=tuple(known),
    )


def _known(fact: Noticed, seen: ReadRequest) -> Act:
    kind = fact.fact
    before = plain(kind.keeps.partition("$")[0])
    older = [one.id for one in seen.known if kind.single and plain(one.text).startswith(before)]
    act = {"do": "know", "text": fact.text, "kind": kind.kind, "keys": list(kind.keys)}
    return act | ({"instead_of": older[-1]} if older else {})


def _matter(sentence: str, seen: ReadRequest, lines: Lines) -> Act | None:
    """Return the act by which a matter of somebody's life begins or ends; None if the sentence tells of none."""
    if _CLOSED.search(sentence) and seen.matters:
        shared = _meant(sentence, seen.matters, lines)
        due = [one for one in seen.matters if re.search(r", (?:was on|is today)\b", one.text)]
        if meant := shared or tuple(due[:1]):
            return {"do": "close", "matter": meant[0].id}
    found = _OPENED.search(sentence)
    if found is None or seen.now is None or re.search(r"\b(?:was|no|not|if)\b|n't\b", sentence, _I):
        return None
    rest, told = peel(found[0], seen.now)
    if told.day is None:
        return None
    return {"do": "open", "text": quoted(re.sub(r"\W+(?:is|be)$", "", rest), 120), "when": told.day.isoformat()}


def _ended(sentence: str, seen: ReadRequest, lines: Lines, *, is_told: bool) -> Iterator[Short]:
    """Yield what is no longer so: a fact that the sentence denies, or says to have ended."""
    positive = " ".join(_NEGATION.sub(" ", sentence).split())
    if positive != sentence.strip():
        denied = [one for fact in facts_in(positive, lines)[0] for one in seen.known if fact.is_in(one)]
        if denied:
            yield from denied
            return
    if _ENDED.search(sentence) and not is_told:
        wanted = _stems(_ENDED.sub(" ", positive), lines)
        yield from [one for one in seen.known if wanted and wanted <= frozenset(stemmed(one.text))]
