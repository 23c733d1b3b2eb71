"""What another mind says aloud after the soul's reply: past the same parser and the same gate. Pure.

Source: the daimon design, section 7.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from claudius.cognition.soul_engine.assembly import build_prompt, prompt_sha256
from claudius.cognition.soul_engine.conclusion import Kept, conclude_reflection, utterance_key
from claudius.cognition.soul_engine.gate import gate
from claudius.cognition.soul_engine.grounds import ground, private_texts, zones
from claudius.cognition.soul_engine.interpretation import plain_reply
from claudius.cognition.soul_engine.ladder import whole_sentences
from claudius.cognition.soul_engine.planning import EngineSettings, Plan, compact
from claudius.cognition.soul_engine.snapshot import freeze
from claudius.intent import Intent, Utterance
from claudius.recollection import Entry, EntryType, Recollection
from claudius.soul import SoulText

SPEECH_CHARS = 1500


def conclude_daimon(
    name: str, text: str, recollection: Recollection, soul: SoulText, settings: EngineSettings, secrets: tuple[str, ...]
) -> Intent | None:
    """Conclude a daimon's line; None where nothing of it may be said. Pure."""
    nothing = Plan(
        process=f"daimon:{name}",
        asked=(),
        conditional={},
        shown=(),
        owes=False,
        history_from=compact(recollection.past, settings),
    )
    stands = ground(nothing, recollection, soul, settings, private_texts(recollection))
    line = re.sub(rf"(?i)^\s*\**{re.escape(name)}(?:\s+(?:says|whispers))?\s*:\**\s*", "", plain_reply(text)).strip()
    if not any(map(str.isalnum, line)):
        return None
    line = line if len(line) <= SPEECH_CHARS else whole_sentences(line[:SPEECH_CHARS])
    gated = gate(line, zones(stands, recollection, soul, secrets))
    if gated.is_replaced:
        return None
    heard = replace(recollection, perceptions=())
    prompt = build_prompt(nothing, heard, soul, settings)
    snapshot, blobs = freeze(heard, nothing, settings, soul)
    kept = Kept(
        prompt_sha256=prompt_sha256(prompt),
        snapshot=snapshot,
        blobs=blobs,
        attention={"outcome": "daimon", "reason": f"{name} may be heard here"},
    )
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
    return replace(conclude_reflection(recollection, nothing, (entry,), kept), utterances=(said,))
