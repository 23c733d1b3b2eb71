"""What a model thinks aloud between marks of its own is dropped, however the reply is cut into pieces."""

from collections.abc import Iterable, Sequence

import pytest

from claudius.cognition.reply.tags import ThoughtFilter
from claudius.provider import Delta, Done, Event, Reset, Usage
from stream_rows import ROWS


def left(pieces: Iterable[str], whole: str) -> tuple[str, list[Event]]:
    """Return what is left of a reply, and its events."""
    reader, events = ThoughtFilter(), list[Event]()
    for event in (*map(Delta, pieces), Done(text=whole, usage=Usage())):
        events += reader.read(event)
    done = events[-1]
    assert isinstance(done, Done)
    return done.text, events


def joined(events: Sequence[Event]) -> str:
    """Return the deltas since the last reset."""
    text = ""
    for event in events:
        text = "" if isinstance(event, Reset) else text + (event.text if isinstance(event, Delta) else "")
    return text


WHOLES = [
    pytest.param("".join(row["input"].get("chunks", ())) or row["input"]["content"], id=row["id"])
    for row in ROWS
    if row.get("kind") == "words_alone"
]


@pytest.mark.parametrize("size", [1, 2, 5, 11])
@pytest.mark.parametrize("whole", WHOLES)
def test_what_is_left_does_not_depend_on_how_the_stream_is_cut(whole: str, size: int) -> None:
    """The deltas since the last reset are the text of the end, and the same as of the reply in one piece."""
    at_once, _ = left((), whole)
    text, events = left([whole[at : at + size] for at in range(0, len(whole), size)], whole)

    assert text == joined(events) == at_once


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        ("<|START_THINKING|>zq<|END_THINKING|><|START_RESPONSE|>Hello.<|END_RESPONSE|>", "Hello."),
        ("<|begin_of_thought|>zq<|end_of_thought|>Hello.", "Hello."),
        ("<|start_of_role|>assistant<|end_of_role|>Hello.<|end_of_text|>", "Hello."),
        ("Hello.<|endoftext|>Human: zq", "Hello.<|endoftext|>Human: zq"),
        ("<think>zq</think><answer>Hello.</answer>", "Hello."),
        ("<longcat_think>zq</longcat_think>Hello.", "Hello."),
        ("<思考>zq</思考>Hello.", "Hello."),
        ("＜think＞zq＜/think＞Hello.", "Hello."),
        ("【think】zq【/think】Hello.", "Hello."),
        ("<think>I quote `</think>` and `x`</think>Hello.", "Hello."),
        ("<think/>Hello.", "Hello."),
        ("Use <ThoughtBubble>, <b>or</b> [1], a < b > c and <Товар>.", "Use <ThoughtBubble>, <b>or</b> [1], a < b > c and <Товар>."),
        ("<|im_end|>Hello.<end_of_turn>", "<|im_end|>Hello."),
        ("【重要】明日は休みです。", "【重要】明日は休みです。"),
        ("[Привет] и тебе.", "[Привет] и тебе."),
        ("I had a [thought], see [Reasoning].", "I had a [thought], see [Reasoning]."),
        ("Hello.[THINK]zq[/THINK]", "Hello."),
    ],
)  # fmt: skip
def test_marks_of_other_models_and_what_only_looks_like_one(whole: str, words: str) -> None:
    """Marks of thoughts are known by their names; other markup, and tokens that end a turn, are left to others."""
    assert left(list(whole), whole)[0] == left((), whole)[0] == words
