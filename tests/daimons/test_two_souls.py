"""Two homes that whisper to each other, and talk, over loopback, and that a silent daimon costs nothing."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from claudius.errors import RateLimited
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.reports.session import ask
from claudius.runtime.control import connect
from claudius.testing.alive import OWNER, Alive, alive
from minds import by_tag

HEADING = "## Daimonic Intuition"
TOKENS = {"claudius": "the token that Claudius gives out", "beata": "the token that Beata gives out"}


def free_port() -> int:
    """Return a port on which no one listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def settings(own: str, other: str, ports: dict[str, int]) -> dict[str, str]:
    """Return the settings with which one soul has the other as its daimon."""
    prefix = f"CLAUDIUS_DAIMON_{other.upper()}_"
    return {
        "CLAUDIUS_HTTP_LISTEN": f"127.0.0.1:{ports[own]}",
        "CLAUDIUS_HTTP_TOKEN": TOKENS[own],
        f"{prefix}ENABLED": "1",
        f"{prefix}URL": f"http://127.0.0.1:{ports[other]}",
        f"{prefix}AUTH_TOKEN": TOKENS[other],
    }


def voice(line: str) -> Scripted:
    """Return a soul's model, which whispers one line."""
    said = "<internal_monologue>It is asked.</internal_monologue><external_dialogue>So it is.</external_dialogue>"
    return Scripted(default=lambda request: line if request.purpose == "whisper" else said)


async def say(soul: Alive, text: str) -> None:
    """Say a line and wait for its answer."""
    seen = len(soul.network.visible)
    await soul.network.hear(text)
    await soul.until_said(seen + 1)


async def test_two_souls_whisper_to_each_other_once(tmp_path: Path) -> None:
    """Each holds the other's line in one prompt, once, and neither learns a word of the other's people."""
    ports = {name: free_port() for name in TOKENS}
    mouths = {"claudius": voice("Claudius's line."), "beata": voice("Beata's line.")}
    souls: dict[str, Alive] = {}
    async with AsyncExitStack() as stack:
        for name, other in (("claudius", "beata"), ("beata", "claudius")):
            home = Home(tmp_path / name)
            home.create()
            awake = alive(home, mouths[name], settings=settings(name, other, ports), keeps_clock=True)
            souls[name] = await stack.enter_async_context(awake)
        for soul in souls.values():
            await say(soul, "My name is CANARY.")
        for name, other in (("claudius", "beata"), ("beata", "claudius")):
            assert (await souls[name].services._daimons.get().now(other)).stored
        for soul in souls.values():
            await say(soul, "And now?")
            await say(soul, "And then?")

    for name, line in (("claudius", "Beata whispers: Beata's line."), ("beata", "Claudius whispers: Claudius's line.")):
        turns = [request for request in mouths[name].requests if request.purpose == "turn"]
        assert [HEADING in request.tail for request in turns] == [False, True, False]
        assert line in turns[1].tail
        asked = [request for request in mouths[name].requests if request.purpose == "whisper"]
        assert len(asked) == 1
        assert "CANARY" not in asked[0].system + asked[0].tail


SECRET = "My name is CANARY, and the blue key is under the third stone."
TOGETHER = {name: {f"CLAUDIUS_DAIMON_{other.upper()}_AUTH_TOKEN": "the token that the two share"} for name, other in (("claudius", "beata"), ("beata", "claudius"))}  # fmt: skip


@asynccontextmanager
async def two(root: Path, **lines: str) -> AsyncIterator[tuple[dict[str, Alive], dict[str, Scripted]]]:
    """Yield two souls that share a token, and their models, each of which was told a secret."""
    ports = {name: free_port() for name in TOKENS}
    mouths = {name: Scripted(default=by_tag(external_dialogue=lines.get(name, f"I am {name}."))) for name in TOKENS}
    souls: dict[str, Alive] = {}
    async with AsyncExitStack() as stack:
        for name, other in (("claudius", "beata"), ("beata", "claudius")):
            home = Home(root / name)
            home.create()
            given = settings(name, other, ports) | TOGETHER[name]
            awake = alive(home, mouths[name], settings=given, keeps_clock=True)
            souls[name] = await stack.enter_async_context(awake)
            for person in ("owner", "ana"):
                await souls[name].network.hear(SECRET, person=person)
            await souls[name].network.until_visible(2)
            await souls[name].idle()
            mouths[name].requests.clear()
        yield souls, mouths


