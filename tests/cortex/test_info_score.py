"""The information score: how much is known of a peer, by counting and never by judgement."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.ledger_types import Assessment, Peer
from claudius.memory.ledger import Tally, clamp_trust, compute_info_score, format_peers
from contracts.probes import info_score, tally

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
instants = st.lists(st.integers(0, 900 * 86_400).map(lambda s: START + timedelta(seconds=s)), max_size=60)


def every(step: timedelta, count: int) -> list[datetime]:
    """Return this many instants, one each `step`."""
    return [START + n * step for n in range(count)]


def seeded(seed: int) -> random.Random:
    """Return a random generator with a fixed seed."""
    return random.Random(seed)  # noqa: S311 - chance here is no secret


CLASSES = [
    ((1, 2), (0.0, 0.99), {1}),
    ((3, 5), (0.05, 7.0), {2, 3}),
    ((6, 15), (7.0, 28.0), {4, 5}),
    ((16, 30), (30.0, 91.0), {6, 7}),
    ((31, 50), (30.0, 182.0), {7, 8}),
    ((51, 200), (183.0, 900.0), {9, 10}),
]


@pytest.mark.parametrize(("many", "days", "meant"), CLASSES, ids=str)
def test_fr_cx_04_the_score_lies_in_the_published_table(many: Any, days: Any, meant: set[int]) -> None:
    """FR-CX-04: at least 95 % of 2,000 random histories of a class score as its row says, and all are within one."""
    chance = seeded(7)
    scores = []
    for _ in range(2000):
        count, span = chance.randint(*many), chance.uniform(*days)
        between = [START + chance.random() * span * DAY for _ in range(count - 2)]
        times = [START, *between, START + span * DAY][: max(count, 1)] if count > 1 else [START]
        scores.append(tally(times).info_score(chance.randint(0, count // 5)))

    assert sum(score in meant for score in scores) >= 0.95 * len(scores)
    assert all(min(meant) - 1 <= score <= max(meant) + 1 for score in scores)


ROWS: list[tuple[str, list[datetime], int, int]] = [
    ("nobody", [], 0, 0),
    ("nobody, though assessed", [], 9, 0),
    ("one message", every(DAY, 1), 0, 1),
    ("one message, assessed often", every(DAY, 1), 99, 1),
    ("two in a minute", every(timedelta(seconds=59), 2), 0, 1),
    ("two in a day", every(timedelta(hours=20), 2), 0, 1),
    ("two over a day", every(timedelta(hours=30), 2), 0, 2),
    ("two over half a year", every(180 * DAY, 2), 0, 3),
    ("100 in a day", every(DAY / 101, 100), 0, 3),
    ("400 in a day", every(DAY / 401, 400), 0, 3),
    ("400 in a day, assessed", every(DAY / 401, 400), 20, 3),
    ("one burst of 40", every(timedelta(seconds=60), 40), 0, 1),
    ("one burst of 1000 across a day", every(timedelta(seconds=119), 1000), 0, 1),
    ("monthly, six times", every(30 * DAY, 6), 0, 5),
    ("daily, fifty times", every(DAY, 50), 0, 7),
    ("six over 21 days", every(4.2 * DAY, 6), 5, 5),
    ("six over 15 days", every(3 * DAY, 6), 5, 4),
    ("three in a week", every(3 * DAY, 3), 0, 3),
    ("ten over three weeks", every(2.2 * DAY, 10), 0, 5),
    ("twenty over two months", every(3 * DAY, 20), 0, 6),
    ("twenty-eight over three months", every(3.3 * DAY, 28), 0, 7),
    ("forty over four months", every(3 * DAY, 40), 0, 8),
    ("sixty over half a year", every(3.1 * DAY, 60), 0, 8),
    ("two hundred over two years", every(3.6 * DAY, 200), 0, 10),
    ("a thousand over three years", every(1.1 * DAY, 1000), 0, 10),
    *(
        (f"{count} each {days} d, {assessed} assessed", every(days * DAY, count), assessed, score)
        for days, count, assessed, score in [
            (1, 2, 0, 2),
            (1, 3, 0, 2),
            (1, 5, 0, 3),
            (1, 7, 0, 4),
            (1, 10, 0, 4),
            (1, 14, 0, 5),
            (1, 21, 0, 6),
            (1, 30, 0, 6),
            (7, 2, 0, 3),
            (7, 3, 0, 4),
            (7, 4, 0, 4),
            (7, 8, 0, 5),
            (7, 12, 0, 6),
            (7, 26, 0, 7),
            (7, 52, 0, 9),
            (7, 104, 0, 10),
            (30, 3, 0, 4),
            (30, 12, 0, 6),
            (30, 24, 0, 7),
            (1, 3, 10, 3),
            (1, 10, 10, 5),
            (7, 12, 10, 7),
        ]
    ),
]


@pytest.mark.parametrize(("what", "times", "assessments", "score"), ROWS, ids=[row[0] for row in ROWS])
def test_fr_cx_04_the_score_of_known_histories(what: str, times: list[datetime], assessments: int, score: int) -> None:
    """FR-CX-04: these histories have these scores, in any order of their messages."""
    del what
    stamps = [at.isoformat() for at in times]
    seeded(3).shuffle(stamps)

    assert info_score({"timestamps": stamps, "assessments": assessments}) == score


@given(instants, st.integers(0, 40))
def test_fr_cx_04_the_score_is_bounded_and_of_no_order(times: list[datetime], assessments: int) -> None:
    """FR-CX-04: it is 0 for no one, else 1 to 10, in any order and however often one message is counted."""
    score = tally(times).info_score(assessments)

    assert (score == 0) == (not times)
    assert 0 <= score <= 10
    assert tally([*reversed(times), *times]).info_score(assessments) == score


@given(instants.filter(bool), st.integers(0, 10), st.integers(0, 400 * 86_400))
def test_fr_cx_04_a_later_message_never_lowers_it(times: list[datetime], assessments: int, seconds: int) -> None:
    """FR-CX-04: more evidence never lowers the score."""
    later = max(times) + timedelta(seconds=seconds)

    assert tally([*times, later]).info_score(assessments) >= tally(times).info_score(assessments)


@given(instants)
def test_the_counters_kept_on_write_are_those_of_the_whole_history(times: list[datetime]) -> None:
    """A score never reads the messages again: counting them as they come equals counting them all."""
    counted = Tally()
    for at in sorted(set(times)):
        counted = counted.heard(at)

    assert counted == tally(times)
    assert counted.active_days == len({at.date() for at in times})


def test_the_score_never_exceeds_its_bounds() -> None:
    """Extreme values stay within 0 to 10."""
    assert compute_info_score(10**9, 10**6, 10**5, 10**6) == 10
    assert compute_info_score(0, 10**6, 10**5, 10**6) == 0


ANYTHING = st.one_of(
    st.integers(), st.floats(), st.text(max_size=5), st.none(), st.booleans(), st.sampled_from(["4", "-9", "3.6"])
)


@given(st.none() | st.integers(-10, 10), ANYTHING, st.integers(1, 10))
def test_rule_09_no_step_is_larger_than_its_bound(last: int | None, proposed: Any, limit: int) -> None:
    """Rule 9, FR-CX-04, anti-pattern "raw trust": every written step is within the bound, including the first."""
    found = clamp_trust(last, proposed, limit)

    assert found is None or (abs(found - (last or 0)) <= limit and -10 <= found <= 10)


@pytest.mark.parametrize("number", [1, "2", 2.6, "-3", -10])
def test_rule_09_numbers_in_any_format_are_read(number: Any) -> None:
    """Rule 9: anything that reads as a number is rounded and clamped."""
    assert clamp_trust(0, number, 10) == round(float(number))


@pytest.mark.parametrize("junk", [None, True, False, "high", "", [], {}, float("nan"), float("inf"), "1e999"])
def test_rule_09_a_trust_that_is_not_a_number_is_dropped(junk: Any) -> None:
    """Rule 9: a trust that is not a number records nothing."""
    assert clamp_trust(4, junk) is None


def peer(**changes: Any) -> Peer:
    """Return a peer with some history."""
    values: dict[str, Any] = {
        "peer_id": "slack:T1:U7",
        "name": "Ann",
        "messages": 23,
        "info_score": 6,
        "first_at": START,
        "last_at": START + 30 * DAY,
    }
    return Peer(**(values | changes))


def assessed(trust: int, why: str = "Delivers.") -> Assessment:
    """Return an assessment of the sample peer."""
    at = datetime(2026, 2, 1, tzinfo=UTC)
    return Assessment(peer_id="slack:T1:U7", info_score=6, trust=trust, rationale=why, created_at=at)


def test_rule_10_the_peers_block_is_whole() -> None:
    """Rule 10, anti-pattern "stripping trust": counts, information, trust, trajectory and rationale appear together."""
    ann = peer(assessments=(assessed(3, "Five requests,\nall answered."), assessed(2), assessed(1)))

    assert format_peers([ann]) == (
        "- Ann (slack:T1:U7): 23 messages since 2026-01-05; information 6/10; "
        "assessed trust +3 (before +1, +2) on 2026-02-01. Why: Five requests, all answered."
    )


def test_rule_10_someone_not_yet_assessed() -> None:
    """Rule 10: if nothing was assessed or nothing may be shown, the line says so."""
    assert format_peers([peer(messages=1, info_score=1)]) == (
        "- Ann (slack:T1:U7): 1 message since 2026-01-05; information 1/10; not yet assessed"
    )


def test_the_speaker_is_always_there_others_while_there_is_room() -> None:
    """150 tokens: the first line appears at any length, and the next ones only while they fit."""
    long = peer(assessments=(assessed(3, "w" * 900),))

    lines = format_peers([long, *(peer(peer_id=f"p{n}") for n in range(20))]).splitlines()

    assert lines[0].endswith("w" * 200)
    assert 1 < len(lines) < 8
    assert sum(len(line) + 1 for line in lines) <= 600 + 1
