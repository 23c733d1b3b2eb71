"""Each screen in each of its four states, and at 360 px: a text, a next step, nothing for axe."""

from collections.abc import Callable
from pathlib import Path

import pytest

from browsing import Tab
from driven import Machine, serving_console

SCREENS = ("now", "life", "people", "beliefs", "soul", "clock", "hands", "mind", "health")
NEXT = {
    "now": "say something",
    "life": "say something",
    "people": "say something",
    "beliefs": "A cycle of the second mind forms beliefs",
    "soul": "write in it",
    "clock": "Ask it to remind you",
    "hands": "It asks for nothing.",
    "mind": "without a key",
    "health": "claudius daemon start",
}
"""The next step that a screen names while there is nothing yet."""
WIDER = "Math.max(0, document.documentElement.scrollWidth - innerWidth)"
SMALL = """[...document.querySelectorAll('button, a[href], input, select, textarea, summary, [role=slider]')].filter(one => {
  const box = one.getBoundingClientRect(), look = getComputedStyle(one);
  if (!box.width || !box.height || look.visibility === 'hidden' || one.closest('.sr, .skip, .picture')) return false;
  const target = one.type === 'checkbox' ? one.closest('label').getBoundingClientRect() : box;
  return target.height < 44 || target.width < 44;
}).map(one => one.outerHTML.slice(0, 90) + ' ' + one.getBoundingClientRect().height)"""
CUT = """[...document.querySelectorAll('select')].filter(one => one.clientWidth).flatMap(one => {
  const pen = document.createElement('canvas').getContext('2d'); pen.font = getComputedStyle(one).font;
  return [...one.options].map(it => it.label).filter(label => pen.measureText(label).width > one.clientWidth - 36); })"""
Tabs = Callable[..., Tab]


def everywhere(console: Callable[[], str], tabs: Tabs) -> dict[str, Tab]:
    """Open a tab of one browser on each screen."""
    first = tabs().enter(console())
    context = first.page.context
    return {screen: tabs(context=context).enter(console(), screen) for screen in SCREENS}


def test_console_w9_with_nothing_yet_each_screen_says_what_to_do(tmp_path: Path, tabs: Tabs) -> None:
    """In an empty home, asleep: each screen has a text and a next step, the banner says how to wake it; nothing for axe."""
    found = {}
    with serving_console(Machine(tmp_path)) as console:
        tab = tabs().enter(console())
        for screen in SCREENS:
            tab.open(screen)
            assert NEXT[screen] in tab.page.inner_text("main"), screen
            assert "claudius daemon start" in tab.page.inner_text(".banner")
            found[screen] = tab.findings()

    assert found == {screen: [] for screen in SCREENS}
    assert tab.problems == []


@pytest.mark.nightly
def test_console_w9_lost_each_screen_keeps_its_last_picture(machine: Machine, tabs: Tabs) -> None:
    """Asleep, a life is read on each screen; once the console's process has ended each keeps it, greyed, with its time."""
    with serving_console(machine) as console:
        opened = everywhere(console, tabs)
        before = {screen: tab.page.inner_text("main h1") for screen, tab in opened.items()}
        asleep = {screen: tab.page.inner_text(".banner") for screen, tab in opened.items()}
    found, kept = {}, {}
    for screen, tab in opened.items():
        tab.page.bring_to_front()
        tab.page.wait_for_selector(".banner >> text=The console's process has ended")
        assert "You see the last picture" in tab.page.inner_text(".banner")
        found[screen], kept[screen] = tab.findings(), tab.page.inner_text("main h1")
        assert "Reading…" not in tab.page.inner_text("main")
        assert len(tab.page.inner_text("main")) > 100, screen
    assert {"claudius daemon start" in text for text in asleep.values()} == {True}
    assert found == {screen: [] for screen in SCREENS}
    assert kept == before


@pytest.mark.nightly
def test_console_w9_refused_each_screen_says_how_to_get_in(machine: Machine, tabs: Tabs) -> None:
    """After *Close the door in every tab* each open screen says how to get a link that works; nothing for axe."""
    with serving_console(machine) as console:
        opened = everywhere(console, tabs)
        opened["now"].page.evaluate(
            "fetch('/api/close', {method: 'POST', body: '{}', headers: HEADERS})".replace(
                "HEADERS",
                "{'Content-Type': 'application/json', Authorization: 'Bearer ' + sessionStorage.getItem('claudius.token')}",
            )
        )
        found = {}
        for screen, tab in opened.items():
            tab.page.bring_to_front()
            tab.page.reload()
            tab.page.wait_for_selector(".door")
            assert "claudius console --link" in tab.page.inner_text(".door")
            found[screen] = tab.findings()

    assert found == {screen: [] for screen in SCREENS}


def test_console_w41_360_px_need_no_sideways_scrolling_and_no_small_finger(machine: Machine, tabs: Tabs) -> None:
    """At 360 px no screen is wider than the page, and every target is 44 px high and wide; no choice is cut off."""
    wider, small, cut = {}, {}, {}
    with serving_console(machine) as console:
        tab = tabs("light", 360).enter(console())
        for screen in SCREENS:
            tab.open(screen)
            wider[screen], small[screen], cut[screen] = map(tab.page.evaluate, (WIDER, SMALL, CUT))

    assert wider == dict.fromkeys(SCREENS, 0)
    assert small == cut == {screen: [] for screen in SCREENS}
