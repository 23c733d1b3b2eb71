"""Triggers: when to reflect, by observable facts alone."""

import inspect
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.config.schema import CortexSettings
from claudius.cortex import triggers
from claudius.cortex.models import TRIGGERS, State, Thresholds
from claudius.cortex.triggers import backoff, evaluate, next_look
from reflecting import ANN, NOW, OPS, message, minutes, promise

ALL = Thresholds(enabled=frozenset(TRIGGERS))


def state(**changes: Any) -> State:
    """Return the state of a second mind that woke at noon."""
    made = State(**({"since": NOW} | changes))
    made.watch(made.promises)
    return made


FIRES: list[tuple[str, State, float]] = [
    ("promise_timeout", state(promises=(promise(),)), 301),
    ("farming", state(farming={ANN: OPS}), 1),
    ("interaction_count", state(events=[message(n) for n in range(5)]), 1),
    ("new_peer", state(new_peers={ANN: OPS}), 1),
    ("timer", state(events=[message()]), 30),
]


@pytest.mark.parametrize(("name", "seen", "after"), FIRES, ids=[row[0] for row in FIRES])
def test_fr_cx_02_each_trigger_fires(name: str, seen: State, after: float) -> None:
    """FR-CX-02: each trigger fires on its own fact."""
    assert evaluate(seen, NOW + minutes(after), ALL) == (name,)


@pytest.mark.parametrize(("name", "seen", "after"), FIRES, ids=[row[0] for row in FIRES])
def test_nfr_cx_03_each_trigger_can_be_switched_off(name: str, seen: State, after: float) -> None:
    """FR-CX-02, NFR-CX-03: a trigger that is not listed never fires."""
    without = Thresholds(enabled=frozenset(TRIGGERS) - {name})

    assert evaluate(seen, NOW + minutes(after), without) == ()


def test_fr_cx_02_several_at_once_are_one_pass_named_after_the_first() -> None:
    """FR-CX-02: the order is promise, farming, count, new peer, timer.

    The owner's manual trigger needs none of them.
    """
    everything = state(
        promises=(promise(),), farming={ANN: OPS}, new_peers={ANN: OPS}, events=[message(n) for n in range(5)]
    )

    assert (*evaluate(everything, NOW + minutes(600), ALL), "manual") == TRIGGERS


@pytest.mark.parametrize("after", [0, 29.99])
def test_the_timer_waits_for_its_time(after: float) -> None:
    """FR-CX-02: before its schedule nothing fires."""
    assert evaluate(state(events=[message()]), NOW + minutes(after), ALL) == ()


@pytest.mark.parametrize("after", [30, 60, 6000])
def test_the_activity_gate(after: float) -> None:
    """FR-CX-02, simulation 5: without contact with anybody the timer starts nothing, whatever the soul thought."""
    own = message(direction="", peer="")

    assert evaluate(state(), NOW + minutes(after), ALL) == ()
    assert evaluate(state(events=[own]), NOW + minutes(after), ALL) == ()
    assert next_look(state(events=[own]), NOW + minutes(after), ALL) is None


@pytest.mark.parametrize(("count", "fires"), [(0, False), (4, False), (5, True), (6, True)])
def test_the_count(*, count: int, fires: bool) -> None:
    """FR-CX-02: external messages count, but our own messages and the model's calls do not."""
    noise = [message(n, direction="out") for n in range(9)]

    found = evaluate(state(events=[*noise, *(message(n) for n in range(count))]), NOW, ALL)

    assert bool(found) is fires


def test_after_a_failure_nothing_fires_for_a_while() -> None:
    """After a failure triggers rest for 1, 2, 4 … minutes, at most the schedule."""
    resting = state(events=[message(n) for n in range(5)], retry_at=NOW + minutes(2))

    assert evaluate(resting, NOW + minutes(1), ALL) == ()
    assert evaluate(resting, NOW + minutes(2), ALL) == ("interaction_count",)
    assert [backoff(n, ALL) for n in (1, 2, 3, 9, 900)] == [minutes(n) for n in (1, 2, 4, 30, 30)]


def test_settings_shape_the_triggers() -> None:
    """NFR-CX-03: schedule and threshold work under any of their names, and self-tuned values override them."""
    assert Thresholds.of(CortexSettings()).enabled == {"timer", "interaction_count", "promise_timeout", "farming"}
    assert Thresholds.of(CortexSettings(reflection_interval=7.0)).schedule_minutes == 7
    assert Thresholds.of(CortexSettings(triggers=("interaction_count: 9",))).interaction_threshold == 9
    assert Thresholds.of(CortexSettings(interaction_threshold=2)).interaction_threshold == 2
    assert Thresholds.of(CortexSettings(), {"timer": 12.5, "interaction_count": 6}).schedule_minutes == 12.5


@pytest.mark.parametrize(
    ("written", "is_one"),
    [*((name, True) for name in TRIGGERS), ("interaction_count: 9", True), ("interaction_count=9", True),
     ("timmer", False), ("interaction_count: 0", False), ("", False)],
)  # fmt: skip
def test_an_unknown_trigger_is_refused(written: str, *, is_one: bool) -> None:
    """NFR-CX-03: a misspelt name does not switch anything off silently."""
    with nullcontext() if is_one else pytest.raises(msgspec.ValidationError):
        msgspec.convert({"triggers": [written]}, CortexSettings)


def test_nfr_cx_04_evaluation_knows_neither_database_nor_model() -> None:
    """NFR-CX-01, NFR-CX-04: triggers import nothing that reads, waits or asks."""
    source = inspect.getsource(triggers)

    assert not inspect.iscoroutinefunction(evaluate)
    assert "memory" not in source.partition('"""')[2].partition('"""')[2].partition("def ")[0]
    assert "provider" not in source


@given(
    st.integers(0, 12),
    st.integers(0, 3000),
    st.lists(st.integers(1, 100), max_size=3),
    st.frozensets(st.sampled_from(TRIGGERS)),
)
def test_the_next_look_is_when_something_may_fire(
    events: int, after: int, hours: list[int], enabled: frozenset[str]
) -> None:
    """No timed trigger fires before the announced instant, and it does fire then."""
    seen = state(
        events=[message(n) for n in range(min(events, 4))],
        promises=tuple(promise(overdue_at=NOW + timedelta(hours=h)) for h in hours),
    )
    config, now = Thresholds(enabled=enabled), NOW + minutes(after)
    moment = next_look(seen, now, config)

    if moment is None:
        assert evaluate(seen, now + timedelta(days=3650), config) == ()
    else:
        assert evaluate(seen, moment, config)
        assert evaluate(seen, moment - minutes(1), config) == () or moment <= now
