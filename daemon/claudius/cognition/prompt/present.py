"""Say when, where and to whom the soul speaks, what it knows of them, what is open, and which tools there are. Pure.

The Present stands outside the fence, so of what other people chose it holds single words of letters, digits and
hyphens alone. The manifest of the tools is one more text of a turn's soul, so that a snapshot keeps it with the others;
which of them may be used now stands in the tail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

from msgspec.structs import replace

from claudius.cognition.plan import Plan
from claudius.cognition.timing import known_zone, zone_of
from claudius.memory.facts import LINE_CHARS, NAME, NEWEST_OF
from claudius.perception import MessageExtra, Place, private
from claudius.prompt import MONTHS, RecordKind, Scalar, ago, quoted, short_name
from claudius.recollection import Fact, Matter, PlanHere, Recollection
from claudius.soul import SoulFile, SoulText
from claudius.tool import Tool

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
READERS = 4
"""The most people who are named as reading along."""
MOST_PLANS = 8
"""The most plans that a prompt shows, soonest first."""
PLAN_CHARS = 80
"""The most that a prompt shows of what a plan is about."""
_WORD = re.compile(r"[^\W_][\w'’-]{0,31}")
_PLACE = re.compile(r"#[\w-]{1,40}")


def present(recollection: Recollection, soul: SoulText, zone: str) -> str:
    """Name the instant of the turn in a zone, how long ago the speaker last spoke here, and where that is.

    Each part is left out if the soul's texts are older than its words, and all of it without a zone.
    """
    words, now = soul.files["tail.md"].head, recollection.now.astimezone(zone_of(zone))
    if not zone or "now" not in words:
        return ""
    day = f"{now.day} {MONTHS[now.month - 1]} {now.year}"
    values = {"weekday": WEEKDAYS[now.weekday()], "date": day, "time": f"{now:%H:%M}", "zone": zone}
    said = [Template(words["now"]).substitute(values)]
    if recollection.speaker and recollection.speaker.spoke_at:
        since = ago((recollection.now - recollection.speaker.spoke_at).total_seconds())
        said.append(Template(words["since"]).substitute(ago=since))
    if "where" in words:
        said += _where(recollection, words["where"])
    return " ".join(said)


def day_and_place(recollection: Recollection, soul: SoulText, zone: str, day: str) -> str:
    """Name the day by its own words, and where that is if others read along: what stays through a talk. Pure."""
    words, now = soul.files["tail.md"].head, recollection.now.astimezone(zone_of(zone))
    date = f"{now.day} {MONTHS[now.month - 1]} {now.year}"
    said = [Template(day).substitute(weekday=WEEKDAYS[now.weekday()], date=date)] if zone else []
    is_shared = not recollection.audience.startswith(private(""))
    return " ".join([*said, *(_where(recollection, words["where"]) if zone and is_shared and "where" in words else ())])


def _where(recollection: Recollection, words: Mapping[str, Any]) -> Iterator[str]:
    place, to, extra = Place.of(recollection.conversation), recollection.addressee, recollection.perception.extra
    heard = extra if isinstance(extra, MessageExtra) else MessageExtra()
    network, who = place.network.capitalize(), (_word(to.name) if to else "") or words["someone"]
    if recollection.audience.startswith(private("")):
        yield Template(words.get(place.network, words["direct"])).substitute(who=who)
    else:
        there = heard.place if _PLACE.fullmatch(heard.place) else words["unnamed"]
        thread, names = words["thread"] if place.thread else "", readers(recollection)
        along = Template(words["along" if names[1:] else "along_one"]).substitute(names=_listed(names)) if names else ""
        yield f"{network}, {there}{thread}{along}."
    language = _language(recollection.locale)
    if language:
        yield Template(words["locale"]).substitute(who=who, network=network, language=language)
    if place.network in words["form"]:
        yield words["form"][place.network]


def readers(recollection: Recollection) -> list[str]:
    """Return the names of the others who have spoken in this conversation lately, the last one first."""
    to = recollection.addressee
    names = {one.person: one.name for one in recollection.others}
    for turn in reversed(recollection.past):
        names |= {one.person: one.name for one in turn.entries if one.person and one.name and one.person not in names}
    ours = {recollection.perception.person, *([to.person] if to else ())}
    found = [_word(name) for person, name in names.items() if person not in ours]
    return list(dict.fromkeys(filter(None, found)))[:READERS]


def _word(name: str) -> str:
    found = _WORD.fullmatch((name.split() or [""])[0])
    return found[0] if found else ""


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if names[1:] else names[0]


def _language(locale: str) -> str:
    """Return the English name of a locale's language; "" for English itself, and for none."""
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - 20 ms, for those who speak another language

    if not locale or locale.casefold().startswith("en"):
        return ""
    try:
        return Locale.parse(locale.replace("-", "_")).get_language_name("en") or ""
    except (UnknownLocaleError, ValueError):
        return ""


