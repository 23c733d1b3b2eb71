"""Guard the portrait of a person: merge an update by section or as a whole, refuse rewrites that lose too much. Pure.

Source: the pipeline design, sections 2.2 and 8; the security design, section 5, "Writes".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.reply.tags import UNSEEN, escape_heads, is_structured, plain_form
from claudius.prompt import short_name, valid

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
    current: str, updates: Sequence[Update], *, max_bytes: int = 8192, shrink_floor: float = 0.6, person: str = ""
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
