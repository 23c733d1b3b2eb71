"""Read words that come alone, as a small model writes them, as if they stood in their section."""

from __future__ import annotations

import re

from msgspec.structs import replace

from claudius.cognition.output.rules import SPEECH, OutputRules, ends_a_sentence, why_not_alone
from claudius.cognition.reply.parser import Dialogue, Parsed
from claudius.cognition.reply.tags import is_structured

SURE_CHARS = 24
"""Letters of a reply after which it is clear whether it begins as an answer."""


class Alone:
    """Holds the beginning of a reply until it is clear that it is an answer, and takes the soul's name off it."""

    def __init__(self, rules: OutputRules, name: str) -> None:
        """`name`: whose name may stand before the words, as that of every speaker does in the prompt."""
        self._rules, self._name = rules, name
        self._begun: str | None = ""
        self.is_unfit = False
        """The beginning is none of an answer: nothing is shown before the whole reply was judged."""

    def take(self, piece: str) -> str:
        """Return what the parser reads of the next piece; empty while it is not clear."""
        if self._begun is None:
            return piece
        self._begun += piece
        begins = _letters(self._begun)
        if len(begins) < SURE_CHARS or any(_letters(one).startswith(begins) for one in self._rules.heard):
            return ""
        return self._begin()

    def end(self) -> str:
        """Return what ends the section."""
        return f"{self._begin()}</{SPEECH}>"

    def whole(self, reply: Parsed, written: str) -> Parsed:
        """Return a reply whose words are all that was written, unless that has a form: a tag in them is spoken of."""
        if is_structured(written, self._rules.names):  # what is left of it may be nothing
            return replace(reply, flags=(*reply.flags, "structured"))
        words = self._without_name(written).strip()
        if reply.truncated and not ends_a_sentence(words):
            return reply
        return replace(reply, dialogues=(Dialogue(text=words, state="complete"),), flags=(), truncated=False)

    def anew(self) -> Alone:
        """Return one that has read nothing."""
        return Alone(self._rules, self._name)

    def _begin(self) -> str:
        if self._begun is None:
            return ""
        words, self._begun = self._begun, None
        words = self._without_name(words)
        self.is_unfit = why_not_alone(words, self._rules) != ()
        return f"<{SPEECH}>{words}"

    def _without_name(self, words: str) -> str:
        if not self._name:
            return words
        return re.sub(rf"\A\W*{re.escape(self._name)}\W{{0,3}}:\s*", "", words, flags=re.IGNORECASE)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
