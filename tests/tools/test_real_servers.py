"""Real MCP servers, of other people, from PyPI and npm: each is listed whole, and does one call. Skipped by name where absent."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from claudius.errors import ToolFailed
from claudius.tools.mcp import McpHands

pytestmark = pytest.mark.slow
PYPI = ("mcp-server-time", "mcp-server-fetch", "mcp-server-git")
NPM = ("@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-everything")


def _installed(*command: str, name: str) -> None:
    try:
        ran = subprocess.run(command, capture_output=True, timeout=240, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{name}: {type(error).__name__}")
    if ran.returncode:
        pytest.skip(f"{name} cannot be installed here")


@pytest.fixture(scope="module")
def pypi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the commands of servers from PyPI, in an environment of their own."""
    venv = tmp_path_factory.mktemp("pypi") / "venv"
    _installed(sys.executable, "-m", "venv", str(venv), name="venv")
    _installed(str(venv / "bin" / "pip"), "install", "--quiet", *PYPI, name=" ".join(PYPI))
    return venv / "bin"


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the commands of servers from npm."""
    if not shutil.which("npm"):
        pytest.skip("npm is not here")
    directory = tmp_path_factory.mktemp("npm")
    _installed("npm", "install", "--silent", "--prefix", str(directory), *NPM, name=" ".join(NPM))
    return directory / "node_modules" / ".bin"


@pytest.fixture
async def hands(tmp_path: Path) -> AsyncIterator[McpHands]:
    """A child process, without a server."""
    made = McpHands(tmp_path / "cwd")
    yield made
    await made.close()


async def _use(hands: McpHands, name: str, spec: dict[str, Any], tool: str, **args: Any) -> tuple[int, str]:
    listed = await hands.list(name, {"env": {}, **spec})
    assert not listed.bad
    return len(listed.tools), await hands.call(name, tool, args)


async def test_the_time_in_tokyo(hands: McpHands, pypi: Path) -> None:
    """`mcp-server-time` tells it, with its offset."""
    spec = {"command": [str(pypi / "mcp-server-time")]}
    count, text = await _use(hands, "time", spec, "get_current_time", timezone="Asia/Tokyo")
    assert (count, "+09:00" in text) == (2, True)


async def test_a_repository(hands: McpHands, pypi: Path, tmp_path: Path) -> None:
    """`mcp-server-git` offers twelve tools, and reads a log."""
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "the first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)  # noqa: ASYNC221 - nobody else waits
    spec = {"command": [str(pypi / "mcp-server-git")]}
    count, text = await _use(hands, "git", spec, "git_log", repo_path=str(tmp_path))
    assert (count, "the first" in text) == (12, True)


async def test_a_page_that_it_may_not_fetch(hands: McpHands, pypi: Path) -> None:
    """`mcp-server-fetch` says itself that it failed."""
    with pytest.raises(ToolFailed) as failed:
        await _use(hands, "fetch", {"command": [str(pypi / "mcp-server-fetch")]}, "fetch", url="http://127.0.0.1:1/")
    assert "127.0.0.1" in failed.value.said.words()


async def test_ones_notes(hands: McpHands, npm: Path, tmp_path: Path) -> None:
    """The filesystem server reads what is in its directory, and nothing else."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("bees")
    spec = {"command": [str(npm / "mcp-server-filesystem"), str(tmp_path / "notes")]}
    count, text = await _use(hands, "notes", spec, "read_text_file", path=str(tmp_path / "notes" / "a.md"))
    assert (count, text) == (14, "bees")
    with pytest.raises(ToolFailed):
        await hands.call("notes", "read_text_file", {"path": "/etc/passwd"})


async def test_everything_by_a_pipe_and_over_http(hands: McpHands, npm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of everything is the same both ways; what it sees of the environment is the allow-list."""
    monkeypatch.setenv("CLAUDIUS_CANARY", "canary")
    command = str(npm / "mcp-server-everything")
    count, seen = await _use(hands, "pipe", {"command": [command]}, "get-env")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(  # noqa: ASYNC220 - nobody else waits
        [command, "streamableHttp"], env={**os.environ, "PORT": str(port)}, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr
        while "listening" not in server.stderr.readline():
            assert server.poll() is None
        http = await _use(hands, "http", {"url": f"http://127.0.0.1:{port}/mcp"}, "get-sum", a=1, b=2)
        await hands.close()
        server.kill()

    assert http == (count, "The sum of 1 and 2 is 3.")
    assert "PATH" in seen
    assert "CANARY" not in seen
