"""Store what a turn knew and planned, so that its prompt can be rebuilt byte for byte.

Long texts are stored elsewhere and referred to. `claudius why` and `claudius replay` rebuild from it; TextErased is
raised if a text is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.plan import EngineSettings, Plan
from claudius.cognition.prompt.assembly import build_prompt
from claudius.cognition.prompt.function_prompts import Drawn, PromptSource, redraw
from claudius.cognition.prompt.rounds import further
from claudius.decoding import decoder
from claudius.memory.records import Records
from claudius.memory.seen import BLANK, ERASED
from claudius.prompt import Prompt
from claudius.recollection import Entry, EntryType, PastTurn, Person, Recollection, Shown, Summary
from claudius.soul import SoulFile, SoulText, StepText
from claudius.soul.files import parse, step_text

RENDERED = 2
"""From this wording on, a kept turn is rendered in the words of its time."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """What a prompt was built from, without the texts that other rows hold; those are read when it is rebuilt."""

    recollection: Recollection
    plan: Plan
    settings: EngineSettings
    past: tuple[int | str | PastTurn, ...]
    """The past turns of the history.

    A number refers to the turn's own record; a whole turn stands for one that has changed since; a hash is the form
    that versions up to 0.1.0 stored.
    """
    soul: str
    """The hash of the soul's texts."""
    summary: str = ""
    """The hash of the summary's text; empty = it is in the recollection, or there was none."""
    drawn: Drawn | None = None
    """The memory of the first call if a process built it; None = as recalled."""
    used: tuple[str, ...] = ()
    """The tools that the turn used."""


class _KeptSoul(Struct, frozen=True, kw_only=True):
    files: Mapping[str, tuple[str, str, Mapping[str, Any]]]
    steps: tuple[StepText, ...]
    sha256: str


class _KeptSummary(Struct, frozen=True, kw_only=True):
    conversation: str
    upto: int
    text: str


class TextErased(LookupError):
    """A text that the snapshot refers to was erased."""


def _soul_blob(soul: SoulText) -> tuple[str, bytes]:
    if "blob" not in soul.derived:
        kept = _KeptSoul(
            files={name: (file.text, file.sha256, file.head) for name, file in soul.files.items()},
            steps=tuple(soul.steps.values()),
            sha256=soul.sha256,
        )
        body = msgspec.json.encode(kept)
        soul.derived["blob"] = sha256(body).hexdigest(), body
    key, body = soul.derived["blob"]
    return key, body


def freeze(
    recollection: Recollection,
    plan: Plan,
    settings: EngineSettings,
    soul: SoulText,
    drawn: Drawn | None = None,
    used: tuple[str, ...] = (),
) -> tuple[bytes, dict[str, bytes]]:
    """Return the snapshot of a turn, and the texts it refers to by hash. Pure."""
    soul_key, soul_body = _soul_blob(soul)
    blobs, summary_key, summary = {soul_key: soul_body}, "", recollection.summary
    if summary:
        kept = _KeptSummary(conversation=recollection.conversation, upto=summary.upto, text=summary.text)
        body = msgspec.json.encode(kept)
        summary_key = sha256(body).hexdigest()
        blobs[summary_key] = body
        summary = replace(summary, text="")
    blank = {"text": "", "before": ""}  # the rows hold these
    lines = [{name: blank.get(name, value) for name, value in line.items()} for line in plan.remembered.lines]
    snapshot = Snapshot(
        recollection=replace(
            recollection,
            past=(),
            expired=(),
            psyche=None,
            shown_from="",
            ended=(),
            known=tuple([replace(one, text="", about="", keys=()) for one in recollection.known]),
            matters=tuple([replace(one, text="") for one in recollection.matters]),
            task="",
            summary=summary,
            speaker=recollection.speaker and _without_text(recollection.speaker),
            listener=recollection.listener and _without_text(recollection.listener),
            others=tuple(map(_without_text, recollection.others)),
        ),
        plan=replace(
            plan,
            shown=tuple([replace(one, text="") for one in plan.shown]),
            remembered=replace(plan.remembered, lines=tuple(lines)),
        ),
        settings=settings,
        past=tuple([one.number if one.is_as_kept else _past_without_text(one) for one in recollection.past]),
        soul=soul_key,
        summary=summary_key,
        drawn=drawn,
        used=used,
    )
    return msgspec.json.encode(snapshot, enc_hook=dict), blobs


def _without_text(person: Person) -> Person:
    return replace(person, models=tuple([replace(model, markdown="") for model in person.models]))


def _past_without_text(past: PastTurn) -> PastTurn:
    return replace(
        past,
        entries=tuple(replace(one, stems="") for one in past.entries),
        shown=tuple(replace(one, text="") for one in past.shown),
    )


class _KeptSettings(Struct, frozen=True):
    settings: EngineSettings


def settings_of(snapshot: bytes) -> EngineSettings | None:
    """Return the settings of a kept turn; None if its snapshot was erased. Pure."""
    return None if snapshot == ERASED else decoder(_KeptSettings).decode(snapshot).settings


def thaw(snapshot: bytes, texts: Records) -> tuple[Recollection, Plan, EngineSettings, SoulText]:
    """Rebuild what a turn knew.

    Raises: TextErased if the soul's texts are gone, Expired if an earlier turn was dropped, msgspec.DecodeError if the
    bytes are not a snapshot.
    """
    if snapshot == ERASED:
        raise TextErased("the snapshot")
    return _thawed(decoder(Snapshot).decode(snapshot), texts)


