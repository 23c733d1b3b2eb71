"""Lessons: what was affirmed in several cycles over a day or more is kept for good, for the second mind alone. Pure.

Source: the cortex design, section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from claudius.peers import Belief, Lesson

MOST_LESSONS = 30
CANDIDATE_FOR = timedelta(days=30)
"""A key that was not affirmed again for so long is no candidate any more."""


def learn(
    every: Sequence[Lesson], affirmed: Sequence[Belief], now: datetime
) -> tuple[tuple[Lesson, ...], tuple[tuple[str, str], ...]]:
    """Return the lessons and candidates that change, and the (key, audience) of those that go. Pure.

    `affirmed`: the beliefs that this cycle formed or affirmed.
    """
    known = {(lesson.key, lesson.audience): lesson for lesson in every}
    changed: dict[tuple[str, str], Lesson] = {}
    for belief in affirmed:
        place = (belief.key, belief.audience)
        before = known.get(place)
        changed[place] = _affirmed(before, belief, now) if before else _candidate(belief, now)
    after = known | changed
    stale = [at for at, one in after.items() if not one.is_learned and now - one.last_at > CANDIDATE_FOR]
    learned = sorted((one for one in after.values() if one.is_learned), key=lambda one: (one.affirmed, one.last_at))
    over = [(one.key, one.audience) for one in learned[: max(0, len(learned) - MOST_LESSONS)]]
    lost = tuple(dict.fromkeys((*stale, *over)))
    return tuple(one for place, one in changed.items() if place not in lost), lost


def _candidate(belief: Belief, now: datetime) -> Lesson:
    return Lesson(
        key=belief.key,
        value=belief.value,
        audience=belief.audience,
        first_at=now,
        last_at=now,
        affirmed=0,
        sources=belief.sources,
        peer_id=belief.peer_id,
    )


def _affirmed(before: Lesson, belief: Belief, now: datetime) -> Lesson:
    return replace(
        before,
        value=belief.value,
        last_at=now,
        affirmed=before.affirmed + 1,
        sources=tuple(sorted({*before.sources, *belief.sources})),
    )
