"""MCP servers in a process of their own: what they may do wrong, and whom it costs nothing."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from claudius.cognition.prompt.present import tool_line
from claudius.cognition.tool_use import wrong_in
from claudius.config.load import Loaded, Secret
from claudius.config.schema import Config, ToolServerSettings, ToolsSettings
from claudius.errors import ToolError, ToolFailed, ToolLost
from claudius.memory.calls import Pin
from claudius.tool import Tool, ToolCall, ToolClass
from claudius.tools.mcp import FAILURES, McpHands, Servers
from claudius.tools.pins import Definition, flaw
from lab.mcp_server import TOOLS

LAB = Path(__file__).parents[1] / "lab" / "mcp_server.py"
NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
CALL = ToolCall(
    id="T1/0", turn="T1", conversation="c", audience="a", person="p", tool="lab.echo", cls=ToolClass.LOOK, args={}
)
SESSIONS = web.AppKey("sessions", list[str])


def _spec(manner: str, directory: Path, **env: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-I", str(LAB), manner, str(directory / manner)], "env": env}


@pytest.fixture
async def hands(tmp_path: Path) -> AsyncIterator[McpHands]:
    """A child process, without a server."""
    made = McpHands(tmp_path / "cwd")
    yield made
    await made.close()


async def _used(hands: McpHands, manner: str, directory: Path) -> str:
    try:
        listed = await hands.list(manner, _spec(manner, directory))
        said = await hands.call(manner, "echo", {"text": "hi"})
    except ToolError as error:
        return f"{type(error).__name__}: {error.detail}" + f" ({error.said.words()})" * bool(error.said)
    return " | ".join([f"{len(listed.tools)} tools", *listed.bad, f"{len(said)}: {said[:16]}"])


async def test_a_server_that_misbehaves_costs_its_own_call_alone(hands: McpHands, tmp_path: Path) -> None:
    """Whatever a server does wrong: one clear line, its good tools stay, and its neighbours answer."""
    expected = {
        "good": "3 tools | 2: hi",
        "exits": "ToolFailed: cannot be used: it ended (ModuleNotFoundError: nothing here)",
        "unpaid": "ToolFailed: cannot be used: it answered with an error (pay first)",
        "noisy": "3 tools | 2: hi",
        "stubborn": "3 tools | 2: hi",
        "thousand": "64 tools | 1003 tools on one page | 65 tools, of which 64 count | 2: hi",
        "endless": "10 tools | more than 8 pages | 2: hi",
        "deep": "3 tools | deep: its schema is nested too deep | 2: hi",
        "one_bad": "3 tools | bad: its schema is no object | 7: no usable name | None: no usable name"
        " | bad0: its schema is malformed | bad1: its schema is malformed | echo: a second one of this name | 2: hi",
        "dies": "ToolLost: no answer: it ended",
        "long": "ToolLost: no answer: it wrote more than 4 MB in one piece",
        "broken": "ToolLost: no answer: it wrote a line that is no JSON",
        "shapeless": "ToolTimedOut: no answer: what it sent back has none of the forms of MCP",
        "empty": "3 tools | 0: ",
        "void": "3 tools | 0: ",
        "aged": "ToolFailed: cannot be used: it speaks a version of MCP that is not known here",
        "floods": "3 tools | 2: hi",
        "asks": "3 tools | 2: hi",
        "batches": '3 tools | 14: {"text": "hi"}',
        "pictures": "3 tools | 40: hi\n[image]\n[holo",
        "fails": "ToolFailed: it says that it failed (hi)",
        "refuses": "ToolFailed: it says that it failed (hi)",
        "much": "3 tools | 100046: hihihihihihihihi",
        "fat": "ToolLost: no answer: it took too much memory",
    }

    ends = await asyncio.gather(*(_used(hands, manner, tmp_path) for manner in expected))

    assert dict(zip(expected, ends, strict=True)) == expected
    assert await hands.call("good", "echo", {"text": "still here"}) == "still here"
    asked = (tmp_path / "asks").read_text("utf-8").splitlines()[-4:]
    assert [line.endswith(" answered") for line in asked] == [False, False, False, True], asked


async def test_what_a_server_asks_is_not_held_without_a_bound(hands: McpHands, tmp_path: Path) -> None:
    """One that asks and asks, and does not listen, is read no further; once it listens, its call ends well."""
    assert await _used(hands, "pesters", tmp_path) == "3 tools | 2: hi"
    assert int((tmp_path / "pesters").read_text("utf-8").split()[-1]) < 8_000


async def _answer(request: web.Request) -> web.Response:
    """Answer as a server over HTTP: its tool gives as many characters as its argument says, or a status and an error."""
    if request.method != "POST" or "id" not in (asked := await request.json()):
        return web.Response(status=405 if request.method != "POST" else 202)
    known, about = request.app[SESSIONS], {"capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": "1"}}
    if asked["method"] == "initialize":
        known.append(f"s{len(known)}")
    elif request.headers.get("Mcp-Session-Id", "") != known[-1]:
        return web.Response(status=404)
    size, _, told = asked.get("params", {}).get("arguments", {}).get("text", "0").partition(" ")
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
    if told:
        known.append("another")  # whoever asks next has to begin anew
        said |= {"error": {"code": -32602, "message": told}}
        return web.json_response(said if told != "none" else [], status=int(size))
    results = {
        "initialize": lambda: {"protocolVersion": asked["params"]["protocolVersion"], **about},
        "tools/list": lambda: {"tools": TOOLS},
        "tools/call": lambda: {"content": [{"type": "text", "text": "x" * int(size)}]},
    }
    said |= {"result": results[asked["method"]]()}
    return web.json_response(said, headers={"Mcp-Session-Id": known[-1]})


async def test_what_a_server_over_http_answers_costs_one_call(tmp_path: Path) -> None:
    """A megabyte is taken, nine are not; a status says what was not done; one that forgot the session is greeted anew."""
    app = web.Application()
    app[SESSIONS] = ["none"]
    app.router.add_route("*", "/mcp", _answer)
    expected = {
        "1000000": "100044",
        "9000000": "ToolLost: no answer: it wrote more than 4 MB in one piece",
        "429 none": "ToolFailed: cannot be used: it answered with HTTP 429",
        "401 none": "ToolFailed: cannot be used: it answered with HTTP 401: it wants a token (--env)",
        "400 too short": "ToolFailed: it says that it failed (too short)",
        "502 none": "ToolTimedOut: no answer: it answered with HTTP 502",
    }
    async with TestServer(app) as far:
        owner = Owner(tmp_path, far=ToolServerSettings(url=str(far.make_url("/mcp")), tools={"echo": ToolClass.READ}))
        owner.agree("far")
        said = {}
        for text in [one for wrong in expected for one in (wrong, "2")]:
            owner.now += timedelta(hours=1)
            try:
                said[text] = str(len(await owner.tool("far.echo").run({"text": text}, CALL)))
            except ToolError as error:
                said[text] = f"{type(error).__name__}: {error.detail}" + f" ({error.said.words()})" * bool(error.said)
                await _until(lambda error=error: not isinstance(error, ToolLost) or bool(owner.offs()["far.echo"]))
            assert said.get("2", "2") == "2", said
        await owner.servers.close()

    assert said == {**expected, "2": "2"}


async def test_a_call_that_is_cancelled_is_told_to_its_server_which_is_not_used_again(tmp_path: Path) -> None:
    """The server hears of it, is killed, and starts anew with the next call, however soon that comes."""
    owner, file = Owner(tmp_path, lab=_server("hangs", tmp_path)), tmp_path / "hangs"
    owner.agree("lab")
    file.touch()
    for count in (1, 2):
        call = asyncio.create_task(owner.tool("lab.echo").run({"text": "hi"}, CALL))
        await _until(lambda call=call, count=count: call.done() or file.read_text("utf-8").count("echo") == count)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await _until(lambda count=count: file.read_text("utf-8").count("notifications/cancelled") == count)

    assert file.read_text("utf-8").split().count("start") == 2
    await owner.servers.close()


async def test_what_kills_the_hands_kills_every_server(hands: McpHands, tmp_path: Path) -> None:
    """One that hears no signal ends too; the call under way has no answer; the next one starts all anew."""
    await hands.list("stubborn", _spec("stubborn", tmp_path))
    await hands.list("hangs", _spec("hangs", tmp_path))
    call = asyncio.create_task(hands.call("hangs", "echo", {"text": "hi"}))
    await _until(lambda: "echo" in (tmp_path / "hangs").read_text("utf-8"))
    servers = list(hands._groups.values())

    assert hands._child
    os.kill(hands._child.pid, signal.SIGKILL)

    with pytest.raises(ToolLost):
        await call
    await _until(lambda: not any(map(_runs, servers)))
    assert await _used(hands, "good", tmp_path) == "3 tools | 2: hi"


def test_a_daemon_that_is_killed_leaves_no_server(tmp_path: Path) -> None:
    """`kill -9` of the process that started the hands ends them and their servers."""
    script = (
        "import asyncio, sys, pathlib\nfrom claudius.tools.mcp import McpHands\n"
        f"async def main():\n    hands = McpHands(pathlib.Path({str(tmp_path / 'cwd')!r}))\n"
        f"    await hands.list('s', {_spec('stubborn', tmp_path)!r})\n"
        "    print(hands._child.pid, *hands._groups.values(), flush=True)\n    await asyncio.Event().wait()\n"
        "asyncio.run(main())"
    )
    daemon = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert daemon.stdout
    started = [int(pid) for pid in daemon.stdout.readline().split()]
    assert len(started) == 2

    daemon.kill()
    daemon.wait()
    daemon.stdout.close()

    asyncio.run(_until(lambda: not any(map(_runs, started))))


async def test_a_server_sees_the_variables_that_are_named_for_it(
    hands: McpHands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of secrets it has its own alone; they stand in no argument of a process, and not in its neighbour."""
    monkeypatch.setenv("CLAUDIUS_CANARY", "canary-0")
    for name, env in (("good", {"NOTES_TOKEN": "canary-1"}), ("noisy", {"MAIL_TOKEN": "canary-2"})):
        await hands.list(name, _spec(name, tmp_path, **env))

    seen = [await hands.call(name, "peek", {}) for name in ("good", "noisy")]

    assert [json.loads(one).get("NOTES_TOKEN") for one in seen] == ["canary-1", None]
    assert ["canary-2" in one for one in seen] == [False, True]
    assert not any("canary-0" in one for one in seen)
    assert hands._child
    pids = [hands._child.pid, *hands._groups.values()]
    assert not any(b"canary" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)


