"""What is thought about, and what is felt: stories, lines and days, appraised as a human would."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from acted import LINE, Acted, acting, acts, block
from case_rows import Row, rows
from claudius.home import Home
from claudius.perception import Kind
from claudius.providers.scripted import Scripted
from claudius.psyche.bands import mood_of
from claudius.psyche.events import is_trivial, lexicon
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL, DM, STRANGER
from minds import by_tag, minds

_ASSENT_TEXT = "yes yeah yep yup no nope nah sure ja nein oui non sí sim não nie nee да нет はい いいえ 是 不"
_FIRST_PERSON_TEXT = "i i'm i've i'll my me we ich mein mich j'ai moi yo mi eu io ik я мы"
ASSENT, FIRST_PERSON = frozenset(_ASSENT_TEXT.split()), frozenset(_FIRST_PERSON_TEXT.split())
CLOCK, NEVER = "2026-11-26T10:00:00Z", timedelta(days=9999)


@pytest.mark.parametrize("row", rows("feeling", "heard", every=3))
async def test_what_is_short_is_thought_about_unless_it_only_acknowledges(home: Home, row: Row) -> None:
    """A short message asks the model, unless it is a known phrase of thanks or assent after nothing that is open."""
    row.knows_only("thought_about", "calls")
    line, opened = row.input.get("soul", LINE), row.input.get("open", "")
    async with acting(home, row.id, clock=CLOCK) as it:
        if opened:
            await it.says(
                f"Wish me luck for {opened}.", acts=acts({"do": "open", "text": opened, "when": "2026-11-27"})
            )
            await it.until(datetime.fromisoformat("2026-11-27T15:00:00Z"), NEVER)
        await it.says("When does the ferry leave?", external_dialogue=line)
        before = len(it.tails())
        await it.says(row.input["says"], external_dialogue=line)
        calls, said = len(it.tails()) - before, await it.posts()

    assert calls == (row.right.get("calls", 1) if row.right["thought_about"] else 0)
    assert (said[-1].startswith(line) and len(said) > 1) is row.right["thought_about"]


async def test_an_answer_to_a_question_is_thought_about_whoever_speaks_in_between(home: Home) -> None:
    """A question that more words follow is one too, and what another says in between takes it from no one."""
    voice = Scripted(default=by_tag(external_dialogue="Shall I send you the list? It is short."))
    place = "rehearsal:t:hall:1"
    async with minds(home, voice) as soul:
        await soul.network.hear("Have you got the list?", conversation=place, is_shared=True)
        await soul.network.until_visible(1)
        await soul.network.hear("Late again.", conversation=place, is_shared=True, person="ben", kind=Kind.MESSAGE)
        await soul.idle()
        before = len(voice.requests)
        await soul.network.hear("ok", conversation=place, is_shared=True)
        await soul.network.until_visible(2)
        await soul.idle()

    assert len(voice.requests) == before + 1


def test_no_phrase_that_acknowledges_says_yes_or_no_or_speaks_of_oneself() -> None:
    """The list is closed: whole phrases of at most three words, none of which answers a question or tells of a life."""
    for phrase in lexicon().acknowledgements:
        assert 0 < len(phrase) <= 3, phrase
        assert ASSENT.isdisjoint(phrase), phrase
        assert FIRST_PERSON.isdisjoint(phrase), phrase
        assert is_trivial(" ".join(phrase).capitalize(), "claudius"), phrase


THEN: Mapping[str, tuple[str, str]] = {
    "bereavement": ("moved", ""),
    "good-news": ("glad", ""),
    "teasing": ("even glad", ""),
    "sarcasm": ("hurt tense", "Ana"),
    "apology": ("even moved tense", "Ana"),
    "ignored": ("hurt even", "Ana"),
    "praise-for-a-number": ("tense even", "Ana"),
    "quarrel": ("even tense", "Ben"),
    "crude-joke": ("even tense hurt", "Ana"),
    "own-mistake": ("low hurt tense moved", ""),
    "thanks": ("glad", ""),
    "farewell": ("moved low", ""),
}
"""What `then` says of each story, as the moods that fit and the person of whom a sentence must stand."""


def mood(it: Acted) -> str:
    """Return the soul's mood, in one of its seven words."""
    numbers = it.soul.records().psyche()[0].numbers
    assert numbers
    return mood_of(numbers)


async def tell(it: Acted, says: list[Any], of: list[list[str]]) -> str:
    """Tell a story, and ask something plain at its end; return that prompt.

    The model appraises each line as the first that a human accepts; where others quarrel, as the first of them.
    """
    left, thread, is_crowd = list(of), "", any(isinstance(one, list) for one in says)
    where = CHANNEL if is_crowd else DM
    if is_crowd:
        for user, name in (("U2", "Ben"), ("U4", "Cem")):
            await it.side.stage.world.add_user(user, name.lower(), real_name=name)  # type: ignore[attr-defined] # Slack's
            await it.side.stage.world.join("C1", user)  # type: ignore[attr-defined] # likewise
        await it.says("Good that we are all here.", where=CHANNEL, calls=True)
        thread = it.said
    for one in says:
        if isinstance(one, dict):
            await it.until(it.now() + timedelta(hours=one["gap_h"]), NEVER)
            continue
        name, text = one if isinstance(one, list) else ("Ada", one)
        wanted = left.pop(0) if name == "Ada" else ["nothing"]
        kind = next((choice for choice in wanted if is_crowd and " of " in choice), wanted[0])
        plain, by = text.removeprefix("{bot} "), {"Ada": ANA, "Ben": BEN, "Cem": STRANGER}[name]
        await it.says(plain, where=where, by=by, thread=thread, calls=plain != text, appraisal=kind)
        if name == "Ada":
            why = it.soul.records().turn(it.soul.records().last_turn() or "") or {}
            felt, parts = why["appraisal"], kind.split(", ")
            assert [felt["kind"], felt["strength"] if felt["kind"] != "nothing" else "clear"] == [*parts, "clear"][:2]
    return await it.says("And what goes into a soup?", where=where, thread=thread, calls=is_crowd)


