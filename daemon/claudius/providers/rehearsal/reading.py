"""Read a request: what was said, is asked and kept, what a message tells of its speaker, what answers a question. Pure.

Only records of the kind `message` count as said; everything else is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

from claudius.memory.ranking import stemmed
from claudius.perception import Kind
from claudius.prompt import RecordKind
from claudius.provider import Message, Request
from claudius.providers.rehearsal.lines import FactKind, Lines, plain, say

_CHARS = 4000
"""Only the start of a longer message is read."""
_CURRENT = "## Current Message"
_EDGES = ' \t,;:.!–—-()[]“”"…'
_LT = re.compile(r"[<＜﹤]|&(?:lt|#0*60|#x0*3c);?|\\u003c", re.IGNORECASE)
_MORE, _HALF = 0.6, 0.5
"""The share of a question's stems that an answer must hold; of one that is short or of the speaker the second."""


class ReadRequest:
    """Everything on which the reply is based; `said` and `spoken` are earlier lines here, oldest first."""

    def __init__(self, request: Request, lines: Lines) -> None:
        opening, history, written = "", request.history, ""
        if len(history) > 1 and _CURRENT in history[-2].content and _CURRENT not in request.tail:
            # a part of this turn was asked before
            opening, written, history = history[-2].content, history[-1].content, history[:-2]
        shown = f"{opening}\n{request.tail}"
        tail = list(records(shown))
        before = [record for message in history if message.role == "user" for record in records(message.content)]
        found = {str(record.get("kind")): record for record in tail}
        heard = [record for record in tail if record.get("kind") == RecordKind.MESSAGE]
        self.is_inner = not heard  # nobody spoke: it comes from the soul's own schedule or occasion
        raw = "\n".join(map(text_of, heard))[:_CHARS].replace("’", "'")
        self.message = _swapped(raw, lines.words.spelled)
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
        self.now = (
            datetime.strptime(now[1] + now[2], "%d %b%Y, %H:%M").replace(tzinfo=ZoneInfo(now[3])) if now else None
        )
        self.due = "" if heard else text_of(found.get(Kind.SCHEDULED, {})).partition('"')[2].rpartition('"')[0]
        self.summary = "".join([text_of(one) for one in (*before, *tail) if one.get("kind") == RecordKind.SUMMARY][-1:])
        self.title = "".join(re.findall(r"^# +(.+?) *$", request.system, re.MULTILINE)[:1])
        self.document, self.is_first = request.known, request.is_first
        self.limits = [text for text in self.known.values() if lines.patterns["limit"].search(text)][:6]
        asked = filter(None, map(lines.patterns["forget"].match, self.said))
        self.gone = [words for one in asked if (words := {*stemmed(one[1])})]


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
    if len(line) <= chars:
        return line
    cut = line[: chars - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[chars // 2 :] else cut).rstrip(" ,;:.") + "…"


def _swapped(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"[\w']+", lambda match: words.get(match[0].lower(), match[0]), text)


def is_question(message: str) -> bool:
    """Return whether a message ends in a question mark of any script. Pure."""
    return message.rstrip(_EDGES).endswith(("?", "？", "؟"))


def sentences(message: str) -> list[str]:
    """Return the sentences of a message. Pure."""
    return [*filter(None, map(str.strip, re.split(r"(?<=[.!?。！？؟])\s+|[\n。！？]+", message)))]


def hides(message: str, lines: Lines) -> bool:
    """Return whether a message seems to hold a secret, which is neither kept nor repeated. Pure."""
    text = plain(message[:_CHARS])
    return any(cue in text for cue in lines.secrets)


def stems(text: str, lines: Lines) -> frozenset[str]:
    """Return the stems of the words by which something is found. Pure."""
    small = lines.words.small_words.split()
    return frozenset(stemmed(" ".join(word for word in plain(text)[1:-1].split() if word not in small)))


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
    if best < (_HALF if is_theirs or len(wanted) < 3 else _MORE):
        return ("not remembered" if is_theirs and not lines.patterns["advice"].search(text) else ""), ""
    fitting = [one for one in found[best] if one[0] == "known"] or found[best]
    section = "recalled of mine" if is_own else "recalled" if is_theirs or best == 1.0 else "recalled beside"
    section = "recalled of others" if all(form == "other" for form, _ in fitting) else section
    return section, "\n".join([*dict.fromkeys([line for _, line in fitting])][:2])


def _candidates(seen: ReadRequest, lines: Lines) -> Iterator[tuple[str, str, frozenset[str], str]]:
    """Yield what may answer, and no secret: whose it is in form and name, its stems, and how it is read out."""
    forms = lines.words.recalled
    for kept in re.findall(r"^- (?:p\d+ )?(.+?)(?: \([fm]\d+\))?$", seen.document, re.MULTILINE):
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
    is_gone = lines.patterns["forget"].match(text) or any(words <= {*stemmed(text)} for words in seen.gone)
    return not (is_gone or hides(text, lines))


def warned(seen: ReadRequest, lines: Lines) -> str:
    """Return what is known that the speaker must not, if what they say now touches it; "" if nothing does. Pure."""
    heard, said = {*stemmed(seen.message)}, plain(seen.message)
    for text in seen.limits:
        value = lines.patterns["limit words"].sub(" ", text)
        if heard & {*stemmed(value)} and plain(value)[1:-1] not in said:
            return told_of(text, lines)
    return ""
