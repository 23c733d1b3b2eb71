"""Commands on Slack: authorised by signed id, stored before they are acknowledged, and answered to the asker alone."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from claudius.adapters.slack.commands import commanded
from claudius.adapters.slack.incoming import SlackBot, Who
from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive
from ear import echo
from lab.loopback.slack.state import BOT_TOKEN, BOT_USER
from lab.loopback.slack.world import SlackWorld
from minds import by_tag
from slack_side import Wake

ANA, OZ = "slack:T1:U1", "slack:T1:U9"
OWNED = {"CLAUDIUS_OWNERS": OZ}


async def aloud(slack: SlackWorld) -> list[str]:
    """Return what everybody can see."""
    return [entry.text for entry in await slack.visible() if not entry.to]


async def answers(slack: SlackWorld, soul: Alive, count: int) -> list[tuple[str, str]]:
    """Wait for `count` answers that one person alone can see. Returns the recipient and text of each."""
    await slack.until_called("response_url", count)
    await soul.idle()
    return [(entry.to or "", entry.text) for entry in await slack.trace() if entry.kind == "response"]


async def test_whoami_shows_a_person_their_own_memory_and_nobody_else(slack: SlackWorld, wake: Wake) -> None:
    """A29: the answer is ephemeral, through the response_url, with no channel post, model call or waiting row."""
    voice = Scripted(default=echo)
    await slack.add_user("U9", "Oz")

    async with wake(voice=voice) as soul:
        await slack.slash("C1", "U1", "/claudius", "correct I work on bridges")
        await answers(slack, soul, 1)
        await slack.slash("C1", "U1", "/claudius", "whoami")
        await answers(slack, soul, 2)
        await slack.slash("C1", "U9", "/claudius", "whoami")
        told = await answers(slack, soul, 3)
        counts = soul.records().counts(soul.mind.clock())

    assert [to for to, _ in told] == ["U1", "U1", "U9"]
    assert "I work on bridges" in told[1][1]
    assert "I work on bridges" not in told[2][1]
    assert await aloud(slack) == []
    assert voice.requests == []
    assert counts["inbox"]["pending"] == 0


async def test_what_is_said_with_a_command_is_kept_as_people_read_it(slack: SlackWorld, wake: Wake) -> None:
    """Slack escapes a command's text like any other: special characters, people and links are decoded once."""
    async with wake() as soul:
        await slack.slash("C1", "U1", "/claudius", "correct I do R&amp;D with <@U9|oz> in <#C1|general>")
        ((_, told),) = await answers(slack, soul, 1)
        known = await soul.mind.store.people.known_of(ANA, soul.mind.clock())

    assert "I do R&D with @oz in #general" in known.models[0].markdown
    assert told.endswith("I do R&amp;D with @oz in #general")


async def test_a_person_is_muted_by_their_mention_under_every_id(slack: SlackWorld, wake: Wake) -> None:
    """A command's mention names the person as Slack escapes it, in any letters; an id that is linked is theirs, too."""
    for user, name in (("U9", "Oz"), ("U7", "Anna")):
        await slack.add_user(user, name)
    async with wake(**OWNED, voice=Scripted(default=echo)) as soul:
        for number, user in enumerate(("U1", "U7"), 1):
            await slack.slash("C1", user, "/claudius", "why")
            await answers(slack, soul, number)
        await soul.mind.store.people.link(ANA, "slack:T1:U7")
        await slack.slash("C1", "U9", "/claudius", "mute <@U7|ana> FOR 2h")
        (*_, (_, muted)) = await answers(slack, soul, 3)
        await slack.say("C1", "U1", f"<@{BOT_USER}> hello")
        await slack.until_quiet()
        await soul.idle()
        unanswered = await aloud(slack)
        await slack.slash("C1", "U9", "/claudius", "unmute <@U1|ana>")
        await answers(slack, soul, 4)
        await slack.say("C1", "U1", f"<@{BOT_USER}> hello again")
        await slack.until_called("chat.postMessage")
        await soul.idle()
        answered = await aloud(slack)

    assert muted.startswith("I answer nothing of theirs until ")
    assert unanswered == []
    assert answered == ["re hello again"]


