"""Attention in a turn: what the psyche makes of a perception, and what is recalled of the past for it."""

from __future__ import annotations

import logging

from claudius.cognition.temper import temper_of
from claudius.config import Config
from claudius.memory.store import Store
from claudius.perception import Origin
from claudius.psyche import Attention, attend, recollect
from claudius.recollection import Recollection
from claudius.soul import SoulText
from claudius.substrate import FAULTS

log = logging.getLogger("claudius.psyche")


async def attend_to(
    recollection: Recollection, soul: SoulText, config: Config, store: Store, *, has_process: bool = False
) -> Attention:
    """Return what a perception is to the soul; with the psyche off, or at fault, everything owed is thought about.

    `has_process`: a process of its own runs here, which hears what is owed however trivial it is.
    """
    perception = recollection.perception
    owes = any(one.owes for one in recollection.perceptions)
    plain = Attention(outcome="think" if owes or perception.origin is Origin.INTERNAL else "ignore", speaks=owes)
    if not config.psyche.enabled or recollection.psyche is None:
        return plain
    try:
        temper = temper_of(soul, config, has_process=has_process)
        attention = attend(recollection, perception, temper)
        if attention.wanted:
            found = await store.remember(perception, attention.wanted)
            attention = recollect(attention, recollection, found, temper)
    except FAULTS:
        log.exception("the psyche is at fault", extra={"turn": recollection.turn})
        return plain
    return attention
