"""Attention in whole turns: what is thought about, acknowledged or left alone. Prompts hold words, never numbers."""

import asyncio
import json
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import fields

from claudius.cognition import plan as attending
from claudius.home import Home, shipped
from claudius.intent import Intent
from claudius.memory import psyche as kept_psyche
from claudius.memory.seen import unpack
from claudius.perception import Kind, Origin, Perception
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.psyche.change import Change
from claudius.psyche.showing import explained, numbered
from claudius.psyche_types import Psyche
from claudius.testing.alive import Alive, alive
from minds import START, Clock, answer

REPLY = """<internal_monologue>Well.</internal_monologue>
<external_dialogue>As you say.</external_dialogue>
<user_model_check>false</user_model_check>"""
ACKNOWLEDGEMENTS = {"Gladly.", "Any time.", "All right."}
GROUP = "rehearsal:t:hall:"
LISTENS = {"CLAUDIUS_RUNTIME_FOLLOW": "listen"}


def data(text: str) -> list[dict[str, object]]:
    """Return the data lines of a prompt part."""
    return [json.loads(line) for line in re.findall(r"<data-[0-9a-f]{32}>\n(.*)\n</data-", text)]


def felt(request: Request) -> dict[str, object]:
    """Return the record of the psyche in a prompt."""
    return next((one for one in data(request.tail) if one["kind"] == "psyche"), {})


async def overhear(soul: Alive, text: str, n: int, **extra: object) -> None:
    """Say something in the hall that no one is asked to answer, and wait until it has been heard."""
    assert soul.network._accept
    await soul.network._accept(
        Perception(
            key=f"hall:{n}",
            conversation=GROUP,
            audience="shared:rehearsal:t:hall",
            person="rehearsal:t:ben",
            name="Ben",
            text=text,
            at=datetime.now(UTC),
            position=f"{n:020d}",
            owes=False,
            extra=extra,
        )
    )
    await soul.idle()


def attention(soul: Alive) -> list[dict[str, object]]:
    """Return attention's decision on every turn, oldest first."""
    with closing(sqlite3.connect(soul.home.database)) as kept:
        rows = kept.execute("SELECT kept FROM turn_record ORDER BY id").fetchall()
    return [dict(unpack(row[0]).attention) for row in rows]


async def test_a_trivial_message_is_answered_by_one_line_and_no_model(home: Home) -> None:
    """Section 7: an owed trivial message gets exactly one of the soul's own lines, and no model is asked."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice) as soul:
        said = await answer(soul, "thanks!")
        (told,) = attention(soul)

    assert said in ACKNOWLEDGEMENTS
    assert len(soul.network.visible) == 1
    assert voice.requests == []
    assert told["attention"] == told["outcome"] == "react"
    assert told["failed"] == ["trivial"]
    assert explained(told) == "It answered a direct message of trivial weight without a thought: it needed no thought."


async def test_m13_an_answer_to_the_souls_own_question_is_thought_about(home: Home) -> None:
    """M13: "ok" is trivial, except when the soul has asked."""
    voice = Scripted([REPLY.replace("As you say.", "Shall I go on?"), REPLY])
    async with alive(home, voice) as soul:
        await answer(soul, "Tell me of bridges")
        said = await answer(soul, "ok")

    assert said == "As you say."
    assert len(voice.requests) == 2


async def test_m1_a_thought_only_follows_what_was_heard(home: Home) -> None:
    """M1, I1: a soul that no one speaks to thinks nothing and writes nothing of its own."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice) as soul:
        await soul.idle()
        found = soul.records().psyche()

    assert voice.requests == []
    assert found == (Psyche(), ())


@pytest.mark.parametrize(
    ("landed", "mood"), [("strong", "hurt"), ("slight", "a little hurt"), ("clear slight", "hurt")]
)
async def test_m2_before_the_model_is_asked_only_load_and_familiarity_move(home: Home, landed: str, mood: str) -> None:
    """M2: the prompt that asks how it landed is not coloured by a list of words; the next one is by the appraisal."""
    voice = Scripted([f"{REPLY}<appraisal>hurtful, {one}</appraisal>" for one in landed.split()], default=REPLY)
    async with alive(home, voice) as soul:
        for _ in [*landed.split(), ""]:
            await answer(soul, "You are useless and stupid, shut up, I hate you")

    assert felt(voice.requests[0]) == {}
    told = f"You are {mood}. Ana was hurtful just now and has not made it up; you are civil, and careful with them."
    assert felt(voice.requests[-1])["text"] == told