async def test_plans_are_listed_and_cancelled_by_their_numbers(slack: SlackWorld, wake: Wake) -> None:
    """A4: in a channel those of its threads, by the asker's own clock; no one lists or cancels another's."""
    act = json.dumps({"do": "remind", "at": "2030-03-04T09:00", "zone": "UTC", "text": "oil the chain"})
    voice = Scripted(default=by_tag(acts=act))
    await slack.add_user("U9", "Oz")
    await slack.join("C1", "U9", deliver=False)
    async with wake(voice=voice) as soul:
        await slack.say("C1", "U1", f"<@{BOT_USER}> remind me to oil the chain")
        await slack.until_called("chat.postMessage")
        await soul.idle()
        for n, (person, asked) in enumerate(
            [("U1", "plans"), ("U9", "plans"), ("U9", "cancel p1"), ("U1", "cancel p1"), ("U1", "plans")], 1
        ):
            await slack.slash("C1", person, "/claudius", asked)
            told = await answers(slack, soul, n)

    assert [text for _, text in told] == [
        "p1: Mon 4 Mar 2030, 9:00 · oil the chain",
        "Nothing waits here for you.",
        "There is no p1 here that waits for you; `plans` lists what does.",
        "Taken back: oil the chain",
        "Nothing waits here for you.",
    ]


async def test_quiet_by_mention_is_of_the_channel(slack: SlackWorld, wake: Wake, home: Home) -> None:
    """A command that mentions us at the top of a channel is about the channel, not about a thread of its own."""
    async with wake() as soul:
        await slack.say("C1", "U1", f"<@{BOT_USER}> !quiet")
        await slack.until_called("chat.postEphemeral")
        await soul.idle()

    with closing(sqlite3.connect(home.database)) as db:
        assert db.execute("SELECT conversation, is_quiet FROM thread").fetchall() == [("slack:T1:C1:", 1)]


async def test_a_command_is_kept_before_it_is_acknowledged(slack: SlackWorld, wake: Wake) -> None:
    """§1.8: when Slack gets its acknowledgement, the row stands in the inbox under `slack:cmd:<trigger_id>`."""
    async with wake() as soul:
        trigger = await slack.slash("C1", "U1", "/claudius", "correct I am Ana")
        await slack.until_fate("acked")
        with closing(sqlite3.connect(f"file:{soul.home.database}?mode=ro", uri=True)) as kept:
            rows = kept.execute("SELECT person FROM inbox WHERE key = ?", (f"slack:cmd:{trigger}",)).fetchall()
        await answers(slack, soul, 1)

    assert rows == [(ANA,)]


async def test_a_command_that_a_crash_interrupted_is_carried_out_by_the_next_process(home: Home, wake: Wake) -> None:
    """An acknowledged command is carried out though no one is left to be answered. Its words leave the inbox."""
    body = {"command": "/claudius", "text": "correct I am Ana", "trigger_id": "1", "user_id": "U1", "channel_id": "C1"}
    heard = commanded(body | {"response_url": ""}, SlackBot("T1", "U0BOT", "B1"), Who("Ana"), 1_700_000_000.0)
    assert heard
    store = SqliteStore(home.database)
    await store.open()
    await store.inbox.accept([heard], datetime.now(UTC))
    await store.close(clean=False)

    async with wake() as soul:
        await soul.idle()
        known = await soul.mind.store.people.known_of(ANA, datetime.now(UTC))

    assert "I am Ana" in known.models[0].markdown
    with closing(sqlite3.connect(home.database)) as kept:
        assert kept.execute("SELECT count(*) FROM inbox WHERE payload LIKE '%I am Ana%'").fetchone() == (0,)


async def test_why_names_what_an_answer_drew_on(slack: SlackWorld, wake: Wake) -> None:
    """`why` links the portraits and messages behind the asker's last answer, and never quotes them."""
    async with wake() as soul:
        await slack.say("C1", "U1", "<@U0BOT> hello")
        await soul.until_said(1, slack)
        await slack.slash("C1", "U1", "/claudius", "why")
        ((to, told),) = await answers(slack, soul, 1)

    assert to == "U1"
    assert "https://slack.com/archives/C1/p" in told
    assert "hello" not in told


async def test_forget_me_asks_first_then_gives_the_receipt(slack: SlackWorld, wake: Wake) -> None:
    """`forget me` erases nothing before the confirmation, then everything. That person alone gets the receipt."""
    async with wake() as soul:
        await slack.say("D1", "U1", "my secret is the blue heron in the garden")
        await soul.until_said(1, slack)
        await slack.slash("D1", "U1", "/claudius", "forget me yes")
        await answers(slack, soul, 1)
        before = soul.records().person(ANA)
        await slack.slash("D1", "U1", "/claudius", "forget me yes")
        told = await answers(slack, soul, 2)
        after = soul.records().person(ANA)

    assert before is not None
    assert "forget me yes" in told[0][1]
    assert told[1][1].startswith("You are forgotten.")
    assert "and found none" in told[1][1]
    assert after is None


