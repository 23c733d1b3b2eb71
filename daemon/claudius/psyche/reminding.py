"""Recognise requests for a reminder, promises to remind, and refusals, in English and German. Pure.

A request is one however politely it is put; "I remember" (`ich erinnere mich`), reported speech and a question about
the past are none. Only an undertaking that is negated is a refusal: "You can't say I did not warn you" is not.
"""

from __future__ import annotations

import re

_VERB = r"(?:remind|nudge|ping|poke|wake|alert|notify|buzz)"
_I = re.IGNORECASE
READ_CHARS, SENTENCE_CHARS = 4000, 240
"""Only the start of a text, and of a sentence, is read: the patterns look far ahead."""
_SIGN_TEXT = (
    "remind nudge ping poke wake alert notify buzz alarm timer forget erinner weck stups bescheid vergessen give"
)
SIGNS = tuple(_SIGN_TEXT.split())
"""Every request for a reminder contains one of these, in lower case."""
_BREAK = re.compile(
    r"(?<=[.!?…])(?<!\d\.)\s+|\n+"
    r"|(?<=\d\.)\s+(?=[A-ZÄÖÜ])(?!(?:Jan|Jän|Feb|Mär|Mar|Apr|Ma[iy]|Jun|Jul|Aug|Sep|Okt|Oct|Nov|Dez|Dec))"
)
_CLAUSE = re.compile(
    r"[.!?;:,—–\n]+(?:\s+|$)|\s+(?=(?:but|though|although|however|because|aber|doch|sondern|denn|allerdings)\b)", _I
)

