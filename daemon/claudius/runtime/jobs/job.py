"""What a job of the clock is, and what its work is done with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct

from claudius.cognition.mind import Mind
from claudius.cognition.timing import Timing
from claudius.home import Home

if TYPE_CHECKING:
    from claudius.runtime.daimons import Daimons


class Tools(Struct, frozen=True, kw_only=True):
    """What a job's work is done with."""

    mind: Mind
    home: Home
    now: datetime
    zone: tzinfo
    wake: Callable[[str], None]
    """Has a conversation look at what waits for it."""
    daimons: Callable[[], Daimons]
    """Loads what asks daimons."""
    is_quiet: bool
    """The hours in which nobody is to be disturbed."""


Work = Callable[[Tools], Awaitable[str]]
"""Does what a ring is for, if its gate is open; returns in a few words what came of it."""


class Job(Struct, frozen=True):
    """One job: its name, when it rings, what it does then."""

    name: str
    timing: Timing
    work: Work
