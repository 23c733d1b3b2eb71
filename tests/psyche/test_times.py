"""Times in plain words: which instant a sentence names, in English and German, and how an instant is said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.psyche.times import due, names_hour, names_instant, repeats, said_as

MONDAY = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("remind me in a few minutes", "2026-01-05T12:05"),
        ("remind me tomorrow morning", "2026-01-06T09:00"),
        ("remind me tomorrow", "2026-01-06T09:00"),
        ("remind me this evening", "2026-01-05T19:00"),
        ("remind me tonight", "2026-01-05T20:00"),
        ("remind me tonight at 9:30", "2026-01-05T21:30"),
        ("remind me on the 15th", "2026-01-15T09:00"),
        ("remind me on December 24th to buy a tree", "2026-12-24T09:00"),
        ("remind me Friday", "2026-01-09T09:00"),
        ("remind me at half past six", "2026-01-05T18:30"),
        ("remind me at ten to six", "2026-01-05T17:50"),
        ("remind me at 5", "2026-01-05T17:00"),
        ("remind me at 5.30pm", "2026-01-05T17:30"),
        ("remind me at 9:30", "2026-01-06T09:30"),
        ("remind me on 2026-03-01 at 10:00", "2026-03-01T10:00"),
        ("remind me next week", "2026-01-12T09:00"),
        ("remind me next month", "2026-02-05T12:00"),
        ("remind me on the weekend", "2026-01-10T09:00"),
        ("remind me in 2h30", "2026-01-05T14:30"),
        ("remind me in 90min", "2026-01-05T13:30"),
        ("remind me in two and a half hours", "2026-01-05T14:30"),
        ("remind me an hour from now", "2026-01-05T13:00"),
        ("remind me 10 minutes from now", "2026-01-05T12:10"),
        ("remind me in twenty-five minutes", "2026-01-05T12:25"),
        ("remind me at midnight", "2026-01-06T00:00"),
        ("remind me at noon", "2026-01-06T12:00"),
        ("remind me by Friday noon", "2026-01-09T12:00"),
        ("remind me tomorrow at 7 to wake up at 8", "2026-01-06T07:00"),
        ("remind me in 10 minutes, the 3rd time", "2026-01-05T12:10"),
        ("remind me at 6 o'clock", "2026-01-05T18:00"),
        ("remind me at 18h", "2026-01-05T18:00"),
        ("remind me in 3 years", "2029-01-05T12:00"),
        ("remind me 5pm", "2026-01-05T17:00"),
        ("remind me in 1 hour 20 minutes", "2026-01-05T13:20"),
        ("Remind me on May 3", "2026-05-03T09:00"),
        ("remind me every monday at 9", "2026-01-12T09:00"),
        ("erinnere mich morgen früh", "2026-01-06T09:00"),
        ("erinnere mich morgen", "2026-01-06T09:00"),
        ("erinnere mich heute abend", "2026-01-05T20:00"),
        ("erinnere mich um halb neun", "2026-01-05T20:30"),
        ("erinnere mich um halb neun Uhr", "2026-01-05T20:30"),
        ("erinnere mich um zehn vor sechs", "2026-01-05T17:50"),
        ("erinnere mich um fünf nach halb drei", "2026-01-05T14:35"),
        ("erinnere mich um 14.30 Uhr", "2026-01-05T14:30"),
        ("erinnere mich um 14 Uhr 30", "2026-01-05T14:30"),
        ("erinnere mich am 24.12. um 18 Uhr", "2026-12-24T18:00"),
        ("erinnere mich am 24.12.2026", "2026-12-24T09:00"),
        ("erinnere mich am 24. Dezember", "2026-12-24T09:00"),
        ("erinnere mich nächste Woche Dienstag um 9", "2026-01-13T09:00"),
        ("erinnere mich nächste Woche", "2026-01-12T09:00"),
        ("erinnere mich am Wochenende", "2026-01-10T09:00"),
        ("erinnere mich in zwei Tagen", "2026-01-07T12:00"),
        ("erinnere mich in 2,5 Stunden", "2026-01-05T14:30"),
        ("erinnere mich in einer Stunde und 20 Minuten", "2026-01-05T13:20"),
        ("erinnere mich in 'ner Stunde", "2026-01-05T13:00"),
        ("erinnere mich in ner halben Stunde", "2026-01-05T12:30"),
        ("erinnere mich Samstag früh um 8", "2026-01-10T08:00"),
        ("erinnere mich kommenden Mittwoch um 9", "2026-01-07T09:00"),
        ("erinnere mich um eins", "2026-01-05T13:00"),
        ("erinnere mich um Mitternacht", "2026-01-06T00:00"),
        ("erinnere mich heute Nachmittag", "2026-01-05T15:00"),
        ("erinnere mich in fünfundzwanzig Minuten", "2026-01-05T12:25"),
        ("erinnere mich in einem Jahr", "2027-01-05T12:00"),
        ("erinnere mich um 7 in der Früh", "2026-01-06T07:00"),
        ("erinnere mich am 15. um 10 Uhr", "2026-01-15T10:00"),
        ("erinnere mich morgen um 7 an die 3 Termine um 9", "2026-01-06T07:00"),
    ],
)
def test_what_is_asked_for_comes_at_the_start_of_what_is_named(text: str, at: str) -> None:
    """Spans, clocks, days, dates and parts of a day, each in its usual forms, are read as a reminder's time."""
    assert due(text, MONDAY, is_asked=True) == datetime.fromisoformat(at + "+00:00")


