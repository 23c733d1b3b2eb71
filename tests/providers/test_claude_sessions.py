"""Which session may be continued, and what a new one is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.provider import Message, Request
from claudius.providers.claude.sessions import SessionPool, ShownHistory
from claudius.testing.provider_contract.voice import after

FIRST = Request(
    system="soul",
    history=(Message("user", "heard 0"), Message("assistant", "said 0")),
    tail="## This Turn\nstate\n\nheard 1\nnow write",
    max_tokens=100,
    conversation="c",
)
NEXT = after(FIRST, "heard 1", "said 1", "heard 2")


def test_the_next_turn_goes_on() -> None:
    """A session continues if the request has its history and exactly that one exchange more."""
    assert ShownHistory.of(FIRST).leads_to(NEXT)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(FIRST, id="the same turn again: what was said is void"),
        pytest.param(replace(NEXT, system="another soul"), id="another system"),
        pytest.param(replace(NEXT, model="another"), id="another model"),
        pytest.param(replace(NEXT, max_tokens=7), id="another longest reply"),
        pytest.param(replace(NEXT, history=NEXT.history[1:]), id="a shorter history"),
        pytest.param(replace(NEXT, history=(Message("user", "a summary"), *NEXT.history[2:])), id="a compacted one"),
        pytest.param(replace(NEXT, history=(*NEXT.history, Message("user", "x"))), id="more than one exchange"),
        pytest.param(after(FIRST, "heard 9", "said 9", "heard 2"), id="another exchange"),
        pytest.param(after(FIRST, "heard 1\nheard 9", "said 1", "heard 2"), id="two messages in one"),
        pytest.param(replace(FIRST, history=(*FIRST.history, Message("user", "heard 1"))), id="no reply"),
        pytest.param(after(after(FIRST, "heard 1", "said 1", ""), "heard 2", "said 2", ""), id="two turns on"),
    ],
)
def test_anything_else_begins_anew(other: Request) -> None:
    """A session that saw anything else must not answer: our own history is the truth."""
    assert not ShownHistory.of(FIRST).leads_to(other)


@given(st.text(), st.text(), st.text(), st.text())
def test_borders_between_messages_count(a: str, b: str, c: str, d: str) -> None:
    """Two histories are the same only if each message is the same."""
    one = replace(FIRST, history=(Message("user", a), Message("assistant", b)))
    other = replace(FIRST, history=(Message("user", c), Message("assistant", d)))

    assert ShownHistory.of(one).leads_to(after(other, "heard 1", "said 1", "x")) == ((a, b) == (c, d))


def test_a_session_is_taken_by_one_call_at_a_time() -> None:
    """A second call at the same time finds no session, and starts its own."""
    sessions: SessionPool[str] = SessionPool(2)
    sessions.keep(FIRST, "s")

    assert sessions.take(NEXT) == ("s", [])
    assert sessions.take(NEXT) == (None, [])


def test_a_session_that_may_not_go_on_is_given_back_to_be_ended() -> None:
    """A session that cannot be continued is returned, so that its process and transcript can be ended."""
    sessions: SessionPool[str] = SessionPool(2)
    sessions.keep(FIRST, "s")

    assert sessions.take(FIRST) == (None, ["s"])
    assert sessions.empty() == []


@pytest.mark.parametrize("request_", [replace(FIRST, conversation=""), replace(FIRST, keep_session=False)])
def test_some_sessions_are_not_kept(request_: Request) -> None:
    """A session is not kept without a conversation name, or if the request forbids it."""
    assert SessionPool[str](2).keep(request_, "s") == ["s"]


def test_of_two_sessions_of_one_conversation_the_newer_stays() -> None:
    """Two calls at the same time each created a session: the older one is returned to be ended."""
    sessions: SessionPool[str] = SessionPool(2)
    sessions.keep(FIRST, "old")

    assert sessions.keep(FIRST, "new") == ["old"]
    assert sessions.holds("new")
    sessions.drop("new")
    assert not sessions.holds("new")
