"""P17: the console's budgets: what a page costs to load and to hold, and what a daemon pays for being watched.

Source: the console design, W38 and W43. The parts in a browser are left out where this system has no Chromium.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from anchors.agents import attached
from claudius.home import Home, shipped
from claudius.memory.packing import unpacked
from claudius.reports.life import life
from claudius.reports.plain import encode
from command import Bench, alone
from figures import Beside, Figure, bound, within
from process import QUIET, daemon
from sides import alternate, environment

REPOSITORY = Path(__file__).resolve().parents[1]
CLAUDIUS = Path(sys.executable).with_name("claudius")
START, READY, WATCHED, TYPING = map(bound, ("P17.start", "P17.ready", "P17.watched", "P17.typing"))
WEEKS, A_YEAR = 110, timedelta(days=365)
TURNS, QUICK_TURNS = 40, 10
LONG, SHORT, SHOWN = 10_000, 10, 500
KEYS = 60
OWN = "terminal:local:main:main"
TYPED = """() => {
  window.took = [];
  document.querySelector('#words').addEventListener('keydown', () => {
    const began = performance.now();
    requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = () => window.took.push(performance.now() - began);
      after.port2.postMessage(0);
    });
  }, true);
}"""


def measure(bench: Bench) -> Iterator[Figure]:
    """Count what is shipped, then measure over a year of life, a daemon, and a browser."""
    from lived_week import week  # noqa: PLC0415 - the test lab is on the path by now

    lived = bench.home("lived")
    week(Home(lived))
    yield from _sizes(bench)
    yield from _process(bench, lived)
    yield _watched(bench)
    yield from _in_a_browser(bench, lived)
    yield from _year(lived, bench)


def _budget(name: str, unit: str, value: float, key: str, note: str = "") -> Figure:
    """Return a counted figure beside the most that it may be."""
    beside = (within(key, 1),)
    return Figure(id="P17", name=name, unit=unit, samples=[value], beside=beside, note=note, is_counted=True)


# -- what is shipped -------------------------------------------------------------------------------------------------


def _sizes(bench: Bench) -> Iterator[Figure]:
    page = shipped("console")
    own = [path for path in page.rglob("*") if path.suffix in (".js", ".css", ".html") and path.parent.name != "vendor"]
    yield _budget("page code, compressed", "kB", sum(map(_kb, own)), "P17.code", f"{len(own)} files")
    yield _budget("vendored, compressed", "kB", _kb(page / "vendor" / "preact-htm.js"), "P17.vendored")
    made = bench.home("wheel")
    argv = [CLAUDIUS.with_name("hatchling"), "build", "--target", "wheel", "--directory", made]
    subprocess.run(argv, cwd=REPOSITORY, check=True, capture_output=True)
    with zipfile.ZipFile(next(made.glob("*.whl"))) as wheel:
        parts = {one.filename: one.compress_size for one in wheel.infolist()}
    data = sum(size for name, size in parts.items() if "/_data/console/" in name)
    server = sum(size for name, size in parts.items() if name.startswith("claudius/console/"))
    whole, note = sum(parts.values()), f"the page {data / 1000:.1f} kB, its server {server / 1000:.1f} kB"
    yield _budget("wheel with the page over without", "×", whole / (whole - data), "P17.wheel", note)


def _kb(path: Path) -> float:
    return len(gzip.compress(path.read_bytes())) / 1000


# -- a year of life --------------------------------------------------------------------------------------------------


def _year(lived: Path, bench: Bench) -> Iterator[Figure]:
    home, ends = Home(lived), _many_weeks(Home(lived).database)
    took, sizes = [], []
    for _ in range(bench.rounds):
        began = time.process_time()
        found = life(home, ends - A_YEAR, ends, 2000)
        text = encode(found).encode()
        took.append(time.process_time() - began)
        sizes.append(len(gzip.compress(text)) / 1000)
    note = f"{len(found['turns'])} turns"
    yield _budget("a year's life, compressed", "kB", sizes[0], "P17.year", note)
    yield Figure(
        id="P17",
        name="a year's life",
        unit="s of CPU",
        samples=took,
        beside=(within("P17.year_cpu", len(took)),),
        note=note,
    )


def _many_weeks(database: Path) -> datetime:
    """Repeat the week's moves of the psyche every half week, so that a year of them is there; return its end."""
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute("SELECT turn, at, person, kernel, moved FROM psyche_trace ORDER BY id").fetchall()
        for n in range(1, WEEKS):
            later = timedelta(days=3.5 * n)
            for turn, at, person, kernel, moved in rows:
                parts = _shifted(json.loads(unpacked(moved)), later.total_seconds())
                fields = [json.dumps(parts[name]) for name in ("inputs", "after", "edges", "arcs")]
                when = (datetime.fromisoformat(at) + later).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                values = (f"{turn}{n}", when, person, kernel, *fields)
                db.execute(
                    "INSERT INTO psyche_trace (turn, at, person, kernel, inputs, after, edges, arcs)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    values,
                )
        (last,) = db.execute("SELECT max(at) FROM psyche_trace").fetchone()
        db.commit()
    return datetime.fromisoformat(last).astimezone(UTC)


