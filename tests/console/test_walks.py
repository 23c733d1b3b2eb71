"""What an owner does in the page, in a real browser over a real daemon: one walk each."""

from collections.abc import Callable

from browsing import ERASES_S, Tab
from driven import Machine, reply, serving_console, until
from lab.loopback.hub import Hub, serving_hub
from lived_week import LEARNED, TALK
from reflecting import answer

OWN = "terminal:local:main:main"
Tabs = Callable[..., Tab]
Console = Callable[[], str]
BEGUN = '<internal_monologue verb="weighed">The bridge holds,'
THOUGHT = " I measured it.</internal_monologue>\n<external_dialogue>"
WATCH = """() => {
  window.order = [];
  const look = () => {
    const heard = document.querySelector('.inner .thought')?.innerText.includes('The bridge');
    const spoken = [...document.querySelectorAll('.inner .spoken, .talk .spoken')].some(one => one.innerText.includes('It holds'));
    if (heard && !window.order.includes('thought')) window.order.push('thought');
    if (spoken && !window.order.includes('spoken')) window.order.push('spoken');
  };
  new MutationObserver(look).observe(document.querySelector('main'), {subtree: true, childList: true, characterData: true});
}"""


def test_console_w11_the_thought_is_seen_before_the_words(machine: Machine, console: Console, tabs: Tabs) -> None:
    """The thought grows in the page while nothing has left yet; the words come after it, and both stand once."""
    parts = [BEGUN, THOUGHT, "It holds.", "</external_dialogue>"]
    machine.scripted({"deltas": parts, "gap_s": 0.4})
    with machine.daemon():
        tab = tabs().enter(console())
        page = tab.page
        page.locator(".list button", has_text="You").click()
        page.evaluate(WATCH)
        tab.talk_as_owner("Does it hold?")
        page.wait_for_selector(".inner .thought >> text=The bridge holds,")
        page.wait_for_selector(".talk .exchange .spoken >> text=It holds.")

        assert page.evaluate("window.order") == ["thought", "spoken"]
        assert page.locator(".talk .thought", has_text="The bridge holds, I measured it.").count() == 1
        assert tab.problems == []


