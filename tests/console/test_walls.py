"""Who gets nothing from the console: strangers by name, by page, by user, by token, by size. The table of §5."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from claudius.console.access import A_MINUTE_S, UNUSED_S, WRONG_A_MINUTE, Entrance, mint, opening, uid_of
from claudius.console.live import OWN
from claudius.console.routes import READS
from claudius.console.server import Console
from claudius.home import Home, shipped
from claudius.runtime.life import HomeLock
from driven import REPOSITORY, Machine

JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def serving(home: Home) -> AsyncIterator[tuple[Console, aiohttp.ClientSession, dict[str, str]]]:
    """Serve the console of a home; yield it, a client, and the headers of one who entered."""
    home.create()
    console = Console(home)
    await console.start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{console.port}") as client:
            ticket = mint(home, console.port).rpartition("#")[2]
            async with client.post("/api/enter", json={"ticket": ticket}) as answer:
                token = (await answer.json())["token"]
            yield console, client, {"Authorization": f"Bearer {token}"}
    finally:
        await console.stop()


async def asked(client: aiohttp.ClientSession, path: str = "/api/status", method: str = "GET", **more: object) -> int:
    """Return the status of one request."""
    async with client.request(method, path, **more) as answer:  # type: ignore[arg-type]  # whatever the case passes on
        await answer.read()
        return answer.status


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return an empty home that the environment names."""
    monkeypatch.setenv("CLAUDIUS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDIUS_PROVIDERS", "rehearsal")
    return Home(tmp_path / "home")


async def test_console_w16_it_listens_on_loopback_alone(home: Home) -> None:
    """Whatever the settings say, the sockets are bound to 127.0.0.1 and ::1; the command takes no host."""
    home.create()
    home.config.write_text('[http]\nlisten = "0.0.0.0:1"\n', "utf-8")
    async with serving(home) as (console, _, _):
        assert console._runner
        bound = {address[0] for address in console._runner.addresses}

    assert "127.0.0.1" in bound
    assert bound <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("port", ["0.0.0.0:80", "host:80", "-1", "65536"])
def test_console_w16_a_port_names_no_host(port: str, tmp_path: Path) -> None:
    """`--port` takes a number and nothing else."""
    assert Machine(tmp_path).run("console", "--no-open", "--port", port).code == 2


ANSWERED, MISDIRECTED = ("127.0.0.1:{port}", "localhost:{port}", "LOCALHOST", "[::1]:1"), (
    "evil.test", "evil.test:{port}", "127.0.0.1.evil.test", "localhost.evil.test:{port}", "127.0.0.2", "0.0.0.1",
    "127.0.0.1:{port}@evil.test", "",
)  # fmt: skip


async def test_console_w17_only_a_loopback_name_is_answered(home: Home) -> None:
    """A Host that is no loopback name gets 421 before anything else, with a good token too."""
    async with serving(home) as (console, client, mine):
        for host in (*ANSWERED, *MISDIRECTED):
            named = {"Host": host.format(port=console.port)}
            found = [await asked(client, headers={**mine, **named}), await asked(client, "/", headers=named)]

            assert found == [200 if host in ANSWERED else 421] * 2, host


async def test_console_w18_every_route_needs_the_token(home: Home) -> None:
    """Without a token, with a part of one, with another scheme, in a query or a cookie: 401."""
    async with serving(home) as (_, client, mine):
        token = mine["Authorization"].removeprefix("Bearer ")
        headers = [
            {},
            {"Authorization": f"Bearer {token[:-1]}"},
            {"Authorization": f"Bearer {token}x"},
            {"Authorization": f"Basic {token}"},
            {"Authorization": token},
            {"Cookie": f"token={token}"},
        ]
        for path in {"/api/" + name for name in ("live", "say", "shown", "stop", "link", "close")} | READS.keys():
            method = "GET" if path in READS else "POST"
            tried = [await asked(client, path, method, headers=one | JSON) for one in headers]
            tried.append(await asked(client, f"{path}?token={token}", method, headers=JSON))

            assert set(tried) == {401}, path


