"""Directives: what the second mind would have the first consider saying. It sends nothing itself. Pure.

Source: the cortex design, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from claudius.cortex.parsing import one_line
from claudius.peers import Directive, Known
from claudius.perception import Kind, Origin, Perception
from claudius.psyche.scope import critical

ACTIONS = ("follow_up", "ask", "remind", "thank", "apologise")
TEXT_CHARS = 400
LAPSES_AFTER = timedelta(hours=6)
A_PEER_EACH = timedelta(days=1)


def directives(
    proposed: Sequence[Mapping[str, Any]],
    peers: Sequence[Known],
    *,
    audience: str,
    cycle: int,
    now: datetime,
    most: int,
) -> tuple[Directive, ...]:
    """Return the directives that may go out: within bounds, about someone known, nothing critical in them. Pure."""
    known = {one.peer.peer_id: one for one in peers}
    found: list[Directive] = []
    for entry in proposed:
        if len(found) == most:
            break
        peer, action, text = (entry.get(name) for name in ("peer_id", "action", "text"))
        said = one_line(text)[:TEXT_CHARS] if isinstance(text, str) else ""
        one = known.get(peer) if isinstance(peer, str) else None
        if one is None or not said or action not in ACTIONS or critical(said) or not one.conversation:
            continue
        was_directed = one.directed_at is not None and now - one.directed_at < A_PEER_EACH
        if was_directed or any(other.peer_id == peer for other in found):
            continue
        found.append(_directive(one, str(action), said, audience, f"cortex:{cycle}:{len(found)}", now))
    return tuple(found)


def _directive(one: Known, action: str, text: str, audience: str, key: str, now: datetime) -> Directive:
    peer = one.peer
    perception = Perception(
        key=key,
        conversation=one.conversation,
        audience=audience,
        person=peer.peer_id,
        name=peer.name,
        text=f"{action} {peer.name}: {text}",
        at=now,
        position=f"{int(now.timestamp()):020d}",
        kind=Kind.DIRECTIVE,
        origin=Origin.INTERNAL,
        owes=False,
        is_bot=peer.is_bot,
        extra={"action": action, "lapses_at": (now + LAPSES_AFTER).isoformat()},
    )
    return Directive(peer_id=peer.peer_id, action=action, text=text, perception=perception)