def told_stories() -> list[Any]:
    """Return every story in every language that it is told in; on a push each in one."""
    shared = [(one.values[0], lang) for one in rows("feeling", "story") for lang in one.values[0].input]
    ours = [(one.values[0], "says") for one in rows("more_acts", "story")]
    slow = [bool((n // 4 + n) % 4) if n < len(shared) else bool(n % 3) for n in range(len(shared + ours))]
    return [
        pytest.param(row, row.input[lang], id=f"{row.id}-{lang}", marks=[pytest.mark.slow] * is_slow)
        for (row, lang), is_slow in zip(shared + ours, slow, strict=True)
    ]


@pytest.mark.parametrize(("row", "says"), told_stories())
async def test_a_story_leaves_the_feeling_that_a_human_would_have(home: Home, row: Row, says: list[Any]) -> None:
    """Afterwards the prompt says the mood and of whom, as the table of appraisals has it, whatever the language."""
    row.knows_only("of", "then", "mood", "never_mood", "person")
    moods, person = THEN.get(row.id) or (row.right["mood"], "Ana" if row.right["person"] else "")
    async with acting(home, f"{row.id}{says}", clock=CLOCK, network="slack" if row.id == "quarrel" else "") as it:
        tail = await tell(it, says, row.right["of"])
        told, left = block(tail, "Psyche"), mood(it)

    assert left in moods
    assert left not in row.right.get("never_mood", ())
    assert (left in told) is (left != "even"), told
    assert person.casefold() in told.casefold()
    assert row.id != "quarrel" or "Ana" not in told
    assert row.id != "bereavement" or "## Plans" not in tail


@pytest.mark.parametrize("row", rows("feeling", "line", every=6))
async def test_a_line_is_felt_as_it_was_appraised(home: Home, row: Row) -> None:
    """The kind that the model wrote is kept, of any language, and moves the numbers only where it is no plain case."""
    felt = list[float]()
    async with acting(home, row.id, clock=CLOCK) as it:
        for line, of in (("Hello.", ["nothing"]), ("The bus was late.", ["nothing"]), (row.input["says"], row.right)):
            await tell(it, [line], [of])  # type: ignore[list-item] # of a line `right` is the list
            numbers = it.soul.records().psyche()[0].numbers
            felt.append(numbers.valence if numbers else 0.0)

    kind = row.right[0].partition(",")[0]  # type: ignore[index] # likewise
    moved = felt[2] - felt[1] - (felt[1] - felt[0])
    assert (moved > 0) - (moved < 0) in SIGNS[kind]


GLAD, SORE = (
    "kindness thanks praise joy my_success",
    "sarcasm criticism cold hurtful threat pressure crude grief worry my_fault",
)
SIGNS = {"nothing": (-1, 0, 1), **dict.fromkeys(GLAD.split(), (1,)), **dict.fromkeys(SORE.split(), (-1,))}
SIGNS |= dict.fromkeys(("tease", "apology", "confides", "farewell", "plea"), (-1, 0, 1))
"""Which way the valence goes."""


@pytest.mark.parametrize("row", rows("feeling", "series"))
async def test_days_of_plain_or_kind_talk(home: Home, row: Row) -> None:
    """Plain talk in any language moves nothing, and kind words are no subject of their own."""
    row.knows_only("toward", "mood", "on_mind_never", "writes_first_about")
    right, given = row.right, row.input
    is_kind = "then_days" in given
    async with acting(home, row.id, clock=CLOCK) as it:
        person = it.side.stage.own_person
        await it.says("Hello.")
        await it.soul.mind.store.people.wish(person, proactive=is_kind, now=it.now())
        tails, n = list[str](), 0
        for _ in range(given["days"]):
            for line in given["says"]:
                tails.append(await it.says(line, appraisal="kindness, slight" if is_kind else "nothing"))
                n += 1
            await it.until(it.now() + timedelta(days=1), NEVER)
        before = len(await it.posts())
        await it.until(it.now() + timedelta(days=given.get("then_days", 0)), timedelta(hours=3))
        first = (await it.posts())[before:]
        left = mood(it)

    said = "".join(block(tail, "Psyche") for tail in tails)
    assert first == right.get("writes_first_about", [])
    assert left == right.get("mood", left)
    assert "toward" not in right or "Ana" not in said
    assert not [word for word in right.get("on_mind_never", ()) if word in said]
