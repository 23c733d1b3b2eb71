"""Derive from a recollection what the psyche works on: the event, its context, the mood. Pure.

The numbers are the same in every conversation; work belongs to the conversation in which it began, so the mood of one
conversation is derived here: the processes and the soul state both read it. Source: the psyche design, sections 2, 3,
5, 9 and 10.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import takewhile

from msgspec.structs import replace

from claudius.intent import Intent
from claudius.memory.ranking import questions
from claudius.perception import (
    Cause,
    Kind,
    MessageExtra,
    Origin,
    Perception,
    ReactionExtra,
    can_react,
    cause_of,
    internal,
)
from claudius.psyche.change import Event
from claudius.psyche.events import (
    GLAD_REACTION,
    MESSAGES,
    NOTHING_HEARD,
    OWN,
    SILENCE_EFFECTS,
    SORE_REACTION,
    EventContext,
    GateSettings,
    Happening,
    Heard,
    classify,
    is_addressed,
)
from claudius.psyche.state import Axes, Stimulus
from claudius.psyche.words import leaning, likeness, stems, tokens
from claudius.psyche_types import Appraised, Psyche
from claudius.recollection import MOODS, STATE_DEFAULTS, Entry, EntryType, PastTurn, Recollection, StateKey, once

THREAD_S = 72 * 3600.0
"""How long a conversation counts as the soul's own thread after it spoke there."""
REPEAT_S, REPEAT = 600.0, 0.9
REACTION_REST_S = 600.0
UNCALLED_EACH = 10
"""The soul answers at most one in this many messages that do not address it."""
COMPANY = {"thread": 0.5, "named": 0.5, "ambient": 0.15}
"""The share by which talk that is not addressed to the soul counts as company; addressed talk counts fully."""
NODS = frozenset(("nodded", "acknowledged"))
ANNOUNCED = "announced"
"""The verb of an announcement by the soul. It opens a talk, so an open question after it is heard as one to it."""
_THOUGHTS = (EntryType.INTERNAL_MONOLOGUE, EntryType.EXTERNAL_DIALOG)
_PLEA = re.compile(r"(?:you|please|can|could|will)\b", re.IGNORECASE)
_CALLED = re.compile(r"^(?:hey|hi|hello|yo|ok|okay)?[\s,]*@?(\w+)\b([\s,:!.-]*)(.*)", re.IGNORECASE | re.DOTALL)

NEUTRAL, FOCUSED, FRUSTRATED, SARDONIC = MOODS[0], "focused", "frustrated", "sardonic"
MOOD = StateKey.EMOTIONAL_STATE.value
APPRAISAL = "appraisal"
"""The query of an entry that tells how a message landed."""
MOOD_WORD = "mood"
"""The metadata key of a soul-state check under which the model's mood word is stored."""
MOOD_WORD_S = 600.0
"""How long the model's mood word counts in the conversation where it was given."""


def address_of(perception: Perception, recollection: Recollection, soul_name: str) -> str:
    """Return how a perception is addressed. Whether a reply is owed was decided at acceptance. Pure."""
    if isinstance(perception.extra, MessageExtra) and perception.extra.address:
        return perception.extra.address
    if kind_of(perception) not in MESSAGES:
        return "self"
    if perception.kind in (Kind.MENTION, Kind.COMMAND):
        return perception.kind.value
    if perception.owes and perception.audience.startswith("private:"):
        return "dm"
    if calls_the_soul(perception.text, soul_name):
        return "mention"
    return "reply" if perception.owes else _overheard(perception, recollection, soul_name)


def _overheard(perception: Perception, recollection: Recollection, soul_name: str) -> str:
    now_s = recollection.now.timestamp()
    spoke = (entry for _, entry in _backwards(recollection) if entry.entry_type is EntryType.EXTERNAL_DIALOG)
    last = next(spoke, None)
    if last is not None and now_s - last.at.timestamp() <= THREAD_S:
        return "thread"
    return "named" if any(token.word == soul_name for token in tokens(perception.text)) else "ambient"


