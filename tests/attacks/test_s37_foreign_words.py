"""S37: what a person said in a DM leaves in no one's error text: only the record of that turn may hold it.

Each foreign party, a server on loopback, puts the words of a person into what it answers. Then everything is read that
an owner, an operator or another person can see.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest
from aiohttp import web

from archiving import bare
from driven import REPOSITORY, reply
from lab.loopback.discord import state as discord
from lab.loopback.listening import listen
from lab.loopback.model import MODEL
from lab.tiny_model import write_tiny_model
from operated import Operated, operated
from slack_daemon import PATIENCE_S

CANARY = "zq-ulcer"
SAID = f"my diagnosis is {CANARY}"
ROWS = [
    row
    for row in json.loads((REPOSITORY / "tests/cases/streams.json").read_text())["rows"]
    if row.get("kind") == "quoting"
]
PLACES = (
    *("the owner's alert", "the alert webhook", "/health with and without token", "status", "doctor", "log"),
    *("alerts file", "/metrics", "anybody else's apology"),
)
"""Where the rows say that the words may not be; `everything` reads all of them, and more."""
TOKEN = "t" * 40


@asynccontextmanager
async def answering(answer: Callable[[bytes], web.StreamResponse]) -> AsyncIterator[str]:
    """Serve HTTP: each POST is answered by what `answer` makes of its body, and a model is listed. Yield the address."""

    async def posted(request: web.Request) -> web.StreamResponse:
        """Answer a call."""
        return answer(await request.read())

    async def models(_: web.Request) -> web.Response:
        """List the model."""
        return web.json_response({"data": [{"id": MODEL}]})

    app, runners = web.Application(client_max_size=2**24), list[web.AppRunner]()
    app.router.add_get("/{path:.*}", models)
    app.router.add_post("/{path:.*}", posted)
    port = await listen(app, "127.0.0.1", 0, runners)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        for runner in runners:
            await runner.cleanup()


def filled(body: Any, words: str) -> Any:
    """Return a body with the words in each place that names them."""
    return json.loads(json.dumps(body).replace("{words}", words))


async def everything(soul: Operated) -> dict[str, str]:
    """Return everything that others than the person may read, by where it is."""
    machine, found = soul.daemon.machine, {"webhook": json.dumps(soul.posted)}
    for path in ("/health", "/metrics"):
        found[path] = (await soul.get(path))[1]
    address = f"http://{machine.env['CLAUDIUS_HTTP_LISTEN']}/health"
    async with aiohttp.ClientSession() as client:
        for shown in ({}, {"Authorization": f"Bearer {TOKEN}"}):
            async with client.get(address, headers=shown) as answered:
                found[f"/health over HTTP {shown}"] = await answered.text()
    for command in (("status",), ("doctor",), ("daimon", "list"), ("schedule", "list"), ("audit",), ("usage",)):
        for form in ((), ("--json",)):
            ran = await asyncio.to_thread(machine.run, *command, *form)
            found[" ".join((*command, *form))] = ran.shown
    for path in (*machine.home.glob("logs/*"), *machine.home.glob("run/*"), soul.daemon.stderr):
        if path.is_file():
            found[str(path)] = path.read_text("utf-8", "replace")
    for one in await soul.daemon.slack.visible():
        found[f"Slack {one.channel} {one.ts}"] = one.text if one.channel != await dm(soul) else ""
    for post in await soul.discord.world.visible():
        found[f"Discord {post.channel}"] = found.get(f"Discord {post.channel}", "") + post.text
    return found


async def dm(soul: Operated) -> str:
    """Return the DM of a person who owns nothing."""
    return await soul.daemon.slack.open_dm("U2")


async def leaks(soul: Operated) -> list[str]:
    """Return the places where the person's words are."""
    return [where for where, text in (await everything(soul)).items() if CANARY in text]


@asynccontextmanager
async def heard(root: Path, **settings: str) -> AsyncIterator[Operated]:
    """Run a daemon which is watched in every way, and which a person who owns nothing may talk to."""
    import socket  # noqa: PLC0415 - a free port for the daemon's own

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ours = {"CLAUDIUS_HTTP_LISTEN": f"127.0.0.1:{port}", "CLAUDIUS_HTTP_TOKEN": TOKEN, "CLAUDIUS_LOG_LEVEL": "DEBUG"}
    async with operated(root, **ours, **settings) as soul:
        await soul.daemon.slack.add_user("U2", "tom")
        yield soul


async def fails(soul: Operated, kind: str, subject: str = "") -> None:
    """Wait until a problem was told to the webhook."""

    async def is_told() -> bool:
        """Return whether it was."""
        return "firing" in soul.alerts(kind, subject)

    await soul.until(is_told, f"{kind} is told")


