"""R4, R12 to R15: models that hang, are slow, refuse, talk garbage, or stop in the middle."""

import random
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from claudius.home import Home
from claudius.intent import Utterance
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from driven import reply
from lab.loopback.model import Reply
from lab.loopback.slack.envelopes import Post
from slack_daemon import PATIENCE_S, SlackDaemon, slack_daemon
from voiced import voiced

pytestmark = pytest.mark.slow

HUNG, EVENTS, OTHERS = 5, 500, 3


class Watched(Post):
    """A server that checks, at each ack, whether its message is in the daemon's database."""

    daemon: SlackDaemon
    early: list[str]

    def acknowledge(self, envelope_id: str, answer: dict[str, Any]) -> None:
        """Check the database, and then take the ack."""
        sent = next(one for one in reversed(self.journal.deliveries) if one.envelope_id == envelope_id)
        is_ours = any(one.by == "app" and one.ts == sent.ts for one in self.journal.trace)
        if not is_ours and not self.daemon.rows(f"SELECT 1 FROM inbox WHERE key = 'slack:T1:{sent.channel}:{sent.ts}'"):  # noqa: S608 - a test's own ids
            self.early.append(envelope_id)
        super().acknowledge(envelope_id, answer)


async def test_r04_no_ack_waits_for_the_model(tmp_path: Path) -> None:
    """500 events during hanging turns are acknowledged in time and after their own row. Other people are answered."""
    async with slack_daemon(tmp_path) as daemon:
        service, slack = daemon.server.service, daemon.slack
        watched = Watched(service.settings, service.journal, service.sockets)
        watched.daemon, watched.early = daemon, []
        service.post = watched
        await slack.set(ack_deadline_s=PATIENCE_S)
        daemon.machine.scripted(*[{"hang": True}] * HUNG)
        places = []
        for number in range(HUNG + OTHERS):
            await slack.add_user(f"V{number}", f"person {number}")
            places.append((await slack.open_dm(f"V{number}"), f"V{number}"))
        await daemon.start()
        for channel, user in places[:HUNG]:
            await slack.say(channel, user, "first")
        requests = daemon.machine.requests
        await daemon.until(
            lambda: requests.exists() and len(requests.read_text().splitlines()) == HUNG, what="turns that hang"
        )
        for number in range(EVENTS - HUNG):
            await slack.say(*places[number % HUNG], f"event {number}")
        for channel, user in places[HUNG:]:
            await slack.say(channel, user, "does nobody else hang?")
        await slack.until_fate("acked", EVENTS + OTHERS, within_s=PATIENCE_S)
        answered = await slack.until_visible(OTHERS, within_s=PATIENCE_S)
        await daemon.until(lambda: daemon.counts()["inbox"]["pending"] == EVENTS, what="nothing else waits")
        await daemon.kill()

        assert watched.early == []
        assert {one.attempt for one in await slack.deliveries()} == {0}
        assert {one.channel for one in answered} == {channel for channel, _ in places[HUNG:]}

        daemon.machine.scripted()
        await daemon.start()
        await slack.until_visible(EVENTS + OTHERS, within_s=PATIENCE_S)
        await daemon.drained(heard=EVENTS + OTHERS)
        await daemon.stop()

        assert not await daemon.judged()


DEADLINES = {
    "CLAUDIUS_MODEL_FIRST_BYTE_S": "1",
    "CLAUDIUS_MODEL_IDLE_S": "0.5",
    "CLAUDIUS_MODEL_TOTAL_S": "3",
    "CLAUDIUS_MODEL_RETRIES": "1",
    "CLAUDIUS_RUNTIME_PATIENCE_S": "2",
}
MONOLOGUE = "<internal_monologue>CANARY in thought, quite long enough to be a thought.</internal_monologue>\n"
SLOW = {
    "no byte": Reply(text=reply("late"), fault="hang", when="slowly", keep=True),
    "one byte now and then": Reply(text=reply("late"), gap_s=2.0, when="slowly", keep=True),
    "silent after the monologue": Reply(text=MONOLOGUE + "<external_dial", when="slowly", fault="hang_mid", keep=True),
}


@pytest.mark.parametrize("kind", SLOW)
async def test_r12_the_asker_is_answered_once_and_nobody_else_waits(home: Home, kind: str) -> None:
    """The asker gets one reply or apology, in character, and another person is answered while the model hangs."""
    async with voiced(home, SLOW[kind], default=reply("at once"), **DEADLINES) as all_of_it:
        await all_of_it.hear("slowly please")
        other = await all_of_it.heard("hello", person="ben")
        seen = await all_of_it.soul.network.until_visible(2, within_s=60)

    assert other == "at once"
    assert [one.conversation for one in seen] == ["rehearsal:t:dm-ben:", "rehearsal:t:dm-ana:"]
    assert "CANARY" not in seen[1].text