async def test_console_w18_no_answer_sets_a_cookie(home: Home) -> None:
    """No cookie, and no token inside a page: ports are one site."""
    async with serving(home) as (_, client, mine):
        for path in ("/", "/main.js", "/api/status"):
            async with client.get(path, headers=mine) as answer:
                text = await answer.text()
                assert "Set-Cookie" not in answer.headers
                assert mine["Authorization"].removeprefix("Bearer ") not in text


FROM_A_PAGE: list[tuple[str, dict[str, str], int]] = [
    ("/api/status", {"Origin": "http://{host}"}, 200),
    ("/api/status", {"Sec-Fetch-Site": "same-origin"}, 200),
    ("/api/status", {"Origin": "http://localhost:1"}, 403),
    ("/api/status", {"Origin": "https://{host}"}, 403),
    ("/api/status", {"Origin": "null"}, 403),
    ("/api/status", {"Origin": "https://evil.test"}, 403),
    ("/api/status", {"Sec-Fetch-Site": "same-site"}, 403),
    ("/api/status", {"Sec-Fetch-Site": "cross-site"}, 403),
    ("/api/status", {"Sec-Fetch-Site": "none"}, 403),
    ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
    ("/", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
    ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ("/main.js", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ("/api/status", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
]


async def test_console_w19_another_page_gets_nothing(home: Home) -> None:
    """Origin and Sec-Fetch-Site, where present, are this page's own; opening `/` by a link is allowed."""
    async with serving(home) as (console, client, mine):
        for path, headers, status in FROM_A_PAGE:
            sent = {name: value.format(host=f"127.0.0.1:{console.port}") for name, value in headers.items()}

            assert await asked(client, path, headers=mine | sent) == status, (path, headers)


def test_console_w20_a_ticket_works_once_and_for_a_minute(home: Home) -> None:
    """The second use is refused, so is one older than 60 s, and one that no one minted."""
    home.create()
    entrance = Entrance(home)
    used, old = (mint(home, 1).rpartition("#")[2] for _ in range(2))
    made_at = max(path.stat().st_mtime for path in (home.run / "console").iterdir())

    assert entrance.enter(used)
    assert entrance.enter(used) is None
    assert entrance.enter(old, wall=lambda: made_at + 61) is None
    assert entrance.enter("x" * 43) is None
    assert entrance.enter("../../state/claudius.db") is None


async def test_console_w20_twenty_wrong_tickets_close_the_door_for_a_minute(home: Home) -> None:
    """After twenty wrong tries within a minute every try is answered 429, a right one too."""
    async with serving(home) as (console, client, _):
        wrong = [await asked(client, "/api/enter", "POST", json={"ticket": f"{n}"}) for n in range(WRONG_A_MINUTE)]
        right = mint(home, console.port).rpartition("#")[2]

        assert set(wrong) == {401}
        assert await asked(client, "/api/enter", "POST", json={"ticket": right}) == 429


def test_console_w20_what_lies_on_the_disk_is_private_and_names_no_ticket(home: Home) -> None:
    """Tickets are empty files named by their hash; the page that opens the browser is the owner's alone."""
    home.create()
    address = mint(home, 8799)
    page = opening(home, address)
    (ticket,) = (path for path in page.parent.iterdir() if path != page)

    assert address.rpartition("#")[2] not in ticket.name
    assert (ticket.stat().st_size, ticket.stat().st_mode & 0o777) == (0, 0o600)
    assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert address in page.read_text("utf-8")


def test_console_w21_a_token_ends_unused_and_with_the_door(home: Home) -> None:
    """Used, it lives on; after twelve hours without a use it ends; closing the door ends all."""
    home.create()
    clock = [0.0]
    entrance = Entrance(home, now=lambda: clock[0])
    first, second = (f"Bearer {entrance.enter(mint(home, 1).rpartition('#')[2])}" for _ in range(2))

    clock[0] = UNUSED_S - 1
    assert entrance.knows(first)
    clock[0] = UNUSED_S + 2
    assert entrance.knows(first)
    assert not entrance.knows(second)
    entrance.close()
    assert not entrance.knows(first)
    assert A_MINUTE_S == 60.0


async def test_console_w21_a_restart_forgets_every_token(home: Home) -> None:
    """A token of the process before opens nothing."""
    async with serving(home) as (_, _, mine):
        pass
    async with serving(home) as (_, client, _):
        assert await asked(client, headers=mine) == 401


async def test_console_w22_the_kernel_tells_whose_connection_it_is() -> None:
    """Both ends of a loopback connection are found in the kernel's table, in both families."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as listening:
            try:
                listening.bind((host, 0))
            except OSError:
                continue
            listening.listen()
            with socket.create_connection(listening.getsockname()[:2]) as client:
                own, peer = client.getpeername()[:2], client.getsockname()[:2]
                assert uid_of(peer, own) == os.geteuid()
    assert uid_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


async def test_console_w22_a_process_of_another_user_gets_nothing(home: Home) -> None:
    """With a good token, too: the page's connection belongs to another uid."""
    if os.geteuid() != 0:
        pytest.skip("a process of another uid can only be had as root")
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this kernel does not tell whose a connection is")
    async with serving(home) as (console, _, mine):
        script = (
            "import urllib.request, urllib.error\n"
            f"ask = urllib.request.Request('http://127.0.0.1:{console.port}/api/status', headers={mine!r})\n"
            "try: print(urllib.request.urlopen(ask).status)\n"
            "except urllib.error.HTTPError as error: print(error.code)\n"
        )
        process = await asyncio.create_subprocess_exec(
            "/usr/bin/env", "python3", "-c", script, stdout=subprocess.PIPE, user=65534, cwd="/", env={"PATH": "/usr/bin:/bin:/usr/local/bin"}
        )  # fmt: skip
        out, _ = await process.communicate()

    assert out.decode().strip() == "403"


async def test_console_w23_every_answer_forbids_what_the_page_does_not_need(home: Home) -> None:
    """The policy of W23 stands on pages, documents and refusals; documents are stored nowhere."""
    async with serving(home) as (_, client, mine):
        for path, headers in (("/", {}), ("/style.css", {}), ("/api/status", mine), ("/api/status", {}), ("/nope", {})):
            async with client.get(path, headers=headers) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "require-trusted-types-for 'script'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
                assert "aiohttp" not in str(answer.headers)
                if path.startswith("/api/"):
                    assert answer.headers["Cache-Control"] == "no-store"


async def test_console_w13_a_line_without_an_id_is_refused_not_swallowed(home: Home) -> None:
    """An id is heard once, so a line without one would be taken for the one before it."""
    said = {"conversation": "terminal:local:main:main", "text": "Hello."}
    async with serving(home) as (_, client, mine):
        found = [await asked(client, "/api/say", "POST", headers=mine, json=said | more) for more in ({}, {"id": ""})]

    assert found == [400, 400]


async def test_console_w14_an_unknown_daimon_is_404_like_every_unknown_name(home: Home) -> None:
    """W14: an unknown id is 404 with the line of its command."""
    async with serving(home) as (_, client, mine):
        found = await asked(client, "/api/daimons/nobody", "POST", headers=mine, json={"mode": "off"})

    assert found == 404


BODIES: list[tuple[str, dict[str, str], bytes, int]] = [
    ("say", JSON, b"{}", 403),
    ("live", JSON, b"[]", 400),
    ("live", JSON, b"{", 400),
    ("live", JSON, b'{"after": "x"}', 400),
    ("say", {"Content-Type": "text/plain"}, b"{}", 415),
    ("say", {"Content-Type": "application/x-www-form-urlencoded"}, b"a=b", 415),
    ("say", JSON, b'{"text": "' + b"x" * 300_000 + b'"}', 413),
]


async def test_console_w25_a_body_is_a_small_json_object(home: Home) -> None:
    """Other kinds, other shapes and bodies over 256 KiB are refused."""
    async with serving(home) as (_, client, mine):
        for path, headers, body, status in BODIES:
            assert await asked(client, f"/api/{path}", "POST", headers=mine | headers, data=body) == status, body[:20]


async def test_console_w15_nothing_but_the_pages_own_files_is_served(home: Home) -> None:
    """Other paths, listings, and ways up: 404, with the token too, and never a redirect."""
    async with serving(home) as (_, client, mine):
        for path in (
            "/api/../state/claudius.db", "/..%2f..%2fetc%2fpasswd", "/vendor/", "/screens", "/.env",
            "/api/soul/..%2f.env", "/api/people/%00", "/api/conversations/..%2f..%2fstate", "/main.js%00.css",
        ):  # fmt: skip
            assert await asked(client, path, headers=mine, allow_redirects=False) == 404, path


async def test_console_w26_the_log_has_route_and_status_and_nothing_else(
    home: Home, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No id, no text, no token is logged; and no document holds a secret."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-0123456789")
    home.create()
    (home.soul / "soul.md").write_text(
        (shipped("soul") / "soul.md").read_text("utf-8") + "\nsk-canary-0123456789\n", "utf-8"
    )
    with caplog.at_level("INFO", "claudius.console"):
        async with serving(home) as (_, client, mine):
            await asked(client, "/api/people/terminal%3Alocal%3Aada", headers=mine)
            async with client.get("/api/soul", headers=mine) as answer:
                text = await answer.text()
    logged = [
        (one.__dict__["method"], one.__dict__["route"], one.__dict__["status"])
        for one in caplog.records
        if one.message == "served"
    ]

    assert ("GET", "/api/people/{person}", 404) in logged
    everything = "\n".join(str(one.__dict__) for one in caplog.records)
    assert "terminal:local:ada" not in everything
    assert mine["Authorization"].removeprefix("Bearer ") not in everything
    assert "sk-canary" not in text
    assert "***" in text


def test_console_w25_no_route_runs_a_command_or_sets_a_setting() -> None:
    """The console's room imports neither a way to run programs nor the settings' writer."""
    room = REPOSITORY / "daemon" / "claudius" / "console"
    text = "\n".join(path.read_text("utf-8") for path in room.glob("*.py"))

    assert not re.findall(r"subprocess|os\.system|os\.exec|popen|write_setting|env_file", text)


def test_console_w1_the_daemon_imports_nothing_for_it() -> None:
    """No room below the console names it, and the command line names it by a string alone."""
    package = REPOSITORY / "daemon" / "claudius"
    naming = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "claudius.console" in path.read_text("utf-8") and path.parent.name != "console"
    }

    assert naming == {"cli/__init__.py"}
    script = (
        "import sys; import claudius.compose, claudius.runtime.life; print([m for m in sys.modules if 'console' in m])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


KEY = "sk-ant-api03-of-a-test-0123456789"


NOT_SET = [
    ("settings/claude.cli_path", "/bin/sh", "does not set"),
    ("settings/providers", "os.system", "one of auto"),
    ("settings/providers", "scripted", "one of auto"),
    ("settings/store.url", "postgresql://elsewhere/claudius", "does not set"),
    ("settings/home.model", "../../etc/passwd", "no model"),
    ("settings/budget.daily_usd", "-1", "budget.daily_usd"),
    ("keys/SLACK_BOT_TOKEN", "xoxb-1", "keeps no"),
    ("keys/ANTHROPIC_API_KEY", f"{KEY}\nCLAUDE_CLI_PATH=/bin/sh", "no ANTHROPIC_API_KEY"),
    ("models/..%2F..%2Fevil", "", "get or use"),
]


async def test_console_w25_a_page_sets_four_things_and_no_program(home: Home) -> None:
    """No setting but who thinks, with which model, and what it may cost; no name leads to a program, a file or a line more."""
    async with serving(home) as (_, client, mine):
        for path, value, why in NOT_SET:
            async with client.post(f"/api/{path}", headers=mine, json={"value": value}) as told:
                assert (told.status, why in str(await told.json())) == (400, True), path

    assert not home.env_file.exists()
    assert not home.config.exists()


async def test_console_w25_a_key_goes_in_and_never_comes_back(home: Home) -> None:
    """A key is kept with mode 0600; no answer holds it; another server's address takes the old server's key away."""
    async with serving(home) as (_, client, mine):

        async def post(path: str, value: str) -> str:
            """Post a value, and return the whole answer."""
            async with client.post(f"/api/{path}", headers=mine, json={"value": value}) as answer:
                assert answer.status == 200
                return await answer.text()

        told = [await post("settings/openai.base_url", "http://127.0.0.1:1/v1")]
        told.append(await post("keys/ANTHROPIC_API_KEY", KEY))
        told.append(await post("keys/CLAUDIUS_OPENAI_API_KEY", "other-key-0123456789"))
        kept, mode = home.env_file.read_text("utf-8"), home.env_file.stat().st_mode & 0o777
        async with client.get("/api/settings", headers=mine) as answer:
            shown = await answer.json()
        told.append(str(shown))
        told.append(await post("settings/openai.base_url", "https://evil.test/v1"))
        after = home.env_file.read_text("utf-8")

    assert (KEY in kept, "other-key-0123456789" in kept, mode) == (True, True, 0o600)
    assert (KEY in after, "other-key" in after) == (True, False)
    assert shown["ANTHROPIC_API_KEY"]["value"] == "set"
    assert not any(KEY in text or "other-key" in text for text in told)


@pytest.mark.parametrize("is_awake", [False, True])
async def test_console_w25_a_key_of_the_environment_goes_to_no_other_server(
    home: Home, monkeypatch: pytest.MonkeyPatch, *, is_awake: bool
) -> None:
    """Neither before nor after the soul woke in this process and took it; it stays set, blotted, and stronger than .env's."""
    monkeypatch.setenv("CLAUDIUS_OPENAI_API_KEY", KEY)
    async with serving(home) as (_, client, mine):
        if is_awake:
            async with client.post(
                "/api/say", headers=mine, json={"conversation": OWN, "text": "Hi.", "id": "1"}
            ) as said:
                assert said.status == 202
            assert "CLAUDIUS_OPENAI_API_KEY" not in os.environ
        address = {"value": "http://127.0.0.1:1/v1"}
        async with client.post("/api/settings/openai.base_url", headers=mine, json=address) as answer:
            refused = answer.status, (await answer.json())["detail"]
        async with client.get("/api/settings", headers=mine) as answer:
            shown = (await answer.json())["CLAUDIUS_OPENAI_API_KEY"]["value"]
        path = f"/api/conversations/{KEY}"
        async with client.get(path, headers=mine) as answer:
            told = await answer.text()
        async with client.post(
            "/api/keys/CLAUDIUS_OPENAI_API_KEY", headers=mine, json={"value": "a-key-0123456789"}
        ) as answer:
            but = (await answer.json())["but"]

    assert refused == (400, "CLAUDIUS_OPENAI_API_KEY of the environment would go to another server: change both there")
    assert (shown, KEY in told) == ("set", False)
    assert "no effect while CLAUDIUS_OPENAI_API_KEY is set" in but


async def test_console_w25_a_key_that_another_process_has_alone_goes_to_no_other_server(home: Home) -> None:
    """The process that holds the home has it of its unit: the page neither says that there is none nor moves the address."""
    home.create()
    with HomeLock(home) as lock:
        lock.sign("boot", datetime.now(UTC), {}, ["CLAUDIUS_OPENAI_API_KEY"])
        async with serving(home) as (_, client, mine):
            address = {"value": "http://127.0.0.1:1/v1"}
            async with client.post("/api/settings/openai.base_url", headers=mine, json=address) as answer:
                refused = answer.status
            async with client.get("/api/settings", headers=mine) as answer:
                shown = (await answer.json())["CLAUDIUS_OPENAI_API_KEY"]["value"]

    assert (refused, shown) == (400, "set")


async def test_console_w25_a_key_stays_where_its_server_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same server by another path, or an address that has no effect, takes no key away; half a character is refused."""
    home.create()
    home.config.write_text('[openai]\nbase_url = "http://127.0.0.1:1/v1"\n')
    home.env_file.touch(0o600)
    home.env_file.write_text(f"CLAUDIUS_OPENAI_API_KEY={KEY}\n")
    async with serving(home) as (_, client, mine):

        async def status(value: str) -> int:
            """Set the server's address, and return the status."""
            path, body = "/api/settings/openai.base_url", json.dumps({"value": value})
            async with client.post(path, headers=mine | JSON, data=body) as answer:
                return answer.status

        told = [await status("http://127.0.0.1:1/v1/"), await status("http://\ud800.test")]
        monkeypatch.setenv("CLAUDIUS_OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        told.append(await status("http://127.0.0.1:2/v1"))

    assert told == [200, 400, 200]
    assert KEY in home.env_file.read_text()
