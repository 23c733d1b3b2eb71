"""Check outgoing text for private content as the last step before it is said; on a hit, say a fixed line instead.

`gate` checks a whole text, `StreamGate` a streamed one. Rules G8, G6 and G7 rewrite what a chat network would act on
(hidden characters, pings, masked links) and keep the words; each works within one construct on one line, so a stream
can be rewritten piece by piece if no cut falls inside one. Every link shows where it leads and carries no private text,
because a link preview is a zero-click leak. Source: the security design, section 7, G1 to G9.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote_plus, urlsplit

from msgspec import Struct

from claudius.cognition.output.rules import ELLIPSIS, SPAN, Mentionable, OutputRules, Overlap
from claudius.cognition.reply.tags import find_head, is_blank, is_disguised
from claudius.config.load import blot
from claudius.psyche.scrubber import Unnumbered

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
SCHEME_START = r"(?<![A-Za-z0-9+.\-])" + "".join(
    rf"(?<!\A{one}:)(?<![^A-Za-z0-9+.\-]{one}:)" for one in ("data", "file", "javascript", "vbscript")
)
"""A scheme is matched only at its start, so that a run of schemes counts as one; `there.data:` is none."""
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
        text = _PIPED.sub(_unpiped, text)
    if ":" not in text:
        return text
    text = _SCHEME.sub("", text)
    if not hidden or not any(len(_carried(found[0])) >= LEAK_CHARS for found in _BARE.finditer(text)):
        return text
    kept = Overlap([_squashed(hidden)], LEAK_CHARS)

    def defanged(found: re.Match[str]) -> str:
        if not kept.repeated_in(_carried(found[0])):
            return found[0]
        return _HTTP.sub("hxxp", found[0]).replace("[.]", ".").replace(".", "[.]")

    return _BARE.sub(defanged, text)


def _unpiped(found: re.Match[str]) -> str:
    if not _misleads(found[2], found[1]):
        return found[0]
    before, after = _runs_on(found.string, found.start() - 1), _runs_on(found.string, found.end(), "")
    return " " * before + found[1] + " " * after


def _write_out(text: str) -> str:
    done: list[str] = []
    at = 0
    for found in _TARGET.finditer(text):
        line = text.find("\n", found.end(), found.end() + URL_CHARS)
        end = text.find(")", found.end(), line if line >= 0 else found.end() + URL_CHARS)
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


class Rewritten(Struct, frozen=True):
    """A rewritten text, and the rules that changed it, in order."""

    text: str
    hits: tuple[str, ...] = ()


def rewrite(text: str, mentions: Mentionable, hidden: str = "") -> Rewritten:
    """Apply G8, then G6 and G7 until neither exposes anything that the other must remove. Pure.

    `hidden`: every private text; no link may carry a piece of it. Rewriting twice gives the same text.
    """
    revealed = before = reveal(text)
    hits = ["G8"] if revealed != text else []
    for _ in range(PASSES):
        named = _name_mentions(before, mentions) if "<" in before else before
        unmasked = unmask(named, hidden)
        unmasked = unmasked if unmasked.isascii() else _MANY_MARKS.sub(r"\1", unmasked)
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
    return text if text.isascii() else _MANY_MARKS.sub(r"\1", text)


def _name_mentions(text: str, mentions: Mentionable) -> str:
    def named(found: re.Match[str]) -> str:
        sign, ident, label = found.groups()
        if sign == "!":
            group = ident.casefold()
            return _named(found, label or group) if group in _GROUPS else found[0]
        if sign in ("@", "@!") and mentions.is_answered(ident):
            return found[0]
        return _named(found, mentions.name_of(ident) or label or ident)

    return _ANGLE.sub(named, text)


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


HOLD_CHARS = 80
"""The most ordinary text that a stream holds back because it may still become a hit."""
SECRET_CHARS = 8
"""A configured secret shorter than this is not searched for, because it would also match plain words."""
_TELLTALE = 4
"""A stream is held back once its end matches this many characters of a nonce or a secret."""

_MARKER = re.compile(r"(?:[<＜﹤]|&lt;)[\s/]{0,8}data-[0-9a-f]{8}", re.IGNORECASE)
_SECRET_SHAPES = re.compile(
    r"""(?x) (?<![A-Za-z0-9])
    (?: xox[abeprs]-[A-Za-z0-9] | xapp-[A-Za-z0-9] | sk-ant-[A-Za-z0-9] | gsk_[A-Za-z0-9]
      | sk-[A-Za-z0-9_\-]{16} | (?:AKIA|ASIA)[0-9A-Z]{16}
      | [MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6,7}\.[A-Za-z0-9_\-]{27} )
    | -----BEGIN[ ][A-Z0-9 ]{1,40}-----"""
)
_WHOLE_SECRET = re.compile(
    rf"(?: -----BEGIN[ ][A-Z0-9 ]{{1,40}}-----[\s\S]*?(?: -----END[ ][A-Z0-9 ]{{1,40}}----- | \Z )"
    rf" | (?: {_SECRET_SHAPES.pattern.removeprefix('(?x)')} ) [A-Za-z0-9_\-.]* )",
    re.VERBOSE,
)
_SHAPE_SIGNS = ("xox", "xapp-", "sk-", "gsk_", "AKIA", "ASIA", "-----BEGIN")
_DOTS = re.compile(r"\.[A-Za-z0-9_\-]{6,7}\.[A-Za-z0-9_\-]{27}")
"""Without one of these no secret shape can match; searching for them costs a tenth of the full pattern."""
_SHAPE_BEGUN = re.compile(
    r"""(?x) (?:
      (?<![A-Za-z0-9]) (?: xo | xox | xox[abeprs]-? | xap | xapp-? | gsk_?
        | sk-[A-Za-z0-9_\-]{0,16} | (?:AKI|ASI) | (?:AKIA|ASIA)[0-9A-Z]{0,16}
        | [MNO][A-Za-z0-9_\-]{15,27} (?: \.[A-Za-z0-9_\-]{0,7} (?: \.[A-Za-z0-9_\-]{0,27} )? )? )
      | (?: & | &l | &lt | [<＜﹤] | &lt; ) [\s/]{0,8} (?: d | da | dat | data | data-[0-9a-f]{0,8} )
      | (?<!-) -{5} (?: B | BE | BEG | BEGI | BEGIN (?: [ ][A-Z0-9 ]{0,40}-{0,5} )? )
    )\Z"""
)


class Gated(Struct, frozen=True):
    """The text that may be said, and the rules that matched."""

    text: str
    hits: tuple[str, ...]
    """The rules that matched, `G1` to `G9`, in order; the owner is told of G4 and G5."""

    @property
    def is_replaced(self) -> bool:
        """Whether the words were replaced by the fixed line, or by what was already shown of them."""
        return not {"G1", "G2", "G3", "G4", "G5", "G9"}.isdisjoint(self.hits)


def gate(text: str, rules: OutputRules, *, streamed: str = "") -> Gated:
    """Return the text that may be said. Pure.

    `streamed`: what the listener has already seen; the result always continues from it.
    """
    revealed = reveal(text)
    hits = leaks(text, rules)
    if revealed != text:
        hits = tuple(sorted({*hits, *leaks(revealed, rules)}))
    instead = streamed.rstrip() + ELLIPSIS if streamed else rules.fallback
    if hits:
        return Gated(instead, hits)
    rewritten = rewrite(text, rules.mentions, rules.hidden if "://" in text else "")
    if is_blank(rewritten.text):
        return Gated(instead, (*rewritten.hits, "G9"))
    if not rewritten.text.startswith(streamed):
        return Gated(instead, rewritten.hits)
    return Gated(rewritten.text, rewritten.hits)


def leaks(text: str, rules: OutputRules) -> tuple[str, ...]:
    """Return which of G1 to G5 a text violates, in order. Pure."""
    has_marker = "data-" in text.casefold() and _MARKER.search(text) is not None
    found = (
        ("G1", find_head(text, rules.names) is not None or is_disguised(text, rules.names)),
        ("G2", rules.private.repeated_in(text)),
        ("G3", rules.has_nonce(text) or has_marker or rules.instructions.repeated_in(text)),
        ("G4", has_secret(text, rules)),
        ("G5", rules.forbidden.repeated_in(text)),
    )
    return tuple([rule for rule, is_met in found if is_met])


def has_secret(text: str, rules: OutputRules) -> bool:
    """Return whether a text contains a secret of ours or anything shaped like one. Pure."""
    for secret in rules.secrets:
        if len(secret) >= SECRET_CHARS and secret[:SPAN] in text:
            return True
    is_likely = any(map(text.__contains__, _SHAPE_SIGNS)) or _DOTS.search(text) is not None
    return is_likely and _SECRET_SHAPES.search(text) is not None


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret of ours, and whatever is shaped like one, replaced by `***`. Pure."""
    return _WHOLE_SECRET.sub("***", blot(text, secrets))


