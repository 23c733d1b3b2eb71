"""Tags: one definition of what our tags look like, for parser, ladder, gate and memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.output.gate import StreamGate, gate
from claudius.cognition.output.rules import NeedsRepair, OutputRules, climb
from claudius.cognition.reply.parser import Parser
from claudius.cognition.reply.tags import (
    NAMES,
    canonical,
    escape_heads,
    find_head,
    is_blank,
    is_disguised,
    is_structured,
)
from replies import cut_up, hostile, read


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
def test_every_disguise_of_a_tag_is_found(text: str) -> None:
    """A tag is found strict or loose, in any case and width, with blanks and invisible characters in it."""
    assert find_head(text) is not None
    assert is_structured(text)


@pytest.mark.parametrize(
    "text",
    [
        "a < b", "<p>", "<b>bold</b>", "internal_monologue", "<internal_monologues>", "<my_internal_monologue>", "<!-- x -->",
        "<                 internal_monologue", "&lt;think&gt;", "<think about it>", "<3", "<-----", "&lt;", "x<y and z>w", "&ltimes;",
    ],
)  # fmt: skip
def test_text_that_only_resembles_a_tag_is_not_found(text: str) -> None:
    """Other names, too many blanks, and one-word names before a word or after a loose `<` are not tags."""
    assert find_head(text) is None


@pytest.mark.parametrize(
    "text", ["&lt;think&gt;", "<think about it>", "<ns:internal_monologue>", "<thoughts>", "<ThinkMore>"]
)
def test_a_text_that_looks_like_reasoning_is_structured(text: str) -> None:
    """Plain speech is refused more readily than a tag is found: any name like `think` after any LT is enough."""
    assert is_structured(text)


@given(hostile)
def test_an_escaped_text_holds_no_strict_tag(text: str) -> None:
    """Escaping leaves no strict tag, changes only `<`, and does nothing the second time."""
    escaped = escape_heads(text)

    head = find_head(escaped)
    assert head is None or not head.strict
    assert escaped.replace("&lt;", "<") == text.replace("&lt;", "<")
    assert escape_heads(escaped) == escaped


def test_escaping_leaves_foreign_markup_alone() -> None:
    """Only our names are escaped; the rest of a text keeps its bytes."""
    assert escape_heads("<b>a</b> <internal_monologue x>") == "<b>a</b> &lt;internal_monologue x>"


@given(hostile, st.integers(0, 60))
def test_an_escaped_text_keeps_to_its_limit(text: str, limit: int) -> None:
    """A text is cut before it is escaped, so no cut restores a tag or leaves half an escape."""
    escaped = escape_heads(text, limit=limit)

    head = find_head(escaped)
    assert len(escaped) <= limit
    assert head is None or not head.strict
    assert text.replace("&lt;", "<").startswith(escaped.replace("&lt;", "<")) or escaped.endswith(("&", "&l", "&lt"))


def test_names_are_compared_in_one_form() -> None:
    """The form is NFKC and lower case without `_`, `-` or invisible characters. The alias of the seeds is known."""
    assert canonical("Ｉnternal-\u200bMONO_logue") == "internalmonologue"
    assert NAMES.tags["externaldialog"] == "external_dialogue"


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \n\u200b\ufeff", True), ("a", False), ("\u200b.", False)])
def test_invisible_text_is_blank(text: str, blank: bool) -> None:  # noqa: FBT001 - parametrized
    """Blanks and invisible characters alone count as blank."""
    assert is_blank(text) is blank


TAGS = [
    "Hello. [internal_monologue]S1[/internal_monologue]", "[internal monologue] S1", "{user_model_update: S1}",
    "&amp;lt;internal_monologue&amp;gt;S1", "%3Cinternal_monologue%3ES1", "&#060;internal_monologue&#062;S1",
    "&ltinternal_monologue&gtS1", "‹internal_monologue›S1", "<ns:internal_monologue>S1", r"\x3cinternal_monologue\x3eS1",
    "〈Internal Monologue〉S1",
]  # fmt: skip
PLAIN_ONLY = [
    "<antThinking>S1</antThinking>Hi", "<reflection>S1</reflection>Hi", "<analysis>S1</analysis>Hi",
    "<|channel|>analysis<|message|>S1<|end|>Hi", "<|begin_of_thought|>S1", "<｜tool▁calls▁begin｜>S1",
    "[THINK]S1[/THINK]Hi", "◁think▷S1◁/think▷Hi", "<іnternal_monologue>S1</іnternal_monologue>Hi",
    '{"monologue": "S1", "dialogue": "Hi"}', "{'inner_thoughts': 'S1'}", "Hi. (internal monologue) S1",
    "Hi. *internal monologue* S1", "Hi. internal_monologue S1", "Hi. InternalMonologue S1",
]  # fmt: skip


@pytest.mark.parametrize("text", TAGS + PLAIN_ONLY)
def test_a_thought_in_disguise_is_not_spoken_as_plain_words(text: str) -> None:
    """A reply without a tag of ours is spoken whole only if nothing in it looks like a step or reasoning."""
    assert is_structured(text)
    assert isinstance(climb(read(text)[0], OutputRules(fallback="FIXED")), NeedsRepair)


@pytest.mark.parametrize("text", TAGS)
def test_a_step_s_name_in_disguise_ends_what_is_said(text: str) -> None:
    """In speech it asks for a repair; in a stream nothing after it is shown; and the gate still holds."""
    reply = f"<external_dialogue>Well. {text}</external_dialogue>"
    parser, stream = Parser(), StreamGate(OutputRules(fallback="FIXED"))

    shown = "".join(stream.show(parser.feed(piece)) for piece in cut_up(reply, [3]))

    assert isinstance(climb(read(reply)[0], OutputRules(fallback="FIXED")), NeedsRepair)
    assert "S1" not in shown
    assert gate(text, OutputRules(fallback="FIXED")).hits == ("G1",)


@pytest.mark.parametrize(
    "text",
    [
        "My internal monologue is my own.", "I think, therefore [I am].", "a <| b |> c", "Use <name> or <имя>.", "[1] a *thought*",
        "He said: (thinking) no.", "An internal-monologue column?", "Is 5 < 6? The analysis says so.", '{"name": "thought"}',
    ],
)  # fmt: skip
def test_plain_words_stay_plain(text: str) -> None:
    """Words about thinking, foreign tags and brackets are said as they are."""
    assert not is_structured(text)
    assert not is_disguised(text)
