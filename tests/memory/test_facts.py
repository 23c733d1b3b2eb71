"""The importance of what is said."""

from __future__ import annotations

import pytest

from claudius.psyche.context import importance


def test_m9_importance_is_what_the_contract_adds_up() -> None:
    """M9: importance grows with the strongest axis, danger, feeling, novelty and the hottest subject, within [0, 1]."""
    quiet = importance((0.0,) * 5, critical=False, moved=False, novelty=0.0, heat=0.0)
    loud = importance((-1.0, 0, 0, 0, 0), critical=True, moved=True, novelty=0.8, heat=1.0)

    assert quiet == pytest.approx(0.10)
    assert loud == 1.0
