"""The rows of `cases/newcomer.json` about the page, where no other test of this room has them."""

import re
from collections.abc import Callable
from pathlib import Path

from browsing import Tab
from case_rows import rows
from driven import Machine, reply
from lived_week import TALK

Tabs = Callable[..., Tab]
Console = Callable[[], str]
OUTSIDE = """[...document.querySelectorAll('.picture text')].filter(one => {
    const box = one.closest('.scroll').getBoundingClientRect(), text = one.getBoundingClientRect();
    return text.left < box.left - 1 || text.right > box.right + 1; }).map(one => one.textContent)"""


def test_console_each_row_of_the_page_has_its_test() -> None:
    """A test of this room names it in the rule that it proves."""
    rules = "".join(one.read_text("utf-8") for one in Path(__file__).parent.glob("test_*.py"))

    assert [one.id for one in rows("newcomer", "page") if f"{one.id}: " not in rules] == []


def test_console_behind_an_answer_stands_its_thought(console: Console, tabs: Tabs) -> None:
    """page-thought: the panel shows the thought of the last words, though a silent moment of its own came after them."""
    tab = tabs().enter(console())
    tab.page.locator(".list button", has_text="ada").click()
    tab.page.wait_for_selector(f".inner .turn .thought >> text={TALK[-1][5]}")

    assert tab.page.locator(".talk .exchange .thought").last.inner_text().endswith("It is time.")
    assert not re.search("Nobody spoke|false", tab.page.inner_text("main"))


def test_console_what_the_clock_began_is_told_by_what_was_asked_for(console: Console, tabs: Tabs) -> None:
    """page-own: talk and record have the person's own words, veiled, and none of what the model was told."""
    tab = tabs().enter(console())
    tab.page.locator(".list button", has_text="ada").click()
    asked = tab.page.locator(".private", has_text=re.compile("^send the load table to Rhea$"))
    rang = tab.page.locator(".talk .rang", has_text="its clock rang: ", has=asked)
    rang.locator("xpath=..").get_by_role("button", name=re.compile("^why")).click()
    tab.page.wait_for_selector(".inner .turn .heard >> text=It rang: send the load table to Rhea")
    assert "Say it to them" not in tab.page.inner_text("main")


def test_console_a_turn_tells_its_state_and_its_price_in_words(machine: Machine, console: Console, tabs: Tabs) -> None:
    """page-state: what changed is a sentence; page-price: a price that nobody knows is unknown."""
    moved = {"soul_state_check": "true", "soul_state_update": "currentTopic: daughter's name"}
    lines = ("I have a daughter.", "She is four.", "Her name is Ines.")  # each third turn of a talk looks at the state
    machine.scripted(*[reply(f"Heard: {line}", user_model_check="false", **moved) for line in lines])
    with machine.daemon():
        tab = tabs().enter(console())
        for line in lines:
            tab.talk_as_owner(line)
            tab.page.wait_for_selector(f".inner .turn .spoken >> text=Heard: {line}")
        shown = tab.page.inner_text(".inner .turn")

    assert re.search(r"daughter's name(?s:.*)price unknown", shown)
    assert not re.search(r"[{}]|currentTopic|\$0", shown)


def test_console_life_fits_a_phone(console: Console, tabs: Tabs) -> None:
    """page-phone: chart and table, a long word's too, are no wider than their place, no label is cut, axes have names."""
    tab = tabs("light", 390).enter(console(), "life")
    shown = tab.page.locator(".picture text").all_text_contents()
    assert tab.page.evaluate("document.querySelector('.picture').closest('.scroll').scrollWidth") <= 390
    assert tab.page.evaluate(OUTSIDE) == []
    tab.page.locator("td .private").first.evaluate("one => { one.textContent = 'a'.repeat(300); }")
    assert tab.page.locator(".scroll", has=tab.page.locator("th")).first.evaluate("one => one.scrollWidth") <= 390
    assert {"Turns", "time"} <= {*shown}
    assert "Mood bad to good" in " ".join(shown)
