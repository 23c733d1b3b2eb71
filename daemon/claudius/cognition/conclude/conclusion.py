"""Conclude a turn: turn its thoughts into an intent (entries, models, state and one utterance, via the output gate).

`cognition.turn` and `cognition.hop` call one function for each kind of turn; nothing here writes to the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from msgspec.structs import replace

from claudius.cognition.conclude.transitions import settled, stayed
from claudius.cognition.output.gate import Gated, gate, has_secret
from claudius.cognition.output.rules import SAID, OutputRules
from claudius.cognition.output.splitting import in_posts, plain
from claudius.cognition.plan import EngineSettings, Plan, allowed_verbs, own_name, silent_plan
from claudius.cognition.processes import Process
from claudius.cognition.reply.parser import Parsed, Section, clean_text, read_verb
from claudius.cognition.steps import STEPS, Reading, answer, placed, step_of
from claudius.intent import (
    SIGN_ONLY,
    ApologyKind,
    Call,
    Intent,
    ModelVersion,
    Rung,
    StateChange,
    Thought,
    Thoughts,
    Utterance,
    UtteranceKind,
)
from claudius.ledger_types import Noted, Proposal
from claudius.perception import SELF, Kind, Origin, Perception, ReactionExtra, ToolExtra, can_react, internal
from claudius.prompt import datamark
from claudius.psyche import Attention
from claudius.psyche.attend import acknowledgement
from claudius.psyche.scrubber import FEELINGS, spoken_without_numbers
from claudius.psyche.words import stems
from claudius.recollection import CANNED, Entry, EntryType, Recollection, StateKey, turn_of
from claudius.soul import SoulText, StepText

ALWAYS_KEPT = ("user_model_check",)
"""Kept even if it was not asked, because it only affects what the next turn shows."""


def interpret(parsed: Parsed, plan: Plan, soul: SoulText) -> tuple[tuple[Thought, ...], tuple[str, ...]]:
    """Return the private thoughts of a reply in `STEPS` order, and flags for what was wrong with them. Pure."""
    thoughts: list[Thought] = []
    flags: dict[str, None] = {}
    for name, worded in soul.steps.items():
        if name == "external_dialogue":
            continue
        found = _written(worded, parsed)
        if found and name not in plan.asked:
            flags[f"unasked:{name}"] = None
            if name not in ALWAYS_KEPT:
                continue
        if not found and name == "appraisal" and name in plan.asked:
            flags[f"missing:{name}"] = None
        verbs, default = allowed_verbs(name, plan, soul)
        for section in found:
            verb, is_bad = read_verb(section.verb, verbs, default) if verbs else (None, False)
            if is_bad:
                flags["bad_verb"] = None
            text = clean_text(section.text) if worded.value == "text" and name in STEPS else section.text
            thoughts.append(Thought(step=name, content=text, verb=verb or None, section=section.section))
    return tuple(thoughts), tuple(flags)


def _written(worded: StepText, parsed: Parsed) -> tuple[Section, ...]:
    """Return the sections that answer a step: of a check every one, so that two that disagree are seen. Pure."""
    name = worded.name
    if name == "user_model_update":
        return parsed.updates
    if name == "internal_monologue":
        return (parsed.monologue,) if parsed.monologue else ()
    found = tuple([one for one in parsed.sections if one.name == name and one.complete])
    if name not in STEPS:
        return (answer(worded, found),) if found else ()
    return found if name in ("user_model_check", "soul_state_check", "appraisal") else found[:1]


UTTERANCES = UUID("6d0f1c52-7f1f-4d3b-9a36-5a0b8f2e41c7")
"""The namespace of the idempotency keys: uuid5(this, "turn/part")."""
TOO_LONG = "too_long"
NODDED = "nodded"
PAUSED = "⏸️"
"""`TOO_LONG` flags a turn whose reply was cut to the allowed number of posts; `NODDED` is the verb of a reaction;
`PAUSED` is the reaction of a soul that is paused."""


def utterance_key(turn: str, part: int) -> str:
    """Return the idempotency key of one part of a turn's utterance. Pure."""
    return str(uuid5(UTTERANCES, f"{turn}/{part}"))


def draft_utterance(turn: str, perception: Perception) -> Utterance:
    """Return the empty first part of a streamed reply; the commit completes it under the same key. Pure."""
    return Utterance(
        key=utterance_key(turn, 0),
        turn=turn,
        conversation=perception.conversation,
        body="",
        answers=(perception.key,),
        person=perception.person,
    )