class Owner:
    """What the owner has set and agreed to, and the time; with the servers that follow from it."""

    def __init__(self, directory: Path, **servers: ToolServerSettings) -> None:
        self.directory, self.now, self.pins = directory, NOW, list[Pin]()
        self.learned: list[str] = []
        self.loaded = self._loaded(servers)
        self.servers = Servers(
            lambda changed: McpHands(directory / "cwd", changed),
            lambda: self.loaded,
            lambda: self.pins,
            lambda: self.now,
            self.learned.extend,
        )

    def _loaded(self, servers: dict[str, ToolServerSettings]) -> Loaded:
        return Loaded(Config(tools=ToolsSettings(servers=servers)), {}, {"KEY": Secret("canary-3")})

    def agree(self, name: str, tools: Sequence[Any] = TOOLS) -> None:
        """Pin these tools of a server, and none else."""
        self.pins = [
            Pin(
                server=name, tool=one.name, sha256=one.sha256, description=one.description, schema=one.schema,
                cls=one.proposed, pinned_by="p", pinned_at=NOW,
            )
            for raw in tools
            for one in [Definition(name=raw["name"], description=raw["description"], schema=raw["inputSchema"])]
        ]  # fmt: skip

    def tool(self, name: str) -> Tool:
        """Return a tool as it is offered now."""
        return next(one for one in self.servers.tools() if one.name == name)

    def offs(self) -> dict[str, str]:
        """Return why each tool cannot be used."""
        return {one.name: one.off for one in self.servers.tools()}