def test_console_w11_a_turn_that_is_stopped_leaves_its_thought_struck_through(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """While a voice hangs, its thought stands there, and nothing has left; Stop takes it back, and the next line is heard."""
    machine.scripted({"deltas": [BEGUN, THOUGHT], "after": 1, "hang": True}, reply("Good."))
    with machine.daemon():
        tab = tabs().enter(console())
        page = tab.page
        tab.talk_as_owner("Does it hold?")
        page.wait_for_selector(".inner .thought >> text=The bridge holds,")
        assert "nothing has left" in page.inner_text(".inner")
        assert "weighed" in page.inner_text(".inner .thought .kind")
        thought, aside = (page.locator(one).first.bounding_box() for one in (".inner .thought", ".inner"))
        assert thought["width"] > aside["width"] / 2
        assert tab.findings() == []
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector(".inner .thought.voided >> text=The bridge holds,")
        tab.talk_as_owner("Never mind.")
        page.wait_for_selector(".talk .exchange .spoken >> text=Good.")
        assert "The bridge holds" not in machine.ok("conversations", "show", OWN).stdout
        assert tab.problems == []


def test_console_w34_one_cancels_a_reminder_and_mutes_a_daimon(machine: Machine, console: Console, tabs: Tabs) -> None:
    """Clock: a plan is moved, and gone once cancelled; a daimon's mode is changed, and the page says to what."""
    act = '{"do": "remind", "at": "2030-03-04T10:00", "zone": "UTC", "text": "send the load table"}'
    machine.scripted(f"<acts>{act}</acts>\n{reply('I will.')}")
    machine.ok("config", "set", "kothar.groq_enabled", "true")
    machine.ok("chat", "--once", "Remind me tomorrow at 10:00 to send the load table.")
    with machine.daemon():
        tab = tabs().enter(console(), "clock")
        page = tab.page
        page.get_by_label("another time").fill("2030-03-05T12:00")
        page.get_by_role("button", name="Move").first.click()
        page.wait_for_selector("text=moved")
        (moved,) = [one for one in machine.ok("schedule", "list", "--json").json if one["kind"] != "job"]
        page.get_by_role("button", name="Cancel").first.click()
        page.wait_for_selector("text=Nothing is planned.")
        plans = [one for one in machine.ok("schedule", "list", "--json").json if one["kind"] != "job"]
        page.get_by_role("button", name="off", exact=True).click()
        page.wait_for_selector("text=from now on: off")
        page.get_by_role("button", name="off (now)").wait_for()
        assert tab.problems == []

    assert (moved["plan"], moved["due_at"][:16], plans) == ("p1", "2030-03-05T11:00", [])
    assert machine.ok("daimon", "list", "--json").json[0]["mode"] == "off"


def test_console_w34_a_daimon_whispers_when_asked(machine: Machine, tabs: Tabs) -> None:
    """Clock: `Whisper now` says what was whispered, and it stands among the whispers, waiting to be felt."""
    machine.ok("config", "set", "kothar.groq_enabled", "true")
    machine.ok("config", "set", "kothar.provider", "rehearsal")
    with machine.daemon(), serving_console(machine) as console:
        tab = tabs().enter(console(), "clock")
        page = tab.page
        page.get_by_role("button", name="Whisper now").click()
        page.wait_for_selector("[aria-label=Whispers] .cards li")
        assert "waits to be felt" in page.inner_text("[aria-label=Whispers]")
        assert tab.problems == []

    assert machine.ok("daimon", "list", "--whispers", "--json").json[0]["daimon"] == "kothar"


def test_console_w32_one_links_two_ids_of_one_person(machine: Machine, console: Console, tabs: Tabs) -> None:
    """People: linking says what it means and how it is undone; the command shows one person with both ids."""
    with machine.daemon():
        tab = tabs().enter(console(), "people")
        page = tab.page
        page.get_by_role("button", name="Ben", exact=True).click()
        page.wait_for_selector("h2 >> text=Ben")
        page.select_option("#other", "rehearsal:t:rhea")
        page.get_by_role("button", name="Link", exact=True).click()
        page.wait_for_selector("text=claudius users unlink")
        assert tab.problems == []

    linked = [one for one in machine.ok("users", "list", "--json").json if one["linked"]]
    assert [{one["person"], *one["linked"]} for one in linked] == [{"rehearsal:t:ben", "rehearsal:t:rhea"}]


def test_console_w33_a_person_is_shown_as_they_are_shown_to_themselves(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """People and Now: beside the portraits stands what was said in plain words, what is planned, and how much is kept."""
    machine.env["CLAUDIUS_PROVIDERS"] = "rehearsal"
    machine.ok("chat", "--once", "My name is Annabel, I am vegan.", "--as", "annabel")
    machine.ok("chat", "--once", "Remind me in 3 hours to water the fern.", "--as", "annabel")
    with machine.daemon():
        tab = tabs().enter(console(), "people")
        page = tab.page
        page.get_by_role("button", name="Annabel", exact=True).click()
        page.wait_for_selector("h3 >> text=Told")
        shown = page.inner_text("article[aria-label=Annabel]")
        assert tab.findings() == []
        assert tab.problems == []

    assert "Is vegan" in shown
    assert "water the fern" in shown
    assert "2 messages are kept for recall." in shown


def test_console_w34_one_has_it_reflect(machine: Machine, console: Console, tabs: Tabs) -> None:
    """Beliefs: `Reflect now` runs a cycle in the daemon and says what came of it; the cycle is the first of the list."""
    machine.scripted(answer())
    machine.env["CLAUDIUS_CORTEX_ENABLED"] = "1"
    before = len(machine.ok("cortex", "history", "-n", "200", "--json").json)
    with machine.daemon() as pid:
        tab = tabs().enter(console(), "beliefs")
        page = tab.page
        page.get_by_role("button", name="Reflect now").click()
        page.wait_for_selector("text=/cycle [0-9]+: /")
        until(pid, lambda: len(machine.ok("cortex", "history", "-n", "200", "--json").json) > before)
        assert tab.problems == []


def test_console_w33_a_person_forgotten_elsewhere_leaves_the_open_page(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """An erasure by command reaches an open page: nothing of the person stands in it any more."""
    with machine.daemon():
        tab = tabs().enter(console())
        page = tab.page
        page.locator(".list button", has_text="Rhea").click()
        page.wait_for_selector(".known >> text=Rhea")
        machine.ok("users", "forget", "rehearsal:t:rhea", "--yes", within_s=ERASES_S)
        tab.until("!document.body.innerText.includes('Rhea')")
        assert {one for one in tab.problems if "404" not in one} == set()


AT_ONCE = """() => { new MutationObserver((_, look) => {
    const who = document.querySelector('#providers');
    if (who) { look.disconnect(); who.value = 'anthropic_api'; who.dispatchEvent(new Event('change', {bubbles: true})); }
}).observe(document.body, {childList: true, subtree: true}); }"""
"""Choose who speaks in the instant in which the field comes."""


def test_console_one_says_who_thinks_keeps_a_key_and_downloads_a_model(machine: Machine, tabs: Tabs) -> None:
    """Mind: what is set stands in config.toml and .env; the field of a key is empty at once; a download tells how far it is."""
    machine.env["CLAUDIUS_PROVIDERS"] = ""
    with serving_hub(Hub(b"GGUF" + bytes(3_000_000))) as hub:
        machine.env["HF_ENDPOINT"], hub.stall_at = hub.url, 2_000_000
        with serving_console(machine) as console:
            tab = tabs().enter(console())
            page = tab.page
            page.evaluate(AT_ONCE)
            tab.open("mind")
            page.get_by_role("button", name="Set Who speaks").click()
            page.wait_for_selector("text=it counts from the next message on")
            page.fill("#ANTHROPIC_API_KEY", "sk-ant-api03-0123456789")
            page.get_by_role("button", name="Keep the key for Anthropic").click()
            page.wait_for_selector("text=kept in .env")
            assert page.input_value("#ANTHROPIC_API_KEY") == ""
            assert "0123456789" not in page.content()
            card = page.locator(".cards li", has_text="qwen2.5-1.5b")
            card.get_by_role("button", name="Download").click()
            card.locator("progress").wait_for()
            assert tab.findings() == []
            hub.stall_at = 0
            hub.go_on.set()
            card.get_by_text("claudius model use").or_(card.get_by_text("llama.cpp is still missing")).wait_for()
            card.get_by_role("button", name="Have it think").click()
            card.get_by_text("the one at home").wait_for()
            assert tab.problems == []

    shown = machine.ok("config", "show", "--json").json
    assert shown["providers"] == {"value": ["home", "anthropic_api"], "source": "config.toml"}
    assert shown["home.model"]["value"] == "qwen2.5-1.5b"
    assert "sk-ant-api03-0123456789" in (machine.home / ".env").read_text()


BARE = """() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walk.nextNode()) {
    let one = walk.currentNode.parentElement;
    while (one && !getComputedStyle(one).filter.includes('blur')) one = one.parentElement;
    if (!one) found.push(walk.currentNode.data);
  }
  return found.join(' ');
}"""
OF_THE_WEEK = {
    *(text for one in TALK for text in (one[3], one[5], one[6]) if len(text) > len("Good.")),
    *(line for _, lines in LEARNED.values() for line in lines.replace("- ", "").split("\n")),
    *("Ada measures before she speaks.", "Two tables, both right.", "Kept what was said", "A week of tables"),
}
"""What was said, thought, learned and believed in the week."""


def test_console_the_veil_covers_every_private_text(machine: Machine, console: Console, tabs: Tabs) -> None:
    """Veiled, no screen and no layer shows a word of what was said, thought, learned or believed; unveiled, they do."""
    with machine.daemon():
        tab = tabs().enter(console())
        page = tab.page
        unveiled = page.evaluate(BARE)
        page.get_by_role("button", name="Veil").click()
        bare = {}
        for screen in ("now", "life", "people", "beliefs", "clock", "hands", "health"):
            tab.open(screen)
            match screen:
                case "life":
                    page.locator(".swing.down circle").last.click()
                    page.wait_for_selector(".turn .thought")
                case "people":
                    page.get_by_role("button", name="What changed").first.click()
                    page.wait_for_selector("dialog .diff")
                case "beliefs":
                    page.get_by_role("button", name="Evidence").first.click()
                    page.wait_for_selector("dialog .cards")
            bare[screen] = page.evaluate(BARE)
            if page.locator("dialog").count():
                page.keyboard.press("Escape")

    assert any(text in unveiled for text in OF_THE_WEEK)
    assert {screen: text for screen, shown in bare.items() for text in OF_THE_WEEK if text in shown} == {}
