"""How much a message asks for, and what is at stake in it: counted by rule, never judged by a model. Pure.

Source: the psyche design, section 3; the cortex design, section 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

READ_CHARS = 2000
"""How much of a message is looked at."""
NEAR_CHARS = 40
"""Two cues of a critical class stand at most so far apart."""
ASK_WORTH, CRITICAL_WORTH, ATTACHMENT_WORTH = 20, 40, 15

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_REQUEST = re.compile(
    r"\bplease\b|\b(?:can|could|would|will)\s+(?:you|someone|anyone)\b|\bi'd\s+like\s+you\s+to\b|\bneed\s+you\s+to\b"
    r"|^\s*(?:(?:hey|hi|hello)\b,?\s+)?(?:\w+,\s+)?(?:send|show|tell|give|explain|write|make|help|find|check|fix|run|look"
    r"|summari[sz]e|remind|list|add|remove|delete|create|draft|review|translate|compare|describe|read|open|stop|plan"
    r"|pick|name|suggest|recall)\b",
    re.IGNORECASE,
)


_LETTERS = re.compile(r"[a-z]+")
_REQUEST_TEXT = (
    "please can could would will like need send show tell give explain write make help find check "
    "fix run look summarise summarize remind list add remove delete create draft review translate "
    "compare describe read open stop plan pick name suggest recall"
)
_REQUEST_SIGNS = frozenset(_REQUEST_TEXT.split())
_CREDENTIAL_TEXT = (
    "password passwords key keys apikey apikeys sshkey sshkeys privatekey privatekeys token tokens "
    "accesstoken accesstokens bottoken bottokens phrase phrases seedphrase seedphrases code codes"
)
_SIGNS = {
    "money": frozenset(("wire", "transfer", "pay", "send", "refund", "invest", "loan")),
    "credentials": frozenset(_CREDENTIAL_TEXT.split()),
    "permission": frozenset(("give", "grant", "make", "add")),
    "destructive": frozenset(("delete", "drop", "wipe", "erase", "purge", "truncate", "force", "rm")),
    "self_harm": frozenset(("kill", "die", "end", "hurt", "live", "suicide", "suicidal", "suicides")),
}
"""Words without which a class cannot be there: looking for them is a tenth of the work."""


def _pair(one: str, other: str) -> re.Pattern[str]:
    gap = rf".{{0,{NEAR_CHARS}}}?"
    return re.compile(rf"(?:{one}){gap}(?:{other})|(?:{other}){gap}(?:{one})", re.IGNORECASE | re.DOTALL)


CRITICAL: dict[str, re.Pattern[str]] = {
    "money": _pair(
        r"\b(?:wire|transfer|pay|send|refund|invest|loan)\b",
        r"[$€£]|\b(?:money|dollars?|euros?|bitcoins?|funds?)\b",
    ),
    "credentials": re.compile(
        r"\b(?:passwords?|api\s?keys?|private\s?keys?|(?:access|bot)\s?tokens?|ssh\s?keys?|seed\s?phrases?"
        r"|one-time\s?codes?)\b",
        re.IGNORECASE,
    ),
    "permission": _pair(r"\b(?:give|grant|make|add)\b", r"\b(?:admin|root|owner|sudo|write\s+access)\b"),
    "destructive": _pair(
        r"\b(?:delete|drop|wipe|erase|purge|truncate|force-push)\b|\brm\s+-rf\b",
        r"\b(?:prod|production|database|db|tables?|backups?|repo|cluster|everything|all\s+(?:the\s+)?data)\b",
    ),
    "self_harm": re.compile(
        r"\b(?:kill\s+myself|want\s+to\s+die|end\s+it\s+all|suicid(?:e|es|al)|hurt\s+myself|don'?t\s+want\s+to\s+live)\b",
        re.IGNORECASE,
    ),
}


def critical(text: str) -> frozenset[str]:
    """Name the critical classes that a text touches. Pure."""
    text = text[:READ_CHARS]
    likely = _words(text)
    return frozenset(name for name, cue in CRITICAL.items() if not likely.isdisjoint(_SIGNS[name]) and cue.search(text))


def asks(text: str) -> int:
    """Count the sentences that ask for something. Pure."""
    is_likely = not _words(text).isdisjoint(_REQUEST_SIGNS)
    return sum(
        sentence.rstrip().endswith("?") or (is_likely and bool(_REQUEST.search(sentence)))
        for sentence in sentences(text)
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(_LETTERS.findall(text[:READ_CHARS].lower()))


def scope(text: str, attachments: int = 0) -> int:
    """Return how much a message asks for: words, requests, what is at stake, what is attached. Pure."""
    words = len(_WORD.findall(text[:READ_CHARS]))
    at_stake = CRITICAL_WORTH if critical(text) else 0
    return words + ASK_WORTH * asks(text) + at_stake + ATTACHMENT_WORTH * attachments


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with their end signs. Pure."""
    for found in _SENTENCE.finditer(text[:READ_CHARS]):
        if found[0].strip():
            yield found[0]
