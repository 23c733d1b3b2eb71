"""Read in English what a message asks of the books, as acts; what is not read whole is not guessed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct

from claudius.acts import MOST_ACTS
from claudius.memory.ranking import stemmed
from claudius.providers.rehearsal.lines import Lines
from claudius.providers.rehearsal.reading import (
    Noticed,
    ReadRequest,
    Short,
    facts_in,
    is_question,
    quoted,
    sentences,
    stems,
    told_of,
)
from claudius.providers.rehearsal.times import Told, day_of, is_whole, peel, planned, zone_named

Act = Mapping[str, Any]


class Deeds(Struct, frozen=True, kw_only=True):
    """What a message asks of the books, and the sections of the lines that answer it. `known` was `learned` before."""

    acts: tuple[Act, ...] = ()
    sections: tuple[str, ...] = ()
    about: str = ""
    learned: tuple[Noticed, ...] = ()
    known: tuple[Noticed, ...] = ()


def deeds_of(seen: ReadRequest, lines: Lines) -> Deeds:
    """Return what a message asks of the books: one thing of the clock, or what it tells of its speaker. Pure."""
    readers = (_reminder, _listed, _cancelled, _moved, _forgotten, _zoned, _corrected)
    return next(filter(None, [read(seen, lines) for read in readers]), None) or _told(seen, lines)


def _reminder(seen: ReadRequest, lines: Lines) -> Deeds | None:
    wanted = _wanted_in(seen.message, lines)
    asked = [line for group in lines.sections["reminder without a time"].groups for line in group]
    if wanted is None and seen.said and seen.spoken and any(line in seen.spoken[-1] for line in asked):
        rest, told = peel(seen.message, lines)
        before = _wanted_in(seen.said[-1], lines)
        wanted = (before[0], told) if before and told and not _rest(rest, lines) else None
    if wanted is None or seen.now is None:
        return None
    if not (plan := planned(wanted[1], seen.now, lines)):
        return Deeds(sections=("reminder without a time",))
    return Deeds(acts=({"do": "remind", "text": quoted(wanted[0], 200), **plan},), sections=("reminder",))


def _wanted_in(text: str, lines: Lines) -> tuple[str, Told] | None:
    """Return what the first reminder that a message asks for is to say, and when; no time if none is read."""
    for sentence in sentences(text):
        if found := lines.patterns["remind"].match(sentence):
            name, rest = found.groupdict()["name"] or "", found["rest"] or found["task"] or ""
            before, told = peel(found["before"] or "", lines)
            if _rest(before, lines) or lines.patterns["asks"].match(rest):
                continue
            head, *tasks = lines.patterns["task"].split(rest, maxsplit=1)
            task = "".join(tasks)
            left, told = peel(head, lines, told)
            if left := _rest(left, lines):
                return task or left, {}
            if not is_whole(told):
                task, told = peel(task, lines, told)
            task = task.strip(" ,.!?") or name or "what you asked for"
            return task, {} if lines.patterns["unread"].search(task) else told
    return None


def _rest(text: str, lines: Lines) -> str:
    return lines.patterns["filler"].sub("", text)


def _listed(seen: ReadRequest, lines: Lines) -> Deeds | None:
    return Deeds(sections=(_plans(seen, "plans"),)) if lines.patterns["list"].search(seen.message) else None


def _plans(seen: ReadRequest, section: str) -> str:
    return section if seen.plans else "no plan"


def _cancelled(seen: ReadRequest, lines: Lines) -> Deeds | None:
    found = lines.patterns["cancel"].match(seen.message.strip().rstrip(".!? "))
    if found is None or not (found[1].lower() == "cancel" or lines.patterns["plan"].search(found[2])):
        return None
    if re.search(r"\b(?:all|every|everything)\b", found[2], re.IGNORECASE) and seen.plans:
        return Deeds(acts=({"do": "cancel", "plan": "all"},), sections=("cancelled",))
    if len(meant := _meant(found[2], seen.plans, lines)) != 1:
        return Deeds(sections=(_plans(seen, "which plan"),))
    return Deeds(acts=({"do": "cancel", "plan": meant[0].id},), sections=("cancelled",))


def _moved(seen: ReadRequest, lines: Lines) -> Deeds | None:
    found = lines.patterns["move"].match(seen.message.strip().rstrip(".!? "))
    meant = _meant(found[1], seen.plans, lines) if found else ()
    if found is None or seen.now is None or not (meant or lines.patterns["plan"].search(found[1])):
        return None
    if len(meant) != 1:
        return Deeds(sections=(_plans(seen, "which plan"),))
    rest, told = peel(found[2], lines)
    rest, told = peel(f"at {found[2]}", lines) if rest else (rest, told)
    dated = re.match(r"\w+ (\d{1,2} \w+)", meant[0].text)
    if dated and "hour" in told and not day_of(told, seen.now):  # on the day that `Thu 27 Nov 9:00: …` names
        told = {**told, "iso": str(day_of(peel(dated[1], lines)[1], seen.now - timedelta(days=1)))}
    if rest or not (plan := planned(told, seen.now, lines)):
        return Deeds(sections=("reminder without a time",))
    return Deeds(acts=({"do": "move", "plan": meant[0].id, **plan},), sections=("moved",))


def _meant(words: str, among: Sequence[Short], lines: Lines) -> tuple[Short, ...]:
    """Return which lines somebody means: by id, as the last one, or by what is shared with one line alone."""
    if ids := re.findall(r"\b[pf]\d+\b", words.lower()):
        return tuple([one for one in among if one.id in ids])
    wanted = stems(lines.patterns["plan words"].sub(" ", words), lines)
    if not wanted and (len(among) == 1 or lines.patterns["last"].search(words)):
        return tuple(sorted(among, key=lambda one: int(one.id[1:]))[-1:])
    near = [(len(wanted & frozenset(stemmed(one.text))), one) for one in among]
    best = max([share for share, _ in near], default=0)
    return tuple([one for share, one in near if share == best and best * 2 >= len(wanted) > 0])


def _forgotten(seen: ReadRequest, lines: Lines) -> Deeds | None:
    if (found := lines.patterns["forget"].match(seen.message)) is None:
        return None
    meant = [one for fact in facts_in(found[1], lines) for one in seen.known if fact.is_in(one)]
    acts = [{"do": "forget", "fact": one.id} for one in meant or _meant(found[1], seen.known, lines)]
    return Deeds(acts=tuple(acts[:MOST_ACTS]), sections=("forgotten" if acts else "no such fact",))


def _zoned(seen: ReadRequest, lines: Lines) -> Deeds | None:
    found = lines.patterns["zone"].search(seen.message)
    if found is None or is_question(seen.message):
        return None
    zone = zone_named(found[1] or found[2])
    acts = ({"do": "zone", "zone": zone},) if zone else ()
    return Deeds(acts=acts, sections=("zone" if zone else "no such zone",), about=zone)


def _corrected(seen: ReadRequest, lines: Lines) -> Deeds | None:
    """Put "June, not May" into the newest fact that holds May."""
    if found := lines.patterns["correct"].match(seen.message.strip().rstrip(".! ")):
        old = re.compile(rf"\b{re.escape(found[3])}\b", re.IGNORECASE)
        for one in sorted(seen.known, key=lambda one: -int(one.id[1:])):
            text, is_name = old.sub(lambda _: quoted(found[1] or found[2], 100), one.text), one.text.startswith("called ")
            if text != one.text:
                act = {"do": "know", "text": text.removeprefix("called "), "kind": "name" if is_name else "other"}
                return Deeds(acts=({**act, "instead_of": one.id},), sections=("corrected",), about=told_of(text, lines))
    return None


def _told(seen: ReadRequest, lines: Lines) -> Deeds:
    """Return what a message tells of its speaker: facts that hold and that end."""
    acts: list[Act] = []
    learned: list[Noticed] = []
    known: list[Noticed] = []
    for sentence in [one for one in sentences(seen.message) if not is_question(one)]:
        told = [fact for fact in facts_in(sentence, lines) if fact not in learned]
        for one in _ended(sentence, seen, lines, is_told=bool(told)):
            acts.append({"do": "no_longer", "fact": one.id, "text": quoted(sentence, 100)})
        for fact in told:
            if any(fact.is_in(one) for one in seen.known):
                known.append(fact)
            elif len(acts) < MOST_ACTS:
                learned.append(fact)
                before = fact.fact.keeps.partition("$")[0]
                older = [one.id for one in seen.known if fact.fact.single and one.text.startswith(before)]
                act = {"do": "know", "text": fact.text, "kind": fact.fact.kind, "keys": [*fact.fact.keys]}
                acts.append(act | ({"instead_of": older[-1]} if older else {}))
    ended = ("no longer",) if any(act["do"] == "no_longer" for act in acts) else ()
    return Deeds(acts=tuple(acts[:MOST_ACTS]), sections=ended, learned=tuple(learned), known=tuple(known))


def _ended(sentence: str, seen: ReadRequest, lines: Lines, *, is_told: bool) -> Iterator[Short]:
    """Yield what is no longer so: a fact that the sentence denies, or says to have ended."""
    positive = " ".join(lines.patterns["negation"].sub(" ", sentence).split())
    if positive != sentence and (told := [*facts_in(positive, lines)]):
        yield from [one for fact in told for one in seen.known if fact.is_in(one)]
    elif lines.patterns["ended"].search(sentence) and not is_told:
        wanted = stems(lines.patterns["ended"].sub(" ", positive), lines)
        yield from [one for one in seen.known if wanted and wanted <= frozenset(stemmed(one.text))]
