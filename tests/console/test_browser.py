"""The screens in a real browser, over the real `claudius console` and a home with a week of life."""

import os
import re
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from browsing import ERASES_S, Tab
from claudius.home import Home
from claudius.reports import life
from driven import Machine, reply, serving_console, until
from lived_week import ENDS, TALK

SCREENS = ("now", "life", "people", "beliefs", "soul", "clock", "hands", "mind", "health")
WIDER = """Math.max(...[document.documentElement, ...document.querySelectorAll(".scroll:has(th):not(:has(th:nth-child(6)))")]
    .map((one) => one.scrollWidth - one.clientWidth), document.documentElement.scrollHeight - innerHeight)"""
OWN = "terminal:local:main:main"
Tabs = Callable[..., Tab]
Console = Callable[[], str]


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1440),
        ("dark", 390),
        pytest.param("dark", 1440, marks=pytest.mark.nightly),
        pytest.param("light", 390, marks=pytest.mark.nightly),
    ],
)
def test_console_w39_every_screen_is_for_everybody(
    machine: Machine, console: Console, tabs: Tabs, scheme: str, width: int
) -> None:
    """On each screen, light and dark, wide and narrow: nothing for axe, no error, no other host, no scroll of page or table."""
    with machine.daemon():
        tab = tabs(scheme, width).enter(console())
        found, wider = {}, {}
        for screen in SCREENS:
            tab.open(screen)
            found[screen] = tab.findings()
            wider[screen] = tab.page.evaluate(WIDER)
            assert tab.page.locator("h1").count() == 1

    assert found == {screen: [] for screen in SCREENS}
    assert wider == dict.fromkeys(SCREENS, 0)
    assert tab.problems == []
    assert len(tab.hosts) == 1


def test_console_one_talks_and_sees_the_answer_once(machine: Machine, console: Console, tabs: Tabs) -> None:
    """A line said in the page is heard, thought about and answered there; the reply counts as shown, and stands once."""
    machine.scripted(reply("Row 7 holds.", user_model_check="false", soul_state_check="false"))
    with machine.daemon() as pid:
        tab = tabs().enter(console())
        page = tab.page
        tab.talk_as_owner("Does row 7 hold?")
        page.wait_for_selector(".talk .spoken >> text=Row 7 holds.")
        page.wait_for_selector(".talk .exchange .bubble >> text=Does row 7 hold?")
        page.wait_for_selector(".talk .thought >> text=Somebody speaks.")

        assert page.locator(".talk .bubble", has_text="Does row 7 hold?").count() == 1
        assert page.locator(".talk .spoken", has_text="Row 7 holds.").count() == 1
        page.wait_for_selector(".inner .turn .spoken >> text=Row 7 holds.")
        assert page.locator(".inner .thought", has_text="Somebody speaks.").count() == 1
        turn = machine.ok("conversations", "show", OWN, "--json").json["entries"][-1]["turn"]
        until(pid, lambda: [one["state"] for one in machine.ok("why", turn, "--json").json["delivery"]] == ["sent"])
        assert tab.problems == []


def test_console_one_finds_the_turn_that_broke_the_mood_and_reads_why(console: Console, tabs: Tabs) -> None:
    """Life: the deepest dot leads to the insult, its thought, its reply and the numbers; the table leads there, too."""
    tab = tabs().enter(console(), "life")
    page = tab.page
    insult = TALK[6]

    page.locator(".swing.down circle").last.click()
    page.wait_for_selector(f".turn .heard >> text={insult[3][:40]}")

    assert insult[5] in page.inner_text(".turn .thought")
    assert insult[6] in page.inner_text(".turn .spoken")
    assert "▼" in page.inner_text(".turn .moved")
    assert "the full words go" in page.inner_text(".turn .heard")
    page.keyboard.press("ArrowRight")
    tab.until("!document.querySelector('.turn .heard')?.innerText.includes('Stop lecturing')")
    page.get_by_role("row", name=re.compile(re.escape(insult[3][:30]))).get_by_role("button").click()
    page.wait_for_selector(f".turn .heard >> text={insult[3][:40]}")
    assert tab.problems == []


