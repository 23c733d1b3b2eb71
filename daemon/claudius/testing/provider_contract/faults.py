"""Fault cases: each fault becomes the error that the chain acts on, and half a reply is never taken as whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from claudius.errors import (
    AuthFailed,
    BadRequest,
    Cut,
    Overloaded,
    ProviderError,
    RateLimited,
    SpendLimit,
    TooLong,
    Unreachable,
)
from claudius.provider import Done, Event, Provider
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import (
    ASK,
    TEXT,
    Voice,
    case,
    ending,
    fails,
    said,
    speaking,
)

_DROPPED = (Cut, Unreachable, Overloaded)


@dataclass(frozen=True, slots=True)
class _Fault:
    """One way to fail. The server keeps it, so that a transport that retries meets it again."""

    reply: Reply
    kinds: tuple[type[ProviderError], ...]
    loose: tuple[type[ProviderError], ...] = ()
    """The errors that a transport that retries by itself may raise instead."""
    after_s: float | None = None


def _status(
    status: int, message: str = "", *, after_s: float | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    return Reply(fault="status", status=status, message=message, retry_after=after_s, headers=headers or {}, keep=True)


_CREDIT = "Your credit balance is too low to access the Anthropic API."
_LONG = "prompt is too long: 210000 tokens > 200000 maximum"

FAULTS: Mapping[str, _Fault] = {
    "400": _Fault(_status(400), (BadRequest,)),
    "400 credit balance": _Fault(_status(400, _CREDIT), (SpendLimit,)),
    "400 prompt too long": _Fault(_status(400, _LONG), (TooLong,)),
    "401": _Fault(_status(401), (AuthFailed,)),
    "402": _Fault(_status(402), (SpendLimit,)),
    "403": _Fault(_status(403), (AuthFailed,)),
    "404": _Fault(_status(404), (BadRequest,)),
    "413": _Fault(_status(413), (TooLong,)),
    "429 with Retry-After": _Fault(_status(429, after_s=100.0), (RateLimited,), after_s=100.0),
    "429 without": _Fault(_status(429), (SpendLimit,), (RateLimited,)),
    "500": _Fault(_status(500), (Overloaded,)),
    "504": _Fault(_status(504), (Overloaded,)),
    "529": _Fault(_status(529), (Overloaded,)),
    "529 told not to be asked again": _Fault(_status(529, headers={"x-should-retry": "false"}), (Overloaded,)),
    "502 HTML": _Fault(Reply(fault="html", keep=True), (Overloaded,)),
    "reset": _Fault(Reply(fault="reset", keep=True), (Unreachable,)),
    "truncated": _Fault(Reply(fault="truncate", text=TEXT, keep=True), (Cut,), _DROPPED),
    "reset in the middle": _Fault(Reply(fault="reset_mid", text=TEXT, keep=True), (Cut,), _DROPPED),
    "EOF in the middle": _Fault(Reply(fault="eof", text=TEXT, keep=True), (Cut,), _DROPPED),
    "EOF without the last event": _Fault(Reply(fault="no_stop", text=TEXT, keep=True), (Cut,), _DROPPED),
    "bad JSON": _Fault(Reply(fault="bad_json", text=TEXT, keep=True), (Cut,), _DROPPED),
    "error event first": _Fault(Reply(fault="error_event", text=TEXT, at=1, keep=True), (Overloaded,)),
    "error event in the middle": _Fault(Reply(fault="error_event", text=TEXT, keep=True), (Overloaded,)),
}


def _fault_case(name: str, fault: _Fault) -> Callable[[Voice], Awaitable[None]]:
    async def run(voice: Voice) -> None:
        expected = (*fault.kinds, *(fault.loose if voice.asks_again else ()))
        async with speaking(voice, fault.reply) as provider:
            heard: list[Event] = []
            error = await fails(provider, ASK, heard)

            assert error, f"{name}: taken for a reply: {heard!r}"
            assert isinstance(error, expected), f"{type(error).__name__}: {error.message}"
            assert error.provider == provider.name
            assert "\n" not in error.message
            assert voice.asks_again or fault.after_s in (None, error.after_s)
        assert TEXT.startswith(said(heard))
        assert not any(isinstance(event, Done) for event in heard)

    return run


for _number, (_name, _fault) in enumerate(FAULTS.items(), 40):
    case(f"P{_number}", f"fault: {_name}", "say", "server")(_fault_case(_name, _fault))


async def check_cut_at(
    voice: Voice, provider: Provider, fault: str, at: int, borders: Sequence[int], *, spare: int = 0
) -> None:
    """Check a stream that ends at byte `at`: an error or the whole reply, never half a reply taken as whole.

    `borders` are those of the complete stream (`Call.borders`); `fault` is `truncate`, `eof` or `reset_mid`. A
    transport that retries may take a reply as whole from its stop reason on, which is the last event but one. So may
    one whose servers do not all send the `spare` events after it.
    """
    assert voice.say
    voice.say(Reply(text=TEXT, fault=fault, at=at, keep=True))
    heard: list[Event] = []
    error = await fails(provider, ASK, heard)

    if error:
        assert error.retryable, f"cut at {at}: {type(error).__name__}"
        assert TEXT.startswith(said(heard))
    else:
        least = borders[-1 - spare] - 1 if spare else borders[-2] - voice.asks_again
        assert at > least, f"cut at {at}: taken for a whole reply"
        assert ending(heard).text == TEXT