_ASKS_ME = re.compile(
    rf"\b{_VERB}\s+(?:me|us)\b(?!\W+(?:again\s+|once\s+more\s+)?(?:of\s+)?(?:what|why|how|who|whom|whose|where|which|if|whether)\b)"
    r"(?!\s+(?:again\s+)?when\s+(?!it['’]?s\b|it\s+is\b))"
    r"|\bgive\s+(?:me|us)\s+(?:a|another)\s+(?:nudge|ping|poke|buzz|reminder|wake-up\s+call|call|shout)\b",
    _I,
)
_POLITE = re.compile(
    r"\b(?:(?:can|could|will|would|might|may|should|must|can't|couldn't|won't|wouldn't|why\s+don't|why\s+not)\s+you"
    r"|you\s+(?:can|could|will|would|might|may|should|must|to|please)|you'd|be\s+so\s+\w+\s+as\s+to|enough\s+to|please\s+do"
    r"|(?:don't|do\s+not|never)\s+forget\s+to|remember\s+to|be\s+sure\s+to|make\s+sure\s+(?:you|to))(?:\s+\w+){0,2}\s*$|^\W*(?:when|once|as\s+soon\s+as)\s+it(?:'s|\s+is)\b",
    _I,
)
_REPORTED = re.compile(r"\b(?:said|says|promised|forgot|told|asked|were|was|did|didn't|used|thought|if\s+only)\b", _I)
_OTHERS = re.compile(
    r"\b(?:i|he|she|they|we|it|that|this|these|those|who|you|will|would|can|could|may|might|must|should|to|not|never"
    r"|no|did|does|do|don't|doesn't|didn't|won't|without|stop|let|lets|makes?|made)\b|['’]ll\b|n['’]t\b",
    _I,
)
_NOUN = re.compile(r"\b(?!(?:please|and|also|then|so|ok|okay|hey|hi|hello|now|just)\b)\w+\s*$", _I)
_ASKS_NOUN = re.compile(
    r"\b(?:set|make|create|add|schedule|put)\s+(?:(?:me|us|up|in)\s+)*(?:a|an|another|the|my)\s+(?:\w+\s+)?(?:reminder|alarm|timer)\b"
    r"|\b(?:i|we)\s*(?:need|want|would\s+like|['’]d\s+like|could\s+use)\s+(?:a|an|another)\s+(?:\w+\s+)?(?:reminder|alarm|timer|wake-up\s+call)\b"
    r"|\b(?:i|we)\s*(?:need|want|would\s+like|['’]d\s+like|wish)\s+to\s+be\s+(?:reminded|woken|nudged)\b"
    r"|\b(?:do\s+not|don['’]t)\s+let\s+(?:me|us)\s+forget\b|^\W*reminder\s*:",
    _I,
)
_ASKS_HOW = re.compile(
    r"^\W*(?:how|what|where|why|can\s+i|do\s+i|should\s+i|wie|wo|womit|warum|kann\s+ich|soll\s+ich)\b|\b(?:don['’]t|do\s+not|no)\s+(?:need|want)\b|\bneed\s+no\b",
    _I,
)
_BITTE = r"(?:bitte\s+|mal\s+|doch\s+|auch\s+|noch\s+|kurz\s+|dann\s+|jetzt\s+)*"
_WER = r"(?:mich|uns)"
_FRAGT = re.compile(
    rf"(?<!ich )(?<!wir )\b(?:erinner[en]?|weck[e]?|stups[e]?|ping[e]?)\s+{_BITTE}(?:sie\s+)?{_BITTE}{_WER}\b"
    rf"|\b(?:kannst|könntest|koenntest|würdest|wuerdest|magst|möchtest|willst|wirst|darfst|sollst|solltest|musst)\s+du\b"
    rf"[^.!?]*\b{_WER}\b[^.!?]*\b(?:erinnern|wecken|anpingen|anstupsen)\b"
    rf"|\b(?:können|könnten|würden|möchten|wollen|werden)\s+sie\b[^.!?]*\b{_WER}\b[^.!?]*\b(?:erinnern|wecken)\b"
    rf"|\bdu\s+(?:kannst|könntest|sollst|solltest|musst|darfst)\s[^.!?]*\b{_WER}\b[^.!?]*\b(?:erinnern|wecken)\b"
    rf"|\b(?:dass|wenn)\s+du\s[^.!?]*\b{_WER}\b[^.!?]*\b(?:erinnerst|erinnern|weckst|wecken)\b"
    rf"|\b(?:erinnerst|weckst)\s+du\s[^.!?]*?\b{_WER}\b|^(?!.*\b(?:dich|sich|ich|wir)\b)[^.!?]*\bbitte\b[^.!?]*\berinnern\W*$"
    rf"|\b(?:denke?|vergiss|vergesst|vergessen\s+sie)\b[^.!?]*\b{_WER}\b[^.!?]*\bzu\s+erinnern\b"
    r"|\bich\s+(?:möchte|will|würde\s+gern\w*)\s[^.!?]*\b(?:erinnert|geweckt)\s+werden\b"
    r"|\b(?:stell|setz|mach|erstell|richte)e?n?\s+(?:sie\s+)?(?:mir\s+|uns\s+)?[^.!?]{0,40}?"
    r"(?:erinnerung|wecker|timer)\b|\bich\s+(?:brauche|bräuchte|möchte|will|hätte\s+gern\w*)\s[^.!?]*\b(?:erinnerung|wecker)\b"
    r"|\blass\w*\s+(?:sie\s+)?(?:mich|uns)\s[^.!?]*\bnicht\s+vergessen\b|^\W*erinnerung\s*:"
    r"|\b(?:kannst|könntest|würdest)\s+du\s+(?:mir|uns)\s[^.!?]*\bbescheid\b"
    r"|\b(?:sag|gib|geb)e?n?\s+(?:sie\s+)?(?:mir|uns)\s[^.!?]*\bbescheid\b",
    _I,
)
_VERNEINT = re.compile(
    r"\b(?:nicht|nie|niemals|kein\w*)\b(?!\s+(?:zu\s+)?vergessen)(?<!vergiss nicht)(?<!vergesst nicht)", _I
)