def test_console_w36_the_picture_draws_the_numbers_of_life(machine: Machine, console: Console, tabs: Tabs) -> None:
    """Each run of each curve is a line; a dot for each swing."""
    tab = tabs().enter(console(), "life")

    drawn = tab.page.locator(".picture .curve").count()
    dots = tab.page.locator(".swing").count()
    week = life.life(Home(machine.home), ENDS - timedelta(days=7), ENDS, 600)
    lanes = [lane for lane in week["lanes"] if lane["title"] not in ("Needs", "On its mind")]
    assert drawn == sum(len(curve["runs"]) for lane in lanes for curve in lane["curves"])
    assert dots == sum(abs(one["delta"]) >= 0.1 for one in week["turns"])


def test_console_w9_asleep_lost_and_refused_say_what_to_do(machine: Machine, tabs: Tabs) -> None:
    """Asleep it reads; its process ended, the last picture stays with its time; a used link says how to get another."""
    with serving_console(machine) as console:
        address = console()
        tab = tabs().enter(address)
        page = tab.page
        assert "claudius daemon start" in page.inner_text(".banner")
        again = tabs()
        again.page.goto(address)
        again.page.wait_for_selector(".door")
        assert "claudius console --link" in again.page.inner_text(".door")
        refused = again.findings()
    page.wait_for_selector(".banner >> text=The console's process has ended")
    assert "You see the last picture" in page.inner_text(".banner")
    assert page.locator(".talk .bubble").count() > 3
    assert refused == []
    assert tab.findings() == []