def paused(perception: Perception) -> Utterance:
    """Return the sign on a message that is owed an answer while the soul is paused: it is of no turn. Pure."""
    return Utterance(
        key=utterance_key(perception.key, 0),
        turn=turn_of(f"{perception.key}~{SIGN_ONLY}"),
        conversation=perception.conversation,
        body=PAUSED,
        kind="reaction",
        verb=SIGN_ONLY,
        answers=(perception.key,),
    )


def conclude(
    plan: Plan,
    recollection: Recollection,
    thoughts: Thoughts,
    soul: SoulText,
    settings: EngineSettings,
    rules: OutputRules,
    attention: Attention | None,
) -> Intent:
    """Turn the thoughts of a turn into an intent with all its changes. Pure.

    `attention`: what the psyche made of the perception; None = it was not asked.
    """
    by_step: dict[str, tuple[Thought, ...]] = {}
    secret = [thought for thought in thoughts.thoughts if has_secret(thought.content, rules)]
    for thought in thoughts.thoughts:
        if thought not in secret:
            by_step[thought.step] = (*by_step.get(thought.step, ()), thought)
    reading = Reading(
        thoughts=by_step,
        recollection=recollection,
        person=recollection.speaker if recollection.speaker and not recollection.speaker.is_bot else None,
        asked=frozenset(plan.asked),
        seen=plan.seen,
        model_bytes=settings.model_bytes,
        shrink_floor=settings.shrink_floor,
    )
    answered = [name for name in soul.steps if name in by_step and (name in plan.asked or name in ALWAYS_KEPT)]
    effects = {name: step_of(name, soul).effect(reading) for name in answered}
    called = attention is not None and attention.called
    acts = not plan.owes and any(effect.action for effect in effects.values())
    signs = [effect.sign for effect in effects.values() if effect.sign and can_react(recollection.perception)]
    nod = signs[0] if acts and signs else ""  # a reaction chosen instead of words
    speech = "" if acts else thoughts.speech
    # a sentence that puts a number on the soul's feelings is not said
    if rules.feels and any(map(speech.lower().__contains__, FEELINGS)):
        left = spoken_without_numbers(speech, was_shown=bool(thoughts.streamed))
        speech = left or (rules.fallback if plan.owes else "")
    gated = gate(speech, rules, streamed=thoughts.streamed) if speech else Gated("", ())
    # streamed text is already one message on the network, so it is not split
    limit = None if thoughts.streamed else settings.post_chars
    form = plain(gated.text) if settings.is_plain and not thoughts.streamed else gated.text
    shown, posts = in_posts(form, limit) if limit else (form, (form,))
    said = gated.text if shown == form else shown
    entries: list[Entry] = [*heard(recollection)]
    judged: list[Thought] = []
    if recollection.second_thought:  # it stays in memory, is never rendered into the history, and is not said
        twice = f"Claudius thought twice: {recollection.second_thought}"
        query = {"query": "consultation"}
        entries.append(Entry(entry_type=EntryType.MENTAL_QUERY, content=twice, at=recollection.now, metadata=query))
        judged.append(Thought(step="consultation", content=recollection.second_thought))
    follows = {"internal_monologue": thoughts.used}
    for name in soul.steps if reading.asked.issubset(STEPS) else placed(plan.asked):
        if name in effects:
            entries += effects[name].entries
        entries += follows.get(name, ())
        judged += by_step.get(name, ())
        if name == "external_dialogue" and said:
            is_cut = thoughts.truncated or said != gated.text
            entries.append(
                spoken(
                    recollection,
                    said,
                    thoughts.verb,
                    called=called,
                    truncated=is_cut,
                    canned=thoughts.is_canned or said == rules.fallback,
                )
            )
            judged.append(Thought(step=name, content=said, verb=thoughts.verb))
    if nod:
        entries.append(spoken(recollection, nod, NODDED, called=called))
    flags = (
        *thoughts.flags,
        *((TOO_LONG,) if said != gated.text else ()),
        *[f"secret:{thought.step}" for thought in secret],
        *gated.hits,
        *[flag for effect in effects.values() for flag in effect.flags],
    )
    rung: Rung = thoughts.rung if not gated.is_replaced else "cut" if thoughts.streamed else "fixed"
    changes: dict[str, Any] = {}
    model: ModelVersion | None = None
    proposal: Proposal | None = None
    for effect in effects.values():
        changes |= effect.changes
        model, proposal = model or effect.model, proposal or effect.proposal
    feels = settled(attention, effects.values(), recollection)
    changes |= feels.told
    why = "owed" if plan.owes else "asked by the soul itself"
    before, is_borrowed = recollection.process, bool(internal(recollection.perception).process)
    return _intent(
        recollection,
        plan,
        rung,
        flags,
        verb=NODDED if nod else thoughts.verb,
        next_process=before if is_borrowed else stayed(before, plan.process, recollection.now),
        attention={"outcome": "think", "reason": why, **(attention.told if attention else {})},
        changes=changes,
        entries=tuple(entries),
        thoughts=tuple(judged),
        shown=plan.shown,
        model=model,
        state=feels.state,
        psyche=feels.change,
        appraisals=tuple([one for effect in effects.values() for one in effect.appraisals]),
        noted=Noted(proposal=proposal),
        utterances=utter(recollection, (nod,), NODDED, kind="reaction")
        if nod
        else utter(recollection, posts, thoughts.verb),
    )


