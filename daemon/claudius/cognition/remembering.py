"""Decide what a turn keeps as moments, and which lines of memory its prompt shows. Pure but for the look-up.

`commit` calls `kept` for every turn, thought about or not. `attend_to` calls `remember` before every thought. Both work
whether or not the soul feels: they belong to memory. Source: the memory design, sections 1 to 3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from claudius.acts import FactKnown
from claudius.config.schema import Config
from claudius.intent import Intent
from claudius.memory.facts import bears_on, ended_line, keys_of
from claudius.memory.moments import cut
from claudius.memory.ranking import TEXT_CHARS, Floor, Found, Ranked, asked_for, common, questions, rank, stemmed
from claudius.memory.store import Store
from claudius.perception import Kind, MessageExtra, Origin, internal
from claudius.prompt import MONTHS, ago, short_name
from claudius.psyche.context import ANNOUNCED
from claudius.psyche.events import is_trivial
from claudius.recollection import Entry, EntryType, Moment, Recollection, Remembered

BLOCK_TOKENS = 600
"""The most tokens of the moments and facts shown in a prompt."""
FACT_CHARS = 600
"""Room for the lines of facts, in characters."""
LINE_CHARS, BEFORE_CHARS = 320, 160
"""The longest text of a line, and the longest line before it that is shown with it."""
BLOCK_COSTS, LINE_COSTS = 12, 12
"""Tokens of the block's own signs, and of the keys and quotes of a line."""
BEGINS_CHARS = 5
"""The letters by which a word is found in a text: a longer stem may end otherwise than its word does."""
NAME_CHARS = 40
REHEARSAL = "rehearsal"
"""The provider whose lines are fixed: they repeat what was heard and would be found in its place."""
YOU = "you"
"""Who said a line of the soul's own."""
_CHARS_A_TOKEN = 4
_SAID = (Kind.MESSAGE.value, Kind.MENTION.value, Kind.COMMAND.value)


def kept(intent: Intent, recollection: Recollection, soul_name: str) -> Intent:
    """Return the intent with the moments that it adds to memory: all that says something. Pure.

    The keys of a fact are found with the message that told it.
    """
    moments: list[Moment] = []
    told = [one for one in intent.acts if isinstance(one, FactKnown) and one.keys]
    pictures = {one.position: _described(one.extra) for one in recollection.perceptions}
    weight = round(100 * (intent.psyche.importance if intent.psyche and intent.psyche.importance else 0.35))
    is_rehearsed = REHEARSAL in [call.provider for call in intent.calls]
    for entry in intent.entries:
        is_own = entry.entry_type is EntryType.EXTERNAL_DIALOG
        is_posted = is_own and not entry.metadata.get("elsewhere")
        if (is_posted and (is_rehearsed or not intent.utterances)) or not _is_kept(entry, soul_name):
            continue
        moments.append(
            Moment(
                turn=intent.turn,
                at_s=int(entry.at.timestamp()),
                person=intent.person if is_own else entry.person or "",
                name="" if is_own else entry.name or "",
                conversation=intent.conversation,
                audience=intent.audience,
                text="" if is_posted else entry.content[:TEXT_CHARS],
                pictures=pictures.get(entry.position, ""),
                position="" if is_own or len(recollection.perceptions) == 1 else entry.position,
                importance=weight,
                is_own=is_own,
            )
        )
    return replace(intent, moments=tuple(_keyed(moments, told))) if moments else intent


def _keyed(moments: Sequence[Moment], told: Iterable[FactKnown]) -> list[Moment]:
    """Add the keys of each fact to the message that shares the most of its words, the newest of several. Pure."""
    found = list(moments)
    said = [n for n, one in enumerate(found) if not one.is_own]
    for fact in told if said else ():
        stems = frozenset(stemmed(fact.text))
        at = max(said, key=lambda n: (len(stems.intersection(stemmed(found[n].text))), n))
        found[at] = replace(found[at], pictures=f"{found[at].pictures} {keys_of(fact)}".strip())
    return found


def _is_kept(entry: Entry, soul_name: str) -> bool:
    if entry.entry_type is EntryType.EXTERNAL_DIALOG:
        if entry.is_canned or entry.verb == ANNOUNCED:
            return False
    elif (
        entry.entry_type is not EntryType.USER_MESSAGE
        or not entry.person
        or entry.metadata.get("bot")
        or entry.metadata.get("kind", _SAID[0]) not in _SAID
    ):
        return False
    return bool(entry.content.strip()) and not is_trivial(entry.content, soul_name)


def _described(extra: object) -> str:
    """Return the words that describe a message's pictures."""
    files = extra.files if isinstance(extra, MessageExtra) else ()
    return " ".join([str(file.get("alt") or "") for file in files])


async def remember(recollection: Recollection, store: Store, config: Config, soul_name: str) -> Remembered:
    """Look for what bears on this turn, and return the lines of memory to show."""
    heard, perception = _heard(recollection), recollection.perception
    if perception.origin is Origin.INTERNAL:
        perception = replace(perception, text=heard)
    past = recollection.past if recollection.perception.origin is Origin.EXTERNAL else ()
    # the newest message before it, so that "and when was that?" finds something
    before = [one.content for turn in past for one in turn.entries if one.entry_type is EntryType.USER_MESSAGE][-1:]
    asked = asked_for(heard, *before or [""], name=soul_name)
    if not asked:
        return Remembered()
    floor = Floor(config.memory.floor, questions(heard) > 0, frozenset().union(*map(common, [heard, *before])))
    found = await store.moments.remember(perception, asked, recollection, floor)
    return shown(recollection, found, asked, config, floor)


