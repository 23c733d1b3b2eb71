"""The importance of what is said."""

import pytest

from claudius.psyche.context import importance
from claudius.psyche.state import importance_of
from claudius.psyche_types import Appraisal


def test_m9_importance_is_what_the_contract_adds_up() -> None:
    """M9: importance grows with danger, feeling, novelty and the hottest subject; then with how it landed."""
    quiet = importance(critical=False, moved=False, novelty=0.0, heat=0.0)
    loud = importance(critical=True, moved=True, novelty=0.8, heat=1.0)

    assert quiet == pytest.approx(0.10)
    assert loud == pytest.approx(0.87)
    assert 0.3 < importance_of([Appraisal(person="p", kind="grief", strength="strong")]) <= 0.5
