"""The voices of a scene: a scripted one, and one that repeats a recorded run; and the purse that pays for calls."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from string import Template

from claudius.cognition.reply.tags import STEPS
from claudius.errors import SpendLimit
from claudius.eval.scenes import SceneStep, several
from claudius.provider import CHARS_PER_TOKEN, Delta, Done, Event, Provider, Request, Usage, Wrapped
from claudius.providers.scripted import Line

LINES = (
    "That holds, as far as I can see.",
    "I would measure it once more before I cut.",
    "Start with the part that carries the load.",
    "I do not know. A look at the drawing would settle it.",
    "Then it is two easy problems, and the first one is nearly done.",
)
"""What the scripted voice says where the scene gives it no answer; the seed chooses."""
DEAREST_IN, DEAREST_OUT = 15e-6, 75e-6
"""Dollars a token that are assumed where no price is known, so that a cap is kept all the same."""
_ORDER = "## This Turn\n"
_MARKER = re.compile(r"<data-[0-9a-f]{32}>")


class CapReached(SpendLimit):
    """The next call could pass the cap of this evaluation."""


Price = Callable[[Usage], float]


def dearest(usage: Usage) -> float:
    """Return the most that these tokens cost anywhere, in dollars. Pure."""
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return read * DEAREST_IN + usage.output_tokens * DEAREST_OUT


@dataclass(slots=True)
class Purse:
    """What may be spent in all, and what was; no call is made that could pass the cap."""

    cap_usd: float
    spent_usd: float = 0.0
    calls: int = 0
    is_empty: bool = False

    def pay_for(self, request: Request, price: Price) -> None:
        """Check that the cap holds even if the reply is as long as it may be. Raises: CapReached."""
        chars = len(request.system) + len(request.tail) + sum(len(one.content) for one in request.history)
        most = price(Usage(input_tokens=chars * 2 // CHARS_PER_TOKEN, output_tokens=request.max_tokens))
        if self.cap_usd <= 0 or self.spent_usd + most > self.cap_usd:
            self.is_empty = True
            raise CapReached
        self.calls += 1


class Metered(Wrapped):
    """A voice that records what it is asked and says, and pays for each call where `purse` is given."""

    def __init__(self, voice: Provider, purse: Purse | None = None, price: Price = dearest) -> None:
        super().__init__(voice)
        self._purse, self._price = purse, price
        self.requests: list[Request] = []
        self.replies: list[str] = []
        self.usage = Usage()
        self.first_word_ms: list[float] = []

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. Raises: CapReached, ProviderError."""
        if self._purse:
            self._purse.pay_for(request, self._price)
        self.requests.append(request)
        begun, is_waiting = time.monotonic(), True
        async for event in self.inner.complete(request):
            if is_waiting and isinstance(event, Delta):
                self.first_word_ms.append((time.monotonic() - begun) * 1000)
                is_waiting = False
            if isinstance(event, Done):
                self.replies.append(event.text)
                self.usage += event.usage
                if self._purse:
                    known = event.usage.cost_usd
                    self._purse.spent_usd += self._price(event.usage) if known is None else known
            yield event

    async def aclose(self) -> None:
        """Leave the voice open: it outlives the scene."""


def asked(request: Request) -> list[str]:
    """Return the tags that a request asks for, in order; none for a request that is no part of a turn. Pure."""
    if request.purpose not in ("turn", "repair"):
        return []
    named = re.findall(r"\w+", request.tail.rpartition(_ORDER)[2])
    return list(dict.fromkeys(tag for tag in named if tag in STEPS))


class Playing:
    """The scripted voice: it answers each step as the scene says, else with a line that the seed chooses."""

    def __init__(self, seed: str) -> None:
        """`seed` names the run and the scene."""
        self._chance = Random(seed)  # noqa: S311 - no secret
        self._step, self._said = SceneStep(), 0

    def begin(self, step: SceneStep) -> None:
        """Answer this step from now on."""
        self._step, self._said = step, 0

    def __call__(self, request: Request) -> Line:
        """Answer one request."""
        step, number = self._step, self._said
        self._said += 1
        if step.writes:
            return _line(Template(_nth(several(step.writes), number)).safe_substitute(_shown(request)))
        line = _nth(several(step.answer), number) if step.answer else self._chance.choice(LINES)
        given = {
            "internal_monologue": step.thinks or "They spoke, and I have an answer to that.",
            "appraisal": step.feels or "nothing",
            "acts": step.does or "none",
            "external_dialogue": line,
            "user_model_check": "true" if step.learns else "false",
            "user_model_update": step.learns,
            "model_change_note": "They told me of themselves." if step.learns else "",
        }
        wanted = asked(request)
        if not wanted:
            return _line("They talked, and nothing was left open.")
        said = [f"<{tag}>{given.get(tag, 'false')}</{tag}>" for tag in wanted if given.get(tag, "false")]
        return _line("\n".join(said))


def _nth(texts: Sequence[str], number: int) -> str:
    return texts[min(number, len(texts) - 1)]


def _line(text: str) -> Line:
    return Line(deltas=(text,) if text else ())


def _shown(request: Request) -> Mapping[str, str]:
    """Return what a hostile answer may repeat of its own request: `$system`, `$marker`, `$tail`, `$history`."""
    marker = _MARKER.search(request.tail)
    ways = request.system.rpartition("## How to Answer\n")[2]
    return {
        "system": ways,
        "marker": marker[0] if marker else "",
        "tail": request.tail,
        "history": "\n".join(one.content for one in request.history),
    }


class Repeating:
    """The voice of a recorded run: it says again what was said there, in its order."""

    def __init__(self, replies: Iterable[str]) -> None:
        self._left = iter(replies)

    def begin(self, step: SceneStep) -> None:
        """A recorded run knows its own order."""

    def __call__(self, request: Request) -> Line:  # noqa: ARG002 - it was answered already
        """Say the next one; nothing after the last."""
        return _line(next(self._left, ""))