@pytest.mark.parametrize(
    "text",
    [
        "remind me in a bit",
        "remind me soon",
        "May I come in?",
        "We sat down and the die was cast.",
        "Der Mai ist gekommen, die Bäume schlagen aus.",
        "It costs 3.50 and weighs 2 kilos.",
        "mon ami",
        "Ich bin 30 und habe 2 Kinder.",
        "Version 3.5. is out",
        "",
    ],
)
def test_words_that_only_look_like_a_time_name_none(text: str) -> None:
    """A month's or a day's name, a number or an article on its own is no time."""
    assert due(text, MONDAY, is_asked=True) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("I'll send it on 3 May", "2026-05-03T18:00"),
        ("I'll send it tomorrow evening", "2026-01-06T22:00"),
        ("I'll send it this afternoon", "2026-01-05T18:00"),
        ("I'll do it next Friday", "2026-01-16T18:00"),
        ("I'll do it this Friday", "2026-01-09T18:00"),
        ("I like it in the morning", None),
        ("I can see Friday is near", None),
        ("I will march 3 miles", None),
    ],
)
def test_a_promise_is_due_at_the_end_of_what_it_names(text: str, at: str | None) -> None:
    """A bare part of the day, or a weekday without a preposition, is no date for a promise."""
    assert due(text, MONDAY) == (datetime.fromisoformat(at + "+00:00") if at else None)


def test_a_day_keeps_its_hour_across_a_change_of_clocks() -> None:
    """Tomorrow at nine is nine o'clock there, also if the clocks change tonight; two hours are two hours."""
    eve = datetime(2026, 3, 28, 22, 0, tzinfo=BERLIN)

    assert due("tomorrow at 9", eve, BERLIN, is_asked=True) == datetime(2026, 3, 29, 9, 0, tzinfo=BERLIN)
    assert due("in 1 day", eve, BERLIN) == datetime(2026, 3, 29, 22, 0, tzinfo=BERLIN)
    assert due("in 6 hours", eve, BERLIN) == eve.astimezone(UTC) + timedelta(hours=6)


def test_an_instant_is_said_in_local_time() -> None:
    """Today by the clock, tomorrow as such, later with the date, another year with the year."""
    said = [said_as(MONDAY + timedelta(days=days), MONDAY, BERLIN) for days in (0, 1, 4, 400)]
    german = [said_as(MONDAY + timedelta(days=days), MONDAY, BERLIN, "german") for days in (0, 1, 4, 400)]

    assert said == ["at 13:00", "tomorrow at 13:00", "on Friday, 9 January, at 13:00", "on 9 February 2027 at 13:00"]
    assert german == [
        "um 13:00 Uhr",
        "morgen um 13:00 Uhr",
        "am Freitag, dem 9. Januar, um 13:00 Uhr",
        "am 9. Februar 2027 um 13:00 Uhr",
    ]


def test_an_hour_is_told_from_a_day() -> None:
    """A day alone names no instant; a span names an instant but no hour; what repeats is noticed."""
    assert not names_instant("tomorrow")
    assert names_instant("in 3 minutes")
    assert not names_hour("in 3 minutes")
    assert names_hour("um halb neun Uhr, bitte")
    assert repeats("every Monday at 9")
    assert repeats("jeden Montag")
    assert not repeats("on Monday")


@given(st.text(alphabet="in at um 0123456789:.,amp days hours Uhr halb morgen next May", max_size=60))
def test_any_text_is_read(text: str) -> None:
    """Reading any text succeeds, for a request as for a promise."""
    due(text, MONDAY, BERLIN, is_asked=True)
    due(text, MONDAY, BERLIN)
