"""The mood of one conversation: what the soul feels, and whether it is at work there. Pure.

The numbers are the soul's own and the same everywhere; work belongs to the conversation in which it was taken up. The
processes and the soul state both read the mood from here. Source: the psyche design, section 9.
"""

from __future__ import annotations

from collections.abc import Sequence

from claudius.recollection import MOODS, STATE_DEFAULTS, Entry, Recollection, StateKey

NEUTRAL, FOCUSED, FRUSTRATED, SARDONIC = MOODS[0], "focused", "frustrated", "sardonic"
MOOD = StateKey.EMOTIONAL_STATE.value
WORD = "mood"
"""The metadata of a judgement of the soul's own state that holds the model's word for its mood."""
WORD_COUNTS_S = 600.0
"""How long the model's own word for its mood counts in the conversation where it was said."""


def mood_here(felt: str, *, task: str, word: str) -> str:
    """Return the mood of one conversation.

    `felt`: the word for the soul's numbers. `task`: what is being worked on here. `word`: the model's own word here
    while it counts. Work makes a soul focused that is not sore; that it is frustrated, the model may say itself.
    """
    if word == FRUSTRATED:
        return word
    is_at_work = bool(task) or word == FOCUSED
    return FOCUSED if is_at_work and felt not in (FRUSTRATED, SARDONIC) else felt


def word_in(entries: Sequence[Entry]) -> str:
    """Return the model's own word for its mood in these entries; empty where it had none."""
    return next((str(entry.metadata[WORD]) for entry in reversed(entries) if WORD in entry.metadata), "")


def recent_word(recollection: Recollection) -> str:
    """Return the model's last word for its mood in this conversation, while it counts; else empty."""
    for turn in reversed(recollection.past):
        if turn.entries and (recollection.now - turn.entries[-1].at).total_seconds() > WORD_COUNTS_S:
            break
        if word := word_in(turn.entries):
            return word
    return ""


def felt_before(recollection: Recollection) -> str:
    """Return the word for the soul's numbers as the last turn anywhere left them; with no numbers, its kept mood."""
    if recollection.psyche is not None:
        numbers = recollection.psyche.numbers
        return (numbers.mood if numbers else "") or NEUTRAL
    kept = kept_mood(recollection)
    return NEUTRAL if kept == FOCUSED else kept


def kept_mood(recollection: Recollection) -> str:
    """Return the mood that the soul state holds."""
    return next((one.value for one in recollection.state if one.key == MOOD), STATE_DEFAULTS[MOOD])


def new_mood(recollection: Recollection, felt: str, *, task: str, word: str) -> str:
    """Return the mood that the soul state is to hold from now on; empty = the one that stands, which a hand may set.

    The numbers decide it, but for the focus of a conversation that is at work: the model's word is a hint.
    """
    kept = kept_mood(recollection)
    now = mood_here(felt, task=task, word=word if word == FOCUSED else "")
    has_moved = felt != felt_before(recollection) or FOCUSED in (now, kept)
    return now if has_moved and now != kept else ""
