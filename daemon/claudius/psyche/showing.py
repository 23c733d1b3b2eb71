"""Show the psyche to its owner: numbers beside their words, and why a turn was or was not thought about. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import asdict, replace

from claudius.psyche import bands as words
from claudius.psyche.change import advance_arcs
from claudius.psyche.personality import Kernel, phrases
from claudius.psyche.state import advance, advance_edge
from claudius.psyche_types import DRIVES, Numbers, Psyche

_FAILED = {
    "M": "it did not mean enough",
    "trivial": "it needed no thought",
    "cooldown": "the last thought here was too recent",
    "choice": "there was nothing to choose",
    "consumed": "nothing is answered here: it is quiet, or they are muted",
}
_HEARD = {
    "dm": "a direct message",
    "mention": "a message that calls the soul",
    "command": "a command",
    "reply": "a message where the soul takes part",
    "thread": "a message soon after the soul's own words",
    "named": "a message that names the soul",
    "ambient": "an overheard message",
    "self": "an occasion of the soul's own",
}
"""How something was said, by its address."""
_EDGE = ("person", "name", "warmth", "trust", "tension", "comfort", "familiarity", "volatility")
_PARTS = {
    "person": "who said it",
    "topic": "what it was about",
    "object": "what came with it",
    "inner": "what presses within",
}


def shown(psyche: Psyche, traits: tuple[float, ...], kernel_hash: str, at_s: float) -> dict[str, Any]:
    """Return the psyche at an instant as `claudius psyche show --json` prints it. Pure."""
    kernel = Kernel(*traits) if traits else Kernel()
    numbers = advance(psyche.numbers or Numbers(at_s=at_s), at_s)
    bands = words.numbers_bands(numbers)
    mood, needs = words.mood_of(replace(numbers, bands=bands)), phrases()["drives"]
    return {
        "energy": numbers.energy,
        "mood": {"valence": numbers.valence, "arousal": numbers.arousal, "words": mood},
        "emotional_state": words.emotional_state(mood),
        "drives": {
            drive: {
                "level": level,
                "words": needs[drive][min(band, 3) - words.PRESSED] if band >= words.PRESSED else needs["none"],
            }
            for drive, level, band in zip(DRIVES, numbers.drives, bands[3:], strict=False)
        },
        "arcs": [
            {
                **{name: getattr(arc, name) for name in ("label", "intensity", "bias")},
                "words": words.arc_words(arc, words.arc_band(arc)),
                "sources": list(arc.sources),
            }
            for arc in sorted(advance_arcs(psyche.arcs, at_s), key=lambda arc: -arc.intensity)
        ],
        "relationships": [
            {
                **{name: getattr(edge, name) for name in _EDGE},
                "words": words.edge_words(words.edge_bands(edge)),
                "last_at": instant(was.at_s),
            }
            for was in psyche.edges
            for edge in (advance_edge(was, at_s, kernel),)
        ],
        "appraisals": [
            {"person": one.person, "kind": one.kind, "strength": one.strength, "at": instant(one.at_s)}
            for one in psyche.appraisals
        ],
        "traits": asdict(kernel),
        "kernel_hash": kernel_hash,
        "at": instant(at_s),
    }


def explained(attention: Mapping[str, Any]) -> str:
    """Return in a sentence why a turn thought, reacted or ignored; empty if the psyche had no part in it. Pure."""
    if "triviality" not in attention:
        return ""
    parts: Mapping[str, float] = attention.get("parts", {})
    claims = {name: value for name, value in parts.items() if name in _PARTS}
    strongest = _PARTS[max(claims, key=lambda name: claims[name])] if claims else ""
    failed: Sequence[str] = attention.get("failed", ())
    kind = f"{_HEARD.get(attention['address'], 'a message')} of {attention['triviality']} weight"
    why = " and ".join(_FAILED[name] for name in failed)
    match attention["attention"]:
        case "think":
            return f"It thought about {kind}" + (f", and {strongest} counted most." if strongest else ".")
        case "react":
            return f"It answered {kind} without a thought: {why}."
        case _:
            return f"It let {kind} be: {why or 'it was only heard'}."


def numbered(attention: Mapping[str, Any]) -> str:
    """Return the same in numbers, for the owner; empty if there are none. Pure."""
    if "m" not in attention:
        return ""
    parts = " ".join(f"{name} {value:.2f}" for name, value in attention.get("parts", {}).items())
    return f"meaning {attention['m']:.2f} against {attention['theta']:.2f}; {parts}"


def instant(at_s: float) -> str:
    """Return an instant as documents write it. Pure."""
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
