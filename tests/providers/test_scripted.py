"""The scripted fake is tested too: it does what it is told. Both offline providers keep the provider contract."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from claudius.config.load import load
from claudius.errors import BadConfiguration, RateLimited
from claudius.home import Home
from claudius.provider import Usage
from claudius.providers import rehearsal, scripted
from claudius.providers.scripted import Line, Scripted
from claudius.testing.check_provider import CASES, Case, NotClaimed, Voice, check_provider
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, ending, fails, hear

OFFLINE = [case for case in CASES if "server" not in case.needs]
_STOP = {"max_tokens": "max_tokens", "refusal": "refusal"}


def _voice() -> Voice:
    told: list[Line] = []

    def say(*replies: Reply | str) -> None:
        told[:] = [_line(reply) for reply in replies]

    return Voice(make=lambda: Scripted(tuple(told)), say=say)


def _line(reply: Reply | str) -> Line:
    if isinstance(reply, str):
        return Line(deltas=tuple(reply.partition(" ")))
    return Line(deltas=reply.pieces(), stop_reason=_STOP.get(reply.stop_reason, "end"))


@pytest.mark.parametrize("case", OFFLINE, ids=str)
async def test_the_double_keeps_the_contract(case: Case) -> None:
    """The fake keeps the contract, so that a test with the fake also holds for a real provider."""
    await check_provider(case, _voice())


@pytest.mark.parametrize("case", [case for case in OFFLINE if not case.needs], ids=str)
async def test_the_rehearsal_voice_keeps_the_contract(case: Case, home: Home) -> None:
    """The rehearsal provider keeps the contract like the others; it chooses its own words."""
    await check_provider(case, Voice(make=lambda: rehearsal.build(load(home, {}), home)))


async def test_a_case_that_asks_for_more_than_a_voice_has_is_named() -> None:
    """No case is skipped silently: the skip names the case and what it needs."""
    (case,) = [case for case in CASES if case.number == "P11"]

    with pytest.raises(NotClaimed, match=r"P11 .*: needs server"):
        await check_provider(case, _voice())


@pytest.fixture
def built(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    """Return a function that builds the fake as a process under test does; its arguments are the file's lines."""

    def build(*lines: str) -> Scripted:
        path = tmp_path / "replies.jsonl"
        path.write_text("\n".join(lines), "utf-8")
        monkeypatch.setenv(scripted.FILE, str(path))
        monkeypatch.setenv(scripted.RECORD, str(tmp_path / "requests.jsonl"))
        return scripted.build(load(home, {}), home)

    return build


async def test_a_process_under_test_is_told_by_a_file(built: Callable[..., Scripted], tmp_path: Path) -> None:
    """JSON lines are used in order, then the default; each request is recorded."""
    double = built(
        '"one"',
        "",
        '["t", "wo"]',
        '{"text": "three", "stop_reason": "max_tokens", "usage": {"input_tokens": 5}}',
        '{"error": "RateLimited", "after_s": 9, "message": "slower"}',
        '{"deltas": ["a", "b"], "error": "Cut", "after": 1}',
    )

    done = [ending(await hear(double, ASK)) for _ in range(3)]
    limited, cut = [await fails(double, ASK) for _ in range(2)]
    last = ending(await hear(double, ASK))

    assert [item.text for item in done] == ["one", "two", "three"]
    assert (done[2].stop_reason, done[2].usage) == ("max_tokens", Usage(input_tokens=5))
    assert isinstance(limited, RateLimited)
    assert (limited.message, limited.after_s) == ("slower", 9)
    assert type(cut).__name__ == "Cut"
    assert last.text == scripted.DEFAULT
    written = (tmp_path / "requests.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["tail"] for line in written] == [ASK.tail] * 6


@pytest.mark.parametrize("line", ["{", '{"error": "NoSuchError"}', '{"text": "a", "colour": 1}', "7"])
def test_a_file_that_makes_no_sense_is_named(line: str, built: Callable[..., Scripted]) -> None:
    """A bad file is a one-line error for the author of the test."""
    with pytest.raises(BadConfiguration, match=r"replies\.jsonl"):
        built(line)
