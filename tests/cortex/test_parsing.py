"""Parsing the model's answer: one JSON object, or nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cortex.asking import Unparsable, one_line, parse

GOOD: dict[str, Any] = {
    "assessments": [{"peer_id": "slack:T1:U7", "trust": 4, "rationale": "Six requests, six answers."}],
    "beliefs": [{"key": "ann-is-reliable", "value": "Ann delivers.", "rationale": "Three times now."}],
    "summary": "A quiet week.",
}
JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def test_fr_cx_03_pure_json_is_read() -> None:
    """FR-CX-03: the whole answer is one JSON object."""
    found = parse(json.dumps(GOOD))

    assert found.summary == "A quiet week."
    assert found.assessments == tuple(GOOD["assessments"])
    assert found.beliefs == tuple(GOOD["beliefs"])
    assert found.directives == ()


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "Here:\n```json\n{}\n```\nDone.", "```JSON \r\n{}```"])
def test_fr_cx_03_the_first_json_fence_is_read(fence: str) -> None:
    """FR-CX-03: if the whole answer is not JSON, its first json fence is read."""
    assert parse(fence.format(json.dumps(GOOD)).replace("{}", "")).summary == "A quiet week."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I think Ann is fine.",
        "{",
        "[]",
        "42",
        "null",
        json.dumps({**GOOD, "summary": None}),
        json.dumps({**GOOD, "summary": "  "}),
        json.dumps({**GOOD, "summary": ["x"]}),
        json.dumps({"assessments": [], "beliefs": []}),
        json.dumps({**GOOD, "assessments": {}}),
        json.dumps({**GOOD, "beliefs": "none"}),
        json.dumps({**GOOD, "directives": None}),
        "```\n" + json.dumps(GOOD) + "\n```",
        "```json\n" + json.dumps(GOOD),
        "[" * 100_000,
        " " * 70_000,
    ],
)
def test_fr_cx_03_anything_else_is_a_failure(text: str) -> None:
    """FR-CX-03: without an object or a summary, or with a list of another kind, nothing is applied."""
    with pytest.raises(Unparsable):
        parse(text)


def test_unknown_keys_are_ignored() -> None:
    """A key that was not asked for changes nothing."""
    assert parse(json.dumps({**GOOD, "mood": "fine"})) == parse(json.dumps(GOOD))


def test_entries_that_are_not_objects_are_dropped() -> None:
    """A list may hold invalid entries, and the others count."""
    found = parse(json.dumps({**GOOD, "beliefs": ["x", GOOD["beliefs"][0], 3]}))

    assert len(found.beliefs) == 1
    assert found.dropped


@given(JSONISH)
def test_fr_cx_03_any_json_is_read_or_refused(value: Any) -> None:
    """FR-CX-03: no answer of a model breaks the reader."""
    for text in (json.dumps(value), json.dumps({"summary": "s", "beliefs": value, "assessments": value})):
        try:
            found = parse(text)
        except Unparsable:
            continue
        assert found.summary


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    """A kept text holds no line break and no invisible character."""
    kept = one_line(text)

    assert kept == " ".join(kept.split())
    assert not any(ord(character) < 32 or 0x7F <= ord(character) <= 0x9F for character in kept)
    assert not set(kept) & set("\u202e\u200b\u2066\ufeff")
