"""Attention in a turn: what the psyche makes of a perception, and what is recalled of the past for it."""

from __future__ import annotations

import logging
from functools import lru_cache

from claudius.cognition.proactive import PROCESS
from claudius.cognition.processes import sections
from claudius.config import Config
from claudius.memory.store import Store
from claudius.perception import Origin
from claudius.psyche import Attention, Temper, Weighing, attend, recollect
from claudius.psyche.classify import vader
from claudius.psyche.personality import BadPersonality, Fingerprint, Kernel, kernel
from claudius.psyche_types import FAULTS
from claudius.recollection import Recollection
from claudius.soul import SoulFile, SoulText

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


def temper_of(soul: SoulText, config: Config, *, has_process: bool = False) -> Temper:
    """Return what attention needs to know of the soul and its settings.

    `has_process`: a process of its own runs, which no acknowledgement stands in for.
    """
    psyche = config.psyche
    speech = soul.steps["external_dialogue"]
    return Temper(
        kernel=kernel_of(soul),
        soul_name=soul_name(soul.text("soul.md")),
        compound=vader(),
        weighing=Weighing(
            weights=psyche.weights,
            threshold=psyche.threshold,
            window_thread_s=psyche.window_thread_s,
            window_ambient_s=psyche.window_ambient_s,
            window_proactive_s=psyche.window_proactive_s,
        ),
        max_arcs=psyche.max_arcs,
        top_k=psyche.top_k,
        episode_threshold=psyche.episode_threshold,
        acknowledges_by_emoji=psyche.acknowledge == "emoji",
        milestone=sections(soul.files.get(f"processes/{PROCESS}.md")).get("milestone", "") if psyche.proactive else "",
        can_acknowledge=bool(speech.acknowledge) and not has_process,
    )


def kernel_of(soul: SoulText) -> Kernel:
    """Return the traits that soul.md comes to; the default mixture where its head cannot be used."""
    known = soul.derived.get("kernel")
    if known is None:
        known = soul.derived["kernel"] = compiled(soul.files["soul.md"])
    return known if isinstance(known, Kernel) else Kernel()


def compiled(file: SoulFile) -> Kernel:
    """Compile one soul.md; the default mixture where its head cannot be used."""
    try:
        return kernel(Fingerprint.of(file.head), file.text)
    except BadPersonality as error:
        log.warning("soul.md: its head is not in force", extra={"error": str(error)})
        return kernel(Fingerprint(), file.text)


@lru_cache(maxsize=16)
def soul_name(text: str) -> str:
    """Return the soul's first name, in lower case, from the heading of soul.md. Pure."""
    heading = next((line for line in text.splitlines() if line.startswith("# ")), "")
    words = heading.removeprefix("# ").replace(",", " ").split()
    return words[0].lower() if words else ""
