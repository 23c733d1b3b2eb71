"""The plan of a turn: which steps are asked, and where the history begins."""

from typing import Any

import pytest
from msgspec.structs import replace

from claudius.cognition.history import shown_record
from claudius.cognition.plan import EngineSettings, compact, plan, show
from claudius.cognition.processes import Process, process
from claudius.perception import Origin
from claudius.recollection import PastTurn, UserModel
from lab.sample import PERSON, check, message, model, past, perception, person, recollection, said, shown, thought

MAIN = process("main_process")
SETTINGS = EngineSettings()


@pytest.mark.parametrize(("turns", "asked"), [(0, False), (1, False), (2, True), (3, False), (5, True)])
def test_soul_state_is_checked_every_third_turn(turns: int, asked: bool) -> None:  # noqa: FBT001 - pytest's parameters
    """The n-th turn of a conversation checks the soul's state if n mod 3 = 0."""
    found = plan(MAIN, recollection(turns=turns), SETTINGS)

    assert ("soul_state_check" in found.asked, "soul_state_update" in found.asked) == (asked, asked)


def test_interval_zero_never_checks_the_soul_state() -> None:
    """An interval of 0 leaves the check to the idle job."""
    found = plan(MAIN, recollection(turns=2), replace(SETTINGS, soul_state_interval=0))

    assert "soul_state_check" not in found.asked


def test_a_process_s_own_interval_comes_before_the_setting() -> None:
    """A process may check the state more often than the settings say."""
    found = plan(replace(MAIN, intervals={"soul_state_check": 1}), recollection(turns=0), SETTINGS)

    assert "soul_state_check" in found.asked


def test_an_owner_s_process_that_speaks_is_asked_what_it_does() -> None:
    """Whatever steps it lists: where a person is answered, appraisal and acts stand before the words."""
    own = Process(name="own", steps=("external_dialogue",))

    asked = plan(own, recollection(speaker=person()), SETTINGS).asked

    assert asked == ("appraisal", "acts", "external_dialogue")


def test_a_first_turn_asks_everything_but_the_state() -> None:
    """It asks for monologue, appraisal, acts, dialogue, check, update and note, in the order of STEPS.

    The last two wait for the check.
    """
    found = plan(MAIN, recollection(turns=0, past=(), speaker=person(turns_here=0)), SETTINGS)

    assert found.asked == (
        "internal_monologue", "appraisal", "acts", "external_dialogue", "user_model_check", "user_model_update",
        "model_change_note",
    )  # fmt: skip
    assert found.conditional == {"user_model_update": "user_model_check", "model_change_note": "user_model_check"}


def test_a_process_without_the_check_asks_nothing_of_the_model() -> None:
    """The check is the gate: if a process does not list it, its update is not asked for either."""
    talk = replace(MAIN, steps=("internal_monologue", "external_dialogue", "user_model_update"))

    assert plan(talk, recollection(), SETTINGS).asked == (
        "internal_monologue",
        "appraisal",
        "acts",
        "external_dialogue",
    )


def test_a_process_with_the_check_alone_asks_the_check_alone() -> None:
    """A process may judge without writing."""
    talk = replace(MAIN, steps=("external_dialogue", "user_model_check"))

    assert plan(talk, recollection(), SETTINGS).asked == ("appraisal", "acts", "external_dialogue", "user_model_check")


@pytest.mark.parametrize(
    "changes",
    [{"speaker": None, "perceptions": (perception(origin=Origin.INTERNAL),)}, {"speaker": person(is_bot=True)}],
    ids=["a job", "a bot"],
)
def test_only_humans_have_a_user_model(changes: dict[str, object]) -> None:
    """K: jobs have no user model, and bots are peers of the ledger."""
    found = plan(MAIN, recollection(**changes), SETTINGS)

    assert found.shown == ()
    assert not any(name.startswith("user_model") for name in found.asked)


def test_a_turn_that_owes_nothing_is_asked_no_dialogue() -> None:
    """If no reply is owed, nothing is said."""
    found = plan(MAIN, recollection(perceptions=(perception(owes=False),)), SETTINGS)

    assert "external_dialogue" not in found.asked
    assert not found.owes


def test_others_who_spoke_since_the_last_reply_pass_the_gate_too() -> None:
    """At most two more people heard since the soul's last reply are shown, after the speaker."""
    ana = person(model(1, person="terminal:local:ana"), person="terminal:local:ana", name="Ana", turns_here=0)

    found = plan(MAIN, recollection(others=(ana,), speaker=person(model(1), turns_here=0)), SETTINGS)

    assert [one.person for one in found.shown] == ["terminal:local:tom", "terminal:local:ana"]


def test_a_history_within_its_budget_stays_whole() -> None:
    """Nothing leaves before the budget is exceeded."""
    history = tuple(past(n) for n in range(1, 30))

    assert compact(history, SETTINGS) == 1


def test_past_its_budget_the_oldest_turns_leave_at_once() -> None:
    """One large step down to a fifth of the budget keeps the prefix stable for many turns."""
    history = tuple(past(n, message("x" * 400), said("y" * 400)) for n in range(1, 101))
    settings = replace(SETTINGS, budget_tokens=10_000)

    first = compact(history, settings)
    again = compact(history[first - 1 :], settings)

    assert 88 < first < 95, "2,000 tokens stay"
    assert again == first


