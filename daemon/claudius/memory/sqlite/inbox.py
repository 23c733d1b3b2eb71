"""The one way into the inbox."""

from __future__ import annotations

from claudius.memory.sqlite.queries import Database
from claudius.memory.sqlite.rows import perception_json
from claudius.memory.store import turn_of
from claudius.perception import Perception


def keep(db: Database, perception: Perception, at: str, *, said: bool = False) -> bool:
    """Keep a perception for its lane; False where it was kept before.

    `said`: a person said it, so that it is owed an answer where everything said is.
    """
    return bool(
        db.change(
            "accept",
            key=perception.key,
            conversation=perception.conversation,
            position=perception.position,
            kind=perception.kind,
            owes=perception.owes,
            said=said,
            person=perception.person,
            payload=perception_json(perception),
            now=at,
            turn=turn_of(perception.key),
        )
    )