_MODAL = r"(?:will|['’]ll|can|could|shall|am\s+going\s+to|['’]m\s+going\s+to|going\s+to|let\s+me)"
_UNDERTAKES = re.compile(
    rf"\b(?:i|we)?\s*{_MODAL}\s+(?:(?!not\b|never\b|hardly\b)\w+\s+){{0,2}}{_VERB}\s+you\b"
    r"|\bich\s+(?:erinnere|wecke|stupse|pinge)\s+(?:dich|euch|sie)\b"
    r"|\b(?:erinnere|wecke|stupse|pinge)\s+ich\s+(?:dich|euch|sie)\b"
    r"|\bich\s+(?:werde|kann|will)\s+(?:dich|euch|sie|ihnen|dir)\s(?:(?!nicht\b|nie\b)\S+\s)*?(?:erinnern|wecken)\b",
    _I,
)
_NEGATED = (
    r"(?:can(?:no|['’])t|can\s+not|could(?:n['’]t|\s+not)|won['’]t|will\s+not|shall\s+not|(?:do\s+not|don['’]t)|am\s+not|"
    r"['’]m\s+not|unable|will\s+never|can\s+never|would\s+rather\s+not|['’]d\s+rather\s+not|refuse|(?:have\s+no|lack\s+(?:a|any|the))\s+(?:way|means|ability|clock|tools?))"
)
_REMINDING = (
    rf"(?:{_VERB}(?:ing)?\s+(?:you|anyone|anybody|people)\b|(?:a\s+|any\s+|your\s+)?(?:reminders?|alarms?|timers?)\b|schedul\w+"
    r"|(?:keep|track|tell|know)\s+(?:\w+\s+)?(?:of\s+)?(?:the\s+)?time\b"
    rf"|promise\s+to\s+(?:{_VERB}|do))"
)
_DOING = (
    r"(?:(?:do|promise|help(?:\s+you)?(?:\s+with)?|offer|manage)(?:\s+(?:that|this|it|so))?"
    r"(?:\s+(?:here|for\s+you|right\s+now|yet|now|unfortunately|sorry|i['’]m\s+afraid|at\s+the\s+moment|today))*\s*$)"
)
_REFUSES = re.compile(
    rf"\b(?:i|we)\b[^.!?]*?{_NEGATED}(?!\s+(?:forget|fail|wait|miss))(?:\s+\w+(?:['’]\w+)?){{0,8}}?\s+{_REMINDING}"
    rf"|\b(?:i|we)\b[^.!?]*?{_NEGATED}(?!\s+(?:forget|fail|wait|miss|think|imagine|see|mind|say))(?:\s+\w+){{0,3}}?\s+{_DOING}"
    rf"|\b(?:i|we)(?:['’]m\s+afraid)?\s+(?:\w+\s+)?(?:i\s+)?(?:can(?:no|['’])t|can\s+not|won['’]t|will\s+not)(?:\s+sorry)?\s*$"
    rf"|^\W*(?:no\s+)?(?:cannot|can['’]t|won['’]t|unable\s+to)\s+(?:do|{_VERB}|set)\b"
    r"|\b(?:kann|werde|will|darf|könnte)\s+ich\s+(?:(?:dich|dir|euch|ihnen|sie|leider|das|es|dabei|so|hier)\s+)*nicht"
    r"(?:\s+(?:daran\s+)?(?:erinnern|tun|machen|versprechen|leisten|wecken|anbieten))?\s*$"
    r"|\bich\s+(?:kann|werde|will|darf|könnte)\s+[^.!?]*?(?:nicht|keine?n?)\b(?:\s+\S+){0,4}?\s*"
    r"(?:erinnern|wecken|erinnerung(?:en)?|wecker|tun|machen|versprechen)\b"
    r"|\bich\s+erinnere\s+(?:dich|euch|sie)\s+(?:\w+\s+)*nicht\b"
    r"|\bich\b[^.!?]*\bnicht\s+in\s+der\s+lage\b|\bmir\s+(?:leider\s+)?nicht\s+möglich\b",
    _I,
)
_QUOTED = re.compile(r"“[^”]*”|„[^“]*“|«[^»]*»|\"[^\"\n]*\"|^>.*$", re.MULTILINE)
ASKS_TIME = re.compile(
    r"\b(?:when|what\s+time|how\s+(?:soon|long)|(?:which|what)\s+(?:day|hour)|wann|um\s+wie|welche\w*\s+(?:tag|uhrzeit|zeit))\b[^.!?]*\?",
    _I,
)
_NO = re.compile(
    r"\W*(?:no|nope|never|nein|nö|niemals|not\s+a\s+chance|no\s+way|auf\s+keinen\s+fall)(?:[,\s]+sorry)?\W*", _I
)


