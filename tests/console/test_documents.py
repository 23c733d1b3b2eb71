"""One document, two doors: what the console answers is what the command prints."""

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

from claudius.home import Home, shipped
from claudius.reports import life
from claudius.reports.plain import encode
from driven import REPOSITORY, ConsoleClient, Machine
from lived_week import ENDS

ADA = "rehearsal:t:ada"
DOORS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("status", ("status",)),
    ("usage", ("usage",)),
    ("usage?by=person", ("usage", "--by", "person")),
    ("backups", ("backup", "list")),
    ("conversations", ("conversations", "list")),
    (
        f"conversations/{quote('rehearsal:t:dm-ada:', '')}",
        ("conversations", "show", "rehearsal:t:dm-ada:", "--before", "now"),
    ),
    ("state", ("state", "show")),
    ("state?all=1", ("state", "show", "--all")),
    ("peers", ("ledger", "peers")),
    (f"peers/{quote(ADA, '')}", ("ledger", "show", ADA)),
    ("people", ("users", "list")),
    (f"people/{quote(ADA, '')}", ("users", "show", ADA)),
    (f"people/{quote(ADA, '')}/log", ("users", "log", ADA)),
    (f"people/{quote(ADA, '')}/blame", ("users", "log", ADA, "--blame")),
    (f"people/{quote(ADA, '')}/diff", ("users", "log", ADA, "--diff")),
    (f"people/{quote(ADA, '')}/diff?a=1&b=3", ("users", "log", ADA, "1", "3", "--diff")),
    (f"people/{quote(ADA, '')}/export", ("users", "export", ADA)),
    ("beliefs", ("cortex", "beliefs")),
    ("evidence?ids=1,2,3", ("ledger", "evidence", "1", "2", "3")),
    ("cycles", ("cortex", "history")),
    ("soul", ("soul", "show")),
    ("soul/check", ("soul", "check")),
    ("soul/soul.md", ("soul", "history", "soul.md")),
    ("soul/steps%2Fexternal_dialogue.md", ("soul", "history", "steps/external_dialogue.md")),
    ("processes", ("process", "list")),
    ("whispers", ("daimon", "list", "--whispers")),
    ("daimons", ("daimon", "list")),
    ("schedule", ("schedule", "list")),
    ("settings", ("config", "show")),
    ("models", ("model", "list")),
    ("tools", ("tools", "list")),
    ("tools/pending", ("tools", "pending")),
    ("tools/calls", ("tools", "calls")),
    ("tools/grants", ("tools", "grants")),
)


def test_console_w2_every_document_is_its_commands(machine: Machine, console: Callable[[], str]) -> None:
    """For each row: the body equals the command's stdout, over a home with a life in it."""
    page = ConsoleClient(console())

    different = [path for path, command in DOORS if page.get(path) != machine.run(*command, "--json").json]

    assert different == []
    machine.run("doctor")  # it makes private what is not, and says so once
    here, there = page.get("doctor"), machine.run("doctor", "--json").json
    assert [(one["name"], one["ok"]) for one in here["checks"]] == [(one["name"], one["ok"]) for one in there["checks"]]


def test_console_w2_a_turn_and_a_life_are_their_commands(machine: Machine, console: Callable[[], str]) -> None:
    """`turns/TURN` is `why` with its prompt left out unless asked for; `life` is the report of the same week and width."""
    page = ConsoleClient(console())
    turn = page.get(f"conversations/{quote('rehearsal:t:dm-rhea:', '')}")["entries"][0]["turn"]
    why = machine.ok("why", turn, "--json").json
    since = ENDS - timedelta(days=7)
    week = page.get(f"life?px=200&from={quote(since.isoformat())}&to={quote(ENDS.isoformat())}")
    drawn = json.loads(encode(life.life(Home(machine.home), since, ENDS, 200)))

    assert page.get(f"turns/{turn}?prompt=1") == why
    assert page.get(f"turns/{turn}") == {key: value for key, value in why.items() if key != "prompt"}
    assert week | {"zone": ""} == drawn | {"zone": ""}  # the zone is each process's own
    assert week["turns"]
    assert week["lanes"]


def test_console_w45_every_route_and_key_stands_in_its_document() -> None:
    """docs/console.md names each route and each key."""
    told = (REPOSITORY / "docs" / "console.md").read_text("utf-8")
    routes = (REPOSITORY / "daemon" / "claudius" / "console" / "routes.py").read_text("utf-8")
    posted = re.search(r"posts: Mapping.*?\n        }", routes, re.DOTALL)
    named = {path.removeprefix("/api/") for path in re.findall(r'[^f]"(/api/[^"]+[^/"])"', routes)}
    named |= set(re.findall(r'"([\w/{}]+)":', posted[0])) if posted else set()
    keys = re.findall(
        r'\["([^"]+)", "[^"]+"\]',
        re.search(r"const KEYS = (.*);", (shipped("console") / "main.js").read_text("utf-8"))[1],
    )  # type: ignore[index]  # it is there

    assert [one for one in sorted(named) if f"`{one}`" not in told] == []
    assert [one for one in keys if one not in told] == []


def test_console_the_vendored_file_is_the_published_one() -> None:
    """Preact and htm are htm 3.1.1's own standalone module, byte for byte; their licences lie beside it."""
    vendor = shipped("console") / "vendor"

    assert hashlib.sha256((vendor / "preact-htm.js").read_bytes()).hexdigest() == (
        "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7"
    )
    assert {path.name for path in vendor.iterdir()} == {"preact-htm.js", "LICENSE-htm", "LICENSE-preact"}


def test_console_w38_the_page_is_44_kb() -> None:
    """W38: the page's own code takes at most 44 KB compressed, the vendored file 8."""
    sizes = {True: 0, False: 0}
    for path in shipped("console").rglob("*.*"):
        if path.suffix in (".js", ".css", ".html"):
            sizes[path.parent.name == "vendor"] += len(gzip.compress(path.read_bytes()))

    assert sizes[False] <= 44 * 1024
    assert sizes[True] <= 8_000


def test_console_a_screen_is_one_file_of_300_lines() -> None:
    """The page's own files are short, and name no other host."""
    for path in shipped("console").rglob("*.*"):
        text = path.read_text("utf-8")
        if path.parent.name != "vendor":
            assert len(text.splitlines()) <= 300, path.name
            assert not re.findall(r"(?:src|href|from|import)\W{1,3}https?://", text), path.name
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), path.name


def test_console_w32_a_question_is_decided_once(machine: Machine, console: Callable[[], str]) -> None:
    """T9: the owner's word on the page is that of `claudius tools deny`; a second one is told that it is decided."""
    wish = '<tool_use>{"tool": "web.read", "args": {"url": "https://example.org/a"}}</tool_use>'
    machine.scripted(wish)
    asked = machine.ok("chat", "--once", "Read https://example.org/a for me.", "--json").json
    page = ConsoleClient(console())
    (row,) = page.get("tools/pending")

    said = [page.post(f"tools/{quote(row['id'], '')}", {"verb": verb})["said"] for verb in ("deny", "allow")]

    assert (asked["waiting"], row["for_talk"]) == ([row["id"]], True)
    assert said[0] == "Noted."
    assert said[1].startswith("That is decided: Refused by ")
    assert page.get("tools/pending") == []
    assert [(one["id"], one["state"]) for one in page.get("tools/calls")] == [(row["id"], "refused")]
