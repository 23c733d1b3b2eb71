"""Keeping what was only overheard: no model is asked, nothing is said, the words stand in working memory."""

from __future__ import annotations

from claudius.cognition.attending import attend_to
from claudius.cognition.commit import commit
from claudius.cognition.encounter import show_heard
from claudius.cognition.first_word import PROCESS, is_to_speak, is_told_to_stop, withheld
from claudius.cognition.lapsing import has_lapsed
from claudius.cognition.mind import Mind
from claudius.cognition.processes import route, sections
from claudius.cognition.soul_engine import EngineSettings, conclude_heard, conclude_unthought, lines_for
from claudius.cognition.told import ANSWER, SAYS, keep_told
from claudius.memory.store import Pending, RecallLimits
from claudius.perception import Origin
from claudius.psyche import Attention
from claudius.psyche.surroundings import ANNOUNCED


async def overhear(pending: Pending, mind: Mind) -> bool:
    """Commit a perception that is owed nothing; False, and nothing is done, where the soul wants to think about it.

    Raises: StaleTurn, StoreError.
    """
    config, now = mind.config(), mind.clock()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours, psyche=config.psyche.enabled)
    recollection = await mind.store.recall(pending, nonce=mind.nonce(), now=now, limits=limits)
    soul, settings = mind.soul(), EngineSettings.of(config)
    attention = await attend_to(recollection, soul, config, mind.store)
    if attention.outcome == "think":
        return False
    show_heard(mind.hooks, recollection)
    process = route(recollection, soul)
    if attention.outcome == "react":
        lines = lines_for(attention, recollection, soul)
        intent = conclude_unthought(recollection, process, settings, attention, lines)
    else:
        intent = conclude_heard(recollection, process, settings, attention)
    await commit(intent, recollection, mind)
    return True


async def _stop(pending: Pending, mind: Mind) -> bool:
    """Write first to somebody no more, because they said so; they are told, and no model is asked."""
    await mind.store.wish(pending.perception.person, proactive=False, now=mind.clock())
    line = sections(mind.soul().files.get(f"processes/{PROCESS}.md")).get("stopped", "I will not.")
    return await _say(pending, mind, line)


async def _say(pending: Pending, mind: Mind, line: str, *, verb: str = "acknowledged") -> bool:
    """Say a line of the soul's own; no model is asked."""
    config, soul, now = mind.config(), mind.soul(), mind.clock()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours, psyche=config.psyche.enabled)
    recollection = await mind.store.recall(pending, nonce=mind.nonce(), now=now, limits=limits)
    show_heard(mind.hooks, recollection)
    told = Attention(outcome="react", speaks=True)
    process, settings = route(recollection, soul), EngineSettings.of(config)
    intent = conclude_unthought(recollection, process, settings, told, (line,), verb=verb)
    await commit(intent, recollection, mind)
    return True


async def passes(pending: Pending, mind: Mind) -> bool:
    """Tell whether a perception is done with unthought: what was only overheard is kept, what came too late let go."""
    perception = pending.perception
    if ANSWER in perception.extra:
        await keep_told(pending, mind)
        return True
    if perception.origin is Origin.INTERNAL and SAYS in perception.extra:
        return await _say(pending, mind, str(perception.extra[SAYS]), verb=ANNOUNCED)
    if not perception.owes and perception.origin is Origin.EXTERNAL:
        return await overhear(pending, mind)
    if perception.origin is Origin.EXTERNAL:
        return await is_told_to_stop(pending, mind) and await _stop(pending, mind)
    if await has_lapsed(pending, mind):
        return True
    return is_to_speak(perception) and await withheld(pending, mind)
