"""Read a request: what was said, what a message tells and asks of the books, what answers a question. Pure.

Only records of the kind `message` count as said. What is not read whole in English is not guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from claudius.acts import MOST_ACTS
from claudius.memory.ranking import stemmed
from claudius.perception import Kind
from claudius.prompt import RecordKind
from claudius.provider import Message, Request
from claudius.providers.rehearsal.lines import FactKind, Lines, plain, say
from claudius.recurrence import DAYS, following

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
Act = Mapping[str, Any]
Told = Mapping[str, str]
_CURRENT = "## Current Message"
_EDGES = ' \t,;:.!–—-()[]“”"…'
_LT = re.compile(r"[<＜﹤]|&(?:lt|#0*60|#x0*3c);?|\\u003c", re.IGNORECASE)


class ReadRequest:
    """Everything on which the reply is based; `said` and `spoken` are earlier lines here, oldest first."""

    def __init__(self, request: Request, lines: Lines) -> None:
        opening, history, written = "", request.history, ""
        if len(history) > 1 and _CURRENT in history[-2].content and _CURRENT not in request.tail:
            opening, written, history = history[-2].content, history[-1].content, history[:-2]  # asked before, in part
        shown = f"{opening}\n{request.tail}"
        tail = list(records(shown))
        before = [record for message in history if message.role == "user" for record in records(message.content)]
        found = {str(record.get("kind")): record for record in tail}
        heard = [record for record in tail if record.get("kind") == RecordKind.MESSAGE]
        self.is_inner = not heard  # nobody spoke: it comes from the soul's own schedule or occasion
        self.heard = "\n".join(map(text_of, heard))[:4000].replace("’", "'")
        self.message = _swapped(self.heard, lines.words.spelled)
        self.name, self.who = [str(heard[-1].get(key, "")) if heard else "" for key in ("from", "who")]
        said = [one for one in before if one.get("kind") == RecordKind.MESSAGE and one.get("who") == self.who]
        self.said, self.spoken = [text_of(one) for one in said], spoken(history)
        turn = request.tail.partition("## This Turn\n")[2].partition("\n## ")[0]
        self.asked = {*re.findall(r"[a-z]+(?:_[a-z]+)+|\b(?:acts|appraisal)\b", turn)}
        self.done = "".join(re.findall(r"<acts>\s*(.*?)\s*</acts>", written, re.DOTALL)[:1])
        self.remembered = [one for one in found.get(RecordKind.MEMORY, {}).get("lines", ()) if isinstance(one, dict)]
        self.plans, self.known = _shorts(found, RecordKind.PLANS), _shorts(found, RecordKind.KNOWN)
        self.present = shown.partition("## The Present\n")[2].partition("\n")[0].partition(". ")[0].rstrip(".")
        now = re.search(r"(\d+ \w{3})\w* (\d{4}, \d\d:\d\d)[^(]*\(([\w/+-]+)", self.present)
        self.now = now and datetime.strptime(now[1] + now[2], "%d %b%Y, %H:%M").replace(tzinfo=ZoneInfo(now[3]))
        self.due = "" if heard else text_of(found.get(Kind.SCHEDULED, {})).partition('"')[2].rpartition('"')[0]
        self.summary = "".join([text_of(one) for one in (*before, *tail) if one.get("kind") == RecordKind.SUMMARY][-1:])
        self.soul = "".join(re.findall(r"^# +([^,\n]+?) *(?:,.*)?$", request.system, re.MULTILINE)[:1])
        self.used = found.get(RecordKind.TOOL, {})
        here = "".join(re.findall(r"^Tools here: (.*)\.$", request.tail, re.MULTILINE))
        self.tools = [one.partition(" ")[0] for one in here.split(", ")]
        self.document, self.is_first = cache(request.known), request.is_first  # a read of the store
        self.limits = [text for text in self.known.values() if lines.patterns["limit"].search(text)][:6]
        self.gone = [it for one in map(lines.patterns["forget"].match, self.said) if one and (it := {*stemmed(one[1])})]


def _shorts(found: Mapping[str, Mapping[str, Any]], kind: str) -> dict[str, str]:
    """Return the lines of a block by their ids, the newest first; those of other people bear none."""
    lines = re.findall(r"^([pf])(\d+) (.+)$", text_of(found.get(kind, {})), re.MULTILINE)
    shorts = sorted(lines, key=lambda one: -int(one[1]))
    return {f"{kind}{number}": text.removesuffix(" (unchecked)") for kind, number, text in shorts}


def records(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records between data markers, in order. Pure."""
    for match in re.finditer(r"<data-([0-9a-f]+)>\n(.*)\n</data-\1>", text):
        with suppress(ValueError):
            if isinstance(record := json.loads(match[2]), dict):
                yield record


