"""Read the acts of a reply and check them against what stood in its prompt; a refused one says why. Pure.

Source: the design of acts, sections 2 and 10.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import filterfalse, groupby
from operator import itemgetter
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.acts import (
    MOST_ACTS,
    MOST_KEYS,
    TEXT_CHARS,
    Act,
    FactEnded,
    FactKind,
    FactKnown,
    Forgotten,
    MatterClosed,
    MatterOpened,
    PlanCancelled,
    PlanMade,
    PlanMoved,
    ZoneSet,
)
from claudius.cognition.timing import known_zone, zone_name, zone_of
from claudius.decoding import misshapen, ready
from claudius.errors import BadConfiguration
from claudius.prompt import UNSEEN, quoted, short_name
from claudius.recollection import MOST_MATTERS, EntryType, Recollection
from claudius.recurrence import fitting, local_instant

ACTS: Final = "acts"
NONE: Final = "none"
MOST_AHEAD = timedelta(days=5 * 366)
WHAT_CHARS = 40
"""The most that is told to a person of an act that was refused."""
ONLY_REMINDERS: Final = "Only a `remind` for them is booked then; anything else by their own command"
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
RHYTHMS: Final = ("daily", "weekdays", "weekly", "monthly", "yearly")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?([Zz]|[+-]\d\d(?::?\d\d)?)?)?")
_EMPTY = re.compile(
    r"[\W_]*(?:\d[.)]\W*)?(?:json\W*|(?:do\W+)?(?:none\s*(?:[^\w\s].*)?|(?:null|nothing|n/a)\W*))?",
    re.DOTALL | re.IGNORECASE,
)
"""What asks for nothing, however a model writes that: `none`, `[]`, `{}`, `- N/A`, `none (a question)`, a fence."""
_OBJECT = json.JSONDecoder()
_EDGES = " \t\n\r.`\"'*"


class _Remind(Struct, tag_field="do", tag="remind"):
    at: str
    text: str
    zone: str = ""
    repeat: str | list[str] = ""
    until: str = ""
    who: str = ""


class _Promise(Struct, tag_field="do", tag="promise"):
    at: str
    text: str
    zone: str = ""


class _Move(Struct, tag_field="do", tag="move"):
    plan: str
    at: str = ""
    zone: str = ""
    repeat: str | list[str] = ""
    until: str = ""


class _Cancel(Struct, tag_field="do", tag="cancel"):
    plan: str


class _Know(Struct, tag_field="do", tag="know"):
    text: str
    kind: str = "other"
    keys: list[str | int] | str = ""
    of: str = ""
    since: str = ""
    until: str = ""
    instead_of: str = ""


class _NoLonger(Struct, tag_field="do", tag="no_longer"):
    fact: str
    text: str = ""


class _Forget(Struct, tag_field="do", tag="forget"):
    fact: str = ""
    matter: str = ""


class _Open(Struct, tag_field="do", tag="open"):
    text: str
    when: str = ""


class _Close(Struct, tag_field="do", tag="close"):
    matter: str


class _Zone(Struct, tag_field="do", tag="zone"):
    zone: str


Written = _Remind | _Promise | _Move | _Cancel | _Know | _NoLonger | _Forget | _Open | _Close | _Zone
VERBS: Final = tuple(str(one.__struct_config__.tag) for one in get_args(Written))


class RefusedAct(Struct, frozen=True):
    """An act that cannot be done."""

    do: str
    """Its name; empty if it could not be read."""
    reason: str
    """Why, in plain words."""
    what: str = ""
    """What it was about, in its own words."""


class Doable(Struct, frozen=True):
    """An act that is to be booked."""

    do: str
    act: Act
    what: str


class ReadActs(Struct, frozen=True, kw_only=True):
    """The acts of a reply, in order."""

    written: str = ""
    """The section as it stands in the reply; empty if there was none."""
    done: tuple[Doable, ...] = ()
    refused: tuple[RefusedAct, ...] = ()

    @property
    def reasons(self) -> str:
        """Why acts were refused, a line each."""
        return "\n".join([f"{one.do or 'a line'}: {one.reason}" for one in self.refused])

    @property
    def told(self) -> list[dict[str, str]]:
        """What `claudius why` tells of them."""
        booked = [{"do": one.do, "state": "booked", "detail": one.what} for one in self.done]
        refused = [{"do": one.do, "state": "refused", "detail": one.reason} for one in self.refused]
        return [*booked, *refused]


class _Refusal(Exception):
    """Says in plain words why an act cannot be done."""


class ActsBasis(Struct, kw_only=True):
    """What acts are checked against; `zone` and `freed` are whichever count for the next one."""

    recollection: Recollection
    zone: str
    """The IANA zone that The Present names."""
    agrees: Callable[[str], bool] = bool
    """Whether a person other than the speaker wants to be written to."""
    freed: int = 0
    """How many more matters with a day the acts before it close than open."""
    tainted: str = ""
    """The third-party text that this turn heard or fetched: it may have asked for anything. Empty = there is none."""


def read_acts(text: str, known: ActsBasis) -> ReadActs:
    """Read a section of acts: `none`, or JSON objects. More than five are too many. Pure."""
    lines = list(map(itemgetter(0), groupby(filterfalse(_EMPTY.fullmatch, _written(text)))))
    if not lines:
        return ReadActs(written=NONE)
    done: list[Doable] = []
    refused: list[RefusedAct] = []
    for line in lines[:MOST_ACTS]:
        one = _read(line, known)
        if isinstance(one, Doable):
            done.append(one)
        else:
            refused.append(one)
    if len(lines) > MOST_ACTS:
        refused.append(RefusedAct("", f"{len(lines)} acts were written, {MOST_ACTS} are the most in one reply"))
    return ReadActs(written="\n".join(lines), done=tuple(done), refused=tuple(refused))


def _written(text: str) -> Iterator[str]:
    """Yield each JSON object of a section, in an array or not, laid out in whatever way, and each line beside them."""
    at = 0
    while (begins := text.find("{", at)) >= 0:
        yield from text[at:begins].splitlines()
        try:
            _, at = _OBJECT.raw_decode(text, begins)
        except (ValueError, RecursionError):
            at = (text.find("\n{", begins) + 1 or len(text) + 1) - 1
        yield text[begins:at].strip()
    yield from text[at:].splitlines()


def read_act(do: str, known: ActsBasis, **arguments: Any) -> Doable | RefusedAct:
    """Check an act that a process function does, as if it had been written. Pure."""
    return _read(msgspec.json.encode({"do": do, **arguments}, enc_hook=str).decode(), known)


def _read(line: str, known: ActsBasis) -> Doable | RefusedAct:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return RefusedAct("", 'it is not one JSON object on one line, such as {"do": "zone", "zone": "Europe/Rome"}')
    do, named = found.get("do"), map(found.get, ("text", "plan", "fact", "matter", "zone"))
    what = next((_short(one) for one in named if one and isinstance(one, str)), "")
    if do not in VERBS:
        return RefusedAct("", f"`do` is none of {', '.join(VERBS)}", what)
    try:
        said = {name: one for name, one in found.items() if _says(name, one)}
        act: Written = msgspec.convert(said, ready(Written))  # type: ignore[arg-type]  # a union is a type to msgspec
    except (msgspec.MsgspecError, RecursionError) as error:
        return RefusedAct(do, misshapen(error) if isinstance(error, msgspec.MsgspecError) else "it is nested", what)
    if known.tainted and not (isinstance(act, _Remind) and not act.who):
        return RefusedAct(do, f"tainted: {known.tainted} stands here. {ONLY_REMINDERS}", what)
    try:
        return Doable(do, _CHECKS[type(act)](act, known), what)
    except _Refusal as refusal:
        return RefusedAct(do, str(refusal), what)


def _says(name: str, value: Any) -> bool:
    """Return whether an argument says something: a model may write null, "" or N/A where it has none. Pure."""
    said = str(value or "")
    is_end = name == "repeat" and NONE in said.casefold()
    return name == "text" or is_end or not _EMPTY.fullmatch(said)


def _short(text: str) -> str:
    return " ".join(text.split())[:WHAT_CHARS].rstrip()


def _quoted(text: str) -> str:
    """Write what a model wrote, or somebody is called, so that it is no instruction where a refusal names it. Pure."""
    return quoted(_short(text))[1:-1]


def _reminder(act: _Remind, known: ActsBasis) -> PlanMade:
    (at, wall), zone, repeat = _at(act.at, act.zone, known), _iana(act.zone or known.zone), _rhythm(act.repeat) or ""
    until = _until(act.until, at.astimezone(zone_of(zone)).date()) if repeat else None
    me = person = _person(known)
    if act.who:
        person = _present(act.who, known) or ""
        if not person:
            raise _Refusal(f"there is nobody here who is called {_quoted(act.who)}")
        if person != me and not known.agrees(person):
            raise _Refusal(f"{_quoted(act.who)} has not agreed to be written to")
    text = _text(act.text)
    return PlanMade(kind="remind", at=at, zone=zone, text=text, person=person, repeat=repeat, until=until, wall=wall)


def _promise(act: _Promise, known: ActsBasis) -> PlanMade:
    (at, _), zone = _at(act.at, act.zone, known, noon=True), _iana(act.zone or known.zone)
    return PlanMade(kind="promise", at=at, zone=zone, text=_text(act.text), person=_person(known))


def _move(act: _Move, known: ActsBasis) -> PlanMoved:
    plans, repeat = known.recollection.plans, _rhythm(act.repeat)
    plan = _listed(act.plan, plans, "Plans")
    (waits,) = [one for one in plans if one.id == plan]
    own = replace(known, zone=waits.zone or known.zone)
    at, wall = _at(act.at, act.zone, own) if act.at else (None, None)
    if at is None and repeat is None and not act.until:
        raise _Refusal("it names neither another `at` nor another `repeat` nor `until`")
    zone, here = _iana(act.zone) if act.zone else "", known_zone(own.zone)
    first = at.astimezone(known_zone(zone, own.zone)) if at else fitting(waits.at, here, repeat or "").astimezone(here)
    last = str(waits.until) if waits.until and repeat != "" else ""
    until = _until(act.until or last, first.date())
    return PlanMoved(plan=plan, at=at, zone=zone, repeat=repeat, until=until, wall=wall)


def _cancel(act: _Cancel, known: ActsBasis) -> PlanCancelled:
    plans = known.recollection.plans
    if act.plan.strip(_EDGES).casefold() != "all":
        return PlanCancelled(plans=(_listed(act.plan, plans, "Plans"),))
    asked = tuple([one.id for one in plans if one.is_asked])
    if not asked:
        raise _Refusal("nothing that they asked for waits here")
    return PlanCancelled(plans=asked)


def _know(act: _Know, known: ActsBasis) -> FactKnown:
    me = _person(known)
    about = _present(act.of, known) if act.of else me
    kind: FactKind = next((one for one in get_args(FactKind) if one == act.kind.strip().casefold()), "other")
    keys = act.keys.split(",") if isinstance(act.keys, str) else act.keys
    since = _day(act.since, "since")
    return FactKnown(
        person=about or me,
        kind=kind,
        text=_text(act.text),
        keys=tuple(dict.fromkeys([short for one in keys if (short := _short(str(one)))]))[:MOST_KEYS],
        since=since,
        until=_until(act.until, since),
        of="" if about else _short(act.of),
        instead_of=_fact(act.instead_of, known) if act.instead_of else 0,
    )


def _forget(act: _Forget, known: ActsBasis) -> Forgotten:
    return Forgotten(fact=_fact(act.fact, known)) if act.fact else Forgotten(matter=_matter(act.matter, known))


def _opened(act: _Open, known: ActsBasis) -> MatterOpened:
    when = _day(act.when, "when")
    if known.recollection.dated - known.freed >= MOST_MATTERS:
        raise _Refusal(f"{MOST_MATTERS} matters with a day are open in their life: close one first")
    known.freed -= when is not None
    return MatterOpened(person=_person(known), text=_text(act.text), when=when)


def _closed(act: _Close, known: ActsBasis) -> MatterClosed:
    matter = _matter(act.matter, known)
    known.freed += any(one.when and one.id == matter for one in known.recollection.matters)
    return MatterClosed(matter=matter)


def _moved_to(act: _Zone, known: ActsBasis) -> ZoneSet:
    known.zone = _iana(act.zone)
    return ZoneSet(person=_person(known), zone=known.zone)


_CHECKS: Final[Mapping[type, Callable[[Any, ActsBasis], Act]]] = {
    _Remind: _reminder, _Promise: _promise, _Move: _move, _Cancel: _cancel, _Know: _know, _Forget: _forget,
    _Zone: _moved_to, _Open: _opened, _Close: _closed,
    _NoLonger: lambda act, known: FactEnded(fact=_fact(act.fact, known), why=_cut(act.text)),
}  # fmt: skip


def called_so(name: str, now: Recollection) -> dict[str, str]:
    """Return whom a name may mean, id → their name: one by the short name, else by the whole, else by a part. Pure.

    Whoever speaks, is spoken to, or wrote in the turns that are recalled: all whom a prompt names as present.
    """
    wanted = " ".join(name.split()).casefold()
    here = {one.person: now.called(one) for one in now.perceptions if one.person}
    here |= {one.person: one.name for one in now.people}
    wrote = [e for turn in now.past for e in turn.entries if e.entry_type is EntryType.USER_MESSAGE and e.person]
    there = {one.person or "": one.name or "" for one in wrote if not one.metadata.get("bot")}
    known = {*here.values()}  # somebody with several ids is known here by one of them
    here |= {one: called for one, called in there.items() if one not in here and called not in known}
    shorts = {short_name(one): one for one in (*there, *here)}
    if now.speaker and now.perception.person != now.speaker.person:
        here.pop(now.perception.person, None)
        shorts[short_name(now.perception.person)] = now.speaker.person
    if wanted in shorts:
        return {shorts[wanted]: (there | here)[shorts[wanted]]}
    whole = {one: called for one, called in here.items() if wanted in (called.casefold(), one)}
    return whole or {one: called for one, called in here.items() if wanted in called.casefold().split()}


def _person(known: ActsBasis) -> str:
    """Return whom the turn speaks to."""
    addressee = known.recollection.addressee
    person = addressee.person if addressee else known.recollection.perception.person
    if not person:
        raise _Refusal("there is nobody here whose it would be")
    return person


def _present(name: str, known: ActsBasis) -> str | None:
    """Return the id of somebody here by a name that is theirs alone; None if nobody here is called so."""
    found = called_so(name, known.recollection)
    if len(found) > 1:
        candidates = " or ".join([f"{_quoted(called)} ({short_name(one)})" for one, called in found.items()])
        raise _Refusal(f"{_quoted(name)} may be {candidates}: write which, by the short name in brackets")
    return next(iter(found), None)


def _listed(short: str, listed: Iterable[Any], heading: str) -> int:
    """Return the row of an id that stands in this prompt."""
    wanted = short.strip(_EDGES).casefold()
    for one in listed:
        if wanted and one.short == wanted:  # facts of others stand there without an id
            return int(one.id)
    raise _Refusal(f"{_quoted(short) or 'an empty id'} does not stand under ## {heading} in this prompt")


def _fact(short: str, known: ActsBasis) -> int:
    return _listed(short, known.recollection.known, "Known")


def _matter(short: str, known: ActsBasis) -> int:
    return _listed(short, known.recollection.matters, "Open")


def _text(text: str) -> str:
    said = _cut(text)
    if not any(one.isprintable() for one in said.replace(" ", "")):
        raise _Refusal("its `text` is empty")
    return said


def _cut(text: str) -> str:
    return " ".join(UNSEEN.sub("", text).split())[:TEXT_CHARS].rstrip()


def _iana(name: str) -> str:
    try:
        return zone_name(zone_of(name.strip()))
    except BadConfiguration:
        raise _Refusal(f"there is no zone '{_quoted(name)}': write an IANA name, such as Europe/Rome") from None


def _rhythm(written: str | Sequence[str]) -> str | None:
    """Return a repetition in its one spelling: empty for `none`; None if none was written."""
    if not written:
        return None
    names = written.split(",") if isinstance(written, str) else written
    said = [name for one in names if (name := one.strip(_EDGES).casefold())]
    if said == [NONE]:
        return ""
    if len(said) == 1 and said[0] in RHYTHMS:
        return said[0]
    if set(said) <= set(DAYS):
        return ",".join([day for day in DAYS if day in said])
    raise _Refusal(f"`repeat` is {', '.join(RHYTHMS)}, none, or days such as mon,thu")


def _day(written: str, name: str) -> date | None:
    if not written:
        return None
    found = _INSTANT.fullmatch(written.strip())
    try:
        return date.fromisoformat(found[1] if found else "")
    except ValueError:
        raise _Refusal(f"`{name}` is no day of the calendar: write it as 2026-11-27") from None


def _until(written: str, first: date | None) -> date | None:
    until = _day(written, "until")
    if until and first and until < first:
        raise _Refusal(f"`until` {until} is before its first day")
    return until


def _at(written: str, zone: str, known: ActsBasis, *, noon: bool = False) -> tuple[datetime, datetime | None]:
    """Return the instant that an act names, in UTC, and the wall clock if it has no offset. `noon`: of a date alone."""
    found, now = _INSTANT.fullmatch(written.strip()), known.recollection.now
    if not found:
        raise _Refusal("`at` is not written as 2026-11-27T09:00")
    if not found[2] and not noon:
        raise _Refusal("`at` names no hour: write it as 2026-11-27T09:00")
    try:
        wall = datetime.fromisoformat(f"{found[1]}T{found[2] or '12:00'}")
    except ValueError:
        raise _Refusal(f"`at`: there is no {_short(written)} in the calendar") from None
    if not now.year - 1 <= wall.year <= now.year + 6:  # no clock is reckoned for it
        raise _Refusal(f"`at` {found[1]} is {'past' if wall.year < now.year else 'more than five years away'}")
    here = zone_of(_iana(zone or known.zone))
    at = _with_offset(wall, found[3], here if zone else None) if found[3] else None
    at = at or local_instant(wall.date(), wall.time(), here)
    told = f"`at` {wall:%Y-%m-%d %H:%M}"
    if at < now.replace(second=0, microsecond=0):  # The Present names the minute
        raise _Refusal(f"{told} is past: it is {now.astimezone(here):%Y-%m-%d %H:%M} there")
    if at > now + MOST_AHEAD:
        raise _Refusal(f"{told} is more than five years away")
    return at, None if found[3] else wall


def _with_offset(wall: datetime, written: str, zone: tzinfo | None) -> datetime:
    """Return the instant of a wall clock with an offset. Refused if a zone has another offset then."""
    offset = "+00:00" if written in "Zz" else written
    try:
        at = datetime.fromisoformat(f"{wall.isoformat()}{offset}")
    except ValueError:
        raise _Refusal(f"`at`: there is no offset {written}") from None
    if zone and at.astimezone(zone).utcoffset() != at.utcoffset():
        raise _Refusal(f"the offset {written} is not that of {zone} then: leave one of them out")
    return at.astimezone(UTC)