def known_records(recollection: Recollection, zone: str) -> dict[str, dict[str, Scalar]]:
    """Return what those present are known by, and what is open in the addressee's life, by its heading. Pure."""
    names = {one.person: one.name for turn in recollection.past for one in turn.entries if one.name}
    names |= {one.person: one.name for one in recollection.people if one.name}
    today = recollection.now.astimezone(zone_of(zone)).date()
    facts = [fact_line(one, names.get(one.person) or short_name(one.person)) for one in recollection.known]
    if more := recollection.unshown:
        facts.append(f"Not listed, of what others here must not have: {more} more. Ask them.")
    matters = [matter_line(one, today) for one in recollection.matters]
    blocks = {"Known": (RecordKind.KNOWN, facts), "Open": (RecordKind.OPEN, matters)}
    return {name: {"kind": kind, "text": "\n".join(lines)} for name, (kind, lines) in blocks.items() if lines}


def fact_line(one: Fact, whose: str) -> str:
    """Return the line of a fact: `f7 Allergic to walnuts`; that of somebody else begins with their name. Pure."""
    text = " ".join(one.text.split())
    text = f"called {text}" if one.kind == NAME else text
    text = text[:LINE_CHARS] if one.kind in NEWEST_OF else text
    dates = [f"since {one.since}"] if one.since else []
    dates += [f"until {one.until}"] if one.until else []
    said = ", ".join(([f"{one.about}: {text}"] if one.about else [text]) + dates)
    return f"{one.short or f'{whose}:'} {said}{' (unchecked)' if one.unchecked else ''}"


def matter_line(one: Matter, today: date) -> str:
    """Return the line of a matter: `m2 interview at the museum, was on Friday`. Pure."""
    text = f"{one.short} {' '.join(one.text.split())}".lstrip()
    if one.when is None:
        return text
    days = (one.when - today).days
    if days == 0:
        return f"{text}, is today"
    day = WEEKDAYS[one.when.weekday()] if abs(days) < len(WEEKDAYS) else f"{one.when.day} {MONTHS[one.when.month - 1]}"
    return f"{text}, {'is' if days > 0 else 'was'} on {day}"


def plans_record(recollection: Recollection, zone: str, *, names_zones: bool) -> dict[str, Scalar]:
    """Return what waits for the speaker, a line each: `p3 Thu 27 Nov 9:00, weekdays: call the dentist`. Pure.

    `names_zones`: a plan by another clock than `zone` says by which.
    """
    lines = [plan_line(one, zone, names_zone=names_zones) for one in recollection.plans[:MOST_PLANS]]
    return {"kind": RecordKind.PLANS, "text": "\n".join(lines)}


def plan_line(one: PlanHere, zone: str, *, names_zone: bool = True) -> str:
    """Return the line of a plan, by the clock of its own zone, else of the one given. Pure."""
    at = one.at.astimezone(known_zone(one.zone, zone or "UTC"))
    day = f"{WEEKDAYS[at.weekday()][:3]} {at.day} {MONTHS[at.month - 1][:3]}"
    clock = f" {at.tzinfo}" if names_zone and one.zone and one.zone != zone else ""
    again = f", {one.repeat}" if one.repeat else ""
    return f"{one.short} {day} {at.hour}:{at:%M}{clock}{again}: {' '.join(one.text.split())[:PLAN_CHARS]}"


MANIFEST = "manifest.md"
"""The name of the manifest among the texts of a turn's soul; no file on disk is called so."""
WORDS = "tools.md"


def with_tools(soul: SoulText, tools: Sequence[Tool]) -> SoulText:
    """Return the soul with the manifest of these tools; the same object for the same tools, unchanged for none."""
    if not tools or WORDS not in soul.files:
        return soul
    known: Sequence[Tool]
    told: SoulText
    known, told = soul.derived.get(MANIFEST, ((), soul))
    if known != tools:  # quick: nearly always the same objects
        text = manifest(soul, tools)
        file = SoulFile(MANIFEST, text, Path(), sha256(text.encode()).hexdigest())
        told = replace(soul, files={**soul.files, MANIFEST: file})
        soul.derived[MANIFEST] = tools, told
    return told


def manifest(soul: SoulText, tools: Sequence[Tool]) -> str:
    """Return the part of the system text that names every tool, a line each, by name."""
    return "\n".join([soul.text(WORDS), *[tool_line(one) for one in sorted(tools, key=lambda one: one.name)]])


def tool_line(tool: Tool) -> str:
    """Return the line of a tool: `- clock(zone?: string): Tell the time.` What others wrote of it is escaped."""
    needed = tool.schema.get("required", ())
    args = [
        f"{name if name in needed else f'{name}?'}: {_type(one)}"
        for name, one in tool.schema.get("properties", {}).items()
    ] + ["…"] * bool(tool.schema.get("additionalProperties"))
    line = quoted(f"{tool.name}({', '.join(args)}): {tool.purpose}")
    return f"- {line[1:-1]}"


def _type(schema: Any) -> str:
    named = schema.get("type") if isinstance(schema, dict) else None
    return named if isinstance(named, str) else "any"


def skills(soul: SoulText) -> str:
    """Return what the soul says it can do; without the sentence that tools take the place of, where there are some."""
    text, alone = soul.text("skills.md"), soul.files[WORDS].head.get("instead_of") if MANIFEST in soul.files else None
    return text.replace(str(alone), "").rstrip() if alone else text


def tools_here(plan: Plan, soul: SoulText) -> Iterator[str]:
    """Yield the line that names the tools of this turn, if there are some."""
    if plan.tools:
        yield Template(str(soul.files[WORDS].head["here"])).substitute(tools=quoted(", ".join(plan.tools))[1:-1])
