"""Facts that people state of themselves, and the importance of what is said."""

from __future__ import annotations

import pytest

from claudius.memory.facts import in_force, is_single_valued, stated_facts
from claudius.psyche.context import importance


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi, my name is Ana Silva.", {"name": "Ana Silva"}),
        ("call me Tom, please", {}),
        ("Hey, I'm Tom, and I bake.", {"name": "Tom"}),
        ("I'm Zoë.", {"name": "Zoë"}),
        ("Hello, I'm Sebastian.", {"name": "Sebastian"}),
        ("I'm Irish.", {}),
        ("I'm Norwegian, by the way", {}),
        ("I'm Tom's brother.", {}),
        ("I'm Rome bound", {}),
        ("I'm OK.", {}),
        ("I'm not Tom.", {}),
        ("Im Büro.", {}),
        ("Im Urlaub!", {}),
        ("I'm Back!", {}),
        ("Hi, I'm Back!", {}),
        ("I'm Sorry, the train was late.", {}),
        ("I'm Ok.", {}),
        ("I'm Interested!", {}),
        ("I'm Tom's.", {}),
        ("I'm Batman, said the child.", {}),
        ("my name is wrong.", {}),
        ("Hello! I'm Tom. I bake.", {"name": "Tom"}),
        ("I'm Tom. I'm allergic to walnuts.", {"name": "Tom", "allergic to": "walnuts"}),
        ("I'm Done. Send it.", {}),
        ("I'm Tom from Hull", {"name": "Tom"}),
        ("I'm Tom :)", {"name": "Tom"}),
        ("my name is on the list", {}),
        ("my name is zoë", {"name": "Zoë"}),
        ("I live in Lisbon, near the river", {"lives in": "Lisbon"}),
        ("I'm from Porto.", {"comes from": "Porto"}),
        ("I work at the harbour", {"works": "at the harbour"}),
        ("my birthday is the 3rd of May", {"birthday": "the 3rd of May"}),
        ("I am a nurse in Ghent", {"is": "a nurse in Ghent"}),
        ("I'm allergic to nuts", {"allergic to": "nuts"}),
        ("I love old maps", {"loves": "old maps"}),
        ("my dog is called Rex", {"dog": "Rex"}),
        ("my sister is Rita", {"sister": "Rita"}),
        ("she lives in Rome and works at a bank", {}),
        ("I love you", {}),
        ("I think I might be from another time", {}),
        ("my sister is angry", {}),
        ("I take insulin twice a day", {"takes": "insulin twice a day"}),
        ("I'm vegetarian, thanks", {"is": "vegetarian"}),
        ("I can't eat gluten", {"must not": "eat gluten"}),
        ("I can't see you there", {}),
        ("I am tired", {}),
        ("Hey Claudius, I'm vegan, and I live in Hull.", {"is": "vegan", "lives in": "Hull"}),
        ("I think I'm allergic to dust.", {}),
        ("I'm hardly allergic to dust.", {}),
        ("I love this!", {}),
        ("She told me: I live in Rome.", {}),
        ("We moved to Turin in May.", {"lives in": "Turin"}),
        ("My birthday is tomorrow.", {}),
        ("I no longer live in Rome.", {"no longer": "I no longer live in Rome"}),
        ("I'm not allergic to dust.", {"no longer": "I'm not allergic to dust"}),
        ("I left the harbour.", {"no longer": "I left the harbour"}),
        ("There are two nuts left.", {}),
        ("Am I no longer on the list?", {}),
        ("I can't eat nuts any more.", {"must not": "eat nuts any more"}),
    ],
)
def test_m9_facts_are_kept_only_when_stated(text: str, expected: dict[str, str]) -> None:
    """M9: a fact is what people say of themselves in plain words; it is never inferred."""
    facts = stated_facts(text, "p", ("private:p",), "t", 1.0)

    assert {fact.key: fact.value for fact in facts} == expected


def test_m9_a_newer_value_takes_the_place_of_an_older_only_where_there_is_one() -> None:
    """M9: a person has one name but many likings."""
    assert is_single_valued("name")
    assert is_single_valued("dog")
    assert not is_single_valued("loves")


def test_m9_importance_is_what_the_contract_adds_up() -> None:
    """M9: importance grows with the strongest axis, danger, feeling, novelty and the hottest subject, within [0, 1]."""
    quiet = importance((0.0,) * 5, critical=False, moved=False, novelty=0.0, heat=0.0)
    loud = importance((-1.0, 0, 0, 0, 0), critical=True, moved=True, novelty=0.8, heat=1.0)

    assert quiet == pytest.approx(0.10)
    assert loud == 1.0


@pytest.mark.parametrize(
    ("stated", "later", "is_in_force"),
    [
        ("I'm allergic to walnuts.", "I left the walnuts at home.", True),
        ("I'm allergic to shellfish.", "I won't eat shellfish any more.", True),
        ("I'm allergic to penicillin.", "I'm not afraid of penicillin.", True),
        ("I'm allergic to walnuts.", "I'm no longer allergic to walnuts.", False),
        ("I'm allergic to walnuts.", "The walnut allergy is no longer there.", False),
        ("I take metformin every day.", "I have left my metformin at the hotel.", True),
        ("I take metformin every day.", "I don't take metformin any more.", False),
        ("I don't eat meat.", "He left the meat on the table.", True),
        ("I'm vegetarian.", "I'm not vegetarian any more.", False),
        ("I work at Acme.", "I left Acme.", False),
    ],
)
def test_a_constraint_ends_only_with_a_statement_of_it(stated: str, later: str, *, is_in_force: bool) -> None:
    """What one must not eat is not forgotten because the word comes up again."""
    facts = [*stated_facts(stated, "p", ("private:p",), "t", 1.0), *stated_facts(later, "p", ("private:p",), "u", 2.0)]

    assert (facts[0] in in_force(facts)) is is_in_force
