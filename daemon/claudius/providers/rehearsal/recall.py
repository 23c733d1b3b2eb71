"""Answer a question from what memory holds: the asker's own words and facts, others' words by their name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import chain

from msgspec import Struct

from claudius.memory.ranking import stemmed
from claudius.providers.rehearsal.lines import Lines, plain, say
from claudius.providers.rehearsal.reading import ReadRequest, is_open, is_question, quoted, stems, told_of

MOST, MOST_LIMITS = 2, 6
WHOLE, MORE, HALF, MOST_PLAIN = 1.0, 0.6, 0.5, 2
"""The share of a question's stems that an answer holds: all of them; what is enough for a long question; for others."""


class Candidate(Struct, frozen=True):
    """Something that may answer. `form`: `known` of the speaker, said `here`, before (`speaker`), by the `soul`, an `other`."""

    form: str
    text: str
    stems: frozenset[str]
    by: str = ""
    when: str = ""


def recall(seen: ReadRequest, lines: Lines, cue: str) -> tuple[str, str]:
    """Return the section that answers a question and what is read out, beyond the words of `cue`; "" for none. Pure."""
    text = plain(seen.message)
    every = stems(text.replace(cue, " ") if cue else text, lines)
    wanted = every - frozenset(stemmed(lines.words.asks_with)) or (frozenset() if cue else every)
    is_own = lines.patterns["said by soul"].search(text) is not None
    if not wanted or (lines.patterns["of soul"].search(text) and not is_own):
        return "", ""
    is_theirs = any(f" {word} " in text for word in (*lines.words.third_person, "we", "our", "us"))
    found = [one for one in _candidates(seen, lines) if _may_answer(one, text, is_own=is_own, is_theirs=is_theirs)]
    share = {one: len(one.stems & wanted) / len(wanted) for one in found}
    best = max(share.values(), default=0.0)
    if best < (HALF if is_theirs or len(wanted) <= MOST_PLAIN else MORE):
        return ("not remembered" if is_theirs and not lines.patterns["advice"].search(text) else ""), ""
    fitting = [one for one in found if share[one] == best]
    fitting = [one for one in fitting if one.form == "known"] or fitting
    section = "recalled of mine" if is_own else "recalled" if is_theirs or best == WHOLE else "recalled beside"
    section = "recalled of others" if all(one.form == "other" for one in fitting) else section
    said = [
        say(lines.words.recalled[one.form], {"words": one.text, "when": one.when, "name": one.by}) for one in fitting
    ]
    return section, "\n".join([*dict.fromkeys(said)][:MOST])


def _may_answer(one: Candidate, text: str, *, is_own: bool, is_theirs: bool) -> bool:
    if one.form == "other":
        return not is_own and any(len(word) > 2 and plain(one.by).startswith(f"^ {word} ") for word in text.split())
    return is_own == (one.form == "soul") and (is_theirs or is_own or one.form != "known")


def _candidates(seen: ReadRequest, lines: Lines) -> Iterator[Candidate]:
    """Yield what may answer, and no secret: what is kept, words said here and before, the newest first."""
    for kept in re.findall(r"^- (?:p\d+ )?(.+?)(?: \([fm]\d+\))?$", seen.document, re.MULTILINE):
        yield Candidate("known", quoted(told_of(kept, lines), 240), frozenset(stemmed(kept)))
    here = [{"text": text, "from": seen.who} for text in reversed(seen.said)]
    for line in chain(here, seen.remembered):
        by, text = line.get("from", ""), line.get("text", "")
        form = (
            "soul"
            if by == "you"
            else "speaker"
            if by in (seen.name, seen.who, f"{seen.name} ({seen.who})")
            else "other"
        )
        when = ", ".join(filter(None, [_date(line.get("when", "")), line.get("ago", "")]))
        if is_open(text, seen, lines) and not is_question(text):
            found = frozenset(stemmed(text, by if form == "other" else ""))
            yield Candidate(
                form if when or form != "speaker" else "here", quoted(text, 240), found, quoted(by, 40), when
            )


def _date(when: str) -> str:
    try:
        return f"{date.fromisoformat(when):%-d %B %Y}"
    except ValueError:
        return ""


def limits(seen: ReadRequest, lines: Lines) -> list[str]:
    """Return what is known that the speaker must not, the newest first. Pure."""
    known = sorted(seen.known, key=lambda one: -int(one.id[1:]))
    return [one.text for one in known if lines.patterns["limit"].search(one.text)][:MOST_LIMITS]


def warned(seen: ReadRequest, lines: Lines) -> str:
    """Return what is known that the speaker must not, if what they say now touches it; "" if nothing does. Pure."""
    heard, said = frozenset(stemmed(seen.message)), plain(seen.message)
    for text in limits(seen, lines):
        value = lines.patterns["limit words"].sub(" ", text)
        if not heard.isdisjoint(stemmed(value)) and plain(value)[1:-1] not in said:
            return told_of(text, lines)
    return ""
