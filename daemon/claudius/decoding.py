"""Have msgspec work out each type in one thread at a time.

At its first use of a class, msgspec 0.22 works out what its fields are; another thread that meets the class meanwhile
crashes the interpreter. Every type that is decoded or converted passes through here once, under one lock.
"""

from __future__ import annotations

import re
import threading
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")
_ONE_AT_A_TIME = threading.Lock()
_DECODERS: dict[Any, Any] = {}


_SHAPE = re.compile(r"(?:Expected `[^`]*`(?:, got `[^`]*`)?|Object missing required field `[^`]*`)")
_AT = re.compile(r" - at `[^`]*`\Z")


def misshapen(error: msgspec.MsgspecError) -> str:
    """Return what is wrong with a text that does not decode, and where, without any of its values. Pure."""
    shape, at = _SHAPE.match(str(error)), _AT.search(str(error))
    return f"{shape[0] if shape else 'it is not of the form that was asked for'}{at[0] if at else ''}"


def decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]:
    """Return the JSON decoder of a type."""
    if kind not in _DECODERS:
        with _ONE_AT_A_TIME:
            _DECODERS[kind] = msgspec.json.Decoder(kind)
    made: msgspec.json.Decoder[_T] = _DECODERS[kind]
    return made


def ready(kind: type[_T]) -> type[_T]:
    """Return the same type, worked out: for `msgspec.convert`."""
    decoder(kind)
    return kind
