"""What needs no thought: a short line of the soul's own, a nod, or silence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from claudius.cognition.processes import Process
from claudius.cognition.soul_engine.conclusion import conclude_heard, utter
from claudius.cognition.soul_engine.entries import spoken
from claudius.cognition.soul_engine.feeling import mood_before
from claudius.cognition.soul_engine.planning import EngineSettings
from claudius.intent import Intent
from claudius.psyche import Attention
from claudius.psyche.tendencies import acknowledgement
from claudius.recollection import Recollection
from claudius.soul import SoulText


def lines_for(attention: Attention, recollection: Recollection, soul: SoulText) -> tuple[str, ...]:
    """Return the lines that answer what needs no thought, in the mood of the conversation. Pure."""
    mood = mood_before(recollection, attention.change.mood if attention.change else "")
    return soul.steps["external_dialogue"].acknowledgements(mood)


def conclude_unthought(
    recollection: Recollection,
    process: Process,
    settings: EngineSettings,
    attention: Attention,
    lines: tuple[str, ...],
    *,
    verb: str = "acknowledged",
) -> Intent:
    """Conclude what needs no thought: a short line where the soul is addressed, a nod, or nothing. Pure."""
    intent = conclude_heard(recollection, process, settings, attention)
    called = attention.called or any(one.owes for one in recollection.perceptions)
    nods = attention.outcome == "react" and attention.reaction
    said = attention.reaction if nods else acknowledgement(recollection.turn, lines) if called else ""
    verb = "nodded" if nods else verb
    attended: Mapping[str, Any] = {"outcome": attention.outcome, "reason": "no thought was needed", **attention.told}
    if attention.outcome != "react" or not said:
        return replace(intent, attention=attended)
    return replace(
        intent,
        attention=attended,
        verb=verb,
        rung="plain",
        entries=(*intent.entries, spoken(recollection, said, verb, called=called)),
        utterances=utter(recollection, (said,), verb, kind="reaction" if nods else "reply"),
    )