@pytest.mark.parametrize("user", ["U2", "U3"])
async def test_guests_and_outsiders_may_not_give_commands(slack: SlackWorld, wake: Wake, user: str) -> None:
    """S23: a command of a guest or an outsider is acknowledged, and leaves no row and no answer."""
    facts: dict[str, dict[str, Any]] = {"U2": {"is_restricted": True}, "U3": {"is_stranger": True}}
    await slack.add_user(user, "Eve", **facts[user])

    async with wake() as soul:
        await slack.slash("C1", user, "/claudius", "whoami")
        await slack.until_fate("acked")
        await soul.idle()
        people = soul.records().people()

    assert await slack.calls("response_url") == []
    assert people == []


async def test_only_an_owner_brings_the_soul_into_a_channel_and_anybody_sends_it_out(
    slack: SlackWorld, wake: Wake
) -> None:
    """S24: the signed id decides.

    The change is announced once and outlives the process; once sent out, it answers mentions.
    """
    await slack.add_user("U9", "Oz")
    async with wake(**OWNED) as soul:
        await slack.slash("C1", "U1", "/ensoul")
        await answers(slack, soul, 1)
        for _ in range(2):
            await slack.slash("C1", "U9", "/ensoul", "listen")
        await answers(slack, soul, 3)
        await slack.until_visible(4)
        await slack.say("C1", "U1", "<@U0BOT> hello")
        await slack.until_quiet()
        await soul.idle()
    async with wake(**OWNED) as soul:
        await slack.slash("C1", "U1", "/ensoul", "status")
        told = [text for _, text in await answers(slack, soul, 4)]
        silent = await aloud(slack)
        await slack.slash("C1", "U1", "/ensoul", "off")
        await answers(slack, soul, 5)
        await slack.say("C1", "U1", "<@U0BOT> and now?")
        await soul.until_said(7, slack)
        said = await aloud(slack)

    assert "owner" in told[0]
    assert told[3].startswith(told[2])
    assert "So said Oz, on" in told[3]
    assert "nothing here yet" in told[3]
    assert len(silent) == 1
    assert silent[0].startswith("I listen in this channel")
    assert "/ensoul off" in silent[0]
    assert said == [*silent, "re and now?"]


async def test_people_named_by_the_owner_may_turn_the_soul_on(slack: SlackWorld, wake: Wake) -> None:
    """`ensoul.who` lists ids besides the owners, and a bare `/ensoul` means `on`.

    On arrival the soul reads recent messages.
    """
    await slack.add_user("U2", "Ben")
    async with wake(**OWNED, CLAUDIUS_ENSOUL_WHO="slack:T1:U1") as soul:
        await slack.say("C1", "U2", "the bridge opens on Monday")
        await slack.until_fate("acked")
        await soul.idle()
        await slack.slash("C1", "U1", "/ensoul")
        ((_, told),) = await answers(slack, soul, 1)
        await soul.until_said(2, slack)
        entries = (soul.records().conversation("slack:T1:C1:") or {})["entries"]

    assert told.startswith("I take part here")
    assert [(one["entry_type"], one["content"][:26]) for one in entries[:2]] == [
        ("userMessage", "the bridge opens on Monday"),
        ("perception", "You were brought into this"),
    ]
    assert [line.partition(":")[0] for line in await aloud(slack)] == ["I take part in this channel from now on"]


async def test_after_its_removal_from_a_channel_it_no_longer_takes_part(slack: SlackWorld, wake: Wake) -> None:
    """Slack reports the app's removal as `channel_left`. A person who invites the app again must turn the soul on again."""
    await slack.add_user("U9", "Oz")
    async with wake(**OWNED) as soul:
        await slack.slash("C1", "U9", "/ensoul", "listen")
        await answers(slack, soul, 1)
        await slack.leave("C1", BOT_USER)
        await slack.until_quiet()
        await slack.slash("C1", "U1", "/ensoul", "status")
        away = (await answers(slack, soul, 2))[-1][1]
        await slack.join("C1", BOT_USER)
        await slack.say("C1", "U1", "<@U0BOT> hello")
        await soul.until_said(3, slack)
    async with wake(**OWNED) as soul:
        await slack.slash("C1", "U1", "/ensoul", "status")
        back = (await answers(slack, soul, 3))[-1][1]

    assert "I am not in this channel; invite me" in away
    assert (
        back
        == "I answer here when I am mentioned, and follow the thread that it opens. Of you I hold nothing here yet."
    )
    assert (await aloud(slack))[-1] == "re hello"


