"""Remove from a text what a chat network would act on: hidden characters, pings, masked links. The words stay.

Rules G8, G6 and G7 of the output gate. Each works within one construct on one line, so a stream can be rewritten piece
by piece if no cut falls inside one; `settled` returns how far that is safe. Source: the security design, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct, field

from claudius.cognition.output.links import LABEL_CHARS, SCHEME_START, URL_CHARS, unmask

JOINER = "\u2060"
"""Word joiner: placed after an `@`, it keeps the word and disables the ping."""
PASSES = 4
"""Removing one thing may reveal another; nothing is nested deeper than this by accident."""
MARKS = 8
"""The longest allowed run of combining marks."""

_MARK = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
)
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2061-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|(?<!@)\u2060"
)
_PLAIN = re.compile(r"[\t\n -~]*+")
"""Text that cannot hide anything; this is the common case."""
_MANY_MARKS = re.compile(rf"([{_MARK}]{{{MARKS}}})[{_MARK}]+")
_ANGLE = re.compile(
    rf"(?<!<)<++(!|@[!&]?)([^<>\s|^]{{1,{LABEL_CHARS}}})(?:\^[^<>\s|]{{1,{LABEL_CHARS}}})?(?:\|([^<>\n]{{0,{LABEL_CHARS}}}))?>+"
)
_GROUPS = ("channel", "here", "everyone", "subteam")
_EVERYONE = re.compile(r"@(?=everyone|here|channel)", re.IGNORECASE)

_BEGUN = re.compile(
    rf"""(?x)
    (?: {SCHEME_START} (?: (?:javascript|vbscript|data|file): )*
                               (?: j|ja|jav|java|javas|javasc|javascr|javascri|javascrip|javascript:?
                               | v|vb|vbs|vbsc|vbscr|vbscri|vbscrip|vbscript:?
                               | d|da|dat|data | data:[\w.+\-]* | f|fi|fil|file:? )
      | @[A-Za-z]{{0,8}}
      | h|ht|htt|https? | https?:/? | https?://[^\s<>]{{0,{URL_CHARS}}}
      | (?<!<)<++ (?: [!@][^<>\n]{{0,{3 * LABEL_CHARS}}} | [hH/][^<>\n]{{0,{URL_CHARS + LABEL_CHARS}}} )?
      | [{_MARK}]+
      | !+
    )\Z""",
    re.IGNORECASE,
)
_LEADS_IN = " \n\t([{*_\"'"
_LEADS_OUT = " \n\t)]}*_\"'.,;:!?"
_MARKUP = re.compile(rf"[<>@|\[\](){JOINER}]")
_WORD_CUT = re.compile(
    rf"(?:https?://[^\s<>]{{0,{URL_CHARS}}}[^\s<>]|{SCHEME_START}(?:(?:javascript|vbscript|data|file):)+\S)\Z",
    re.IGNORECASE,
)
_ANGLE_END = re.compile(rf"(?<!<)<++[!@hH/][^<>\n]{{0,{URL_CHARS + LABEL_CHARS}}}>+\Z")
_BRACKET = re.compile(r"[\[\]]")
_LONGEST = URL_CHARS + 2 * LABEL_CHARS


class Company(Struct, frozen=True, kw_only=True):
    """The audience of a text. Ids are persons' ids (`slack:T1:U1`); a network's mention contains their last part."""

    answered: str = ""
    """The only person who may be pinged."""
    members: Mapping[str, str] = field(default_factory=dict)
    """The members of this conversation, who may be named: id → display name."""

    def is_answered(self, ident: str) -> bool:
        """Return whether a network's id is that of the person answered."""
        return ident == self.answered.rpartition(":")[2] != ""

    def name_of(self, ident: str) -> str:
        """Return the display name for a network's id; empty for someone who is not here."""
        return next((name for person, name in self.members.items() if person.rpartition(":")[2] == ident), "")


class Rewritten(Struct, frozen=True):
    """A rewritten text, and the rules that changed it, in order."""

    text: str
    hits: tuple[str, ...] = ()


def rewrite(text: str, company: Company, hidden: str = "") -> Rewritten:
    """Apply G8, then G6 and G7 until neither exposes anything that the other must remove. Pure.

    `hidden`: every private text; no link may carry a piece of it. Rewriting twice gives the same text.
    """
    revealed = before = reveal(text)
    hits = ["G8"] if revealed != text else []
    for _ in range(PASSES):
        named = _name_mentions(before, company)
        unmasked = _fewer_marks(unmask(named, hidden))
        hits += ["G6"] * (named != before) + ["G7"] * (unmasked != named)
        if unmasked == before:
            break
        before = unmasked
    unpinged = _EVERYONE.sub(f"@{JOINER}", before) if "@" in before else before
    hits += ["G6"] * (unpinged != before)
    return Rewritten(unpinged, tuple(sorted(set(hits))))


def reveal(text: str) -> str:
    """Return a text without hidden characters (rule G8). Pure."""
    if _PLAIN.fullmatch(text):
        return text
    if _HIDDEN.search(text):
        text = _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _fewer_marks(text)


def _fewer_marks(text: str) -> str:
    return text if text.isascii() else _MANY_MARKS.sub(r"\1", text)


def _name_mentions(text: str, company: Company) -> str:
    def named(found: re.Match[str]) -> str:
        sign, ident, label = found.groups()
        if sign == "!":
            group = ident.casefold()
            return _named(found, label or group) if group in _GROUPS else found[0]
        if sign in ("@", "@!") and company.is_answered(ident):
            return found[0]
        return _named(found, company.name_of(ident) or label or ident)

    return _ANGLE.sub(named, text) if "<" in text else text


def _named(found: re.Match[str], name: str) -> str:
    """Write a name without a ping, separated from any word or link before or after it."""
    text, start, end = found.string, found.start(), found.end()
    before = " " * (start > 0 and text[start - 1] not in _LEADS_IN)
    behind = " " * (end < len(text) and text[end] not in _LEADS_OUT)
    return f"{before}@{JOINER}{_MARKUP.sub('', name).strip()}{behind}"


def settled(text: str) -> int:
    """Return how much of a growing text can be rewritten for good: up to the first open construct. Pure."""
    begin = max(text.rfind("\n") + 1, len(text) - _LONGEST)
    tail = text[begin:]
    found = _BEGUN.search(tail)
    before, end = -1, found.start() if found else len(tail)
    while end != before:
        before, end = end, _before_link(tail, end)
        whole = _ANGLE_END.search(tail[:end]) or (_WORD_CUT.search(tail[: end + 1]) if end < len(tail) else None)
        end = whole.start() if whole else end
        end = len(tail[:end].rstrip("!")) if tail[end : end + 1] == "[" else end
    return begin + end


def _before_link(tail: str, end: int) -> int:
    """Move `end` before the first link whose label or target may still continue, and out of any link it is in."""
    opened: list[int] = []
    close = -1
    for found in _BRACKET.finditer(tail):
        at = found.start()
        if at <= close:
            continue
        if tail[at] == "[":
            opened.append(at)
            continue
        start = opened.pop() if opened else at
        after = tail[at + 1 : at + 2]
        close = tail.find(")", at) if after == "(" else at
        is_unknown = not after or (after == ":" and not tail[:start].strip())
        is_open = after == "(" and close < 0 and len(tail) - at <= URL_CHARS
        if is_unknown or is_open or start < end <= close + 1:
            return min((*opened, start, end))
    return min(end, next((at for at in opened if len(tail) - at <= LABEL_CHARS), len(tail)))
