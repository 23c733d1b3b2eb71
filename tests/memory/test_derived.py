"""What counts as derived from a person's lines: at first hand whole, at second hand by name or by a word of theirs."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest

from claudius.config.schema import Config
from claudius.errors import StoreError
from claudius.home import Home
from claudius.ledger_types import Reflected, Reflection
from claudius.memory.erasure import Erasure
from claudius.memory.ranking import marks
from claudius.memory.seen import _names, put_back
from claudius.perception import Kind, Perception
from claudius.providers.scripted import Scripted
from claudius.runtime.forgetting import Forgetting
from claudius.runtime.receipts import told
from claudius.testing.alive import Alive, alive
from claudius.tool import Tool
from claudius.tools.shipped import build
from driven import reply

ANA = "rehearsal:t:ana"
HALL, OTHER = "rehearsal:t:hall:1", "rehearsal:t:hall:2"
SETTINGS = {"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}


def version(turn: str | None, **sections: str) -> dict[str, Any]:
    """Return one version of a portrait."""
    return {"turn": turn, "markdown": "\n\n".join(f"## {name}\n{text}" for name, text in sections.items()) + "\n"}


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Estoy embarazada y no lo sabe nadie.", "embarazada"),
        ("Ich habe am Montag eine Operation.", "operation, Monday"),
        ("Ho perso le chiavi di casa.", "currentTopic: chiavi"),
    ],
)
def test_a_word_is_known_again_where_too_few_words_tell_the_language(said: str, written: str) -> None:
    """A state value is often a single word; its stem is that of a language which is guessed."""
    assert not marks(said).isdisjoint(marks(written))


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
    """Have a person say something, and wait for the answer."""
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


async def test_what_a_tool_looked_up_of_them_is_derived(home: Home) -> None:
    """What `recall` found is in no row that a prompt names, so each such turn is tested by its words."""
    look = '<acts>none</acts><tool_use>{"tool": "recall", "args": {"words": "heron attic"}}</tool_use>'
    voice = Scripted([reply("Hm."), look, reply("So it is."), reply("Well.")])

    tools: list[Tool] = []
    async with alive(home, voice, tools=lambda: tools, settings=SETTINGS) as soul:
        tools += build(soul.mind.store, Config, tuple)
        await hear(soul, "ana", "a heron nests in my attic", HALL)
        await hear(soul, "ben", "good evening, how are you", OTHER)
        turn = str(soul.records().last_turn())
        before = soul.records().calls_of(turn)
        await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")
        after = soul.records().calls_of(turn)

    assert "heron" in before[0]["text"]
    assert [(one["args"], one["text"]) for one in after] == [({}, "")]
    assert "heron" not in words(home)


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
        (line,) = soul.mind.store.ledger.newest_interactions(1)
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


async def test_what_is_thought_while_they_are_erased_is_followed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ben's turn commits with Ana's line in sight before that is gone; all of her turns, and no other, were erased."""
    voice = Scripted([reply("I see."), reply("They say that a heron nests there.")])
    async with alive(home, voice, settings=SETTINGS) as soul:
        await hear(soul, "ana", "a heron nests in my attic", HALL)
        before = Erasure._erase_lived

        async def meanwhile(self: Erasure) -> None:
            """Have a person answered meanwhile."""
            await hear(soul, "ben", "what is new?", HALL)
            await before(self)

        monkeypatch.setattr(Erasure, "_erase_lived", meanwhile)
        await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")

    assert "what is new?" in words(home)
    assert "heron" not in words(home)


