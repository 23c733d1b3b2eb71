"""Heads: one reading of what our tags look like, for parser, ladder, gate and memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.reply.disguises import is_structured
from claudius.cognition.reply.tags import NAMES, canonical, escape_heads, find_head, is_blank
from replies import hostile


@pytest.mark.parametrize(
    "text",
    [
        "<internal_monologue>", "</internal_monologue", "<Internal-Monologue>", "<external_dialog>", "< external_dialogue",
        "&lt;user_model_check&gt;", "&LT;soul_state_check", "&#60;mental_query", "&#x3C;action_choice", r"\u003cmental_query",
        "＜ｉｎｔｅｒｎａｌ＿ｍｏｎｏｌｏｇｕｅ＞", "﹤/internal_monologue", "<ⓘnternal_monologue>", "<\u200binternal_monologue",
        "<internal\u00ad_monologue>", "<internal__monologue>", "<think>", "</thinking>", "< / scratchpad >",
        "<        internal_monologue", "a <b> <external_dialogue verb=said>",
    ],
)  # fmt: skip
def test_every_disguise_of_a_head_is_found(text: str) -> None:
    """A head is found strict or loose, in any case and width, with blanks and invisible characters in it."""
    assert find_head(text) is not None
    assert is_structured(text)


@pytest.mark.parametrize(
    "text",
    [
        "a < b", "<p>", "<b>bold</b>", "internal_monologue", "<internal_monologues>", "<my_internal_monologue>", "<!-- x -->",
        "<                 internal_monologue", "&lt;think&gt;", "<think about it>", "<3", "<-----", "&lt;", "x<y and z>w", "&ltimes;",
    ],
)  # fmt: skip
def test_what_only_resembles_a_head_is_not_found(text: str) -> None:
    """Other names, too many blanks, and one-word names with attributes or a loose `<` are no heads."""
    assert find_head(text) is None


@pytest.mark.parametrize(
    "text", ["&lt;think&gt;", "<think about it>", "<ns:internal_monologue>", "<thoughts>", "<ThinkMore>"]
)
def test_a_text_that_smells_of_reasoning_is_structured(text: str) -> None:
    """Plain speech is refused more readily than a head is found: any name like `think` after any LT will do."""
    assert is_structured(text)


@given(hostile)
def test_an_escaped_text_holds_no_strict_head(text: str) -> None:
    """Escaping leaves no strict head, changes nothing but `<`, and does no more the second time."""
    escaped = escape_heads(text)

    head = find_head(escaped)
    assert head is None or not head.strict
    assert escaped.replace("&lt;", "<") == text.replace("&lt;", "<")
    assert escape_heads(escaped) == escaped


def test_escaping_leaves_foreign_markup_alone() -> None:
    """Only names of ours are defused; the rest of a text keeps its bytes."""
    assert escape_heads("<b>a</b> <internal_monologue x>") == "<b>a</b> &lt;internal_monologue x>"


@given(hostile, st.integers(0, 60))
def test_an_escaped_text_keeps_to_its_limit(text: str, limit: int) -> None:
    """Where a text has to be short, it is cut before it is escaped: no cut brings a head back or leaves half an escape."""
    escaped = escape_heads(text, limit=limit)

    head = find_head(escaped)
    assert len(escaped) <= limit
    assert head is None or not head.strict
    assert text.replace("&lt;", "<").startswith(escaped.replace("&lt;", "<")) or escaped.endswith(("&", "&l", "&lt"))


def test_names_are_compared_in_one_form() -> None:
    """NFKC, lower case, no `_`, `-` or invisible characters; the alias of the seeds is known."""
    assert canonical("Ｉnternal-\u200bMONO_logue") == "internalmonologue"
    assert NAMES.tags["externaldialog"] == "external_dialogue"


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \n\u200b\ufeff", True), ("a", False), ("\u200b.", False)])
def test_blank_is_what_cannot_be_seen(text: str, blank: bool) -> None:  # noqa: FBT001 - parametrized
    """Blanks and invisible characters alone are nothing."""
    assert is_blank(text) is blank
