"""Detect tags in forms that the parser does not read, so that they are not spoken. Fails closed.

A model may mark its thoughts in its own way: other brackets, nested escapes, or the tokens it was trained with.
"""

from __future__ import annotations

import re
from functools import lru_cache

from claudius.cognition.reply.tags import LT, NAMES, PREFIXED, Names, canonical, plain_form, read_head

_REASONING = (
    "think", "thought", "reasoning", "monologue", "reflection", "analysis", "scratchpad", "toolcall", "functioncall",
)  # fmt: skip
_LESS = r"(?:<|&(?:amp;)*(?:lt|#0*60|#x0*3c);?|%3c|\\[ux](?:00)?3c)"
_BRACKET = r"[\[{‹〈《【◁⟨❮]"
_OPENS = re.compile(r"[<＜﹤&＆﹠%％﹪\\＼﹨\[［{｛﹛‹〈《【◁⟨❮]")
"""Without one of these characters nothing is disguised; most speech contains none."""
_FOREIGN = re.compile(
    r"""(?x)
      <[ ]?\|[^\s|<>]{1,40}\|[ ]?>                                          # a token of the model's own
    | <[\s/]{0,8}[\w\-]{0,40}?(?:[a-z][^\W\x00-\x7f]|[^\W\x00-\x7f][a-z])  # a name of two scripts
    | [\[◁【]/?◁?/?[ ]?(?:think|thinking|thoughts?|reasoning|scratchpad)[ ]?[\]▷】]
    | ["'](?:inner|private|internal)?[ _\-]?(?:monologue|thoughts?|thinking|reasoning|scratchpad)["'][ ]?:
    """
)


@lru_cache(maxsize=4)
def _patterns(written: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    tag = rf"(?:{_LESS}|{_BRACKET})[\s/]{{0,8}}(?:[\w.\-]{{1,40}}:)?(?:{written})(?!\w)"
    joined = written.replace(r"[\W_]{0,3}", "_{0,3}")
    return re.compile(tag), re.compile(rf"{tag}|(?<!\w)(?:{joined})(?!\w)|[(*|]\s?(?:{written})\s?[)*|]")


def is_disguised(text: str, names: Names = NAMES) -> bool:
    """Return whether a step's name appears as a disguised tag: prefixed, escaped twice, in other brackets. Pure."""
    return _OPENS.search(text) is not None and _patterns(names.written)[0].search(plain_form(text)) is not None


def is_structured(text: str, names: Names = NAMES) -> bool:
    """Return whether a supposedly plain text contains any trace of a tag, ours or model reasoning. Pure."""
    for lt in LT.finditer(text):
        found = PREFIXED.match(text, lt.end())
        form = canonical(found[1]) if found else ""
        if form in names.tags or any(word in form for word in _REASONING) or read_head(text, lt, names):
            return True
    plain = plain_form(text)
    return _FOREIGN.search(plain) is not None or _patterns(names.written)[1].search(plain) is not None
