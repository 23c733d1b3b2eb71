"""Overlap: a long stretch of a kept text is found wherever it stands, and nothing shorter is."""

from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.output.rules import LEAST_SUSPICION, SPAN, Overlap

KEPT = "".join(chr(0x4E00 + n) for n in range(200))


@given(st.lists(st.text(alphabet="ab", max_size=90), max_size=4), st.text(alphabet="ab", max_size=120))
def test_the_fast_search_equals_the_plain_search(kept: list[str], spoken: str) -> None:
    """The result equals a comparison of every stretch with every text, even on repetitive texts."""
    span = 8
    plain = any(spoken[at : at + span] in text for text in kept for at in range(len(spoken) - span + 1))

    assert Overlap(kept, span).repeated_in(spoken) == plain


def test_the_tail_is_the_longest_suspicious_end() -> None:
    """`tail` counts the last characters that stand in the texts, from 16 up to the span."""
    echo = Overlap([KEPT])

    assert echo.tail("x" + KEPT[3:33]) == 30
    assert echo.tail("x" + KEPT[3 : 3 + LEAST_SUSPICION - 1]) == 0
    assert echo.tail(KEPT) == SPAN
    assert echo.tail(KEPT[3:33] + "x") == 0


def test_what_was_said_aloud_may_be_said_again() -> None:
    """A stretch that everybody has heard is not secret, even in a thought; one more character of the thought is."""
    echo = Overlap([KEPT], aloud=[KEPT[50:150]])

    assert not echo.repeated_in("a" + KEPT[50:150] + "b")
    assert echo.repeated_in(KEPT[50:151])
    assert echo.repeated_in(KEPT[50:150] + " " + KEPT[:SPAN])