def conclude_apology(
    recollection: Recollection,
    kind: ApologyKind,
    soul: SoulText,
    calls: tuple[Call, ...] = (),
    *,
    minutes: int = 0,
    is_first: bool = False,
) -> Intent:
    """Conclude a failed turn: keep what was heard, and say one typed apology. Pure.

    `minutes`: when the model is asked again, 0 = by the next message; `is_first`: nobody was answered here before.
    Nothing was recalled for it, so only the perceptions and the time of the recollection are used.
    """
    owed = any(one.owes and not one.is_bot for one in recollection.perceptions)
    first = own_name(soul) if is_first else ""
    line = soul.steps["external_dialogue"].apology(kind, recollection.turn, minutes=minutes, first=first)
    said = utter(recollection, (line if owed else "",), SAID, kind="apology", apology=kind)
    kept_line = (spoken(recollection, line, SAID, apology=kind),) if owed else ()
    intent = _intent(
        recollection,
        Plan(owes=owed),
        "apology",
        (f"apology:{kind}",),
        entries=(*heard(recollection), *kept_line),
        utterances=said,
        calls=calls,
        attention={"outcome": "apologise", "reason": kind},
    )
    return replace(intent, version=None)


def conclude_heard(
    recollection: Recollection, process: Process, settings: EngineSettings, attention: Attention | None = None
) -> Intent:
    """Conclude a perception that is only stored: no step is asked, nothing is said. Pure."""
    mood = attention.felt.emotional_state if attention else ""
    return _intent(
        recollection,
        silent_plan(process.name, recollection, settings),
        "silent",
        (),
        entries=heard(recollection),
        attention={"outcome": "hear", "reason": "owed nothing", **(attention.told if attention else {})},
        psyche=attention.change if attention else None,
        state=(StateChange(key=StateKey.EMOTIONAL_STATE, value=mood, audience=SELF),) if mood else (),
    )


def conclude_unthought(
    recollection: Recollection,
    process: Process,
    settings: EngineSettings,
    attention: Attention,
    lines: tuple[str, ...],
    *,
    verb: str = "acknowledged",
) -> Intent:
    """Conclude without a model: a short line if the soul is addressed, a reaction, or nothing. Pure."""
    intent = conclude_heard(recollection, process, settings, attention)
    called = attention.called or recollection.owes
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
        entries=(*intent.entries, spoken(recollection, said, verb, called=called, canned=True)),
        utterances=utter(recollection, (said,), verb, kind="reaction" if nods else "reply"),
    )


def conclude_told(recollection: Recollection, process: Process, settings: EngineSettings, answer: str) -> Intent:
    """Store a question and its answer from a Claude Code session that the soul takes part in. Pure."""
    intent = conclude_heard(recollection, process, settings)
    said = Entry(
        entry_type=EntryType.EXTERNAL_DIALOG,
        content=answer,
        verb="said",
        at=recollection.now,
        metadata={"elsewhere": True},
    )
    return replace(intent, entries=(*intent.entries, said))