def _heard(recollection: Recollection) -> str:
    """Return what memory is searched for: what was said, or what a perception of the soul's own is about."""
    texts = [
        internal(one).what if one.origin is Origin.INTERNAL else f"{one.text} {_described(one.extra)}".strip()
        for one in recollection.perceptions
    ]
    return "\n".join(texts)


def shown(
    recollection: Recollection, found: Found, asked: Mapping[str, float], config: Config, floor: Floor
) -> Remembered:
    """Return the lines of memory: facts that ended, then the moments, all that bears on what is heard. Pure."""
    memory = config.memory
    rendered = {turn.turn for turn in recollection.past} | {recollection.turn}
    names = {one.person: one.name for one in recollection.people}
    now = recollection.now
    lines: list[Mapping[str, str]] = []
    rows: list[str] = []
    room = FACT_CHARS
    over = [one for one in recollection.ended if one.turn not in rendered and bears_on(one, asked)]
    for fact in sorted(over, key=lambda one: -one.stated_s):
        line = {
            **_when(fact.stated_s, now),
            "from": _called(fact.person, names.get(fact.person, ""), recollection),
            "text": ended_line(fact),
        }
        room -= _cost(line) * _CHARS_A_TOKEN
        if room < 0:
            break
        lines.append(line)
        rows.append(f"ended:{fact.id}")
    left, most = BLOCK_TOKENS - BLOCK_COSTS - sum(map(_cost, lines)), memory.remembered
    is_news = [one for one in found.moments.values() if one.turn not in rendered]
    ranked = rank(asked, found.beyond(rendered), now.timestamp(), most=4 * most, floor=floor) if is_news else ()
    if recollection.listener:  # nobody has just spoken: what is only next to something found has nobody to ask for it
        ranked = tuple([one for one in ranked if one.moment.id in found.hits or one.moment.id in found.nearest])
    taken: set[int] = set()
    for one in ranked:
        if most <= 0 or one.moment.id in taken or one.moment.turn in rendered:
            continue
        line, row = _line(one, asked, taken, rendered, recollection, names)
        if _cost(line) > left:
            continue
        left, most = left - _cost(line), most - 1
        taken |= {one.moment.id} | ({one.before.id} if one.before and "before" in line else set())
        lines.append(line)
        rows.append(row)
    return Remembered(lines=tuple(lines), rows=tuple(rows))


def _line(
    one: Ranked,
    asked: Mapping[str, float],
    taken: set[int],
    rendered: set[str],
    recollection: Recollection,
    names: Mapping[str, str],
) -> tuple[dict[str, str], str]:
    moment, before = one.moment, one.before
    start, at = _start(moment.text, asked), datetime.fromtimestamp(moment.at_s, UTC)
    end = start + LINE_CHARS
    line = {
        **_when(moment.at_s, recollection.now),
        "from": f"I wrote on {at.day} {MONTHS[at.month - 1]}"
        if moment.is_diary
        else YOU
        if moment.is_own
        else _called(moment.person, names.get(moment.person) or moment.name, recollection),
        "text": cut(moment.text, start, end),
    }
    row = f"moment:{moment.id}:{start}:{end}"
    if before and before.id not in taken and before.turn not in rendered and len(before.text) <= BEFORE_CHARS:
        line["before"] = before.text
        row += f" moment:{before.id}:0:{BEFORE_CHARS}"
    return line, row


def _start(text: str, asked: Mapping[str, float]) -> int:
    """Return where the shown part of a text begins, so that it holds most of the words asked for."""
    if len(text) <= LINE_CHARS:
        return 0
    lowered, places = text.lower(), []
    for stem in asked:
        at = lowered.find(begins := stem[:BEGINS_CHARS])
        while at >= 0:
            if not (at and lowered[at - 1].isalnum() and stem.isascii()):  # some scripts have no blanks
                places.append(at)
            at = lowered.find(begins, at + 1)
    places.sort()
    if not places or places[-1] < LINE_CHARS - 20:
        return 0
    room = LINE_CHARS * 3 // 4
    held = [bisect_left(places, place + room) - n for n, place in enumerate(places)]
    first = places[held.index(max(held))]
    begin = max(0, min(first - LINE_CHARS // 8, len(text) - LINE_CHARS))
    blank = text.find(" ", begin, first) if begin else -1
    return blank + 1 if blank >= 0 else begin


def _cost(line: Mapping[str, str]) -> int:
    return LINE_COSTS + sum(map(len, line.values())) // _CHARS_A_TOKEN


def _when(at_s: float, now: datetime) -> dict[str, str]:
    at = datetime.fromtimestamp(at_s, UTC)
    return {"when": at.date().isoformat(), "ago": ago((now - at).total_seconds())}


def _called(person: str, name: str, recollection: Recollection) -> str:
    """Return who is meant: the speaker's name stands for nobody else, nor a person's for the soul. Pure."""
    speaker = recollection.addressee
    is_speaker = speaker is not None and person in (speaker.person, recollection.perception.person)
    name = _name(name or (short_name(recollection.perception.person) if is_speaker else ""))
    is_theirs = speaker is not None and name == _name(speaker.name)
    return f"{name} ({short_name(person)})" if name.casefold() == YOU or (is_theirs and not is_speaker) else name


def _name(name: str) -> str:
    return " ".join(name.split())[:NAME_CHARS] or "someone"
