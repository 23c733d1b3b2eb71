"""The double is tested too: what it is told, it does. And both voices without a network keep the contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from claudius.config import load
from claudius.errors import BadConfiguration, Overloaded, RateLimited
from claudius.home import Home
from claudius.provider import Delta, Done, Request, Reset, Usage
from claudius.providers import rehearsal, scripted
from claudius.providers.scripted import Line, Scripted
from claudius.testing.check_provider import CASES, Case, NotClaimed, Voice, check_provider
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, ending, fails, hear, said

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
    """A test that holds for the double holds for a provider."""
    await check_provider(case, _voice())


@pytest.mark.parametrize("case", [case for case in OFFLINE if not case.needs], ids=str)
async def test_the_rehearsal_voice_keeps_the_contract(case: Case, home: Home) -> None:
    """The embedded voice is a provider like the others; it speaks its own mind."""
    await check_provider(case, Voice(make=lambda: rehearsal.build(load(home, {}), home)))


async def test_a_case_that_asks_for_more_than_a_voice_has_is_named() -> None:
    """Nothing is skipped in silence: the case and what it needs are said."""
    (case,) = [case for case in CASES if case.number == "P11"]

    with pytest.raises(NotClaimed, match=r"P11 .*: needs server"):
        await check_provider(case, _voice())


async def test_replies_are_given_in_order_and_then_the_default() -> None:
    """Strings, lists of deltas, lines, errors and functions of the request are all replies."""
    double = Scripted(["one", ["t", "wo"], Line(deltas=("three",)), lambda asked: asked.tail], default="again")

    texts = [ending(await hear(double, ASK)).text for _ in range(6)]

    assert texts == ["one", "two", "three", ASK.tail, "again", "again"]
    assert double.requests == [ASK] * 6


async def test_a_fault_comes_where_it_was_ordered() -> None:
    """At the start, after n deltas, or after all of them."""
    faults = [Line(deltas=("a", "b"), fault=Overloaded(), after=after) for after in (0, 1, 2, 9)]
    double = Scripted([Overloaded(), *faults])

    spoken = []
    for _ in range(5):
        heard: list[object] = []
        assert isinstance(await fails(double, ASK, heard), Overloaded)
        spoken.append(said(heard))

    assert spoken == ["", "", "a", "ab", "ab"]
    assert double.open == 0


async def test_a_reset_voids_what_came() -> None:
    """The reply after a reset is whole again."""
    events = await hear(Scripted([Line(deltas=("a", "b"), reset_after=1)]), ASK)

    assert events[:4] == [Delta("a"), Reset(), Delta("a"), Delta("b")]
    assert ending(events).text == "ab"


async def test_usage_is_estimated_unless_it_was_given() -> None:
    """Characters / 4, marked; or exactly what the line says."""
    given = Usage(input_tokens=7, output_tokens=3, cost_usd=0.5)
    double = Scripted(["x" * 40, Line(deltas=("a",), usage=given)])

    first, second = [ending(await hear(double, ASK)).usage for _ in range(2)]

    assert (first.output_tokens, first.estimated) == (10, True)
    assert second == given


def test_say_replaces_what_is_left() -> None:
    """A test may change its mind."""
    double = Scripted(["one", "two"])

    double.say("three")

    assert list(double._left) == ["three"]


@pytest.fixture
def built(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    """Give a maker of doubles as a process under test builds them; its arguments are the file's lines."""

    def build(*lines: str) -> Scripted:
        path = tmp_path / "replies.jsonl"
        path.write_text("\n".join(lines), "utf-8")
        monkeypatch.setenv(scripted.FILE, str(path))
        monkeypatch.setenv(scripted.RECORD, str(tmp_path / "requests.jsonl"))
        return scripted.build(load(home, {}), home)

    return build


async def test_a_process_under_test_is_told_by_a_file(built: Callable[..., Scripted], tmp_path: Path) -> None:
    """JSON lines are taken in order, then the default speaks; each request is written down."""
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
    """One line for the person who wrote the test."""
    with pytest.raises(BadConfiguration, match=r"replies\.jsonl"):
        built(line)


async def test_it_is_found_by_its_name_without_any_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for by name alone, it says its default."""
    monkeypatch.delenv(scripted.FILE, raising=False)
    monkeypatch.delenv(scripted.RECORD, raising=False)
    double = scripted.build(load(home, {}), home)

    done = (await hear(double, Request(system="", history=(), tail="x", max_tokens=1)))[-1]

    assert isinstance(done, Done)
    assert (done.provider, done.text) == ("scripted", scripted.DEFAULT)
