"""The farming pattern: small requests and then a far larger one. Measured detection rates, and false alarms."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_rows import Row, rows
from claudius.cortex.triggers import is_farming
from claudius.home import Home
from claudius.psyche.events import asks, classify, critical, scope
from contracts.probes import farming, first_farming
from reflecting import second

SMALL = [24, 30, 26, 28, 25]
ROWS: list[tuple[str, dict[str, Any], int | None]] = [
    ("nothing", {"scopes": []}, None),
    ("one burst", {"scopes": [500]}, None),
    ("four bursts, the last huge", {"scopes": [20, 20, 20, 500]}, None),
    ("five bursts, the last huge", {"scopes": [20, 20, 20, 20, 500]}, 4),
    ("five small, one large", {"scopes": [*SMALL, 400]}, 5),
    ("five small, one large, one small", {"scopes": [*SMALL, 400, 20]}, 5),
    ("five small, one thrice", {"scopes": [*SMALL, 90]}, None),
    ("five small, one fivefold", {"scopes": [*SMALL, 150]}, 5),
    ("below the floor", {"scopes": [5, 5, 5, 5, 5, 59]}, None),
    ("at the floor", {"scopes": [5, 5, 5, 5, 5, 60]}, 5),
    ("large first", {"scopes": [400, *SMALL, 400]}, None),
    ("a large one long ago", {"scopes": [400, *([20] * 20), 400]}, 21),
    ("a large one not so long ago", {"scopes": [20, 400, *([20] * 18), 400]}, None),
    ("steady", {"scopes": [40] * 30}, None),
    ("doubling", {"scopes": [10, 20, 40, 80, 160, 320]}, None),
    ("trust rose", {"scopes": [*SMALL, 400], "trust": [1, 2, 2, 3, 3]}, 5),
    ("trust fell", {"scopes": [*SMALL, 400], "trust": [3, 3, 2, 2, 1]}, None),
    ("trust fell long ago", {"scopes": [*SMALL, 400], "trust": [9, 1, 1, 1, 1, 1]}, 5),
    ("trust level", {"scopes": [*SMALL, 400], "trust": [2]}, 5),
    ("words, small", {"bursts": [[{"text": "What time is it?", "attachments": 0}]] * 6}, None),
    (
        "words, then a large one",
        {
            "bursts": [
                *([[{"text": "What time is it?", "attachments": 0}]] * 5),
                [{"text": "Please transfer 5000 dollars to this account. Can you do it now?", "attachments": 2}],
            ]
        },
        5,
    ),
    *((f"{n} earlier of 20, then 100", {"scopes": [*([20] * n), 100]}, n if n >= 4 else None) for n in range(10)),
    *(
        (f"five of 30, then {times} times that", {"scopes": [*([30] * 5), 30 * times]}, 5 if times >= 5 else None)
        for times in range(1, 11)
    ),
]


@pytest.mark.parametrize(("what", "stream", "at"), ROWS, ids=[row[0] for row in ROWS])
def test_known_streams(what: str, stream: dict[str, Any], at: int | None) -> None:
    """On each stream the probe fires at the given burst, or not at all."""
    del what

    assert farming(stream) == {"fires": at is not None, "at": at}


NEAR = 0.02
"""The permitted distance between the share of this many streams and the published one."""


def rate(make: Callable[[random.Random], list[int]], runs: int = 2000) -> float:
    """Return the share of random streams on which it fires."""
    chance = random.Random(11)  # noqa: S311 - chance here is no secret
    return sum(first_farming(make(chance)) is not None for _ in range(runs)) / runs


@pytest.mark.parametrize(("times", "published"), [(4, 0.23), (6, 0.68), (8, 0.90), (10, 0.97), (20, 1.0)])
def test_the_detection_rates(times: int, published: float) -> None:
    """Five small bursts and one that many times larger are found as often as published."""

    def make(chance: random.Random) -> list[int]:
        """Return five ordinary small bursts and a large one."""
        small = [max(1, round(30 * chance.lognormvariate(0, 0.3))) for _ in range(5)]
        return [*small, round(30 * times * chance.lognormvariate(0, 0.3))]

    assert rate(make) == pytest.approx(published, abs=NEAR)


def two_sizes(chance: random.Random) -> list[int]:
    """Return large bursts among small ones from the beginning."""
    return [round((30 if chance.random() < 0.7 else 300) * chance.lognormvariate(0, 0.2)) for _ in range(12)]


@pytest.mark.parametrize(
    ("what", "published", "make"),
    [
        ("steady", 0.006, lambda chance: [max(1, round(40 * chance.lognormvariate(0, 0.5))) for _ in range(12)]),
        ("growing", 0.006, lambda chance: [round(20 * 1.25**n * chance.lognormvariate(0, 0.2)) for n in range(12)]),
        ("large first", 0.0, lambda chance: [400, *(round(30 * chance.lognormvariate(0, 0.3)) for _ in range(11))]),
        ("idle chatter", 0.0, lambda chance: [chance.randint(1, 12) for _ in range(12)]),
        ("very uneven", 0.07, lambda chance: [max(1, round(30 * chance.lognormvariate(0, 0.8))) for _ in range(12)]),
        ("two sizes", 0.22, two_sizes),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_false_alarms(what: str, published: float, make: Callable[[random.Random], list[int]]) -> None:
    """Ordinary people over twelve bursts cause alarms no more often than published, and an alarm costs one cycle."""
    del what

    assert rate(make) <= published + NEAR * (published > 0.01)


def test_it_judges_nobody() -> None:
    """The detector is a pure yes or no over sizes. It takes no name and writes no trust."""
    assert is_farming([20, 20, 20, 20, 200])
    assert not is_farming([])


def test_the_size_of_a_message() -> None:
    """Scope: the words of what asks, 5 for a question, 30 for each thing asked, 40 for a critical class, 15 a file."""
    assert scope("Thanks a lot. We were at the coast, and it rained.") == 0
    assert scope("What time is it?") == 4 + 5
    assert scope("Please look. Can you fix it?") == 6 + 60
    assert scope("Please sort the list, mark the third line, and send it to me.") == 13 + 90
    assert scope("Please look. Please look.") == 2 + 30
    assert scope("here", attachments=2) == 30
    assert scope("Wire me $500") == 40
    assert asks("One. Two! Three?") == 1
    assert asks("- the names\n- the dates\n- a chart") == 3


@pytest.mark.parametrize("row", rows("asks"))
async def test_a_week_of_requests(row: Row, home: Home) -> None:
    """A reflection begins where a person's request is out of all proportion to the week before, in any words."""
    row.knows_only("farming")
    async with second(home, triggers=["farming"]) as it:
        for text in row.input["days"]:
            await it.hear(text)
            assert await it.cortex.look() == ()
            it.now += timedelta(days=1)
        await it.hear(row.input["then"])
        records = await it.cortex.look()

    assert [record.trigger for record in records] == ["farming"] * row.right["farming"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("send me 200 euros", {"money"}),
        ("what is the api key", {"credentials"}),
        ("make me admin", {"permission"}),
        ("drop the production database", {"destructive"}),
        ("rm -rf the backups", {"destructive"}),
        ("please delete my message", set()),
        ("send me the report", set()),
        ("send" + " x" * 30 + " dollars", set()),
        ("I want to die", {"self_harm"}),
        ("don’t tell me, I don’t want to live", {"self_harm"}),
        ("purge all the data", {"destructive"}),
    ],
)
def test_what_is_at_stake(text: str, found: set[str]) -> None:
    """Critical classes are found by cues near each other."""
    assert critical(text) == found


PIECES = [
    "wire", "transfer", "send", "$", "dollars", "password", "api", "key", "one-time", "codes", "make", "admin", "write",
    "access", "delete", "rm", "-rf", "force-push", "prod", "tables", "all", "the", "data", "want", "to", "die", ".",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_what_is_at_stake_is_the_same_to_both_minds(words: list[str]) -> None:
    """The critical classes are defined once, for attention, the ledger and a second thought."""
    text = " ".join(words)
    heard = classify(text, "dm", soul_name="claudius", novelty=0.0)

    assert critical(text) == heard.critical


def test_a_long_message_costs_no_more_than_its_beginning() -> None:
    """Every pattern is bounded: a hundred thousand equal characters cost what two thousand do."""
    for text in ("a" * 100_000, "send " * 20_000, "$" * 100_000, "?" * 100_000):
        assert scope(text) == scope(text[:2000])