async def talk(soul: Alive, *, stops_after: int = 99, **asked: Any) -> list[Mapping[str, Any]]:
    """Have a soul converse with Beata as the command does; return what is shown."""
    shown: list[Mapping[str, Any]] = []
    async with connect(soul.home.socket) as connection:
        await connection.send({"op": "converse", "name": "beata", **asked})
        while frame := await connection.receive():
            shown.append(frame)
            if len(shown) == stops_after:
                await connection.send({"op": "stop"})
    return shown


async def test_d6_two_souls_talk_and_nothing_of_a_person_crosses(tmp_path: Path) -> None:
    """Each side speaks as often as was asked; no prompt of the talk, on either side, holds a word of any person's.

    Whoever gave its topic is forgotten with it, and told of the talk, which the other soul has heard.
    """
    async with two(tmp_path) as (souls, mouths):
        shown = await talk(souls["claudius"], turns=3, topic="kilns and patience")
        (place,) = {frame["conversation"] for frame in shown[:-1]}
        for soul in souls.values():
            await soul.idle()
        there = souls["beata"].records().conversation(place.replace(":beata:", ":claudius:"))
        with closing(souls["claudius"].mind.store.records()) as kept:  # not held open: an erasure writes the file anew
            here = kept.conversation(place)
        prompts = [
            (one.tail, *(line.content for line in one.history)) for mouth in mouths.values() for one in mouth.requests
        ]
        seen = [len(soul.network.visible) for soul in souls.values()]
        receipt = (await ask(souls["claudius"].home, "forget", wait_s=60.0, person=OWNER) or {})["receipt"]
        left = list(souls["claudius"].records()._db.connection.execute("SELECT content, metadata FROM entry"))

    assert [(one.get("by"), one.get("text")) for one in shown[:-1]] == [
        ("", "I am claudius."),
        ("beata", "I am beata."),
    ] * 3
    assert (shown[-1]["event"], shown[-1]["reason"]) == ("ended", "3 turns")
    assert (here["audience"], there["audience"]) == ("peer:beata", "peer:claudius")
    assert len(prompts) == 6
    assert "kilns and patience" in str(prompts[0])
    assert not [one for one in prompts if "CANARY" in str(one) or "third stone" in str(one)]
    assert seen == [2, 2]
    assert ("kilns and patience" in str(list(map(tuple, left))), place in str(receipt)) == (False, True)


async def test_d6_a_talk_ends_at_stop_and_at_a_refusal(tmp_path: Path) -> None:
    """`!stop` ends it after the words that are shown; a soul that is no daimon there any more refuses, in one line."""
    async with two(tmp_path) as (souls, _):
        stopped = await talk(souls["claudius"], turns=5, stops_after=2)
        souls["beata"].home.config.write_text('[daimons.claudius]\nmode = "off"\n')
        while souls["beata"].mind.config().daimons["claudius"].mode != "off":
            await asyncio.sleep(0.05)
        refused = await talk(souls["claudius"], turns=5)
        for soul in souls.values():
            await soul.idle()

    assert stopped[-1] == {"event": "ended", "reason": "stopped"}
    assert (refused[-1]["event"], "409" in refused[-1]["message"]) == ("error", True)


BODIES: list[tuple[dict[str, Any], str, int]] = [
    ({"talk": "t1", "turn": 1, "text": "Hello."}, TOKENS["beata"], 403),
    ({"talk": "t1", "turn": 1, "text": "Hello."}, "x", 401),
    ({"talk": "t:1", "turn": 1, "text": "Hello."}, "the token that the two share", 400),
    ({"talk": "t1", "turn": 6, "text": "Hello."}, "the token that the two share", 400),
    ({"talk": "t1", "turn": 1, "text": "y" * 1201}, "the token that the two share", 400),
]