def _server(manner: str, directory: Path, **rest: Any) -> ToolServerSettings:
    classes: Any = {"echo": "read", "send": "send"}
    return ToolServerSettings(command=tuple(_spec(manner, directory)["command"]), tools=classes, **rest)


async def test_what_is_offered_is_what_was_agreed_to_and_classed(tmp_path: Path) -> None:
    """No server is started for it; the key of a call is the server's, and hidden; what has no class is not offered."""
    owner = Owner(tmp_path, lab=_server("good", tmp_path, key_arg="key", env=("KEY",), mine=("echo",)))
    owner.agree("lab")

    echo, send = owner.servers.tools()

    assert not (tmp_path / "good").exists()
    shown = (echo.name, echo.purpose, echo.cls, echo.is_mine, echo.where)
    assert shown == ("lab.echo", "Say it again.", ToolClass.READ, True, ("owner",))
    assert owner.servers.tools()[0] is echo
    assert await send.run({"text": "hi", "key": "T1/0"}, CALL) == "hi"
    assert "send T1/0 hi" in (tmp_path / "good").read_text("utf-8")
    assert owner.learned == ["canary-3"]
    await owner.servers.close()


def test_arguments_are_known_wherever_a_schema_names_them(tmp_path: Path) -> None:
    """By its parts, alternatives and references: a fitting call is let pass, any other told back; the rest is the server's."""
    number, word = {"type": "integer"}, {"type": "string"}
    by_id, by_name = ({"properties": {one: kind}, "required": [one]} for one, kind in (("id", number), ("name", word)))
    loop, patterned = {"$ref": "#/$defs/a"}, {"patternProperties": {"^x_": word}, "additionalProperties": False}
    parts = {
        "$defs": {"a": {**by_id, "anyOf": [loop, loop]}},
        "allOf": [loop, {"$ref": "#/none"}, by_name, {"required": [[]]}, 7],
    }
    cases: list[tuple[Any, str, dict[str, Any], dict[str, Any]]] = [
        ({"oneOf": [by_id, by_name]}, "id?: integer, name?: string", {"name": "x"}, {"id": "x"}),
        ({"type": "object", **parts}, "id: integer, name: string", {"id": 3.0, "name": "x"}, {"id": 3}),
        ({"anyOf": [by_id, {"properties": {"id": word}, "required": ["id"]}]}, "id: any", {"id": "x"}, {"name": "x"}),
        ({"then": by_id, "else": 7, "oneOf": "7"}, "id?: integer", {}, {"id": 1.5}),
        ({"additionalProperties": word}, "…", {"a": "x"}, {"a": 1}),
        ({**patterned, **by_id}, "id: integer, …", {"id": 1, "x_": 2}, {"x_": 2}),
        ({"additionalProperties": {}, "properties": {"key": word}}, "…", {"a": None}, {"key": "mine"}),
    ]
    owner = Owner(tmp_path, lab=ToolServerSettings(command=("x",), tools={"it": ToolClass.LOOK}, key_arg="key"))
    for schema, shown, good, bad in cases:
        assert not flaw({"name": "it", "inputSchema": schema}), schema
        owner.agree("lab", [{"name": "it", "description": "Does it.", "inputSchema": schema}])
        owner.servers.again()
        tool = owner.tool("lab.it")
        assert tool_line(tool) == f"- lab.it({shown}): Does it."
        assert (wrong_in(good, tool), bool(wrong_in(bad, tool))) == ("", True), schema


