"""Turn a parsed reply into thoughts: keep the steps that were asked, check each verb and flag the rest."""

from __future__ import annotations

from claudius.cognition.plan.plan import Plan, allowed_verbs
from claudius.cognition.reply.parsed import Parsed, Section
from claudius.cognition.reply.readers import clean_text, read_verb
from claudius.intent import Thought
from claudius.soul import SoulText

ALWAYS_KEPT = ("user_model_check",)
"""Kept even if it was not asked, because it only affects what the next turn shows."""


def interpret(parsed: Parsed, plan: Plan, soul: SoulText) -> tuple[tuple[Thought, ...], tuple[str, ...]]:
    """Return the private thoughts of a reply in `STEPS` order, and flags for what was wrong with them. Pure."""
    thoughts: list[Thought] = []
    flags: dict[str, None] = {}
    for name, step in soul.steps.items():
        if name == "external_dialogue":
            continue
        found = _sections(parsed, name)
        if found and name not in plan.asked:
            flags[f"unasked:{name}"] = None
            if name not in ALWAYS_KEPT:
                continue
        verbs, default = allowed_verbs(name, plan, soul)
        for section in found:
            verb, is_bad = read_verb(section.verb, verbs, default) if verbs else (None, False)
            if is_bad:
                flags["bad_verb"] = None
            text = clean_text(section.text) if step.value == "text" else section.text
            thoughts.append(Thought(step=name, content=text, verb=verb or None, section=section.section))
    return tuple(thoughts), tuple(flags)


def _sections(parsed: Parsed, name: str) -> tuple[Section, ...]:
    match name:
        case "internal_monologue":
            return (parsed.monologue,) if parsed.monologue else ()
        case "user_model_update":
            return parsed.updates
        case "user_model_check" | "soul_state_check":
            return tuple(one for one in parsed.sections if one.name == name and one.complete)
        case _:
            first = parsed.first(name)
            return (first,) if first else ()
