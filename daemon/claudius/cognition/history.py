"""Render past turns as messages. Equal values give equal bytes, so the prompt's history only grows at its end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from claudius.cognition.reply.tags import TOOL_USE, escape_heads
from claudius.cognition.steps import STEPS, answered
from claudius.perception import Kind, MessageExtra, Origin, Perception, ToolExtra, internal
from claudius.prompt import RecordKind, Scalar, data_line, datamark, fence, short_name, valid
from claudius.provider import Message, Profile
from claudius.recollection import (
    RECEIPTS,
    Entry,
    EntryType,
    Intuition,
    LeftOut,
    PastTurn,
    Recollection,
    Shown,
    Summary,
    once,
)
from claudius.shown import Quoted

_STEP_OF = {
    EntryType.INTERNAL_MONOLOGUE: "internal_monologue",
    EntryType.EXTERNAL_DIALOG: "external_dialogue",
    EntryType.TOOL_USE: TOOL_USE,
}
_HEARD = (EntryType.USER_MESSAGE, EntryType.EVENT, EntryType.DAIMON_SPEECH)
_ORDER = {name: place for place, name in enumerate(STEPS)}

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_STRUCTURE = re.compile(r"<(?=[|/!a-zA-Z_\uff5c])|\[(?=/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL_))")
"""The beginning of what a chat template, or this program, might take for a turn, a role or a section."""

REACTION = RecordKind.REACTION.value
_NO_EXTRA = MessageExtra()
MARKS = ("edited", "deleted", "removed")
"""What happened to a message or a reaction after it was posted."""

MESSAGE_CHARS = 16_000
"""Of a longer message every prompt shows the beginning and the end, when heard and later (4,000 tokens)."""
LEAST_QUOTED = 200
"""The least that is shown of each text that a message shows, however many there are."""
END_SHARE = 4
"""The share of what is shown of such a message that is its end: one part of so many."""
OTHER_MODEL_CHARS = 1600
"""The maximum length shown of a model of another audience (400 tokens)."""


def message_record(
    person: str | None, name: str | None, text: str, *, is_bot: bool = False, chars: int = MESSAGE_CHARS
) -> dict[str, Scalar]:
    """Return the data record of one message, with at most `chars` characters of its text. Pure."""
    record: dict[str, Scalar] = {"kind": RecordKind.MESSAGE}
    if person:
        record["who"] = short_name(person)
    if name:
        record["from"] = name
    if is_bot:
        record["bot"] = True
    return record | _capped(text, chars)


def _capped(text: str, chars: int = MESSAGE_CHARS) -> dict[str, Scalar]:
    if len(text) <= chars:
        return {"text": text}
    end = chars // END_SHARE
    return {"text": text[: chars - end], "cut": len(text) - chars, "end": text[len(text) - end :]}


def perception_record(perception: Perception, name: str, chars: int = MESSAGE_CHARS) -> dict[str, Scalar]:
    """Return the data record of a perception, said by a `name`, with at most `chars` characters of its text. Pure."""
    if isinstance(perception.extra, ToolExtra):
        return tool_record(perception.text, asdict(perception.extra), chars)
    if perception.kind is Kind.NEWS:
        news = internal(perception)
        record = message_record(None, news.by, datamark(perception.text), is_bot=news.is_message, chars=chars)
        return record if news.is_message else record | {"kind": RecordKind.NEWS}
    if perception.origin is Origin.INTERNAL:
        return {"kind": perception.kind.value, **_capped(perception.text, chars)}
    return message_record(perception.person, name, perception.text, is_bot=perception.is_bot, chars=chars)


def heard_records(recollection: Recollection, chars: int = MESSAGE_CHARS) -> list[dict[str, Scalar]]:
    """Return the records of what was heard: of each message what it shows, then its words, then its files. Pure.

    `chars`: the most of each message's text, and of all that they show together; of too many, the newest are shown.
    """
    perceptions = recollection.perceptions
    said = [(one, one.extra if isinstance(one.extra, MessageExtra) else _NO_EXTRA) for one in perceptions]
    each = max(LEAST_QUOTED, chars // max(1, sum([len(extra.shown) for _, extra in said])))
    left, newest = max(1, chars // LEAST_QUOTED), list[Sequence[Quoted]]()
    for _, extra in reversed(said):
        newest.append(extra.shown[max(0, len(extra.shown) - left) :])
        left -= len(newest[-1])
    return [
        record
        for (perception, extra), shown in zip(said, reversed(newest), strict=True)
        for record in (
            *[_quoted_record(one, each) for one in shown],
            perception_record(perception, recollection.called(perception), chars),
            *[one.record() for one in extra.read],
        )
    ]


def lengths(perceptions: Sequence[Perception]) -> tuple[int, ...]:
    """Return how long the text of each message is, and at last all that they show together. Pure."""
    extras = [one.extra for one in perceptions if isinstance(one.extra, MessageExtra)]
    shown = [len(text.text) for extra in extras for text in extra.shown]
    return (*[len(one.text) for one in perceptions], sum(shown))


def _quoted_record(one: Quoted, chars: int) -> dict[str, Scalar]:
    record: dict[str, Scalar] = {"kind": RecordKind.SHOWN, "how": one.how.value}
    if one.is_ours:
        record["own"] = True
    elif one.person:
        record["who"] = short_name(one.person)
    if one.name:
        record["from"] = one.name
    if one.is_bot and not one.is_ours:
        record["bot"] = True
    return record | ({"unread": one.unread} if one.unread else _capped(one.text, chars))


def feels(steps: Sequence[str]) -> bool:
    """Return whether a turn that asks these steps feels a whisper, because it thinks before it speaks. Pure."""
    return "internal_monologue" in steps


def intuition_record(intuition: Intuition) -> dict[str, Scalar]:
    """Return the data record of a whisper. Pure."""
    return {"kind": RecordKind.INTUITION, "text": f"{intuition.daimon.capitalize()} whispers: {intuition.text}"}


def shown_record(shown: Shown) -> dict[str, Scalar]:
    """Return the data record of a user model: the text, or `above` for a pointer to an earlier copy. Pure."""
    record: dict[str, Scalar] = {
        "kind": RecordKind.USER_MODEL,
        "who": short_name(shown.person),
        "version": shown.version,
    }
    if shown.pointer:
        return record | {"above": True}
    if shown.writable:
        record["writable"] = True
    text = shown.text if shown.writable else shown.text[:OTHER_MODEL_CHARS]
    return record | {"text": text} if shown.version else record


def _entry_record(entry: Entry) -> dict[str, Scalar]:
    if entry.entry_type is EntryType.DAIMON_SPEECH:
        return {"kind": RecordKind.DAIMON, "from": entry.name or "", "text": entry.content}
    if entry.entry_type is EntryType.PERCEPTION:
        return {"kind": str(entry.metadata.get("kind", "perception")), **_capped(entry.content)}
    record = message_record(entry.person, entry.name, entry.content, is_bot=bool(entry.metadata.get("bot")))
    if entry.metadata.get("kind") in (REACTION, RecordKind.NEWS):
        record["kind"] = str(entry.metadata["kind"])
    marks: dict[str, Scalar] = {mark: True for mark in MARKS if entry.metadata.get(mark)}
    said = _capped(entry.content)
    return {key: value for key, value in record.items() if key not in said} | marks | said


def section(tag: str, content: str, verb: str | None = None) -> str:
    """Write one canonical section; any of our tags inside it are escaped. Pure."""
    head = f'<{tag} verb="{verb}">' if verb else f"<{tag}>"
    return f"{head}{escape_heads(content)}</{tag}>"


TOOL_CHARS = 1500
"""The most that is shown later of what a tool gave."""


def tool_record(text: str, about: Mapping[str, Any], chars: int = MESSAGE_CHARS) -> dict[str, Scalar]:
    """Return the data record of what a tool gave, of which call and in which state; 0 `chars` = only how much. Pure."""
    named = {name: str(about[name]) for name in ("call", "tool", "state") if about.get(name)}
    shown = datamark(text) if about.get("third") else text
    return {"kind": RecordKind.TOOL, **named, **(_capped(shown, chars) if chars else {"chars": len(text)})}


class Fixed(Struct, frozen=True):
    """The messages and size of one past turn, computed once from that turn alone."""

    messages: tuple[Message, ...]
    tokens: int
    """Estimated, see `tokens_of`."""
    chars: int


def aged(past: PastTurn) -> Fixed:
    """Render a past turn that is not the newest: of what third parties' tools gave, only that they did. Pure."""
    if not [one for one in past.entries if one.entry_type is EntryType.TOOL_RESULT and one.metadata.get("third")]:
        return once(past, fixed)
    return fixed(past, is_aged=True)


