"""The `claude` command and its directories, without running a turn."""

from pathlib import Path

import pytest

from claudius.children import INHERITED
from claudius.config.load import load
from claudius.errors import Unavailable
from claudius.home import Home
from claudius.providers.claude.command import (
    PROMPTS_KEPT,
    ClaudeDirectories,
    child_env,
    find,
    flags,
    is_logged_in,
)


def _stand_in(directory: Path, script: str) -> str:
    path = directory / "claude"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo '2.1.247 (Claude Code)'", "too old"),
        ("echo '1.99.999'", "too old"),
        ("echo 'GNU bash'", "does not tell its version"),
        ("exit 1", "does not run"),
    ],
)
def test_a_command_that_will_not_do_is_refused(script: str, why: str, tmp_path: Path) -> None:
    """A command that is too old to send a prompt verbatim, or is not Claude Code, is Unavailable with the reason."""
    with pytest.raises(Unavailable, match=why):
        find(_stand_in(tmp_path, script))


@pytest.mark.parametrize("said", ["2.1.248", "2.1.330 (Claude Code)", "3.0.0"])
def test_a_command_that_is_new_enough_is_taken(said: str, tmp_path: Path) -> None:
    """Versions from the one that knows `client_composed` on are accepted."""
    path = _stand_in(tmp_path, f"echo '{said}'")

    assert find(path).path == path


def test_a_command_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Only the configured path is tried."""
    with pytest.raises(Unavailable, match="does not run"):
        find(str(tmp_path / "nobody"))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo '{\"loggedIn\": true}'", True),
        ("echo '{\"loggedIn\": false}'; exit 1", False),
        ("echo '{\"loggedIn\": false}'", False),
        ("echo broken", False),
        ("echo '[]'", False),
    ],
)
def test_a_login_is_what_the_command_says(script: str, expected: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    """A login counts only if the exit code and the JSON both say so."""
    version = '[ "$1" = --version ] && echo 9.0.0 && exit'
    command = find(_stand_in(tmp_path, f"{version}\n{script}"))

    assert is_logged_in(command, {"PATH": "/usr/bin:/bin"}) is expected


def test_the_environment_is_composed_not_inherited(home: Home) -> None:
    """The child's environment has the allow-list, our settings, the base URL and the one credential that it prefers."""
    environ = dict.fromkeys((*INHERITED, "SLACK_BOT_TOKEN", "PYTHONPATH", "ANTHROPIC_AUTH_TOKEN", "CLAUDECODE"), "x")
    both = {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_OAUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}

    env = child_env(load(home, both), environ, max_tokens=7)

    assert env.keys() & {"SLACK_BOT_TOKEN", "PYTHONPATH", "ANTHROPIC_AUTH_TOKEN", "CLAUDECODE"} == set()
    assert env.keys() >= set(INHERITED)
    assert (env["ANTHROPIC_API_KEY"], env.get("CLAUDE_CODE_OAUTH_TOKEN")) == ("k", None)
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"
    assert env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "7"


def test_a_login_needs_no_credential(home: Home) -> None:
    """If no credential is set, none is passed, and the command uses its own login."""
    env = child_env(load(home, {}), {}, max_tokens=7)

    assert env.keys() & {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"} == set()


def test_the_flags_leave_nothing_to_the_machine() -> None:
    """No settings, tools, MCP, commands or prompts to a user; `--tools` is last, because it takes all that follows."""
    found = flags(model="sonnet", system_file=Path("/s.md"), session=("--resume", "id"))

    assert found[-2:] == ["--tools", ""]
    assert {"--setting-sources=", "--strict-mcp-config", "--disable-slash-commands"} <= set(found)
    for flag, value in (
        ("--permission-mode", "dontAsk"),
        ("--disallowedTools", "Read"),
        ("--system-prompt-snapshot", "off"),
        ("--system-prompt-file", "/s.md"),
        ("--max-turns", "1"),
        ("--resume", "id"),
    ):
        assert found[found.index(flag) + 1] == value


@pytest.fixture
def places(home: Home, tmp_path: Path) -> ClaudeDirectories:
    """Return the directories of a transport on a machine whose Claude configuration is elsewhere."""
    return ClaudeDirectories(home, "claude_cli", {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")})


def test_the_working_directory_is_emptied(home: Home, places: ClaudeDirectories, tmp_path: Path) -> None:
    """Files, directories and links left there are deleted; a link's target stays."""
    kept = tmp_path / "kept"
    kept.write_text("mine")
    (places.cwd / "CLAUDE.md").write_text("x")
    (places.cwd / ".claude").mkdir()
    (places.cwd / ".claude" / "settings.json").write_text("{}")
    (places.cwd / "link").symlink_to(kept)

    again = ClaudeDirectories(home, "claude_cli", {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")})

    assert list(again.cwd.iterdir()) == []
    assert kept.read_text() == "mine"


def test_a_system_prompt_is_a_private_file(places: ClaudeDirectories) -> None:
    """The soul's text is written once per wording, readable only by its owner, and old wordings are deleted."""
    first = places.system_file("You are Claudius. Ω")

    assert places.system_file("You are Claudius. Ω") == first
    assert first.read_text("utf-8") == "You are Claudius. Ω"
    assert first.stat().st_mode & 0o777 == 0o600
    for number in range(3 * PROMPTS_KEPT):
        places.system_file(f"wording {number}")
    assert len(list(first.parent.iterdir())) <= PROMPTS_KEPT + 1


def test_a_forgotten_session_leaves_nothing(places: ClaudeDirectories, tmp_path: Path) -> None:
    """Its transcript and the files beside it are deleted in every project directory; other sessions stay."""
    project = tmp_path / "config" / "projects" / "-some-cwd"
    project.mkdir(parents=True)
    (project / "one.jsonl").write_text("x")
    (project / "one").mkdir()
    (project / "one" / "agent.jsonl").write_text("x")
    (project / "two.jsonl").write_text("x")
    places.note("one")

    places.forget("one")
    places.forget("one")

    assert [path.name for path in project.iterdir()] == ["two.jsonl"]


def test_what_a_killed_daemon_left_is_deleted_at_the_next_start(
    home: Home, places: ClaudeDirectories, tmp_path: Path
) -> None:
    """Sessions are recorded before they begin, so that the next start can delete them."""
    project = tmp_path / "config" / "projects" / "-some-cwd"
    project.mkdir(parents=True)
    (project / "one.jsonl").write_text("x")
    places.note("one")

    ClaudeDirectories(home, "claude_cli", {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")})

    assert list(project.iterdir()) == []


def test_places_that_cannot_be_made_are_unavailable(home: Home) -> None:
    """A file in place of the directory is a one-line error."""
    (home.run / "claude_cli").write_text("in the way")

    with pytest.raises(Unavailable, match="claude_cli"):
        ClaudeDirectories(home, "claude_cli", {})