def kind_of(perception: Perception) -> str:
    """Return the kind under which the psyche knows a perception. Pure."""
    if perception.kind in (Kind.MENTION, Kind.COMMAND):
        return Kind.MESSAGE.value
    if perception.kind is Kind.TOOL or (perception.kind is Kind.MESSAGE and perception.origin is Origin.INTERNAL):
        return Kind.SCHEDULED.value
    return internal(perception).event or perception.kind.value


def calls_the_soul(text: str, soul_name: str) -> bool:
    """Return whether a text calls the soul: name and comma, greeting and name, or name and request. Pure."""
    said = text.strip()
    called = _CALLED.match(said)
    if not called or called[1].lower() != soul_name:
        return False
    greeted = not said.lower().startswith((soul_name, "@"))
    return greeted or "," in called[2] or questions(said) > 0 or _PLEA.match(called[3]) is not None


def messages_of(past: PastTurn) -> tuple[frozenset[str], ...]:
    """Return the stems of what others said in a past turn, oldest first. Pure."""
    return tuple(
        [
            frozenset(entry.stems.split()) or stems(entry.content)
            for entry in past.entries
            if entry.entry_type is EntryType.USER_MESSAGE
        ]
    )


def appraisals_of(past: PastTurn) -> tuple[Appraised, ...]:
    """Return how what was said in a past turn landed, oldest first. Pure."""
    return tuple(
        [
            Appraised(person=told["person"], kind=told["kind"], strength=told["strength"], at_s=entry.at.timestamp())
            for entry in past.entries
            if (told := entry.metadata).get("query") == APPRAISAL and "kind" in told
        ]
    )


def novelty_of(text: str, earlier: Sequence[frozenset[str]], soul_name: str) -> float:
    """Return the share of a text's content stems that are new in this conversation, at most 0.8. Pure."""
    left = whole = stems(text, soul_name)
    if not whole or not earlier:
        return 0.3
    for one in reversed(earlier):
        left = left - one
        if not left:
            return 0.0
    return min(0.8, len(left) / len(whole))


def context_of(
    perception: Perception, recollection: Recollection, happening: Happening, *, is_known: bool, has_open_subject: bool
) -> EventContext:
    """Return the context of an event. Pure.

    `is_known`: the speaker was heard before. `has_open_subject`: the soul means to come back to something of theirs.
    """
    now_s = recollection.now.timestamp()
    thought: Entry | None = None
    if happening.kind not in OWN or perception.owes:
        for _, entry in _backwards(recollection):
            if entry.entry_type in _THOUGHTS and entry.verb not in NODS and entry.verb != ANNOUNCED:
                thought = entry
                break
    owed = recollection.owes
    is_called = is_addressed(happening.kind, happening.address)
    nods = can_react(perception) and not is_called
    joins = cause_of(perception, recollection.participation, recollection.now) is Cause.JOINS
    is_welcome = joins and (is_called or _may_speak_uncalled(recollection))
    may = owed or perception.origin is Origin.INTERNAL or perception.kind is Kind.NEWS or is_welcome
    return EventContext(
        since_thought_s=None if thought is None else max(0.0, now_s - thought.at.timestamp()),
        has_open_question=has_open_subject or _was_asked(recollection, perception),
        can_speak=may and not (isinstance(perception.extra, MessageExtra) and not perception.extra.can_speak),
        bot_streak=_bot_streak(recollection) + 1 if perception.is_bot else 0,
        is_repeat=not perception.owes
        and bool(happening.heard.words)
        and _is_repeat(recollection, perception, happening.heard.words, now_s),
        reacted_recently=nods and _nodded_lately(recollection),
        can_react=can_react(perception),
        is_first_contact=not is_known and perception.origin is Origin.EXTERNAL,
    )


