"""One call of a programmatic turn: asked, read section by section, asked again once where a value cannot be read.

The same for one ask and for several in one call. Source: the process design, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind, Show
from claudius.cognition.pipeline import Reading, call
from claudius.cognition.soul_engine import (
    Ground,
    NeedsRepair,
    Parsed,
    Parser,
    StreamGate,
    climb,
    ground,
    private_texts,
    prompt_sha256,
    zones,
)
from claudius.cognition.soul_engine.asks import SPEECH, THOUGHT, Ask, read, without_prefix
from claudius.cognition.soul_engine.disguises import is_structured
from claudius.cognition.soul_engine.in_mind import (
    NAME,
    Asked,
    Scene,
    asked,
    draw,
    fresh,
    is_told_apart,
    prompt_of,
    quoted,
)
from claudius.cognition.soul_engine.interpretation import allowed_verbs
from claudius.cognition.soul_engine.parsed import Section
from claudius.cognition.soul_engine.readers import clean_text, read_verb
from claudius.cognition.staged import First, Staged, Words
from claudius.cognition.steps import STEPS
from claudius.cognition.working_memory import WorkingMemory
from claudius.config import blot
from claudius.errors import Unreadable
from claudius.intent import Call
from claudius.prompt import Prompt, RecordKind, data_line, fence
from claudius.provider import Request
from claudius.recollection import EntryType

DRAFT_CHARS = 4000


class Speaking(Struct, kw_only=True):
    """What the calls of one turn have in common."""

    mind: Mind
    staged: Staged
    paid: Mapping[str, Call] = field(default_factory=dict)
    """Finished calls of an earlier, unfinished run, by the sha256 of their request."""
    show: Show | None = None


class _Heard(Struct, frozen=True):
    parsed: Parsed
    is_refused: bool
    streamed: str


async def answers(
    voice: Speaking, scene: Scene, memory: WorkingMemory, asks: Sequence[Ask[Any]], *, streams: bool = False
) -> list[Any]:
    """Ask for several values in one call; return them in order. Raises: Unreadable, ProviderError, BadSoul."""
    wanted = asked(asks, scene)
    first = await _call(voice, scene, memory, wanted, asks[0].step, streams=streams)
    found: dict[int, Any] = {}
    failed: dict[int, Unreadable] = {}
    for place in range(len(asks)):
        _take(first, None, scene, voice, asks, place, found, failed)
    if failed:
        voice.staged.guard(first.parsed.private)
        again = _again(first.parsed, scene, wanted, asks, failed)
        second = await _call(voice, scene, memory, again, asks[min(failed)].step)
        places, failed = sorted(failed), {}
        for place in places:
            _take(first, second, scene, voice, asks, place, found, failed)
    if failed:
        raise failed[min(failed)]
    return [_blotted(found[place], voice.mind.secrets) for place in range(len(asks))]


def _take(
    first: _Heard,
    second: _Heard | None,
    scene: Scene,
    voice: Speaking,
    asks: Sequence[Ask[Any]],
    place: int,
    found: dict[int, Any],
    failed: dict[int, Unreadable],
) -> None:
    ask = asks[place]
    try:
        if ask.step == SPEECH:
            found[place] = _spoken(first, second, scene, voice)
        else:
            found[place] = _value(second or first, scene, asks, place, is_alone=len(asks) == 1)
    except Unreadable as error:
        failed[place] = error


def _value(heard: _Heard, scene: Scene, asks: Sequence[Ask[Any]], place: int, *, is_alone: bool) -> Any:
    ask = asks[place]
    tag = ask.step if ask.step in STEPS else "mental_query"
    number = str(place + 1) if is_told_apart(asks, place) else None
    found = _section(heard.parsed, tag, number)
    if found is None and is_alone and not heard.parsed.truncated and not is_structured(heard.parsed.raw):
        found = Section(name=tag, text=without_prefix(heard.parsed.raw, NAME))
    if found is None:
        raise Unreadable(ask.step, "it was not written, or not to its end")
    if ask.schema is not str:
        return read(ask, found.text)
    text = read(ask, clean_text(without_prefix(found.text, NAME)))
    if ask.step != THOUGHT:
        return text
    verbs, default = allowed_verbs(THOUGHT, scene.plan, scene.soul)
    return Words.of(str(text), read_verb(found.verb, verbs, default)[0])


def _section(parsed: Parsed, tag: str, number: str | None) -> Section | None:
    if tag == THOUGHT:
        return parsed.monologue if parsed.monologue and parsed.monologue.complete else None
    named = (one for one in parsed.sections if one.name == tag and one.complete)
    return next((one for one in named if number is None or one.section == number), None)


def _spoken(first: _Heard, second: _Heard | None, scene: Scene, voice: Speaking) -> Words:
    stands = _ground(scene, voice.staged)
    if second is None:
        spoken = climb(first.parsed, stands, refused=first.is_refused, streamed=first.streamed)
    else:
        spoken = climb(first.parsed, replace(stands, repairs=0), streamed=first.streamed, repair=second.parsed)
    if isinstance(spoken, NeedsRepair):
        raise Unreadable(SPEECH, "nothing in it can be said aloud")
    text = without_prefix(spoken.speech, NAME, tuple(stands.verbs)) if not first.streamed else spoken.speech
    return Words.of(text, spoken.verb, spoken.rung, truncated=spoken.truncated, flags=spoken.flags)


def _ground(scene: Scene, staged: Staged) -> Ground:
    private = private_texts(scene.recollection, staged.own)
    return ground(scene.plan, scene.recollection, scene.soul, scene.settings, private)


def _again(
    parsed: Parsed, scene: Scene, wanted: Asked, asks: Sequence[Ask[Any]], failed: Mapping[int, Unreadable]
) -> Asked:
    """Ask again for the sections that failed, with the reason and the words that were."""
    draft = fence(data_line({"kind": RecordKind.DRAFT, "text": parsed.raw[:DRAFT_CHARS]}), scene.recollection.nonce)
    words = scene.soul.files["reask.md"]
    told = [words.fill(step=asks[place].step, reason=quoted(failed[place].detail)) for place in sorted(failed)]
    return Asked(
        tags=tuple(wanted.tags[place] for place in sorted(failed)),
        lines=tuple(wanted.lines[place] for place in sorted(failed)),
        again="\n".join([draft, *told]),
    )


async def _call(
    voice: Speaking, scene: Scene, memory: WorkingMemory, wanted: Asked, purpose: str, *, streams: bool = False
) -> _Heard:
    staged, mind = voice.staged, voice.mind
    lines = fresh(memory, scene.base)
    staged.guard(line.content for line in lines if line.entry_type is EntryType.INTERNAL_MONOLOGUE)
    prompt = prompt_of(scene, memory, wanted)
    sha = prompt_sha256(prompt)
    if staged.first is None:
        staged.first = First(sha, draw(scene, memory, wanted))
    gate = None
    if streams and voice.show:
        gate = StreamGate(zones(_ground(scene, staged), scene.recollection, scene.soul, mind.secrets))
    reading = Reading(Parser(), gate, voice.show if gate else None)
    staged.asked += [tag for tag in wanted.tags if tag not in staged.asked]
    made = await call(
        mind,
        staged.turn,
        request_of(prompt, scene, purpose),
        sha,
        n=next_number(staged, voice.paid),
        paid=voice.paid,
        reading=reading,
    )
    staged.calls.append(made)
    await mind.store.flush()
    staged.streamed += reading.shown
    return _Heard(
        reading.parser.finish(truncated=made.stop_reason == "max_tokens"), made.stop_reason == "refusal", reading.shown
    )


def request_of(prompt: Prompt, scene: Scene, purpose: str) -> Request:
    """Return one call as a provider takes it: of no session, because a turn makes several. Pure."""
    return Request(
        system=prompt.system,
        history=prompt.history,
        tail=prompt.tail,
        max_tokens=scene.settings.max_tokens,
        cached=prompt.cached,
        purpose=purpose,
    )


def next_number(staged: Staged, paid: Mapping[str, Call]) -> int:
    """Return the number of the next call: past every one of this turn, an earlier run's included. Pure."""
    return max((call.n for call in (*staged.calls, *paid.values()) if call.n < SUMMARIES), default=-1) + 1


SUMMARIES = 100
"""Numbers from here on are those of summaries."""


def _blotted(value: Any, secrets: tuple[str, ...]) -> Any:
    if not isinstance(value, str) or not secrets:
        return value
    clean = blot(value, secrets)
    if isinstance(value, Words):
        return Words.of(clean, value.verb, value.rung, truncated=value.truncated, flags=value.flags)
    return clean