def test_console_the_daemon_dies_and_comes_back_under_an_open_page(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """Killed, the page says that it sleeps; started again, one talks on in the same page."""
    machine.scripted(reply("I am back."))
    tab = tabs()
    with machine.daemon(is_stopped=False) as pid:
        tab.enter(console())
        os.kill(pid, signal.SIGKILL)
        tab.page.wait_for_selector(".banner >> text=It is asleep")
    with machine.daemon():
        tab.page.wait_for_selector(".strip >> text=awake")
        tab.talk_as_owner("Are you there?")
        tab.page.wait_for_selector(".talk .spoken >> text=I am back.")


def test_console_w1_the_first_word_wakes_the_soul_where_no_daemon_runs(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """Asleep, a line said in the page is answered all the same: the soul wakes inside the console's process."""
    machine.env["CLAUDIUS_PROVIDERS"] = "rehearsal"
    tab = tabs().enter(console())

    tab.talk_as_owner("My name is Ada.")

    tab.page.wait_for_selector(".talk .exchange .spoken")


@pytest.mark.nightly
def test_console_w12_eight_tabs_work(console: Console, tabs: Tabs) -> None:
    """Eight tabs of one browser read and follow."""
    first = tabs().enter(console())
    context = first.page.context
    for _ in range(7):
        tab = tabs(context=context).enter(console(), "life")
        assert tab.page.locator(".picture").count() == 1
        assert tab.problems == []
    first.page.bring_to_front()
    first.open("now")
    assert first.page.locator(".talk .bubble").count() > 3


def test_console_w40_keys_work_outside_fields_and_can_be_switched_off(console: Console, tabs: Tabs) -> None:
    """A digit opens a screen, v veils, / leads to what one says; inside a field, and switched off, none fires."""
    tab = tabs().enter(console())
    page = tab.page
    page.keyboard.press("2")
    page.wait_for_selector("nav a[href='#life'][aria-current=page]")
    page.keyboard.press("v")
    page.wait_for_selector(".frame.veiled")
    page.keyboard.press("1")
    page.locator(".list button", has_text="You").click()
    page.wait_for_selector("#words:not([disabled])")
    page.keyboard.press("/")
    tab.until("document.activeElement.id === 'words'")
    page.keyboard.type("v2")
    assert page.input_value("#words") == "v2"
    page.reload()
    page.wait_for_selector("#words")
    tab.until("document.querySelector('#words').value === 'v2'")
    page.locator("main").focus()
    page.keyboard.press("?")
    page.get_by_role("button", name="Switch the keys off").click()
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    assert page.get_attribute("nav a[href='#now']", "aria-current") == "page"


def test_console_w32_one_pins_a_belief_and_reads_its_evidence(machine: Machine, console: Console, tabs: Tabs) -> None:
    """Beliefs: the evidence is the messages themselves; a pinned one is kept for good; deleting asks first."""
    page = tabs().enter(console(), "beliefs").page

    page.get_by_role("button", name=re.compile("^Evidence")).first.click()
    page.wait_for_selector("dialog .cards li")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Pin", exact=True).click()
    page.wait_for_selector(".cards >> text=pinned")

    assert [one["state"] for one in machine.ok("cortex", "beliefs", "--json").json["beliefs"]] == ["pinned"]
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Really delete").click()
    page.wait_for_selector("text=It believes nothing yet")


def test_console_w33_one_reverts_a_portrait_and_forgets_a_person_to_the_receipt(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """People: back to a version, with the way back said; forgetting wants the name typed out, and ends in the receipt."""
    with machine.daemon():
        tab = tabs().enter(console(), "people")
        page = tab.page
        page.get_by_role("button", name="Back to 1").click()
        page.wait_for_selector("text=version 4 is version 1 again")
        log = machine.ok("users", "log", "Ada", "--json").json
        page.get_by_role("button", name="Rhea").click()
        page.get_by_role("button", name="Forget…").click()
        page.wait_for_selector("dialog >> text=lines of talk")
        assert page.get_by_role("button", name="Forget for good").is_disabled()
        page.fill("#typed", "Rhea")
        page.get_by_role("button", name="Forget for good").click()
        page.wait_for_selector("dialog >> text=and found none", timeout=1000 * ERASES_S)
        page.get_by_role("button", name="Close", exact=True).click()
        tab.until("!document.body.innerText.includes('Rhea')")

    assert (log[0]["version"], log[0]["note"]) == (4, "back to version 1")
    assert "rhea" not in str(machine.ok("users", "list", "--json").json)


@pytest.mark.nightly
def test_console_w45_its_pictures(machine: Machine, tabs: Tabs, tmp_path: Path) -> None:
    """A picture of each screen, for docs/console.md: they go where CLAUDIUS_TEST_PICTURES says, else nowhere lasting."""
    place = Path(os.environ.get("CLAUDIUS_TEST_PICTURES") or tmp_path)
    speaking = (
        '<acts>none</acts>\n<internal_monologue verb="weighed">She wants a number. Row 7 has it, and row 9 counts the wind twice; say both.',
        "</internal_monologue>\n<external_dialogue>",
        "Row 7 carries 42 kN, measured at the left support. Before you use it, strike the wind term in row 9, ",
    )
    hangs = {"deltas": speaking, "after": 3, "hang": True}  # several: a job of the clock may take one
    machine.scripted(reply("Then row 7 first. What does it claim?"), *[hangs] * 4)
    machine.ok("config", "set", "kothar.groq_enabled", "true")
    machine.ok("config", "set", "kothar.provider", "rehearsal")
    with machine.daemon(), serving_console(machine) as console:
        tab = tabs().enter(console())
        page = tab.page
        for screen in SCREENS:
            tab.open(screen)
            match screen:
                case "now":
                    tab.talk_as_owner("I check load tables for the old rail bridge. One row looks odd to me.")
                    page.wait_for_selector(".talk .exchange .spoken")
                    tab.talk_as_owner("What does row 7 carry?")
                    page.wait_for_selector(".inner .growing >> text=Row 7 carries")
                case "life":
                    page.locator(".swing.down circle").last.click()
                    page.wait_for_selector(".turn")
                case "soul":
                    machine.scripted(*map(reply, ("It falls, and comes back.", "Come earlier next time.", "Good.") * 2))
                    text = page.input_value("textarea.text")
                    page.fill("textarea.text", text.replace("Two or three sentences in talk", "One sentence in talk"))
                    page.locator(".ask button").first.click()
                    page.wait_for_selector("text=turns asked")
                    page.evaluate(
                        "document.activeElement.blur(), document.querySelector('textarea.text').scrollTop = 0"
                    )
                case "clock":
                    page.get_by_role("button", name="Whisper now").click()
                    page.wait_for_selector("[aria-label=Whispers] .cards li")
            page.screenshot(path=place / f"console-{screen}.png")
            if screen == "now":
                page.get_by_role("button", name="Stop").click()
                page.wait_for_selector(".inner .thought.voided")

    assert {f"console-{screen}.png" for screen in SCREENS} <= {path.name for path in place.iterdir()}