async def test_r12_a_model_that_comes_back_is_heard(home: Home) -> None:
    """If it hangs twice and then speaks, it is asked again within the turn's timeout, without an apology."""
    hang = Reply(fault="hang")
    async with voiced(
        home, hang, hang, default=reply("here I am"), **DEADLINES | {"CLAUDIUS_RUNTIME_PATIENCE_S": "60"}
    ) as it:
        said = await it.heard("hello")

        assert said == "here I am"
        assert len(it.model.asked) == 3


async def test_r12_a_short_turn_timeout_is_kept_whatever_the_deadlines_of_a_call(home: Home) -> None:
    """A silent model is given up at the turn's timeout, not after each call's minute and its retries."""
    hang = Reply(text=reply("late"), fault="hang", keep=True)
    async with voiced(home, hang, default=reply("x"), CLAUDIUS_RUNTIME_PATIENCE_S="1") as it:
        said = await it.heard("hello")

        assert "model" in said
        assert len(it.model.asked) == 1


PASSING = {
    "429": Reply(fault="status", status=429, retry_after=1),
    "529": Reply(fault="status", status=529),
    "500": Reply(fault="status", status=500),
    "an error inside a 200": Reply(text=reply("never"), fault="error_event", at=0),
}
FINAL = {
    "no credit": Reply(fault="status", status=400, message="Your credit balance is too low to access the API"),
    "spend limit": Reply(fault="status", status=429, message="You have reached your specified API usage limits"),
    "401": Reply(fault="status", status=401, message="invalid x-api-key"),
    "403": Reply(fault="status", status=403),
}


@pytest.mark.parametrize("kind", PASSING)
async def test_r13_what_passes_is_asked_again(home: Home, kind: str) -> None:
    """The answer comes after a wait, never before the service's Retry-After, and without an apology."""
    async with voiced(home, PASSING[kind], default=reply("here")) as it:
        said = await it.heard("hello")

        assert said == "here"
        assert len(it.model.asked) == 2
        waits = [after.at - before.at for before, after in pairwise(it.model.asked)]
        assert min(waits) >= (PASSING[kind].retry_after or 0)


@pytest.mark.parametrize("kind", FINAL)
async def test_r13_what_does_not_pass_is_asked_once_and_no_rehearsal_stands_in(home: Home, kind: str) -> None:
    """One call and one apology: the rehearsal is next in the chain, and stays silent."""
    async with voiced(home, default=FINAL[kind], voices=("anthropic_api", "rehearsal")) as it:
        said = await it.heard("hello")
        entries = (it.soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]
        spoken = [entry for entry in entries if entry["entry_type"] == "externalDialog"]

        assert len(it.model.asked) == 1
        assert [entry["metadata"]["apology"] for entry in spoken] == ["provider_down"]
        assert spoken[0]["turn"] not in said


async def test_r13_a_closed_account_rests_and_the_next_provider_answers(home: Home) -> None:
    """After a refusal the account is not asked again, and the next provider of the chain is asked once each time."""
    refusal = FINAL["401"]
    async with voiced(home, refusal, default=reply("the other"), voices=("anthropic_api", "openai_compat")) as it:
        apology = await it.heard("one")
        said = await it.heard("two")

        assert "model" in apology
        assert said == "the other"
        assert [call.path for call in it.model.asked] == ["/v1/messages", "/v1/chat/completions"]


CANARY = "CANARY-7f3a"
THOUGHT = f"{CANARY} is what I think of her, and I would never say so."
GARBAGE: dict[str, Reply] = {
    "empty": Reply(text=""),
    "blanks": Reply(text=" \n\t "),
    "only a thought": Reply(text=f"<internal_monologue>{THOUGHT}</internal_monologue>"),
    "unclosed": Reply(text=f"<internal_monologue>{THOUGHT}\n<external_dialogue>"),
    "never opened": Reply(text=f"{THOUGHT}</internal_monologue>"),
    "nested": Reply(text=f"<external_dialogue><internal_monologue>{THOUGHT}</internal_monologue></external_dialogue>"),
    "re-ordered": Reply(text=f"<external_dialogue></external_dialogue><internal_monologue>{THOUGHT}</internal_monologue>"),
    "doubled": Reply(text=f"<internal_monologue><internal_monologue>{THOUGHT}</internal_monologue></internal_monologue>"),
    "wrong case": Reply(text=f"<Internal_Monologue>{THOUGHT}</INTERNAL_MONOLOGUE>"),
    "attributes": Reply(text=f"<internal_monologue a=\"1\" verb='x>y' >{THOUGHT}</internal_monologue >"),
    "cdata": Reply(text=f"<internal_monologue><![CDATA[{THOUGHT}]]></internal_monologue>"),
    "fenced": Reply(text=f"```xml\n<internal_monologue>{THOUGHT}</internal_monologue>\n```"),
    "half a tag": Reply(text=f"<internal_monologue>{THOUGHT}</internal_monol"),
    "lone surrogates": Reply(text=f"<internal_monologue>\ud800{THOUGHT}\udfff</internal_monologue>"),
    "a refusal": Reply(text=f"<internal_monologue>{THOUGHT}", stop_reason="refusal"),
    "cut by the limit": Reply(text=f"<internal_monologue>{THOUGHT}", stop_reason="max_tokens"),
}  # fmt: skip


