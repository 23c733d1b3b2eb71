"""The settings of /ensoul."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claudius.config.section import Section


class Ensoul(Section, frozen=True):
    """The soul in Claude Code, and who may bring it into a channel."""

    who: Annotated[
        tuple[str, ...],
        Meta(description="person ids that may say /ensoul on and listen, besides the owners"),
    ] = ()
    remember: Annotated[bool, Meta(description="keep what is asked and answered in ensouled sessions")] = False
    shared: Annotated[
        bool,
        Meta(description="give sessions, too, what was learned in channels that you share with others"),
    ] = False
    default: Annotated[Literal["ask", "always"], Meta(description="always = every session of yours is ensouled")] = (
        "ask"
    )
