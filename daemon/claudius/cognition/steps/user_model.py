"""user_model_check, _update and _change_note: what the soul learned about the speaker, kept in a guarded portrait.

A true check shows the user model in the next turn, and enables an update in this one. `merge_update` merges an update
by section or as a whole, and refuses rewrites that lose too much content. Source: the pipeline design, sections 2.2 and
8; the security design, section 5, "Writes".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.reply.parser import clean_note, read_bool
from claudius.cognition.reply.tags import UNSEEN, escape_heads, is_structured, plain_form
from claudius.cognition.steps import NOTHING, Effect, Reading, Step
from claudius.intent import ModelVersion
from claudius.prompt import short_name, valid
from claudius.recollection import Entry, EntryType

MAX_UPDATE_CHARS = 32_768
MAX_UPDATES = 3
MAX_SECTIONS = 12
MAX_SECTION_BYTES = 2048
MAX_NAME_CHARS = 80
WHOLE_GUARDED_CHARS = 600
"""From this length of the old model upwards, a whole rewrite must keep `shrink_floor` of it."""
SECTION_GUARDED_CHARS = 200
SECTION_FLOOR = 0.3

Update = tuple[str | None, str]
"""A section's name, or None for the whole model, and the new text."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WRAPPED = re.compile(r"\A\s*```\w*[ \t]*\n(.*)\n```\s*\Z", re.DOTALL)
_HEADING = re.compile(r"^ {0,3}##(?=[ \t]|$)(.*)$", re.MULTILINE)
_HIGH_HEADING = re.compile(r"^ {0,3}#{1,2}(?=[ \t]|$)", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A\s*(---|\+\+\+)[ \t]*\n.*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"\A\s*#(?=[ \t])[^\n]*(?:\n|\Z)")
_SUSPECT = re.compile(
    r"</?[a-z!]|(?:https?|ftp|file|data|javascript):/{0,2}\S|\bwww\.|<?/?data-[0-9a-f]{8}"
    r"|\bsystem\b|\bignor(?:e|ing)\b|\bdisregard\b|\boverride\b|\byou (?:must|should|shall|are now|will now)\b"
    r"|\binstructions?\b|\bjailbreak|\bpretend\b|\bfrom now on\b"
)
_ID = re.compile(r"(?<![\w:])(?:slack|discord|terminal):[\w@.-]+:[\w.-]+|<@!?\w+>|\bp[0-9a-f]{6}\b")


class Merged(Struct, frozen=True):
    """The result of an update."""

    markdown: str | None
    """The model to store, equal to the old one if nothing changed; None = refused."""
    refused: str | None = None
    """The reason for a refusal: a word, and the section it concerns."""
    suspect: bool = False
    """It contains a tag, a marker, a link, someone else's id or instruction words."""


class _Part(Struct, frozen=True):
    """A level-2 section: its heading line and body as they stand, the body with its line breaks."""

    heading: str
    name: str
    body: str

    @property
    def content(self) -> str:
        return self.body.strip()

    @property
    def key(self) -> str:
        return " ".join(self.name.casefold().split())


def _split(markdown: str) -> tuple[str, list[_Part]]:
    found = list(_HEADING.finditer(markdown))
    if not found:
        return markdown, []
    ends = [match.start() for match in found[1:]] + [len(markdown)]
    parts = [
        _Part(match[0], match[1].strip(" \t#"), markdown[match.end() : end])
        for match, end in zip(found, ends, strict=True)
    ]
    return markdown[: found[0].start()], parts


def clean(text: str) -> str:
    """Return an update as it may be stored: no control characters, tags, front matter or title. Pure."""
    text = _CONTROLS.sub("", valid(text).replace("\r\n", "\n").replace("\r", "\n"))
    wrapped = _WRAPPED.match(text)
    text = wrapped[1] if wrapped else text
    text = _TITLE.sub("", _FRONT_MATTER.sub("", text, count=1), count=1)
    return escape_heads(text).strip()


def is_suspect(text: str, person: str = "") -> bool:
    """Return whether a text looks like more than a portrait of `person`. Pure.

    It searches for tags, our markers, links, the words of an instruction, and the id of anyone but `person`.
    """
    seen = plain_form(text)
    if _SUSPECT.search(seen) or is_structured(seen):
        return True
    own = {person.casefold(), short_name(person)}
    return any(found[0] not in own for found in _ID.finditer(seen))


