"""One page of the web as text, by a single GET; nobody leads it into a private network."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterator
from html import unescape
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp
from yarl import URL

from claudius.addresses import Address, Once, Refused, check_literal
from claudius.config.schema import ToolsSettings
from claudius.errors import ToolFailed, ToolRefused

NAME: Final = "web.read"
READ_S, CONNECT_S = 15.0, 5.0
"""For the whole of it, redirects included; for one connection."""
MOST_BYTES = 2_000_000
MOST_REDIRECTS = 5
TOLD_CHARS = 500
"""The longest address that a failure names, and what the lines around a page take."""
_REDIRECTS = (301, 302, 303, 307, 308)
_TEXTS = re.compile(r"text/[\w.+-]+|application/(?:[\w.-]+\+)?(?:json|xml)|application/(?:ld\+json|xhtml\+xml)")
_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")


async def read(written: str, settings: ToolsSettings, start: int) -> str:
    """Return a page as text, from a character on. Raises: ToolRefused before anything was sent, ToolFailed."""
    hosts = frozenset([host.lower() for host in settings.web.hosts])
    try:
        async with asyncio.timeout(READ_S):
            url, kind, charset, body = await _fetched(written, hosts)
    except TimeoutError as error:
        raise ToolFailed(NAME, f"it was not read within {READ_S:.0f} seconds") from error
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.os_error, Refused):
            raise ToolRefused(NAME, str(error.os_error)) from error
        raise ToolFailed(NAME, "it could not be reached") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ToolFailed(NAME, "it did not answer as a web server does") from error
    text = await asyncio.to_thread(page_text, body, kind, charset, url)
    chars = max(1, settings.result_chars - 2 * TOLD_CHARS)
    return _part(url, text, max(0, start), chars, is_cut=len(body) >= MOST_BYTES)


def checked(written: str, hosts: Collection[str]) -> URL:
    """Return an address that may be asked. Pure. Raises: ToolRefused.

    `hosts`: those for which http and private addresses are allowed, in small letters.
    """
    try:
        url, place = URL(written), urlsplit(written).netloc
        host = (url.raw_host or "").lower()
    except ValueError as error:
        raise ToolRefused(NAME, "it is no address: write the whole of it, https://…") from error
    if not written.isprintable() or " " in written or "\\" in written or not host:
        raise ToolRefused(NAME, "it is no address: write the whole of it, https://…")
    if url.scheme != "https" and not (url.scheme == "http" and host in hosts):
        raise ToolRefused(NAME, "only https is read")
    if url.raw_user is not None or url.raw_password is not None:
        raise ToolRefused(NAME, "an address with a user's name in it is not read")
    if not (place.isascii() and _HOST.fullmatch(host)):
        raise ToolRefused(NAME, f"its host is written in other letters: write it as {host[:TOLD_CHARS]}")
    try:
        check_literal(host, inside(hosts))
    except Refused as error:
        raise ToolRefused(NAME, str(error)) from error
    return url


def inside(hosts: Collection[str]) -> Callable[[str, Address], bool]:
    """Return what says whether a host may lead into a private network: only those that the owner named. Pure."""
    return lambda host, _: host.strip("[]").lower() in hosts


async def _fetched(written: str, hosts: Collection[str]) -> tuple[URL, str, str, bytes]:
    """Return a page: its address after all redirects, its type and character set, at most `MOST_BYTES` of it."""
    url = checked(written, hosts)
    connector = aiohttp.TCPConnector(resolver=Once(inside(hosts)), use_dns_cache=False, force_close=True)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=READ_S, sock_connect=CONNECT_S),
        headers={"Accept-Encoding": "identity", "Accept": "text/*, application/json", "User-Agent": "claudius"},
        auto_decompress=False,  # what unpacks to more than it weighs is not read
        trust_env=False,  # a proxy would resolve the host anew, unchecked
    ) as session:
        for _ in range(MOST_REDIRECTS + 1):
            async with session.get(url, allow_redirects=False) as answer:
                if answer.status in _REDIRECTS and (target := answer.headers.get("Location")):
                    url = _followed(url, target, hosts)
                    continue
                if answer.status != 200:
                    raise ToolFailed(NAME, f"it answered {answer.status}")
                if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                    raise ToolFailed(NAME, "it comes packed although it was asked plain")
                if not _TEXTS.fullmatch(answer.content_type):
                    raise ToolFailed(NAME, "it is neither text nor JSON")
                return url, answer.content_type, answer.charset or "utf-8", await _bounded(answer)
    raise ToolFailed(NAME, f"it leads on more than {MOST_REDIRECTS} times")


def _followed(url: URL, target: str, hosts: Collection[str]) -> URL:
    """Return where a redirect leads, on the same host, `www.` aside. Pure. Raises: ToolFailed, ToolRefused."""
    where = url.join(URL(target))
    bare = [(one.raw_host or "").lower().removeprefix("www.") for one in (url, where)]
    if bare[0] != bare[1] or (url.scheme, where.scheme) == ("https", "http"):
        shown = "".join(filter(str.isprintable, str(where)))[:TOLD_CHARS]
        raise ToolFailed(NAME, f"it leads to {shown}: that is another address, to be asked for by itself")
    return checked(str(where), hosts)


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) >= MOST_BYTES:
            return bytes(body[:MOST_BYTES])
    return bytes(body)


def _part(url: URL, text: str, start: int, chars: int, *, is_cut: bool) -> str:
    part, end = text[start : start + chars], min(start + chars, len(text))
    more = f"from={end} reads on" if end < len(text) else "the page was cut here" if is_cut else ""
    told = f"\n[characters {start} to {end} of {len(text)}; {more}]" if more else ""
    return f"{str(url)[:TOLD_CHARS]}\n{part}{told}"


def page_text(body: bytes, kind: str, charset: str, url: URL) -> str:
    """Return the text of a page. Slow for a long one, linear in its length. Pure."""
    try:
        raw = body.decode(charset, "replace")
    except (LookupError, ValueError):  # no character set, or one that Python knows and that makes no text
        raw = body.decode("utf-8", "replace")
    is_html = kind in ("text/html", "application/xhtml+xml")
    text = "".join(_html(raw, str(url))) if is_html else raw
    text = "".join([one for one in text if one.isprintable() or one in "\n\t"])
    return re.sub(r"\n{3,}", "\n\n", "\n".join([line.rstrip() for line in text.split("\n")])).strip()


_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*+)((?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)>", re.IGNORECASE)
_TAG_CHARS = 4096
_HREF = re.compile(r"(?<![\w-])href\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object"})
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small", "span", "strong",
     "sub", "sup", "time", "u", "var", "wbr"}
)  # fmt: skip


def _html(raw: str, base: str) -> Iterator[str]:
    """Yield the words of a page, and after those of a link where it leads. The library's parser is quadratic."""
    at, is_new, pre, links = 0, True, 0, list[str]()
    while at < len(raw):
        start = found if (found := raw.find("<", at)) >= 0 else len(raw)
        if words := unescape(raw[at:start]):
            words = words if pre else re.sub(r"\s+", " ", words)
            words = words.lstrip() if is_new and not pre else words
            is_new = is_new and not words
            yield words
        if raw.startswith(("<!", "<?"), start):
            end = "-->" if raw.startswith("<!--", start) else ">"
            at = found + len(end) if (found := raw.find(end, start)) >= 0 else len(raw)
            continue
        tag = _TAG.match(raw, start, start + _TAG_CHARS)
        if tag is None:
            yield raw[start : start + 1]
            at = start + 1
            continue
        at, name, is_end = tag.end(), tag[2].lower(), bool(tag[1])
        if name in _UNSEEN and not is_end and not tag[3].endswith("/"):
            closing = re.compile(f"</{name}", re.IGNORECASE).search(raw, at)
            at = closing.start() if closing else len(raw)
        elif name == "a":
            if not is_end:
                links.append(_link(tag[3], base))
            elif links and (to := links.pop()):
                yield f" ({to})"
        elif name not in _INLINE:
            pre = max(0, pre + (-1 if is_end else 1)) if name == "pre" else pre
            yield "\n"
            is_new = True


def _link(attributes: str, base: str) -> str:
    """Return where a link leads, if that is another page."""
    found = _HREF.search(attributes)
    written = unescape(next(filter(None, found.groups()), "")).strip() if found else ""
    if not written or written.startswith("#"):
        return ""
    try:
        to = urljoin(base, written)
    except ValueError:
        return ""
    return to if to.startswith(("https://", "http://")) and len(to) <= TOLD_CHARS else ""