def spoken(history: Iterable[Message]) -> list[str]:
    """Return the soul's own lines in a history, oldest first. Pure."""
    form = re.compile(r"<external_dialogue(?:\s[^>]*)?>(.*?)</external_dialogue>", re.DOTALL)
    return [line.strip() for one in history if one.role == "assistant" for line in form.findall(one.content)]


def text_of(record: Mapping[str, Any]) -> str:
    """Return a record's text. Pure."""
    return str(record.get("text", ""))


def quoted(text: str, chars: int) -> str:
    """Reduce foreign text to one line of at most `chars` characters in which no parser finds a tag. Pure."""
    line = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", _LT.sub("‹", text)).strip()
    return line if len(line) <= chars else line[: chars - 1].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"


def _swapped(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"[\w']+", lambda match: words.get(match[0].lower(), match[0]), text)


def is_question(message: str) -> bool:
    """Return whether a message, before the files it names, ends in a question mark of any script. Pure."""
    return message.partition("📎")[0].rstrip().rstrip(_EDGES).endswith(("?", "？", "؟"))


def sentences(message: str) -> list[str]:
    """Return the sentences of a message. Pure."""
    return [*filter(None, map(str.strip, re.split(r"(?<=[.!?。！？؟])\s+|[\n。！？]+", message)))]


def hides(message: str, lines: Lines) -> bool:
    """Return whether a message seems to hold a secret, which is neither kept nor repeated. Pure."""
    return any(map(plain(message).__contains__, lines.secrets))


def stems(text: str, lines: Lines) -> frozenset[str]:
    """Return the stems of the words by which something is found. Pure."""
    return frozenset(stemmed(" ".join(sorted({*plain(text)[1:-1].split()} - {*lines.words.small_words.split()}))))


class Noticed(Struct, frozen=True):
    """A fact that somebody tells: the words after its opening, how `## Known` shows it, and what is said of it."""

    fact: FactKind
    words: str
    shown: str
    told: str

    def is_in(self, text: str) -> bool:
        """Return whether a line of `## Known` says the same."""
        return plain(text).startswith(plain(self.shown)[:-1])


def facts_in(message: str, lines: Lines) -> list[Noticed]:
    """Return the facts that a message states about its speaker, in order. Pure."""
    told = [one for one in sentences(message) if not (is_question(one) or hides(one, lines))]
    clauses = [clause for one in told for clause in lines.patterns["clause"].split(one)[1:]]
    found = filter(None, [_noticed(clause, lines) for clause in clauses[::-1]])
    return [*{one.shown.casefold(): one for one in found}.values()][::-1]


def _noticed(clause: str, lines: Lines) -> Noticed | None:
    for fact, fits in lines.facts:
        if hit := re.match(rf"(?:{fact.hears})(?![\w'])\s*", clause, re.IGNORECASE):
            words = re.split(fact.until, clause[hit.end() :], maxsplit=1, flags=re.IGNORECASE)[0].strip(_EDGES)
            if words and fits.match(words):
                words = quoted(words.title() if fact.kind == "name" and words == words.lower() else words, 160)
                persons = [{}, {}] if fact.kind == "name" else [lines.words.third_person, lines.words.second_person]
                third, second = [{"words": _swapped(words, one), **hit.groupdict()} for one in persons]
                return Noticed(fact, words, say(fact.keeps, third), say(fact.tells, second))
    return None