def _shifted(part: Any, by_s: float) -> Any:
    """Return a document whose instants in seconds are later."""
    if isinstance(part, dict):
        return {
            key: value + by_s
            if key.endswith("at_s") and isinstance(value, int | float) and value
            else _shifted(value, by_s)
            for key, value in part.items()
        }
    return [_shifted(one, by_s) for one in part] if isinstance(part, list) else part


# -- the console's process, and the daemon's -------------------------------------------------------------------------


@contextmanager
def _console(home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `claudius console` over a home; yield it and the address that enters."""
    process = subprocess.Popen(
        [CLAUDIUS, "console", "--no-open"],
        env=environment(home) | QUIET | {"CLAUDIUS_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _process(bench: Bench, lived: Path) -> Iterator[Figure]:
    held: list[float] = []

    def first_byte_ms() -> float:
        began = time.perf_counter()
        with _console(lived) as (process, address):
            with urllib.request.urlopen(address.partition("#")[0]) as answer:  # noqa: S310 - our own server
                answer.read(1)
            took = 1000 * (time.perf_counter() - began)
            ask = _entered(address)
            for path in ("status", "conversations", "people", "beliefs", "soul", "life?days=7&px=1200", "doctor"):
                ask(path)
            ask("replay", {"turns": [], "files": {}})
            held.append(_rss_mib(process.pid))
        return took

    def help_ms() -> float:
        began = time.perf_counter()
        argv = [CLAUDIUS, "--help"]
        subprocess.run(argv, env=environment(lived) | {"CLAUDIUS_HOME": str(lived)}, check=True, capture_output=True)
        return 1000 * (time.perf_counter() - began)

    found = alternate(bench.rounds, {"console": first_byte_ms, "help": help_ms})
    beside = (Beside(name="claudius --help", bound=START, samples=found["help"]),)
    yield Figure(id="P17", name="console, start to first byte", unit="ms", samples=found["console"], beside=beside)
    yield _budget("console's memory, every screen read", "MiB", median(held), "P17.memory")


def _entered(address: str) -> Callable[..., bytes]:
    """Enter a console; the function asks one route."""
    base, _, ticket = address.partition("#")

    def ask(path: str, body: dict[str, Any] | None = None, token: str = "") -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        with urllib.request.urlopen(urllib.request.Request(f"{base}api/{path}", data, headers)) as answer:  # noqa: S310 - our own server
            return bytes(answer.read())

    token = json.loads(ask("enter", {"ticket": ticket}))["token"]
    return partial(ask, token=token)


def _rss_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _watched(bench: Bench) -> Figure:
    """Compare turns of one daemon with and without a console that follows them."""
    home, turns = bench.home("watched"), QUICK_TURNS if bench.is_quick else TURNS
    with daemon(home), _console(home) as (_, address):
        base, token = address.partition("#")[0], json.loads
        ask = _entered(address)
        token = ask.keywords["token"]  # type: ignore[attr-defined]  # a partial has them

        def watching() -> float:
            body = json.dumps({"conversation": OWN}).encode()
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
            stream = urllib.request.urlopen(urllib.request.Request(f"{base}api/live", body, headers))  # noqa: S310 - our own server
            reader = threading.Thread(target=partial(_drain, stream), daemon=True, name="page")
            reader.start()
            try:
                return asyncio.run(_talk_ms(Home(home), turns))
            finally:
                stream.close()

        sides = {"with": watching, "without": lambda: asyncio.run(_talk_ms(Home(home), turns))}
        found = alternate(bench.rounds, sides)
    beside = (Beside(name="nobody watching", bound=WATCHED, samples=found["without"]),)
    return Figure(id="P17", name="a turn, a console watching", unit="ms", samples=found["with"], beside=beside)


def _drain(stream: Any) -> None:
    try:
        for _ in stream:
            pass
    except (OSError, ValueError, AttributeError):
        return  # closed by the other thread


async def _talk_ms(home: Home, turns: int) -> float:
    """Return the median time from a line to its whole reply, over a socket of its own."""
    took = []
    async with attached(home.socket, "bench") as say:
        for n in range(turns):
            began = time.perf_counter()
            await say(f"Row {n} holds the load?")
            took.append(1000 * (time.perf_counter() - began))
    return median(took)


# -- in a browser ----------------------------------------------------------------------------------------------------


def _in_a_browser(bench: Bench, lived: Path) -> Iterator[Figure]:
    import pytest  # noqa: PLC0415 - beside the next

    from browsing import browser  # noqa: PLC0415 - the test lab is on the path by now

    with ExitStack() as stack:
        try:
            tabs = stack.enter_context(browser())
        except pytest.skip.Exception:
            return
        yield from _loaded(bench, lived, tabs)
        yield _typing(bench, tabs)


def _loaded(bench: Bench, lived: Path, tabs: Callable[..., Any]) -> Iterator[Figure]:
    files: list[str] = []
    with ExitStack() as stack:
        process, _ = stack.enter_context(_console(lived))
        empty = stack.enter_context(_empty_page())
        del process

        def link() -> str:
            env = environment(lived) | {"CLAUDIUS_HOME": str(lived)}
            ran = subprocess.run([CLAUDIUS, "console", "--link"], env=env, check=True, capture_output=True, text=True)
            return ran.stdout.strip()

        def ready_ms(address: str, sign: str) -> float:
            tab = tabs()
            files.clear()
            tab.page.on("response", lambda answer: files.append(answer.url.partition("#")[0]))
            began = time.perf_counter()
            tab.page.goto(address)
            tab.page.wait_for_selector(sign)
            took = 1000 * (time.perf_counter() - began)
            tab.page.context.close()
            return took

        found = alternate(
            bench.rounds,
            {"empty": lambda: ready_ms(empty, "h1"), "page": lambda: ready_ms(link(), ".talk .exchange")},
        )
    own = [url.rpartition("//")[2].partition("/")[2] or "index.html" for url in files if "/api/" not in url]
    kb = sum(_kb(shipped("console") / name) for name in own)
    yield _budget("first screen, compressed", "kB", kb, "P17.first", ", ".join(own))
    yield _budget("first screen, files", "requests", len(own), "P17.requests")
    beside = (Beside(name="an empty page", bound=READY, samples=found["empty"]),)
    yield Figure(id="P17", name="page ready", unit="ms", samples=found["page"], beside=beside)


@contextmanager
def _empty_page() -> Iterator[str]:
    """Serve a page that holds a heading, on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><link rel=icon href=data:,><title>x</title><h1>x</h1>")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name="empty page").start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def _typing(bench: Bench, tabs: Callable[..., Any]) -> Figure:
    """Compare typing where 500 of 10,000 turns are drawn with typing where ten are."""
    with ExitStack() as stack:
        pages = {}
        for turns in (SHORT, LONG):
            home = bench.home(f"talk{turns}")
            _long_talk(home, turns)
            _, address = stack.enter_context(_console(home))
            tab = tabs().enter(address)
            tab.page.locator(".list button", has_text="You").click()
            tab.page.wait_for_selector(".talk .exchange")
            drawn = "document.querySelectorAll('.talk .exchange').length"
            while tab.page.evaluate(drawn) < min(turns, SHOWN):
                shown = tab.page.evaluate(drawn)
                tab.page.evaluate("document.querySelector('.talk').scrollTop = 0")  # older turns come by scrolling up
                tab.until(f"{drawn} > {shown}")
            tab.page.evaluate(TYPED)
            pages[turns] = tab.page

        def typed_ms(page: Any) -> float:
            page.bring_to_front()
            page.fill("#words", "")
            page.evaluate("window.took = []")
            page.locator("#words").press_sequentially("a" * KEYS, delay=5)
            page.wait_for_timeout(100)
            return float(median(page.evaluate("window.took")))

        found = alternate(bench.rounds, {name: partial(typed_ms, page) for name, page in pages.items()})  # type: ignore[arg-type]  # its names are numbers
    beside = (Beside(name="of ten turns", bound=TYPING, samples=found[SHORT]),)  # type: ignore[index]  # as above
    return Figure(id="P17", name="a key, 500 of 10,000 turns drawn", unit="ms", samples=found[LONG], beside=beside)  # type: ignore[index]  # as above


def _long_talk(home: Path, turns: int) -> None:
    """Leave a talk of so many turns in a home: one real turn, repeated."""
    env = environment(home) | QUIET | {"CLAUDIUS_HOME": str(home)}
    subprocess.run([CLAUDIUS, "chat", "--once", "Does row 7 hold?"], env=env, check=True, capture_output=True)
    with closing(sqlite3.connect(home / "state" / "claudius.db")) as db:
        db.row_factory = sqlite3.Row
        turn = dict(db.execute("SELECT * FROM turn WHERE conversation = ?", (OWN,)).fetchone())
        entries = [dict(row) for row in db.execute("SELECT * FROM entry WHERE conversation = ?", (OWN,))]
        for n in range(2, turns + 1):
            _insert(db, "turn", turn | {"number": n, "turn": f"{turn['turn'][:9]}{n:07}"})
            for entry in entries:
                _insert(db, "entry", entry | {"number": n})
        db.execute("UPDATE conversation SET turns = ?, entries = ?", (turns, turns * len(entries)))
        db.commit()


def _insert(db: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    holes = ", ".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({holes})", tuple(row.values()))  # noqa: S608 - names of this file


if __name__ == "__main__":
    alone(__file__)
