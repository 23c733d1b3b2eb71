"""Observers of the owner's own: classes that are told what the loop and the cortex did, each in its own thread.

They are told after the fact and can change nothing. What one cannot keep up with is dropped and counted; one that
raises or takes too long three times is switched off, and health names it. Source: the doors design, section 2; seed
004, FR-CX-01 and FR-CX-09.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import queue
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from claudius import observed
from claudius.cognition.hooks import Hooks
from claudius.errors import BadConfiguration
from claudius.failure import of_a_part
from claudius.observed import Observed
from claudius.shape import unfit_for

log = logging.getLogger(__name__)

POINTS: Mapping[str, type[Observed]] = {
    "on_message": observed.MessageHeard,
    "before_llm": observed.ModelAsked,
    "after_llm": observed.ModelAnswered,
    "before_send": observed.SendBegins,
    "after_send": observed.Sent,
    "before_tool": observed.ToolBegins,
    "after_tool": observed.ToolEnded,
    "transition": observed.ProcessMoved,
    "cortex_before_reflect": observed.CycleBegins,
    "cortex_after_reflect": observed.CycleEnded,
    "cortex_after_assess": observed.CycleAssessed,
    "cortex_belief_added": observed.BeliefAdded,
    "cortex_belief_expired": observed.BeliefExpired,
}
"""Method of an observer → what it is told."""
WAITING = 1000
"""What waits for one observer at most."""
SLOW_S = 2.0
FAULTS = 3


def unfit(part: object) -> str:
    """Return why something is no observer, in words; empty if it is one. Nothing of it is called. Pure."""
    methods = {name: one for name in POINTS if (one := getattr(part, name, None)) is not None}
    if not methods:
        return f"it has none of {', '.join(POINTS)}"
    for name, one in methods.items():
        if not callable(one) or inspect.iscoroutinefunction(one):
            return f"its {name} is {'`async def`' if callable(one) else 'not a function'}"
        if problem := unfit_for(one, 1):
            return f"its {name} cannot be called as {name}(event): {problem}"
    return ""


class Observer:
    """One observer, its queue and its thread, which begins with the first event."""

    def __init__(self, name: str, part: object, *, slow_s: float = SLOW_S) -> None:
        self.name, self.dropped, self.why_off = name, 0, ""
        self._part, self._slow_s = part, slow_s
        self._queue: queue.Queue[tuple[str, Observed]] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._faults = 0
        self._since_s: float | None = None
        """Since when, by a steady clock, the call that runs has run, or was last found slow."""

    def listen(self, hooks: Hooks) -> None:
        """Have every method told."""
        for name, kind in POINTS.items():
            if hasattr(self._part, name):
                hooks.listen(kind, partial(self.take, name))

    def take(self, name: str, event: Observed) -> None:
        """Queue an event. Never waits."""
        since_s, now_s = self._since_s, time.monotonic()
        if since_s is not None and now_s - since_s > self._slow_s:
            self._since_s = now_s
            self._fault(name, f"took more than {self._slow_s:g} s")
        if self.why_off:
            return
        try:
            self._queue.put_nowait((name, event))
        except queue.Full:
            self.dropped += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"observer {self.name}", daemon=True)
            self._thread.start()

    def drain(self) -> None:
        """Wait until all that is queued was told, for tests."""
        self._queue.join()

    def _run(self) -> None:
        while True:
            name, event = self._queue.get()
            if not self.why_off:
                self._tell(name, event)
            self._queue.task_done()

    def _tell(self, name: str, event: Observed) -> None:
        began_s = self._since_s = time.monotonic()
        try:
            getattr(self._part, name)(event)
        except BaseException as error:  # the owner's own code; a SystemExit of it would end its thread, and say nothing
            log.exception("an observer failed", extra={"hook": name})
            where = traceback.extract_tb(error.__traceback__)[-1]  # its own words may be somebody's message
            self._fault(name, f"raised {type(error).__name__} in {Path(where.filename).name}:{where.lineno}")
        else:
            if self._since_s == began_s and time.monotonic() - began_s > self._slow_s:  # not yet found by `take`
                self._fault(name, f"took more than {self._slow_s:g} s")
        self._since_s = None

    def _fault(self, name: str, what: str) -> None:
        self._faults += 1
        log.warning("an observer %s: %s", what, self.name, extra={"hook": name, "times": self._faults})
        if self._faults >= FAULTS:
            self.why_off = f"is switched off: its {name} {what}, and that was the third fault"
            with suppress(queue.Empty):  # what waits may be somebody's words, which nobody will read any more
                while True:
                    self._queue.get_nowait()
                    self._queue.task_done()


class Observers:
    """The observers that the settings name."""

    def __init__(self, parts: Mapping[str, object], hooks: Hooks, *, slow_s: float = SLOW_S) -> None:
        """Have the parts told what `hooks` report; they are keyed by their import strings."""
        self.each = [Observer(name, part, slow_s=slow_s) for name, part in parts.items()]
        for one in self.each:
            one.listen(hooks)

    def problems(self) -> dict[str, str]:
        """Return what is wrong with each, by name; empty where all is well."""
        dropped = {one.name: f"was too slow for {one.dropped:,} events" for one in self.each if one.dropped}
        return dropped | {one.name: one.why_off for one in self.each if one.why_off}


def observers_of(names: Sequence[str]) -> dict[str, object]:
    """Build the observers that the settings name, by name. Raises: BadConfiguration."""
    made: dict[str, object] = {}
    for name in names:
        module, _, attribute = name.partition(":")
        try:
            made[name] = getattr(importlib.import_module(module), attribute)()
        except Exception as error:
            raise BadConfiguration("config.toml", "observers", f"{name!r}: {of_a_part(error)}", _FIX) from error
        if problem := unfit(made[name]):
            raise BadConfiguration("config.toml", "observers", f"{name!r} is no observer: {problem}", _FIX)
    return made


_FIX = "docs/observers.md shows the shape"
