"""summarise: fold old turns into the summary ahead of need, so that the next turn is quicker."""

from __future__ import annotations

from claudius.cognition.mind import Mind
from claudius.cognition.reflection import Idle, Subprocess
from claudius.cognition.summaries import fold_for_room


async def _fold(idle: Idle, mind: Mind) -> None:
    await fold_for_room(idle.recollection, mind)


summarise = Subprocess(name="summarise", order=0, work=_fold, description="Fold old turns into the summary.")
