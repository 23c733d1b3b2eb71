"""The Soul screen in a real browser: edit, preview, ask, save, and the next turn differs; conflicts; put back."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from browsing import Tab
from driven import Machine, reply, serving_console

Tabs = Callable[..., Tab]
CHANGE = ("Two or three sentences in talk", "One word in talk")
TEXT = "textarea.text"
OURS = "textarea.text:not([disabled])"


@contextmanager
def soul_screen(machine: Machine, tabs: Tabs, *replies: object) -> Iterator[Tab]:
    """Open the Soul screen of a console over a daemon; both have a voice that says these replies."""
    machine.scripted(*replies)
    with machine.daemon(), serving_console(machine) as console:
        tab = tabs().enter(console(), "soul")
        tab.page.wait_for_selector(OURS)
        yield tab


def edit(tab: Tab, old: str, new: str) -> None:
    """Change the text in the editor, and wait until the preview has looked at it."""
    text = tab.page.input_value(TEXT)
    assert old in text
    tab.page.fill(TEXT, text.replace(old, new))
    tab.page.wait_for_selector(".checks >> text=rebuild byte for byte")


def test_console_w28_one_edits_previews_asks_saves_and_the_next_turn_differs(machine: Machine, tabs: Tabs) -> None:
    """The whole walk: nothing is written until Save; said then stands beside would say now; the next prompt has it."""
    own = machine.home / "soul" / "soul.md"
    with soul_screen(machine, tabs, reply("Row 7.", user_model_check="false")) as tab:
        page = tab.page
        edit(tab, *CHANGE)
        effect = page.inner_text(".before")
        assert "their system part changes, and nothing else does" in effect
        assert "One word" in page.inner_text(".diff .add")
        assert "Two or three sentences" in page.inner_text(".diff .gone")
        page.reload()
        page.wait_for_selector("nav a[href='#soul'][aria-current=page]")
        tab.until(f"document.querySelector('{TEXT}')?.value.includes('One word in talk')")
        page.wait_for_selector(".ask button:not([disabled])")
        page.locator(".ask button").first.click()
        page.wait_for_selector(".ask >> text=turns asked")
        first = page.locator(".compared").first
        assert "Row 7." in first.locator(".answer").last.inner_text()
        assert "private" in first.locator(".answer").first.inner_text().lower()
        assert not own.exists()
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("text=Saved: the next turn has it")
        tab.open("now")
        tab.talk_as_owner("Does row 7 hold?")
        page.wait_for_selector(".talk .exchange .spoken")
        assert tab.problems == []

    assert "One word in talk" in own.read_text()
    asked = [json.loads(line) for line in machine.requests.read_text().splitlines()]
    turn = next(one for one in reversed(asked) if one["purpose"] == "turn")
    assert "One word in talk" in turn["system"]


def test_console_w30_a_save_over_somebody_elses_edit_shows_both_texts(machine: Machine, tabs: Tabs) -> None:
    """Changed elsewhere, the open editor is told; Save is off until one chooses; then the draft stands over it, or goes."""
    own = machine.home / "soul" / "soul.md"
    with soul_screen(machine, tabs) as tab:
        page = tab.page
        edit(tab, *CHANGE)
        machine.ok("soul", "edit", env={"EDITOR": "sed -i s/Maximus/Magnus/"})
        page.wait_for_selector(".conflict >> text=was changed meanwhile")
        assert "Magnus" in page.inner_text(".conflict .gone")
        assert page.get_by_role("button", name="Save").is_disabled()
        assert tab.findings() == []
        page.get_by_role("button", name="Keep my draft over it").click()
        page.wait_for_selector(".checks >> text=rebuild byte for byte")
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("text=Saved: the next turn has it")
        assert "Maximus" in own.read_text()
        edit(tab, "a maker by trade", "a baker by trade")
        machine.ok("soul", "edit", env={"EDITOR": "sed -i s/Maximus/Minimus/"})
        page.get_by_role("button", name="Take what it says now").click()
        tab.until(f"document.querySelector('{TEXT}').value.includes('Minimus')")

    assert "a maker by trade" in own.read_text()


@pytest.mark.nightly
def test_console_w30_a_save_that_races_is_refused_and_loses_nothing(machine: Machine, tabs: Tabs) -> None:
    """Where the page could not know yet, the server refuses: the draft stays in its field, and both texts are shown."""
    own = machine.home / "soul" / "soul.md"
    with soul_screen(machine, tabs) as tab:
        page = tab.page
        edit(tab, *CHANGE)
        text = page.input_value(TEXT)
        page.route("**/api/live", lambda route: route.abort())  # it hears of nothing
        page.route(
            "**/api/soul/soul.md",
            lambda route: (
                (own.write_text("Somebody else's.\n"), route.continue_())
                if route.request.method == "POST"
                else route.continue_()
            ),
        )
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector(".conflict >> text=was changed meanwhile")

        assert page.input_value(TEXT) == text
    assert own.read_text() == "Somebody else's.\n"


def test_console_w30_an_earlier_text_and_the_shipped_one_are_put_back(machine: Machine, tabs: Tabs) -> None:
    """Put back makes a draft of the shipped or of an earlier text, which is previewed and saved like any other."""
    own = machine.home / "soul" / "soul.md"
    with soul_screen(machine, tabs) as tab:
        page = tab.page
        shipped = page.input_value(TEXT)
        edit(tab, *CHANGE)
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("text=Saved: the next turn has it")
        changed = own.read_text()
        page.get_by_role("button", name="Put back the shipped text").click()
        page.wait_for_selector(".checks >> text=rebuild byte for byte")
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("text=Saved: the next turn has it")
        assert own.read_text() == shipped
        page.get_by_role("button", name="Put back the text until").first.click()
        page.wait_for_selector(".checks >> text=rebuild byte for byte")
        page.get_by_role("button", name="Save").click()
        tab.until("document.body.innerText.includes('Saved: the next turn has it')")
        assert tab.problems == []

    assert own.read_text() == changed


def test_console_w28_a_draft_that_cannot_be_used_cannot_be_saved(machine: Machine, tabs: Tabs) -> None:
    """A broken head is told with its line, Save stays off, and other texts can still be read and written."""
    with soul_screen(machine, tabs) as tab:
        page = tab.page
        page.fill(TEXT, "+++\nunended = true\n")
        page.wait_for_selector(".checks .wrong >> text=line 1")
        assert page.get_by_role("button", name="Save").is_disabled()
        assert tab.findings() == []
        page.get_by_role("button", name="Drop the draft").click()
        page.fill("#fresh", "bridges")
        page.get_by_role("button", name="Begin").click()
        page.wait_for_selector("h1 >> text=dossiers/bridges.md")
        page.wait_for_selector(OURS)
        page.fill(TEXT, "The footbridge has three spans.\n")
        page.wait_for_selector(".checks >> text=every text can be used")
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("text=Saved: the next turn has it")

    assert (machine.home / "soul" / "dossiers" / "bridges.md").read_text() == "The footbridge has three spans.\n"


def test_console_w28_the_editor_keeps_every_key_of_a_burst(machine: Machine, tabs: Tabs) -> None:
    """page-burst: keys that come at once, as an input method sends them, all stand in the text and in its draft."""
    with soul_screen(machine, tabs) as tab:
        page = tab.page
        page.focus(TEXT)
        page.keyboard.press("Control+End")
        page.keyboard.type("You love bicycles. " * 5)
        tab.until("JSON.parse(sessionStorage['claudius.drafts'])['soul.md'].text.endsWith('You love bicycles. ')")

        assert page.input_value(TEXT).endswith("You love bicycles. " * 5)
