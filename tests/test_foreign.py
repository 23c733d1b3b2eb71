"""What the other side wrote shows its length wherever it is printed; an exception is named, never quoted."""

import asyncio
import json
import logging
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import discord
import msgspec
import psycopg
import pytest
from slack_sdk.errors import SlackApiError

from claudius.adapters.incoming import unfetched
from claudius.adapters.slack import web_api
from claudius.adapters.slack.manifest import CODES
from claudius.errors import BadRequest, StoreError
from claudius.failure import Failure, KeptFailure, failure_of
from claudius.foreign import UNLISTED, Foreign, plain_message, traced, unquoted
from claudius.memory.archive import GitFailed
from claudius.providers.replies import by_kind, by_status, plain_name
from claudius.runtime.logs import lost, start_log, unheard

CANARY = "zq-ulcer"


def shown(said: Foreign) -> list[str]:
    """Return a text in every form in which one gets printed by accident."""
    failure = Failure(kind="k", detail="d", fix="f", said=said)
    return [
        *(str(said), repr(said), f"{said}", f"{said!r}", "%s" % said, "{}".format(said)),  # noqa: UP031, UP032 - each form
        *(str(failure), repr([said]), str({"said": said}), json.dumps({"said": said}, default=str)),
    ]


def test_a_foreign_text_shows_its_length_alone() -> None:
    """However it is printed, a text of another is not seen; what encodes a struct refuses it."""
    said = Foreign(f"my {CANARY}")

    assert [one for one in shown(said) if CANARY in one] == []
    assert str(said) == "(11 characters)"
    with pytest.raises(TypeError):
        msgspec.json.encode(Failure(kind="k", detail="d", fix="f", said=said))


def test_a_foreign_text_that_showed_itself_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: if its `str` were the text, the test above would see it."""
    monkeypatch.setattr(Foreign, "__str__", Foreign.words)

    assert any(CANARY in one for one in shown(Foreign(CANARY)))


class Odd(Exception):
    """An error of a library."""

    status, code = 0, 0


def _with(error: Exception, **given: Any) -> Exception:
    vars(error).update(given)
    return error


def _pg() -> Exception:
    return psycopg.errors.UniqueViolation(f"duplicate key\nDETAIL: Key (x)=({CANARY}) already exists.")


def _slack(code: str) -> SlackApiError:
    return SlackApiError(
        f"failed: {code}", SimpleNamespace(data={"ok": False, "error": code}, status_code=200, headers={})
    )


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ValueError(CANARY), "ValueError"),
        (KeyError(CANARY), "KeyError"),
        (OSError(13, CANARY, CANARY), "PermissionError EACCES"),
        (OSError(CANARY), "OSError"),
        (_with(Odd(CANARY), status=422, code=7), f"{__name__}.Odd 422/7"),
        (_with(Odd(CANARY), status=CANARY, code=10**9), f"{__name__}.Odd"),
        (
            _with(sqlite3.OperationalError(CANARY), sqlite_errorname="SQLITE_BUSY"),
            "sqlite3.OperationalError SQLITE_BUSY",
        ),
        (_pg(), "psycopg.errors.UniqueViolation 23505"),
        (_slack(CANARY), "slack_sdk.errors.SlackApiError"),
        (StoreError("home: no room"), "StoreError: home: no room"),
        (GitFailed("git push: exit 1"), "GitFailed: git push: exit 1"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_an_exception_is_named_and_not_quoted(error: Exception, name: str) -> None:
    """Ours says its message; another its class, and a number or name of a closed list."""
    assert unquoted(error) == name
    assert plain_message(error) == name.removeprefix("StoreError: ").removeprefix("GitFailed: ")


def test_a_traceback_has_places_and_no_words() -> None:
    """The causes, the context and the members of a group are named, each with the lines that it went through."""

    def raises() -> None:
        try:
            int(CANARY)
        except ValueError as error:
            error.add_note(CANARY)
            raise ExceptionGroup(CANARY, [KeyError(CANARY), StoreError("ours")]) from error

    with pytest.raises(ExceptionGroup) as caught:
        raises()
    text = "".join(traced(caught.value))

    assert CANARY not in text
    for part in ("ValueError", "ExceptionGroup", "KeyError", "StoreError: ours", Path(__file__).name, "in raises"):
        assert part in text


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Log to a file, as the daemon does."""
    handler = start_log(tmp_path, "DEBUG", ())
    yield tmp_path / "claudius.log"
    handler.close()


