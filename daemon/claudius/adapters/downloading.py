"""Fetching a file that a network holds: from that network's own hosts alone, and no more of it than is wanted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

NO_HEADERS: Mapping[str, str] = {}


def hosts_of(api_url: str, known: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the places that files come from, `known` by the API's host; beside another API, its own. Pure."""
    place = urlsplit(api_url)
    return frozenset(known.get(place.hostname or "", ())) or frozenset({place.netloc})


def described(file: Mapping[str, Any]) -> str:
    """Name a file by what is known of it without fetching it. Pure."""
    facts = [str(file.get("type") or "")] + [f"{size} bytes" for size in (file.get("bytes"),) if size]
    about = ", ".join(fact for fact in facts if fact)
    return f"📎 {file.get('name')}" + (f" ({about})" if about else "")


async def download(
    url: str, most_bytes: int, hosts: Collection[str], headers: Mapping[str, str] = NO_HEADERS
) -> tuple[bytes, str]:
    """Return a file's bytes and its type. `headers` may hold a token: no redirect is followed.

    Raises: ValueError where it is too large, PermissionError where it is elsewhere, FileNotFoundError where it is not
    there (any more), OSError or aiohttp.ClientError where it cannot be had now.
    """
    place = urlsplit(url)
    if place.netloc not in hosts or place.scheme not in ("https", "http"):
        raise PermissionError("this is no place where the network keeps files")
    async with (
        aiohttp.ClientSession(trust_env=False) as session,
        session.get(url, headers=headers, allow_redirects=False) as answer,
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
