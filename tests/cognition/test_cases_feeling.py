"""Short messages: what is thought about and what is only acknowledged; and a talk in a language that is not English."""

from __future__ import annotations

import pytest

from case_rows import Row, rows
from claudius.home import Home
from claudius.perception import Kind
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.psyche.classify import is_trivial, lexicon
from living import felt
from minds import Clock, by_tag, heard, minds, say

_ASSENT_TEXT = "yes yeah yep yup no nope nah sure ja nein oui non sí sim não nie nee да нет はい いいえ 是 不"
_FIRST_PERSON_TEXT = "i i'm i've i'll my me we ich mein mich j'ai moi yo mi eu io ik я мы"
ASSENT, FIRST_PERSON = frozenset(_ASSENT_TEXT.split()), frozenset(_FIRST_PERSON_TEXT.split())
MEANS = '{"operation":"create","type":"follow_up","target":"","horizon":"medium","description":"DESCRIPTION"}'


@pytest.mark.parametrize("row", rows("feeling", "heard"))
async def test_what_is_short_is_thought_about_unless_it_only_acknowledges(home: Home, row: Row) -> None:
    """A short message asks the model, unless it is a known phrase of thanks or assent after nothing that is open."""
    row.knows_only("thought_about", "calls")
    line, opened = row.input.get("soul", "So it is."), row.input.get("open", "")

    def means(request: Request) -> str:
        """Mean to come back to what is open, when it is first told."""
        return MEANS.replace("DESCRIPTION", opened) if opened and opened in heard(request)[-1] else ""

    voice = Scripted(default=by_tag(external_dialogue=line, intention_updates=means))
    async with minds(home, voice) as soul:
        await say(soul, f"Please ask me about {opened}." if opened else "When does the ferry leave?")
        before = len(voice.requests)
        said = await say(soul, row.input["says"])
        calls = len(voice.requests) - before

    assert calls == (row.right.get("calls", 1) if row.right["thought_about"] else 0)
    assert (said[-1] == line) is row.right["thought_about"]


@pytest.mark.parametrize("open_at", ["before", "between"])
async def test_an_answer_to_a_question_is_thought_about_wherever_the_mark_stands(home: Home, open_at: str) -> None:
    """A question that more words follow is one too, and what somebody else says in between takes it from nobody."""
    voice = Scripted(default=by_tag(external_dialogue="Shall I send you the list? It is short."))
    place = "rehearsal:t:hall:1"
    async with minds(home, voice) as soul:
        await soul.network.hear("Have you got the list?", conversation=place, is_shared=True)
        await soul.network.until_visible(1)
        if open_at == "between":
            await soul.network.hear(
                "The bus was late.", conversation=place, is_shared=True, person="ben", kind=Kind.MESSAGE
            )
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


@pytest.mark.parametrize("row", rows("feeling", "series", only="german-fortnight"))
async def test_plain_talk_in_another_language_moves_no_feeling(home: Home, row: Row) -> None:
    """Words that mean something sad in English move nothing where the text is not English."""
    row.knows_only("toward", "mood")
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="So ist es."))
    async with minds(home, voice, clock=clock) as soul:
        for _ in range(row.input["days"]):
            await say(soul, *row.input["says"])
            clock.forward(days=1)
        await say(soul, row.input["says"][0])
        records = [record for request in voice.requests if (record := felt(request))]

    toward = records[-1]["toward"].partition(": ")[2]
    assert toward == row.right["toward"]
    assert {record["mood"].split(",")[0] for record in records} <= {row.right["mood"], "quiet"}
