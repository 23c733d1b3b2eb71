"""The prompt of `claudius chat` on a full terminal: what arrives appears above the line being typed, once.

What is still growing (a thought, a reply) stands in the prompt's own lines, and is printed when it is whole; so nothing
that is begun anew leaves a trace. Imported only on a terminal: prompt_toolkit takes as long to load as everything else.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from claudius.cli.output import safe
from claudius.cli.screen import YOU

STYLE = Style.from_dict({
    "you": "bold",
    "past": "dim",
    "help": "dim",
    "thought": "dim italic",
    "working": "dim",
    "note": "ansiyellow",
    "wrong": "ansired",
})  # fmt: skip
_SENTENCE_ENDS = tuple(".!?…")
SPARE_ROWS = 4
"""Rows that growing text leaves free for the line being typed."""


class LineEditor:
    """A full terminal: one line is edited at the bottom, and the conversation grows above it."""

    one_by_one = False

    def __init__(self, words: Mapping[str, str], history: Iterable[str]) -> None:
        """Complete `words`, each with its meaning, at a line's start; `history` are earlier lines, oldest first."""
        self.is_interrupted = False
        self._keyboard = _Keyboard(sys.stdin)
        self._raw = ExitStack()
        self._raw.enter_context(self._keyboard.raw_mode())
        self._turn, self._thought, self._words, self._sign = "", "", "", ""
        self._output = Vt100_Output.from_pty(sys.stdout, os.environ.get("TERM"), ColorDepth.from_env())
        self._output.enable_cpr = False  # a slow terminal's answer to "where is the cursor?" would end up in the line
        self._session: PromptSession[str] = PromptSession(
            self._message,
            history=InMemoryHistory(list(history)),
            completer=_Words(words),
            complete_while_typing=Condition(lambda: self._session.default_buffer.text[:1] in ("!", "/")),
            key_bindings=_keys(),
            input_processors=[_WordWrap()],
            prompt_continuation=" " * len(YOU),
            erase_when_done=True,
            enable_suspend=True,
            style=STYLE,
            input=self._keyboard,
            output=self._output,
        )

    def close(self) -> None:
        """Give the terminal back as it was."""
        self._raw.close()

    async def line(self) -> str | None:
        """Return the next line; None at the end of the input, or if Ctrl-C was typed."""
        try:
            text = await self._session.prompt_async()
        except EOFError:
            return None
        except KeyboardInterrupt:
            self.is_interrupted = True
            return None
        if text.strip():
            self._print([("class:you", YOU), ("", self._wrapped(text, len(YOU)))])
        return text

    async def tell(self, text: str, kind: str = "") -> None:
        """Print lines above the line being typed."""
        await self._above([(f"class:{kind}", self._wrapped(text))])

    async def working(self, text: str) -> None:
        """Show that the soul is thinking, in these words; empty = it is not."""
        self._grow(sign=text)

    async def delta(self, turn: str, text: str) -> None:
        """Show one more piece of a turn's reply."""
        await self._turn_to(turn)
        self._grow(words=self._words + text)

    async def thought(self, turn: str, verb: str, text: str) -> None:
        """Show one more piece of a turn's private thought."""
        await self._turn_to(turn)
        is_another = self._thought[-1:] in _SENTENCE_ENDS and text[:1].isupper()  # a turn may think in several calls
        begun = self._thought or f"({verb or 'thought'}, to itself) "
        self._grow(thought=begun + ("\n" if is_another else "") + text)

    async def void(self) -> None:
        """Take back the private thought that was shown: it does not count."""
        self._grow(thought="")

    async def speech(self, turn: str, body: str, receipts: Sequence[str] = ()) -> None:
        """Print a whole utterance above the line being typed, and before it the thought that led to it."""
        thought = self._thought if turn == self._turn else ""
        if turn == self._turn:
            self._thought, self._words, self._sign = "", "", ""
        thought_first = [("class:thought", self._wrapped(thought) + "\n")] if thought else []
        done = [("class:past", "\n" + self._wrapped("\n".join(receipts)) + "\n")] if receipts else []
        await self._above([*thought_first, ("", self._wrapped(body) + "\n"), *done])

    async def _turn_to(self, turn: str) -> None:
        """Print what an earlier turn thought without saying anything, when another one begins to grow."""
        if turn != self._turn:
            thought, self._turn, self._thought, self._words = self._thought, turn, "", ""
            if thought:
                await self._above([("class:thought", self._wrapped(thought))])

    def _grow(self, *, thought: str | None = None, words: str | None = None, sign: str | None = None) -> None:
        self._thought = self._thought if thought is None else thought
        self._words = self._words if words is None else words
        self._sign = self._sign if sign is None else sign
        self._session.app.invalidate()

    def _message(self) -> FormattedText:
        """Return what stands before the line being typed: the newest lines of what is growing, and the prompt."""
        growing = [("class:thought", self._thought), ("", self._words)]
        if not self._words and not self._thought:
            growing = [("class:working", self._sign)]
        lines = [(kind, line) for kind, text in growing if text for line in self._wrapped(text).split("\n")]
        most = max(1, self._output.get_size().rows - SPARE_ROWS)
        shown: StyleAndTextTuples = [(kind, line + "\n") for kind, line in lines[-most:]]
        return FormattedText([*shown, ("class:you", YOU)])

    async def _above(self, text: StyleAndTextTuples) -> None:
        self._keyboard.is_kept = True
        try:
            await run_in_terminal(lambda: self._print(text))
        finally:
            self._keyboard.is_kept = False

    def _print(self, text: StyleAndTextTuples) -> None:
        # `print_formatted_text` would print later, and let the terminal take the keys typed meanwhile
        self._session.app.print_text(FormattedText([*text, ("", "\n")]))

    def _wrapped(self, text: str, indent: int = 0) -> str:
        """Return a text in lines that fit the terminal, no word broken that fits a line; later ones are indented."""
        width = max(20, self._output.get_size().columns)
        return ("\n" + " " * indent).join(_rows(safe(text).expandtabs(4), width - indent))


