"""Read a request: what was said now and before, the steps it asks for, what memory holds, and what a message tells.

Only records of the kind `message` count as said; everything else is shown. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from claudius.memory.ranking import stemmed
from claudius.perception import Kind
from claudius.prompt import RecordKind
from claudius.provider import Message, Request
from claudius.providers.rehearsal.lines import FactKind, Lines, plain, say
from claudius.providers.rehearsal.times import instant_of

EDGES = ' \t,;:.!–—-()[]“”"…'
"""Characters stripped from the ends of a clause."""
_CHARS = 4000
"""Only the start of a longer message is read."""
_QUESTIONS = ("?", "？", "؟")
_SENTENCES = re.compile(r"(?<=[.!?。！？؟])\s+|[\n。！？]+")
_RECORD = re.compile(r"<data-([0-9a-f]+)>\n(.*)\n</data-\1>")
_SPOKEN = re.compile(r"<external_dialogue(?:\s[^>]*)?>(.*?)</external_dialogue>", re.DOTALL)
_LT = re.compile(r"[<＜﹤]|&(?:lt|#0*60|#x0*3c);?|\\u003c", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_CURRENT = "## Current Message"


class Short(Struct, frozen=True):
    """One line of `## Plans` or `## Known` that this person may change; its id is `p3` or `f7`."""

    id: str
    text: str


class ReadRequest(Struct, frozen=True, kw_only=True):
    """Everything on which the reply is based. `said`, `spoken`: earlier lines here of the speaker and the soul, in order.

    `raw` is the message (several are joined by a line break; none: `is_inner`), `message` the same without slips of the
    keys; `asked` every word of This Turn that could be a step's name; `done` the acts that an earlier part of this turn
    wrote; `remembered` memory's records; `present` the sentence that names `now`; `document` who the speaker is.
    """

    raw: str
    message: str
    is_inner: bool
    asked: tuple[str, ...]
    done: str
    name: str
    who: str
    said: tuple[str, ...]
    spoken: tuple[str, ...]
    remembered: tuple[Mapping[str, str], ...]
    plans: tuple[Short, ...]
    known: tuple[Short, ...]
    present: str
    now: datetime | None
    due: str
    document: str
    is_first: bool
    summary: str
    title: str


def read(request: Request, lines: Lines) -> ReadRequest:
    """Parse the request of one turn. Pure."""
    opening, history, written = "", request.history, ""
    if len(history) > 1 and _CURRENT in history[-2].content and _CURRENT not in request.tail:
        # a part of this turn was already asked
        opening, written, history = history[-2].content, history[-1].content, history[:-2]
    tail = list(records(f"{opening}\n{request.tail}"))
    before = [record for message in history if message.role == "user" for record in records(message.content)]
    heard = [record for record in tail if record.get("kind") == RecordKind.MESSAGE]
    spoke = {key: str(heard[-1].get(key, "")) if heard else "" for key in ("from", "who")}
    found = {str(record.get("kind")): record for record in tail}
    shown = found.get(RecordKind.MEMORY, {}).get("lines", ())
    folded = [record for record in (*before, *tail) if record.get("kind") == RecordKind.SUMMARY]
    present = f"{opening}\n{request.tail}".partition("## The Present\n")[2].partition("\n")[0].partition(". ")[0]
    turn = request.tail.partition("## This Turn\n")[2].partition("\n## ")[0]
    raw = "\n".join(map(text_of, heard))
    return ReadRequest(
        raw=raw,
        message=swapped(raw[:_CHARS].replace("’", "'"), lines.words.spelled),
        is_inner=not heard,
        asked=tuple(re.findall(r"[a-z]+(?:_[a-z]+)+|\b(?:acts|appraisal)\b", turn)),
        done=next(iter(re.findall(r"<acts>\s*(.*?)\s*</acts>", written, re.DOTALL)), ""),
        name=spoke["from"],
        who=spoke["who"],
        said=tuple(
            [text_of(one) for one in before if one.get("kind") == RecordKind.MESSAGE and one.get("who") == spoke["who"]]
        ),
        spoken=spoken(history),
        remembered=tuple([{key: str(value) for key, value in one.items()} for one in shown if isinstance(one, dict)]),
        plans=_shorts(found, "plans"),
        known=_shorts(found, "known"),
        present=present.rstrip("."),
        now=instant_of(present),
        due="" if heard else text_of(found.get(Kind.SCHEDULED, {})).partition('"')[2].rpartition('"')[0],
        document=request.known,
        is_first=request.is_first,
        summary=text_of(folded[-1]) if folded else "",
        title=next(iter(re.findall(r"^# +(.+?) *$", request.system, re.MULTILINE)), ""),
    )


def records(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records between data markers, in order. Pure."""
    for match in _RECORD.finditer(text):
        try:
            record = json.loads(match[2])
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def spoken(history: Sequence[Message]) -> tuple[str, ...]:
    """Return the soul's own lines in a history, oldest first. Pure."""
    said = [message.content for message in history if message.role == "assistant"]
    return tuple([line.strip() for content in said for line in _SPOKEN.findall(content)])


