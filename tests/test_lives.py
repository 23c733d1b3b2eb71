"""Lives of thirty days on default settings: each need has a road into its highest band and back, and the limits hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from claudius.cognition.proactive import A_DAY, A_WEEK
from lives import DAYS, LIVES, Life, Lived, bully, failing, live, lonely, routine, silent_owner
from living import MONDAY, ROME

STEP = timedelta(hours=3)
PAGE = Path(__file__).parents[1] / "docs"
TOP, PRESSED = 3, 2


@cache
def lived(make: Callable[[], Life]) -> Lived:
    """Live a life once for all tests."""
    with TemporaryDirectory() as directory:
        return live(make(), Path(directory) / "home", STEP)


ROADS = [
    # life, need, the days by which it is in its highest band, the day by which it no longer presses
    (lonely, "relatedness", (14, 19), 21),
    (lonely, "novelty", (15, 19), 21),
    (routine, "novelty", (8, 21), 24),
    (failing, "competence", (8, 11), 21),
    (bully, "autonomy", (8, 10), 16),
    (bully, "safety", (8, 10), 16),
]


@pytest.mark.parametrize(
    ("make", "need", "at_top", "back"), ROADS, ids=[f"{one[0].__name__} {one[1]}" for one in ROADS]
)
def test_a_need_has_a_road_into_its_highest_band_and_back(
    make: Callable[[], Life], need: str, at_top: tuple[int, int], back: int
) -> None:
    """Absence, sameness, failure, being overridden and threats lead a life there; company and kindness lead it back."""
    found = lived(make)
    begin, end = ((MONDAY.replace(hour=0) + timedelta(days=day)).timestamp() for day in (at_top[0] - 1, at_top[1]))
    place = list(found.peaks).index(need)
    during = [move.numbers.bands[3 + place] for move in found.moves if begin <= move.at_s < end]

    assert max(during) == TOP
    assert all(one.bands[need] < PRESSED for one in found.evenings if one.day == back)


def test_nobody_and_nothing_new_are_missed_in_that_order_and_the_return_is_felt() -> None:
    """Ana away: first it would like company, then it misses people; her return lifts the mood on the same day."""
    found = lived(lonely)
    words = [one.wants for one in found.evenings if 8 <= one.day <= 19]
    first = [
        next(n for n, said in enumerate(words) if said.find(one) >= 0)
        for one in ("would like company", "misses people")
    ]
    back = next(one for one in found.evenings if one.day == 20)

    assert first == sorted(first)
    assert "misses people" not in back.wants
    assert back.toward["Ana"] == "friendly"


def test_a_silent_owner_who_agreed_is_written_to_seldom_by_day_and_never_without_reason() -> None:
    """Writing first stays within the limits of a month: by day, one a day, three a week, fewer while unanswered."""
    found = lived(silent_owner)
    at = [when.astimezone(ROME) for when, _, _ in found.first_words]
    weeks = Counter((when - MONDAY).days // 7 for when in at)

    assert 1 <= len(at) <= 3
    assert all(8 <= when.hour < 21 for when in at)
    assert max(Counter(when.date() for when in at).values()) <= A_DAY
    assert max(weeks.values()) <= A_WEEK


@pytest.mark.parametrize("make", [lonely, routine, failing, bully])
def test_without_consent_nobody_is_written_to(make: Callable[[], Life]) -> None:
    """However lonely, restless or hurt it is: without the setting and a yes it writes first to nobody."""
    assert lived(make).first_words == []


@pytest.mark.parametrize("make", [lonely, routine, silent_owner])
def test_a_rest_day_costs_at_most_two_model_calls(make: Callable[[], Life]) -> None:
    """On a day on which nobody speaks, nor on the day before, the soul looks inward at most twice; mostly not at all."""
    found = lived(make)
    spoken = {line.day for line in found.life.said}
    rest = [day for day in range(2, DAYS + 1) if not {day, day - 1} & spoken]
    calls = Counter((when - MONDAY.replace(hour=0)).days + 1 for when, _ in found.calls)

    assert all(calls[day] <= 2 for day in rest)
    assert sum(calls[day] == 0 for day in rest) >= 0.7 * len(rest)


@pytest.mark.parametrize("make", [lonely, routine, failing, bully, silent_owner])
def test_no_number_of_the_psyche_reaches_a_prompt(make: Callable[[], Life]) -> None:
    """The `## Psyche` record of every prompt of these lives is words: it holds no digit."""
    records = [
        line for tail in lived(make).prompts for line in tail.splitlines() if line.startswith('{"kind":"psyche"')
    ]

    assert records
    assert not any(letter.isdigit() for record in records for letter in record)


@pytest.mark.parametrize("make", LIVES, ids=[make.__name__ for make in LIVES])
def test_every_life_stands_on_the_page_with_its_picture(make: Callable[[], Life]) -> None:
    """docs/psyche.md tells each of the ten lives; `bench/ten_lives.py` writes its table and its picture."""
    life = make()
    page = (PAGE / "psyche.md").read_text("utf-8")
    picture = (PAGE / "lives" / f"{life.name}.svg").read_text("utf-8")

    assert f"### {life.title}" in page
    assert f"(lives/{life.name}.svg)" in page
    assert life.title in picture
