"""Conclude the line that a daimon says aloud after the soul's reply, by the same parser and output gate. Pure.

Source: the daimon design, section 7.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from claudius.cognition.conclude.conclusion import Kept, conclude_reflection, utterance_key
from claudius.cognition.output.gate import gate
from claudius.cognition.output.ladder import whole_sentences
from claudius.cognition.reply.parser import plain_reply
from claudius.cognition.turn_state import TurnState, recorded
from claudius.intent import Intent, Utterance
from claudius.recollection import Entry, EntryType

SPEECH_CHARS = 1500


def conclude_daimon(name: str, text: str, turn: TurnState) -> Intent | None:
    """Conclude a daimon's line; return None if nothing of it may be said. Replaces `turn.recollection`."""
    recollection = turn.recollection
    line = re.sub(rf"(?i)^\s*\**{re.escape(name)}(?:\s+(?:says|whispers))?\s*:\**\s*", "", plain_reply(text)).strip()
    if not any(map(str.isalnum, line)):
        return None
    line = line if len(line) <= SPEECH_CHARS else whole_sentences(line[:SPEECH_CHARS])
    gated = gate(line, turn.rules)
    if gated.is_replaced:
        return None
    person = recollection.perception.person
    entry = Entry(
        entry_type=EntryType.DAIMON_SPEECH,
        content=gated.text,
        at=recollection.now,
        person=person or None,
        name=name.capitalize(),
        metadata={"daimon": name},
    )
    said = Utterance(
        key=utterance_key(recollection.turn, 0),
        turn=recollection.turn,
        conversation=recollection.conversation,
        body=f"{name.capitalize()}: {gated.text}",
        kind="daimon",
        person=person,
    )
    kept = Kept(attention={"outcome": "daimon", "reason": f"{name} may be heard here"})
    turn.recollection = replace(recollection, perceptions=())
    return replace(recorded(turn, conclude_reflection(recollection, turn.plan, (entry,), kept)), utterances=(said,))