def _may_speak_uncalled(recollection: Recollection) -> bool:
    """Return whether the soul may speak unaddressed: once in ten messages of others, counted from its last arrival."""
    heard = 1
    for _, entry in _backwards(recollection):
        if entry.verb == ANNOUNCED:
            return True
        if entry.metadata.get("uncalled") and entry.verb not in NODS:
            return heard >= UNCALLED_EACH
        heard += entry.entry_type is EntryType.USER_MESSAGE
    return True


def _backwards(recollection: Recollection) -> Iterator[tuple[PastTurn, Entry]]:
    for turn in reversed(recollection.past):
        for entry in reversed(turn.entries):
            yield turn, entry


def _was_asked(recollection: Recollection, perception: Perception) -> bool:
    """Return whether the soul asked this person something since they last spoke here."""
    for turn, entry in _backwards(recollection):
        if entry.entry_type is EntryType.USER_MESSAGE and entry.person == perception.person:
            return False
        is_wish = entry.entry_type is EntryType.TOOL_USE
        if is_wish and EntryType.TOOL_RESULT not in [one.entry_type for one in turn.entries]:
            return True  # it asked for consent, whoever may give it
        if entry.entry_type is EntryType.EXTERNAL_DIALOG and questions(entry.content):
            heard = {one.person for one in turn.entries if one.entry_type is EntryType.USER_MESSAGE}
            if not heard or perception.person in heard:
                return True
    return False


def _bot_streak(recollection: Recollection) -> int:
    heard = (entry for _, entry in _backwards(recollection) if entry.entry_type is EntryType.USER_MESSAGE)
    return len([*takewhile(lambda entry: entry.metadata.get("bot"), heard)])


def _is_repeat(recollection: Recollection, perception: Perception, words: frozenset[str], now_s: float) -> bool:
    for _, entry in _backwards(recollection):
        if now_s - entry.at.timestamp() > REPEAT_S:
            break
        if entry.entry_type is EntryType.USER_MESSAGE and entry.person == perception.person:
            said = {token.word for token in tokens(entry.content) if not token.ends_sentence}
            if likeness(words, said) >= REPEAT:
                return True
    return False


def _nodded_lately(recollection: Recollection) -> bool:
    since = recollection.now - timedelta(seconds=REACTION_REST_S)
    for _, entry in _backwards(recollection):
        if entry.at < since:
            return False
        if entry.verb in NODS:
            return True
    return False


def happening_of(
    perception: Perception, recollection: Recollection, earlier: Sequence[frozenset[str]], gate_settings: GateSettings
) -> Happening:
    """Classify a perception. Pure."""
    kind, address = kind_of(perception), address_of(perception, recollection, gate_settings.soul_name)
    heard = NOTHING_HEARD
    if kind in MESSAGES or kind == "news":
        text = " ".join([one.text for one in recollection.perceptions])
        heard = classify(
            text,
            address if kind in MESSAGES else "ambient",
            soul_name=gate_settings.soul_name,
            novelty=novelty_of(text, earlier, gate_settings.soul_name),
        )
    return Happening(
        kind=kind,
        address=address,
        heard=heard,
        level=internal(perception).level,
        mentions_other=perception.to_other,
        has_attachments=isinstance(perception.extra, MessageExtra) and bool(perception.extra.files),
    )


def stimulus_of(kind: str, heard: Heard, text: str = "", *, is_removed: bool = False) -> Stimulus | None:
    """Return the stimulus of an event; None if it moves no number. Pure."""
    if kind in MESSAGES:
        return Stimulus(novelty=heard.novelty, load=heard.load)
    if kind == "silence":
        return Stimulus(novelty=None, drive_effects=SILENCE_EFFECTS)
    if kind == "reaction":
        glad = leaning(text)
        if not glad:
            return None
        axes = Axes(*(GLAD_REACTION if glad > 0 else SORE_REACTION))
        if is_removed:
            axes = Axes(*(-axis for axis in axes))
        return Stimulus(axes=axes, tone=(axes.affectionate + axes.supportive) / 2, novelty=None)
    return None


