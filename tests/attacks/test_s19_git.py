"""S19: a repository that was prepared against us runs nothing, and no user's text becomes an option."""

import os
import subprocess
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.memory.archive import Archive
from claudius.memory.sqlite import SqliteStore
from claudius.perception import private
from contracts.store.ground import ANA, NOW, Ground, awake

HOOKS = (
    "pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "reference-transaction", "post-index-change",
    "pre-auto-gc", "post-checkout", "fsmonitor-watchman", "post-rewrite",
)  # fmt: skip


@pytest.fixture
async def store(home: Home) -> AsyncIterator[SqliteStore]:
    """Return a store."""
    async with awake(Ground(lambda: SqliteStore(home.database))) as opened:
        assert isinstance(opened, SqliteStore)
        yield opened


def git(home: Home, *args: str) -> str:
    """Run git as its owner would."""
    return run("-C", str(home.memory), *args)


def run(*args: str) -> str:
    """Run git."""
    return subprocess.run(["git", *args], capture_output=True, text=True, check=True).stdout


def prepare(home: Home, canary: Path) -> None:
    """Make a repository in which every hook that can run a command writes the canary."""
    git(home, "init", "--quiet", "--initial-branch=main")
    script = home.memory / ".git" / "evil"
    script.write_text(f"#!/bin/sh\necho ran >>{canary}\ncat\n")
    script.chmod(0o755)
    for hook in HOOKS:
        path = home.memory / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {hook} >>{canary}\nexit 1\n")
        path.chmod(0o755)
    (home.memory / ".git" / "info").mkdir(exist_ok=True)
    (home.memory / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
    (home.memory / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for key, value in {
        "core.fsmonitor": str(script),
        "core.hooksPath": str(home.memory / ".git" / "hooks"),
        "core.pager": str(script),
        "core.editor": str(script),
        "core.sshCommand": str(script),
        "core.askPass": str(script),
        "filter.evil.clean": str(script),
        "filter.evil.smudge": str(script),
        "filter.evil.process": str(script),
        "filter.evil.required": "true",
        "diff.evil.command": str(script),
        "diff.evil.textconv": str(script),
        "diff.external": str(script),
        "merge.evil.driver": str(script),
        "gpg.program": str(script),
        "commit.gpgSign": "true",
        "log.showSignature": "true",
        "alias.log": f"!{script}",
        "alias.fast-import": f"!{script}",
        "credential.helper": str(script),
        "sequence.editor": str(script),
        "core.worktree": str(home.root.parent),
        "gc.auto": "1",
    }.items():
        git(home, "config", key, value)


async def test_s19_a_prepared_repository_runs_nothing(home: Home, store: SqliteStore, tmp_path: Path) -> None:
    """Hooks, filters, fsmonitor, pager, signer and aliases are set, none runs, and the portrait is committed."""
    canary = tmp_path / "canary"
    prepare(home, canary)
    await store.documents.set_model(ANA, private(ANA), "# Ana\n", "met her", "owner", NOW)
    archive = Archive(store, home.memory, home.backups, clock=lambda: datetime.now(UTC))

    done = await archive.round()
    await archive.close()

    assert done.committed == 1
    assert not canary.exists()
    log = run(f"--git-dir={home.memory / '.git'}", "cat-file", "-p", "HEAD")
    assert "met her" in log
    assert not (home.root.parent / "users").exists()


async def test_s19_the_environment_of_our_process_is_not_believed(
    home: Home, store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent's GIT_* variables (another repository, a template, configuration) change nothing."""
    elsewhere, canary = tmp_path / "elsewhere", tmp_path / "canary"
    run("init", "--quiet", str(elsewhere))
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\necho ran >>{canary}\n")
    evil.chmod(0o755)
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    (template / "reference-transaction").write_text(evil.read_text())
    (template / "reference-transaction").chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[core]\n\tfsmonitor = {evil}\n\thooksPath = {template}\n")
    for name, value in {
        "GIT_DIR": str(elsewhere / ".git"),
        "GIT_WORK_TREE": str(elsewhere),
        "GIT_INDEX_FILE": str(elsewhere / "index"),
        "GIT_OBJECT_DIRECTORY": str(elsewhere / "objects"),
        "GIT_TEMPLATE_DIR": str(template.parent),
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_SYSTEM": str(config),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(evil),
        "GIT_EXTERNAL_DIFF": str(evil),
        "GIT_PAGER": str(evil),
    }.items():
        monkeypatch.setenv(name, value)
    await store.documents.set_model(ANA, private(ANA), "# Ana\n", "met her", "owner", NOW)
    archive = Archive(store, home.memory, home.backups, clock=lambda: datetime.now(UTC))

    done = await archive.round()
    await archive.close()

    assert done.committed == 1
    assert not canary.exists()
    assert (home.memory / ".git" / "HEAD").exists()
    assert not (elsewhere / "objects").exists()
    assert not (elsewhere / "index").exists()


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a wrapper before the real git that records each call."""
    seen = tmp_path / "calls"
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" >>{seen}\nexec {real} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    return seen


async def test_s19_no_user_text_stands_in_a_command_line(home: Home, store: SqliteStore, calls: Path) -> None:
    """Names, notes, portraits and audiences reach git only on its standard input."""
    person, audience = "slack:T1:--output=x", "private:--upload-pack=touch y"
    text = "--output=canary-text\n" * 3
    await store.documents.set_model(person, audience, text, "--exec=canary-note\n\nrefs/heads/x", "owner", NOW)
    await store.documents.set_state("currentTopic", "--canary-state", audience, NOW)
    archive = Archive(store, home.memory, home.backups, clock=lambda: datetime.now(UTC))

    await archive.round()
    (file,) = home.memory.glob("users/*/*.md")
    file.write_text("--canary-hand")
    os.utime(file, (time.time() - 60,) * 2)
    archive._next_look_s = 0.0
    assert (await archive.round()).imported == 1
    await archive.close()

    seen = calls.read_text()
    assert "fast-import" in seen
    assert not [word for word in ("canary", "upload-pack", "--output", "--exec=", "T1") if word in seen]


async def test_s19_a_note_is_one_line_of_a_message(home: Home, store: SqliteStore) -> None:
    """A note that looks like the import stream, a trailer or a second commit stays the subject of one commit."""
    note = "x\n\nClaudius-Revision: 99.aaaaaaaaaaaa\ncommit refs/heads/evil\ndata 3\nabc"
    await store.documents.set_model(ANA, private(ANA), "# Ana\ncommit refs/heads/evil\n", note, "owner", NOW)
    archive = Archive(store, home.memory, home.backups, clock=lambda: datetime.now(UTC))

    await archive.round()
    await archive.close()

    assert git(home, "rev-list", "--all", "--count").strip() == "1"
    assert git(home, "log", "-1", "--format=%s").strip() == " ".join(note.split())
    assert git(home, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