async def test_a_server_that_fails_is_tried_later_and_later_and_then_is_down(tmp_path: Path) -> None:
    """Five failures in ten minutes: down until its owner looks, or the next day; what it says is told once."""
    owner = Owner(tmp_path, lab=_server("good", tmp_path))
    owner.agree("lab")
    owner.loaded = owner._loaded({"lab": _server("exits", tmp_path)})

    async def fail() -> str:
        """Do not start."""
        with pytest.raises(ToolFailed) as failed:
            await owner.tool("lab.echo").run({"text": "hi"}, CALL)
        return failed.value.detail

    assert await fail() == "cannot be used: it ended"
    assert (await fail()).startswith("its server failed a moment ago")
    for _ in range(FAILURES - 1):
        owner.now += timedelta(seconds=60)
        await fail()

    owner.now += timedelta(hours=1)
    assert owner.offs()["lab.echo"].startswith("its server is down: cannot be used: it ended")
    assert list(owner.servers.problems()) == ["lab"]
    assert (tmp_path / "exits").read_text("utf-8").split().count("start") == FAILURES
    owner.now += timedelta(days=1)
    assert owner.offs()["lab.echo"] == ""
    await fail()
    owner.servers.again()
    assert owner.offs()["lab.echo"] == ""
    await owner.servers.close()


def _runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


async def _until(holds: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.02)
