"""What a turn's reply may not repeat, and what stands ready where it cannot be spoken."""

from __future__ import annotations

from collections.abc import Iterable

from claudius.cognition.soul_engine.echo import Echo
from claudius.cognition.soul_engine.gate import Zones
from claudius.cognition.soul_engine.interpretation import allowed_verbs
from claudius.cognition.soul_engine.ladder import Ground
from claudius.cognition.soul_engine.planning import EngineSettings, Plan
from claudius.cognition.soul_engine.rewrites import Company
from claudius.perception import Origin
from claudius.prompt import next_nonce
from claudius.recollection import EntryType, PastTurn, Recollection, once
from claudius.soul import SoulText

SPEECH = "external_dialogue"
_PRIVATE = (EntryType.INTERNAL_MONOLOGUE, EntryType.DAIMONIC_INTUITION)
_ALOUD = (EntryType.USER_MESSAGE, EntryType.EXTERNAL_DIALOG, EntryType.DAIMON_SPEECH)


def private_texts(recollection: Recollection, own: Iterable[str] = ()) -> Echo:
    """Return every private text that stands in this turn's prompt, but what all have heard of it. Pure.

    `own`: what this very turn has thought and shows to its next call, for that call's reply.
    """
    past = recollection.past
    return Echo(
        (
            *(text for turn in past for text in once(turn, _private)),
            *(one.text for one in recollection.intuitions),
            *own,
        ),
        aloud=(
            *(text for turn in past for text in once(turn, _aloud)),
            *(one.text for one in recollection.perceptions if one.origin is Origin.EXTERNAL),
        ),
    )


def _private(past: PastTurn) -> tuple[str, ...]:
    return tuple(entry.content for entry in past.entries if entry.entry_type in _PRIVATE)


def _aloud(past: PastTurn) -> tuple[str, ...]:
    return tuple(entry.content for entry in past.entries if entry.entry_type in _ALOUD)


def _instructions(soul: SoulText) -> Echo:
    """Return the instructions of every turn: one value as long as the soul stays as it is."""
    known = soul.derived.get("instructions")
    if not isinstance(known, Echo):
        known = Echo(step.instruction for step in soul.steps.values() if not step.on_demand)
        soul.derived["instructions"] = known
    return known


def ground(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings, private: Echo) -> Ground:
    """Return what the ladder stands on in this turn. Pure."""
    verbs, default = allowed_verbs(SPEECH, plan, soul)
    return Ground(
        fallback=soul.steps[SPEECH].fallback,
        verbs=verbs,
        default_verb=default,
        owed=plan.owes,
        repairs=settings.repairs,
        nonces=(recollection.nonce, next_nonce(recollection.nonce), *(turn.nonce for turn in recollection.past)),
        private=private,
        feels=settings.psyche,
    )


def zones(stands: Ground, recollection: Recollection, soul: SoulText, secrets: tuple[str, ...]) -> Zones:
    """Return what the output gate looks for in this turn. Pure."""
    speaker = recollection.speaker
    models = speaker.models if speaker else ()
    return Zones(
        fallback=stands.fallback,
        private=stands.private,
        nonces=stands.nonces,
        instructions=_instructions(soul),
        secrets=secrets,
        guarded=Echo((*(model.markdown for model in models), *(value.value for value in recollection.state))),
        company=Company(answered=recollection.perception.person, members=_present(recollection)),
        feels=stands.feels,
    )


def _present(recollection: Recollection) -> dict[str, str]:
    present = {one.person: one.name for one in recollection.perceptions if one.person}
    return present | {other.person: other.name for other in recollection.others}
