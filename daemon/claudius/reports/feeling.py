"""State and psyche as `claudius state` and `claudius psyche` print them, in words and in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from claudius.home import Home
from claudius.reports.opened import records


def state(home: Home, *, every_audience: bool = False) -> Mapping[str, Any]:
    """Return the soul's state: per key the newest value, or every audience's."""
    with records(home) as kept:
        return kept.state(every_audience=every_audience)


def psyche(home: Home, now: datetime) -> Mapping[str, Any]:
    """Return the numbers as they are now, each with its words."""
    from claudius.psyche.personality import Kernel, kernel_hash
    from claudius.psyche.showing import shown

    with records(home) as kept:
        found, traits = kept.psyche()
    return shown(found, traits, kernel_hash(Kernel(*traits)) if traits else "", now.timestamp())