def conclude_reflection(
    recollection: Recollection, plan: Plan, entries: tuple[Entry, ...], attention: Mapping[str, str]
) -> Intent:
    """Conclude what was thought while nobody spoke: nothing was heard, nothing is said. Pure."""
    return Intent(
        turn=recollection.turn,
        conversation=recollection.conversation,
        audience=recollection.audience,
        person="",
        at=recollection.now,
        nonce=recollection.nonce,
        answers=(),
        version=recollection.version,
        process=plan.process,
        next_process=recollection.process,
        rung="silent",
        entries=entries,
        attention=attention,
        history_from=plan.history_from,
    )


def _intent(recollection: Recollection, plan: Plan, rung: Rung, flags: tuple[str, ...], **more: Any) -> Intent:
    """Build an intent from the fields every turn has, and `more`."""
    speaker = recollection.speaker
    return Intent(
        turn=recollection.turn,
        conversation=recollection.conversation,
        audience=recollection.audience,
        person=speaker.person if speaker else "",
        name=speaker.name if speaker else "",
        locale=recollection.locale,
        at=recollection.now,
        nonce=recollection.nonce,
        answers=tuple([one.key for one in recollection.perceptions]),
        version=recollection.version,
        process=plan.process,
        rung=rung,
        flags=flags,
        steps=plan.asked,
        history_from=plan.history_from,
        **({"next_process": recollection.process} | more),
    )


def utter(
    recollection: Recollection,
    posts: Sequence[str],
    verb: str,
    *,
    kind: UtteranceKind = "reply",
    apology: ApologyKind | None = None,
) -> tuple[Utterance, ...]:
    """Return what is said as one utterance per post. Pure."""
    bodies = [post for post in posts if post]
    answers = tuple([one.key for one in recollection.perceptions])
    return tuple(
        [
            Utterance(
                key=utterance_key(recollection.turn, part),
                turn=recollection.turn,
                conversation=recollection.conversation,
                body=body,
                kind=kind,
                part=part,
                parts=len(bodies),
                answers=answers,
                person=recollection.perception.person,
                verb=verb,
                apology=apology,
            )
            for part, body in enumerate(bodies)
        ]
    )


def heard(recollection: Recollection) -> tuple[Entry, ...]:
    """Return the entries for what was heard, in order. Pure."""
    return tuple(
        [
            Entry(
                entry_type=EntryType.EVENT
                if one.kind is Kind.NEWS
                else EntryType.TOOL_RESULT
                if one.kind is Kind.TOOL
                else EntryType.USER_MESSAGE
                if one.origin is Origin.EXTERNAL
                else EntryType.PERCEPTION,
                content=datamark(one.text) if one.kind is Kind.NEWS else one.text,
                at=one.at,
                person=(one.person if one.origin is Origin.EXTERNAL else _topic_of(one)) or None,
                name=internal(one).by or recollection.called(one) or None,
                metadata=({"bot": True} if one.is_bot or internal(one).is_message else {})
                | ({"kind": one.kind.value} if one.kind != "message" and not internal(one).is_message else {})
                | _cause(one)
                | ({"removed": True} if isinstance(one.extra, ReactionExtra) and one.extra.is_removed else {}),
                position=one.position,
                stems=" ".join(sorted(stems(one.text))) if one.origin is Origin.EXTERNAL else "",
            )
            for one in recollection.perceptions
        ]
    )


def _topic_of(one: Perception) -> str:
    """Return whose words a talk of souls begins with, so that they are erased with that person; empty = nobody's."""
    return internal(one).asked_by if one.kind is Kind.DIRECTIVE and internal(one).what else ""


def _cause(one: Perception) -> dict[str, Any]:
    if isinstance(call := one.extra, ToolExtra):
        return {"call": call.call, "tool": call.tool, "state": call.state} | ({"third": True} if call.third else {})
    what = internal(one).what
    return {"what": what} if what not in ("", one.text) else {}


def spoken(
    recollection: Recollection,
    text: str,
    verb: str,
    *,
    called: bool = False,
    truncated: bool = False,
    canned: bool = False,
    apology: ApologyKind | None = None,
) -> Entry:
    """Return the entry for what was said. Pure.

    `called`: the soul's name was used; `canned`: it is a fixed line, which no thought chose.
    """
    metadata: dict[str, Any] = {"truncated": True} if truncated else {}
    if not recollection.owes and not called and recollection.perception.origin is Origin.EXTERNAL:
        metadata["uncalled"] = True
    if apology:
        metadata["apology"] = apology
    if canned or apology:
        metadata[CANNED] = True
    return Entry(entry_type=EntryType.EXTERNAL_DIALOG, content=text, verb=verb, at=recollection.now, metadata=metadata)
