"""Check an observer of one's own: every point is told to it once, and none may raise or take long.

def test_my_watcher():
    check_observer(Watcher())
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, get_origin, get_type_hints

from claudius.observed import Observed
from claudius.runtime.observers import POINTS, SLOW_S, unfit

_OF: dict[Any, Any] = {str: "some text", int: 7, float: 1.5, bool: True, datetime: datetime(2026, 1, 1, tzinfo=UTC)}
_MANY: dict[Any, Any] = {tuple: ("one",), list: ["one"]}


def sample(kind: type[Observed]) -> Observed:
    """Return an event of one kind with values of the right types."""
    hints = {name: get_type_hints(kind)[name] for name in kind.__struct_fields__}
    return kind(**{name: _MANY[get_origin(one)] if get_origin(one) else _OF[one] for name, one in hints.items()})


def check_observer(part: object, *, slow_s: float = SLOW_S) -> None:
    """Tell an observer each of its points once. Raises: AssertionError for one that it could be switched off for."""
    problem = unfit(part)
    assert not problem, problem
    for name, kind in POINTS.items():
        if tell := getattr(part, name, None):
            began_s = time.monotonic()
            try:
                tell(sample(kind))
            except Exception as error:
                raise AssertionError(f"{name} raised {error!r}") from error
            assert time.monotonic() - began_s <= slow_s, f"{name} took more than {slow_s:g} s"
