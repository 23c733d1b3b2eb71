"""The types of a scheduled job: its timing, its work, and the tools that the work is given."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct

from claudius.cognition.mind import Mind
from claudius.cognition.timing import Timing
from claudius.home import Home

if TYPE_CHECKING:
    from claudius.runtime.daimons import Daimons


class Tools(Struct, frozen=True, kw_only=True):
    """What a job's work is given."""

    mind: Mind
    home: Home
    now: datetime
    zone: tzinfo
    wake: Callable[[str], None]
    """Has a conversation check for what waits."""
    daimons: Callable[[], Daimons]
    """Returns what asks daimons, loading it on first use."""
    is_quiet: bool
    """Whether these are the quiet hours, in which nobody is to be disturbed."""


A_DAY_OF_REST = 2
"""Model calls that the soul may make in 24 hours in which nobody speaks."""


def calls_left(tools: Tools) -> int:
    """Return how many model calls a job may make now: as many as it likes, unless it is a day of rest.

    Raises: StoreError.
    """
    made = tools.mind.store.turns.calls_unasked(tools.now - timedelta(days=1))
    return sys.maxsize if made is None else max(0, A_DAY_OF_REST - made)


Work = Callable[[Tools], Awaitable[str]]
"""Does a job's work if its gate is open; returns the result in a few words."""


class Job(Struct, frozen=True):
    """One job: its name, its timing, and its work."""

    name: str
    timing: Timing
    work: Work
