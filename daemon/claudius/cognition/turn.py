"""Run one turn from perception to commit: recall, attend, run the hops, conclude, commit.

The lane calls `take_turn` for every perception it takes up. Perceptions that need no model (overheard, acknowledged,
stopped, announced, apologised for, answered elsewhere) take the same path without a hop. If a step fails, only the
finished model calls are kept, so that a re-run does not pay for them again.
"""

from __future__ import annotations

import logging
import sys
from datetime import datetime
from string import Template

from msgspec.structs import replace

from claudius.cognition.commit import commit
from claudius.cognition.conclude.conclusion import (
    TOO_LONG,
    conclude_apology,
    conclude_heard,
    conclude_told,
    conclude_unthought,
)
from claudius.cognition.conclude.transitions import mood_before
from claudius.cognition.history import lengths, rendered
from claudius.cognition.hooks import show_heard
from claudius.cognition.hop import begin, run
from claudius.cognition.mind import Mind, Stage, is_by_owner
from claudius.cognition.plan import EngineSettings, Plan, attend_to, setback
from claudius.cognition.proactive import (
    PROCESS,
    follows,
    has_lapsed,
    is_to_speak,
    is_told_to_stop,
    think_twice,
    withheld,
)
from claudius.cognition.processes import Process, route, sections
from claudius.cognition.reflection import Idle, fold_expired
from claudius.cognition.reply.tags import TOOL_USE
from claudius.cognition.timing import zone_at, zone_name
from claudius.cognition.tool_use import tools_here
from claudius.cognition.turn_state import Surface, TurnState, recorded, settings_now, soul_now
from claudius.config.schema import daimon_modes
from claudius.errors import BadRequest, OverBudget, StoreError, TooLong
from claudius.failure import Failure
from claudius.intent import ApologyKind, Intent, Utterance
from claudius.memory.inbox import Pending
from claudius.memory.recall import RecallLimits
from claudius.perception import SELF, Kind, MessageExtra, Origin, Perception, ScheduledExtra, ToolExtra, internal
from claudius.psyche import Attention
from claudius.psyche.context import ANNOUNCED
from claudius.recollection import Recollection, unrecalled
from claudius.soul import SoulText
from claudius.tool import CallState

log = logging.getLogger(__name__)

UPDATES = ("user_model_update", "model_change_note")
NO_SURFACE = Surface()
POST_CHARS = 3000
"""Characters of one post, where the network would take longer ones; a longer reply is split."""
INTRODUCED = {"remind": "reminder", "promise": "promise"}
"""What introduces a plan when it is due: by what it was made as, the heading in the soul's text."""
FIRST_MESSAGE = "first_message"
"""The heading, in the text of the process `greeting`, of what is said below the first answer to a direct message."""
LEAST_CHARS = 1000
"""The least that is shown of a message, however long the model finds the prompt."""


class Turned(Idle, frozen=True, kw_only=True):
    """A committed turn: what it recalled and what it changed."""

    is_joined: bool = False
    """Whether the other speakers in the conversation have had their chance to speak."""


async def take_turn(pending: Pending, mind: Mind, surface: Surface = NO_SURFACE) -> Turned | None:
    """Run one perception through a turn and commit the result.

    Returns None if the perception was dropped: it lapsed, or must not be spoken now.

    Raises: ProviderError if the model returned nothing, OverBudget, Unreadable, ProcessError, Superseded if the turn
    yielded to a new perception, StaleTurn, StoreError.
    """
    perception = pending.perception
    if perception.origin is Origin.INTERNAL and internal(perception).says is None:
        if has_lapsed(perception, mind):
            await mind.store.inbox.withdraw(pending.seq, "lapsed: it was not taken up in time")
            return None
        if perception.audience != SELF and is_to_speak(perception) and await withheld(pending, mind):
            return None
    turn = await _recalled(pending, mind, surface)
    known = turn.recollection
    mind.store.inbox.take(pending.seq, {"now": known.now.isoformat(), "nonce": known.nonce}, mind.clock())
    before = known.summary
    intent = await _concluded(turn, pending)
    if turn.recollection.summary is not before:
        intent = replace(intent, summary=turn.recollection.summary)
    if surface.introduces and known.speaker and known.speaker.is_new_here and not known.speaker.is_bot:
        intent = replace(intent, utterances=_with_help(intent.utterances, turn.soul, surface.post_chars))
    committed = await commit(intent, turn.recollection, mind)
    known, history_from = turn.recollection, turn.plan.history_from
    return Turned(intent=committed, recollection=known, pending=pending, history_from=history_from)


