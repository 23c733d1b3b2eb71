"""What the documents tell of a week of life: words that expired, pages, evidence, strips over time."""

import asyncio
import sqlite3
import threading
from contextlib import aclosing, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from claudius.errors import ClaudiusError, TryAgain
from claudius.home import Home
from claudius.reports import clock, conversations, life, mind
from claudius.reports.opened import read
from driven import Machine
from lived_week import ENDS, TALK, week

ADA, RHEA = "rehearsal:t:dm-ada:", "rehearsal:t:dm-rhea:"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Play the week once for all tests."""
    home = Home(tmp_path_factory.mktemp("week") / "home")
    week(home)
    return home


def of(home: Home, text: str) -> str:
    """Return the turn that heard a line of the week."""
    with closing(sqlite3.connect(home.database)) as database:
        rows = database.execute("SELECT turn FROM interaction WHERE preview = ? AND direction = 'in'", (text[:120],))
        return str(next(rows)[0])


def test_console_w7_words_that_expired_are_not_empty_words(home: Home) -> None:
    """`why` after 72 h: the text is null, it says when working memory let it go, and the ledger's preview stands in."""
    insult, late = TALK[6], TALK[17]

    found = conversations.explained(home, of(home, insult[3]))
    fresh = conversations.explained(home, of(home, late[3]))

    assert found["perception"]["text"] is None
    assert found["perception"]["preview"] == insult[3]
    assert found["perception"]["expired_at"] == "2026-01-09T16:37:00.050000Z"
    assert [one["content"] for one in found["thoughts"]][:4] == [insult[5], "hurtful, strong", "none", insult[6]]
    assert fresh["perception"]["text"] == late[3]
    assert "preview" not in fresh["perception"]


def test_console_w7_why_says_so_in_words(home: Home, tmp_path: Path) -> None:
    """The command prints the preview, and that it is one."""
    machine = Machine(tmp_path, env={"CLAUDIUS_HOME": str(home.root)})

    told = machine.ok("why", of(home, TALK[6][3])).stdout

    assert f"{TALK[6][3]} (a preview: working memory let the words go at 2026-01-09T16:37)" in told


def test_a_conversation_is_read_in_pages_of_turns(home: Home) -> None:
    """Pages follow each other without a gap or a repeat, oldest turns last; expired turns keep thought and reply."""
    found = conversations.page(home, ADA, most=5)
    pages = [found]
    while pages[-1]["before"]:
        pages.append(conversations.page(home, ADA, pages[-1]["before"], most=5))

    turns = [list(dict.fromkeys(entry["turn"] for entry in one["entries"])) for one in pages]
    everything = conversations.page(home, ADA, most=500)
    assert all(len(one) == 5 for one in turns[:-1])
    assert [turn for one in turns[::-1] for turn in one] == list(
        dict.fromkeys(entry["turn"] for entry in everything["entries"])
    )
    old = [entry for entry in pages[-1]["entries"] if entry["turn"] == of(home, TALK[0][3])]
    assert [(one["entry_type"], one["content"]) for one in old][:5] == [
        ("userMessage", TALK[0][3]),
        ("internalMonologue", TALK[0][5]),
        *(("mentalQuery", decided) for decided in ("nothing", "none")),
        ("externalDialog", TALK[0][6]),
    ]
    assert all(one["expired"] for one in old)


def test_a_page_of_what_is_not_there_is_an_error(home: Home) -> None:
    """An unknown conversation, and a turn of another conversation, are named in the error."""
    with pytest.raises(ClaudiusError, match="no conversation 'nowhere'"):
        conversations.page(home, "nowhere")
    with pytest.raises(ClaudiusError, match="no turn"):
        conversations.page(home, ADA, of(home, TALK[6][3]))


def test_the_evidence_of_a_belief_is_the_interactions_themselves(home: Home) -> None:
    """Each id that a belief names leads to a line of the ledger with its peer, its words and its turn."""
    (belief,) = read(home, lambda kept: kept.beliefs(ENDS))["beliefs"]

    found = read(home, lambda kept: kept.evidence(belief["evidence"]))

    assert [one["id"] for one in found] == sorted(belief["evidence"])
    assert {one["peer"] for one in found} <= {"rehearsal:t:ada", "rehearsal:t:ben", "rehearsal:t:rhea"}
    assert read(home, lambda kept: kept.evidence([10**9])) == []


def test_console_w35_a_life_is_strips_turns_and_trust(home: Home) -> None:
    """The week: the strips of the picture, each turn with how far it moved the mood, and trust as it was judged."""
    found = life.life(home, ENDS - timedelta(days=7), ENDS, 600)

    assert [lane["title"] for lane in found["lanes"]][:3] == ["Mood", "Strength", "Needs"]
    assert {"Ada", "Ben", "Rhea"} <= {lane["title"] for lane in found["lanes"]}
    assert {found["said"][turn] for turn in found["most"][:6]} & {TALK[1][3], TALK[5][3], TALK[14][3]}
    insults = {of(home, TALK[5][3]), of(home, TALK[6][3])}
    assert min(found["turns"], key=lambda one: float(one["delta"]))["turn"] in insults
    assert next(one["trust"] for one in found["trust"]["rehearsal:t:rhea"]) < 0


def test_console_w35_a_curve_has_at_most_four_points_a_column(home: Home) -> None:
    """However many turns: a picture 50 columns wide gets no more than 4 points a column and curve, in order."""
    found = life.life(home, ENDS - timedelta(days=7), ENDS, 50)

    for lane in found["lanes"]:
        for curve in lane["curves"]:
            points = [point for run in curve["runs"] for point in run]
            assert len(points) <= 4 * 51
            assert points == sorted(points, key=lambda point: point[0])
            assert all(lane["low"] - 0.01 <= value <= lane["high"] + 0.01 for _, value in points)


def test_a_due_plan_says_what_it_waits_for(home: Home) -> None:
    """A plan that is due while nothing runs waits for the daemon; one that is not due waits for nothing."""
    with closing(sqlite3.connect(home.database)) as database:
        database.execute(
            "INSERT INTO due (id, kind, scheduled_for, conversation, key, params, text, audience, person)"
            " VALUES (7, 'schedule/7', '2026-01-11T10:00:00.000000Z', ?, 'k', '{}', 'look', 'self', '')",
            (ADA,),
        )
        database.commit()

    def waits(now: datetime) -> list[str | None]:
        return [row["waits_for"] for row in clock.schedule(home, now) if row["id"] == 7]

    assert waits(ENDS) == ["the daemon: nothing is running"]
    assert waits(ENDS - timedelta(days=3)) == [None]


def test_a_download_keeps_no_process_alive(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked for it ends meanwhile: its thread is not waited for; what it raises is raised to whoever still waits."""
    begun, ended = threading.Event(), threading.Event()

    def download(*_: object, **__: object) -> Path:
        begun.set()
        ended.wait(20)
        raise TryAgain("no network")

    async def first() -> dict[str, Any]:
        """Return the first row, and leave."""
        rows = mind.downloaded(home, mind.models.known_models()[0].name)
        async with aclosing(rows):
            return await anext(rows)

    async def last() -> None:
        """Stay until the download ends."""
        async for _ in mind.downloaded(home, mind.models.known_models()[0].name):
            ended.set()

    monkeypatch.setattr(mind, "download", download)
    shown = asyncio.run(first())

    assert begun.is_set()
    assert not ended.is_set()
    assert shown["bytes"] == 0
    with pytest.raises(TryAgain, match="no network"):
        asyncio.run(last())