def own_words(reply: str) -> str:
    """Return a reply without what it quotes. Pure."""
    return _QUOTED.sub("", reply[:READ_CHARS])


def statements(text: str) -> list[str]:
    """Return the sentences of a text; the dot of a decimal or an ordinal ends none. Pure."""
    return [one.strip()[:SENTENCE_CHARS] for one in _BREAK.split(text[:READ_CHARS]) if one.strip()]


def request_in(text: str) -> str:
    """Return the first sentence of a text that asks for a reminder; "" if none does. Pure."""
    text = text[:READ_CHARS]
    if not any(map(text.lower().__contains__, SIGNS)):
        return ""
    return next((one for one in statements(text) if asks(one)), "")


def asks(sentence: str) -> bool:
    """Return whether a sentence asks to be reminded. Pure."""
    asks_how = bool(_ASKS_HOW.search(sentence))
    if any(_is_asked(sentence, found) for found in _ASKS_NOUN.finditer(sentence)):
        return not asks_how
    if any(_is_asked(sentence, found) for found in _ASKS_ME.finditer(sentence)):
        return True
    found_german = _FRAGT.search(sentence)
    return bool(found_german and not _VERNEINT.search(sentence) and not asks_how)


def _is_asked(sentence: str, found: re.Match[str]) -> bool:
    """Return whether what was found is asked of the listener, and not told of somebody."""
    before = re.split(r"[,;:—–]\s*|\s-\s", sentence[: found.start()].replace("’", "'"))[-1]
    is_asked = _POLITE.search(before) and not re.search(r"\bnot\s*$", before)
    has_subject = _OTHERS.search(before) or (re.match(r"\s+of\b", sentence[found.end() :]) and _NOUN.search(before))
    return not _REPORTED.search(before) and bool(is_asked or not has_subject)


def undertaking_in(text: str) -> str:
    """Return the first sentence of a reply that promises to remind; "" if none does. Pure."""
    return next((one for one in statements(text) if is_undertaking(one)), "")


def is_undertaking(sentence: str) -> bool:
    """Return whether a sentence promises to remind somebody. Pure."""
    return any(map(_undertakes, _clauses(sentence)))


def asks_time(reply: str) -> bool:
    """Return whether a reply asks when. Pure."""
    return any(map(ASKS_TIME.search, statements(reply)))


def refuses(text: str) -> bool:
    """Return whether a reply refuses to remind: it negates the promise, and makes no other. Pure."""
    if undertaking_in(text):
        return False
    return any(_NO.fullmatch(one) or any(map(_REFUSES.search, _clauses(one))) for one in statements(text))


def _undertakes(clause: str) -> bool:
    return bool(_UNDERTAKES.search(clause)) and not re.search(
        r"\b(?:not|never|cannot|wish|doubt|if|nicht)\b|n['’]t\b(?!\s+(?:forget|fail|worry))", clause, _I
    )


def _clauses(sentence: str) -> list[str]:
    return [one.strip() for one in _CLAUSE.split(sentence) if one.strip()]
