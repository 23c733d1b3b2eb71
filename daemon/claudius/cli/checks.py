"""One finding of `claudius doctor` or `claudius onboard`."""

from __future__ import annotations

from msgspec import Struct


class Check(Struct, frozen=True):
    """One finding."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
