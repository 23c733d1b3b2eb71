"""What a day may cost, and what is given up first as the cap comes near.

Source: the design, section 7: whispers first, then the cortex, then model updates, then a polite refusal.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum


class Stage(StrEnum):
    """How near the day's cap is."""

    OPEN = "open"
    WHISPERS_OFF = "whispers_off"
    CORTEX_OFF = "cortex_off"
    UPDATES_OFF = "updates_off"
    REFUSING = "refusing"


_FROM = ((1.0, Stage.REFUSING), (0.95, Stage.UPDATES_OFF), (0.9, Stage.CORTEX_OFF), (0.8, Stage.WHISPERS_OFF))


def stage(limit_usd: float, spent_usd: float) -> Stage:
    """Return the stage that spending has reached; a limit of 0 is no limit. Pure."""
    if limit_usd <= 0:
        return Stage.OPEN
    share = spent_usd / limit_usd
    return next((found for least, found in _FROM if share >= least), Stage.OPEN)


def day_start(now: datetime) -> datetime:
    """Return the beginning of the UTC day. Pure."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