def quoted(text: str, chars: int) -> str:
    """Reduce foreign text to one line of at most `chars` characters in which no parser finds a tag. Pure."""
    line = _BLANKS.sub(" ", _LT.sub("‹", text)).strip()
    if len(line) <= chars:
        return line
    cut = line[: chars - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[chars // 2 :] else cut).rstrip(" ,;:.") + "…"


def text_of(record: Mapping[str, Any]) -> str:
    """Return a record's text. Pure."""
    return str(record.get("text", ""))


def _shorts(found: Mapping[str, Mapping[str, Any]], kind: str) -> tuple[Short, ...]:
    """Return the lines of a block that bear an id; those of other people bear none."""
    lines = re.findall(r"^([pf]\d+) (.+)$", text_of(found.get(kind, {})), re.MULTILINE)
    return tuple([Short(short, text.removesuffix(" (unchecked)")) for short, text in lines])


def swapped(text: str, words: Mapping[str, str]) -> str:
    """Return a text with words put in place of others. Pure."""
    return re.sub(r"[\w']+", lambda match: words.get(match[0].lower(), match[0]), text)


class Noticed(Struct, frozen=True):
    """A fact that somebody tells: what is booked of it, how `## Known` shows it, and what is said of it to them."""

    fact: FactKind
    words: str
    shown: str
    told: str

    @property
    def text(self) -> str:
        """What is booked: of a name the name alone."""
        return self.words if self.fact.kind == "name" else self.shown

    def is_in(self, one: Short) -> bool:
        """Return whether a line of `## Known` says the same."""
        return plain(one.text).startswith(plain(self.shown)[:-1])


def facts_in(message: str, lines: Lines) -> tuple[Noticed, ...]:
    """Return the facts that a message states about its speaker, in order. Pure."""
    found: dict[str, Noticed] = {}
    for sentence in sentences(message):
        if not (is_question(sentence) or hides(sentence, lines)):
            clauses = filter(None, [_noticed(one, lines) for one in lines.patterns["clause"].split(sentence)[1:]])
            found |= {one.shown.casefold(): one for one in clauses if one.shown.casefold() not in found}
    return tuple(found.values())


def _noticed(clause: str, lines: Lines) -> Noticed | None:
    for fact in lines.words.facts:
        if hit := re.match(rf"(?:{fact.hears})(?![\w'])\s*", clause, re.IGNORECASE):
            words = re.split(fact.until, clause[hit.end() :], maxsplit=1, flags=re.IGNORECASE)[0].strip(EDGES)
            is_unfit = re.match(rf"(?:{fact.but_not})(?![\w'])", words, re.IGNORECASE)
            if words and not is_unfit and re.fullmatch(fact.only, words, re.IGNORECASE | re.DOTALL):
                words, named = quoted(words, 160), hit.groupdict()
                if fact.kind == "name":
                    words = words if words != words.lower() else words.title()
                    return Noticed(fact, words, f"called {words}", say(fact.tells, {"words": words}))
                forms = [swapped(words, one) for one in (lines.words.third_person, lines.words.second_person)]
                kept, told = [
                    say(one, {"words": form, **named})
                    for one, form in zip((fact.keeps, fact.tells), forms, strict=True)
                ]
                return Noticed(fact, words, kept, told)
    return None


def told_of(text: str, lines: Lines) -> str:
    """Return a kept fact as it is said to whom it is about; as it stands where that is not certain. Pure."""
    for fact in lines.words.facts:
        before, _, after = fact.keeps.partition("$words")
        if not after and "$" not in before and text.startswith(before) and fact.kind != "name":
            words = text.removeprefix(before)
            is_certain = not {*re.findall(r"[\w']+", words.lower())} & {*lines.words.third_person.values()}
            return say(fact.tells, {"words": words}) if is_certain else text
    return text


def hides(message: str, lines: Lines) -> bool:
    """Return whether a message seems to hold a secret, which is neither kept nor repeated. Pure."""
    text = plain(message[:_CHARS])
    return any(cue in text for cue in lines.secrets)


def is_open(text: str, seen: ReadRequest, lines: Lines) -> bool:
    """Return whether words may be said again: they hold no secret, and nothing that was to be forgotten. Pure."""
    forget = lines.patterns["forget"]
    gone = [stems for one in seen.said if (asked := forget.match(one)) and (stems := {*stemmed(asked[1])})]
    return not (hides(text, lines) or forget.match(text) or any(stems <= {*stemmed(text)} for stems in gone))


def is_question(message: str) -> bool:
    """Return whether a message ends in a question mark of any script. Pure."""
    return message.rstrip(EDGES).endswith(_QUESTIONS)


def sentences(message: str) -> Iterator[str]:
    """Yield the sentences of a message. Pure."""
    yield from filter(None, map(str.strip, _SENTENCES.split(message)))


def stems(text: str, lines: Lines) -> frozenset[str]:
    """Return the stems of the words by which something is found. Pure."""
    small = lines.words.small_words.split()
    return frozenset(stemmed(" ".join(word for word in plain(text)[1:-1].split() if word not in small)))
