"""The gate that decides which user models a prompt shows: one test for each row of its truth table."""

from __future__ import annotations

import pytest

from claudius.cognition.history import shown_record
from claudius.cognition.plan.shown_models import show
from claudius.recollection import PastTurn, UserModel
from lab.sample import PERSON, check, message, model, past, person, said, shown

INTERVAL = 5


def turns(first: int, last: int, *entries_of_last: object) -> tuple[PastTurn, ...]:
    """Return ordinary turns; the last one may end in further entries."""
    made = [past(n) for n in range(first, last)]
    return (*made, past(last, message(), said(), *entries_of_last))  # type: ignore[arg-type]  # entries by the caller's word


def test_the_first_turn_always_shows() -> None:
    """F: a person's first turn in a conversation shows their model, version 0 included."""
    found = show(person(model(0), turns_here=0), (), interval=INTERVAL)

    assert [(one.version, one.pointer) for one in found.shown] == [(0, False)]
    assert found.reason == "first turn"


def test_a_true_check_shows_again() -> None:
    """T: the soul noticed something, so the next turn shows the model."""
    history = (past(1, shown=(shown(1),)), past(2, message(), said(), check(result=True)))

    found = show(person(model(1)), history, interval=INTERVAL)

    assert found.shown
    assert found.reason == "the soul noticed something"


def test_a_false_check_shows_nothing() -> None:
    """With nothing noticed, changed, lost or due, a second copy would be redundant."""
    history = (past(1, message(), said(), check(result=False), shown=(shown(1),)),)

    assert show(person(model(1)), history, interval=INTERVAL).shown == ()


def test_anothers_check_opens_nothing() -> None:
    """T speaks of the person it was about, never of another one."""
    history = (past(1, message(), said(), check(result=True, who="terminal:local:ana"), shown=(shown(1),)),)

    assert show(person(model(1)), history, interval=INTERVAL).shown == ()


def test_a_newer_version_shows() -> None:
    """V: what changed here, elsewhere or by hand is shown."""
    found = show(person(model(2)), (past(1, shown=(shown(1),)),), interval=INTERVAL)

    assert found.shown[0].version == 2
    assert found.reason == "it changed"


def test_a_block_that_left_the_history_is_shown_again() -> None:
    """R: compacted or expired, the block no longer stands above, so the soul would forget whom it talks to."""
    found = show(person(model(1)), turns(7, 8), interval=INTERVAL)

    assert found.reason == "it left the history"


@pytest.mark.parametrize(("turns_since", "pointed"), [(3, False), (4, True), (9, True)])
def test_the_interval_points_at_the_block_above(turns_since: int, pointed: bool) -> None:  # noqa: FBT001 - pytest's parameters
    """I: on every fifth turn of theirs the soul's eye is turned to the model, without a second copy."""
    history = (past(1, shown=(shown(1),)), *(past(n) for n in range(2, 2 + turns_since)))

    found = show(person(model(1)), history, interval=INTERVAL)

    assert [one.pointer for one in found.shown] == ([True] if pointed else [])


def test_a_pointer_starts_the_interval_anew() -> None:
    """I counts from the last time the model was shown or pointed at."""
    pointer = shown(1, pointer=True, text="")
    history = (past(1, shown=(shown(1),)), *(past(n) for n in range(2, 6)), past(6, shown=(pointer,)), past(7))

    assert show(person(model(1)), history, interval=INTERVAL).shown == ()


def test_interval_zero_never_points() -> None:
    """An interval of 0 switches the rule off."""
    history = (past(1, shown=(shown(1),)), *(past(n) for n in range(2, 60)))

    assert show(person(model(1)), history, interval=0).shown == ()


@pytest.mark.parametrize("fate", ["missing", "refused:shrank"])
def test_two_updates_in_vain_close_the_gate(fate: str) -> None:
    """A missing or refused update is asked for again, but after two in a row the next try waits for the interval."""
    once = (past(1, message(), said(), check(result=True, update=fate), shown=(shown(1),)),)
    twice = (*once, past(2, message(), said(), check(result=True, update=fate), shown=(shown(1),)))

    assert show(person(model(1)), once, interval=INTERVAL).shown
    assert show(person(model(1)), twice, interval=INTERVAL).shown == ()


def test_other_audiences_are_shown_beside_the_writable_one() -> None:
    """Every admitted model is shown, at most two beside the writable one, and only that one may be written."""
    other = [UserModel(person=PERSON, audience=f"shared:slack:T1:C{n}", version=1, markdown="x" * 9000) for n in "123"]

    found = show(person(model(1), *other, turns_here=0), (), interval=INTERVAL)

    assert [one.writable for one in found.shown] == [True, False, False]
    assert len(str(shown_record(found.shown[1])["text"])) == 1600
