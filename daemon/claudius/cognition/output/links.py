"""Make every link show where it leads, and prevent links from carrying private text (rule G7 of the output gate).

Source: the security design, section 7; a link preview is a zero-click leak.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote_plus, urlsplit

from claudius.cognition.output.overlap import Echo

LABEL_CHARS = 300
"""A longer label is not inspected; its link is written out."""
URL_CHARS = 2048
LEAK_CHARS = 16
"""This many letters and digits of a private text in a link's path or query are no accident."""

_TARGET = re.compile(r"\]\(")
_BROKEN = re.compile(r"\]\((?=[ \t]{0,8}\n)")
_PIPED = re.compile(rf"<((?:https?:)?//[^\s<>|]{{1,{URL_CHARS}}})\|([^<>\n]{{0,{LABEL_CHARS}}})>", re.IGNORECASE)
_REFERENCE = re.compile(
    rf"^( {{0,3}})\[([^\[\]\n]{{1,{LABEL_CHARS}}})\]:(?=[ \t]{{0,8}}<?(?:(?:https?:)?//|www\.))",
    re.MULTILINE | re.IGNORECASE,
)
SCHEME_START = r"(?<![A-Za-z0-9+.\-])(?<!data:)(?<!file:)(?<!script:)"
"""A scheme is matched only at its start, so that a run of schemes counts as one."""
_SCHEME = re.compile(
    rf"{SCHEME_START}(?:(?:javascript|vbscript|data|file):)*"
    r"(?:(?:javascript|vbscript):(?=\S)|data:(?=[\w.+\-]*[;,/])|file:(?=[/\\]))",
    re.IGNORECASE,
)
_BARE = re.compile(rf"https?://[^\s<>]{{1,{URL_CHARS}}}", re.IGNORECASE)
_HOST = re.compile(r"(?<![\w\-.])(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w\-])")
_HTTP = re.compile(r"http(?=s?://)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")


def unmask(text: str, hidden: str = "") -> str:
    """Write out every link whose text shows another host, and every image as a link; remove dangerous schemes. Pure.

    A link whose path or query contains `LEAK_CHARS` of `hidden` is defanged, so that nothing fetches it.
    """
    if "](" in text:
        text = _write_out(_BROKEN.sub("] (", text))
    if "]:" in text:
        text = _REFERENCE.sub(r"\1\2:", text)
    if "|" in text:
        text = _PIPED.sub(lambda found: _apart(found) if _misleads(found[2], found[1]) else found[0], text)
    if ":" not in text:
        return text
    text = _SCHEME.sub("", text)
    if not hidden or not any(len(_carried(found[0])) >= LEAK_CHARS for found in _BARE.finditer(text)):
        return text
    kept = Echo([_squashed(hidden)], LEAK_CHARS)
    return _BARE.sub(lambda found: _defanged(found[0]) if kept.repeated_in(_carried(found[0])) else found[0], text)


def _write_out(text: str) -> str:
    done: list[str] = []
    at = 0
    for found in _TARGET.finditer(text):
        end = _target_end(text, found.end())
        if found.start() < at or end < 0:
            continue
        if "](" in text[found.end() : end]:
            done += [text[at : found.start() + 1], " "]
            at = found.start() + 1
            continue
        url = text[found.end() : end].strip().split(" ")[0].strip("<>")
        start = _label_start(text, found.start(), at)
        begin = start
        while begin > at and text[begin - 1] == "!":
            begin -= 1
        is_image = begin < start
        label = text[start + 1 : found.start()] if start >= 0 else None
        if not url or not (is_image or label is None or _misleads(label, url)):
            continue
        if label is None:
            done += [text[at : found.start() + 1], " ", url, " " * _runs_on(text, end + 1, ")")]
        elif is_image and label.strip() and not _misleads(label, url):
            done += [text[at:begin], text[start : end + 1]]
        else:
            done += [text[at:begin], " " * _runs_on(text, begin - 1), url, " " * _runs_on(text, end + 1, ")")]
        at = end + 1
    return "".join(done) + text[at:]


def _runs_on(text: str, at: int, besides: str = "(") -> bool:
    """Return whether a link written here would touch the character at `at`, unless that is one of `besides`."""
    return 0 <= at < len(text) and not text[at].isspace() and text[at] not in besides


def _apart(found: re.Match[str]) -> str:
    before, after = _runs_on(found.string, found.start() - 1), _runs_on(found.string, found.end(), "")
    return " " * before + found[1] + " " * after


def _target_end(text: str, start: int) -> int:
    line = text.find("\n", start, start + URL_CHARS)
    return text.find(")", start, line if line >= 0 else start + URL_CHARS)


def _label_start(text: str, close: int, floor: int) -> int:
    """Find the `[` that matches the `]` at `close` on the same line; -1 if there is none near enough."""
    depth = 1
    for at in range(close - 1, max(floor, close - LABEL_CHARS) - 1, -1):
        if text[at] == "\n":
            return -1
        depth += (text[at] == "]") - (text[at] == "[")
        if not depth:
            return at
    return -1


def _misleads(label: str, url: str) -> bool:
    """Return whether a link's text shows another host than its target, or is blank. Bad schemes always mislead."""
    if _SCHEME.match(url):
        return True
    shown = unicodedata.normalize("NFKC", label)
    if not shown.strip():
        return _host(url) != ""
    return any(_bare_host(found[0]) != _host(url) for found in _HOST.finditer(shown)) and _host(url) != ""


def _bare_host(host: str) -> str:
    return host.casefold().rstrip(".").removeprefix("www.")


def _host(url: str) -> str:
    """Return the host that a browser would open; empty if the target names none."""
    url = url.replace("\\", "/")
    if url[:7].casefold() == "mailto:":
        return _bare_host(url.rpartition("@")[2].partition("?")[0])
    found = _HOST.match(url)
    try:
        return _bare_host(urlsplit(f"//{url}" if found else url).hostname or "")
    except ValueError:
        return "?"


def _squashed(text: str) -> str:
    return "".join(_WORD.findall(text)).casefold()


def _carried(url: str) -> str:
    """Return the text of a link's path, query and fragment."""
    rest = url.partition("://")[2]
    host = re.match(r"[^/?#]*", rest)
    return _squashed(unquote_plus(unquote_plus(rest[host.end() if host else 0 :])))


def _defanged(url: str) -> str:
    return _HTTP.sub("hxxp", url).replace("[.]", ".").replace(".", "[.]")