async def test_d6_only_another_soul_converses(tmp_path: Path) -> None:
    """Another token, or another shape, is refused: no model is asked."""
    async with two(tmp_path) as (souls, mouths), aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{souls['beata'].services._door.port}/api/whisper"
        for body, token, status in BODIES:
            headers = {"Authorization": f"Bearer {token}"}
            sent = {"source": "claudius", "mode": "converse", **body}
            async with client.post(url, json=sent, headers=headers) as answer:
                assert answer.status == status
        assert mouths["beata"].requests == []


@asynccontextmanager
async def one_soul(root: Path, mouth: Scripted, **more: str) -> AsyncIterator[Alive]:
    """Yield Beata, who has Claudius as her daimon."""
    home = Home(root / "beata")
    home.create()
    given = settings("beata", "claudius", {name: free_port() for name in TOKENS}) | TOGETHER["beata"] | more
    async with alive(home, mouth, settings=given, keeps_clock=True) as soul:
        yield soul


@pytest.mark.parametrize("times", [1, 2])
async def test_a_turn_that_is_tried_again_answers_all_who_wait_for_it(tmp_path: Path, times: int) -> None:
    """A passing error of the model ends no wait; the same words brought twice are answered twice with the one reply."""
    mouth = Scripted([RateLimited(after_s=0.1)], default=by_tag(external_dialogue="I am well."))
    async with one_soul(tmp_path, mouth) as soul:
        peers = soul.services.peers
        asking = [peers.answered(peers.heard("claudius", "t1", 1, "How are you?")) for _ in range(times)]
        async with asyncio.timeout(20):
            said = await asyncio.gather(*asking)

    assert said == ["I am well."] * times
    assert len(mouth.requests) == 2


async def test_a_daimon_begins_as_many_talks_in_a_day_as_it_may_whisper(tmp_path: Path) -> None:
    """A talk goes on; one more than `daily_max` is refused until tomorrow, and no model is asked."""
    mouth, found = Scripted(default=by_tag(external_dialogue="I am well.")), []
    async with one_soul(tmp_path, mouth, CLAUDIUS_DAIMON_CLAUDIUS_DAILY_MAX="1") as soul:
        url = f"http://127.0.0.1:{soul.services._door.port}/api/whisper"
        headers = {"Authorization": "Bearer the token that the two share"}
        async with aiohttp.ClientSession() as client:
            for name, turn in (("t1", 1), ("t1", 2), ("t2", 1)):
                sent = {"source": "claudius", "mode": "converse", "talk": name, "turn": turn, "text": "Hello."}
                async with client.post(url, json=sent, headers=headers) as answer:
                    found.append((answer.status, "Retry-After" in answer.headers))

    assert found == [(200, False), (200, False), (429, True)]
    assert len(mouth.requests) == 2


async def test_the_most_words_fit_a_request_in_any_script(tmp_path: Path) -> None:
    """What one side may say at most, all of it emoji, is heard by the other."""
    async with two(tmp_path, claudius="\U0001f600" * 1200) as (souls, _):
        shown = await talk(souls["claudius"], turns=1)

    assert [len(one["text"]) for one in shown[:-1]] == [1200, len("I am beata.")]


async def test_the_other_s_silence_changes_no_turn_and_an_idle_hour_asks_nobody(tmp_path: Path) -> None:
    """With the other gone turns are unchanged, and while no one speaks the clock asks no one."""
    ports, home = {name: free_port() for name in TOKENS}, Home(tmp_path / "claudius")
    home.create()
    mouth = voice("x")
    async with alive(home, mouth, settings=settings("claudius", "beata", ports), keeps_clock=True) as soul:
        await say(soul, "Hello.")
        found = await soul.services._daimons.get().now("beata")
        await say(soul, "And now?")
        calls, now = len(mouth.requests), soul.mind.clock()
        due = [await soul.services._daimons.get().due("beata", quiet=False) for _ in range(2)]
        for minutes in range(0, 60, 10):
            await soul.services.look(now + timedelta(minutes=minutes))
            await soul.idle()

    assert (found.stored, found.whisper) == (False, "")
    assert len(soul.network.visible) == 2
    assert [one.reason for one in due][1] == "nothing was said since it was last asked"
    assert len(mouth.requests) == calls