def _thawed(kept: Snapshot, texts: Records) -> tuple[Recollection, Plan, EngineSettings, SoulText]:
    known, remembered = kept.recollection, kept.plan.remembered
    recollection = replace(
        known,
        past=tuple(_past(kept, texts)),
        summary=known.summary and _whole_summary(known.summary, kept.summary, texts),
        speaker=known.speaker and _whole_person(known.speaker, texts),
        listener=known.listener and _whole_person(known.listener, texts),
        others=tuple(_whole_person(one, texts) for one in known.others),
        known=tuple(map(texts.known, known.known)),
        matters=tuple(map(texts.open_matter, known.matters)),
    )
    lines = tuple(
        {
            **line,
            **{name: texts.recalled(row) or "" for name, row in zip(("text", "before"), rows.split(), strict=False)},
        }
        for line, rows in zip(remembered.lines, remembered.rows, strict=True)
    )
    shown = tuple(_whole_shown(one, texts) for one in kept.plan.shown)
    soul = decoder(_KeptSoul).decode(_text(kept.soul, texts))
    return (
        recollection,
        replace(kept.plan, shown=shown, remembered=replace(remembered, lines=lines)),
        kept.settings,
        SoulText(
            files={name: SoulFile(name, body, Path(), sha, head) for name, (body, sha, head) in soul.files.items()},
            steps={step.name: step for step in soul.steps},
            sha256=soul.sha256,
        ),
    )


def _text(key: str, texts: Records) -> bytes:
    found = texts.blob(key)
    if found is None:
        raise TextErased(key)
    return found


def _past(kept: Snapshot, texts: Records) -> Iterator[PastTurn]:
    for one in kept.past:
        if isinstance(one, str):
            yield decoder(PastTurn).decode(_text(one, texts))
            continue
        if isinstance(one, int):
            found = texts.past_turn(kept.recollection.conversation, one) or _blank(kept.recollection, one)
        else:
            found = one
        yield replace(found, shown=tuple(_whole_shown(shown, texts) for shown in found.shown))


def _blank(recollection: Recollection, number: int) -> PastTurn:
    """Return a placeholder for an erased turn."""
    line = Entry(entry_type=EntryType.USER_MESSAGE, content=BLANK, at=recollection.now, person="erased", name="")
    return PastTurn(turn="", nonce=recollection.nonce, number=number, entries=(line,))


def _whole_summary(summary: Summary, key: str, texts: Records) -> Summary:
    if not key:
        return summary
    body = texts.blob(key)
    return summary if body is None else replace(summary, text=decoder(_KeptSummary).decode(body).text)


def _whole_person(person: Person, texts: Records) -> Person:
    models = tuple(
        replace(one, markdown=texts.portrait(one.person, one.audience, one.version) or "")
        if one.version and not one.markdown
        else one
        for one in person.models
    )
    return replace(person, models=models)


def _whole_shown(one: Shown, texts: Records) -> Shown:
    if one.text or one.pointer or not one.version:
        return one
    return replace(one, text=texts.portrait(one.person, one.audience, one.version) or "")


def rebuild(snapshot: bytes, texts: Records, soul: SoulText | None = None) -> Prompt:
    """Rebuild a turn's prompt from its snapshot, optionally with another soul. Raises: TextErased, Expired."""
    if snapshot == ERASED:
        raise TextErased("the snapshot")
    kept = decoder(Snapshot).decode(snapshot)
    recollection, plan, settings, own = _thawed(kept, texts)
    if kept.drawn:
        return redraw(PromptSource.of(recollection, plan, soul or own, settings), kept.drawn)
    return build_prompt(plan, recollection, soul or own, settings)


def rounds(
    snapshot: bytes, first: Prompt, entries: Sequence[Entry], texts: Records, soul: SoulText | None = None
) -> list[Prompt]:
    """Rebuild the prompts that followed the first one of a turn that used tools, from its own entries.

    None of a turn whose steps were asked one by one. Raises: TextErased, Expired.
    """
    is_fused = decoder(Snapshot).decode(snapshot).drawn is None
    if not is_fused or not [one for one in entries if one.entry_type is EntryType.TOOL_RESULT]:
        return []
    recollection, plan, _, own = thaw(snapshot, texts)
    return [*further(first, plan, entries, soul or own, recollection.nonce)]


def is_of_this_wording(settings: EngineSettings) -> bool:
    """Return whether a kept turn's prompt, rebuilt now, has the bytes that were sent. Pure.

    Without a psyche nothing that the code words itself has changed since the first form.
    """
    return settings.wording >= RENDERED or not settings.psyche


def with_files(soul: SoulText, files: Mapping[str, str]) -> SoulText:
    """Return the soul with other texts in place of some of its files, whole as on disk. Pure. Raises: BadSoul."""
    other = {name: parse(name, Path(name), text.encode("utf-8", "replace")) for name, text in files.items()}
    steps = {
        step.name: step for name, file in other.items() if name.startswith("steps/") for step in (step_text(file),)
    }
    known = {name: steps.get(name, step) for name, step in soul.steps.items()}
    return replace(soul, files={**soul.files, **other}, steps=known)