def told_of(text: str, lines: Lines) -> str:
    """Return a kept fact as it is said to whom it is about; as it stands where that is not certain. Pure."""
    for fact in lines.words.facts:
        if text.startswith(before := fact.keeps.removesuffix("$words")) and "$" not in before:
            words = re.sub(r"^their ", "your ", text.removeprefix(before))  # at its beginning it was "my"
            is_certain = not {*re.findall(r"[\w']+", words.lower())} & {*lines.words.third_person.values()}
            return say(fact.tells, {"words": words}) if is_certain else text
    return text


def wished(seen: ReadRequest, lines: Lines) -> Act:
    """Return the tool that a message asks for by plain words, with its arguments; {} for none. Pure."""
    for tool in seen.tools if not seen.used else ():
        if (form := lines.patterns.get(f"tool {tool}")) and (found := form.search(seen.message)):
            args = {name: words.strip() for name, words in found.groupdict().items() if words}
            for word, sign in lines.words.arithmetic.items() if tool == "calc" else ():
                args = {name: re.sub(rf"(?i)\s*(?:{word})\s*", sign, words) for name, words in args.items()}
            if "zone" in args:
                zone = re.compile(rf"(?i)(?:.*/)?{re.escape(args['zone'].replace(' ', '_'))}")
                args["zone"] = max(filter(zone.fullmatch, sorted(available_timezones())), key=len, default="")
            if "date" in args and seen.now:
                args["date"] = _planned(_peel(args["date"], lines)[1], seen.now, lines).get("at", "")[:10]
            return {"tool": tool, "args": args} if all(args.values()) else {}
    return {}


def recall(seen: ReadRequest, lines: Lines, cue: str) -> tuple[str, str]:
    """Return the section that answers a question and what is read out, beyond the words of `cue`; "" for none. Pure."""
    text = plain(seen.message)
    every = stems(text.replace(cue, " ") if cue else text, lines)
    wanted = every - frozenset(stemmed(lines.words.asks_with)) or (frozenset() if cue else every)
    is_own = lines.patterns["said by soul"].search(text) is not None
    if not wanted or (lines.patterns["of soul"].search(text) and not is_own):
        return "", ""
    is_theirs = any(f" {word} " in text for word in (*lines.words.third_person, "we", "our", "us"))
    found: dict[float, list[tuple[str, str]]] = {}
    for form, by, words, line in _candidates(seen, lines):
        is_named = form == "other" and any(plain(by).startswith(f"^ {word} ") for word in text.split())
        if is_named or (form != "other" and is_own == (form == "soul") and (is_theirs or form != "known")):
            found.setdefault(len(words & wanted) / len(wanted), []).append((form, line))
    best = max(found, default=0.0)
    if best < (0.5 if is_theirs or len(wanted) < 3 else 0.6):  # the share of the question's stems that answers it
        return ("not remembered" if is_theirs and not lines.patterns["advice"].search(text) else ""), ""
    fitting = [one for one in found[best] if one[0] == "known"] or found[best]
    section = "recalled of mine" if is_own else "recalled" if is_theirs or best == 1.0 else "recalled beside"
    section = "recalled of others" if all(form == "other" for form, _ in fitting) else section
    return section, "\n".join([*dict.fromkeys([line for _, line in fitting])][:2])


