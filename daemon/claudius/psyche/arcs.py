"""Track arcs: recurring subjects, created by three messages, strengthened by repetition, weakened by silence. Pure.

Source: the psyche design, section 4.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

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
TELLING = 2
"""The weight of shared words from which two messages are about one subject; one uncommon word has it."""
REFERS_WITHIN_S = HOUR_S
"""A message can refer back to one that is at most this old."""
OPENING_WORDS = 6
REFERRING = frozenset(
    """it its it's that that's this they they're them their he he's him his she she's her hers one ones there those
    these so then same too also again still""".split()  # noqa: SIM905 - a list of words reads best as words
)
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
    """Strengthen the arcs that an event is about. Pure."""
    warmed = [
        replace(
            arc,
            intensity=arc.intensity + (1.0 - arc.intensity) * 0.7 * importance * min(1.0, found[arc.arc]),
            bias=0.8 * arc.bias + 0.2 * feeling,
        )
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
    found = _thread([*recent[1 - TALK :], now], soul_name) or _alike(mine, recent, soul_name)
    if found is None:
        return None
    said, shared = found[0], frozenset([one for one in found[1] if weight((one,))])
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
        persons=tuple(dict.fromkeys(one.person for one in (now, *said) if one.person)),
        band=1,
    )


Subject = tuple[list[Said], frozenset[str]]
"""The messages about a subject, oldest first, and the stems that they share."""


def _thread(talk: Sequence[Said], soul_name: str) -> Subject | None:
    """Return the subject that the last of some messages continues, if three of them are about it.

    Two are about one subject if they share a word that says what they are about; one that refers back (`it`, `she`)
    belongs to the one before it.
    """
    heard = [one.stems(soul_name) for one in talk]
    pairs = [
        (one, other, shared)
        for (one, its), (other, others) in combinations(enumerate(heard), 2)
        if weight(shared := its & others) >= TELLING
    ]
    members = {one for pair in pairs for one in pair[:2]}
    for at in range(1, len(talk)):
        if talk[at].at_s - talk[at - 1].at_s <= REFERS_WITHIN_S and {at, at - 1} & members and refers(talk[at].text):
            members |= {at, at - 1}
    if len(members) < ALIKE_COUNT or len(talk) - 1 not in members:
        return None
    shared = frozenset[str]().union(*[both for _, _, both in pairs])
    return [talk[at] for at in sorted(members)], shared


def _alike(mine: frozenset[str], recent: Sequence[Said], soul_name: str) -> Subject | None:
    """Return the subject that a message shares with two earlier ones, if all three are alike in most of their words."""
    alike = [
        (one, found)
        for one in recent
        if len(found := one.stems(soul_name)) >= LEAST_STEMS
        and not mine.isdisjoint(found)
        and overlap(mine, found) >= ALIKE
    ]
    for (one, its), (other, others) in combinations(alike[-8:], ALIKE_COUNT - 1):
        if overlap(its, others) >= ALIKE and weight(shared := mine & its & others or mine & its):
            return [one, other], shared
    return None


@cache
def _everyday() -> tuple[frozenset[str], frozenset[str]]:
    told = tomllib.loads(Path(__file__).with_name("everyday.toml").read_text("utf-8"))
    empty, common = (frozenset([_root(stem(word)) for word in told[name].split()]) for name in ("empty", "common"))
    return empty, common


def weight(shared: Iterable[str]) -> int:
    """Return how much shared stems say about the subject of a conversation. Pure."""
    empty, common = _everyday()
    return sum([0 if (root := _root(one)) in empty else 1 if root in common else TELLING for one in shared])


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
