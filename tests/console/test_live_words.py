"""Words while they come, in a real browser over a real daemon: as they will stand, once, under what they answer."""

from collections.abc import Callable

from browsing import Tab
from driven import Machine, reply

Tabs = Callable[..., Tab]
Console = Callable[[], str]
THOUGHT = """<internal_monologue verb="weighed">Two steps.</internal_monologue>
<user_model_check>false</user_model_check>\n<acts>none</acts>\n"""
LIST = ("<external_dialogue>First:\n\n", "1. measure **row", " 7**\n2. strike **the", " wind** in `ro")
HANGS = {"deltas": [THOUGHT, *LIST, "w`"], "after": len(LIST) + 1, "hang": True}
SHOWN = "First:\n\nmeasure row 7\nstrike the wind in ro"


def test_console_words_are_drawn_while_they_come_and_a_new_page_has_them_all(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """page-markdown: a list, bold words and code stand while they are written; a second tab, and the first anew, too."""
    machine.scripted(HANGS)
    with machine.daemon():
        first = tabs().enter(console())
        first.talk_as_owner("What do I do?")
        first.page.wait_for_selector(".talk .spoken li:nth-child(2) code >> text=ro")
        second = tabs(context=first.page.context).enter(console())
        second.page.locator(".list button", has_text="You").click()
        first.page.reload()
        for tab in (first, second):
            tab.page.wait_for_selector(".talk .spoken li:nth-child(2) code >> text=ro")
            assert tab.page.inner_text(".talk [aria-live=off] .spoken").strip() == SHOWN
            assert tab.page.locator(".talk .spoken strong").all_inner_texts() == ["row 7", "the wind"]
            assert tab.page.locator(".talk .bubble", has_text="What do I do?").count() == 1
            assert tab.page.locator(".talk .thought", has_text="Two steps.").count() == 1
            assert "false" not in tab.page.inner_text("main")
            tab.open("life").open("now")
            assert tab.page.inner_text(".talk [aria-live=off] .spoken").strip() == SHOWN
            assert tab.problems == []
        first.page.get_by_role("button", name="Stop").click()
        first.page.wait_for_selector(".talk .thought.voided")


def test_console_each_answer_stands_under_its_message(machine: Machine, console: Console, tabs: Tabs) -> None:
    """page-queue: while the first of three lines is answered the others wait below; so does a command's answer."""
    machine.scripted({"deltas": [THOUGHT, *LIST], "after": 3, "hang": True}, *[reply("So it is.")] * 2)
    with machine.daemon():
        tab = tabs().enter(console())
        page = tab.page
        for text in ("The first line.", "The second line.", "The third line."):
            tab.talk_as_owner(text)
        page.wait_for_selector(".talk .spoken li >> text=measure row")
        tab.until("document.querySelectorAll('.talk .bubble').length === 3")
        tops = [
            page.locator(one).bounding_box()["y"]
            for one in (
                ".talk .bubble >> text=first line",
                ".talk [aria-live=off] .spoken",
                ".talk .bubble >> text=second line",
                ".talk .bubble >> text=third line",
            )
        ]
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector(".talk .exchange .spoken >> text=So it is.")
        tab.talk_as_owner("!whoami")
        page.wait_for_selector(".talk .ours .spoken >> text=I do not know your name yet")
        assert tab.problems == []

    assert tops == sorted(tops)