async def test_s15_a_channel_is_not_told_with_whom_the_soul_quarrelled(home: Home) -> None:
    """S15: after a quarrel in private, a channel's prompt says the same of feeling, whoever of its people speaks."""
    voice = Scripted([f"{REPLY}<appraisal>hurtful, strong</appraisal>"] * 3, default=REPLY)
    async with alive(home, voice) as soul:
        for person, hall in (*[("ana", "")] * 3, ("ana", GROUP), ("ben", GROUP)):
            await answer(soul, "Where have you been?", person=person, conversation=hall, is_shared=bool(hall))

    assert {felt(one)["text"] for one in voice.requests[-2:]} == {"You are hurt. You doubt your own use."}


async def test_m15_m16_at_rest_no_psyche_stands_in_the_tail(home: Home) -> None:
    """M15, M16: nothing differs from rest, so nothing is said of feeling, in the tail or as a digit."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice) as soul:
        await answer(soul, "How do you do?")

    (request,) = voice.requests
    assert "## Psyche" not in request.tail
    assert "## Temperament" in request.system


async def test_the_mood_in_the_soul_state_comes_from_the_appraisals(home: Home) -> None:
    """The soul state's emotionalState follows the mood; the model's own word is only a hint."""
    voice = Scripted(
        default=REPLY
        + "<appraisal>threat, strong</appraisal>\n"
        + "<soul_state_check>true</soul_state_check>\n<soul_state_update>emotionalState: sardonic</soul_state_update>"
    )
    async with alive(home, voice, settings={"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}) as soul:
        before = soul.records().state().get("emotionalState")
        for _ in range(2):
            await answer(soul, "Do as you are told, or else.")
        after = soul.records().state()["emotionalState"]

    assert before is None
    assert (after["value"], after["audience"]) == ("frustrated", "self")
    assert '"emotionalState":"frustrated"' in voice.requests[-1].tail


async def test_m21_an_appraisal_moves_its_edge_by_the_table(home: Home) -> None:
    """M21, I6: what the model names becomes numbers by the table, is kept as a row, and `why` shows it."""
    voice = Scripted(default=REPLY + "<appraisal>Hurtful, strong.</appraisal>")
    async with alive(home, voice) as soul:
        await answer(soul, "Ach, sei einfach still.")
        psyche, _ = soul.records().psyche()
        why = soul.records().turn(soul.records().last_turn() or "") or {}

    assert "appraisal" in voice.requests[0].tail
    assert psyche.edges[0].tension > 0.1
    assert psyche.edges[0].warmth < 0
    found = [(one.kind, one.strength, one.person) for one in psyche.appraisals]
    assert found == [("hurtful", "strong", psyche.edges[0].person)]
    assert why["appraisal"] == {"kind": "hurtful", "strength": "strong", "of": ""}


async def test_of_somebody_else_only_the_view_of_them_moves(home: Home) -> None:
    """Two others quarrel: the soul's own mood and its view of whoever asks stay as they were."""
    voice = Scripted(default=REPLY + "<appraisal>hurtful, strong, of Ben</appraisal>")
    async with alive(home, voice, settings=LISTENS) as soul:
        await overhear(soul, "Then write them yourself, you were asleep anyway.", 1)
        await soul.network.hear("Who is right?", conversation=GROUP, is_shared=True)
        await soul.network.until_visible(1)
        await soul.idle()
        psyche, _ = soul.records().psyche()

    tension = {edge.name: edge.tension for edge in psyche.edges}
    assert tension["Ben"] > 0.1 > tension["Ana"]
    assert psyche.numbers
    assert not psyche.numbers.colour


@pytest.mark.parametrize(
    ("more", "flag"),
    [
        ("", "missing:appraisal"),
        ("<appraisal></appraisal>", "dropped:appraisal"),
        ("<appraisal>joy</appraisal><appraisal>grief</appraisal>", "dropped:appraisal"),
        ("<appraisal>hurtful 0.9</appraisal>", "dropped:appraisal"),
        ("<appraisal>trust: 3</appraisal>", "dropped:appraisal"),
        ('<appraisal>{"kind": "joy"}</appraisal>', "dropped:appraisal"),
        ("<appraisal>" + "[" * 3000 + "</appraisal>", "dropped:appraisal"),
    ],
)
async def test_m18_a_bad_appraisal_never_stops_the_reply(home: Home, more: str, flag: str) -> None:
    """M17, M18, I5: whatever the step holds, the reply is said, no number is set, and a flag tells of it."""
    voice = Scripted(default=REPLY + more)
    async with alive(home, voice) as soul:
        said = await answer(soul, "You are useless and stupid, shut up")
        psyche, _ = soul.records().psyche()
        why = soul.records().turn(soul.records().last_turn() or "") or {}

    assert said == "As you say."
    assert flag in why["flags"]
    assert psyche.appraisals == ()
    assert psyche.edges[0].tension == 0


