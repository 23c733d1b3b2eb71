"""Lives on default settings: each need has a road into its highest band and back, and the limits hold.

On a push three lives are lived, each once and no longer than needed; `.ci/run full` lives all ten to their end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from claudius.cognition.proactive import A_DAY, A_WEEK
from lives import DAYS, LIVES, Life, Lived, bully, failing, live, lonely, routine, silent_owner
from living import MONDAY, ROME

STEP = timedelta(hours=3)
PAGE = Path(__file__).parents[1] / "docs"
TOP, PRESSED = 3, 2
TICKS_A_DAY = 2
Make = Callable[[], Life]

ROADS: dict[Make, dict[str, tuple[int, int, int]]] = {
    # life: need: the days by which it is in its highest band, the day by which it no longer presses
    lonely: {"relatedness": (14, 19, 21), "novelty": (15, 19, 21)},
    bully: {"autonomy": (8, 10, 16), "safety": (8, 10, 16), "competence": (8, 10, 16)},
    routine: {"novelty": (8, 21, 24)},
    failing: {"competence": (8, 11, 21)},
}


def lived(make: Make, home: Path, days: int = DAYS) -> Lived:
    """Live a life's first days, and check the rules that every life keeps."""
    found = live(make(), home / "home", STEP, days)
    writes_within_limits(found)
    rests(found, days)
    tells_no_number(found)
    return found


def has_roads(found: Lived, roads: dict[str, tuple[int, int, int]]) -> None:
    """Check that each need is in its highest band when it is due to be, and no longer presses on its day."""
    for need, (begin, end, back) in roads.items():
        from_s, to_s = ((MONDAY.replace(hour=0) + timedelta(days=day)).timestamp() for day in (begin - 1, end))
        place = list(found.peaks).index(need)
        assert max(move.numbers.bands[3 + place] for move in found.moves if from_s <= move.at_s < to_s) == TOP, need
        assert [one.bands[need] < PRESSED for one in found.evenings if one.day == back] == [True], need


def writes_within_limits(found: Lived) -> None:
    """Check the limits of writing first: by day, one a day, three a week; to nobody without the setting and a yes."""
    at = [when.astimezone(ROME) for when, _, _ in found.first_words]
    weeks = Counter((when - MONDAY).days // 7 for when in at)

    assert not at or found.life.consent
    assert all(8 <= when.hour < 21 for when in at)
    assert max(Counter(when.date() for when in at).values(), default=0) <= A_DAY
    assert max(weeks.values(), default=0) <= A_WEEK


def rests(found: Lived, days: int) -> None:
    """Check that it looks inward twice a day at most; a day after a day of silence costs two calls, half of them none."""
    spoken = {line.day for line in found.life.said}
    quiet = [day for day in range(2, days + 1) if not {day, day - 1} & spoken]
    calls = Counter((when - MONDAY.replace(hour=0)).days + 1 for when, _ in found.calls)

    assert max(Counter(at.date() for at in found.ticks).values(), default=0) <= TICKS_A_DAY
    assert all(calls[day] <= 2 for day in quiet)
    assert 2 * sum(calls[day] == 0 for day in quiet) >= len(quiet)


def tells_no_number(found: Lived) -> None:
    """Check that the `## Psyche` record of every prompt is words: it holds no digit."""
    records = [line for tail in found.prompts for line in tail.splitlines() if line.startswith('{"kind":"psyche"')]

    assert records
    assert not any(letter.isdigit() for record in records for letter in record)


def test_absence_makes_it_want_company_then_miss_people_and_the_return_is_felt(tmp_path: Path) -> None:
    """Ana away: first it would like company, then it misses people; her return lifts the mood on the same day."""
    found = lived(lonely, tmp_path, days=21)
    words = [one.wants for one in found.evenings if 8 <= one.day <= 19]
    first = [next(n for n, said in enumerate(words) if one in said) for one in ("would like company", "misses people")]
    back = next(one for one in found.evenings if one.day == 20)

    has_roads(found, ROADS[lonely])
    assert first == sorted(first)
    assert "misses people" not in back.wants
    assert back.toward["Ana"] == "friendly"
    assert found.ticks  # also for a soul that may not write first


def test_orders_and_threats_crowd_and_frighten_it_and_kindness_leads_back(tmp_path: Path) -> None:
    """A bully for three days: autonomy, safety and its own use are in their highest band; a week later none presses."""
    has_roads(lived(bully, tmp_path, days=16), ROADS[bully])


def test_a_silent_owner_who_agreed_is_written_to_seldom_by_day_and_never_without_reason(tmp_path: Path) -> None:
    """In a month of silence it writes first one to three times, within the limits that every life keeps."""
    assert 1 <= len(lived(silent_owner, tmp_path).first_words) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("make", LIVES, ids=[make.__name__ for make in LIVES])
def test_every_life_to_its_end_keeps_the_limits_and_has_its_roads(make: Make, tmp_path: Path) -> None:
    """All ten lives of thirty days: writing first, rest days and prompts as always; needs rise and fall."""
    has_roads(lived(make, tmp_path), ROADS.get(make, {}))


@pytest.mark.parametrize("make", LIVES, ids=[make.__name__ for make in LIVES])
def test_every_life_stands_on_the_page_with_its_picture(make: Make) -> None:
    """docs/psyche.md tells each of the ten lives; `bench/ten_lives.py` writes its table and its picture."""
    life = make()
    page = (PAGE / "psyche.md").read_text("utf-8")
    picture = (PAGE / "lives" / f"{life.name}.svg").read_text("utf-8")

    assert f"### {life.title}" in page
    assert f"(lives/{life.name}.svg)" in page
    assert life.title in picture