def fixed(past: PastTurn, *, is_aged: bool = False) -> Fixed:
    """Render one past turn, `once`: shown models and messages as the user, its own sections as the assistant. Pure.

    What a tool gave stands after the section that asked for it, as the user.
    """
    heard = [fence(data_line(shown_record(shown)), past.nonce) for shown in past.shown if not shown.pointer]
    heard += [fence(data_line(_entry_record(e)), past.nonce) for e in past.entries if e.entry_type in _HEARD]
    inner = [
        fence(data_line(_entry_record(e)), past.nonce) for e in past.entries if e.entry_type is EntryType.PERCEPTION
    ]
    sections: list[tuple[int, str]] = []
    own: list[Message] = []
    place = 0
    for entry in past.entries:
        if entry.is_canned:
            continue
        if entry.entry_type is EntryType.TOOL_RESULT:
            record = tool_record(
                entry.content, entry.metadata, 0 if is_aged and entry.metadata.get("third") else TOOL_CHARS
            )
            own += [_said(inner, sections), Message("user", fence(data_line(record), past.nonce))]
            inner, sections = [], []
            continue
        step, verb, content = _STEP_OF.get(entry.entry_type, ""), entry.verb, entry.content
        if entry.entry_type is EntryType.MENTAL_QUERY:
            step, verb = str(entry.metadata.get("query", "")), None
            if step != "mental_query" and "result" in entry.metadata:
                content = str(bool(entry.metadata.get("result"))).lower()
        if named := answered(
            entry.entry_type, entry.metadata
        ):  # one of the owner's own, which stands where it was asked
            sections.append((place, section(named, content)))
        elif step in _ORDER:
            place = _ORDER[step]
            sections.append((place, section(step, content, verb)))
    receipts = [line for e in past.entries for line in e.metadata.get(RECEIPTS, ())]
    done = data_line({"kind": RecordKind.RECEIPTS, "text": "\n".join(receipts)})
    turn = (
        Message("user", "\n".join(heard)),
        *own,
        _said(inner, sections),
        Message("user", fence(done, past.nonce) if receipts else ""),
    )
    messages = tuple([message for message in turn if message.content])
    chars = sum([len(message.content) for message in messages])
    return Fixed(messages, sum([tokens_of(message.content) for message in messages]), chars)


