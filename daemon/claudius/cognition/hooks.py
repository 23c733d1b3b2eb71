"""The ten points at which others may look on: what they are shown cannot be changed, what they do disturbs nothing.

    session.poll_messages          a lane takes an internal perception
    loop.on_message                a lane takes an external one
    loop.transform_system_prompt   the system part stands
    loop.transform_history         the history stands
    loop.before_llm after_llm      around the model
    loop.transform_response        an utterance is made
    loop.before_send after_send    around what leaves for a network
    loop.on_error                  a turn failed

Beside them the ledger and the cortex tell what they did: `ledger.after_record`, `ledger.after_assess`,
`cortex.after_reflect`, `cortex.after_assess`, `cortex.after_directive`, `cortex.after_consult`; a daimon,
`daimon.after_whisper`, `daimon.after_speech`.

Source: the cortex design, section 2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

log = logging.getLogger("claudius.hooks")

POINTS = (
    "session.poll_messages",
    "loop.on_message",
    "loop.transform_system_prompt",
    "loop.transform_history",
    "loop.before_llm",
    "loop.after_llm",
    "loop.transform_response",
    "loop.before_send",
    "loop.after_send",
    "loop.on_error",
)
TOLD = (
    "ledger.after_record",
    "ledger.after_assess",
    "cortex.after_reflect",
    "cortex.after_assess",
    "cortex.after_directive",
    "cortex.after_consult",
    "daimon.after_whisper",
    "daimon.after_speech",
)

REMEMBERED = 1000
"""Turns whose audience is kept at hand."""

Observer = Callable[[Mapping[str, Any]], object]
"""Takes one read-only mapping. What it returns is ignored; what it raises is logged and counted."""


class Hooks:
    """Who looks on at which point, in the order in which they came."""

    def __init__(self) -> None:
        """Nobody looks on yet."""
        self._observers: dict[str, list[Observer]] = {}
        self.failures: dict[str, int] = {}
        """Point → how often an observer there raised."""
        self._audiences: dict[str, str] = {}

    def register(self, point: str, observer: Observer) -> None:
        """Let an observer look on. Raises: ValueError for a point that is not there."""
        if point not in POINTS and point not in TOLD:
            raise ValueError(f"there is no hook {point!r}: one of {', '.join((*POINTS, *TOLD))}")
        self._observers.setdefault(point, []).append(observer)

    def has(self, point: str) -> bool:
        """Tell whether anybody looks on there, so that nothing is made up for nobody."""
        return point in self._observers

    def remember(self, turn: str, audience: str) -> None:
        """Keep who could see a turn, until what it says has left."""
        if not self._observers:
            return
        self._audiences[turn] = audience
        if len(self._audiences) > REMEMBERED:
            del self._audiences[next(iter(self._audiences))]

    def audience_of(self, turn: str) -> str:
        """Return who could see a turn; empty where that was long ago, or before this process."""
        return self._audiences.get(turn, "")

    def emit(self, point: str, seen: Mapping[str, Any]) -> None:
        """Show every observer what happened. Never raises, waits for nothing."""
        observers = self._observers.get(point)
        if not observers:
            return
        shown = MappingProxyType(dict(seen))
        for observer in observers:
            try:
                observer(shown)
            except Exception:
                self.failures[point] = self.failures.get(point, 0) + 1
                log.exception("an observer failed", extra={"hook": point})
