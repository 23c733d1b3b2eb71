"""Parsing a Claude child's output: lines as Claude Code 2.1.330 wrote them against the loopback model."""

import logging
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


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [("max_tokens", "max_tokens"), ("model_context_window_exceeded", "max_tokens"), ("refusal", "refusal")],
)
def test_a_reply_that_the_child_would_go_on_with_ends_there(reason: str, stop_reason: str) -> None:
    """The child would ask the model again, up to four times; we end the reply there, and drop the session."""
    heard, hearing = hear(start(), delta("one"), stop(reason), SPEAKS_FOR_US)

    done = heard[-1]
    assert isinstance(done, Done)
    assert (done.text, done.stop_reason) == ("one", stop_reason)
    assert not hearing.is_clean


def test_an_empty_reply_ends_there() -> None:
    """The child would ask for a visible reply; we end the reply there as well."""
    heard, hearing = hear(start(), stop("end_turn"), SPEAKS_FOR_US)

    assert isinstance(heard[0], Done)
    assert heard[0].text == ""
    assert not hearing.is_clean


def test_a_tool_call_ends_the_reply_and_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    """We offered no tool, so the text up to the call is the reply."""
    tool = event(type="content_block_start", index=1, content_block={"type": "tool_use", "name": "Bash\n", "id": "t"})

    with caplog.at_level(logging.WARNING):
        heard, hearing = hear(start(), delta("Let me look."), tool)

    assert isinstance(heard[-1], Done)
    assert heard[-1].text == "Let me look."
    assert not hearing.is_clean
    assert caplog.messages == ["claude_cli: a tool call that was never offered is refused"]


def test_thinking_is_not_text() -> None:
    """Neither a thinking block nor its deltas become text."""
    thinking = event(type="content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
    thought = event(type="content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "secret"})

    heard, _ = hear(start(), thinking, thought, delta("Hi"), stop("end_turn"), PASSED)

    assert heard[0] == Delta("Hi")


def test_a_second_start_voids_what_was_said() -> None:
    """The child asked again by itself: the first text is void, and both calls are counted."""
    heard, _ = hear(start(), delta("half"), start(), delta("whole"), stop("end_turn"), PASSED)

    done = heard[-1]
    assert heard[:3] == [Delta("half"), Reset(), Delta("whole")]
    assert isinstance(done, Done)
    assert (done.text, done.usage.input_tokens, done.usage.output_tokens) == ("whole", 200, 8)


def test_a_second_start_before_any_text_voids_nothing() -> None:
    """Without earlier deltas there is nothing to reset."""
    heard, _ = hear(start(), start(), delta("whole"), stop("end_turn"), PASSED)

    assert heard[0] == Delta("whole")


def test_a_cut_reply_that_the_child_resumes_is_cut() -> None:
    """The child would join two halves of different replies, so this is Cut."""
    error = error_of(start(), delta("half"), event(type="message_stop"), SPEAKS_FOR_US)

    assert isinstance(error, Cut)


def test_another_agents_words_are_not_ours() -> None:
    """A sub-agent's events name the call that created it, and are ignored."""
    heard, _ = hear(start(), delta("x") | {"parent_tool_use_id": "t"}, delta("Hi"), stop("end_turn"), PASSED)

    assert heard[0] == Delta("Hi")


def test_a_reply_without_end_is_bounded() -> None:
    """A reply that reaches the size limit ends there, as a truncated reply."""
    heard, hearing = hear(start(), *[delta("x" * 300_000)] * 9)

    done = heard[-1]
    assert isinstance(done, Done)
    assert (len(done.text), done.stop_reason) == (REPLY_CHARS, "max_tokens")
    assert done.text == "".join(item.text for item in heard if isinstance(item, Delta))
    assert not hearing.is_clean


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


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("authentication_failed", AuthFailed),
        ("billing_error", SpendLimit),
        ("rate_limit", RateLimited),
        ("invalid_request", BadRequest),
        ("unknown", Unreachable),
    ],
)
def test_without_a_status_the_childs_word_for_it_decides(word: str, kind: type[ProviderError]) -> None:
    """`Not logged in` has no status, only the word `authentication_failed`."""
    assert type(error_of({"type": "assistant", "error": word}, failed("Not logged in"))) is kind


def test_a_lost_connection_in_the_middle_is_a_cut() -> None:
    """Text was heard before the connection was lost, so the caller repairs the reply."""
    lost = [{"type": "assistant", "error": "server_error"}, failed("API Error: Connection lost mid-response.")]

    assert type(error_of(start(), delta("half"), *lost)) is Cut


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


def test_a_result_without_a_model_call_is_no_reply() -> None:
    """The output of a local command is never spoken."""
    assert type(error_of(PASSED | {"result": "Total cost: $0.00"})) is BadRequest
