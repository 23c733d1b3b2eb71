"""Choose what to search for, and rank the moments found. Pure.

The score is BM25 on the name and the text, half as much on that with the moments before and after it, divided by the
best; then a share of the neighbours' scores, a little for the named speaker, for recency and for importance. Measured
on ten public conversations: the text alone finds 55 of 100 among the first ten, with all this 72. Where moments are
searched by meaning too, a nearness between 0 and 1 is added before the neighbours' share: 73, and across languages.
Source: the memory design, F1; Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp2, log

from msgspec import Struct

from claudius.memory.stemming import stemmed
from claudius.recollection import Fact, Moment

K1, B = 1.2, 0.75
CONTEXT_SHARE, NEIGHBOUR_SHARE = 0.5, 0.3
NAMED, RECENCY, IMPORTANCE = 0.2, 0.05, 0.10
RECENCY_HALF_S = 30 * 86_400
SITTING_S = 3600
"""Moments of one conversation at most this far apart belong to the same sitting."""
_NONE: frozenset[str] = frozenset()
RESTATED = 0.5
"""The share of their words that two messages of a person have in common if the newer one restates the older."""
_CORRECTS = re.compile(
    r"(?:no|sorry|oops|wait|actually|correction|i mean|i meant|not the|nein|non|não|nee|нет)\b", re.IGNORECASE
)
"""How a message begins that corrects the one before it."""
BEFORE_SHARE = 0.5
"""The weight of the words of the message before the one that was heard."""
MOST_TERMS = 16
COMMON = 0.20
"""A term that occurs in more than this share of all moments is not searched for."""
SMALL = 100
"""With fewer moments than this, every term counts."""
MOST_POSTINGS = 4000
"""Upper limit on postings looked up, however much is kept; the rarest term is always included."""


class Beside(Struct, frozen=True):
    """The ids of the moments next to one in its conversation; 0 = none that may be shown."""

    before: int = 0
    after: int = 0


class Found(Struct, frozen=True, kw_only=True):
    """What may be relevant to a message and may be shown where it was heard."""

    moments: Mapping[int, Moment] = {}
    """The moments that share a term with it, and those next to them, by id."""
    hits: Mapping[int, frozenset[str]] = {}
    """Which of the terms searched for each holds; none if it is missing."""
    beside: Mapping[int, Beside] = {}
    """Of each moment that shares a term: what is next to it."""
    frequencies: Mapping[str, int] = {}
    """In how many moments each term searched for occurs."""
    total: int = 0
    """The number of all moments."""
    facts: tuple[Fact, ...] = ()
    """The facts in force about those present."""
    nearness: Mapping[int, float] = {}
    """How near in meaning to what was heard moments are, 0 to 1; empty without the search by meaning."""
    nearest: tuple[int, ...] = ()
    """Those that are near enough to be found by their meaning alone."""


class Ranked(Struct, frozen=True):
    """One moment found, the one before it in the same sitting, and its speaker's correction right after it."""

    moment: Moment
    before: Moment | None
    correction: Moment | None


def asked_for(heard: str, before: str = "", *, name: str = "") -> dict[str, float]:
    """Return the terms to search for, each with its weight: what was heard, and half of what was said before. Pure.

    `name`: the soul's own, which is never searched for.
    """
    own = stemmed("", name)
    wanted = {one: BEFORE_SHARE for one in stemmed(before) if one not in own}
    return wanted | {one: 1.0 for one in stemmed(heard) if one not in own}


def rarest(asked: Mapping[str, float], frequencies: Mapping[str, int], total: int) -> tuple[str, ...]:
    """Return the terms worth searching for: at most sixteen, the highest weight first, none that is common. Pure."""
    worth = sorted(
        [
            (-asked.get(term, 1.0) * rarity(count, total), term)
            for term, count in frequencies.items()
            if count and (count <= COMMON * total or total < SMALL)
        ]
    )
    kept: list[str] = []
    places = 0
    for _, term in worth[:MOST_TERMS]:
        places += frequencies[term]
        if kept and places > MOST_POSTINGS:
            break
        kept.append(term)
    return tuple(kept)


def rarity(count: int, total: int) -> float:
    """Return the BM25 weight of a term that occurs in `count` of `total` moments. Pure."""
    return log(1.0 + (total - count + 0.5) / (count + 0.5)) if total >= count else 0.0


