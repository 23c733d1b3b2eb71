"""What is the same in every network's incoming messages: mentions, deletions and files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

from claudius.perception import DeleteExtra, Kind, Perception, shared
from claudius.prompt import valid
from claudius.proxies import proxy_of
from claudius.shown import Quoted

MISREAD = (LookupError, TypeError, ValueError, AttributeError)
"""What reading a message of a shape that nobody expected may raise."""


class Ignored(Struct, frozen=True):
    """An event that is acknowledged and otherwise ignored."""

    what: str
    """Its name, for counting."""
    channel: str = ""
    ts: str = ""


class MentionSyntax:
    """How a network writes the mention of a user in a raw text."""

    def __init__(self, pattern: str) -> None:
        self._mention = re.compile(pattern)

    def all_in(self, raw: str) -> tuple[str, ...]:
        """Return the ids of the users that a raw text mentions, in order, each once. Pure."""
        return tuple(dict.fromkeys(self._mention.findall(raw)))

    def at_start(self, raw: str) -> str:
        """Return the id of the user whom a raw text addresses at its start, or "" if nobody. Pure."""
        found = self._mention.match(raw.lstrip())
        return found[1] if found else ""

    def without(self, us: str, raw: str) -> str:
        """Return a raw text without a leading mention of us. Pure."""
        body = raw.lstrip()
        own = self._mention.match(body)
        return re.sub(r"^[\s,:]+", "", body[own.end() :]) if own and own[1] == us else raw


def deleted(key: str, conversation: str, at: datetime, position: str, since: datetime) -> Perception:
    """Return the deletion of the message with a key, which was said `since`, as a perception. Pure."""
    return Perception(
        key=f"delete:{key}",
        conversation=conversation,
        audience=shared(conversation),
        at=at,
        position=position,
        kind=Kind.DELETE,
        owes=False,
        extra=DeleteExtra(of=key, since=since),
    )


def hosts_of(api_url: str, known: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the hosts that serve files: `known` by the API's host, or for another API its own host. Pure."""
    place = urlsplit(api_url)
    return frozenset(known.get(place.hostname or "", ())) or frozenset({place.netloc})


def described(file: Mapping[str, Any]) -> str:
    """Describe a file by what is known of it without fetching it. Pure."""
    facts = [str(file.get("type") or "")] + [f"{size} bytes" for size in (file.get("bytes"),) if size]
    about = ", ".join(fact for fact in facts if fact)
    return f"📎 {file.get('name')}" + (f" ({about})" if about else "")


def file_lines(file: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a text says of a file: what was heard in a clip, and what it is. Pure."""
    if words := file.get("spoken"):
        yield f"🎙 {words}"
    yield described(file)


def own_text(words: Iterable[str], files: Iterable[Mapping[str, Any]], shown: Sequence[Quoted]) -> str:
    """Return what a message says itself: its words and its files, or else that it only shows something. Pure."""
    lines = [*filter(None, words), *[line for one in files for line in file_lines(one)]]
    return valid("\n".join(lines or (["↪"] if shown else [])))


@contextmanager
def unfetched(*failures: type[BaseException]) -> Iterator[None]:
    """Raise what kept a file from being fetched as an OSError; that it is too large, a ValueError, as it is."""
    try:
        yield
    except failures as error:
        is_ours = isinstance(error, OSError) or type(error) is ValueError  # a library's own kinds of it may quote
        raise error if is_ours else ConnectionError(type(error).__name__) from error


async def download(
    url: str, most_bytes: int, hosts: Collection[str], headers: Mapping[str, str] | None = None
) -> tuple[bytes, str]:
    """Return a file's bytes and its type. `headers` may hold a token, so no redirect is followed.

    Raises: ValueError if it is too large, PermissionError if it is on another host, FileNotFoundError if it does not
    exist (any more), OSError or aiohttp.ClientError if it cannot be fetched now.
    """
    place = urlsplit(url)
    if place.netloc not in hosts or place.scheme not in ("https", "http"):
        raise PermissionError("this is no place where the network keeps files")
    async with (
        aiohttp.ClientSession() as session,  # `trust_env` would read ~/.netrc, too
        session.get(url, headers=headers, allow_redirects=False, proxy=proxy_of(url)) as answer,
    ):
        if answer.status in (403, 404, 410):
            raise FileNotFoundError(f"status {answer.status}")
        if answer.status != 200:
            raise ConnectionError(f"status {answer.status}")
        content = bytearray()
        async for piece in answer.content.iter_chunked(64 * 1024):
            content += piece
            if len(content) > most_bytes:
                raise ValueError("too large")
        return bytes(content), answer.content_type
