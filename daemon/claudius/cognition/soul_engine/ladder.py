"""From a reply to what is spoken, rung by rung: complete, plain, repair, cut, fixed. Nothing private on any of them.

Source: the pipeline design, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from claudius.cognition.soul_engine.disguises import is_disguised, is_structured
from claudius.cognition.soul_engine.echo import Echo
from claudius.cognition.soul_engine.heads import NAMES, Names, find_head, is_blank, plain_form
from claudius.cognition.soul_engine.parsed import Parsed
from claudius.cognition.soul_engine.readers import read_verb
from claudius.intent import Rung
from claudius.psyche.scrubber import spoken_without_numbers

CUT_CHARS = 40
"""A cut dialogue shorter than this is not worth saying; its last sentence end is looked for beyond it."""
BROKEN_CHARS = 4000
"""So much of a broken reply is shown to the repair call."""
ELLIPSIS = " …"
SAID = "said"

_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)|[。！？]++[”’」』）]*+")
_BOM = "\ufeff"


class Ground(Struct, frozen=True, kw_only=True):
    """What the ladder stands on: what the turn owes, and what must not be heard."""

    fallback: str
    """The fixed line, in character."""
    verbs: Sequence[str] = (SAID,)
    default_verb: str = SAID
    owed: bool = True
    repairs: int = 1
    """Repair calls left."""
    nonces: tuple[str, ...] = ()
    private: Echo = field(default_factory=Echo)
    """Private entries and whispers of this prompt."""
    names: Names = NAMES
    feels: bool = False
    """The soul has a psyche: words that only put a number to what it feels are not fit to be said."""


class Spoken(Struct, frozen=True, kw_only=True):
    """What is to be said, before the output gate. Empty speech: silence, and nothing is owed."""

    speech: str
    rung: Rung
    verb: str
    flags: tuple[str, ...]
    truncated: bool = False
    """What is said ends before it was finished: kept in the entry's metadata."""


class NeedsRepair(Struct, frozen=True):
    """Nothing can be said yet: ask once more, for external_dialogue alone, then climb again with that reply."""

    flags: tuple[str, ...]
    broken: str
    """The beginning of the reply, to be shown as a fenced line."""


def climb(
    reply: Parsed, ground: Ground, *, refused: bool = False, streamed: str = "", repair: Parsed | None = None
) -> Spoken | NeedsRepair:
    """Decide what a reply comes to. Pure.

    `refused`: the provider declined, so no second call helps; `streamed`: what the listener has seen of the first
    dialogue; `repair`: the repair call's reply, None before it or where it failed (then with no repairs left).
    """
    flags = tuple(dict.fromkeys((*reply.flags, *(repair.flags if repair else ()))))
    if streamed:
        return _continued(reply, ground, streamed, flags)
    speakable = _speakable(repair or reply, ground)
    if speakable:
        speech, written, rung = speakable
        return _spoken(speech, "repair" if repair else rung, written, ground, flags)
    flags = (*flags, *_why_not_plain(repair or reply, ground))
    if not ground.owed:
        return Spoken(speech="", rung="silent", verb=ground.default_verb, flags=flags)
    if repair is None and ground.repairs > 0 and not refused:
        return NeedsRepair(flags, reply.raw[:BROKEN_CHARS])
    for candidate in (repair, reply):
        cut = _cut(candidate, ground) if candidate else None
        if cut:
            return _spoken(cut[0], "cut", cut[1], ground, flags)
    return Spoken(speech=ground.fallback, rung="fixed", verb=SAID, flags=flags)


def _continued(reply: Parsed, ground: Ground, streamed: str, flags: tuple[str, ...]) -> Spoken:
    """Speak on from what was heard: a listener cannot be un-told."""
    first = reply.dialogues[0] if reply.dialogues else None
    written = first.verb if first else None
    is_whole = first is not None and first.closed and (first.state == "complete" or first.text == streamed.rstrip())
    if first and is_whole and not _is_tainted(first.text, ground):
        return _spoken(first.text, "complete", written, ground, flags)
    return _spoken(streamed.rstrip() + ELLIPSIS, "cut", written, ground, flags)


def _spoken(speech: str, rung: Rung, written: str | None, ground: Ground, flags: tuple[str, ...]) -> Spoken:
    verb, is_bad = read_verb(written, ground.verbs, ground.default_verb)
    flags = tuple(dict.fromkeys((*flags, "bad_verb"))) if is_bad else flags
    return Spoken(speech=speech, rung=rung, verb=verb, flags=flags, truncated=rung == "cut")


def _is_tainted(text: str, ground: Ground) -> bool:
    folded = text.casefold()
    has_nonce = any(nonce.casefold() in folded for nonce in ground.nonces)
    return has_nonce or is_disguised(text, ground.names) or ground.private.repeated_in(text)


def _speakable(reply: Parsed, ground: Ground) -> tuple[str, str | None, Rung] | None:
    """Return the words, the verb as written and the rung, where one of the first two rungs holds."""
    winner = reply.winner
    if winner:
        return None if _is_unfit(winner.text, ground) else (winner.text, winner.verb, "complete")
    if reply.truncated or is_structured(reply.raw, ground.names) or _why_not_plain(reply, ground):
        return None
    text = reply.raw.removeprefix(_BOM).strip()
    return None if _is_unfit(text, ground) else (text, None, "plain")


def _is_unfit(text: str, ground: Ground) -> bool:
    is_numbers_only = ground.feels and not is_blank(text) and is_blank(spoken_without_numbers(text))
    return is_numbers_only or _is_tainted(text, ground)


def _why_not_plain(reply: Parsed, ground: Ground) -> tuple[str, ...]:
    """Flag what keeps a reply without any tag from being spoken as it is."""
    if is_blank(reply.raw):
        return ("empty",)
    is_labelled = ground.names.label.search(plain_form(reply.raw)) and find_head(reply.raw, ground.names) is None
    return ("label",) if is_labelled else ()


def _cut(reply: Parsed, ground: Ground) -> tuple[str, str | None] | None:
    """Return the words and the verb as written of the last cut dialogue that is worth saying."""
    if "ambiguous" in reply.flags:
        return None
    for dialogue in reversed(reply.dialogues):
        if dialogue.state == "cut" and len(dialogue.text) >= CUT_CHARS and not _is_unfit(dialogue.text, ground):
            return whole_sentences(dialogue.text) + ELLIPSIS, dialogue.verb
    return None


def whole_sentences(text: str) -> str:
    """Return a cut text up to its last sentence end beyond `CUT_CHARS`, else up to its last whole word. Pure."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text) if found.end() >= CUT_CHARS]
    if ends:
        return text[: ends[-1]]
    words = text.rsplit(maxsplit=1)
    return words[0] if len(words) > 1 and len(words[0]) >= CUT_CHARS else text
