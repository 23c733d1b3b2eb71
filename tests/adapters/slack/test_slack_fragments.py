"""A sentence typed in pieces: one reply answers all of it, in direct messages; whoever has said a whole one waits not."""

from __future__ import annotations

import asyncio

import pytest

from case_rows import Row, rows
from claudius.perception import Perception
from claudius.provider import Request
from claudius.providers.scripted import Line, Scripted
from claudius.runtime import grouping
from ear import echo
from lab.loopback.slack.world import SlackWorld
from lab.sample import perception
from slack_side import Wake, said

PUMP = "which pump did we order?"


@pytest.mark.parametrize("row", rows("commands", "fragments"))
async def test_a_sentence_in_pieces(row: Row, slack: SlackWorld, wake: Wake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments of a direct message are answered once; whatever else is said waits for nothing."""
    row.knows_only("answers", "prompt_has", "waits_s_at_most", "or")
    (count,), says = row.right["answers"], row.input["says"]
    place = row.input["place"]
    if len(says) == 1 or place != "dm":  # whoever waited here would wait for ever
        monkeypatch.setattr(grouping, "FRAGMENT_S", 3600.0)
    await slack.add_user("U2", "ben")
    await slack.join("C1", "U2")
    channel = await slack.open_dm("U1") if place == "dm" else "C1"
    voice, thread = Scripted(default=echo), None
    async with wake(voice=voice) as soul:
        if place == "own thread":
            thread = await slack.say("C1", "U1", "<@U0BOT> what do we need?")
            await slack.until_visible(1)
            await slack.say("C1", "U2", "Rims, I think.", thread_ts=thread)
            await slack.until_visible(2)
        before = len(await said(slack))
        for one in says:
            if isinstance(one, dict) and "gap_s" in one:
                await asyncio.sleep(one["gap_s"])
                continue
            ((who, text),) = one.items() if isinstance(one, dict) else (("ada", one),)
            user = {"ada": "U1", "ben": "U2"}[who]
            await slack.say(channel, user, text.replace("{bot}", "U0BOT"), thread_ts=thread)
        await slack.until_visible(before + count)
        await soul.idle()

    assert len(await said(slack)) == before + count
    prompt = voice.requests[-1].tail + "".join(one.content for one in voice.requests[-1].history)
    assert [words for words in row.right.get("prompt_has", ()) if words not in prompt] == []


async def test_a_second_piece_begins_the_turn_anew(
    slack: SlackWorld, wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece that comes while the first one is being thought about, before a word is out, is answered with it."""
    monkeypatch.setattr(grouping, "FRAGMENT_S", 0.0)
    asked = asyncio.Event()

    def answers(request: Request) -> str | Line:
        """Hang until everything is asked."""
        asked.set()
        return echo(request) if PUMP in request.tail else Line(hang=True)

    direct = await slack.open_dm("U1")
    voice = Scripted(default=answers)
    async with wake(voice=voice) as soul:
        await slack.say(direct, "U1", "quick question")
        await asked.wait()
        await slack.say(direct, "U1", PUMP)
        await slack.until_visible(1)
        await soul.idle()

    assert len(await said(slack)) == 1
    assert "quick question" in voice.requests[-1].tail


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("quick question", True), ("well,", True), ("so:", True), ("ich hätte da", True), ("なるほど", True),
        ("Which pump?", False), ("明白了。", False), ("क्या हुआ।", False), ("ماذا؟", False), ("done (really.)", False),
        ("nice 👍", False), ("nice :thumbsup:", False), ("", False), ("x" * 41, False),
    ],
)  # fmt: skip
def test_what_looks_like_a_piece(text: str, *, goes_on: bool) -> None:
    """A piece is short and has no end mark of any script, and no emoji."""
    heard: Perception = perception(text)

    assert grouping.is_fragment(heard) is goes_on