def rank(
    asked: Mapping[str, float], found: Found, now_s: float, *, most: int, floor: float = 0.0
) -> tuple[Ranked, ...]:
    """Return the moments that are relevant to what is asked, at most `most`, best first. Pure.

    `floor`: the least share of what is asked that one moment of a person whom it names must hold, else nothing bears on
    it; 0 = none.
    """
    weights = {
        term: asked[term] * rarity(count, found.total) for term, count in found.frequencies.items() if term in asked
    }
    moments = found.moments
    if not moments or not (weights or found.nearness):
        return ()
    hits = {key: found.hits.get(key, _NONE) for key in moments}
    named = {name for name in {one.name for one in moments.values()} if not asked.keys().isdisjoint(stemmed("", name))}
    if floor and named:
        held = (sum(map(weights.__getitem__, hits[key])) for key, one in moments.items() if one.name in named)
        if max(held) < floor * sum(weights.values()):
            return ()
    near = _neighbours(found)
    raw = _raw(weights, hits, {key: len(one.text) for key, one in moments.items()}, near)
    if found.nearness:
        raw = _fused(raw, found, near)
    best = max(raw.values()) or 1.0
    scores: dict[int, float] = {}
    for key, one in moments.items():
        score = raw[key]
        for other in near.get(key, ()):
            if raw[other] and _is_one_sitting(one, moments[other]):
                score += NEIGHBOUR_SHARE * raw[other]
        if score > 0.0:
            recent = exp2(-max(0.0, now_s - one.at_s) / RECENCY_HALF_S)
            more = NAMED * (one.name in named) + RECENCY * recent + IMPORTANCE * one.importance / 100
            scores[key] = score / best + more
    order = sorted(scores, key=lambda key: (-scores[key], -key))[:most]
    order = _newest_first([moments[key] for key in order], hits)
    return tuple([Ranked(moments[key], _before(found, near, key), _correction(found, key)) for key in order])


def _fused(raw: Mapping[int, float], found: Found, near: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Return the score by words over the best, and the nearness with a share of the mean of it and those next to it.

    0 for what is only next to something that was found, in another sitting.
    """
    best, moments, nearness = max(raw.values()) or 1.0, found.moments, found.nearness
    bears = {key for key, score in raw.items() if score or key in found.nearest}
    close = {key: [o for o in others if _is_one_sitting(moments[o], moments[key])] for key, others in near.items()}
    fused = dict.fromkeys(raw, 0.0)
    for key in bears | {other for one in bears for other in close.get(one, ())}:
        own, around = nearness.get(key, 0.0), [nearness.get(one, 0.0) for one in (key, *close.get(key, ()))]
        fused[key] = raw[key] / best + (own + CONTEXT_SHARE * sum(around) / len(around)) / (1 + CONTEXT_SHARE)
    return fused


def _newest_first(ranked: Sequence[Moment], hits: Mapping[int, frozenset[str]]) -> list[int]:
    """Return the ids, each moment after newer ones in which its speaker puts it right or says nearly the same.

    `hits`: what each holds of what is asked; a newer one that holds less of it says something else.
    """
    order: list[int] = []
    for one in ranked:
        again = [
            other
            for other in ranked
            if other.id > one.id
            and other.person == one.person
            and other.is_own == one.is_own
            and hits[other.id] >= hits[one.id]
            and (_CORRECTS.match(other.text) or _restates(other.text, one.text))
        ]
        order += [other.id for other in sorted(again, key=lambda other: -other.id)] + [one.id]
    return list(dict.fromkeys(order))


def _correction(found: Found, key: int) -> Moment | None:
    """Return the next message if its speaker corrects this moment in it."""
    beside, one = found.beside.get(key), found.moments[key]
    other = found.moments.get(beside.after) if beside else None
    if other is None or other.person != one.person or not _is_one_sitting(one, other):
        return None
    return other if _CORRECTS.match(other.text) else None


def _restates(newer: str, older: str) -> bool:
    one, other = frozenset(stemmed(newer)), frozenset(stemmed(older))
    both = len(one & other)
    return both >= RESTATED * (len(one) + len(other) - both)


def _raw(
    weights: Mapping[str, float],
    hits: Mapping[int, frozenset[str]],
    sizes: Mapping[int, int],
    near: Mapping[int, Sequence[int]],
) -> dict[int, float]:
    """Return BM25 of each moment, and a share of that of the moment with those next to it."""
    average = sum(sizes.values()) / len(sizes) or 1.0
    widths = {key: size + sum(map(sizes.__getitem__, near.get(key, ()))) for key, size in sizes.items()}
    wide = sum(widths.values()) / len(widths) or 1.0
    raw: dict[int, float] = {}
    for key, own in hits.items():
        both = [*own, *[stem for other in near.get(key, ()) for stem in hits[other]]]
        raw[key] = CONTEXT_SHARE * _bm25(weights, Counter(both), widths[key] / wide) if both else 0.0
        if own:
            raw[key] += _bm25(weights, dict.fromkeys(own, 1), sizes[key] / average)
    return raw


def _neighbours(found: Found) -> dict[int, tuple[int, ...]]:
    near: dict[int, set[int]] = {}
    for key, beside in found.beside.items():
        for other in (beside.before, beside.after):
            if other in found.moments:
                near.setdefault(key, set()).add(other)
                near.setdefault(other, set()).add(key)
    return {key: tuple(sorted(others)) for key, others in near.items()}


def _before(found: Found, near: Mapping[int, Sequence[int]], key: int) -> Moment | None:
    one = found.moments[key]
    earlier = [found.moments[other] for other in near.get(key, ()) if other < key]
    same = [other for other in earlier if _is_one_sitting(one, other)]
    return same[-1] if same else None


def _is_one_sitting(one: Moment, other: Moment) -> bool:
    return abs(one.at_s - other.at_s) <= SITTING_S


def _bm25(weights: Mapping[str, float], counts: Mapping[str, int], size: float) -> float:
    """`size`: the length of the document over the average."""
    flat = K1 * (1.0 - B + B * size)
    return sum([weights[stem] * count * (K1 + 1.0) / (count + flat) for stem, count in counts.items()])
