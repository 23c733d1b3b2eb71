"""Parsing a Claude child's output: lines as Claude Code 2.1.330 wrote them against the loopback model."""

from typing import Any

import pytest

from claudius.errors import (
    AuthFailed,
    BadRequest,
    Cut,
    Overloaded,
    ProviderError,
    RateLimited,
    SessionGone,
    SpendLimit,
    TooLong,
    Unreachable,
)
from claudius.provider import Delta, Done, Event, Reset
from claudius.providers.claude.sessions import ClaudeReply
from claudius.providers.replies import REPLY_CHARS

Line = dict[str, Any]
USAGE = {"input_tokens": 100, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3, "output_tokens": 1}
PASSED: Line = {"type": "result", "subtype": "success", "is_error": False, "result": "one two", "session_id": "s"}
SPEAKS_FOR_US: Line = {"type": "user", "message": {"role": "user", "content": "Resume directly from where it stops"}}


def event(**fields: Any) -> Line:
    """Return one event of the model's stream."""
    return {"type": "stream_event", "event": fields, "session_id": "s", "parent_tool_use_id": None}


def start() -> Line:
    """Return the start of a message."""
    return event(type="message_start", message={"model": "claude-x", "usage": USAGE})


def delta(text: str) -> Line:
    """Return a piece of text."""
    return event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def stop(reason: str | None, output_tokens: int = 7) -> Line:
    """Return the end of a message."""
    return event(type="message_delta", delta={"stop_reason": reason}, usage={"output_tokens": output_tokens})


def failed(text: str, **fields: Any) -> Line:
    """Return a failure as the child reports it: as a success."""
    return PASSED | {"is_error": True, "result": text} | fields


def hear(*lines: Line) -> tuple[list[Event], ClaudeReply]:
    """Parse lines until Done."""
    hearing, heard = ClaudeReply("claude_cli", "sonnet", wall=lambda: 1000.0), []
    for line in lines:
        if found := hearing.hear(line):
            heard.append(found)
        if isinstance(found, Done):
            break
    return heard, hearing


def error_of(*lines: Line) -> ProviderError:
    """Parse lines until the error, and return it."""
    with pytest.raises(ProviderError) as caught:
        hear(*lines)
    return caught.value


def test_a_plain_reply() -> None:
    """Deltas, then Done at the result, with usage, model and session; the session may be continued."""
    opened = event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
    lines = [
        {"type": "system", "subtype": "init"},
        start(),
        opened,
        delta("one "),
        delta("two"),
        stop("end_turn"),
        PASSED,
    ]

    heard, hearing = hear(*lines)

    done = heard.pop()
    assert heard == [Delta("one "), Delta("two")]
    assert isinstance(done, Done)
    assert (done.text, done.stop_reason, done.session, done.model) == ("one two", "end", "s", "claude-x")
    usage = done.usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens) == (
        100,
        20,
        3,
        7,
    )
    assert hearing.is_clean