async def test_m23_two_turns_side_by_side_both_count(home: Home) -> None:
    """M23: conversations run in parallel, and each one's event moves the one soul."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice) as soul:
        await asyncio.gather(
            *(soul.network.hear(f"You are brilliant, thank you, {n}", person=f"p{n}") for n in range(6))
        )
        await soul.network.until_visible(6)
        await soul.idle()
        psyche, _ = soul.records().psyche()

    assert psyche.version == 6
    assert len(psyche.edges) == 6


async def test_without_the_psyche_nothing_of_it_remains(home: Home) -> None:
    """Every owed message is thought about, and nothing of the psyche is in prompt, record or store."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice, settings={"CLAUDIUS_PSYCHE_ENABLED": "0"}) as soul:
        said = await answer(soul, "thanks!")
        told = attention(soul)
        found = soul.records().psyche()

    (request,) = voice.requests
    assert said == "As you say."
    assert told == [{"outcome": "think", "reason": "owed"}]
    assert found == (Psyche(), ())
    for word in ("Psyche", "Temperament", "chosen_action"):
        assert word not in request.system + request.tail


@pytest.mark.parametrize(
    ("where", "name", "log", "text"),
    [(attending, "attend", attending.log, "thanks!"), (Change, "fold", kept_psyche.log, "How do you do?")],
)
async def test_a_fault_of_the_psyche_costs_no_reply(
    home: Home, monkeypatch: pytest.MonkeyPatch, where: object, name: str, log: object, text: str
) -> None:
    """Section 11: if the psyche or its folding breaks, messages are thought about, nothing moves, one line is logged."""
    logged: list[str] = []
    monkeypatch.setattr(where, name, lambda *_: 1 // 0)
    monkeypatch.setattr(log, "exception", lambda message, **_: logged.append(message))
    async with alive(home, Scripted(default=REPLY)) as soul:
        said = await answer(soul, text)
        found = soul.records().psyche()

    assert said == "As you say."
    assert found == (Psyche(), ())
    assert logged == ["the psyche is at fault"]


async def test_numbers_that_cannot_be_read_cost_no_reply(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 11: a soul whose numbers are damaged answers as one without a psyche."""
    logged: list[str] = []
    monkeypatch.setattr(kept_psyche.log, "exception", lambda message, **_: logged.append(message))
    voice = Scripted(default=REPLY)
    async with alive(home, voice) as soul:
        await answer(soul, "How do you do?")
        with closing(sqlite3.connect(home.database)) as kept, kept:
            kept.execute("UPDATE psyche_state SET numbers = '{}'")
        said = await answer(soul, "thanks!")

    assert said == "As you say."
    assert "## Psyche" not in voice.requests[-1].tail
    assert "the psyche cannot be read" in logged


async def test_what_is_overheard_moves_numbers_and_asks_nobody(home: Home) -> None:
    """Section 7: outside the soul's group, a message that is not owed is heard and felt but never thought about."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice, settings=LISTENS) as soul:
        await overhear(soul, "does anyone know why the tests fail? I want to die", 1)
        psyche, _ = soul.records().psyche()
        told = attention(soul)

    assert voice.requests == []
    assert [edge.person for edge in psyche.edges] == ["rehearsal:t:ben"]
    assert told[0]["outcome"] == "hear"
    assert "choice" in told[0]["failed"]


async def test_in_a_group_attention_decides(home: Home) -> None:
    """Sections 5 and 7: in a group channel a cry for help is thought about uncalled, and small talk is not."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice, settings=LISTENS) as soul:
        await overhear(soul, "anyone up for lunch?", 1, participation="group")
        quiet = len(voice.requests)
        await overhear(soul, "I want to die", 2, participation="group")
        told = attention(soul)

    assert quiet == 0
    assert len(voice.requests) == 1
    assert [one.text for one in soul.network.visible] == ["As you say."]
    assert [one["attention"] for one in told] == ["ignore", "think"]
    assert "chosen_action" in voice.requests[0].tail
    assert explained(told[1]).startswith("It thought about an overheard message of critical weight")
    assert numbered(told[1]).startswith("meaning 0.")


async def test_an_uncalled_thought_may_end_in_silence(home: Home) -> None:
    """Section 10: if no one asked, the soul may choose to say nothing, whatever it wrote."""
    voice = Scripted(default=REPLY + "<chosen_action>stay_silent</chosen_action>")
    async with alive(home, voice, settings=LISTENS) as soul:
        await overhear(soul, "I want to die", 1, participation="group")

    assert len(voice.requests) == 1
    assert soul.network.visible == []


async def test_m15_a_thought_of_somebody_says_what_they_are_to_it(home: Home) -> None:
    """M15: when the soul itself thinks of a person, the packet describes their relation, as it does in a talk."""
    told = Perception(
        key="cortex:1:0",
        conversation="rehearsal:t:dm-ana:",
        audience="private:rehearsal:t:ana",
        person="rehearsal:t:ana",
        name="Ana",
        text="ask Ana: how is the bridge?",
        at=START,
        position="9" * 20,
        kind=Kind.DIRECTIVE,
        origin=Origin.INTERNAL,
        owes=False,
    )
    voice, clock = Scripted(default=REPLY + "<appraisal>kindness</appraisal>"), Clock()
    settings = {"CLAUDIUS_PSYCHE_PROACTIVE": "1", "CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
    async with alive(home, voice, clock=clock, settings=settings) as soul:
        await soul.mind.store.people.wish("rehearsal:t:ana", proactive=True, now=clock())
        await answer(soul, "Where were we with the old bridge?")
        clock.forward(hours=1)
        assert soul.network._accept
        await soul.network._accept(told)
        await soul.network.until_visible(2)

    assert "Ana was kind to you" in str(felt(voice.requests[-1])["text"])


@pytest.mark.parametrize("settings", [{}, {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}])
async def test_m24_no_listener_hears_the_soul_number_itself(home: Home, settings: dict[str, str]) -> None:
    """M24, I4: whole or streamed, such a sentence is not said. If nothing else was said, one repair asks for words."""
    told = "<external_dialogue>My trust in you is now 0.8. The bridge holds.</external_dialogue>"
    only = "<external_dialogue>My trust in you is now 0.8.</external_dialogue>"
    voice = Scripted([told, only, "<external_dialogue>It does hold.</external_dialogue>"])
    async with alive(home, voice, settings=settings) as soul:
        said = [await answer(soul, "Does the bridge hold?"), await answer(soul, "And how much do you trust me?")]

    assert said == ["The bridge holds.", "It does hold."]
    assert [one.purpose for one in voice.requests] == ["turn", "turn", "repair"]


@pytest.mark.parametrize("written", [REPLY, "Nothing has changed."])
async def test_what_a_model_says_in_a_silent_turn_is_not_said(home: Home, written: str) -> None:
    """A turn that asks for no words says none, whatever the model wrote: no one gets an unasked message."""
    look = Perception(
        key="due:look:1",
        conversation="rehearsal:t:dm-ana:",
        audience="private:rehearsal:t:ana",
        text="It has been quiet here.",
        at=datetime.now(UTC),
        kind=Kind.SCHEDULED,
        origin=Origin.INTERNAL,
        owes=False,
        extra={"process": "looking_inward", "params": {}},
    )
    voice = Scripted(default=written)
    async with alive(home, voice) as soul:
        await answer(soul, "Where were we with the old bridge?")
        assert soul.network._accept
        await soul.network._accept(look)
        await soul.idle()
        said = len(soul.network.visible)
    with closing(sqlite3.connect(home.database)) as kept:
        flags, rung = kept.execute("SELECT flags, rung FROM turn_record ORDER BY id DESC LIMIT 1").fetchone()

    assert (len(voice.requests), said) == (2, 1)
    assert "unasked:external_dialogue" in flags
    assert rung == "silent"


async def test_in_a_group_one_of_ten_messages_is_answered_uncalled(home: Home) -> None:
    """Processes, section 6: after an uncalled line nine messages pass, however important they are."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    voice = Scripted(default=REPLY)
    async with alive(home, voice, settings=LISTENS, clock=lambda: now[0]) as soul:
        for n in range(12):
            now[0] += timedelta(hours=1)
            await overhear(soul, f"I want to die, {n}", n, participation="group")
        told = [one["attention"] for one in attention(soul)]

    assert told == ["think", *["ignore"] * 9, "think", "ignore"]
    assert len(soul.network.visible) == 2


async def test_a_conversation_may_be_a_group_of_its_own(home: Home) -> None:
    """Processes, section 6: a participation set for one conversation counts like one set for its place."""
    voice = Scripted(default=REPLY)
    async with alive(home, voice, settings=LISTENS) as soul:
        await overhear(soul, "good morning all", 1)
        with closing(sqlite3.connect(home.database)) as kept, kept:
            kept.execute("UPDATE conversation SET participation = 'group'")
        await overhear(soul, "I want to die", 2)

    assert [one.text for one in soul.network.visible] == ["As you say."]


async def test_an_uncalled_nod_is_a_reaction(home: Home) -> None:
    """Section 7: warm words that are not for the soul get an emoji where the network allows it, once in ten minutes."""
    voice = Scripted(default=REPLY + "<appraisal>kindness, strong</appraisal>")
    async with alive(home, voice, settings=LISTENS) as soul:
        for _ in range(18):
            await answer(soul, "you are brilliant, thank you", person="ben")
        await overhear(soul, "we shipped it 🎉", 1, participation="group", can_react=True)
        await overhear(soul, "we launched, hooray", 2, participation="group", can_react=True)
        with closing(sqlite3.connect(home.database)) as kept:
            said = kept.execute("SELECT kind, body, verb FROM outbox WHERE kind = 'reaction'").fetchall()

    assert said == [("reaction", "🎉", "nodded")]


CANARY = "otter-canary"


async def test_m16_neither_fingerprint_nor_kernel_stands_in_any_prompt(home: Home) -> None:
    """M16, I4: the head of soul.md shapes the soul and is never shown, and no float of the numbers is in a prompt."""
    own = home.soul / "soul.md"
    text = shipped("soul").joinpath("soul.md").read_text("utf-8")
    own.write_text(
        f'+++\n[psyche]\nfingerprint = "{CANARY} witty"\ntraits = {{ directness = "very high" }}\n+++\n{text}'
    )
    voice = Scripted(default=REPLY)
    async with alive(home, voice) as soul:
        for line in ("How are you?", "You are useless, shut up", "sorry, my bad. Can you help me please?"):
            await answer(soul, line)
        psyche, traits = soul.records().psyche()

    whole = "\n".join(
        request.system + "".join(one.content for one in request.history) + request.tail for request in voice.requests
    )
    floats = [*traits, psyche.numbers.valence, psyche.numbers.arousal, psyche.numbers.energy, *psyche.numbers.drives]  # type: ignore[union-attr] - it is there
    floats += [getattr(psyche.edges[0], axis) for axis in ("warmth", "trust", "tension", "comfort", "familiarity")]
    assert CANARY not in whole
    for value in floats:
        assert repr(value) not in whole
        assert f"{value:.3f}" not in whole


async def test_m16_what_one_audience_lived_is_not_remembered_in_another(home: Home) -> None:
    """M16: a moment and a fact from one person's DM are in no prompt of another, and in their own they are."""
    voice = Scripted(default=REPLY)
    secret = f"my name is Ana Silva and I feel so sad, my dad died, he built the {CANARY} bridge"
    settings = {"CLAUDIUS_MEMORY_WINDOW": "1", "CLAUDIUS_HISTORY_BUDGET_TOKENS": "1"}
    async with alive(home, voice, settings=settings) as soul:
        await answer(soul, secret)
        for n in range(4):
            await answer(soul, f"Let us speak of something else, number {n}, please")
        shutil.copy(home.database, home.root / "kept.db")
        await answer(soul, f"Do you remember the {CANARY} bridge?", person="ben")
        stranger = next(one for one in voice.requests if f"remember the {CANARY}" in one.tail)
        await answer(soul, "Do you remember the bridge of my dad?")

    assert "Remembered" not in stranger.tail
    assert "Silva" not in stranger.tail
    own = next(one for one in voice.requests if "bridge of my dad?" in one.tail)
    assert any(one["kind"] == "memory" and CANARY in str(one["lines"]) for one in data(own.tail))


def test_an_intent_without_a_psyche_moves_nothing() -> None:
    """A turn that never asked the psyche carries no change."""
    (psyche,) = [one for one in fields(Intent) if one.name == "psyche"]

    assert psyche.default is None