@pytest.mark.parametrize("kind", GARBAGE)
async def test_r14_no_garbage_shows_a_thought(home: Home, kind: str) -> None:
    """The same garbage twice gives one visible line without the thought, in at most two calls. The next is answered."""
    async with voiced(home, GARBAGE[kind], GARBAGE[kind], default=reply("clear")) as it:
        said = await it.heard("hello")
        calls = len(it.model.asked)
        it.model.say()
        after = await it.heard("and now?")

        assert calls <= 2
        assert CANARY not in said
        assert said.strip()
        assert after == "clear"


@pytest.mark.parametrize("kind", ["huge", "huge_line"])
async def test_r14_a_flood_is_abandoned(home: Home, kind: str) -> None:
    """A stream of a hundred megabytes is abandoned long before its end, and the asker is answered."""
    flood = Reply(text="<external_dialogue>x</external_dialogue>", deltas=("<external_dialogue>", "x"), fault=kind)
    async with voiced(home, flood, flood, default=reply("clear")) as it:
        await it.heard("hello")
        after = await it.heard("and now?")

        assert all(not call.finished for call in it.model.asked[:1])
        assert after == "clear"


async def test_r14_a_million_tags_hold_nobody_up(home: Home) -> None:
    """A reply of tags alone is read once, in one pass."""
    tags = Reply(deltas=("<internal_monologue></internal_monologue>" * 25_000,))
    async with voiced(home, tags, tags, default=reply("clear")) as it:
        said = await it.heard("hello")

        assert "<" not in said


WORDS = "The first sentence stands. The second is longer, and ends where it should. And the third?"
CANONICAL = "<appraisal>nothing</appraisal>\n<acts>none</acts>\n" + reply(WORDS, user_model_check="false")
BORDERS = [CANONICAL.index(piece) + shift for piece in ("<", ">", "</", WORDS, WORDS[-1]) for shift in (0, 1)]
PLACES = sorted({*BORDERS, len(CANONICAL), *random.Random(15).sample(range(len(CANONICAL)), 50)})  # noqa: S311 - places


@dataclass(slots=True)
class Watching(RehearsalAdapter):
    """An in-memory network whose people watch. It keeps every state in which a message was visible."""

    states: dict[str, list[str]] = field(default_factory=dict)

    async def show(self, utterance: Utterance, text: str) -> None:
        """Update a growing message, and record what is visible now."""
        await super(Watching, self).show(utterance, text)
        shown = next(one.text for one in self.visible if one.key == utterance.key)
        self.states.setdefault(utterance.key, []).append(shown)


async def cut_everywhere(home: Home, places: list[int]) -> None:
    """Cut one reply of many people at each place, and check the rule for each."""
    network = Watching()
    async with voiced(home, default="unused", network=network, CLAUDIUS_PIPELINE_STREAM="rehearsal") as it:
        for number, at in enumerate(places):
            it.model.say(Reply(deltas=tuple(CANONICAL[:at]), fault="no_stop"))
            it.model.default = CANONICAL
            await it.heard(f"hello {number}", person=f"p{number}")
        finished = list(network.visible)

    assert len(finished) == len(places)
    for one in finished:
        assert one.is_complete
        assert WORDS.startswith(one.text.rstrip(" …"))
        assert all(one.text.startswith(state.rstrip()) for state in network.states.get(one.key, []))
    assert any(network.states.values())


async def test_r15_a_cut_stream_is_one_message_that_is_finished(home: Home) -> None:
    """It is cut at every border of a tag and at 50 places between."""
    await cut_everywhere(home, PLACES)


@pytest.mark.nightly
async def test_r15_a_stream_cut_after_each_character(home: Home) -> None:
    """It is cut after each character."""
    await cut_everywhere(home, list(range(1, len(CANONICAL) + 1)))
