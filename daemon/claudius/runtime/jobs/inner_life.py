"""Jobs of the soul itself: a look inward after a conversation, noticing silence, and asking daimons for whispers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from string import Template

from claudius.cognition.mind import Stage
from claudius.cognition.proactive import PROCESS, consents
from claudius.cognition.processes import sections
from claudius.cognition.timing import Timing
from claudius.config.schema import DaimonSettings
from claudius.memory.turns import Quiet
from claudius.perception import SELF, InternalExtra, Kind, Origin, Perception, ScheduledExtra, TickExtra
from claudius.psyche.bands import arc_band, numbers_bands
from claudius.psyche.change import advance_arcs
from claudius.psyche.state import advance
from claudius.psyche_types import Edge, Psyche
from claudius.runtime.jobs import Job, Tools, calls_left

WITHIN = "self:claudius:within:"
"""The soul's own conversation: what only moves its numbers happens there, and nothing is ever thought or said in it."""
IDLE = timedelta(minutes=30)
RECENT = timedelta(days=1)
"""Conversations quiet for longer are not reviewed."""
MOST_REVIEWED = 20
REVIEW = "looking_inward"
JITTER = 0.2
"""The share by which the interval between two whispers varies."""


async def soul_state_check(tools: Tools) -> str:
    """Plan one silent turn in the conversation that fell quiet last, half an hour ago or more. Raises: StoreError."""
    mind = tools.mind
    if mind.stage() is not Stage.OPEN:
        return "no budget"
    for quiet in mind.store.turns.quiet(tools.now - RECENT, tools.now - IDLE, MOST_REVIEWED):
        known = mind.store.turns.kept(quiet.conversation, SOUL_STATE_CHECK.name)
        if known.get("number", 0) < quiet.number:
            await _look_inward(tools, quiet)
            return f"a look at {quiet.conversation}"
    return "nothing was said since the last look"


async def _look_inward(tools: Tools, quiet: Quiet) -> None:
    text = sections(tools.mind.soul().files.get(f"processes/{REVIEW}.md")).get("occasion", "")
    perception = Perception(
        key=f"due:{SOUL_STATE_CHECK.name}:{quiet.conversation}:{quiet.number}",
        conversation=quiet.conversation,
        audience=quiet.audience,
        text=text,
        at=tools.now,
        kind=Kind.SCHEDULED,
        origin=Origin.INTERNAL,
        owes=False,
        extra=ScheduledExtra(process=REVIEW),
    )
    await tools.mind.store.inbox.impose(perception, SOUL_STATE_CHECK.name, {"number": quiet.number}, tools.now)
    tools.wake(quiet.conversation)


SOUL_STATE_CHECK = Job("soul_state_check", Timing(every=timedelta(minutes=30)), soul_state_check)


DAYS = (1, 3, 7, 14)
MOST_SILENT, MOST_QUIET = 100, 1000
FAMILIAR = 0.05
"""From this familiarity on, somebody's silence is noticed."""
FOND = 0.1
"""From this warmth on, missing somebody is a reason to write to them."""
MISSES = 0.75
"""The need for company from which the soul misses people."""


async def silence(tools: Tools) -> str:
    """Have the soul notice each silence of a familiar person once: that moves its numbers.

    Where the rules of writing first may allow it, and there is a reason, something may follow in the conversation of
    that person. Raises: StoreError.
    """
    mind, now = tools.mind, tools.now
    since = now - timedelta(days=DAYS[-1] + 1)
    absent = mind.store.psyche.absent(since, now - timedelta(days=DAYS[0]), MOST_SILENT)
    if not absent:
        return "nobody is missed"
    talks = mind.store.turns.quiet(since, now, MOST_QUIET) if mind.config().psyche.proactive else ()
    standing = mind.store.psyche.standing()
    noticed = 0
    for edge in absent:
        there = next((one for one in talks if one.person == edge.person and one.audience.startswith("private:")), None)
        noticed += await _notice(tools, edge, standing, there)
    return f"{noticed} noticed" if noticed else "no silence is new"


