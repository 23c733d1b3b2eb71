"""Read what a Slack message shows besides its text: blocks, attachments, forwarded messages, files, transcripts. Pure.

Source: docs.slack.dev/reference/block-kit/blocks; docs.slack.dev/legacy/legacy-messaging, "Secondary attachments".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from claudius.adapters.incoming import file_lines
from claudius.prompt import valid
from claudius.shown import MOST_QUOTED, How, Quoted, lines_of

_WORDED = ("title", "subtitle", "text", "label", "description", "body", "alt_text", "fields", "elements", "accessory")
"""Where a block, or what stands in one, has words that people see; in this order."""
_INLINE = frozenset({"rich_text_section", "rich_text_preformatted", "rich_text_quote"})


class Shows(Struct, frozen=True):
    """What a message says and shows; every text is still raw."""

    raw: str
    """Its own words."""
    shown: tuple[Quoted, ...] = ()
    files: tuple[Mapping[str, Any], ...] = ()
    """The files of the messages that it forwards."""


def shows(event: Mapping[str, Any], team: str) -> Shows:
    """Return what a message says and shows; `team` is our own."""
    raw, blocks = text_of(event, "text"), _objects(event, "blocks")
    if raw and not event.get("bot_id"):  # what a person typed is its text once more
        blocks = [one for one in blocks if one.get("type") != "rich_text"]
    in_blocks, attachments = lines_of(*_words(blocks)), _objects(event, "attachments")[:MOST_QUOTED]
    is_more = bool(raw) and lines_of(raw, in_blocks) != raw.strip()
    quoted = [_attachment(one, team) for one in attachments]
    files = [
        {**file, "is_awaited": False, "of": what.of}
        for one, what in zip(attachments, quoted, strict=True)
        if what.how is How.FORWARDED
        for file in files_of(one)
    ]
    return Shows(
        raw=raw or in_blocks,
        shown=(*([Quoted(how=How.ATTACHED, text=in_blocks)] if is_more else []), *[one for one in quoted if one.text]),
        files=tuple(files),
    )


def _attachment(one: Mapping[str, Any], team: str) -> Quoted:
    """Return one attachment: a message that was forwarded or linked to, the preview of a link, or an app's own."""
    own, author = text_of(one, "text"), text_of(one, "author_name")
    within = [_objects(part.get("message") or {}, "blocks") for part in _objects(one, "message_blocks")]
    blocks = [*_objects(one, "blocks"), *[block for found in within for block in found]]
    pairs = [(text_of(field, "title"), text_of(field, "value")) for field in _objects(one, "fields")]
    fields = (": ".join(filter(None, pair)) for pair in pairs)
    files = (line for file in files_of(one) for line in file_lines(file))
    if one.get("is_share") or one.get("is_msg_unfurl") or within:
        said = lines_of(own or lines_of(*_words(blocks)), *fields, *files)
        place, who = text_of(one, "channel_team") or team, text_of(one, "author_id")
        return Quoted(
            how=How.FORWARDED,
            text=said or text_of(one, "fallback"),
            of=f"slack:{place}:{text_of(one, 'channel_id')}:{text_of(one, 'ts')}",
            person=f"slack:{place}:{who}" if who else "",
            name=valid(author),
            is_bot=bool(one.get("bot_id")),
        )
    said = lines_of(text_of(one, "pretext"), author, text_of(one, "title"), own, *_words(blocks), *fields, *files)
    is_link = bool(one.get("from_url") or one.get("original_url") or one.get("is_app_unfurl"))
    return Quoted(
        how=How.PREVIEW if is_link else How.ATTACHED,
        text=lines_of(said, text_of(one, "footer")) if said else text_of(one, "fallback"),
        name=valid(text_of(one, "service_name")),
    )


def _words(node: object) -> Iterator[str]:
    """Yield the words of blocks, whatever their kind, a line each."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Sequence):
        for one in node:
            yield from _words(one)
    elif isinstance(node, Mapping):
        if text_of(node, "type") in _INLINE:
            yield "".join(map(_inline, _objects(node, "elements")))
        elif node.get("type") == "table":
            rows = node.get("rows")
            lines = [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
            yield from (" | ".join(" ".join(_words(cell)) for cell in line) for line in lines)
        else:
            for name in _WORDED:
                yield from _words(node.get(name))


def _inline(element: Mapping[str, Any]) -> str:
    """Return a piece of a line of rich text, as a message's text would write it."""
    match element.get("type"):
        case "user":
            return f"<@{text_of(element, 'user_id')}>"
        case "channel":
            return f"<#{text_of(element, 'channel_id')}>"
        case "broadcast":
            return f"<!{text_of(element, 'range')}>"
        case "emoji":
            return f":{text_of(element, 'name')}:"
        case _:
            return text_of(element, "text") or text_of(element, "fallback") or text_of(element, "url")


def files_of(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the files of a message, or of one that it forwards, as a perception carries them."""
    return [_file(one) for one in _objects(event, "files")]


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file as a perception carries it; of a clip, with what Slack heard in it."""
    found = {
        "id": text_of(file, "id"),
        "name": valid(text_of(file, "name") or text_of(file, "id")),
        "type": text_of(file, "mimetype"),
        "bytes": size if isinstance(size := file.get("size"), int) else 0,
        "url": text_of(file, "url_private_download"),
    }
    return found | heard_in(file)


def heard_in(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Slack heard in a clip: nothing, if the file is none."""
    told = object_of(file, "transcription")
    if not told:
        return {}
    preview = object_of(told, "preview")
    return {
        "spoken": valid(text_of(preview, "content")),
        "is_cut": bool(preview.get("has_more")),
        "is_awaited": told.get("status") == "processing",
    }


def _objects(node: object, name: str) -> list[Mapping[str, Any]]:
    found = node.get(name) if isinstance(node, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, Sequence) else []


def object_of(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object within one that Slack sent; empty if it is missing or none."""
    value = node.get(name)
    return value if isinstance(value, Mapping) else {}


def text_of(node: Mapping[str, Any], name: str) -> str:
    """Return a text of an object that Slack sent; empty if it is missing or none."""
    value = node.get(name)
    return value if isinstance(value, str) else ""
