"""Say when, where and to whom the soul speaks: the prompt's section The Present. Pure.

It stands outside the fence, so of what other people chose it holds single words of letters, digits and hyphens alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

from claudius.cognition.timing import zone_of
from claudius.perception import MessageExtra, Place, private
from claudius.prompt import MONTHS, ago
from claudius.recollection import Recollection
from claudius.soul import SoulText

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
READERS = 4
"""The most people who are named as reading along."""
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
