"""Ask a model of the plain profile, after its words, what a larger one writes with them: one call, an enforced form.

The words are said whatever comes of it: a judgement that is late or fails is left out, with a flag.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from claudius.cognition.acts import ReadActs
from claudius.cognition.asking import acts_of, ask_model, keep_acts, not_done
from claudius.cognition.conclude.conclusion import interpret
from claudius.cognition.plan import portrait
from claudius.cognition.prompt.assembly import build_prompt, form_of
from claudius.cognition.prompt.plain import judging_prompt
from claudius.cognition.steps import step_of
from claudius.cognition.turn_state import TurnState
from claudius.errors import OverBudget, ProviderError
from claudius.intent import Thoughts

POST_WAITS_S, SHOWN_WAITS_S = 20.0, 60.0
"""How long the judgements may take: where a post waits for them, and where its words were shown already."""
LATE = "late:judgement"


async def judged(turn: TurnState, found: Thoughts) -> Thoughts:
    """Ask what a model of the plain profile judges of its words, in a call that goes on from their prompt.

    If that takes too long or fails, nothing is booked.
    """
    if not found.speech or found.rung == "fixed":
        return found
    plan, known = turn.plan, turn.recollection
    conditional = {name: check for name in plan.judged if (check := step_of(name, turn.soul).after) in plan.judged}
    own = portrait(known.speaker)
    asked = replace(plan, asked=plan.judged, conditional=conditional, shown=own)
    prompt = build_prompt(plan, known, turn.soul, turn.settings)
    try:
        async with asyncio.timeout(SHOWN_WAITS_S if found.streamed else POST_WAITS_S):
            reply = await ask_model(
                turn,
                judging_prompt(prompt, found.speech, asked, known, turn.soul, turn.settings.zone),
                "judge",
                steps=asked.asked,
                form=form_of(asked, turn.soul, turn.settings),
            )
    except (TimeoutError, OverBudget, ProviderError):
        return replace(found, flags=(*found.flags, LATE))
    turn.plan = replace(asked, asked=(*plan.asked, *asked.asked))
    thoughts, flags = interpret(reply.parsed, turn.plan, turn.soul)
    acts = acts_of(turn, reply.parsed) or ReadActs()
    keep_acts(turn, acts)
    refused = ("dropped:acts",) if acts.refused else ()
    said = f"{found.speech}\n\n{not_done(turn, acts)}" if [one for one in acts.refused if one.what] else found.speech
    return replace(found, thoughts=(*found.thoughts, *thoughts), speech=said, flags=(*found.flags, *flags, *refused))