def event_of(
    recollection: Recollection,
    perception: Perception,
    happening: Happening,
    matches: tuple[tuple[str, float], ...],
    now_s: float,
    person: str,
) -> Event:
    """Return the event of a perception. Only arcs of its own audience are matched, so only they strengthen. Pure."""
    heard, psyche = happening.heard, recollection.psyche or Psyche()
    heat = max([arc.intensity for arc in psyche.arcs if arc.arc in dict(matches)], default=0.0)
    is_message = happening.kind in MESSAGES
    is_removed = isinstance(perception.extra, ReactionExtra) and perception.extra.is_removed
    stimulus = stimulus_of(happening.kind, heard, perception.text, is_removed=is_removed)
    if stimulus and is_message and not perception.is_bot and perception.origin is not Origin.INTERNAL:
        stimulus = replace(stimulus, company=COMPANY.get(happening.address, 1.0))
    of_here = {arc.arc for arc in psyche.arcs if arc.sources == (recollection.audience,)}
    return Event(
        at_s=now_s,
        kind=happening.kind,
        address=happening.address,
        person=person,
        name=recollection.speaker.name if recollection.speaker else "",
        stimulus=stimulus,
        importance=importance(
            critical=bool(heard.critical),
            moved=not heard.classes.isdisjoint(("grief", "joy")),
            novelty=heard.novelty,
            heat=heat,
        )
        if is_message
        else 0.0,
        matches=tuple([(arc, match) for arc, match in matches if arc in of_here]),
    )


def importance(*, critical: bool, moved: bool, novelty: float, heat: float) -> float:
    """Return the importance of an event before its appraisal, in [0, 1]; `moved` = grief or joy. Pure."""
    found = 0.10 + 0.15 * novelty + 0.20 * heat
    return max(0.0, min(1.0, found + (0.25 if critical else 0.0) + (0.20 if moved else 0.0)))


def mood_here(felt: str, *, task: str, word: str) -> str:
    """Return the mood of one conversation.

    `felt`: the word for the soul's numbers. `task`: what is being worked on here. `word`: the model's own word here
    while it counts. Work makes the mood focused unless it is frustrated or sardonic; the model may declare frustration.
    """
    if word == FRUSTRATED:
        return word
    is_at_work = bool(task) or word == FOCUSED
    return FOCUSED if is_at_work and felt not in (FRUSTRATED, SARDONIC) else felt


def word_in(turn: PastTurn | Intent) -> str:
    """Return the model's last mood word in the entries of a turn, past or just concluded, or empty."""
    words = [entry.metadata[MOOD_WORD] for entry in turn.entries if MOOD_WORD in entry.metadata]
    return str(words[-1]) if words else ""


def recent_word(recollection: Recollection) -> str:
    """Return the model's last mood word in this conversation while it counts, else empty."""
    since = recollection.now - timedelta(seconds=MOOD_WORD_S)
    for turn in reversed(recollection.past):
        if turn.entries and turn.entries[-1].at < since:
            break
        if word := once(turn, word_in):
            return word
    return ""


def felt_before(recollection: Recollection) -> str:
    """Return the mood word of the numbers after the last turn anywhere; without a psyche, the stored mood."""
    if recollection.psyche is not None:
        numbers = recollection.psyche.numbers
        return (numbers.mood if numbers else "") or NEUTRAL
    kept = kept_mood(recollection)
    return NEUTRAL if kept == FOCUSED else kept


def kept_mood(recollection: Recollection) -> str:
    """Return the mood stored in the soul state."""
    kept = [one.value for one in recollection.state if one.key == MOOD]
    return kept[0] if kept else STATE_DEFAULTS[MOOD]


def new_mood(recollection: Recollection, felt: str, *, task: str, word: str) -> str:
    """Return the mood to store in the soul state; empty = keep the stored one, which a person may have set.

    The numbers decide it, except that a working conversation is focused; the model's word is only a hint.
    """
    kept = kept_mood(recollection)
    now = mood_here(felt, task=task, word=word if word == FOCUSED else "")
    has_moved = felt != felt_before(recollection) or FOCUSED in (now, kept)
    return now if has_moved and now != kept else ""
