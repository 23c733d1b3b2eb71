"""Receipts have one fixed form that no language is needed for; days and hours follow the reader's locale."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from claudius.receipts import changed, dropped, planned, repeated, said_at, unplanned, zone_set

AT = datetime(2026, 11, 27, 8, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def test_a_plan_is_told_by_its_instant_its_zone_its_rhythm_its_words_and_its_id() -> None:
    """The form of the design, word for word."""
    told = planned(AT, BERLIN, "call the dentist", "p3", repeat="weekdays")

    assert told == "⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin ↻ Mon–Fri · call the dentist · p3"


def test_of_a_plans_words_forty_characters_stand_on_one_line() -> None:
    """Line breaks and blanks are one blank."""
    told = planned(AT, BERLIN, "a\n\n  b " + "x" * 80, "p1, Ada")

    assert told == f"⏰ Fri 27 Nov 2026, 9:00 Europe/Berlin · a b {'x' * 36} · p1, Ada"


@pytest.mark.parametrize(
    ("locale", "right"),
    [
        ("", "Fri 27 Nov 2026, 15:05"),
        ("en-GB", "Fri 27 Nov 2026, 15:05"),
        ("en-US", "Fri 27 Nov 2026, 3:05 PM"),
        ("de-DE", "Fr. 27 Nov. 2026, 15:05"),
        ("pt-BR", "sex. 27 nov. 2026, 15:05"),
        ("ja", "金 27 11月 2026, 15:05"),
        ("zh-CN", "周五 27 11月 2026, 15:05"),
        ("no such thing", "Fri 27 Nov 2026, 15:05"),
    ],
)
def test_hours_have_24_unless_the_locale_has_12_and_days_are_named_in_it(locale: str, right: str) -> None:
    """Names are Babel's; an unknown locale reads as none."""
    assert said_at(AT.replace(hour=14, minute=5), BERLIN, locale) == right


@pytest.mark.parametrize(
    ("repeat", "right"),
    [
        ("daily", "↻ 1 d"),
        ("weekly", "↻ 1 w"),
        ("monthly", "↻ 1 mo"),
        ("yearly", "↻ 1 y"),
        ("weekdays", "↻ Mon–Fri"),
        ("mon,thu", "↻ Mon, Thu"),
    ],
)
def test_a_rhythm_is_told_in_signs(repeat: str, right: str) -> None:
    """Days are named, spans are counted."""
    assert repeated(repeat) == right


def test_the_last_day_of_a_repetition_is_told() -> None:
    """It is a day, not an instant."""
    assert repeated("daily", date(2026, 12, 31)) == "↻ 1 d → Thu 31 Dec 2026"


def test_what_was_not_there_any_more_is_told_as_such() -> None:
    """Beside what was."""
    told = [dropped(["p3"]), dropped([], ["p3"]), dropped(["p1", "p2"], ["p4"]), dropped([]), unplanned("call")]

    assert told == ["✖ p3", "✖ p3 ∅", "✖ p1 p2 p4 ∅", "✖ ∅", "⏰ ∅ · call"]


def test_a_zone_is_told_with_the_plans_that_keep_another() -> None:
    """Once, at its setting."""
    assert zone_set("Asia/Tokyo", {}) == "◷ Asia/Tokyo"
    assert zone_set("Asia/Tokyo", {"UTC": ["p1", "p2"]}) == "◷ Asia/Tokyo · p1 p2 UTC"


def test_a_fact_that_ended_is_told_by_its_id() -> None:
    """Nothing else of it."""
    assert changed("f7") == "✎ f7"
