"""A real browser as the attacker: pages of other ports and names, hostile names and texts. 0 get through."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from browsing import Tab
from driven import Machine, reply

HOSTILE = (
    "<img src=x onerror=fetch('https://evil.test/')>",
    "<script>parent.hit=1</script>",
    "![x](https://evil.test/x.png) [a](javascript:alert(1))",
    "</p></div><iframe src=https://evil.test></iframe>",
    "`<b>` **<i onmouseover=x>** _<svg/onload=alert(1)>_",
    "\u202egnp.exe\u202c \u200bzero\u0007bell",
    "{{constructor.constructor('alert(1)')()}} ${alert(1)}",
)
TRY = """async ([base, token]) => {
  const tried = {};
  const attempt = async (name, path, options) => {
    try { const answer = await fetch(base + path, options); tried[name] = answer.type === 'opaque' ? 'opaque' : answer.status + await answer.text(); }
    catch (error) { tried[name] = 'blocked'; }
  };
  await attempt('read', '/api/status', {});
  await attempt('cookies', '/api/status', {credentials: 'include'});
  await attempt('token', '/api/status', {headers: {Authorization: 'Bearer ' + token}});
  await attempt('blind', '/api/say', {method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body: '{"text":"x"}'});
  await attempt('enter', '/api/enter', {method: 'POST', body: '{"ticket":"x"}'});
  tried.script = await new Promise(go => {
    const made = document.createElement('script');
    Object.assign(made, {src: base + '/main.js', onload: () => go('ran'), onerror: () => go('blocked')});
    document.body.append(made);
  });
  tried.frame = await new Promise(go => {
    const made = document.createElement('iframe');
    made.src = base + '/';
    made.onload = () => { let inside = 'closed'; try { inside = made.contentDocument?.querySelector('#app') ? 'open' : 'closed'; } catch (error) {} go(inside); };
    document.body.append(made);
  });
  return tried;
}"""
SAY = """async (where) => {
  const answers = [];
  const headers = {'Content-Type': 'application/json', Authorization: 'Bearer ' + sessionStorage.getItem('claudius.token')};
  const body = JSON.stringify({id: 'one-id', conversation: where, text: 'Once.'});
  for (let n = 0; n < 3; n++) {
    const answer = await fetch('/api/say', {method: 'POST', headers, body});
    answers.push([answer.status, await answer.json()]);
  }
  return answers;
}"""
Tabs = Callable[..., Tab]
Console = Callable[[], str]


@contextmanager
def elsewhere() -> Iterator[int]:
    """Serve an attacker's page on another port for a block."""

    class Handler(BaseHTTPRequestHandler):
        """The attacker's server: an empty page at every path."""

        def do_GET(self) -> None:
            """Answer the page."""
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>x</title><body>hello")

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True, name="attacker").start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "evil.test"])
def test_console_w19_a_page_of_another_port_or_site_gets_nothing(
    machine: Machine, console: Console, tabs: Tabs, host: str
) -> None:
    """It can read no document, run no script of ours, frame no page, even with a stolen token; no line is heard."""
    mine = tabs().enter(console())
    token = mine.page.evaluate("sessionStorage.getItem('claudius.token')")
    base = "/".join(mine.page.url.split("/")[:3])
    before = machine.ok("conversations", "list", "--json").json
    with elsewhere() as port:
        other = tabs()
        other.page.goto(f"http://{host}:{port}/")
        tried = other.page.evaluate(TRY, [base, token])

    assert set(tried.values()) <= {"blocked", "closed", "opaque"}, tried
    assert (tried["token"], tried["script"], tried["frame"]) == ("blocked", "blocked", "closed")
    assert machine.ok("conversations", "list", "--json").json == before