def _candidates(seen: ReadRequest, lines: Lines) -> Iterator[tuple[str, str, frozenset[str], str]]:
    """Yield what may answer, and no secret: whose it is in form and name, its stems, and how it is read out."""
    forms = lines.words.recalled
    for kept in re.findall(r"^- (?:p\d+ )?(.+?)(?: \([fm]\d+\))?$", seen.document(), re.MULTILINE):
        yield "known", "", frozenset(stemmed(kept)), say(forms["known"], {"words": quoted(told_of(kept, lines), 240)})
    for line in [*[{"text": text, "from": seen.who} for text in reversed(seen.said)], *seen.remembered]:
        by, text, when, ago = [str(line.get(key, "")) for key in ("from", "text", "when", "ago")]
        form = "speaker" if by in (seen.name, seen.who, f"{seen.name} ({seen.who})") else "other"
        form = "soul" if by == "you" else "here" if form == "speaker" and not when else form
        when = f"{date.fromisoformat(when):%-d %B %Y}, {ago}".removesuffix(", ") if when else ""
        if not is_question(text) and is_open(text, seen, lines):
            values = {"words": quoted(text, 240), "when": when, "name": quoted(by, 40)}
            yield form, by, frozenset(stemmed(text, by if form == "other" else "")), say(forms[form], values)


def is_open(text: str, seen: ReadRequest, lines: Lines) -> bool:
    """Return whether words may be said again: they hold no secret, and nothing that was to be forgotten. Pure."""
    is_gone = lines.patterns["forget"].match(text) or [words for words in seen.gone if words <= {*stemmed(text)}]
    return not (is_gone or hides(text, lines))


def warned(seen: ReadRequest, lines: Lines) -> str:
    """Return what is known that the speaker must not, if what they say now touches it; "" if nothing does. Pure."""
    heard, words = {*stemmed(seen.message)}, lines.patterns["limit words"]
    near = [text for text in seen.limits if heard & {*stemmed(words.sub(" ", text))}]
    return told_of(near[0], lines) if near and not lines.patterns["limit"].search(seen.message) else ""


class Deeds(Struct, frozen=True):
    """What a message asks of the books, and the sections of the lines that answer it. `known` was `learned` before."""

    sections: tuple[str, ...] = ()
    acts: tuple[Act, ...] = ()
    about: str = ""
    learned: tuple[Noticed, ...] = ()
    known: tuple[Noticed, ...] = ()


def deeds_of(seen: ReadRequest, lines: Lines) -> Deeds:
    """Return what a message asks of the books: one thing of the clock, or what it tells of its speaker. Pure."""
    return next(filter(None, [read(seen, lines) for read in (_reminder, _changed, _forgotten, _corrected, _told)]))


def _reminder(seen: ReadRequest, lines: Lines) -> Deeds | None:
    wanted = _wanted_in(seen.message, lines)
    asked = [line for group in lines.sections["reminder without a time"].groups for line in group]
    if not wanted and seen.said and seen.spoken and True in [line in seen.spoken[-1] for line in asked]:
        rest, told = _peel(seen.message, lines)
        before = _wanted_in(seen.said[-1], lines)
        wanted = (before[0], told) if before and told and not lines.patterns["filler"].sub("", rest) else None
    if wanted is None or seen.now is None:
        return None
    if not (plan := wanted[1] and _planned(wanted[1], seen.now, lines)):
        return Deeds(("reminder without a time",))
    return Deeds(("reminder",), ({"do": "remind", "text": quoted(wanted[0], 200), **plan},))


def _wanted_in(text: str, lines: Lines) -> tuple[str, Told] | None:
    """Return what the first reminder that a message asks for is to say, and when; no time if none is read."""
    filler = lines.patterns["filler"]
    for found in filter(None, map(lines.patterns["remind"].match, sentences(text))):
        rest = found["rest"] or found["task"] or ""
        before, told = _peel(found["before"] or "", lines)
        if filler.sub("", before) or lines.patterns["asks"].match(rest):
            continue
        head, *tasks = lines.patterns["task"].split(rest, maxsplit=1)
        task, (left, told) = "".join(tasks), _peel(head, lines, told)
        if left := filler.sub("", left):
            return task or left, {}
        task, told = (task, told) if {"hour", "name", "count"} & {*told} else _peel(task, lines, told)
        told = {} if lines.patterns["unread"].search(task) else told
        told = {**told, "wake": "wake"} if told and (found["wake"] or lines.patterns["rises"].search(task)) else told
        return task.strip(" ,.!?") or found["name"] or found["wake"] or "what you asked for", told
    return None


