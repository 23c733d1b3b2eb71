"""user_model_update: a new version of the speaker's user model in this audience, guarded against lost content.

Source: the pipeline design, sections 2.2 and 8.
"""

from __future__ import annotations

from msgspec import Struct

from claudius.cognition.reply.readers import clean_note, read_bool
from claudius.cognition.steps.step import NOTHING, Effect, Reading, Situation, Step
from claudius.cognition.user_model_merge import Merged, merge_update
from claudius.intent import ModelVersion


class Outcome(Struct, frozen=True):
    """The result of an update: `fate` is `none`, `missing`, `stored`, `same`, `unseen`, `unasked` or `refused:…`."""

    fate: str
    merged: Merged | None = None


def outcome(reading: Reading) -> Outcome:
    """Judge the update of a reply. Pure."""
    checks = reading.thoughts.get("user_model_check", ())
    updates = reading.thoughts.get("user_model_update", ())
    asked = "user_model_update" in reading.asked
    if reading.person is None or not (checks and read_bool([check.content for check in checks])):
        return Outcome("refused:check" if updates else "none")
    if not asked:
        return Outcome("unseen" if updates and not reading.seen else "unasked" if updates else "none")
    if not updates:
        return Outcome("missing")
    current = reading.person.models[0]
    merged = merge_update(
        current.markdown,
        [(update.section, update.content) for update in updates],
        max_bytes=reading.limits.model_bytes,
        shrink_floor=reading.limits.shrink_floor,
        person=reading.person.person,
    )
    if merged.refused:
        return Outcome(f"refused:{merged.refused}", merged)
    return Outcome("same" if merged.markdown == current.markdown else "stored", merged)


def _gate(situation: Situation) -> bool:
    return situation.person is not None and situation.seen


def _effect(reading: Reading) -> Effect:
    if not reading.thoughts.get("user_model_update") and not reading.thoughts.get("user_model_check"):
        return NOTHING
    result = outcome(reading)
    if result.fate == "none" or reading.person is None:
        return NOTHING
    if result.fate != "stored" or result.merged is None or result.merged.markdown is None:
        return Effect(changes={"user_model": {"person": reading.person.person, "result": result.fate}})
    current = reading.person.models[0]
    notes = reading.thoughts.get("model_change_note", ())
    version = ModelVersion(
        person=current.person,
        audience=current.audience,
        version=current.version + 1,
        markdown=result.merged.markdown,
        note=clean_note(notes[0].content if notes else "") or f"updated {reading.person.name}",
        suspect=result.merged.suspect,
        name=reading.person.name,
    )
    return Effect(
        model=version,
        changes={
            "user_model": {
                "person": version.person,
                "audience": version.audience,
                "version": version.version,
                "note": version.note,
                "suspect": version.suspect,
                "result": "stored",
            }
        },
    )


STEP = Step(name="user_model_update", gate=_gate, after="user_model_check", effect=_effect)
