"""Read in English what a message asks of the books, as acts; what is not read whole is not guessed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from math import ceil
from typing import Any

from msgspec import Struct

from claudius.acts import MOST_ACTS
from claudius.memory.ranking import stemmed
from claudius.providers.rehearsal import reading as reads
from claudius.providers.rehearsal.lines import Lines
from claudius.recurrence import DAYS, following

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

Act = Mapping[str, Any]
Told = Mapping[str, str]
"""What a phrase names of a time, by the names of the groups of its patterns."""


class Deeds(Struct, frozen=True):
    """What a message asks of the books, and the sections of the lines that answer it. `known` was `learned` before."""

    sections: tuple[str, ...] = ()
    acts: tuple[Act, ...] = ()
    about: str = ""
    learned: tuple[reads.Noticed, ...] = ()
    known: tuple[reads.Noticed, ...] = ()


def deeds_of(seen: reads.ReadRequest, lines: Lines) -> Deeds:
    """Return what a message asks of the books: one thing of the clock, or what it tells of its speaker. Pure."""
    readers = (_reminder, _changed, _forgotten, _corrected)
    return next(filter(None, [read(seen, lines) for read in readers]), None) or _told(seen, lines)


def _reminder(seen: reads.ReadRequest, lines: Lines) -> Deeds | None:
    wanted = _wanted_in(seen.message, lines)
    asked = [line for group in lines.sections["reminder without a time"].groups for line in group]
    if not wanted and seen.said and seen.spoken and any(line in seen.spoken[-1] for line in asked):
        rest, told = _peel(seen.message, lines)
        before = _wanted_in(seen.said[-1], lines)
        wanted = (before[0], told) if before and told and not lines.patterns["filler"].sub("", rest) else None
    if wanted is None or seen.now is None:
        return None
    if not (plan := _planned(wanted[1], seen.now, lines)):
        return Deeds(("reminder without a time",))
    return Deeds(("reminder",), ({"do": "remind", "text": reads.quoted(wanted[0], 200), **plan},))


def _wanted_in(text: str, lines: Lines) -> tuple[str, Told] | None:
    """Return what the first reminder that a message asks for is to say, and when; no time if none is read."""
    filler = lines.patterns["filler"]
    for found in filter(None, map(lines.patterns["remind"].match, reads.sentences(text))):
        rest = found["rest"] or found["task"] or ""
        before, told = _peel(found["before"] or "", lines)
        if filler.sub("", before) or lines.patterns["asks"].match(rest):
            continue
        head, *tasks = lines.patterns["task"].split(rest, maxsplit=1)
        task, (left, told) = "".join(tasks), _peel(head, lines, told)
        if left := filler.sub("", left):
            return task or left, {}
        task, told = (task, told) if {"hour", "name", "count"} & {*told} else _peel(task, lines, told)
        is_unread = lines.patterns["unread"].search(task)
        return task.strip(" ,.!?") or found["name"] or found["wake"] or "what you asked for", {} if is_unread else told
    return None


def _changed(seen: reads.ReadRequest, lines: Lines) -> Deeds | None:
    text = seen.message.strip().rstrip(".!? ")
    if lines.patterns["list"].search(text):
        return Deeds(("plans" if seen.plans else "no plan",))
    found = lines.patterns["move"].match(text) or lines.patterns["cancel"].match(text)
    if found is None or seen.now is None:
        return None
    meant, when = _meant(found["plan"], seen.plans, lines), found.groupdict().get("when")
    if not (lines.patterns["plan"].search(found["plan"]) or (meant if when else found["verb"].lower() == "cancel")):
        return None
    is_all = not when and seen.plans and lines.patterns["all"].search(found["plan"])
    if len(meant) != 1 and not is_all:
        return Deeds(("which plan" if seen.plans else "no plan",))
    if not when:
        return Deeds(("cancelled",), ({"do": "cancel", "plan": "all" if is_all else meant[0]},))
    rest, told = min(_peel(when, lines), _peel(f"at {when}", lines), key=lambda one: len(one[0]))
    dated = re.match(r"\w+ (\d{1,2} \w+)", seen.plans[meant[0]])
    if dated and "hour" in told and not _day(told, seen.now):  # on the day that `Thu 27 Nov 9:00: …` names
        told = {**told, "iso": str(_day(_peel(dated[1], lines)[1], seen.now - timedelta(days=1)))}
    at = {} if rest else _planned(told, seen.now, lines)
    return Deeds(("moved",), ({"do": "move", "plan": meant[0], **at},)) if at else Deeds(("reminder without a time",))


def _meant(words: str, among: Mapping[str, str], lines: Lines) -> list[str]:
    """Return the ids that somebody means: as named, the last one, or by what is shared with one line alone."""
    if ids := re.findall(r"\b[pf]\d+\b", words.lower()):
        return [one for one in among if one in ids]
    wanted = reads.stems(lines.patterns["plan words"].sub(" ", words), lines)
    if not wanted and (len(among) == 1 or lines.patterns["last"].search(words)):
        return [*among][:1]
    near = {one: len(wanted & {*stemmed(text)}) for one, text in among.items()}
    best = max(near.values(), default=0)
    return [one for one, share in near.items() if share == best and best * 2 >= len(wanted) > 0]


def _forgotten(seen: reads.ReadRequest, lines: Lines) -> Deeds | None:
    if (found := lines.patterns["forget"].match(seen.message)) is None:
        return None
    meant = [one for fact in reads.facts_in(found[1], lines) for one, text in seen.known.items() if fact.is_in(text)]
    acts = [{"do": "forget", "fact": one} for one in meant or _meant(found[1], seen.known, lines)]
    return Deeds(("forgotten" if acts else "no such fact",), tuple(acts[:MOST_ACTS]))


def _corrected(seen: reads.ReadRequest, lines: Lines) -> Deeds | None:
    """Put "June, not May" into the newest fact that holds May."""
    if found := lines.patterns["correct"].match(seen.message.strip().rstrip(".! ")):
        old, new = rf"(?i)\b{re.escape(found[3])}\b", reads.quoted(found[1] or found[2], 100)
        for short, text in seen.known.items():
            if re.search(old, text):
                right, kind = re.sub(old, lambda _: new, text), "name" if text.startswith("called ") else "other"
                act = {"do": "know", "text": right.removeprefix("called "), "kind": kind, "instead_of": short}
                return Deeds(("corrected",), (act,), reads.told_of(right, lines))
    return None


def _told(seen: reads.ReadRequest, lines: Lines) -> Deeds:
    """Return what a message tells of its speaker: facts that hold and that end."""
    told = [one for one in reads.sentences(seen.message) if not reads.is_question(one)]
    ended = dict.fromkeys([(short, sentence) for sentence in told for short in _ended(sentence, seen, lines)])
    acts: list[Act] = [{"do": "no_longer", "fact": short, "text": reads.quoted(text, 100)} for short, text in ended]
    facts = reads.facts_in(seen.message, lines)
    known = [fact for fact in facts if any(map(fact.is_in, seen.known.values()))]
    learned = [fact for fact in facts if fact not in known][: MOST_ACTS - len(acts)]
    for one in learned:
        act = {"do": "know", "text": one.shown.removeprefix("called "), "kind": one.fact.kind, "keys": [*one.fact.keys]}
        before = one.fact.keeps.partition("$")[0]
        older = [short for short, text in seen.known.items() if one.fact.single and text.startswith(before)]
        acts.append(act | ({"instead_of": older[0]} if older else {}))
    return Deeds(("no longer",) if ended else (), tuple(acts), "", tuple(learned), tuple(known))


def _ended(sentence: str, seen: reads.ReadRequest, lines: Lines) -> Iterator[str]:
    """Yield what is no longer so: a fact that the sentence denies, or says to have ended."""
    positive = " ".join(lines.patterns["negation"].sub(" ", sentence).split())
    if positive != sentence and (told := reads.facts_in(positive, lines)):
        yield from [short for fact in told for short, text in seen.known.items() if fact.is_in(text)]
    elif lines.patterns["ended"].search(sentence) and not reads.facts_in(sentence, lines):
        wanted = reads.stems(lines.patterns["ended"].sub(" ", positive), lines)
        yield from [short for short, text in seen.known.items() if wanted and wanted <= {*stemmed(text)}]


def _peel(text: str, lines: Lines, told: Told | None = None) -> tuple[str, Told]:
    """Return a text without the words at its end that say when, and what they say beside what was told."""
    told, text = told or {}, text.rstrip(" ,.!?;")
    while found := next(filter(None, [form.search(text) for form in lines.times]), None):
        new = {name: words.lower() for name, words in found.groupdict().items() if words}
        if new.keys() & told.keys():
            break
        told, text = {**told, **new}, text[: found.start()].rstrip(" ,;")
    return text, told


def _day(told: Told, now: datetime) -> date | None:
    """Return the day that is named; None = none is. Raises: ValueError for a day that no calendar has."""
    today = now.date()
    if "iso" in told:
        return date.fromisoformat(told["iso"])
    if near := told.get("near"):
        return today + timedelta(days=2 if "after" in near else near == "tomorrow")
    if "weekday" in told:
        ahead = (DAYS.index(told["weekday"][:3]) - now.weekday()) % 7 or 7
        return today + timedelta(days=ahead + 7 * (told.get("which") == "next" and now.weekday() + ahead < 7))
    if "month" in told:
        named = f"{told['date']} {told['month'][:3]} {told.get('year', now.year)}"
        day = datetime.strptime(named, "%d %b %Y").replace(tzinfo=now.tzinfo).date()
        return day if "year" in told or day >= today else day.replace(year=day.year + 1)
    return None


def _planned(told: Told, now: datetime, lines: Lines) -> Told:
    """Return `at`, `repeat` and `until` of an act: the first such instant after `now`; {} if it names none."""
    try:
        day, until = _day(told, now), _day(_peel(told.get("until", ""), lines)[1], now)
    except ValueError:
        return {}
    if not told or ("until" in told and until is None):
        return {}
    zone, words = now.tzinfo or UTC, told.get("every", "")
    days, rhythm = [one for one in DAYS if re.search(rf"\b{one}\w*day", words)], lines.words.rhythms.get(words, "")
    repeat = ",".join(days) or rhythm
    at, is_timed = now, bool({"hour", "name"} & {*told})
    if "count" in told:
        count = (lines.words.counts.get(told["count"]) or float(told["count"])) + ("more" in told) / 2
        ahead = timedelta(minutes=ceil(SECONDS[told["unit"][0]] * count / 60))  # The Present names whole minutes
        at = now + ahead if told["unit"][0] in "dw" else (now.astimezone(UTC) + ahead).astimezone(zone)
        day = at.date() if is_timed else None
    if is_timed or "count" not in told:
        firsts = [datetime.combine(day or now.date(), hour, zone) for hour in _hours(told, lines)]
        comes = [following(one, zone, repeat or "daily", now) or one for one in firsts]
        late = next((one for one in firsts if one > now), firsts[0])
        at = late if day else comes[0] if repeat else min(comes)
    named = {"at": at.astimezone(zone).isoformat(timespec="minutes"), "repeat": repeat, "until": str(until or "")}
    return {key: value for key, value in named.items() if value}


def _hours(told: Told, lines: Lines) -> list[time]:
    """Return the hours that may be meant, the likeliest first."""
    named = " ".join([told.get(key, "") for key in ("half", "name", "part", "near", "every")])
    if "hour" not in told:
        return [time(next((hour for name, hour in lines.words.hours.items() if name in named), 9))]
    hour, minute = int(lines.words.counts.get(told["hour"]) or told["hour"]), int(told.get("minute", 0))
    if not 0 < hour <= 12 or (not named.strip() and "minute" in told and len(told["hour"]) > 1):
        return [time(hour, minute)]
    halves = [time(hour % 12, minute), time(hour % 12 + 12, minute)]
    if half := re.search(r"\b(?:a|morning)\b|\b(?:p|afternoon|evening|\w*night)\b", named):
        return [halves[half[0] not in ("a", "morning")]]
    return [one for one in halves if 7 <= one.hour <= 22] or halves  # nobody asks for three at night without saying so
