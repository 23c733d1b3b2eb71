"""Derive the mood of one conversation from what the soul feels and whether it works there. Pure.

The numbers are the same in every conversation; work belongs to the conversation in which it began. The processes and
the soul state both read the mood from here. Source: the psyche design, section 9.
"""

from __future__ import annotations

from collections.abc import Sequence

from claudius.recollection import MOODS, STATE_DEFAULTS, Entry, Recollection, StateKey

NEUTRAL, FOCUSED, FRUSTRATED, SARDONIC = MOODS[0], "focused", "frustrated", "sardonic"
MOOD = StateKey.EMOTIONAL_STATE.value
WORD = "mood"
"""The metadata key of a soul-state check under which the model's mood word is stored."""
WORD_COUNTS_S = 600.0
"""How long the model's mood word counts in the conversation where it was given."""


def mood_here(felt: str, *, task: str, word: str) -> str:
    """Return the mood of one conversation.

    `felt`: the word for the soul's numbers. `task`: what is being worked on here. `word`: the model's own word here
    while it counts. Work makes the mood focused unless it is frustrated or sardonic; the model may declare frustration.
    """
    if word == FRUSTRATED:
        return word
    is_at_work = bool(task) or word == FOCUSED
    return FOCUSED if is_at_work and felt not in (FRUSTRATED, SARDONIC) else felt


def word_in(entries: Sequence[Entry]) -> str:
    """Return the model's last mood word in these entries, or empty."""
    return next((str(entry.metadata[WORD]) for entry in reversed(entries) if WORD in entry.metadata), "")


def recent_word(recollection: Recollection) -> str:
    """Return the model's last mood word in this conversation while it counts, else empty."""
    for turn in reversed(recollection.past):
        if turn.entries and (recollection.now - turn.entries[-1].at).total_seconds() > WORD_COUNTS_S:
            break
        if word := word_in(turn.entries):
            return word
    return ""


def felt_before(recollection: Recollection) -> str:
    """Return the mood word of the numbers after the last turn anywhere; without a psyche, the stored mood."""
    if recollection.psyche is not None:
        numbers = recollection.psyche.numbers
        return (numbers.mood if numbers else "") or NEUTRAL
    kept = kept_mood(recollection)
    return NEUTRAL if kept == FOCUSED else kept


def kept_mood(recollection: Recollection) -> str:
    """Return the mood stored in the soul state."""
    return next((one.value for one in recollection.state if one.key == MOOD), STATE_DEFAULTS[MOOD])


def new_mood(recollection: Recollection, felt: str, *, task: str, word: str) -> str:
    """Return the mood to store in the soul state; empty = keep the stored one, which a person may have set.

    The numbers decide it, except that a working conversation is focused; the model's word is only a hint.
    """
    kept = kept_mood(recollection)
    now = mood_here(felt, task=task, word=word if word == FOCUSED else "")
    has_moved = felt != felt_before(recollection) or FOCUSED in (now, kept)
    return now if has_moved and now != kept else ""
