"""Track arcs: recurring subjects, created by three messages, strengthened by repetition, weakened by silence. Pure.

Source: the psyche design, section 4.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, combinations
from math import log1p
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from claudius.memory.ranking import FUNCTION_WORDS_OF, language_of
from claudius.psyche.bands import arc_band
from claudius.psyche.events import HIT
from claudius.psyche.state import DAY_S, HOUR_S, drifted
from claudius.psyche.words import content, overlap, stem, stems, tokens
from claudius.psyche_types import Arc

HALF_S = 48 * HOUR_S
BORN, DEAD = 0.30, 0.05
MOST, MOST_STEMS, LABEL_WORDS = 12, 12, 3
ALIKE, ALIKE_WITHIN_S, ALIKE_COUNT = 0.50, 7 * DAY_S, 3
LEAST_STEMS = 2
TALK = 6
"""How many of the latest messages, this one included, are searched for their common subject."""
EMPTY, COMMON, TELLING = 3, 10, 20
"""What each repetition of a word counts for a subject: an empty one, a common one (`everyday.toml`), any other."""
REFERENCE = 4
"""What a message counts for it that refers back, or has at most `FEW_STEMS` stems."""
FEW_STEMS = 3
LEAST_SAID, PER_LENGTH, FREE = 16, 20.0, 43.0
"""The least count for n stems is LEAST_SAID, and PER_LENGTH·ln(1 + n) − FREE: long talks repeat words by chance."""
REFERS_WITHIN_S = HOUR_S
"""A message can refer back to one that is at most this old."""
OPENING_WORDS = 6
REFERRING = frozenset(
    """it its it's that that's this they they're them their he he's him his she she's her hers one ones there those
    these so then same too also again still""".split()  # noqa: SIM905 - a list of words reads best as words
)
_HIRAGANA = re.compile("[\u3040-\u309f]+")
"""Pairs of these are endings and particles."""
LOOKED_BACK = 60
"""How many earlier messages are searched when an arc may be created."""


class Said(Struct, frozen=True):
    """An earlier message: its text, time and author."""

    text: str
    at_s: float
    person: str
    kept: frozenset[str] = frozenset()
    """The content stems stored with it; empty = they were not stored."""

    def stems(self, soul_name: str) -> frozenset[str]:
        """Return its content stems without the soul's name. Pure."""
        if self.kept and not (soul_name and soul_name in self.text.lower()):
            return self.kept
        return stems(self.text, soul_name)


def advance_arcs(arcs: Sequence[Arc], at_s: float) -> tuple[Arc, ...]:
    """Decay arcs to an instant and drop those that have faded out. Pure."""
    faded = [
        replace(arc, at_s=at_s, intensity=drifted(arc.intensity, 0.0, HALF_S, at_s - arc.at_s))
        if at_s > arc.at_s
        else arc
        for arc in arcs
    ]
    return tuple([arc for arc in faded if arc.intensity >= DEAD])


def matches(arcs: Sequence[Arc], found: frozenset[str]) -> tuple[tuple[str, float], ...]:
    """Return the arcs that a text is about, each with its match score. Pure."""
    matched = [(arc.arc, overlap(found, arc.stems)) for arc in arcs] if found else []
    return tuple([(name, match) for name, match in matched if match >= HIT])


def reinforce(arcs: Sequence[Arc], found: Mapping[str, float], importance: float, feeling: float) -> tuple[Arc, ...]:
    """Strengthen the arcs that an event is about, and let how they felt fade. Pure."""
    felt = [replace(arc, bias=0.8 * arc.bias + 0.2 * feeling) if arc.arc in found else arc for arc in arcs]
    return strengthened(felt, found, importance)


def strengthened(arcs: Sequence[Arc], found: Mapping[str, float], importance: float) -> tuple[Arc, ...]:
    """Strengthen the arcs that an event is about by how much it matters. Pure."""
    warmed = [
        replace(arc, intensity=arc.intensity + (1.0 - arc.intensity) * 0.7 * importance * min(1.0, found[arc.arc]))
        if arc.arc in found
        else arc
        for arc in arcs
    ]
    return tuple([replace(arc, band=arc_band(arc)) if arc.arc in found else arc for arc in warmed])


def birth(turn: str, now: Said, earlier: Sequence[Said], audience: str, soul_name: str) -> Arc | None:
    """Return a new arc if this message continues a subject of the last few, or is like two earlier ones. Pure."""
    mine = stems(now.text, soul_name)
    if len(mine) < LEAST_STEMS:
        return None
    recent = [one for one in earlier[-LOOKED_BACK:] if now.at_s - one.at_s <= ALIKE_WITHIN_S]
    if len(recent) < ALIKE_COUNT - 1:
        return None
    found = _thread([*recent[1 - TALK :], now], soul_name) or _alike(now, mine, recent, soul_name)
    if found is None:
        return None
    said, shared = found[0], frozenset([one for one in found[1] if worth(one) >= COMMON])
    texts = (now.text, *[one.text for one in reversed(said) if one is not now])
    words = [(word, one) for text in texts for word, one in content(text, soul_name)]
    spoken = {one: word for word, one in reversed(words) if one in shared and word.isalpha()}
    known = dict.fromkeys(one for _, one in words if one in spoken)
    return Arc(
        arc=turn,
        label=" ".join([spoken[one] for one in [*known][:LABEL_WORDS]]),
        stems=tuple(sorted(shared))[:MOST_STEMS],
        at_s=now.at_s,
        intensity=BORN,
        sources=(audience,),
        persons=tuple(
            dict.fromkeys(
                one.person for one in (now, *said) if one.person and not one.stems(soul_name).isdisjoint(shared)
            )
        ),
        band=1,
    )


