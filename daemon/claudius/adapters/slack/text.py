"""Read and write Slack's message text, what a message shows besides its words, and fetch its files.

Files are fetched with the bot's token, only from Slack's own file hosts.

Source: docs.slack.dev/reference/objects/file-object; docs.slack.dev/reference/block-kit/blocks;
docs.slack.dev/legacy/legacy-messaging, "Secondary attachments"; the chat design, section 6.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.incoming import MentionSyntax, download, file_lines, hosts_of, unfetched
from claudius.adapters.slack.web_api import FAILURES
from claudius.prompt import valid
from claudius.runtime.adapter import Fetched
from claudius.shown import MOST_QUOTED, How, Quoted, lines_of

KNOWN: Mapping[str, Collection[str]] = {"slack.com": ("files.slack.com",)}


async def fetch(client: AsyncWebClient, file: Mapping[str, Any], most_bytes: int) -> Fetched:
    """Return a file that a message named. Raises: ValueError, OSError."""
    name, kind, url = (str(file.get(key) or "") for key in ("name", "type", "url"))
    with unfetched(*FAILURES, ValueError):
        if not url:  # it comes through Slack Connect, where the event holds only the id
            answer = await client.files_info(file=str(file.get("id")))
            known = answer.get("file") or {}
            name, kind, url = (str(known.get(key) or "") for key in ("name", "mimetype", "url_private_download"))
        token = {"Authorization": f"Bearer {client.token}"}
        content, is_kind = await download(url, most_bytes, hosts_of(client.base_url, KNOWN), token)
    if is_kind == "text/html" and kind != "text/html":
        raise PermissionError("Slack shows its sign-in page: is the scope files:read granted?")
    return Fetched(content, name, kind)


async def transcribed(client: AsyncWebClient, file: Mapping[str, Any], pauses_s: Sequence[float]) -> Mapping[str, Any]:
    """Return a clip with what Slack heard in it, looking again after each pause. Raises: OSError."""
    for pause_s in pauses_s if file.get("is_awaited") else ():
        await asyncio.sleep(pause_s)
        with unfetched(*FAILURES, ValueError):
            answer = await client.files_info(file=str(file.get("id")))
        file = {**file, "is_awaited": False, **heard_in(answer.get("file") or {})}
        if not file["is_awaited"]:
            break
    return file


_ENTITY = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_TOKEN = re.compile(r"<([^<>]*)>|&(?:lt|gt|amp);")
MENTIONS = MentionSyntax(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")


class Read(Struct, frozen=True):
    """A text as people see it, and the users that it mentions."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)
    """The name of each mentioned user, by id."""


def read(raw: str, us: str, names: Mapping[str, str]) -> Read:
    """Decode a raw text: entities once, mentions as `@name`, links as label and address. Pure.

    A leading mention of us (`us`) is removed. A user without a name in `names` is shown by id.
    """
    seen: dict[str, str] = {}

    def shown(found: re.Match[str]) -> str:
        inner = found[1]
        if inner is None:
            return _ENTITY[found[0]]
        if inner.startswith("@"):
            user, _, label = inner[1:].partition("|")
            seen[user] = names.get(user) or _decoded(label) or user
            return "@" + seen[user]
        return _special(inner)

    return Read(_TOKEN.sub(shown, MENTIONS.without(us, raw)), seen)


def _special(inner: str) -> str:
    what, _, label = inner.partition("|")
    label = _decoded(label)
    match what[:1]:
        case "#":
            return "#" + (label or what[1:])
        case "!":
            return label if what.startswith("!date^") else "@" + (label.lstrip("@") or what[1:].partition("^")[0])
        case _:
            address = _decoded(what)
            plain = re.sub(r"^(?:mailto:|tel:|https?://)", "", address).rstrip("/")
            return address if label in ("", address) else label if label == plain else f"{label} ({address})"


def _decoded(text: str) -> str:
    return re.sub(r"&(?:lt|gt|amp);", lambda found: _ENTITY[found[0]], text)


_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_STYLES = (
    (re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE), r"*\1*"),
    (re.compile(r"\*\*(?=\S)([^\n]+?)(?<=\S)\*\*"), r"*\1*"),
    (re.compile(r"~~(?=\S)([^\n]+?)(?<=\S)~~"), r"~\1~"),
    (re.compile(r"\[([^\[\]\n]{1,300})\]\(([a-z]{2,8}:[^()\s|]{1,2000})\)"), r"<\2|\1>"),
    (re.compile(r"^([ \t]*)[-*+][ \t]+", re.MULTILINE), r"\1• "),
)


def mrkdwn(markdown: str) -> str:
    """Return Markdown in Slack's older mrkdwn format, for a server that does not know `markdown_text`. Pure."""
    escaped = markdown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    parts = _CODE.split(re.sub(r"^&gt; ?", "> ", escaped, flags=re.MULTILINE))
    return "".join(re.sub(r"^```\w+\n", "```\n", part) if n % 2 else _styled(part) for n, part in enumerate(parts))


def _styled(text: str) -> str:
    for pattern, instead in _STYLES:
        text = pattern.sub(instead, text)
    return text


_WORDED = ("title", "subtitle", "text", "label", "description", "body", "alt_text", "fields", "elements", "accessory")
"""Where a block, or what stands in one, has words that people see; in this order."""
_NOT_SHOWN = ("confirm", "initial_option", "initial_options")
"""A question that a button asks once it is pressed, and choices that stand among the options already."""
_INLINE = frozenset({"rich_text_section", "rich_text_preformatted", "rich_text_quote"})


class SlackShows(Struct, frozen=True):
    """What a message says and shows; every text is still raw."""

    raw: str
    """Its own words."""
    shown: tuple[Quoted, ...] = ()
    files: tuple[Mapping[str, Any], ...] = ()
    """The files of the messages that it forwards."""


def shows(event: Mapping[str, Any], team: str) -> SlackShows:
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
    return SlackShows(
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
            for name in node:
                if name not in (*_WORDED, *_NOT_SHOWN):
                    yield from _words(_objects(node, name) or object_of(node, name))


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


_AWAY = {
    "tombstone": "it was deleted",
    "hidden_by_limit": "it cannot be fetched: it is beyond the limit of the workspace's plan",
    "external": "it is kept elsewhere, and only named here",
}
"""Why a file of such a mode cannot be read. Source: docs.slack.dev/reference/objects/file-object."""


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file as a perception carries it; of a clip, with what Slack heard in it."""
    found: dict[str, Any] = {
        "id": text_of(file, "id"),
        "name": valid(text_of(file, "name") or text_of(file, "id")),
        "type": text_of(file, "mimetype"),
        "bytes": size if isinstance(size := file.get("size"), int) else 0,
        "url": text_of(file, "url_private_download"),
    }
    if away := _AWAY.get(text_of(file, "mode")):
        found["unread"] = away
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
