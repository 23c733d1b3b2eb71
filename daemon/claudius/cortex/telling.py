"""What the second mind tells its observers once a cycle is written: payloads of these keys and no other."""

from __future__ import annotations

import logging
from typing import Any

from claudius.cortex.models import Ties
from claudius.peers import Assessment, Directive, Recorded, Reflected, Reflection

log = logging.getLogger("claudius.cortex")


def tell(ties: Ties, reflected: Reflected, recorded: Recorded) -> None:
    """Tell what a cycle came to, and have the conversations look that were given a directive."""
    record = reflected.record
    for peer, reason in recorded.failed.items():
        log.error("the assessment of %s in cycle %d is not recorded: %s", peer, record.cycle, reason)
    for one in recorded.assessments:
        ties.emit("cortex.after_assess", after_assess(one, record.cycle))
    for directive in reflected.directives:
        ties.emit("cortex.after_directive", after_directive(directive, record.cycle))
        ties.wake(directive.perception.conversation)
    ties.emit("cortex.after_reflect", after_reflect(record))
    log.info(
        "cycle %d: %s, %.1f s, %d assessed, %d beliefs, %d directives",
        record.cycle,
        record.trigger,
        record.duration_s,
        len(recorded.assessments),
        len(reflected.put),
        len(reflected.directives),
    )


def after_assess(one: Assessment, cycle: int) -> dict[str, Any]:
    """Return the payload of `cortex.after_assess`. Pure."""
    return {
        "peer_id": one.peer_id,
        "trust": one.trust,
        "rationale": one.rationale,
        "info_score": one.info_score,
        "cycle": cycle,
    }


def after_directive(directive: Directive, cycle: int) -> dict[str, Any]:
    """Return the payload of `cortex.after_directive`. Pure."""
    return {
        "cycle": cycle,
        "directive_id": directive.perception.key,
        "peer_id": directive.peer_id,
        "action": directive.action,
        "text": directive.text,
    }


def after_reflect(record: Reflection) -> dict[str, Any]:
    """Return the payload of `cortex.after_reflect`. Pure."""
    return {
        "cycle": record.cycle,
        "trigger": record.trigger,
        "peers_assessed": list(record.peers_assessed),
        "beliefs_added": list(record.beliefs_added),
        "beliefs_reaffirmed": list(record.beliefs_reaffirmed),
        "beliefs_expired": list(record.beliefs_expired),
        "summary": record.summary,
        "elapsed_seconds": record.duration_s,
    }