class _WordWrap(Processor):
    """Wraps the line being typed between words: it shows blanks up to the edge where the next word would be broken."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the line with these blanks, and how its places are found again."""
        characters = explode_text_fragments(transformation_input.fragments)
        line = "".join([text for _, text, *_ in characters])
        blanks = _blanks(line, max(1, transformation_input.width - len(YOU)))
        shown = list(characters)
        for place, count in reversed(blanks):
            shown[place:place] = [("", " ")] * count

        def to_display(place: int) -> int:
            return place + sum(count for at, count in blanks if at <= place)

        def to_source(place: int) -> int:
            return max((at for at in range(len(line) + 1) if to_display(at) <= place), default=0)

        return Transformation(shown, to_display, to_source)


def _rows(text: str, width: int) -> Iterator[str]:
    """Yield a text in rows of `width` cells at most, no word broken that fits one. Pure."""
    for line in text.split("\n"):
        row, used = "", 0
        for word in re.findall(r"\s*\S+\s*", line):
            cells = get_cwidth(word.rstrip())
            if used and used + cells > width:
                yield row.rstrip()
                row, used = "", 0
            for sign in word if cells > width else [word]:
                if used and used + get_cwidth(sign.rstrip()) > width:
                    yield row.rstrip()
                    row, used = "", 0
                row, used = row + sign, used + get_cwidth(sign)
        yield row.rstrip()


def _blanks(line: str, width: int) -> list[tuple[int, int]]:
    """Return where a line needs how many blanks, so that no word that fits a row of `width` cells is broken. Pure."""
    found, column = [], 0
    for word in re.finditer(r"\S+|\s", line):
        cells = get_cwidth(word[0])
        if column and column + cells > width >= cells and not word[0].isspace():
            found.append((word.start(), width - column))
            column = 0
        column = (column + cells) % width
    return found


class _Keyboard(Vt100Input):
    """The keyboard, which does not echo keys or take Ctrl-D for itself while something is printed above the line."""

    is_kept = False

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Return the mode for the time of printing; elsewhere, as when suspended, that of any program."""
        return nullcontext() if self.is_kept else super().cooked_mode()


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class _Words(Completer):
    """Completes the word at the start of a line."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002 - prompt_toolkit's signature
        """Yield the words that the line may become."""
        typed = document.text_before_cursor
        if typed[:1] in ("!", "/"):
            for word, meaning in self._words.items():
                if word.startswith(typed):
                    yield Completion(word, start_position=-len(typed), display_meta=meaning)


def history_of(entries: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the lines that a person said, oldest first, each once in a row. Pure."""
    said = [entry["content"] for entry in entries if entry["entry_type"] == "userMessage"]
    return [text for place, text in enumerate(said) if place == 0 or said[place - 1] != text]