def test_the_newest_entries_always_stay() -> None:
    """The newest `window` messages, thoughts and replies never leave, however large; `acts: none` crowds none out."""
    history = tuple(past(n, message("x" * 9000), thought(), check(result=False), said("y")) for n in range(1, 21))

    assert compact(history, replace(SETTINGS, budget_tokens=1000, window=20)) == 14


def test_the_plan_says_why_a_model_was_shown() -> None:
    """`claudius why` reads the rule that decided."""
    history = (past(1, message(), said(), check(result=True), shown=(shown(1),)),)

    found = plan(MAIN, recollection(speaker=person(model(1)), past=history), SETTINGS)

    assert found.reasons["user_model"] == "the soul noticed something"


INTERVAL = 5


def turns(first: int, last: int, *entries_of_last: object) -> tuple[PastTurn, ...]:
    """Return ordinary turns; the last one may end in further entries."""
    made = [past(n) for n in range(first, last)]
    return (*made, past(last, message(), said(), *entries_of_last))  # type: ignore[arg-type]  # entries by the caller's word


def test_the_first_turn_always_shows() -> None:
    """F: a person's first turn in a conversation shows their model, including version 0."""
    found = show(person(model(0), turns_here=0), (), interval=INTERVAL)

    assert [(one.version, one.pointer) for one in found.shown] == [(0, False)]
    assert found.reason == "first turn"


def test_a_true_check_shows_again() -> None:
    """T: the soul noticed something, so the next turn shows the model."""
    history = (past(1, shown=(shown(1),)), past(2, message(), said(), check(result=True)))

    found = show(person(model(1)), history, interval=INTERVAL)

    assert found.shown
    assert found.reason == "the soul noticed something"


@pytest.mark.parametrize("result", [{"result": False}, {"result": True, "who": "terminal:local:ana"}])
def test_a_false_check_or_anothers_shows_nothing(result: dict[str, Any]) -> None:
    """If nothing was noticed of this person, changed, lost or due, a second copy would be redundant."""
    history = (past(1, message(), said(), check(**result), shown=(shown(1),)),)

    assert show(person(model(1)), history, interval=INTERVAL).shown == ()


def test_a_newer_version_shows() -> None:
    """V: a change made here, elsewhere or by hand is shown."""
    found = show(person(model(2)), (past(1, shown=(shown(1),)),), interval=INTERVAL)

    assert found.shown[0].version == 2
    assert found.reason == "it changed"


def test_a_block_that_left_the_history_is_shown_again() -> None:
    """R: a compacted or expired block is no longer in the history, so the soul would forget whom it talks to."""
    found = show(person(model(1)), turns(7, 8), interval=INTERVAL)

    assert found.reason == "it left the history"


@pytest.mark.parametrize(("turns_since", "pointed"), [(3, False), (4, True), (9, True)])
def test_the_interval_points_at_the_block_above(turns_since: int, pointed: bool) -> None:  # noqa: FBT001 - pytest's parameters
    """I: every fifth turn of a person points the soul to the model above, without a second copy."""
    history = (past(1, shown=(shown(1),)), *(past(n) for n in range(2, 2 + turns_since)))

    found = show(person(model(1)), history, interval=INTERVAL)

    assert [one.pointer for one in found.shown] == ([True] if pointed else [])


def test_a_pointer_starts_the_interval_anew() -> None:
    """I counts from the last time that the model was shown or pointed at."""
    pointer = shown(1, pointer=True, text="")
    history = (past(1, shown=(shown(1),)), *(past(n) for n in range(2, 6)), past(6, shown=(pointer,)), past(7))

    assert show(person(model(1)), history, interval=INTERVAL).shown == ()


def test_interval_zero_never_points() -> None:
    """An interval of 0 switches the rule off."""
    history = (past(1, shown=(shown(1),)), *(past(n) for n in range(2, 60)))

    assert show(person(model(1)), history, interval=0).shown == ()


@pytest.mark.parametrize("fate", ["missing", "refused:shrank"])
def test_two_updates_in_vain_close_the_gate(fate: str) -> None:
    """A missing or refused update is asked for again; after two in a row the next attempt waits for the interval."""
    once = (past(1, message(), said(), check(result=True, update=fate), shown=(shown(1),)),)
    twice = (*once, past(2, message(), said(), check(result=True, update=fate), shown=(shown(1),)))

    assert show(person(model(1)), once, interval=INTERVAL).shown
    assert show(person(model(1)), twice, interval=INTERVAL).shown == ()


def test_other_audiences_are_shown_beside_the_writable_one() -> None:
    """Every admitted model is shown, at most two besides the writable one, and only that one may be written."""
    other = [UserModel(person=PERSON, audience=f"shared:slack:T1:C{n}", version=1, markdown="x" * 9000) for n in "123"]

    found = show(person(model(1), *other, turns_here=0), (), interval=INTERVAL)

    assert [one.writable for one in found.shown] == [True, False, False]
    assert len(str(shown_record(found.shown[1])["text"])) == 1600