def _changed(seen: ReadRequest, lines: Lines) -> Deeds | None:
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
    at = {} if rest or not told else _planned(told, seen.now, lines, seen.plans[meant[0]])
    return Deeds(("moved",), ({"do": "move", "plan": meant[0], **at},)) if at else Deeds(("reminder without a time",))


def _meant(words: str, among: Mapping[str, str], lines: Lines) -> list[str]:
    """Return the ids that somebody means: as named, the last one, or by what is shared with one line alone."""
    if ids := re.findall(r"\b[pf]\d+\b", words.lower()):
        return [one for one in among if one in ids]
    wanted = stems(lines.patterns["plan words"].sub(" ", words), lines)
    if not wanted and (len(among) == 1 or lines.patterns["last"].search(words)):
        return [*among][:1]
    near = {one: len(wanted & {*stemmed(text)}) for one, text in among.items()}
    best = max(near.values(), default=0)
    return [one for one, share in near.items() if share == best and best * 2 >= len(wanted) > 0]


def _forgotten(seen: ReadRequest, lines: Lines) -> Deeds | None:
    if (found := lines.patterns["forget"].match(seen.message)) is None:
        return None
    meant = [one for fact in facts_in(found[1], lines) for one, text in seen.known.items() if fact.is_in(text)]
    acts = [{"do": "forget", "fact": one} for one in meant or _meant(found[1], seen.known, lines)]
    return Deeds(("forgotten" if acts else "no such fact",), tuple(acts[:MOST_ACTS]))


def _corrected(seen: ReadRequest, lines: Lines) -> Deeds | None:
    """Put "June, not May" into the newest fact that holds May."""
    text = seen.message.strip().rstrip(".! ")
    if found := lines.patterns["correct"].match(text) or lines.patterns["renamed"].match(text):
        old, new = rf"(?i)\b{re.escape(found[3])}\b", quoted(found[1] or found[2], 100)
        for short, text in seen.known.items():
            if re.search(old, text):
                right, kind = re.sub(old, lambda _: new, text), "name" if text.startswith("called ") else "other"
                act = {"do": "know", "text": right.removeprefix("called "), "kind": kind, "instead_of": short}
                return Deeds(("corrected",), (act,), told_of(right, lines))
    return None


def _told(seen: ReadRequest, lines: Lines) -> Deeds:
    """Return what a message tells of its speaker: facts that hold and that end."""
    told = [one for one in sentences(seen.message) if not is_question(one)]
    ended = dict.fromkeys([(short, sentence) for sentence in told for short in _ended(sentence, seen, lines)])
    acts: list[Act] = [{"do": "no_longer", "fact": short, "text": quoted(text, 100)} for short, text in ended]
    facts = facts_in(seen.message, lines)
    known = [fact for fact in facts if any(map(fact.is_in, seen.known.values()))]
    learned = [fact for fact in facts if fact not in known][: MOST_ACTS - len(acts)]
    for one in learned:
        act = {"do": "know", "text": one.shown.removeprefix("called "), "kind": one.fact.kind, "keys": [*one.fact.keys]}
        before = one.fact.keeps.partition("$")[0]
        older = [short for short, text in seen.known.items() if one.fact.single and text.startswith(before)]
        acts.append(act | ({"instead_of": older[0]} if older else {}))
    return Deeds(("no longer",) if ended else (), tuple(acts), "", tuple(learned), tuple(known))


