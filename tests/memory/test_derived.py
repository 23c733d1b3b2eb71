"""What counts as derived from a person's lines: at first hand whole, at second hand by name or by a word of theirs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from claudius.home import Home
from claudius.ledger_types import Reflected, Reflection
from claudius.memory.seen import Seen, packed, seen_in
from claudius.memory.sql.derived import put_back
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from driven import reply

ANA = "rehearsal:t:ana"
HALL, OTHER = "rehearsal:t:hall:1", "rehearsal:t:hall:2"
SETTINGS = {"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}


def version(turn: str | None, **sections: str) -> dict[str, Any]:
    """Return one version of a portrait."""
    return {"turn": turn, "markdown": "\n\n".join(f"## {name}\n{text}" for name, text in sections.items()) + "\n"}


@pytest.mark.parametrize(
    ("versions", "left"),
    [
        pytest.param([version("t1", A="bees")], {"A": "bees"}, id="not derived"),
        pytest.param([version("bad", A="ill")], {}, id="derived, and there was nothing before"),
        pytest.param([version("t1", A="bees"), version("bad", A="bees, ill")], {"A": "bees"}, id="put back"),
        pytest.param([version("bad", A="ill"), version("t2", A="ill", B="new")], {"B": "new"}, id="kept by a later one"),
        pytest.param([version("bad", A="ill"), version("t2", A="well")], {"A": "well"}, id="written again since"),
        pytest.param(
            [version("bad", A="ill"), version("t2", A="well"), version(None, A="ill")], {"A": "well"}, id="reverted to"
        ),
        pytest.param([version("bad", A="ill"), version(None, A="ill, says the owner")], {"A": "ill, says the owner"}, id="by hand"),
    ],
)  # fmt: skip
def test_a_portrait_loses_what_was_last_written_from_their_lines(
    versions: list[dict[str, Any]], left: dict[str, str]
) -> None:
    """The newest version has only sections that are not derived; no version holds a derived text."""
    found = put_back(versions, lambda turn, _: turn == "bad")  # type: ignore[arg-type]  # a dict reads like a row

    expected = version(None, **left)["markdown"] if left else ""
    assert found[-1] == expected
    assert [one for one in found if "ill" in one and "owner" not in one] == []


def test_what_was_seen_outlives_its_record() -> None:
    """The ids that take the place of an expired snapshot are read like the snapshot; nothing was seen by nothing."""
    seen = Seen(first=3, rows=(("moment", "7"), ("state", "k", "self", "1.0")))

    assert seen_in(packed(seen)) == seen
    assert seen_in(b"") == seen_in(b"erased") == Seen()


def words(home: Home) -> str:
    """Return all words of the soul's that its database holds, apart from its own texts."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as kept:
        texts = [
            *kept.execute("SELECT content FROM entry"),
            *kept.execute("SELECT body FROM outbox"),
            *kept.execute("SELECT value FROM soul_state"),
            *kept.execute("SELECT markdown FROM user_model"),
        ]
    return "\n".join(text for (text,) in texts)


async def hear(soul: Alive, person: str, text: str, place: str) -> None:
    """Have somebody say something, and wait for the answer."""
    await soul.network.hear(text, person=person, conversation=place, is_shared=True)
    await soul.idle()


async def test_at_second_hand_only_what_names_them_or_holds_their_words_is_derived(home: Home) -> None:
    """A state value came from Ana's line; who saw only that value keeps what does not repeat it."""
    summed = reply("Noted.", soul_state_check="true", soul_state_update="conversationSummary: a heron nests there")
    voice = Scripted(
        [reply("Hm."), summed, reply("The heron has landed."), reply("Ana told me."), reply("All is calm.")]
    )

    async with alive(home, voice, settings=SETTINGS) as soul:
        await hear(soul, "ana", "good morning to you", HALL)
        await hear(soul, "ana", "a heron nests in my attic", HALL)
        await hear(soul, "ben", "what is new?", OTHER)
        await hear(soul, "cem", "who said so?", OTHER)
        await hear(soul, "ben", "and otherwise?", OTHER)
        prompts = [str(one.tail) for one in voice.requests[2:]]
        receipt = await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")

    left = words(home)
    assert "heron nests" in prompts[0]
    assert "attic" not in prompts[0]
    assert "heron" not in left
    assert "Ana told" not in left
    assert "All is calm." in left
    assert "what is new?" in left
    assert receipt["derived"]["turn"] == 2
    assert {one["conversation"] for one in receipt["posts"]} == {HALL, OTHER}


async def test_what_an_expired_turn_wrote_is_still_followed(home: Home) -> None:
    """After the records of the turns are gone, a state value from Ana's line goes with her."""
    summed = reply("Noted.", soul_state_check="true", soul_state_update="conversationSummary: the attic is inhabited")
    voice = Scripted([reply("I see."), summed])

    async with alive(home, voice, settings=SETTINGS) as soul:
        await hear(soul, "ana", "a heron nests in my attic", HALL)
        await hear(soul, "ben", "so?", HALL)
        later = soul.mind.clock() + timedelta(days=400)
        assert await soul.mind.store.turns.expire_records(later, later, 100) == 2
        before = words(home)
        await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")

    assert "inhabited" in before
    assert "inhabited" not in words(home)


async def test_a_cycle_that_read_what_was_erased_since_changes_nothing(home: Home) -> None:
    """The second mind may answer after the erasure: what it read is gone, and so is what it came to."""
    async with alive(home, Scripted()) as soul:
        await hear(soul, "ben", "a bee nests in my attic", HALL)
        (line,) = await soul.mind.store.ledger.newest_interactions(1)
        for cycle, evidence in ((1, (line.id,)), (2, (line.id, line.id + 1000))):
            record = Reflection(
                cycle=cycle,
                at=soul.mind.clock(),
                trigger="manual",
                audience="self",
                outcome="done",
                duration_s=0.1,
                summary="it was read",
                evidence=evidence,
            )
            await soul.mind.store.ledger.reflect(Reflected(record=record))
        kept = [one["cycle"] for one in soul.records().reflections(9)]

    assert kept == [1]
