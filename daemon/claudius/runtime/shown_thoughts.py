"""Thoughts by choice: what an owner may be shown of a thought, in a direct message of their own; nobody else is.

It is a type of its own, since an `Utterance` cannot hold a thought; only networks that can fold a line accept it. It is
shown once, or not at all: nothing of it is kept for another try. Source: the doors design, section 7.
"""

from __future__ import annotations

from claudius.cognition.output.gate import masked, rewrite
from claudius.cognition.output.rules import Mentionable
from claudius.cognition.turn import Turned
from claudius.config import Config
from claudius.intent import ShownThought
from claudius.perception import Kind, Origin, Place, private
from claudius.runtime.access import is_owner
from claudius.runtime.commands.words import is_direct

THOUGHT = "internal_monologue"
MOST_CHARS = 1800
"""What one folded line holds on every network."""


def thought_to_show(turned: Turned, config: Config, secrets: tuple[str, ...] = ()) -> ShownThought | None:
    """Return what is shown of a turn's thought; None wherever it may not be, or was not chosen. Pure.

    A turn that felt a whisper, a belief or a directive shows none: its thought may hold what others said.
    """
    intent, known = turned.intent, turned.recollection
    heard = known.perception
    if intent.conversation not in config.runtime.thoughts or not intent.utterances:
        return None
    is_own = is_owner(heard, config) and known.audience == private(heard.person) == heard.audience
    if not is_own or not is_direct(intent.conversation, heard) or heard.origin is not Origin.EXTERNAL:
        return None
    kinds = {one.kind for one in known.perceptions}
    if known.intuitions or intent.whispers or known.beliefs or known.second_thought or Kind.DIRECTIVE in kinds:
        return None
    thoughts = [one.content.strip() for one in intent.thoughts if one.step == THOUGHT]
    text = rewrite(masked("\n\n".join(thoughts), secrets), Mentionable()).text[:MOST_CHARS]
    if not text or Place.of(intent.conversation).network == "terminal":
        return None
    return ShownThought(turn=intent.turn, conversation=intent.conversation, person=heard.person, text=text)


def is_still_chosen(thought: ShownThought, config: Config) -> bool:
    """Return whether a thought may still be shown: its words may be sent long after the turn. Pure."""
    return thought.conversation in config.runtime.thoughts and thought.person in config.owners