async def apologise(pending: Pending, mind: Mind, kind: ApologyKind, failure: Failure | None = None) -> Intent:
    """Conclude a perception whose turn failed with one typed apology, and commit it.

    Uses only the perception and a fixed line, because whatever made the turn fail (recall, routing, plan, psyche,
    ledger) would make the apology fail too. `failure`: what made it fail. Raises: StaleTurn, StoreError.
    """
    heard = unrecalled(pending.turn, pending.perceptions, mind.nonce(), mind.clock())
    turn = await _unanswered(pending, mind) if kind != "interrupted" else None  # recalling may be what ended them
    speaker = turn.recollection.speaker if turn else None
    intent = replace(
        conclude_apology(
            heard,
            kind,
            mind.soul(),
            pending.calls,
            minutes=failure.again_min if failure and not is_by_owner(pending.perceptions, mind.config()) else 0,
            is_first=speaker is not None and speaker.is_stranger,
        ),
        failure=failure,
        psyche=setback(heard, kind, mind.soul(), mind.config()),
    )
    intent = replace(recorded(turn, intent), calls=intent.calls) if turn else intent
    return await commit(intent, heard, mind, is_turn=False)


async def _unanswered(pending: Pending, mind: Mind) -> TurnState | None:
    """Return the turn that an apology stands for, as `why` and `replay` show it; None if it cannot be built."""
    try:
        turn = await _recalled(pending, mind, NO_SURFACE)
        begin(turn, route(turn.recollection, turn.soul, autonomous=turn.settings.autonomous))
    except StoreError:
        raise
    except Exception:  # whatever made the turn fail is likely to fail here again; the apology is owed all the same
        log.exception("an apology keeps no prompt", extra={"turn": pending.turn})
        return None
    return turn


def _with_help(said: tuple[Utterance, ...], soul: SoulText, post_chars: int | None) -> tuple[Utterance, ...]:
    """Return the first answer to a direct message, and below it what the soul can do for whoever wrote it. Pure."""
    line = " ".join(sections(soul.files.get("processes/greeting.md")).get(FIRST_MESSAGE, "").split())
    has_room = said and len(said[-1].body) + 2 * len(line) < (post_chars or sys.maxsize)
    if not (line and has_room and said[-1].kind == "reply"):
        return said
    return (*said[:-1], replace(said[-1], receipts=(line,)))


def _introduced(perception: Perception, soul: SoulText) -> Perception:
    """Return what was asked for or promised with the soul's own words around it, as the turn hears it. Pure."""
    extra = perception.extra
    if not isinstance(extra, ScheduledExtra) or extra.made_as not in INTRODUCED:
        return perception
    words = sections(soul.files.get(f"processes/{PROCESS}.md")).get(INTRODUCED[extra.made_as], "$what")
    return replace(perception, text=Template(words).safe_substitute(what=perception.text))


