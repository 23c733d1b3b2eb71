"""Decide what a reply lets the soul say, by rungs: complete, plain, repair, cut, fixed. No rung says anything private.

`climb` returns NeedsRepair if a repair call is needed first. Source: the pipeline design, section 6.
"""

from __future__ import annotations

import re

from msgspec import Struct

from claudius.cognition.output.rules import ELLIPSIS, SAID, OutputRules
from claudius.cognition.reply.parser import Parsed, read_verb
from claudius.cognition.reply.tags import NAMES, find_head, is_blank, is_disguised, is_structured, plain_form
from claudius.intent import Rung
from claudius.psyche.scrubber import FEELINGS, spoken_without_numbers

CUT_CHARS = 40
"""A cut dialogue shorter than this is not said; its last sentence end is searched for beyond this point."""

_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)|[。！？]++[”’」』）]*+")
_BABBLE = re.compile(
    r"\b(?:internal[\W_]monologue|external[\W_]dialog(?:ue)?|user[\W_]model[\W_](?:check|update)"
    r"|soul[\W_]state[\W_](?:check|update)|model[\W_]change[\W_]note)"
)
"""Names of our steps. Text without tags that says one is talk about the form, not speech."""
_MUSING = re.compile(
    r"\W*(?:(?:okay|ok|alright|right|hmm+|so|well|now|first)\b\W*)*"
    r"(?:the user(?!\w| interface)|(?:i|we) (?:need to|should|must|have to) (?:respond|reply|answer)\b)"
)
"""How a model begins that thinks aloud without any mark: it speaks of its listener, not to them."""
_BOM = "\ufeff"


class Spoken(Struct, frozen=True, kw_only=True):
    """What to say, before the output gate. Empty speech means silence, and nothing is owed."""

    speech: str
    rung: Rung
    verb: str
    flags: tuple[str, ...]
    truncated: bool = False
    """The speech ends before it was finished; stored in the entry's metadata."""


class NeedsRepair(Struct, frozen=True):
    """Nothing can be said yet: request external_dialogue once more, then climb again with that reply."""

    flags: tuple[str, ...]


def climb(
    reply: Parsed, rules: OutputRules, *, refused: bool = False, streamed: str = "", repair: Parsed | None = None
) -> Spoken | NeedsRepair:
    """Decide what to say from a reply. Pure.

    `refused`: the provider declined, so a second call would not help; `streamed`: what the listener has seen of the
    first dialogue; `repair`: the repair call's reply, None before it or if it failed (then with no repairs left).
    """
    flags = tuple(dict.fromkeys((*reply.flags, *(repair.flags if repair else ()))))
    if streamed:
        return _continued(reply, rules, streamed, flags)
    newest = repair or reply
    winner = newest.winner
    text = winner.text if winner else newest.raw.removeprefix(_BOM).strip()
    is_broken = newest.truncated and not (rules.is_words_alone and ends_a_sentence(text))
    is_plain = not (winner or is_broken or is_structured(newest.raw) or _why_not_plain(newest))
    if (winner or is_plain) and not _is_unfit(text, rules):
        rung: Rung = "repair" if repair else "complete" if winner else "plain"
        return _spoken(text, rung, winner.verb if winner else None, rules, flags)
    flags = (*flags, *_why_not_plain(newest))
    if not rules.owed:
        return Spoken(speech="", rung="silent", verb=rules.default_verb, flags=flags)
    if repair is None and rules.repairs > 0 and not refused:
        return NeedsRepair(flags)
    for candidate in (repair, reply):
        cut = _cut(candidate, rules) if candidate else None
        if cut:
            return _spoken(cut[0], "cut", cut[1], rules, flags)
    return Spoken(speech=rules.fallback, rung="fixed", verb=SAID, flags=flags)


def _continued(reply: Parsed, rules: OutputRules, streamed: str, flags: tuple[str, ...]) -> Spoken:
    """Continue from the text already shown, because it cannot be taken back."""
    first = reply.dialogues[0] if reply.dialogues else None
    written = first.verb if first else None
    is_whole = first is not None and first.closed and (first.state == "complete" or first.text == streamed.rstrip())
    if first and is_whole and not _is_tainted(first.text, rules):
        return _spoken(first.text, "complete", written, rules, flags)
    return _spoken(streamed.rstrip() + ELLIPSIS, "cut", written, rules, flags)


def _spoken(speech: str, rung: Rung, written: str | None, rules: OutputRules, flags: tuple[str, ...]) -> Spoken:
    verb, is_bad = read_verb(written, rules.verbs, rules.default_verb)
    flags = tuple(dict.fromkeys((*flags, "bad_verb"))) if is_bad else flags
    return Spoken(speech=speech, rung=rung, verb=verb, flags=flags, truncated=rung == "cut")


def _is_tainted(text: str, rules: OutputRules) -> bool:
    return rules.has_nonce(text) or is_disguised(text) or rules.private.repeated_in(text)


def _is_unfit(text: str, rules: OutputRules) -> bool:
    feels = rules.feels and any(map(text.lower().__contains__, FEELINGS))
    is_numbers_only = feels and is_blank(spoken_without_numbers(text))
    return is_numbers_only or _is_tainted(text, rules)


def _why_not_plain(reply: Parsed) -> tuple[str, ...]:
    """Return flags for what prevents a reply without tags from being spoken as it is."""
    if is_blank(reply.raw):
        return ("empty",)
    plain = plain_form(reply.raw)
    if find_head(reply.raw) is not None:
        return ()
    if NAMES.label.search(plain):
        return ("label",)
    return ("babble",) if _BABBLE.search(plain) else ("musing",) if _MUSING.match(plain) else ()


def _cut(reply: Parsed, rules: OutputRules) -> tuple[str, str | None] | None:
    """Return the words and the verb as written of the last cut dialogue that is long enough to say."""
    if "ambiguous" in reply.flags:
        return None
    for dialogue in reversed(reply.dialogues):
        if dialogue.state == "cut" and len(dialogue.text) >= CUT_CHARS and not _is_unfit(dialogue.text, rules):
            return whole_sentences(dialogue.text) + ELLIPSIS, dialogue.verb
    return None


def ends_a_sentence(text: str) -> bool:
    """Return whether a text ends where a sentence does. Pure."""
    return any(found.end() == len(text) for found in _SENTENCE_END.finditer(text))


def whole_sentences(text: str) -> str:
    """Return a cut text up to its last sentence end beyond `CUT_CHARS`, else up to its last whole word. Pure."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text) if found.end() >= CUT_CHARS]
    if ends:
        return text[: ends[-1]]
    words = text.rsplit(maxsplit=1)
    return words[0] if len(words) > 1 and len(words[0]) >= CUT_CHARS else text
