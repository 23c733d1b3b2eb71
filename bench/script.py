"""What a benched conversation says: messages and replies of typical size, the same for every side."""

from __future__ import annotations

import random
from functools import cache
from itertools import accumulate

DIFFERENT = 500
"""This many messages and replies differ; then they repeat, long after they left every history."""
MESSAGE_CHARS = 180
MONOLOGUE_CHARS = 300
DIALOGUE_CHARS = 560

_TEXT = (
    "the joint wants a finer saw than the one we have and glue that sets before noon while rain comes over the hill "
    "so ask the smith for two hinges a lock with brass wards and nails of the old kind then measure the door again "
    "because oak moves with the weather and nothing stays square for long unless someone cares about it every day"
)
_WORDS = _TEXT.split()


def prose(chars: int, seed: int) -> str:
    """Return plain words of exactly that length, the same for the same seed. Pure."""
    chance = random.Random(seed)
    words: list[str] = []
    size = -1
    while size < chars:
        words.append(chance.choice(_WORDS))
        size += len(words[-1]) + 1
    return (" ".join(words)[: chars - 1].rstrip() + ".").ljust(chars, "!")


VOCABULARY = 20_000


@cache
def _words() -> tuple[list[str], list[float]]:
    """Return common and made-up words, and their summed shares: the n-th comes n times less than the first."""
    made = ("".join(chr(97 + n // 26**place % 26) for place in range(3)) for n in range(26**3))
    ends = ("el", "on", "ar", "ith")
    words = list(dict.fromkeys(_WORDS)) + [f"{one}{end}" for one in made for end in ends]
    return words[:VOCABULARY], list(accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))


@cache
def chatted(number: int) -> str:
    """Return the n-th thing that somebody says in words by Zipf, never said before, of typical size. Pure."""
    words, weights = _words()
    chance = random.Random(number)
    return " ".join(chance.choices(words, cum_weights=weights, k=MESSAGE_CHARS // 6)) + "."


def ready() -> None:
    """Generate all texts now, so that no side pays for that while it is timed."""
    for number in range(DIFFERENT):
        message(number)
        plain_reply(number)
        spoken(number)


@cache
def _message(place: int) -> str:
    return prose(MESSAGE_CHARS, 3 * place)


def message(number: int) -> str:
    """Return the n-th thing that a person says. Pure."""
    return _message(number % DIFFERENT)


@cache
def _plain_reply(place: int) -> str:
    return reply(place)


def plain_reply(number: int) -> str:
    """Return the n-th reply of a model that keeps to the format and learns nothing. Pure."""
    return _plain_reply(number % DIFFERENT)


def reply(number: int, *, update: str = "", note: str = "") -> str:
    """Return the n-th reply of a model that keeps to the format. Pure.

    `update`: the whole new text of the user model's section Persona; empty means that nothing is learned.
    """
    checks = f"<user_model_check>{'true' if update else 'false'}</user_model_check>"
    if update:
        checks += f'\n<user_model_update section="Persona">\n{update}\n</user_model_update>'
        checks += f"\n<model_change_note>{note or f'turn {number}'}</model_change_note>"
    if number % 3 == 0:
        checks += "\n<soul_state_check>false</soul_state_check>"
    return (
        f'<internal_monologue verb="pondered">\n{prose(MONOLOGUE_CHARS, 3 * number + 1)}\n</internal_monologue>\n'
        f'<external_dialogue verb="said">\n{spoken(number)}\n</external_dialogue>\n{checks}'
    )


@cache
def _spoken(place: int) -> str:
    return prose(DIALOGUE_CHARS, 3 * place + 2)


def spoken(number: int) -> str:
    """Return the spoken part of the n-th reply. Pure."""
    return _spoken(number % DIFFERENT)
