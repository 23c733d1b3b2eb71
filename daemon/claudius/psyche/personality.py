"""Compile the kernel, eleven traits, from soul.md, and describe it in words for the system text. Pure.

A person writes a mixture, trait levels or a free-text fingerprint; no model does. Source: the psyche design, section 9.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, fields

from claudius.psyche.words import Cues, tokens

LOWEST, HIGHEST = 0.05, 0.95
NUDGE, NUDGED_MOST = 0.04, 0.15
LOW_BELOW, HIGH_FROM = 0.35, 0.65
BANDS = ("low", "middle", "high")
MOST_SENTENCES = 5


class Kernel(Struct, frozen=True):
    """The soul's eleven numeric traits, each in [0.05, 0.95]."""

    sociability: float = 0.5
    emotional_volatility: float = 0.4
    dominance: float = 0.5
    conscientiousness: float = 0.5
    openness: float = 0.5
    directness: float = 0.5
    introspection: float = 0.5
    humour_activation: float = 0.5
    conflict_avoidance: float = 0.5
    trust_baseline: float = 0.5
    forgiveness_baseline: float = 0.5


TRAITS = tuple(field.name for field in fields(Kernel))


class BadPersonality(ValueError):
    """What the head of soul.md says of the psyche cannot be used."""


class Fingerprint(Struct, frozen=True, kw_only=True):
    """The personality settings of soul.md, as written."""

    mixture: tuple[tuple[str, float], ...] = ()
    traits: tuple[tuple[str, str], ...] = ()
    text: str = ""

    @classmethod
    def of(cls, head: Mapping[str, Any]) -> Fingerprint:
        """Read the head of soul.md. Raises: BadPersonality."""
        told = head.get("psyche", {})
        if not isinstance(told, Mapping):
            raise BadPersonality("psyche is not a table")
        unknown = sorted(told.keys() - {"mixture", "traits", "fingerprint"})
        if unknown:
            raise BadPersonality(f"psyche.{unknown[0]} is not known: write mixture, traits or fingerprint")
        mixture, traits, text = told.get("mixture", {}), told.get("traits", {}), told.get("fingerprint", "")
        if not isinstance(mixture, Mapping) or not isinstance(traits, Mapping) or not isinstance(text, str):
            raise BadPersonality("psyche: mixture and traits are tables, fingerprint is text")
        found = cls(
            mixture=tuple((str(name), _weight(name, weight)) for name, weight in mixture.items()),
            traits=tuple((str(name), str(level)) for name, level in traits.items()),
            text=text,
        )
        found.check()
        return found

    def check(self) -> None:
        """Check that every name is known and the weights sum to 1. Raises: BadPersonality."""
        tree = _templates()
        for name, _ in self.mixture:
            if name not in tree["templates"]:
                raise BadPersonality(f"no template {name!r}: it is one of {', '.join(tree['templates'])}")
        if self.mixture and abs(sum(weight for _, weight in self.mixture) - 1.0) > 0.01:
            raise BadPersonality("the weights of psyche.mixture do not sum to 1")
        for trait, level in self.traits:
            if trait not in TRAITS:
                raise BadPersonality(f"no trait {trait!r}: it is one of {', '.join(TRAITS)}")
            if level not in tree["levels"]:
                raise BadPersonality(f"{trait} is {level!r}: write one of {', '.join(tree['levels'])}")


def _weight(name: object, weight: object) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise BadPersonality(f"psyche.mixture.{name} is not a number")
    return float(weight)


@cache
def _templates() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("templates.toml").read_text("utf-8"))


@cache
def phrases() -> Mapping[str, Any]:
    """Read the words for traits and bands from phrases.toml; cached for the life of the process."""
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))


@cache
def _cues() -> Cues:
    lists = {f"{trait}:{way}": cues for trait, ways in _templates()["cues"].items() for way, cues in ways.items()}
    return Cues.of(lists)


@lru_cache(maxsize=16)
def kernel(fingerprint: Fingerprint, prose: str) -> Kernel:
    """Compile the traits from what soul.md says. Pure. Raises: BadPersonality."""
    fingerprint.check()
    tree = _templates()
    mixture = fingerprint.mixture or tuple(tree["default"].items())
    counts = dict.fromkeys(TRAITS, 0)
    for line in (*fingerprint.text.splitlines(), *prose.splitlines()):
        for hit in _cues().hits(tokens(line)):
            trait, _, way = hit.name.partition(":")
            counts[trait] += 1 if way == "up" else -1
    levels = dict(fingerprint.traits)
    compiled: dict[str, float] = {}
    for trait in TRAITS:
        mixed = sum(weight * tree["templates"][name][trait] for name, weight in mixture)
        mixed += max(-NUDGED_MOST, min(NUDGED_MOST, NUDGE * counts[trait]))
        if trait in levels:
            mixed = (mixed + float(tree["levels"][levels[trait]])) / 2
        compiled[trait] = max(LOWEST, min(HIGHEST, mixed))
    return Kernel(**compiled)


@lru_cache(maxsize=16)
def kernel_hash(kernel: Kernel) -> str:
    """Return a 16-digit hash that identifies a kernel. Pure."""
    return sha256(repr(astuple(kernel)).encode()).hexdigest()[:16]


def band(value: float) -> str:
    """Return a trait's band: low, middle or high. Pure."""
    return BANDS[0 if value < LOW_BELOW else 1 if value < HIGH_FROM else 2]


@lru_cache(maxsize=16)
def personality(compiled: Kernel) -> str:
    """Return the most pronounced traits in words, for the system text; empty if all are in the middle. Pure.

    soul.md says who the soul is; this says only where it is not like most. Cached by kernel, so its bytes change only
    with soul.md.
    """
    told = phrases()["personality"]
    values = {trait: getattr(compiled, trait) for trait in TRAITS}
    marked = sorted([trait for trait in TRAITS if band(values[trait]) != "middle"], key=lambda t: -abs(values[t] - 0.5))
    said = [told["traits"][trait][band(values[trait])] for trait in TRAITS if trait in marked[:MOST_SENTENCES]]
    return "\n".join([f"## {told['heading']}", " ".join(said)]) if said else ""
