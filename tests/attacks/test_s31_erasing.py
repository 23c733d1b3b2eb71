"""S31: a forgotten person is in no byte of the home, no git object, and no backup that is restored later."""

import asyncio
import json
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.provider import Event, Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from driven import Machine, reply

CANARY = "my locker number is seven four one nine"
ANA = "terminal:local:as-ana"
MODEL = f"## Persona\nAna, whose secret is that {CANARY}."


def where(home: Path, word: str) -> list[str]:
    """Return each file of a home, and each object of its git, that holds a word."""
    files = [path for path in home.rglob("*") if path.is_file()]
    found = []
    for path in files:
        with suppress(FileNotFoundError):  # git and the erasure itself remove files meanwhile
            found += [str(path.relative_to(home))] * (word.encode() in path.read_bytes())
    git = ["git", "--git-dir", str(home / "memory" / ".git"), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(git, capture_output=True, check=False).stdout
    return found + ["git"] * (word.encode() in objects)


def learned(machine: Machine) -> None:
    """Have Ana tell a secret that is written into her portrait, in a place where Ben and the owner talk too."""
    tells = reply(
        f"I keep it: {CANARY}",
        user_model_check="true",
        user_model_update=MODEL,
        model_change_note="she told me a secret",
    )
    machine.scripted(tells)
    machine.ok("chat", "--once", f"Hello, {CANARY}, remember it", "--as", "ana", "--conversation", "hall")
    machine.scripted(reply("Hello."))
    machine.ok("chat", "--once", "Good morning from me, the other one", "--as", "ben", "--conversation", "hall")
    machine.ok("chat", "--once", "And good morning from the owner", "--conversation", "hall")


def archived(machine: Machine) -> bool:
    """Return whether git holds every portrait."""
    with closing(sqlite3.connect(f"file:{machine.home}/state/claudius.db?mode=ro", uri=True)) as kept:
        return kept.execute("SELECT count(*) FROM revision WHERE git_commit IS NULL").fetchone() == (0,)


def test_s31_a_person_who_was_forgotten_is_nowhere(machine: Machine) -> None:
    """S31: this covers rows, log, FTS, git, logs and backups. The receipt is true, and others keep what is theirs."""
    learned(machine)
    assert archived(machine)
    machine.ok("backup", "create")
    with machine.daemon():
        before = where(machine.home, CANARY)
        exported = machine.ok("users", "export", ANA, "--json").json
        receipt = machine.ok("users", "forget", ANA, "--yes", "--json").json
        after = where(machine.home, CANARY), where(machine.home, ANA)
        machine.ok("chat", "--once", "Still there?", "--as", "ben", "--conversation", "hall")
        kept = machine.ok("conversations", "show", "terminal:local:main:hall", "--json").json["entries"]

    assert "git" in before
    assert any(path.startswith("backups/") for path in before)
    assert [message["content"] for message in exported["messages"] if message["person"]] == [
        f"Hello, {CANARY}, remember it"
    ]
    assert CANARY in exported["models"][0]["markdown"]
    assert after == ([], [])
    assert receipt["verified"] is True
    assert receipt["posts"] == []  # a terminal is no network, and keeps none
    assert receipt["person"] == ANA
    assert receipt["rows"]["user_model"] == 1
    assert receipt["rows"]["inbox"] == 1
    assert receipt["rows"]["person"] == 1
    assert receipt["git"] == 1
    assert receipt["backups"] >= 1
    assert "Good morning from me, the other one" in [entry["content"] for entry in kept]
    assert machine.run("users", "show", ANA).code == 1
    assert machine.ok("doctor").code == 0


def test_s31_the_owner_is_forgotten_in_sessions_of_claude_code_too(machine: Machine) -> None:
    """S31: a hook spools what this machine's user typed while the soul slept, and that is erased too."""
    machine.scripted(reply("Hello."))
    own = machine.ok("chat", "--once", "Hello from me", "--json").json["person"]
    told = {"id": "1", "session": "s1", "project": "/p", "prompt": CANARY, "answer": "noted", "at": 1.0}
    for directory, kept in zip(Home(machine.home).sessions, ({"session": "s1", "prompt": CANARY}, told), strict=True):
        directory.mkdir(mode=0o700, parents=True)
        (directory / "s1.json").write_text(json.dumps(kept))
    with machine.daemon():
        (directory / "s2.json").write_text(json.dumps(told))

        receipt = machine.ok("users", "forget", own, "--yes", "--json").json

    assert receipt["verified"] is True
    assert where(machine.home, CANARY) == []


def test_s31_the_exported_state_is_erased_too_and_common_words_stay(machine: Machine) -> None:
    """S31: the person's entries leave the exported state too. Words of the soul's own files are not a trace."""
    own = "What do you remember of me, after all this time?"
    machine.ok("chat", "--once", own)
    machine.ok("state", "set", "currentTopic", f"the locker: {CANARY}")
    (machine.home / "soul" / "dossiers").mkdir()
    (machine.home / "soul" / "dossiers" / "asked.md").write_text(f"Somebody always asks: {own}\n")
    machine.ok("chat", "--once", "And now?")
    state = machine.home / "memory" / "soul_state.md"
    assert CANARY in state.read_text()

    receipt = machine.ok("users", "forget", "terminal:local:ada", "--yes", "--json").json

    assert receipt["verified"] is True
    assert receipt["rows"]["conversation_person"] == 1
    assert where(machine.home, CANARY) == []


@pytest.mark.slow
def test_s31_an_older_backup_that_is_put_back_forgets_again(tmp_path: Path) -> None:
    """S31: the ledger is kept outside the database, and is applied to an older copy before the copy is used."""
    machine = Machine(tmp_path)
    learned(machine)
    older = machine.ok("backup", "create", str(tmp_path / "elsewhere"), "--json").json["path"]
    receipt = machine.ok("users", "forget", ANA, "--yes", "--json").json

    restored = machine.ok("backup", "restore", older, "--yes")

    assert receipt["verified"] is True
    assert "were erased from it" in restored.stdout
    assert where(machine.home, CANARY) == []
    assert where(machine.home, ANA) == []
    assert "terminal:local:as-ben" in [one["person"] for one in machine.ok("users", "list", "--json").json]


def test_s31_nobody_is_forgotten_by_mistake(machine: Machine) -> None:
    """Without --yes, or for an unknown person, nothing is erased."""
    machine.scripted(reply("Hello."))
    machine.ok("chat", "--once", "Hello", "--as", "ana")

    assert machine.run("users", "forget", ANA).code == 2
    assert machine.run("users", "forget", "terminal:local:as-an", "--yes").code == 1
    assert machine.ok("users", "show", ANA, "--json").json["person"] == ANA


@pytest.mark.slow
@pytest.mark.parametrize("other", ["terminal:local:as-ana2", "terminal:local:as-an"])
def test_s31_an_id_that_looks_alike_is_left_alone(machine: Machine, other: str) -> None:
    """An id that has another id as its prefix, or is a prefix itself, belongs to another."""
    machine.scripted(reply("Hello."))
    machine.ok("chat", "--once", "Hello from the first", "--as", "ana", "--conversation", "one")
    name = other.rpartition("as-")[2]
    machine.ok("chat", "--once", "Hello from the second", "--as", name, "--conversation", "two")

    receipt = machine.ok("users", "forget", ANA, "--yes", "--json").json

    said = machine.ok("users", "export", other, "--json").json["messages"]
    assert receipt["verified"] is True
    assert [message["content"] for message in said if message["person"]] == ["Hello from the second"]


class _Slow(Scripted):
    """A model that thinks until it is released, and keeps sessions."""

    def __init__(self) -> None:
        """Create a model that is still thinking."""
        super().__init__(default=reply(f"I keep it: {CANARY}"))
        self.begun, self.let_go = asyncio.Event(), asyncio.Event()
        self.forgotten: list[str] = []

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Wait for the release, then answer."""
        self.begun.set()
        await self.let_go.wait()
        async for event in super().complete(request):
            yield event

    async def forget(self, conversation: str) -> None:
        """End a session."""
        self.forgotten.append(conversation)


async def test_s31_what_was_thought_meanwhile_is_not_kept(home: Home) -> None:
    """S31: a turn that runs while its speaker is forgotten commits and says nothing, and its sessions end."""
    voice = _Slow()

    async with alive(home, voice) as soul:
        await soul.network.hear("hello before that", person="ana")
        voice.let_go.set()
        await soul.idle()
        voice.begun.clear()
        voice.let_go.clear()
        await soul.network.hear(f"hello, {CANARY}", person="ana")
        await voice.begun.wait()
        receipt = await soul.server._forgetting.forget("rehearsal:t:ana", soul.mind.clock(), "owner")
        voice.let_go.set()
        await soul.idle()
        people = soul.records().people()

    assert receipt["verified"] is True
    assert list(people) == []
    assert voice.forgotten == ["rehearsal:t:dm-ana:"]
    assert len(soul.network.visible) == 1
    assert where(home.root, CANARY) == []