async def _notice(tools: Tools, edge: Edge, standing: Psyche, there: Quiet | None) -> bool:
    last_at = datetime.fromtimestamp(edge.at_s, UTC)
    days = max(day for day in DAYS if tools.now - last_at >= timedelta(days=day))
    text, promised, reason, matter = "", "", "", None
    if there and consents(there.person, tools.mind.store):
        words = sections(tools.mind.soul().files.get(f"processes/{PROCESS}.md"))
        promised = tools.mind.store.plans.undertaken(there.person, there.audience)
        here = tools.now.astimezone(tools.zone)
        matter = None if promised else tools.mind.store.facts.due(edge.person, there.audience, here)
        known = promised or (matter.text if matter else "")
        name, reason = ("silence", known) if known else _reason(edge, standing, there.audience, tools.now)
        text = Template(words.get(name, "")).safe_substitute(days=days, reason=reason) if name else ""
    if edge.familiarity < FAMILIAR and not promised:
        return False
    perception = Perception(
        key=f"due:silence:{edge.person}:{last_at:%Y-%m-%dT%H:%M:%S}:{days}",
        conversation=WITHIN,
        audience=SELF,
        person=edge.person,
        text=text,
        at=tools.now,
        kind=Kind.SILENCE,
        origin=Origin.INTERNAL,
        owes=False,
        extra=InternalExtra(
            process=PROCESS if text else "",
            level=1.0 if promised else 0.0,
            what=reason,
            there=(there.conversation, there.audience) if there and text else ("", ""),
        ),
    )
    new = await tools.mind.store.inbox.impose(perception, "", {}, tools.now)
    if new:
        tools.wake(WITHIN)
        if matter is not None:  # a cause to write first, once
            await tools.mind.store.facts.raised(matter.id, tools.now)
    return new


def _reason(edge: Edge, standing: Psyche, audience: str, now: datetime) -> tuple[str, str]:
    """Return the psyche's reason to write to somebody: the section of words, and what fills it. Pure."""
    at_s = now.timestamp()
    hottest = sorted(advance_arcs(standing.arcs, at_s), key=lambda one: -one.intensity)
    if subject := next((one.label for one in hottest if one.sources == (audience,) and arc_band(one)), ""):
        return "still_on_mind", subject
    need = advance(standing.numbers, at_s).drives[0] if standing.numbers else 0.0
    return ("missed", "") if need >= MISSES and edge.warmth >= FOND else ("", "")


SILENCE = Job("silence", Timing(every=timedelta(hours=6), jitter=0.2), silence)


async def tick(tools: Tools) -> str:
    """Have the soul notice what time alone has done to it, if that changed a word of how it feels.

    What it means decides, as for every event, whether a look inward follows, in the conversation that somebody spoke
    in last; not if a day of rest has had its model calls. Raises: StoreError.
    """
    mind, now = tools.mind, tools.now
    numbers = mind.store.psyche.standing().numbers
    if numbers is None or numbers_bands(advance(numbers, now.timestamp())) == numbers.bands:
        return "nothing moved"
    there = next(iter(mind.store.turns.quiet(now - timedelta(days=DAYS[-1]), now, 1)), None)
    may_look = bool(calls_left(tools))
    perception = Perception(
        key=f"due:tick:{now.isoformat()}:within",
        conversation=WITHIN,
        audience=SELF,
        text=sections(mind.soul().files.get(f"processes/{REVIEW}.md")).get("occasion", ""),
        at=now,
        kind=Kind.TICK,
        origin=Origin.INTERNAL,
        owes=False,
        extra=TickExtra(
            process=REVIEW if may_look else "",
            there=(there.conversation, there.audience) if there and may_look else ("", ""),
        ),
    )
    await mind.store.inbox.impose(perception, "", {}, now)
    tools.wake(WITHIN)
    return "it moved"


TICK = Job("tick", Timing(every=timedelta(hours=12)), tick)


def whisper_job(name: str, daimon: DaimonSettings) -> Job:
    """Return the job of one daimon. Pure."""

    async def work(tools: Tools) -> str:
        found = await tools.daimons().due(name, quiet=tools.is_quiet)
        return "a whisper came" if found.stored else found.reason

    timing = Timing(every=timedelta(minutes=daimon.interval_min), jitter=JITTER)
    return Job(f"{name}_whisper", timing, work)
