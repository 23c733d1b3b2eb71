"""The whole soul on Slack: each message is answered once, in its place, whatever fails on the way."""

import asyncio

import pytest

from claudius.compose import compose
from claudius.home import Home
from claudius.providers import chain, current, openai_compat
from claudius.providers.scripted import Scripted
from claudius.reports.session import ask
from driven import reply
from ear import echo
from lab.loopback.model import ModelServer
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN
from lab.loopback.slack.world import SlackWorld
from slack_side import Wake


async def test_a_listened_to_channel_is_kept_and_not_answered(slack: SlackWorld, wake: Wake) -> None:
    """`slack.channels`: all talk there is heard, but a reply still needs a mention."""
    voice = Scripted(default=echo)

    async with wake(voice=voice, CLAUDIUS_SLACK_CHANNELS="C1") as soul:
        await slack.say("C1", "U1", "lunch?")
        await slack.say("D1", "U1", "hello")
        await slack.until_visible(1)
        await slack.until_quiet()
        await soul.idle()
        overheard = soul.records().conversation("slack:T1:C1:")

    assert [one["content"] for one in (overheard or {})["entries"]] == ["lunch?"]
    assert len(voice.requests) == 1


async def test_a_company_is_never_told_by_the_rehearsal_voice_that_there_is_no_model(
    home: Home, server: SlackServer, slack: SlackWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a network on and no model found, the one owed apology is said; a model that starts later answers the next.

    It was: Ollama started two seconds after the daemon, and everybody on Slack was told that no model is attached.
    """
    runs = asyncio.Event()
    monkeypatch.setattr(chain, "_has_login", lambda _: False)
    monkeypatch.setattr(chain, "_has_ollama", runs.is_set)
    monkeypatch.setattr(current, "LOOK_AGAIN_S", 0.1)
    monkeypatch.setattr(current, "LOOK_SHARE", 0)  # else a slow machine's first search keeps the second call from one
    monkeypatch.setattr(current, "LOOK_FOR_S", 1.0)
    env = {
        "CLAUDIUS_HOME": str(home.root),
        "CLAUDIUS_SLACK_API_URL": server.base_url.rstrip("/"),
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_APP_TOKEN": APP_TOKEN,
    }
    async with ModelServer(default=reply("The model is here.")) as model:
        monkeypatch.setattr(openai_compat, "OLLAMA", f"{model.url}/v1")
        composed = await compose(home, env, networks=True)
        await composed.server.start()
        await composed.server.ready()
        await slack.until_connected()
        status = await ask(home, "status")
        await slack.say("C1", "U1", "<@U0BOT> hello")
        (apology,) = await slack.until_visible(1)
        runs.set()
        await slack.say("C1", "U1", "<@U0BOT> and now?")
        answers = await slack.until_visible(2)
        await composed.server.stop()

    assert status
    assert (status["provider"]["name"], status["provider"]["last_error"]["kind"]) == ("none", "unavailable")
    assert "start Ollama" in status["provider"]["last_error"]["fix"]
    assert "rehearsal" not in apology.text
    assert "does not answer yet" in apology.text
    assert answers[-1].text == "The model is here."
    assert (home.state / chain.HAD_MODEL).exists()


async def test_an_answer_to_a_deleted_thread_does_not_stay_in_the_channel(slack: SlackWorld, wake: Wake) -> None:
    """R24: Slack would post it there silently. It is deleted and given up with its reason, and nothing repeats."""
    await slack.fault("chat.postMessage", "rate_limit", retry_after_s=1)

    async with wake() as soul:
        ts = await slack.say("C1", "U1", "<@U0BOT> hello")
        await slack.until_called("chat.postMessage")
        await slack.delete("C1", ts)
        await slack.until_called("chat.delete")
        await soul.idle()
        dead = soul.records().dead()

    assert {one["reason"] for one in dead} == {"thread_gone"}
    assert [one.kind for one in await slack.trace() if one.by == "app" and one.kind in ("post", "delete")] == [
        "post",
        "delete",
    ]


async def test_a_person_who_left_a_channel_meanwhile_is_shown_nothing_of_it(slack: SlackWorld, wake: Wake) -> None:
    """The audience rule: an earlier process's member list is refreshed before a direct message is thought about."""
    voice = Scripted(default=echo)
    await slack.add_user("U2", "ben")
    await slack.join("C1", "U2")
    direct = await slack.open_dm("U2")
    async with wake(voice=voice) as soul:
        await slack.say("C1", "U1", "<@U0BOT> hello")
        await soul.until_said(1, slack)
        await soul.mind.store.documents.set_state("currentTopic", "Zephyr", "shared:slack:T1:C1", soul.mind.clock())
        await slack.say(direct, "U2", "before")
        await soul.until_said(2, slack)
    await slack.leave("C1", "U2")

    async with wake(voice=voice) as soul:
        await slack.say(direct, "U2", "after")
        await soul.until_said(3, slack)

    assert ["Zephyr" in one.tail for one in voice.requests[1:]] == [True, False]