async def _recalled(pending: Pending, mind: Mind, surface: Surface) -> TurnState:
    """Recall everything the turn needs, with the time and nonce of an earlier unfinished run, if there was one.

    Raises: RowInvalid, StaleTurn, StoreError.
    """
    config, earlier = mind.config(), pending.inputs
    now = datetime.fromisoformat(earlier["now"]) if "now" in earlier else mind.clock()
    nonce = earlier.get("nonce") or mind.nonce()
    limits = RecallLimits(
        ttl_hours=config.memory.ttl_hours,
        moments=config.memory.moments,
        aged_at=mind.aged_at(),
        beliefs=mind.reflects(),
        psyche=config.psyche.enabled,
        daimons=daimon_modes(config),
        zone=config.clock.timezone,
        in_order=True,
    )
    recollection = await mind.store.turns.recall(pending, nonce=nonce, now=now, limits=limits)
    soul = soul_now(mind)
    if recollection.perception.origin is Origin.INTERNAL:
        heard = tuple([_introduced(one, soul) for one in recollection.perceptions])
        recollection = replace(recollection, perceptions=heard)
    settings = EngineSettings.of(
        config,
        post_chars=None if surface.post_chars is None else min(surface.post_chars, POST_CHARS),
        is_plain=surface.is_plain,
        assesses=not mind.reflects(),
        zone=zone_name(zone_at(recollection, config.clock.timezone)),
    )
    return TurnState(
        mind=mind,
        soul=soul,
        config=config,
        settings=settings,
        recollection=recollection,
        plan=Plan(owes=False),
        surface=surface,
        paid={call.request_sha256: call for call in pending.calls},
    )


async def _concluded(turn: TurnState, pending: Pending) -> Intent:
    """Conclude a perception, without a model if none is needed."""
    known, perception, mind = turn.recollection, turn.recollection.perception, turn.mind
    if perception.extra.is_over_budget:
        raise OverBudget
    show_heard(mind.hooks, known)
    process = route(known, turn.soul, autonomous=turn.settings.autonomous)
    if (noted := _noted(known, process, turn.settings)) is not None:
        return noted
    if (line := _fixed(turn)) is not None:
        return _said(turn, line, ANNOUNCED)
    if known.owes and perception.origin is Origin.EXTERNAL and is_told_to_stop(pending, mind):
        await mind.store.people.wish(perception.person, proactive=False, now=mind.clock())
        line = sections(turn.soul.files.get(f"processes/{PROCESS}.md")).get("stopped", "I will not.")
        return _said(turn, line, "acknowledged")
    has_process = not process.is_simple and (known.owes or perception.origin is Origin.INTERNAL)
    attention = await attend_to(known, turn.soul, turn.config, mind.store, has_process=has_process)
    is_only_told = perception.kind is Kind.NEWS and perception.origin is Origin.EXTERNAL
    if known.audience == SELF or is_only_told:  # only heard; something may follow
        intent = conclude_heard(known, process, turn.settings, attention)
        entries = intent.entries if perception.kind is Kind.NEWS else ()
        words = sections(turn.soul.files.get(f"processes/{PROCESS}.md")).get("news", "")
        return replace(intent, entries=entries, planned=follows(known, attention, words))
    if attention.outcome == "think":
        turn.attention = attention
        async with mind.slot.turn():
            return await _thought(turn)
    is_heard = attention.outcome != "react" and not known.owes and perception.origin is Origin.EXTERNAL
    mood = mood_before(known, attention.change.mood if attention.change else "")
    return (
        conclude_heard(known, process, turn.settings, attention)
        if is_heard
        else conclude_unthought(
            known, process, turn.settings, attention, turn.soul.steps["external_dialogue"].acknowledgements(mood)
        )
    )


def _noted(known: Recollection, process: Process, settings: EngineSettings) -> Intent | None:
    """Conclude what needs no word: what was answered elsewhere, a question that lapsed (the next turn is shown it)."""
    extra = known.perception.extra
    if isinstance(extra, MessageExtra) and extra.answer is not None:
        return conclude_told(known, process, settings, extra.answer)
    is_lapsed = isinstance(extra, ToolExtra) and extra.state == CallState.LAPSED
    return conclude_heard(known, process, settings) if is_lapsed else None


def _fixed(turn: TurnState) -> str | None:
    """Return the line that says, without a model, what was heard; None if it is to be thought about.

    Of a tool that was refused, or of whose end nobody knows, a model is asked nothing: it might do it in another way.
    """
    extra = turn.recollection.perception.extra
    if isinstance(extra, ToolExtra) and extra.state in (CallState.REFUSED, CallState.UNKNOWN):
        call = turn.mind.store.calls.find(extra.call)
        by = call.allowed_by if call else ""
        is_alone = turn.recollection.audience.startswith("private:") and by == extra.asked_by
        who = "you" if is_alone else turn.mind.store.people.name(by)
        return turn.soul.steps[TOOL_USE].line(extra.state, tool=extra.tool, who=who, call=extra.call)
    return internal(turn.recollection.perception).says