def test_console_w17_a_rebound_name_gets_nothing(console: Console, tabs: Tabs) -> None:
    """A name of another's that leads to 127.0.0.1 reaches our port, and gets 421: page, script and document."""
    mine = tabs().enter(console())
    token = mine.page.evaluate("sessionStorage.getItem('claudius.token')")
    other = tabs()

    answer = other.page.goto(f"http://rebound.test:{urlsplit(mine.page.url).port}/")
    asked = "async token => (await fetch('/api/status', {headers: {Authorization: 'Bearer ' + token}})).status"

    assert answer.status == 421
    assert other.page.evaluate(asked, token) == 421


def test_console_w20_the_address_holds_no_ticket_once_the_page_is_there(console: Console, tabs: Tabs) -> None:
    """The ticket leaves the address before anything is drawn; page, cookie and lasting storage hold none."""
    address = console()
    ticket = address.rpartition("#")[2]
    tab = tabs().enter(address)

    assert ticket not in tab.page.url
    assert ticket not in tab.page.content()
    assert tab.page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"
    tab.page.go_back()
    assert ticket not in tab.page.url


def test_console_w24_what_people_wrote_makes_no_element_and_no_request(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """Names, messages, portraits and reasons with markup are text; hidden signs are shown; nothing leaves."""
    hostile = " ".join(HOSTILE)
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as database:
        database.execute("UPDATE person SET name = ?", (hostile[:200],))
        database.execute("UPDATE entry SET content = ? WHERE entry_type <> 'mentalQuery'", (hostile,))
        database.execute("UPDATE user_model SET markdown = ?", ("## Persona\n" + "\n\n".join(HOSTILE),))
        database.execute("UPDATE interaction SET preview = ?", (hostile[:120],))
        database.execute("UPDATE assessment SET rationale = ?", (hostile,))
        database.commit()
    tab = tabs().enter(console())
    made = "document.querySelectorAll('#app :is(img, iframe, script, b, i, a[href^=http], a[href^=javascript])').length"
    for screen in ("life", "now"):
        tab.open(screen)
        if screen == "life":
            tab.page.locator(".swing circle").first.click()
            tab.page.wait_for_selector(".turn")
        assert tab.page.evaluate(made) == 0
        assert tab.page.evaluate("window.hit") is None

    assert "U+202E" in tab.page.inner_text(".talk")
    assert "<script>" in tab.page.inner_text(".talk")
    assert tab.problems == []
    assert len(tab.hosts) == 1


def test_console_w23_an_injected_script_and_inner_html_throw(console: Console, tabs: Tabs) -> None:
    """Even code that ran inside the page could write no markup and load nothing."""
    page = tabs().enter(console()).page
    threw = "() => { try { WORK; return false; } catch (error) { return true; } }"
    loads = "() => new Promise(go => Object.assign(document.createElement('img'), {onload: () => go(true), onerror: () => go(false), src: 'http://evil.test/x.png'}))"

    assert page.evaluate(threw.replace("WORK", "document.body.innerHTML = '<b>x</b>'"))
    assert page.evaluate(threw.replace("WORK", "document.createElement('script').text = 'window.hit = 1'"))
    assert not page.evaluate(loads)


def test_console_w13_a_line_is_heard_once_however_often_it_is_sent(
    machine: Machine, console: Console, tabs: Tabs
) -> None:
    """The id is the page's: pressed twice, retried or reloaded, one line is one line; another's talk is refused."""
    machine.scripted(reply("Heard."))
    with machine.daemon():
        page = tabs().enter(console()).page
        answers = page.evaluate(SAY, "terminal:local:main:main")
        foreign = page.evaluate(SAY, "rehearsal:t:dm-ada:")
        page.locator(".list button", has_text="You").click()
        page.wait_for_selector(".talk .spoken >> text=Heard.")
        entries = machine.ok("conversations", "show", "terminal:local:main:main", "--json").json["entries"]

    assert [(status, body["new"]) for status, body in answers] == [(202, True), (202, False), (202, False)]
    assert {status for status, _ in foreign} == {403}
    assert len([one for one in entries if one["entry_type"] == "userMessage"]) == 1
