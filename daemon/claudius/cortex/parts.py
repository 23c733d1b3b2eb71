"""What waits, split by audience: where code points someone out first, then the fullest, each for one cycle."""

from __future__ import annotations

from collections.abc import Sequence

from claudius.cortex.models import Part, State, Ties
from claudius.cortex.observe import fullest

PARTS = 3
"""Audiences that one pass takes up."""


async def parts(ties: Ties, state: State, fired: Sequence[str]) -> list[Part]:
    """Return the parts of a pass, events not yet taken; one where the owner asked for it."""
    now = ties.clock()
    overdue = [one for one in state.promises if one.overdue_at < now] if "promise_timeout" in fired else []
    pointed = [*(one.audience for one in overdue), *state.farming.values(), *state.new_peers.values()]
    found = []
    for audience in fullest(state.events, 1 if "manual" in fired else PARTS, pointed):
        flags: dict[str, tuple[str, ...]] = {}
        mine = tuple(one for one in overdue if one.audience == audience)
        for promise in mine:
            said = f"promise overdue since {promise.overdue_at.isoformat(timespec='minutes')}: {promise.what}"
            flags[promise.peer_id] = (*flags.get(promise.peer_id, ()), said)
        for name, peers in (("farming pattern", state.farming), ("first contact", state.new_peers)):
            for peer in (peer for peer, where in peers.items() if where == audience):
                flags[peer] = (*flags.get(peer, ()), name)
        found.append(Part(audience=audience, flags=flags, overdue=mine))
    return found or (await _newest(ties) if "manual" in fired else [])


async def _newest(ties: Ties) -> list[Part]:
    """Point at whom the soul dealt with last: the owner asks although nothing waits."""
    newest = await ties.store.newest_interactions(ties.config().cortex.context_window)
    if not newest:
        return []
    audience = newest[0].audience
    flags: dict[str, tuple[str, ...]] = {one.peer_id: () for one in newest if one.audience == audience}
    return [Part(audience=audience, flags=flags)]
