"""Call observers at ten fixed points of a turn; an observer cannot change what it sees, and its errors are logged.

    session.poll_messages          a lane takes an internal perception
    loop.on_message                a lane takes an external perception
    loop.transform_system_prompt   the system prompt is built
    loop.transform_history         the history is built
    loop.before_llm after_llm      before and after a model call
    loop.transform_response        an utterance is made
    loop.before_send after_send    before and after an utterance is sent to a network
    loop.on_error                  a turn failed

In addition, the ledger, the cortex and the daimons report what they did: `ledger.after_record`, `ledger.after_assess`,
`cortex.after_reflect`, `cortex.after_assess`, `cortex.after_directive`, `cortex.after_consult`, `daimon.after_whisper`,
`daimon.after_speech`.

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
"""Number of turns whose audience is remembered."""

Observer = Callable[[Mapping[str, Any]], object]
"""Takes one read-only mapping. Its return value is ignored; its exceptions are logged and counted."""


class Hooks:
    """The observers of each point, in order of registration."""

    def __init__(self) -> None:
        """Start without observers."""
        self._observers: dict[str, list[Observer]] = {}
        self.failures: dict[str, int] = {}
        """Point → how often an observer there raised."""
        self._audiences: dict[str, str] = {}

    def register(self, point: str, observer: Observer) -> None:
        """Register an observer. Raises: ValueError for an unknown point."""
        if point not in POINTS and point not in TOLD:
            raise ValueError(f"there is no hook {point!r}: one of {', '.join((*POINTS, *TOLD))}")
        self._observers.setdefault(point, []).append(observer)

    def has(self, point: str) -> bool:
        """Return whether a point has observers, so that callers build no data for nobody."""
        return point in self._observers

    def remember(self, turn: str, audience: str) -> None:
        """Remember the audience of a turn until its utterances have been sent."""
        if not self._observers:
            return
        self._audiences[turn] = audience
        if len(self._audiences) > REMEMBERED:
            del self._audiences[next(iter(self._audiences))]

    def audience_of(self, turn: str) -> str:
        """Return the audience of a turn; empty if it was forgotten or dates from before this process."""
        return self._audiences.get(turn, "")

    def emit(self, point: str, seen: Mapping[str, Any]) -> None:
        """Call every observer of a point. Never raises and does not wait."""
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