async def test_a_missing_scope_is_named_when_somebody_turns_the_soul_on(slack: SlackWorld, wake: Wake) -> None:
    """Without the channel history scope the soul cannot hear. A person who turns it on is told so at once."""
    await slack.add_user("U9", "Oz")
    scopes = await slack.scopes(BOT_TOKEN)
    async with wake(**OWNED) as soul:
        await slack.allow(BOT_TOKEN, [one for one in scopes if one != "channels:history"])
        await slack.slash("C1", "U9", "/ensoul", "on")
        ((_, told),) = await answers(slack, soul, 1)
        await slack.allow(BOT_TOKEN, scopes)
        await slack.slash("C1", "U9", "/ensoul", "status")
        mended = (await answers(slack, soul, 2))[-1][1]

    assert "the app lacks the scope channels:history" in told
    assert "claudius slack manifest" in told
    assert "scope" not in mended


async def test_off_in_a_direct_message_mutes_until_on(slack: SlackWorld, wake: Wake) -> None:
    """In a direct message `off` mutes the soul: it hears and stores messages, and says nothing until `on`."""
    voice = Scripted(default=echo)
    async with wake(voice=voice) as soul:
        dm = await slack.open_dm("U1")
        await slack.slash(dm, "U1", "/ensoul", "off")
        await answers(slack, soul, 1)
        await slack.say(dm, "U1", "are you there?")
        await slack.until_quiet()
        await soul.idle()
        silent = await aloud(slack)
        await slack.slash(dm, "U1", "/ensoul")
        await answers(slack, soul, 2)
        await slack.say(dm, "U1", "and now?")
        await soul.until_said(3, slack)

    assert silent == []
    assert await aloud(slack) == ["re and now?"]
    assert "are you there?" in voice.requests[0].history[0].content


async def test_the_same_words_work_in_a_thread(slack: SlackWorld, wake: Wake) -> None:
    """`!whoami` works where slash commands do not, and only that person sees the answer.

    `!quiet` holds until the next mention.
    """
    voice = Scripted(default=echo)

    async with wake(voice=voice) as soul:
        ts = await slack.say("C1", "U1", "<@U0BOT> hello")
        await soul.until_said(1, slack)
        await slack.say("C1", "U1", "!whoami", thread_ts=ts)
        (shown,) = await slack.until_called("chat.postEphemeral")
        await slack.say("C1", "U1", "!quiet", thread_ts=ts)
        await slack.until_called("chat.postEphemeral", 2)
        await slack.say("C1", "U1", "are you there?", thread_ts=ts)
        await slack.until_quiet()
        await soul.idle()
        await slack.say("C1", "U1", f"<@{BOT_USER}> are you?", thread_ts=ts)
        await soul.until_said(4, slack)

    assert (shown.arguments["user"], shown.arguments["thread_ts"]) == ("U1", ts)
    assert await aloud(slack) == ["re hello", "re are you?"]
    assert len(voice.requests) == 2


async def test_the_app_home_shows_each_viewer_their_own(slack: SlackWorld, wake: Wake) -> None:
    """The App Home shows the state words, what is known of the viewer, and a button that forgets after confirmation."""
    await slack.add_user("U9", "Oz")

    async with wake() as soul:
        await slack.slash("C1", "U1", "/claudius", "correct I keep bees")
        await answers(slack, soul, 1)
        await slack.open_home("U1")
        await slack.open_home("U9")
        await slack.until_called("views.publish", 2)
        await soul.idle()
        mine, theirs = json.dumps(await slack.home("U1")), json.dumps(await slack.home("U9"))
        await slack.click("", "", "U1", "forget_me")
        await slack.until_called("views.publish", 3)
        await soul.idle()
        await slack.click("", "", "U1", "forget_me_yes")
        await slack.until_called("views.publish", 4)
        await soul.idle()
        forgotten = json.dumps(await slack.home("U1"))
        known = soul.records().person(ANA)

    assert "I keep bees" in mine
    assert "neutral" not in mine
    assert "I keep bees" not in theirs
    assert "You are forgotten" in forgotten, forgotten
    assert known is None
