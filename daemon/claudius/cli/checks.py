"""One finding of `claudius doctor` or `claudius onboard`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One finding."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