class StreamGate:
    """The gate for a growing text. What it lets through is always a prefix of what `gate` returns for the whole text.

    Text is held back only while its end may still become a hit: at most `HOLD_CHARS`, except that a link or a mention
    is held until it is complete. After a hit nothing more is let through.
    """

    def __init__(self, rules: OutputRules) -> None:
        self.stopped = False
        """A rule matched: the listener keeps what was shown, and `gate` decides about the rest."""
        self.hits: tuple[str, ...] = ()
        self._rules = rules
        self._told = tuple(one for one in (*rules.nonces, *rules.secrets) if len(one) >= SECRET_CHARS)
        self._before = ""
        self._line = ""
        self._held = ""
        self._carried = ""
        self._unnumbered = Unnumbered() if rules.feels else None

    def show(self, text: str) -> str:
        """Take the next text to say, and return the additional text that may be shown."""
        if self._unnumbered and not self.stopped:
            text = self._unnumbered.take(text)
        if self.stopped or not text:
            return ""
        text = self._carried + text
        end = len(text) - (text[-1] in _NEEDS_NEXT)
        self._held += reveal(text[:end])
        self._carried = text[end:]
        seen = self._before + self._held
        self.hits = leaks(seen, self._rules)
        if self.hits:
            self.stopped = True
            return ""
        safe = max(settled(seen[: len(seen) - self._suspicion(seen)]) - len(self._before), 0)
        piece, self._held = self._held[:safe], self._held[safe:]
        self._before = (self._before + piece)[-_CONTEXT:]
        return self._rewritten(piece)

    def _rewritten(self, piece: str) -> str:
        """Rewrite a settled piece in its context, after the text shown last."""
        before, self._line = self._line, (self._line + piece)[-_LINE:]
        whole = rewrite(before + piece, self._rules.mentions, self._rules.hidden if "://" in piece else "").text
        if not whole.startswith(before):  # pragma: no cover - no rule looks back this far
            self.stopped = True
            return ""
        return whole[len(before) :]

    def _suspicion(self, seen: str) -> int:
        """Return how many characters at the end may still become a hit."""
        end = seen[-HOLD_CHARS:]
        begun = _SHAPE_BEGUN.search(end)
        held = [len(end) - begun.start() if begun else 0]
        held += [zone.tail(seen) for zone in (self._rules.private, self._rules.instructions, self._rules.forbidden)]
        held += [_overlap(end, told) for told in self._told]
        return max(held)


_CONTEXT = SPAN + HOLD_CHARS
_NEEDS_NEXT = ("\r", "@")
"""The character after these decides whether they are hidden."""
_LINE = 4
"""Rules look back at most this far, to recognise the start of a line."""


def _overlap(end: str, told: str) -> int:
    """Return the length of the longest end of a text that begins `told`, if it is long enough to be telling."""
    at = end.find(told[:_TELLTALE])
    while at >= 0:
        length = len(end) - at
        if length < len(told) and told.startswith(end[at:]):
            return length
        at = end.find(told[:_TELLTALE], at + 1)
    return 0
