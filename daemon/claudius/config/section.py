"""The base class and the field types shared by every table of config.toml."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Url = Annotated[str, Meta(pattern=r"^(https?://[^\s/].*)?$")]
"""A server's URL; empty = the default one."""
SocketUrl = Annotated[str, Meta(pattern=r"^wss?://[^\s/].*$")]
HOURS = r"^(\d{1,2}:\d{2}-\d{1,2}:\d{2})?$"
"""A span of local hours, as in `21:00-08:00`; empty = none."""
QUIET = "21:00-08:00"


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of config.toml. Each field's description is its documentation."""
