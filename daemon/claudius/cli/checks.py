"""The result type of the checks in `claudius doctor` and `claudius onboard`."""

from __future__ import annotations

from msgspec import Struct


class Check(Struct, frozen=True):
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