THINKING = event(type="content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
THOUGHT = event(type="content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "secret"})
TOOL = event(type="content_block_start", index=1, content_block={"type": "tool_use", "name": "Bash\n", "id": "t"})
END = (stop("end_turn"), PASSED)
HEARD: dict[str, tuple[list[Line], list[Event], tuple[str, str, bool]]] = {
    # The child would ask the model again, up to four times, or for a visible reply: it ends there, without the session.
    "cut off": ([start(), delta("one"), stop("max_tokens"), SPEAKS_FOR_US], [Delta("one")], ("one", "max_tokens", False)),
    "full": ([start(), delta("one"), stop("model_context_window_exceeded"), SPEAKS_FOR_US], [Delta("one")], ("one", "max_tokens", False)),
    "refused": ([start(), delta("one"), stop("refusal"), SPEAKS_FOR_US], [Delta("one")], ("one", "refusal", False)),
    "empty": ([start(), stop("end_turn"), SPEAKS_FOR_US], [], ("", "end", False)),
    # No tool was offered, so the text up to a call of one is the reply.
    "a tool": ([start(), delta("Let me look."), TOOL], [Delta("Let me look.")], ("Let me look.", "end", False)),
    "thinking is no text": ([start(), THINKING, THOUGHT, delta("one two"), *END], [Delta("one two")], ("one two", "end", True)),
    # The child asked again by itself: the first text is void; without any there is nothing to reset.
    "a second start": ([start(), delta("half"), start(), delta("one two"), *END], [Delta("half"), Reset(), Delta("one two")], ("one two", "end", True)),
    "at once": ([start(), start(), delta("one two"), *END], [Delta("one two")], ("one two", "end", True)),
    "a sub-agent": ([start(), delta("x") | {"parent_tool_use_id": "t"}, delta("one two"), *END], [Delta("one two")], ("one two", "end", True)),
    "without end": ([start(), *[delta("x" * 300_000)] * 9], [], ("x" * REPLY_CHARS, "max_tokens", False)),
}  # fmt: skip
"""What the child writes, what is heard of it, and how it ends: text, reason, and whether the session may go on."""


@pytest.mark.parametrize("case", HEARD)
def test_a_reply_ends_where_its_model_ended_it(case: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the child would do by itself after that."""
    lines, events, ended = HEARD[case]

    heard, hearing = hear(*lines)

    done = heard.pop()
    assert isinstance(done, Done)
    assert (done.text, done.stop_reason, hearing.is_clean) == ended
    assert heard == events or "".join(one.text for one in heard if isinstance(one, Delta)) == done.text
    assert (done.usage.input_tokens, done.usage.output_tokens) == (200, 8) or case != "a second start"
    assert caplog.messages == ["claude_cli: a tool call that was never offered is refused"] * (case == "a tool")


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (failed("API Error: 400 x", api_error_status=400), BadRequest),
        (failed("Credit balance is too low", api_error_status=400), SpendLimit),
        (failed("Prompt is too long", api_error_status=400, terminal_reason="prompt_too_long"), TooLong),
        (failed("Failed to authenticate", api_error_status=401), AuthFailed),
        (failed("API Error: 402", api_error_status=402), SpendLimit),
        (failed("There's an issue with the selected model", api_error_status=404), BadRequest),
        (failed("Request too large", api_error_status=413), TooLong),
        (failed("API Error: Request rejected (429)", api_error_status=429), RateLimited),
        (failed("API Error: 500", api_error_status=500), Overloaded),
        (failed("API Error: Overloaded", api_error_status=529), Overloaded),
        (failed("API Error: Connection dropped (ECONNRESET)."), Unreachable),
        (
            failed(None, errors=["No conversation found with session ID: s"], subtype="error_during_execution"),
            SessionGone,
        ),
    ],
)
def test_a_failure_is_classified_from_its_fields(result: Line, kind: type[ProviderError]) -> None:
    """The subtype says success, so `is_error`, status and reason decide; its text is for the turn's record alone."""
    error = error_of(result)

    assert type(error) is kind
    assert str(result["result"]) not in error.message
    assert kind is SessionGone or str(result["result"])[:100] in error.said.words()
    assert error.provider == "claude_cli"


LOST: Line = {"type": "assistant", "error": "server_error"}


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        # `Not logged in` has no status, only a word for it.
        *[
            ([{"type": "assistant", "error": word}, failed("Not logged in")], kind)
            for word, kind in (("authentication_failed", AuthFailed), ("billing_error", SpendLimit), ("rate_limit", RateLimited),
                               ("invalid_request", BadRequest), ("unknown", Unreachable))
        ],
        # The child would join two halves of different replies; text was heard, so the caller repairs the reply.
        ([start(), delta("half"), event(type="message_stop"), SPEAKS_FOR_US], Cut),
        ([start(), delta("half"), LOST, failed("API Error: Connection lost mid-response.")], Cut),
        ([PASSED | {"result": "Total cost: $0.00"}], BadRequest),  # the output of a local command is never spoken
    ],
)  # fmt: skip
def test_what_has_no_status_is_told_by_what_it_is(lines: list[Line], kind: type[ProviderError]) -> None:
    """Without a status the child's own word decides, and what was heard before."""
    assert type(error_of(*lines)) is kind


def test_the_end_of_a_limit_is_told() -> None:
    """The end of a subscription's limit is given in seconds from now."""
    event_of_it = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 4600}}

    error = error_of(event_of_it, failed("You've hit your 5-hour limit", api_error_status=429))

    assert type(error) is RateLimited
    assert error.after_s == 3600.0


def test_a_warning_of_a_limit_is_none() -> None:
    """The status `allowed` sets no end of a limit."""
    warning = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "resetsAt": 4600}}

    assert error_of(warning, failed("x", api_error_status=529)).after_s is None
