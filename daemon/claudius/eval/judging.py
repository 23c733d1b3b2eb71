"""Judges: another model is asked three times for one word of a closed list, once its own agreement is measured.

A judge sees the said lines and the question, both as fenced data, and never the private thought unless a rubric asks.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from string import Template

from msgspec import Struct, convert

from claudius.decoding import ready
from claudius.errors import ProviderError
from claudius.eval.checks import Result
from claudius.eval.scenes import Rubric
from claudius.eval.stage import Played, SceneEvents
from claudius.eval.voices import Metered
from claudius.prompt import clear_nonce, fence, nested_line
from claudius.provider import Done, Request

TIMES = 3
"""How often each question is asked, its options in another order each time."""
TRUSTED = 0.6
"""Cohen's kappa below which a score is printed as "not judged"."""
ANSWER_TOKENS = 64
NONE = ""
_WORDS = re.compile(r"[\w-]+")


class Labelled(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One example with its right answer."""

    ask: str
    options: tuple[str, ...]
    heard: str
    said: str
    label: str


def labelled(directory: Path) -> list[Labelled]:
    """Read the examples that every judge is measured on. Raises: OSError, msgspec.ValidationError."""
    return convert(tomllib.loads((directory / "pairs.toml").read_text("utf-8"))["pair"], ready(list[Labelled]))


def kappa(given: Sequence[str], right: Sequence[str]) -> float:
    """Return Cohen's kappa of two lists of words: 1 = they agree, 0 = no more than by chance. Pure."""
    if not right:
        return 0.0
    agreed = sum(one == other for one, other in zip(given, right, strict=True)) / len(right)
    mine, theirs = Counter(given), Counter(right)
    by_chance = sum(mine[word] * theirs[word] for word in theirs) / len(right) ** 2
    return round((agreed - by_chance) / (1 - by_chance), 4) if by_chance < 1 else 0.0


class Judge:
    """A model that judges."""

    def __init__(
        self, voice: Metered, instruction: str, pairs: Sequence[Labelled], seed: int, nonce: Callable[[], str]
    ) -> None:
        """Ask `voice` with `instruction`, a template for `$options`; measure it on `pairs`."""
        self._voice, self._instruction, self._pairs, self._nonce = voice, Template(instruction), pairs, nonce
        self._chance = Random(f"{seed} judge")  # noqa: S311 - no secret
        self.name = f"{voice.name}/{voice.model}"
        self.kappa: float | None = None

    async def measure(self) -> float:
        """Return how far the judge agrees with the labelled examples: on the question that it answers worst.

        Each question is judged by itself, because its options alone tell the questions apart.
        """
        found: dict[str, list[tuple[str, str]]] = {}
        for one in self._pairs:
            word = await self._asked(one.ask, one.options, [{"person": one.heard}, {"soul": one.said}])
            found.setdefault(one.ask, []).append((word, one.label))
        self.kappa = min((kappa(*zip(*words, strict=True)) for words in found.values()), default=0.0)
        return self.kappa

    async def of(self, played: Played) -> list[Result]:
        """Return the result of each judged check of a scene."""
        asked = [*enumerate(zip(played.scene.steps, played.steps, strict=True), 1), (0, (played.scene, played.whole))]
        return [await self._judged(check.judge, seen, number) for number, (check, seen) in asked if check.judge]

    async def _judged(self, rubric: Rubric, seen: SceneEvents, number: int) -> Result:
        lines = list(_lines(seen))
        if rubric.shows_thought:
            lines += [{"thought": one} for one in seen.thoughts[-1:]]
        words = [await self._asked(rubric.ask, rubric.options, lines, turn) for turn in range(TIMES)]
        return self._result("judge", rubric.options, words, number)

    async def preferred(self, ask: str, played: Played, rival: Played) -> Result:
        """Return which of two souls a judge prefers, blind: 1 = the one that was played, 0 = its rival."""
        words = []
        pair = [("ours", list(_lines(played.whole))), ("theirs", list(_lines(rival.whole)))]
        self._chance.shuffle(pair)
        for _ in range(TIMES):
            pair.reverse()  # both orders occur, so a judge who only likes the first one disagrees with itself
            shown = [{name: lines} for name, (_, lines) in zip(("A", "B"), pair, strict=True)]
            word = await self._asked(ask, ("A", "B"), shown)
            words.append(pair[0][0] if word == "A" else pair[1][0] if word == "B" else NONE)
        return self._result("prefer", ("ours", "theirs"), words, 0)

    def _result(self, check: str, options: Sequence[str], words: Sequence[str], number: int) -> Result:
        if self.kappa is None or self.kappa < TRUSTED:
            return Result(step=number, check=check, ok=True, detail="not judged")
        if len(set(words)) > 1 or NONE in words:
            return Result(
                step=number, check=check, ok=True, detail=f"the judge disagrees with itself: {', '.join(words)}"
            )
        score = 1 - options.index(words[0]) / max(len(options) - 1, 1)
        return Result(step=number, check=check, ok=score >= 0.5, detail=words[0], score=score)

    async def _asked(self, ask: str, options: Sequence[str], lines: Sequence[object], turn: int = 0) -> str:
        """Return one word of the options; empty if the judge gave none, or no answer at all.

        Each `turn` names the options in another order.
        """
        begin = turn % len(options)
        order = [*options[begin:], *options[:begin]]
        question, shown = nested_line({"kind": "question", "text": ask}), nested_line({"kind": "lines", "lines": lines})
        nonce = clear_nonce(self._nonce(), (question, shown))
        request = Request(
            system=self._instruction.substitute(options=", ".join(order)),
            history=(),
            tail=f"{fence(question, nonce)}\n{fence(shown, nonce)}",
            max_tokens=ANSWER_TOKENS,
            purpose="judge",
            temperature=0.0,
            keep_session=False,
        )
        text = ""
        try:
            async for event in self._voice.complete(request):
                if isinstance(event, Done):
                    text = event.text
        except ProviderError:
            return NONE
        found = {word.casefold() for word in _WORDS.findall(text)}
        named = [one for one in options if one.casefold() in found]
        return named[0] if len(named) == 1 else NONE


def _lines(seen: SceneEvents) -> Iterator[dict[str, str]]:
    """Yield what a judge may see: what people said, and what the soul said."""
    if seen.asked:
        yield {"person": seen.asked}
    else:
        yield from ({"person": one.text} for one in seen.told)
    yield from ({"soul": one.text} for one in seen.posts)
