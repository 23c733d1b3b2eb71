"""Reads what a test orders; a slip of the pen is an error, never an order without effect."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def made(kind: type[T], facts: Mapping[str, Any]) -> T:
    """Make a record from plain data. Raises: ValueError: a name or a value does not fit."""
    known = signature(kind).parameters.keys()
    if unknown := sorted(facts.keys() - known):
        raise ValueError(f"unknown field {unknown[0]!r} of {kind.__name__}; there are {', '.join(sorted(known))}")
    return msgspec.convert(facts, kind)