def test_the_log_quotes_no_exception_and_no_library(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever way an exception goes into a line, its words do not; what a library says is named by its place."""
    ours, error = logging.getLogger("claudius.x"), ValueError(CANARY)
    try:
        raise error
    except ValueError:
        ours.exception("one")
    ours.warning("two: %s %r", error, error)
    ours.warning("three", extra={"error": error, "many": [error]})
    ours.warning("four", extra={"said": Foreign(CANARY)})
    for name in ("a.library", "claudius.x.library", "asyncio"):
        logging.getLogger(name).error("no %s", CANARY, extra={"body": CANARY}, exc_info=error)

    text, printed = log.read_text(), capsys.readouterr()
    assert CANARY not in text + printed.out + printed.err
    events = [json.loads(line)["event"] for line in text.splitlines()]
    assert events[:4] == ["one", "two: ValueError 'ValueError'", "three", "four"]
    assert all(one.startswith("a library complains: test_foreign.") for one in events[4:])
    assert len(events) == 7


async def test_an_error_that_no_task_received_names_no_argument(log: Path) -> None:
    """Asyncio names the callback of a timer with its arguments."""

    def fails(_: str) -> None:
        """Fail."""
        raise KeyError(CANARY)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lost)
    loop.call_soon(fails, CANARY)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert CANARY not in log.read_text()
    assert "KeyError" in log.read_text()


def test_a_thread_that_ends_by_an_error_prints_no_words(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Python hands over the error of a thread, or of a destructor: its class and place are logged."""
    unheard(SimpleNamespace(exc_value=ValueError(CANARY)))

    assert CANARY not in log.read_text() + capsys.readouterr().err
    assert "ValueError" in log.read_text()


def test_slacks_codes_are_those_of_its_list() -> None:
    """A word in place of a code that Slack does not document is not told; every code that is acted on is listed."""
    for code in ("channel_not_found", CANARY, "zq_ulcer", ""):
        assert web_api.code_of(_slack(code)) == (code if code in CODES or not code else UNLISTED)
        assert CANARY not in web_api.classify(_slack(code)).message
    assert CODES >= web_api.AMBIGUOUS | web_api.NOT_NOW | web_api.SHUT_OUT | web_api.NOT_UNDERSTOOD


def test_discord_tells_its_number() -> None:
    """The message of Discord's library has the server's; the number alone is told."""
    response: Any = SimpleNamespace(status=400, reason=CANARY)
    error = discord.HTTPException(response, {"code": 50035, "message": CANARY})

    assert unquoted(error) == "discord.errors.HTTPException 400/50035"


def test_a_models_error_says_class_status_and_listed_code() -> None:
    """The kind that a server names is told if vendors document it; what it wrote is kept beside."""
    listed = by_status(400, f"bad: {CANARY}", provider="p", code="invalid_request_error")
    odd = by_status(418, CANARY, provider="p", code=CANARY)
    streamed = by_kind(CANARY, CANARY, provider="p")

    assert listed.message == "the model rejected the request (HTTP 400 Bad Request, invalid_request_error)"
    assert odd.message == "the model rejected the request (HTTP 418 I'm a Teapot, unlisted)"
    assert streamed.message == "the model is overloaded (in the stream, unlisted)"
    assert [one.said.words() for one in (listed, odd, streamed)] == [f"bad: {CANARY}", CANARY, CANARY]
    assert plain_name(f"a {CANARY}", "m") == "m"


def test_an_older_record_is_taken_for_the_other_sides_words() -> None:
    """Before, what is told stood in one text with what the other side wrote: it is shown by `why` alone."""
    old = msgspec.json.encode({"kind": "bad_request", "detail": f"p: no {CANARY}", "fix": "check"}).decode()
    found = KeptFailure.read(old)

    assert found
    assert found.failure.told == {"kind": "bad_request", "detail": "bad request", "fix": "check"}
    assert CANARY in found.document["said"]


def test_a_failure_is_kept_and_read_with_all_of_it() -> None:
    """The turn's record has what the other side wrote; what is told has not."""
    failure = failure_of(BadRequest("no", provider="openai_compat", said=Foreign(CANARY)))
    found = KeptFailure.read(failure.kept)

    assert found
    assert found.failure == failure
    assert CANARY in found.document["said"]
    assert CANARY not in str(failure.told)


def test_a_crash_prints_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    """What Python would print of an error that no one catches, the command prints without its words."""
    from claudius.cli import _Secrets  # noqa: PLC0415 - private

    try:
        int(CANARY)
    except ValueError as error:
        _Secrets({}).excepthook(type(error), error, sys.exc_info()[2])

    printed = capsys.readouterr().err
    assert CANARY not in printed
    assert "ValueError" in printed


@pytest.mark.parametrize(
    "error", [aiohttp.InvalidURL(CANARY), UnicodeError(CANARY), json.JSONDecodeError(CANARY, "", 0)]
)
def test_why_a_file_was_not_fetched_quotes_no_library(error: ValueError) -> None:
    """A library's own kind of ValueError is none of ours, whose words a prompt shows as the reason."""
    with pytest.raises(OSError, match=type(error).__name__) as raised, unfetched(aiohttp.ClientError, ValueError):
        raise error

    assert CANARY not in str(raised.value)
    with pytest.raises(ValueError, match="too large"), unfetched(ValueError):
        raise ValueError("too large")
