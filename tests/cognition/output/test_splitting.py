"""Splitting long replies into posts: nothing is lost or torn, and every code fence is whole."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.output.splitting import CUT_OFF, MOST_PARTS, in_posts, mark, pieces, split, units

LIMITS = st.integers(200, 400)
WORDS = st.text(alphabet="abcdé .,!?漢字。😀🏽\u200d\u0301`*_<>|~-[]()", min_size=1, max_size=40)
LINES = st.one_of(
    WORDS,
    st.just(""),
    st.sampled_from(
        ["| a | b |", "https://example.org/" + "x" * 70, "[a link](https://example.org/y)", "`code span`", "<@U1|ana>"]
    ),
    st.integers(80, 300).map(lambda length: ("lorem ipsum dolor. " * 20)[:length]),
)
FENCES = st.builds(
    lambda marker, info, lines, closed: "\n".join([marker + info, *lines, *([marker] if closed else [])]),
    st.sampled_from(["```", "~~~", "````"]),
    st.sampled_from(["", "py", "sql title=x"]),
    st.lists(st.integers(0, 120).map(lambda length: ("if (a == b) { c() } " * 7)[:length]), max_size=8),
    st.booleans(),
)
DOCUMENTS = st.lists(st.one_of(LINES, LINES, FENCES), min_size=1, max_size=16).map("\n".join)


def open_fence(text: str) -> str:
    """Return the marker of a fence that a text leaves open."""
    opened = ""
    for line in text.split("\n"):
        found = re.fullmatch(r" {0,3}(`{3,20}(?=[^`]*$)|~{3,20}(?!~))(.*)", line)
        if found and not opened:
            opened = found[1]
        elif found and found[1][0] == opened[0] and len(found[1]) >= len(opened) and not found[2].strip():
            opened = ""
    return opened


@given(text=DOCUMENTS, limit=LIMITS)
def test_every_part_fits_and_says_something(text: str, limit: int) -> None:
    """No part exceeds the limit or is blank. The same text gives the same parts, and no more than needed."""
    parts = split(text, limit)

    assert all(units(part) <= limit for part in parts)
    assert all(part.strip() for part in parts)
    assert parts == split(text, limit)
    assert len(parts) <= 2 * math.ceil(units(text) / limit) + len(mark(text).fences)


@given(text=DOCUMENTS, limit=LIMITS)
def test_parts_without_the_added_fence_lines_are_the_text(text: str, limit: int) -> None:
    """Only blanks that would fill a post are lost. A cut inside a fence closes the fence and reopens it as it was."""
    found = pieces(text, limit)

    joined = "".join(piece.raw for piece in found)
    assert joined == text or joined.split() == text.split()
    assert all(piece.raw in text for piece in found)
    if len(found) > 1:
        assert [piece.shown for piece in found if open_fence(piece.shown)] == []
    assert all(piece.opens.rstrip("\n") in text for piece in found)


@given(text=st.text(max_size=200))
def test_a_text_that_fits_is_one_part_unchanged(text: str) -> None:
    """Most replies are short."""
    if text.strip() and units(text) <= 200:
        assert split(text, 200) == (text,)


@given(text=DOCUMENTS, limit=LIMITS)
def test_a_reply_has_at_most_eight_parts(text: str, limit: int) -> None:
    """A longer reply ends in a visible mark, and what is said is what the parts show."""
    said, parts = in_posts(text, limit)

    assert len(parts) <= MOST_PARTS
    assert all(units(part) <= limit for part in parts)
    if len(pieces(text, limit)) <= MOST_PARTS:
        assert said == text
    else:
        assert said.endswith(CUT_OFF)
        assert text.startswith(said.removesuffix(CUT_OFF))
        assert [part.rstrip("`~\n")[-1] for part in parts[-1:]] == [CUT_OFF]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("word " * 30 + "End.\n\n", "Next paragraph " * 6),
        ("word " * 32 + "line\n", "next line " * 8),
        ("word " * 30 + "Sentence. ", "Next sentence " * 6),
        ("word " * 35, "longer_word" * 4),
        ("word " * 30, "https://example.org/" + "path/" * 12),
        ("word " * 34, "`a code span that stays whole`" + " and more"),
        ("word " * 34, "<https://example.org/x|a label that stays whole>"),
        ("word " * 34 + "\n", "| a table row | that stays whole | in one piece |"),
        ("x" * 199, "👩‍👩‍👧‍👦 and more"),
        ("x" * 199, "e\u0301\u0301 and more"),
        ("x" * 198, "🇫🇷 and more"),
    ],
)
def test_it_cuts_where_a_reader_pauses(before: str, after: str) -> None:
    """The end of a paragraph is preferred to that of a line, and that to a sentence's. No item is torn."""
    assert split(before + after, 200) == (before, after)


def test_a_fence_is_closed_and_opened_again_with_its_info_string() -> None:
    """Both posts show code."""
    code = "".join(f"value_{n} = {n}\n" for n in range(30))

    first, *rest = split(f"Look:\n\n```py\n{code}```\nThat is all.", 300)

    assert first.startswith("Look:\n\n```py\n")
    assert first.endswith("\n```")
    assert all(part.startswith("```py\nvalue_") for part in rest)
    assert rest[-1].endswith("```\nThat is all.")


def test_an_item_longer_than_a_post_is_cut() -> None:
    """A URL of 1,000 characters, a word of 1,000 or a grapheme of 1,000 code points is posted in pieces."""
    for text in ("https://example.org/" + "a" * 1000, "b" * 1000, "c" + "\u0301" * 1000, "😀" * 500):
        parts = split(text, 200)
        assert "".join(parts) == text
        assert all(units(part) <= 200 for part in parts)


@pytest.mark.parametrize(
    "text",
    [
        "`" * 40_000,
        "[" * 40_000,
        "<" * 40_000,
        "|" * 40_000,
        "` `` " * 9000,
        "a://" * 9000,
        "```\n" * 9000,
        " " * 40_000,
    ],
)
def test_hostile_texts_are_split_too(text: str) -> None:
    """Nothing that a model writes makes it slow or makes it fail; otherwise the suite would hang."""
    assert all(units(part) <= 3000 for part in split(text, 3000))