def _said(turn: TurnState, line: str, verb: str) -> Intent:
    """Conclude the turn with a line that the soul already has."""
    process = route(turn.recollection, turn.soul)
    told = Attention(outcome="react", speaks=True)
    return conclude_unthought(turn.recollection, process, turn.settings, told, (line,), verb=verb)


async def _thought(turn: TurnState) -> Intent:
    """Run the hops; again without pictures, with half the history each time, then less of the message, if refused."""
    surface, known = turn.surface, turn.recollection
    stage = turn.mind.stage(known.perception)
    if stage is Stage.REFUSING:
        raise OverBudget
    if surface.begin_thinking:
        await surface.begin_thinking()
    await _look(turn)
    if known.expired:
        await fold_expired(turn)
    turn.recollection = await think_twice(turn.recollection, turn.mind, turn.soul, surface.hold)
    attention = turn.attention
    mood = mood_before(turn.recollection, attention.change.mood if attention and attention.change else "")
    process = route(turn.recollection, turn.soul, autonomous=turn.settings.autonomous, mood=mood)
    if stage is Stage.UPDATES_OFF:  # user model updates are skipped to save money
        process = replace(process, steps=tuple(name for name in process.steps if name not in UPDATES))
    turn.settings = await settings_now(turn.mind, turn.recollection, turn.settings)
    turn.settings = replace(turn.settings, tools=await tools_here(turn))
    while True:
        begin(turn, process)
        try:
            intent = await run(turn)
        except (TooLong, BadRequest) as error:
            if not _is_made_easier(turn, error):
                raise
        else:
            if TOO_LONG in intent.flags:
                log.warning("a reply was cut short", extra={"turn": intent.turn})
            return intent


async def _look(turn: TurnState) -> None:
    """Read the attached files, and add what stands above the message to what it shows, unless it is known already."""
    known, files = turn.recollection, turn.surface.files
    said = [one.extra for one in known.perceptions if isinstance(one.extra, MessageExtra)]
    perceptions = known.perceptions
    if files and any(extra.files for extra in said):
        perceptions, turn.images = await files.read(perceptions)
    last = perceptions[-1]
    if turn.surface.around and isinstance(last.extra, MessageExtra):
        seen = {entry.position for past in known.past for entry in past.entries}
        shown = {one.of for extra in said for one in extra.shown} | {one.key for one in perceptions}
        above = [one for one in turn.surface.around if one.position not in seen and one.of not in shown]
        last = replace(last, extra=replace(last.extra, shown=(*above, *last.extra.shown)))
    turn.recollection = replace(known, perceptions=(*perceptions[:-1], last))


def _is_made_easier(turn: TurnState, error: TooLong | BadRequest) -> bool:
    """Reset the turn with a shorter prompt, or without images. Returns False if that cannot be."""
    settings, files, known = turn.settings, turn.surface.files, turn.recollection
    if isinstance(error, BadRequest) and turn.images and files:
        log.warning("a model refuses pictures", extra={"turn": turn.turn, "error": error.message})
        turn.recollection, turn.images = replace(known, perceptions=files.without_pictures(known.perceptions)), ()
        turn.restart(settings)
        return True
    shown = [past for past in known.past if past.number >= turn.plan.history_from]
    sent = sum(rendered(past, settings.profile).tokens for past in shown)
    # Not every server says in words that we know what is too long: what it refuses without a reason is halved once.
    if sent > 1 and (isinstance(error, TooLong) or (settings.window and not error.fix)):  # no budget is less than 1
        turn.restart(replace(settings, budget_tokens=sent - 1, window=0))
        return True
    if not isinstance(error, TooLong):
        return False
    chars = min(settings.message_chars, max(lengths(known.perceptions))) // 4
    turn.restart(replace(settings, message_chars=chars))
    return chars >= LEAST_CHARS
