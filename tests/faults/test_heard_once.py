"""R5 to R7, R26: what comes twice, out of order, over sockets that break, and in odd texts, is heard once, in order."""

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from claudius.prompt import valid
from driven import reply
from lab.loopback.slack.envelopes import Parcel
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN
from lab.loopback.slack.world import SlackWorld
from slack_daemon import MENTION, PATIENCE_S, SlackDaemon, slack_daemon

pytestmark = pytest.mark.slow

SAID = 12


async def said(daemon: SlackDaemon) -> list[Parcel]:
    """Speak by mention, in the thread that it opens, and in a DM. Returns the events, none of them delivered."""
    slack, post = daemon.slack, daemon.server.service.post
    await slack.hold_events()
    for number in range(SAID // 3):
        await slack.set(is_mention_first=bool(number % 2))
        thread = await slack.say("C1", "U1", f"{MENTION} mention {number}")
        await slack.say("C1", "U1", f"in its thread {number}", thread_ts=thread)
        await slack.say("D1", "U1", f"direct {number}")
    held = list(post.held or ())
    await slack.release_events()
    return held


async def test_r05_each_event_comes_up_to_four_times(tmp_path: Path) -> None:
    """New envelopes, retries, the pair of a mention, two sockets, a restart and a day's delay: one reply each."""
    async with slack_daemon(tmp_path) as daemon:
        slack, post = daemon.slack, daemon.server.service.post
        await daemon.start()
        held = await said(daemon)
        for parcel in held:
            for _ in range(random.Random(parcel.ts).randrange(4)):  # noqa: S311 - a test's order, no secret
                post.bring(parcel)
        await slack.until_visible(SAID, within_s=PATIENCE_S)
        await slack.until_quiet(within_s=PATIENCE_S)
        await slack.set(ack_deadline_s=0.0)  # no ack is in time: each event comes four times, as a retry
        retried = [*held, *await said(daemon)]
        for parcel in held:
            post.bring(parcel)
        await slack.until_visible(2 * SAID, within_s=PATIENCE_S)
        await slack.until_quiet(within_s=PATIENCE_S)
        await slack.set(ack_deadline_s=3.0)
        await two_sockets(daemon, retried)
        for later in (timedelta(0), timedelta(hours=25)):
            await daemon.stop()
            await daemon.start(env={"CLAUDIUS_CLOCK": (datetime.now(UTC) + later).isoformat()})
            for parcel in retried:
                post.bring(parcel)
            await slack.until_quiet(within_s=PATIENCE_S)
        await daemon.drained(heard=2 * SAID)
        await daemon.stop()

        assert {one.attempt for one in await slack.deliveries()} == {0, 1, 2, 3}
        assert len(await slack.visible()) == 2 * SAID
        assert not await daemon.judged()


async def two_sockets(daemon: SlackDaemon, held: list[Parcel]) -> None:
    """Deliver events while another socket takes its share of them and acknowledges nothing."""
    client = AsyncWebClient(BOT_TOKEN, base_url=daemon.server.base_url)
    ticket = await client.apps_connections_open(app_token=APP_TOKEN)
    async with aiohttp.ClientSession() as session, session.ws_connect(str(ticket["url"])):
        await daemon.slack.until_connected(2, within_s=PATIENCE_S)
        await daemon.slack.set(ack_deadline_s=0.3)
        for parcel in held:
            daemon.server.service.post.bring(parcel)
        await daemon.slack.until_quiet(within_s=PATIENCE_S)
    await daemon.slack.set(ack_deadline_s=3.0)
    await daemon.slack.until_connected(1, within_s=PATIENCE_S)


CONVERSATIONS, NIGHTLY = 40, 200


async def shuffled(root: Path, conversations: int) -> None:
    """Say three things in each of many threads during a turn of each, deliver them 3, 1, 2, and check the order."""
    async with slack_daemon(root) as daemon:
        slack = daemon.slack
        daemon.machine.scripted(*[{"deltas": [reply(f"busy {n}")], "delay_s": 8.0} for n in range(conversations)])
        await daemon.start()
        threads = [await slack.say("C1", "U1", f"{MENTION} first of {number}") for number in range(conversations)]
        await daemon.until(lambda: len(daemon.rows("SELECT 1 FROM inbox")) == conversations, what="all first messages")
        await slack.hold_events()
        said = [
            await slack.say("C1", "U1", f"{word} of {number}", thread_ts=thread)
            for word in ("second", "third", "fourth")
            for number, thread in enumerate(threads)
        ]
        held = daemon.server.service.post.held or []
        rank = {ts: (2, 0, 1).index(at // conversations) for at, ts in enumerate(said)}
        held.sort(key=lambda parcel: rank[parcel.ts])
        await slack.release_events()
        await daemon.drained(heard=4 * conversations)
        await slack.until_visible(4 * conversations, within_s=PATIENCE_S)
        await daemon.stop()

        answered = defaultdict(list)
        for thread, position in daemon.rows(
            "SELECT i.conversation, i.position FROM outbox o JOIN inbox i ON i.turn = o.turn ORDER BY o.seq"
        ):
            answered[thread].append(position)
        assert len(answered) == conversations
        assert all(positions == sorted(positions) for positions in answered.values())
        assert not await daemon.judged()


async def test_r06_a_busy_conversation_keeps_the_order_of_what_was_said(tmp_path: Path) -> None:
    """Forty conversations get three messages each, delivered third, first, second."""
    await shuffled(tmp_path, CONVERSATIONS)


@pytest.mark.nightly
async def test_r06_two_hundred_conversations_interleaved(tmp_path: Path) -> None:
    """The same holds with two hundred conversations."""
    await shuffled(tmp_path, NIGHTLY)


GHOSTS = 9


def troubles(slack: SlackWorld) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return every possible socket failure except the ghost sockets."""

    async def stale_tickets() -> None:
        """Cut the socket, and hand out tickets that do not connect."""
        await slack.spoil_tickets(4)
        await slack.drop_sockets()

    async def refused() -> None:
        """Cut the socket, and refuse the next ones."""
        await slack.refuse_upgrades(3)
        await slack.drop_sockets()

    return {
        "dropped": slack.drop_sockets,
        "closed": slack.close_sockets,
        "refresh": lambda: slack.disconnect("refresh_requested"),
        "warning": lambda: slack.disconnect("warning"),
        "disabled": lambda: slack.disconnect("link_disabled"),
        "stale tickets": stale_tickets,
        "refused": refused,
        "half open": lambda: slack.sicken("half_open"),
        "deaf": lambda: slack.sicken("deaf"),
    }


async def test_r07_whatever_becomes_of_the_socket(tmp_path: Path) -> None:
    """Failures follow each other, mid-ack, mid-turn and after; later and lost messages are both answered."""
    async with slack_daemon(tmp_path, TEST_WATCHFUL="1") as daemon:
        slack = daemon.slack
        kinds = troubles(slack)
        daemon.machine.scripted(*[{"deltas": [reply("slowly")], "delay_s": 0.2}] * (3 * len(kinds)))
        await daemon.start()
        for number, trouble in enumerate(kinds.values()):
            await slack.say("D1", "U1", f"mid-ack, then mid-turn {number}")
            await trouble()
            await slack.say("D1", "U1", f"lost {number}", deliver=False)
            await slack.say("D1", "U1", f"after {number}")
            await slack.until_visible(3 * (number + 1), within_s=PATIENCE_S)
        await slack.heal()
        await ghosts(daemon)
        said = 3 * len(kinds) + GHOSTS
        await slack.until_visible(said, within_s=PATIENCE_S)
        await slack.until_connected(1, within_s=PATIENCE_S)
        await daemon.drained(heard=said)
        sockets = await slack.sockets()
        await daemon.stop()

        assert [one["health"] for one in sockets] == ["live"]
        assert not await daemon.judged()


async def ghosts(daemon: SlackDaemon) -> None:
    """Have nine other sockets take their share of the events and acknowledge none."""
    client = AsyncWebClient(BOT_TOKEN, base_url=daemon.server.base_url)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for _ in range(GHOSTS):
            ticket = await client.apps_connections_open(app_token=APP_TOKEN)
            await stack.enter_async_context(session.ws_connect(str(ticket["url"])))
        await daemon.slack.until_connected(GHOSTS + 1, within_s=PATIENCE_S)
        await daemon.slack.set(ack_deadline_s=0.5)
        for number in range(GHOSTS):
            await daemon.slack.say("D1", "U1", f"beside ghosts {number}")
        await daemon.slack.until_quiet(within_s=PATIENCE_S)
    await daemon.slack.set(ack_deadline_s=3.0)
    await daemon.slack.drop_sockets()


TEXTS = {
    "the longest": "word " * 8_000,
    "one character": "x",
    "NUL": "a\x00b",
    "lone surrogates": "a\ud800b\udc00c",
    "an override": "abc \u202egnp.exe\u202c end",
    "combining marks": "e" + "\u0301" * 10_000,
    "joined": "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466" * 1_000,
    "a hundred thousand mentions": "<@U1> " * 100_000,
    "fences": "```py\n" + "x = 1\n" * 2_000 + "```",
}
ENTRIES = "SELECT content FROM entry WHERE entry_type = 'userMessage' ORDER BY rowid"


async def test_r26_what_is_heard_is_kept_exactly(tmp_path: Path) -> None:
    """JSON round trip: the row holds exactly what people see, and each text is answered once."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await daemon.start()
        said = {await slack.say("D1", "U1", text): text for text in TEXTS.values()}
        await slack.until_visible(len(said), within_s=PATIENCE_S)
        await daemon.drained(heard=len(said))
        await daemon.stop()
        kept = [text for (text,) in daemon.rows(ENTRIES)]

        assert kept == [valid(text.replace("<@U1>", "@ana")) for text in said.values()]
        assert not await daemon.judged()


@pytest.mark.parametrize("name", ["the longest", "joined", "fences"])
async def test_r26_what_is_said_is_split_right(tmp_path: Path, name: str) -> None:
    """A long reply has posts of at most 3,000 UTF-16 units, which together are what memory holds."""
    async with slack_daemon(tmp_path) as daemon:
        daemon.machine.scripted(reply(TEXTS[name]))
        await daemon.start()
        await daemon.slack.say("D1", "U1", "go on")
        await daemon.slack.until_visible(2, within_s=PATIENCE_S)
        await daemon.drained(heard=1)
        await daemon.stop()
        posts = [entry.text for entry in await daemon.slack.visible()]

        assert len(posts) > 1
        assert all(len(post.encode("utf-16-le")) // 2 <= 3000 for post in posts)
        assert not await daemon.judged()