def merge_update(
    current: str,
    updates: Sequence[Update],
    *,
    max_bytes: int = 8192,
    shrink_floor: float = 0.6,
    person: str = "",
) -> Merged:
    """Merge the updates of one reply into a model's markdown, all or none. Pure.

    `max_bytes`: of the model in UTF-8; `shrink_floor`: share of the old characters that a whole rewrite must keep;
    `person`: the id that may stand in the text.
    """
    updates = [
        (section if section and section.strip(" #\t\n") else None, text) for section, text in updates[:MAX_UPDATES]
    ]
    whole = [text for section, text in updates if section is None]
    suspect = any(is_suspect(f"{section or ''}\n{text}", person) for section, text in updates)
    if any(len(text) > MAX_UPDATE_CHARS for _, text in updates):
        return Merged(None, "too_long", suspect)
    if whole and len(updates) > 1:
        return Merged(None, "not_alone", suspect)
    if whole:
        markdown = clean(whole[0])
        refused = _shrunk(current, markdown, shrink_floor)
    else:
        markdown = current
        for section, text in updates:
            name = " ".join(UNSEEN.sub("", valid(section or "")).strip(" #\t").split())
            markdown = _with_section(markdown, escape_heads(name, limit=MAX_NAME_CHARS), clean(text))
        refused = None
    if markdown.strip() == current.strip():
        return Merged(current, None, suspect)
    suspect = suspect or is_suspect(markdown, person)
    refused = refused or _lost(current, markdown) or _too_big(current, markdown, max_bytes)
    return Merged(None, refused, suspect) if refused else Merged(markdown.strip() + "\n", None, suspect)


def _with_section(markdown: str, name: str, text: str) -> str:
    """Replace the body under one heading, or append the section; everything else keeps its bytes."""
    before, parts = _split(markdown)
    key = _Part("", name, "").key
    inner = _split(text)
    if not inner[0].strip() and inner[1] and inner[1][0].key == key:
        text = text[text.index(inner[1][0].heading) + len(inner[1][0].heading) :]
    body = _HIGH_HEADING.sub("###", text).strip()
    if key not in {part.key for part in parts}:
        return f"{markdown.rstrip()}\n\n## {name}\n\n{body}\n".lstrip() if body else markdown
    place = next(index for index, part in enumerate(parts) if part.key == key)
    if parts[place].content != body:
        parts[place] = replace(parts[place], body=f"\n\n{body}\n\n")
    return before + "".join(part.heading + part.body for part in parts)


def _shrunk(old: str, new: str, floor: float) -> str | None:
    old, new = old.strip(), new.strip()
    if old and not new:
        return "empty"
    return "shrunk" if len(old) >= WHOLE_GUARDED_CHARS and len(new) < floor * len(old) else None


def _lost(old: str, new: str) -> str | None:
    """Return the refusal for the first old section that is gone or lost most of its body, or None."""
    kept: dict[str, int] = {}
    for part in _split(new)[1]:
        kept[part.key] = max(kept.get(part.key, 0), len(part.content))
    for part in _split(old)[1]:
        if not part.content:
            continue
        if not kept.get(part.key):
            return f"lost:{part.name}"
        if len(part.content) >= SECTION_GUARDED_CHARS and kept[part.key] < SECTION_FLOOR * len(part.content):
            return f"shrunk:{part.name}"
    return None


def _too_big(old: str, new: str, max_bytes: int) -> str | None:
    before = {(part.key, part.content) for part in _split(old)[1]}
    parts = _split(new)[1]
    for part in parts:
        if (part.key, part.content) not in before and len(part.content.encode()) > MAX_SECTION_BYTES:
            return f"section_too_big:{part.name}"
    if len(parts) > MAX_SECTIONS:
        return "too_many_sections"
    return "too_big" if len(new.strip().encode()) > max_bytes else None


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
        max_bytes=reading.model_bytes,
        shrink_floor=reading.shrink_floor,
        person=reading.person.person,
    )
    if merged.refused:
        return Outcome(f"refused:{merged.refused}", merged)
    return Outcome("same" if merged.markdown == current.markdown else "stored", merged)


def _checked(reading: Reading) -> Effect:
    """Keep the check as a memory; if it is true and no update follows, the memory says so."""
    if reading.person is None:
        return NOTHING
    truth = read_bool([check.content for check in reading.thoughts["user_model_check"]])
    fate = outcome(reading).fate
    entry = Entry(
        entry_type=EntryType.MENTAL_QUERY,
        content=f"Claudius judged whether the user model of {reading.person.name} needs a change: {str(truth).lower()}",
        at=reading.recollection.now,
        metadata={
            "query": "user_model_check",
            "person": reading.person.person,
            "result": truth,
            "shown": reading.person.models[0].version if reading.seen else None,
            "update": fate,
        },
    )
    told = {"user_model": {"person": reading.person.person, "result": fate}} if fate == "missing" else {}
    return Effect(entries=(entry,), changes=told)


def _updated(reading: Reading) -> Effect:
    result = outcome(reading)
    if reading.person is None:
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
    told = {name: getattr(version, name) for name in ("person", "audience", "version", "note", "suspect")}
    return Effect(model=version, changes={"user_model": {**told, "result": "stored"}})


CHECK = Step(name="user_model_check", gate=attrgetter("person"), effect=_checked)
UPDATE = Step(name="user_model_update", gate=attrgetter("person"), after="user_model_check", effect=_updated)
NOTE = Step(name="model_change_note", gate=attrgetter("person"), after="user_model_check")
"""One line on what shifted: the version's note, and its git commit message."""
