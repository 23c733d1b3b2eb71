"""/ensoul in the real Claude Code, against a loopback model server: the soul in its requests, its files unchanged."""

import asyncio
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from claudius.claude_code.install import bundled
from driven import CLAUDIUS, Machine, reply
from lab.loopback.model import Call, ModelServer, Reply

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not bundled(), reason="Claude Code is not installed: pip install 'claudius-daemon[claude]'"),
]
MARK = re.compile(r"claudius-soul:[0-9a-f]{16}")
SOUL = "Claudius, Artifex Maximus"


async def run(command: str, *args: str, env: Mapping[str, str], cwd: Path) -> str:
    """Run a command to its end while this process's server answers it."""
    process = await asyncio.create_subprocess_exec(
        command, *args, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, (args, out.decode(), err.decode())
    return out.decode()


class Sitting:
    """A person who uses Claude Code."""

    def __init__(self, machine: Machine, server: ModelServer) -> None:
        self.machine, self.server, self.session = machine, server, ""
        self.project = machine.root / "bridge"
        self.project.mkdir()
        self.env = machine.environment(
            {
                "ANTHROPIC_BASE_URL": server.url,
                "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_MAX_RETRIES": "1",
                "CLAUDIUS_CLAUDE_CLI_PATH": bundled(),
            }
        )

    async def claudius(self, *args: str) -> str:
        """Run `claudius ARGS`."""
        return await run(str(CLAUDIUS), *args, env=self.env, cwd=self.machine.user)

    async def says(self, line: str, *more: str) -> str:
        """Type a line. Returns the last request that the model got, or an empty text if it got none."""
        asked = len(self.server.asked)
        args = ["-p", line, "--output-format", "json", "--model", "claude-loopback", *more]
        if self.session and "--resume" not in more:
            args += ["--resume", self.session]
        told = json.loads(await run(bundled(), *args, env=self.env, cwd=self.project))
        self.session = told["session_id"]
        return _text(self.server.asked[-1].body) if len(self.server.asked) > asked else ""


def _text(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False)


def times(request: str) -> int:
    """Count how often the soul appears in a request."""
    return len(MARK.findall(request))


def tree(directory: Path) -> dict[str, bytes]:
    """Return every file below a directory except what a session itself leaves."""
    found = (path for path in directory.rglob("*") if path.is_file())
    own = ("projects", "backups", "store", "statsig", "shell-snapshots", "todos", "debug", "session-env")
    return {str(path.relative_to(directory)): path.read_bytes() for path in found if not set(path.parts) & set(own)}


async def test_d14_the_soul_in_a_real_session(machine: Machine) -> None:
    """14: absent before; in the first request after /ensoul, after compaction, resume and fork; absent after off."""
    async with ModelServer() as server:
        sitting = Sitting(machine, server)
        await sitting.claudius("ensoul", "install")
        before = await sitting.says("hello")
        given = await sitting.says("/ensoul")
        resumed = await sitting.says("go on")
        await sitting.says("/compact")
        compacted = await sitting.says("go on")
        forked = await sitting.says("go on", "--resume", sitting.session, "--fork-session")
        status = json.loads(await sitting.claudius("ensoul", "status", "--json"))
        left = await sitting.says("/ensoul off")
        after = await sitting.says("go on")
        later = await sitting.says("and now")

    assert times(before) == 0
    assert times(given) >= 1
    assert SOUL in given
    for request in (resumed, compacted, forked):
        assert SOUL in request
        assert times(request) >= 1
    assert status["installed"] is True
    assert {one["on"] for one in status["sessions"]} == {True}
    assert "claudius-soul:off" in left
    assert times(left) == times(after) == times(later)
    assert after.rindex("claudius-soul:off") > max(found.start() for found in MARK.finditer(after))


async def test_what_is_done_there_reaches_the_soul_that_is_awake(tmp_path: Path) -> None:
    """With a daemon the session gets its state and portrait. `ensoul.remember` keeps prompt and answer there."""
    machine = Machine(tmp_path, env={"CLAUDIUS_ENSOUL_REMEMBER": "1", "LOGNAME": "ada"})
    async with ModelServer(default="Salt, and neglect.") as server:
        sitting = Sitting(machine, server)
        await sitting.claudius("ensoul", "install")
        await sitting.claudius("state", "set", "currentTopic", "the rust of bridges")
        await sitting.claudius("daemon", "start")
        try:
            given = await sitting.says("/ensoul")
            await sitting.says("Why does it rust?")
            talks = []
            for _ in range(200):
                talks = json.loads(await sitting.claudius("conversations", "list", "--json"))
                if any(one["conversation"].startswith("claude_code:") for one in talks):
                    break
        finally:
            await sitting.claudius("daemon", "stop")
        (talk,) = [one for one in talks if one["conversation"].startswith("claude_code:")]
        shown = json.loads(await sitting.claudius("conversations", "show", talk["conversation"], "--json"))

    assert "the rust of bridges" in given
    assert talk["audience"] == "private:terminal:local:ada"
    assert ("userMessage", "Why does it rust?") in [(one["entry_type"], one["content"]) for one in shown["entries"]]
    assert ("externalDialog", "Salt, and neglect.") in [(one["entry_type"], one["content"]) for one in shown["entries"]]


async def test_the_inbox_thinks_for_the_soul(tmp_path: Path) -> None:
    """`/claudius:inbox` as it is shipped: the session lends itself, is given what is owed, and its reply is said once."""
    machine = Machine(tmp_path, env={"CLAUDIUS_PROVIDERS": "rehearsal", "LOGNAME": "ada"})
    steps: list[str] = []

    def works(call: Call) -> Reply | str:
        """Do what the skill says, as its text in the request words it."""
        if not (lent := re.search(r"Otherwise run `([^`]+) (bridge on --session [\w-]+)", _text(call.body))):
            return "Nothing."
        turn = re.search(r'\\?"turn\\?": \\?"(\w+)', _text(call.body["messages"][-1]))
        words = {
            0: lent[2],
            1: "bridge next --wait 100 --json",
            2: f"bridge say {turn[1] if turn else ''} <<'END_OF_REPLY'\n{reply('It cools until four.')}\nEND_OF_REPLY",
            3: "bridge off",
        }.get(len(steps))
        if words is None:
            return "I answered Ada."
        steps.append(words)
        return Reply(tool="Bash", args={"command": f"{lent[1]} {words}", "description": "the bridge"})

    async with ModelServer(default=works) as server:
        sitting = Sitting(machine, server)
        await sitting.claudius("ensoul", "install")
        await sitting.claudius("daemon", "start")
        try:
            async with asyncio.TaskGroup() as both:
                session = both.create_task(sitting.says("/claudius:inbox", "--allowedTools", "Bash"))
                while not json.loads(await sitting.claudius("status", "--json"))["bridge"]:
                    assert not session.done()
                answered = await sitting.claudius("chat", "--once", "Is the kiln ready?")
            status = json.loads(await sitting.claudius("status", "--json"))
        finally:
            await sitting.claudius("daemon", "stop")

    assert (answered.strip().splitlines()[0], status["bridge"]) == ("It cools until four.", None)
    assert len(steps) == 4


@pytest.mark.parametrize("settings", [None, '{"model": "opus",   "enabledPlugins": {}}', '{"env": {"A": "b"}}'])
async def test_the_users_own_configuration_is_as_it_was(machine: Machine, settings: str | None) -> None:
    """After two installations, use and removal, Claude Code's files are the same, byte for byte, and none is new."""
    config = machine.user / ".claude"
    config.mkdir()
    (config / "CLAUDE.md").write_text("Mine.\n")
    if settings is not None:
        (config / "settings.json").write_text(settings)
    async with ModelServer() as server:
        sitting = Sitting(machine, server)
        await run(bundled(), "plugin", "list", env=sitting.env, cwd=sitting.project)
        before = tree(config)
        for _ in range(2):
            await sitting.claudius("ensoul", "install")
        in_place = json.loads(await sitting.claudius("ensoul", "status", "--json"))["installed"]
        kept = json.loads((config / "settings.json").read_text())
        await sitting.claudius("ensoul", "uninstall")
        after = tree(config)
        gone = json.loads(await sitting.claudius("ensoul", "status", "--json"))

    assert in_place is True
    assert kept["enabledPlugins"] == {"claudius@claudius": True}
    assert after == before
    assert gone == {"installed": False, "sessions": []}
    assert not (machine.home / "claude-code").exists()