def said_plainly(text: str) -> str:
    """Write what somebody said so that it begins no role, section or line of another speaker."""
    clean = _STRUCTURE.sub(lambda found: found[0] + " ", _UNSEEN.sub("", valid(text)))
    return clean.strip().replace("\n", "\n  ")


def spoken_by(name: str, text: str) -> str:
    """Return the turn of one speaker; of one without a name, the words alone. Pure."""
    called = " ".join(said_plainly(name).split()).replace(":", "")
    return f"{called}: {said_plainly(text)}" if called else said_plainly(text)


def plainly(past: PastTurn, *, is_alone: bool = False) -> Fixed:
    """Render one past turn as two: what was heard, each with its speaker, and what the soul said.

    `is_alone`: nobody else can speak there, so the speaker needs no name; a daimon keeps its own.
    """
    heard = []
    for one in past.entries:
        if one.entry_type in _HEARD:
            is_named = not is_alone or one.entry_type is EntryType.DAIMON_SPEECH
            heard.append(spoken_by((one.name or "") if is_named else "", whole_text(_capped(one.content))))
    said = [
        said_plainly(one.content)
        for one in past.entries
        if one.entry_type is EntryType.EXTERNAL_DIALOG and not one.is_canned
    ]
    turn = (Message("user", "\n".join(heard)), Message("assistant", "\n".join(said)))
    messages = tuple([message for message in turn if message.content])
    chars = sum([len(message.content) for message in messages])
    return Fixed(messages, sum([tokens_of(message.content) for message in messages]), chars)


def plainly_alone(past: PastTurn) -> Fixed:
    """Render one past turn of a talk of two."""
    return plainly(past, is_alone=True)


def whole_text(record: Mapping[str, Scalar]) -> str:
    """Return the text of a record, with the place where it was cut. Pure."""
    return f"{record['text']} … {record['end']}" if "end" in record else str(record.get("text", ""))


def rendered(past: PastTurn, profile: Profile, *, is_newest: bool = True, is_alone: bool = False) -> Fixed:
    """Render one past turn for a model of this profile, once. Pure."""
    if profile == "plain":
        return once(past, plainly_alone if is_alone else plainly)
    return once(past, fixed if is_newest else aged)


def _said(inner: list[str], sections: list[tuple[int, str]]) -> Message:
    return Message("assistant", "\n".join([*inner, *[text for _, text in sorted(sections, key=itemgetter(0))]]))


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text. Pure.

    Four characters of ASCII are about one token. A character of another script is nearer to one of its own: about a
    token for three bytes in UTF-8, which is one letter of Chinese or Japanese and one and a half of Russian.
    """
    if text.isascii():
        return len(text) // 4
    plain = len(text.encode("ascii", "ignore"))
    return plain // 4 + (len(text.encode("utf-8", "replace")) - plain) // 3


def render_summary(summary: Summary) -> Message:
    """Render the summary as one fenced user line. Pure."""
    return Message("user", fence(data_line({"kind": RecordKind.SUMMARY, "text": summary.text}), summary.nonce))


def render_left_out(left_out: LeftOut) -> Message:
    """Render the fixed line for turns that are neither shown nor summarised. Pure."""
    record: dict[str, Scalar] = {
        "kind": RecordKind.LEFT_OUT,
        "turns": left_out.count,
        "first": left_out.first_at.date().isoformat(),
        "last": left_out.last_at.date().isoformat(),
    }
    return Message("user", data_line(record))


def merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join neighbouring messages of the same role with a blank line. Pure."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1].role == message.role:
            out[-1] = Message(message.role, f"{out[-1].content}\n\n{message.content}")
        else:
            out.append(message)
    return tuple(out)
