"""Drop what a model thinks aloud between marks of its own, such as `<think>…</think>`, from the events of a reply.

Every chain reads its providers through this, so that no reader of a reply sees such a thought. A closing mark without
an opening one says that all before it was a thought, and a `Reset` makes void what was yielded of it. A thought that is
never closed lasts to the end of the reply. A mark in backticks is what the reply is about, and stays.

Source: the chat templates of models that think (DeepSeek, Qwen, MiniMax, Seed, Kimi, Magistral, Command A); the harmony
format, cookbook.openai.com/articles/openai-harmony.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from claudius.cognition.reply.tags import canonical
from claudius.provider import Delta, Done, Event, Reset

State = Literal["words", "thought", "header"]
"""`header`: between the tokens that name the channel of what follows."""

MARK_CHARS = 120
"""The longest mark, attributes included."""
_OPENS = re.compile(r"[<＜\[◁【]")
_CLOSES = re.compile(r"[>＞\]▷】]")
_MARK = re.compile(
    r"""(?x)
      <\|(?P<token>[^\s|<>]{1,40})\|>
    | [<＜]\s{0,4}(?P<slash>[/／]?)\s{0,4}(?P<tag>(?:[\w.\-]{1,40}:)?[\w\-]{1,40})
      (?:\s[^<>＜＞]{0,80})?(?P<self>/?)[>＞]
    | [\[◁【]\s?(?P<slash_2>/?)\s?(?P<word>\w{1,40})\s?[\]▷】]
    """
)
_THOUGHTS = frozenset(
    {"think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad", "antthinking"}
)
_TOKEN = re.compile(r"think|thought|reasoning")
_PARTS = re.compile(r"[_\-.:]")
_ELSEWHERE = re.compile(r"[^\W\d_\u0000-\u036f]+")
"""A name in another script than Latin. At the beginning of a reply it marks a thought: no markup begins speech so."""
_SHELLS = frozenset({"answer", "response", "final", "solution", "output"})
"""Marks of the words themselves, where a model marks both."""
_SPEAKS = ("", "assistant", "final")
"""The headers of what is to be said."""


class ThoughtFilter:
    """The events of one reply without what its model thought aloud."""

    def __init__(self) -> None:
        """Begin before the first event."""
        self._begin()

    def _begin(self) -> None:
        self._state: State = "words"
        self._kept: list[str] = []
        self._rest, self._before, self._header = "", "", ""
        self._has_begun = self._has_thought = False

    def read(self, event: Event) -> Iterator[Event]:
        """Yield what an event comes to."""
        match event:
            case Delta(text):
                yield from self._read(text)
            case Reset():
                self._begin()
                yield event
            case Done(text=text):
                yield from self._read("" if self._has_begun else text, is_end=True)
                yield replace(event, text="".join(self._kept))
            case _:
                yield event

    def _read(self, piece: str, *, is_end: bool = False) -> Iterator[Event]:
        text, place, told = self._rest + piece, 0, len(self._kept)
        self._has_begun, self._rest = True, ""
        while place < len(text):
            opens = _OPENS.search(text, place)
            begins = opens.start() if opens else len(text)
            self._take(text[place:begins])
            if not opens:
                break
            mark = _MARK.match(text, begins)
            if not is_end and _is_undecided(text, begins, mark, is_quoted=self._before == "`"):
                self._rest = text[begins:]
                break
            place = mark.end() if mark else begins + 1
            is_text = mark is None or (self._before == "`" == text[place : place + 1])
            state = None if mark is None or is_text else self._after(mark)
            if state == "void":
                self._kept.clear()
                if told:
                    yield Reset()
                told = 0
            elif state:
                self._state = state
            else:
                self._take(text[begins:place])
        if made := "".join(self._kept[told:]):
            yield Delta(made)

    @property
    def _has_words(self) -> bool:
        return any(text.strip() for text in self._kept)

    def _take(self, text: str) -> None:
        self._before = text[-1:] or self._before
        if self._state == "header":
            self._header += text
        elif self._state == "words" and text:
            self._kept.append(text)

    def _after(self, mark: re.Match[str]) -> State | Literal["void"] | None:
        """Return the state after a mark, `void` if what came before was a thought; None if the mark is text."""
        if token := mark["token"]:
            return self._after_token(canonical(token))
        written = mark["tag"] or mark["word"]
        name = canonical(written.rpartition(":")[2])
        if name in _SHELLS and self._has_thought:
            return self._state
        is_thought = name in _THOUGHTS or (mark["tag"] and _PARTS.split(written.lower())[-1] in _THOUGHTS)
        is_elsewhere = mark["tag"] and _ELSEWHERE.fullmatch(name) and not self._has_words
        if not is_thought and not (is_elsewhere and (self._state == "thought" or not self._has_thought)):
            return None
        if mark["self"]:
            return self._state
        is_word = mark[0][0] == "[" and not (mark["slash_2"] or written.isupper())
        if is_word and self._state == "words" and self._has_words:
            return None  # in brackets, in the middle of what is said
        return self._marked(is_closing=bool(mark["slash"] or mark["slash_2"]))

    def _after_token(self, name: str) -> State | Literal["void"] | None:
        if name in ("start", "channel"):
            self._header = ""
            return "header"
        if self._state == "header":
            self._has_thought = True
            return "words" if self._header.strip() in _SPEAKS else "thought"
        if name in ("end", "return", "call"):
            return "words"
        if self._has_thought and any(shell in name for shell in _SHELLS):
            return self._state
        return self._marked(is_closing=name.startswith("end")) if _TOKEN.search(name) else None

    def _marked(self, *, is_closing: bool) -> State | Literal["void"]:
        is_stray = is_closing and self._state != "thought"
        self._has_thought = True
        return "void" if is_stray else "words" if is_closing else "thought"


def _is_undecided(text: str, begins: int, mark: re.Match[str] | None, *, is_quoted: bool) -> bool:
    """Return whether what follows the text decides about the mark that begins in it. Pure."""
    if mark:
        return is_quoted and mark.end() == len(text)
    return len(text) - begins < MARK_CHARS and not _CLOSES.search(text, begins)