Subject = tuple[list[Said], frozenset[str]]
"""The messages about a subject, oldest first, and the stems that they share."""


def _thread(talk: Sequence[Said], soul_name: str) -> Subject | None:
    """Return the subject that the last of some messages continues, if three of them are about it and count enough.

    Each repetition of a word counts what the word is worth. A message next to one that shares such a word belongs to
    the same subject if it refers back (`it`, `she`) or has few words of its own.
    """
    heard = [one.stems(soul_name) for one in talk]
    counted = Counter(chain.from_iterable(heard))
    shared = {one: worth(one) for one, count in counted.items() if count > 1}
    if max(shared.values(), default=0) >= COMMON:
        for one in _function_stems([one.text for one in talk]):
            shared.pop(one, None)
    if max(shared.values(), default=0) < COMMON:
        return None
    sharing = {at for at, its in enumerate(heard) if not shared.keys().isdisjoint(its)}
    members, said = set(sharing), sum([value * (counted[one] - 1) for one, value in shared.items()])
    for at, before in [(at, at - 1) for at in range(1, len(talk)) if len({at, at - 1} & sharing) == 1]:
        is_short = at not in sharing and len(heard[at]) <= FEW_STEMS
        if (is_short or refers(talk[at].text)) and talk[at].at_s - talk[before].at_s <= REFERS_WITHIN_S:
            members |= {at, before}
            said += REFERENCE
    length = sum(map(len, heard))
    if len(members) < ALIKE_COUNT or len(talk) - 1 not in members:
        return None
    if said < max(LEAST_SAID, PER_LENGTH * log1p(length) - FREE):
        return None
    return [talk[at] for at in sorted(members)], frozenset(shared)


def _alike(said: Said, mine: frozenset[str], recent: Sequence[Said], soul_name: str) -> Subject | None:
    """Return the subject that a message shares with two earlier ones, if all three are alike in most of their words."""
    alike = [
        (one, found)
        for one in recent
        if len(found := one.stems(soul_name)) >= LEAST_STEMS
        and not mine.isdisjoint(found)
        and overlap(mine, found) >= ALIKE
    ]
    for (one, its), (other, others) in combinations(alike[-8:], ALIKE_COUNT - 1):
        shared = (mine & its & others or mine & its) - _function_stems([said.text])
        if overlap(its, others) >= ALIKE and max(map(worth, shared), default=0) >= COMMON:
            return [one, other], shared
    return None


def _function_stems(texts: Sequence[str]) -> frozenset[str]:
    """Return the stems of the function words of a talk's language; none for English, whose texts are read without."""
    language = language_of("".join(texts).lower(), [token.word for text in texts for token in tokens(text)])
    return frozenset([stem(word) for word in FUNCTION_WORDS_OF.get(language, ())])


@cache
def _everyday() -> tuple[frozenset[str], frozenset[str]]:
    told = tomllib.loads(Path(__file__).with_name("everyday.toml").read_text("utf-8"))
    empty, common = (frozenset([_root(stem(word)) for word in told[name].split()]) for name in ("empty", "common"))
    return empty, common


@lru_cache(maxsize=4096)
def worth(found: str) -> int:
    """Return how much a stem says about the subject of a conversation. Pure; results are cached."""
    empty, common = _everyday()
    root = _root(found)
    if root in empty or _HIRAGANA.fullmatch(found):
        return EMPTY
    return COMMON if root in common else TELLING


def _root(found: str) -> str:
    """Return a stem without a final `e`, which only some forms of a word keep."""
    return found[:-1] if found.endswith("e") and len(found) > 3 else found


def refers(text: str) -> bool:
    """Return whether a message refers back in its first words. Pure."""
    return not REFERRING.isdisjoint([token.word for token in tokens(text)[:OPENING_WORDS]])


def with_birth(arcs: Sequence[Arc], born: Arc | None, most: int = MOST) -> tuple[Arc, ...]:
    """Add a new arc unless one of its place is about the same; past `most` the weakest is dropped. Pure."""
    if born is None or any(
        arc.arc == born.arc
        or (
            arc.sources == born.sources
            and (
                arc.label == born.label or min(overlap(born.stems, arc.stems), overlap(arc.stems, born.stems)) >= ALIKE
            )
        )
        for arc in arcs
    ):
        return tuple(arcs)
    strongest = sorted((*arcs, born), key=lambda arc: -arc.intensity)[:most]
    return tuple(arc for arc in (*arcs, born) if arc in strongest)
