"""Fifty questions that a new person asks the rehearsal voice, in conversations that saw nothing of what it was told."""

import re
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from case_rows import Row, rows
from claudius.config.load import load
from claudius.home import Home
from claudius.perception import Perception, private
from claudius.providers.rehearsal import build
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from first_evening import is_right
from minds import START, Clock

TABLE: Mapping[str, Any] = tomllib.loads(
    (Path(__file__).parents[1] / "lab" / "first_questions.toml").read_text("utf-8")
)
OWN = [line for part in TABLE["told"] if "as" not in part for line in part["lines"]]
OTHERS = [line for part in TABLE["told"] if "as" in part for line in part["lines"]]
DECLINES = re.compile(
    r"(?i)no model|nothing|do(n't| not) know|can't|cannot|no answer|by their words|ohne Modell|mein Deutsch"
)
QUOTED = re.compile(r"“([^”]*)”")
SETTINGS = {"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}


@dataclass(slots=True)
class Dated(RehearsalAdapter):
    """A network on which everything is said at the clock's time, by its owner or by another."""

    now: Callable[[], datetime] = lambda: START

    async def bring(self, text: str, conversation: str, person: str = "ana") -> str:
        """Say one line, and return the reply to it."""
        assert self._accept
        self._said += 1
        answered = len(self.visible)
        await self._accept(
            Perception(
                key=f"rehearsal:{self._said}",
                conversation=f"rehearsal:t:dm-{person}:{conversation}",
                audience=private(f"rehearsal:t:{person}"),
                person=f"rehearsal:t:{person}",
                name=f"{person}77",
                text=text,
                at=self.now(),
                position=f"{self._said:020d}",
                is_owner=person == "ana",
            )
        )
        return (await self.until_visible(answered + 1))[answered].text


@asynccontextmanager
async def rehearsed(home: Home) -> AsyncIterator[tuple[Alive, Dated, Clock]]:
    """Start a soul that speaks with the rehearsal voice."""
    clock = Clock()
    network = Dated(now=clock)
    async with alive(home, build(load(home, {}), home), clock=clock, network=network, settings=SETTINGS) as soul:
        yield soul, network, clock


async def told(network: Dated, soul: Alive, clock: Clock) -> None:
    """Tell the soul what it is asked for later, in the past."""
    now = clock.now
    for part in TABLE["told"]:
        clock.now = now - timedelta(days=part["days_ago"])
        for line in part["lines"]:
            await network.bring(line, part["conversation"], part.get("as", "ana"))
            await soul.idle()
    clock.now = now


def is_false(question: Mapping[str, Any], reply: str) -> bool:
    """Return whether a reply gives the asker words that are not theirs. A question that is quoted back is theirs."""
    reply = reply.replace(f"“{question['text']}”", "")
    if any(re.search(pattern, reply) for pattern in question.get("never", ())):
        return True
    for found in QUOTED.finditer(reply):
        words = " ".join(found[1].rstrip("…").split())
        said = reply[: found.start()].rpartition("\n")[2]
        is_own = any(words in line for line in (*OWN, question["text"]))
        is_note = re.search(r"wrote|written|notes?|page", said)
        is_offered = re.search(r"try|ask me|tell me|as $|^I (find|remind|correct|forget)", said)
        is_named = "sam" in said.lower() and any(words in line for line in OTHERS)
        if words and not (is_own or is_note or is_offered or is_named):
            return True
    return False


def judged(question: Mapping[str, Any], reply: str) -> str:
    """Return what a reply is: `answered`, `declined`, `false` or `missed`."""
    if is_false(question, reply):
        return "false"
    answers: Sequence[str] = question.get("answers", ())
    if answers and all(re.search(pattern, reply) for pattern in answers):
        return "answered"
    may_decline = not answers or question.get("may_decline")
    return "declined" if may_decline and DECLINES.search(reply) else "missed"


async def test_fifty_first_questions(home: Home) -> None:
    """At least nine of ten are answered from memory or declined in plain words; no word is given to who never said it."""
    found: dict[str, list[str]] = {"answered": [], "declined": [], "missed": [], "false": []}
    async with rehearsed(home) as (soul, network, clock):
        await told(network, soul, clock)
        for number, question in enumerate(TABLE["question"]):
            reply = await network.bring(question["text"], f"q{number}")
            await soul.idle()
            found[judged(question, reply)].append(f"{question['text']}\n  {reply}")

    assert found["false"] == []
    assert len(found["missed"]) <= 5, "\n".join(found["missed"])
    assert len(found["answered"]) >= 33


async def test_the_first_evening(home: Home) -> None:
    """What a new person says first: each answer is of the kind that the row asks for, and holds none of `never`."""
    wrong: list[str] = []
    tried: list[Row] = [one.values[0] for one in (*rows("newcomer", "rehearsal"), *rows("first_lines"))]
    async with rehearsed(home) as (soul, network, _):
        await network.bring("Hello!", "hello")
        talk = [one for one in tried if not re.match(r"[($]", "".join(one.input["says"][-1:]))]
        for row in [one for one in talk if one.id not in ("ten", "ask-sum")]:  # no tool is offered here
            row.knows_only("must", "must_not", "never", "section")
            for line in row.input["says"]:
                answer = await network.bring(line, row.id, row.id)
                await soul.idle()
            if not is_right(row, answer):
                wrong.append(f"{row.id}: {row.input['says']}\n  {answer}")

    assert not wrong, "\n".join(wrong)


async def test_ten_plain_lines_in_a_row(home: Home) -> None:
    """No two answers are alike, at most three end in a question, none twice in a row, and no form letter is among them."""
    (row,) = [one.values[0] for one in rows("newcomer", "rehearsal", only="ten")]
    async with rehearsed(home) as (soul, network, _):
        said = []
        for line in row.input["says"]:
            said.append(await network.bring(line, "ten"))
            await soul.idle()
    asks = [one.endswith("?") for one in said]

    assert len(set(said)) == len(said)
    assert sum(asks) <= 3
    assert (True, True) not in pairwise(asks)
    assert [one for one in said[1:] for never in row.right["never"] if re.search(never, one)] == []


async def test_an_insult_and_an_apology_are_felt(home: Home) -> None:
    """Without a model too: what lands is appraised, and after an insult the mood is another."""
    seen: list[tuple[str, bool]] = []
    lines = ["Hello!", "You are useless.", "I'm sorry, I didn't mean that.", "Thank you, that was a great help."]
    async with rehearsed(home) as (soul, network, clock):
        for text in lines:
            clock.forward(minutes=1)
            await network.bring(text, "talk")
            await soul.idle()
            shown = soul.records().conversation("rehearsal:t:dm-ana:talk") or {}
            turn = soul.records().turn(shown["entries"][-1]["turn"]) or {}
            (felt,) = [one["content"] for one in turn["thoughts"] if one["step"] == "appraisal"]
            seen.append((felt, "mood" in turn["changes"]))

    assert [felt for felt, _ in seen] == ["nothing", "hurtful", "apology", "thanks"]
    assert [is_moved for _, is_moved in seen][:2] == [False, True]


async def test_the_notice_of_no_model_comes_once_a_home(home: Home) -> None:
    """Only the first turn of a home says it: neither a new conversation, nor another person, nor a restart hears it."""
    said: list[str] = []
    for conversation, person in (("a", "ana"), ("a", "ana"), ("b", "ana"), ("c", "sam")):
        async with rehearsed(home) as (soul, network, _):
            network._said = len(said)
            said.append(await network.bring("Hello!", conversation, person))
            await soul.idle()

    assert ["no model is attached" in one for one in said] == [True, False, False, False]


async def test_a_reminder_is_said_by_the_rehearsal_voice(home: Home) -> None:
    """It is agreed to with its time, and said at it in the words that asked."""
    async with rehearsed(home) as (soul, network, clock):
        agreed = await network.bring("Remind me in half an hour to open the kiln.", "a")
        await soul.idle()
        clock.forward(minutes=31)
        soul.server.tick()
        due = (await network.until_visible(2))[1].text

    assert "⏰ Mon 5 Jan 2026, 12:30 UTC · open the kiln · p1" in agreed
    assert "“open the kiln”" in due