def _ended(sentence: str, seen: ReadRequest, lines: Lines) -> list[str]:
    """Return what is no longer so: a fact that the sentence denies, or says to have ended."""
    positive = " ".join(lines.patterns["negation"].sub(" ", sentence).split())
    if positive != sentence and (told := facts_in(positive, lines)):
        return [short for short, text in seen.known.items() if any(fact.is_in(text) for fact in told)]
    has_ended = lines.patterns["ended"].search(sentence) and not facts_in(sentence, lines)
    wanted = stems(lines.patterns["ended"].sub(" ", positive), lines) if has_ended else frozenset[str]()
    return [short for short, text in seen.known.items() if wanted and wanted <= {*stemmed(text)}]


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
        return today + timedelta(days=(DAYS.index(told["weekday"][:3]) - now.weekday()) % 7 or 7)
    if "month" in told:
        named = f"{told['date']} {told['month'][:3]} {told.get('year', now.year)}"
        day = datetime.strptime(named, "%d %b %Y").replace(tzinfo=now.tzinfo).date()
        return day if "year" in told or day >= today else day.replace(year=day.year + 1)
    return None


def _planned(told: Told, now: datetime, lines: Lines, moved: str = "") -> Told:
    """Return `at` and `repeat`, the first such instant; {} for none. What is not told of a `moved` plan stays."""
    before = re.match(r"\w+ (\d{1,2} \w+)(?: (\d{1,2}):(\d\d)[,:])?", moved)  # "Thu 27 Nov 9:00: …"
    kept = _peel(before[1], lines)[1] if before and "hour" in told else {}
    try:
        day = _day(told, now) or _day(kept, now - timedelta(days=1))
    except ValueError:  # no calendar has the day
        return {}
    if before and before[2] and day and not {"hour", "name", "part"} & {*told} and told.get("near") != "tonight":
        told = {**told, "hour": before[2].zfill(2), "minute": before[3]}
    zone, every, rhythms = now.tzinfo or UTC, told.get("every", ""), lines.words.rhythms
    repeat = ",".join([one for one in DAYS if re.search(rf"\b{one}\w*day", every)]) or rhythms.get(every, "")
    at, is_timed = now, bool({"hour", "name"} & {*told})
    if "count" in told:
        count = (lines.words.counts.get(told["count"]) or float(told["count"])) + ("more" in told) / 2
        ahead = timedelta(minutes=ceil(SECONDS[told["unit"][0]] * count / 60))  # The Present names whole minutes
        at = now + ahead if told["unit"][0] in "dw" else (now.astimezone(UTC) + ahead).astimezone(zone)
        day = at.date() if is_timed else None
    if is_timed or "count" not in told:
        firsts = [datetime.combine(day or now.date(), hour, zone) for hour in _hours(told, lines)]
        week = timedelta(7 * (repeat not in ("monthly", "yearly")))  # today is none of the days that are named
        comes = [following(one - week, zone, repeat or "daily", now) or one for one in firsts]
        at = next((one for one in firsts if one > now), firsts[0]) if day else comes[0] if repeat else min(comes)
    return {"at": at.astimezone(zone).isoformat(timespec="minutes")} | ({"repeat": repeat} if repeat else {})


def _hours(told: Told, lines: Lines) -> list[time]:
    """Return the hours that may be meant, the likeliest first; nobody asks for three at night without saying so."""
    named = " ".join([told.get(key, "") for key in ("half", "name", "part", "near", "every")])
    if "hour" not in told:
        return [time(next((hour for name, hour in lines.words.hours.items() if name in named), 9))]
    hour, minute = int(lines.words.counts.get(told["hour"]) or told["hour"]), int(told.get("minute", 0))
    if not 0 < hour <= 12 or (not named.strip() and "minute" in told and len(told["hour"]) > 1):
        return [time(hour, minute)]
    halves = [time(hour % 12, minute), time(hour % 12 + 12, minute)]
    if half := re.search(r"\b(?:a|morning)\b|\b(?:p|afternoon|evening|\w*night)\b", named):
        return [halves[half[0] not in ("a", "morning")]]
    return [one for one in halves if one.hour in (range(4, 16) if "wake" in told else range(7, 23))] or halves