async def test_an_erasure_that_is_resumed_takes_no_more(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was derived is no source of its own after an interruption: whoever saw it is not derived at first hand."""
    summed = reply("Noted.", soul_state_check="true", soul_state_update="conversationSummary: a heron nests there")
    voice = Scripted([reply("Hm."), summed, reply("The heron has landed."), reply("All is calm.")])
    async with alive(home, voice, settings=SETTINGS) as soul:
        await hear(soul, "ana", "good morning to you", HALL)
        await hear(soul, "ana", "a heron nests in my attic", HALL)
        await hear(soul, "ben", "what is new?", OTHER)
        await hear(soul, "ben", "and otherwise?", OTHER)
        forgetting = soul.server._forgetting
        with monkeypatch.context() as patched:
            patched.setattr(Erasure, "_blank_shared_texts", killed)
            with pytest.raises(StoreError):
                await forgetting.forget(ANA, soul.mind.clock(), "owner")
        await forgetting.resume(soul.mind.clock(), "owner")

    assert "heron" not in words(home)
    assert "All is calm." in words(home)


async def killed(*_: object) -> None:
    """End what runs."""
    raise StoreError("killed")


@pytest.mark.parametrize("dies_at", [(Erasure, "_blank_shared_texts"), (Forgetting, "_copy_anew")])
async def test_a_receipt_names_every_post_after_an_interruption_too(
    home: Home, monkeypatch: pytest.MonkeyPatch, dies_at: tuple[type, str]
) -> None:
    """The rows that say where a post stands are gone then; each is still named. What is counted is what was left."""
    async with alive(home, Scripted([reply("I see."), reply("A heron nests there.")]), settings=SETTINGS) as soul:
        await hear(soul, "ana", "a heron nests in my attic", HALL)
        await hear(soul, "ben", "what is new?", HALL)
        forgetting, now = soul.server._forgetting, soul.mind.clock()
        with monkeypatch.context() as patched:
            patched.setattr(*dies_at, killed)
            with pytest.raises(StoreError):
                await forgetting.forget(ANA, now, "themself", asked=asked_for(now))
        ((_, receipt),) = await forgetting.resume(now, "owner")

    assert len(receipt["posts"]) == 2
    assert "there were none" not in told(receipt)
    assert "the numbers below count what was left by then" in told(receipt)


async def test_a_resumed_erasure_still_knows_the_names_and_words(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the second mind came to while Ana's own rows went is erased by her name and words, which no row tells now.

    The receipt says that it counts only what was left by then.
    """
    before = Erasure._erase_by_rules

    async def then_killed(self: Erasure) -> None:
        """Have the second mind come to something once the rows are gone, then end."""
        await before(self)
        for cycle, summary in ((1, "Ana is kind"), (2, "one keeps a heron"), (3, "all is calm")):
            record = Reflection(
                cycle=cycle, at=soul.mind.clock(), trigger="manual", audience="self", outcome="done", duration_s=0.1,
                summary=summary,
            )  # fmt: skip
            await soul.mind.store.ledger.reflect(Reflected(record=record))
        raise StoreError("killed")

    async with alive(home, Scripted([reply("I see.")]), settings=SETTINGS) as soul:
        await hear(soul, "ana", "a heron nests in my attic", HALL)
        forgetting, now = soul.server._forgetting, soul.mind.clock()
        with monkeypatch.context() as patched:
            patched.setattr(Erasure, "_erase_by_rules", then_killed)
            with pytest.raises(StoreError):
                await forgetting.forget(ANA, now, "themself", asked=asked_for(now))
        ((_, receipt),) = await forgetting.resume(now, "owner")
        kept = [one["summary"] for one in soul.records().reflections(9)]

    assert kept == ["all is calm"]
    assert "I was interrupted, and began again" in told(receipt)


def asked_for(now: datetime) -> Perception:
    """Return Ana's command."""
    return Perception(
        key="k", conversation="rehearsal:t:dm-ana:", audience="self", person=ANA, name="Ana", text="forget me yes",
        at=now, kind=Kind.COMMAND, position="9",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "text", "is_named"),
    [
        (["Alex (Sales)"], "the sales meeting is on Monday", False),
        (["Alex (Sales)"], "Alex is away", True),
        (["tom"], "Tom has epilepsy", True),
        (["Mark Twain"], "mark the page", False),
        (["Mark Twain"], "so says MARK TWAIN", True),
    ],
)
def test_a_part_of_a_name_is_one_only_as_names_are_written(names: list[str], text: str, *, is_named: bool) -> None:
    """A word of every day that stands in a person's display name erases no one else's text."""
    assert bool(_names(names).search(text)) is is_named