async def logged(soul: Operated, event: str) -> dict[str, Any]:
    """Wait until the log has an event, and return the first such line."""

    def lines() -> list[dict[str, Any]]:
        """Return those lines."""
        return [
            line
            for text in soul.daemon.machine.log.read_text().splitlines()
            if event in (line := json.loads(text))["event"]
        ]

    await soul.daemon.until(lines, what=event)
    return lines()[0]


def test_every_place_of_the_rows_is_read() -> None:
    """A row that names another place, or asks for something else, needs a look at this file."""
    assert {place for row in ROWS for place in row["right"]["not_in"]} <= set(PLACES)
    assert {key for row in ROWS for key in row["right"]} == {"never", "not_in", "may_be_in", "told"}
    assert {word for row in ROWS for word in row["right"]["never"]} == {CANARY}
    assert {row["right"]["may_be_in"] for row in ROWS} == {"this turn's own record"}
    assert {row["right"]["told"] for row in ROWS} == {"class, HTTP status, provider"}


@pytest.mark.parametrize("wire", ["openai_compat", pytest.param("anthropic_api", marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
async def test_s37_a_models_server_may_quote_to_the_turns_record_alone(
    tmp_path: Path, row: Mapping[str, Any], wire: str
) -> None:
    """Class, status and provider are told; the server's text is in `why` of that turn, and nowhere else."""
    given = row["input"]

    def refuse(_: bytes) -> web.Response:
        """Answer as the row says."""
        body = filled(given["body"], given["says"])
        if isinstance(body, str):
            return web.Response(status=given["status"], text=body)
        return web.json_response(body, status=given["status"])

    await _quoted(tmp_path, refuse, wire, given["says"], f"HTTP {given['status']}")


@pytest.mark.parametrize("wire", ["openai_compat", "anthropic_api"])
async def test_s37_an_error_inside_a_stream_is_no_way_out(tmp_path: Path, wire: str) -> None:
    """An error event after a 200 tells the class, and that it came in the stream; no kind and no tool's name is a way out."""
    error = {"type": f"odd {CANARY}", "message": f"render failed at {SAID}"}
    block = {"type": "tool_use", "id": "t", "name": CANARY, "input": {}}
    call = {"type": "content_block_start", "index": 0, "content_block": block}
    if wire == "openai_compat":
        calls = [{"index": 0, "id": "t", "type": "function", "function": {"name": CANARY, "arguments": "{}"}}]
        call = {"type": "chunk", "choices": [{"index": 0, "delta": {"tool_calls": calls}}]}

    def refuse(_: bytes) -> web.Response:
        """Answer with a stream of a call and an error."""
        events = [
            f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in (call, {"type": "error", "error": error})
        ]
        return web.Response(text="".join(events), content_type="text/event-stream")

    await _quoted(tmp_path, refuse, wire, SAID, "in the stream")


async def _quoted(root: Path, refuse: Callable[[bytes], web.StreamResponse], wire: str, says: str, facts: str) -> None:
    async with answering(refuse) as url:
        env = {
            "CLAUDIUS_PROVIDERS": wire,
            "CLAUDIUS_OPENAI_BASE_URL": f"{url}/v1",
            "CLAUDIUS_OPENAI_MODEL": MODEL,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-ant-canary",
        }
        async with heard(root, **env) as soul:
            place = await dm(soul)
            await soul.daemon.slack.say(place, "U2", says)
            await fails(soul, "voice")
            status = (await soul.daemon.status())["last_failure"]
            record = await asyncio.to_thread(soul.daemon.machine.ok, "why", status["turn"], "--json")
            said = [one.text for one in await soul.daemon.slack.visible() if one.channel == place and one.user != "U2"]
            told = [one["detail"] for one in soul.posted if one["kind"] == "voice"]

            assert await leaks(soul) == []

    assert facts in status["detail"]
    assert wire in status["detail"]
    assert any(wire in one and facts in one for one in told)
    assert record.json["failure"]["said"]
    assert CANARY not in "".join(said)


async def test_s37_slack_may_quote_nowhere(tmp_path: Path) -> None:
    """A refusal of Slack tells a code of Slack's own list, or that it is on none."""
    async with heard(tmp_path) as soul:
        slack, place = soul.daemon.slack, await dm(soul)
        for method in ("chat.postMessage", "reactions.add", "assistant.threads.setStatus", "conversations.members"):
            await slack.fault(method, "error", error=f"invalid_blocks: {SAID}", times=99)
        await slack.say(place, "U2", SAID)
        await fails(soul, "given_up")
        found = await everything(soul)
        await slack.heal()

        assert [where for where, text in found.items() if CANARY in text] == []
        assert "unlisted" in found["doctor"]

        await slack.fault("chat.postMessage", "error", error="is_archived")
        await slack.say(place, "U2", "once more")
        await logged(soul, "utterance")
        shown = await asyncio.to_thread(soul.daemon.machine.run, "doctor")

    assert "is_archived" in shown.stdout


async def test_s37_discord_may_quote_nowhere(tmp_path: Path) -> None:
    """A refusal of Discord tells its number."""
    error = {
        "code": 50035,
        "message": f"Invalid Form Body: {SAID}",
        "errors": {"content": {"_errors": [{"code": CANARY, "message": SAID}]}},
    }
    async with heard(tmp_path) as soul:
        world = soul.discord.world
        for route in ("create_message", "trigger_typing_indicator"):
            await world.fault(route, "status", status=400, body=error, times=99)
        await world.say(discord.DM, discord.ANA, SAID)
        await fails(soul, "given_up")
        found = await everything(soul)
        await world.heal()

    found = {where: text for where, text in found.items() if not where.startswith("Discord")}
    assert [where for where, text in found.items() if CANARY in text] == []
    assert "50035" in found["doctor"]


async def test_s37_gits_remote_may_quote_nowhere(tmp_path: Path) -> None:
    """What a hook at the remote writes, which has read the portraits, is told by our own words and git's exit."""
    remote = Path(bare(tmp_path / "remote.git"))
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho 'refused: {SAID}' >&2\nexit 1\n")
    hook.chmod(0o755)
    learns = reply(
        "Well.", user_model_check="true", user_model_update="# Tom\n\n## Persona\n- Rows.", model_change_note="Rows."
    )
    async with heard(tmp_path, CLAUDIUS_ARCHIVE_REMOTE=str(remote)) as soul:
        await soul.daemon.stop()
        soul.daemon.machine.scripted(learns, learns)
        await soul.daemon.start()
        await soul.daemon.slack.say(await dm(soul), "U2", SAID)
        await fails(soul, "archive")
        told = [one["detail"] for one in soul.posted if one["kind"] == "archive"]

        assert await leaks(soul) == []

    assert "git push" in told[0]


async def test_s37_a_webhook_may_quote_nowhere(tmp_path: Path) -> None:
    """Whatever refuses an alert is told by its status."""
    refused = web.Response(status=400, reason=f"no {SAID}", text=SAID)
    async with answering(lambda _: refused) as url, heard(tmp_path, CLAUDIUS_ALERTS_WEBHOOK=url) as soul:
        await soul.discord.world.refuse_upgrades(-1)
        await soul.discord.world.drop_sockets()
        line = await logged(soul, "the webhook refused an alert")
        await soul.discord.world.heal()

        assert await leaks(soul) == []

    assert line["status"] == 400


QUOTING = """CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.content LIKE '%zq-ulcer%' THEN RAISE EXCEPTION 'odd: %', NEW.content; END IF; RETURN NEW; END $$;
CREATE TRIGGER odd BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION odd()"""


@pytest.mark.parametrize(
    ("refuse", "allow", "kind"),
    [
        (
            "ALTER TABLE entry ADD CONSTRAINT odd CHECK (content NOT LIKE '%zq-ulcer%')",
            "CONSTRAINT odd",
            "CheckViolation 23514",
        ),
        (QUOTING, "TRIGGER odd", "RaiseException P0001"),
    ],
    ids=["detail", "message"],
)
async def test_s37_postgresql_may_quote_nowhere(
    tmp_path: Path, postgres_url: str, refuse: str, allow: str, kind: str
) -> None:
    """The row that the server shows beside a refusal is told by the class of the refusal and its number."""
    async with heard(tmp_path, CLAUDIUS_STORE_URL=postgres_url) as soul:
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute(refuse.encode())
        await soul.daemon.slack.say(await dm(soul), "U2", SAID)
        line = await logged(soul, "the store failed")

        assert await leaks(soul) == []
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute(f"ALTER TABLE entry DROP {allow}" if "CONSTRAINT" in allow else b"DROP TRIGGER odd ON entry")
        await soul.daemon.slack.until_visible(1, within_s=PATIENCE_S)

    assert kind in line["error"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 zq-ulcer\r\nContent-Length: 8\r\n\r\nzq-ulcer",
        b"zq-ulcer is no status line\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nzq-ulcer\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"my": "zq-ulcer',
    ],
    ids=["500", "no status line", "no header", "half"],
)
async def test_s37_a_daimon_may_quote_nowhere(tmp_path: Path, answer: bytes) -> None:
    """Whatever a daimon answers in place of counsel is told by its status or its class."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer as no daimon should; a look that asks nothing is answered nothing."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = str(server.sockets[0].getsockname()[1])
    async with (
        server,
        heard(tmp_path, CLAUDIUS_KOTHAR_ENABLED="1", CLAUDIUS_KOTHAR_URL=f"http://127.0.0.1:{port}") as soul,
    ):
        asked = await asyncio.to_thread(soul.daemon.machine.run, "daimon", "whisper", "--json")

        assert CANARY not in asked.shown
        assert await leaks(soul) == []

    assert asked.json["stored"] is False
    assert asked.json["reason"]


EMBEDDER = '''"""An embedder of an owner's own, which quotes what it cannot embed."""


class Quoting:
    """Fail."""

    name, dimension = "quoting", 4

    def passages(self, texts):
        """Fail."""
        raise ValueError(f"cannot embed {texts}")

    def query(self, text):
        """Fail."""
        raise ValueError(f"cannot embed {text}")


def build():
    """Build it."""
    return Quoting()
'''


async def test_s37_an_embedder_may_quote_nowhere(tmp_path: Path) -> None:
    """What an embedder raises is told by its class and place."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "quoting.py").write_text(EMBEDDER)
    async with heard(tmp_path, CLAUDIUS_RECALL_EMBEDDER="quoting", PYTHONPATH=str(own)) as soul:
        await soul.daemon.slack.say(await dm(soul), "U2", SAID)
        line = await logged(soul, "the embedder failed")

        assert await leaks(soul) == []

    assert "ValueError" in line["traceback"]
    assert "quoting.py" in line["traceback"]


@pytest.mark.parametrize("manner", ["quotes", "refuses", "fails"])
async def test_s37_a_server_of_tools_may_quote_nowhere(tmp_path: Path, manner: str) -> None:
    """What it writes on stderr as it ends, or answers in place of a result, is the turn's own record's."""
    use = json.dumps({"tool": "lab.echo", "args": {"text": SAID}})
    async with heard(tmp_path) as soul:
        await soul.daemon.stop()
        machine = soul.daemon.machine
        machine.scripted(*[f"<tool_use>{use}</tool_use>", reply("It is off.")] * 2)
        server = [sys.executable, "-I", str(REPOSITORY / "tests/lab/mcp_server.py"), manner, str(tmp_path / "told")]
        machine.ok("tools", "add", "lab", "--allow=echo=look", "--where", "private", "--", *server)
        await soul.daemon.start()
        for n in (1, 2):
            await soul.daemon.slack.say(await dm(soul), "U2", SAID)
            await soul.daemon.slack.until_visible(n, within_s=PATIENCE_S)

        assert await leaks(soul) == []

    assert CANARY in (tmp_path / "told").read_text("utf-8")


QUOTED_LLAMA = '''"""A llama.cpp that quotes: on stdout, on stderr, and in its answers."""

import http.server
import pathlib
import socketserver
import sys
import threading
import types

WORDS = "my diagnosis is zq-ulcer"


def CommonParams():
    """Take every setting."""
    return types.SimpleNamespace(cpuparams=types.SimpleNamespace(), model=types.SimpleNamespace())


class Answering(http.server.BaseHTTPRequestHandler):
    """Be ready, and refuse."""

    def answer(self):
        """Quote."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_ready = self.path.endswith("/models")
        body = b'{"data": [{"id": "tiny"}]}' if is_ready else b'{"error": {"message": "%s"}}' % WORDS.encode()
        self.send_response(200 if is_ready else 500, "OK" if is_ready else WORDS)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print(WORDS, flush=True)
        print(WORDS, file=sys.stderr, flush=True)

    do_GET = do_POST = answer

    def address_string(self):
        """Be nowhere."""
        return "here"


def Server(wanted):
    """Serve on the socket."""
    served = socketserver.ThreadingUnixStreamServer(wanted.hostnames[0], Answering)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    return served
'''


async def test_s37_a_model_of_the_home_may_quote_nowhere(tmp_path: Path) -> None:
    """Neither the output of llama.cpp's process nor its error's text is seen by anybody but the turn's record."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "xllamacpp.py").write_text(QUOTED_LLAMA)
    async with heard(tmp_path, PYTHONPATH=str(own)) as soul:
        await soul.daemon.stop()
        soul.daemon.machine.env["CLAUDIUS_PROVIDERS"] = "home"
        got = soul.daemon.machine.run("model", "get", str(write_tiny_model(tmp_path / "tiny.gguf")))
        await soul.daemon.start()
        await soul.daemon.slack.say(await dm(soul), "U2", SAID)
        await fails(soul, "voice")
        status = (await soul.daemon.status())["last_failure"]
        record = await asyncio.to_thread(soul.daemon.machine.ok, "why", status["turn"], "--json")

        assert await leaks(soul) == []

    assert CANARY not in got.shown
    assert "HTTP 500" in status["detail"]
    assert CANARY in record.json["failure"]["said"]
