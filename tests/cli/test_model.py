"""A mind at home: a model file thinks through llama.cpp itself, in a child; one comes from a hub, or from this machine."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from driven import Machine, until
from lab.loopback.hub import Hub, serving_hub
from lab.tiny_model import SAYS, write_tiny_model

pytest.importorskip("xllamacpp", reason="the extra `home` is not installed: ./setup.sh tools")
KNOWN = "qwen2.5-1.5b"
BIG = 10**15
PIECE = 10 * 2**20
"""What huggingface_hub writes at once."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine without a model, whose models take in what a vocabulary of bytes needs."""
    settings = {"CLAUDIUS_HOME_THREADS": "1", "CLAUDIUS_HOME_CONTEXT_TOKENS": "32768"}
    return Machine(tmp_path, {"CLAUDIUS_PROVIDERS": "auto"} | settings)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return a model file on this machine."""
    return write_tiny_model(tmp_path / "tiny.gguf")


def children(machine: Machine) -> list[int]:
    """Return the processes that serve a model of this home."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"claudius.providers.home.serving" in words and os.fsencode(machine.home) in b" ".join(words):
            found.append(int(process.name))
    return found


def test_home_1_a_file_thinks_offline_and_again_after_every_kill(machine: Machine, tiny: Path) -> None:
    """§1: `get PATH` is all; the child is one, dies with the daemon however that ends, and is replaced where it died."""
    got = machine.ok("model", "get", str(tiny))
    with machine.daemon(is_stopped=False) as pid:
        first = machine.ok("chat", "--once", "Who are you?", "--json")
        (child,) = children(machine)
        alone = machine.ok("chat", "--once", "And now?")
        status = machine.ok("status", "--json").json["provider"]
        os.kill(child, signal.SIGKILL)
        healed = machine.ok("chat", "--once", "And now?")
        again = children(machine)
        os.kill(pid, signal.SIGKILL)
        until(os.getpid(), lambda: not children(machine))

    assert "it thinks from the next message on" in got.stdout
    assert (first.json["reply"], first.json["provider"], first.json["model"]) == (SAYS, "home", "tiny")
    assert (alone.stdout, healed.stdout) == (SAYS + "\n", SAYS + "\n")
    assert status["home"]["model"] == "tiny"
    assert status["home"]["state"] == "ready"
    assert len(again) == 1
    assert again != [child]
    assert machine.run("status", "--json").json["provider"]["home"]["state"] == "asleep"


def test_home_1_models_are_listed_used_and_removed(machine: Machine, tiny: Path, tmp_path: Path) -> None:
    """`use` says which of several speaks, whatever `auto` would take; the one in use is not removed."""
    other = write_tiny_model(tmp_path / "other.gguf")
    for file in (other, tiny):
        machine.ok("model", "get", str(file))
    machine.ok("model", "use", "other", env={"CLAUDIUS_PROVIDERS": ""})
    listed = {row["name"]: row for row in machine.ok("model", "list", "--json").json}
    refused = machine.run("model", "rm", "other")
    machine.ok("model", "rm", "tiny")

    assert machine.ok("config", "get", "providers", env={"CLAUDIUS_PROVIDERS": ""}).stdout == '["home"]\n'
    assert [listed[name]["used"] for name in ("other", "tiny", KNOWN)] == [True, False, False]
    assert listed[KNOWN]["tried"] is False
    assert "not tried" in machine.ok("model", "list").stdout
    assert "other is in use" in refused.stderr
    assert sorted(path.name for path in (machine.home / "models").iterdir()) == ["other.gguf"]


def test_home_1_without_a_model_the_one_that_fits_is_offered(machine: Machine, tiny: Path) -> None:
    """`list --fits` names what to take, its bytes and its memory; once something thinks, nothing."""
    before = machine.ok("model", "list", "--fits").stdout
    machine.ok("model", "get", str(tiny))

    assert " to download, needs " in before
    assert machine.ok("model", "list", "--fits").stdout == ""


def test_home_1_a_download_goes_on_after_a_kill(machine: Machine, tiny: Path) -> None:
    """What came is kept when the command is killed; the next one asks for the rest alone, and the checksum is whole."""
    content = tiny.read_bytes() + bytes(3 * PIECE)
    with serving_hub(Hub(content)) as hub:
        machine.env["HF_ENDPOINT"] = hub.url
        hub.stall_at = PIECE + 1
        with machine.terminal("model", "get", KNOWN) as getting:
            hub.stalled.wait()
            until(getting.process.pid, lambda: any(one.stat().st_size for one in _parts(machine)))
            os.kill(getting.process.pid, signal.SIGKILL)
        hub.stall_at, hub.cut_at = 0, PIECE + 1
        got = machine.ok("model", "get", KNOWN)

    first, second = [int(one.removeprefix("bytes=").removesuffix("-")) for one in hub.ranges[1:]]
    assert hub.ranges[0] == ""
    assert 0 < first <= PIECE
    assert first < second < len(content), "a cut within one command is gone on from, too"
    assert (machine.home / "models" / f"{KNOWN}.gguf").read_bytes() == content
    assert got.stdout.startswith(f"{KNOWN} is here")
    assert not _parts(machine)


FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("absent", {"status": 404}, KNOWN, "the hub has no"),
    ("busy", {"status": 503, "says": "zq-ulcer"}, KNOWN, "HTTP 503"),
    ("refused", {"status": 403, "says": "zq-ulcer"}, KNOWN, "does not show it to everybody"),
    ("another file", {"checksum": "0" * 64}, KNOWN, "by its checksum: it was deleted"),
    ("no checksum", {"checksum": "W/1"}, KNOWN, "no checksum"),
    ("too large", {"size": BIG}, KNOWN, "of memory, and this machine has"),
    ("no model", {"content": b"<html>", "size": 6}, "someone/something/a.gguf", "by its checksum"),
    ("no network", {"url": "http://127.0.0.1:9"}, KNOWN, "cannot be reached"),
]


@pytest.mark.parametrize(("name", "wrong", "which", "told"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_home_1_each_fault_of_a_download_is_one_line(
    machine: Machine, tiny: Path, name: str, wrong: dict[str, Any], which: str, told: str
) -> None:
    """A fault says what is wrong in one line, and leaves no model behind."""
    with serving_hub(Hub(tiny.read_bytes())) as hub:
        for key, value in wrong.items():
            setattr(hub, key, value)
        ran = machine.run("model", "get", which, env={"HF_ENDPOINT": hub.url})

    assert ran.code == 1, name
    assert told in ran.stderr
    assert "zq-ulcer" not in ran.shown
    assert ran.stderr.count("\n") == 1
    assert not [*(machine.home / "models").glob("*.gguf")]


def test_home_1_a_full_disk_keeps_what_came(machine: Machine, tiny: Path) -> None:
    """A disk that fills while a file comes is said; what came stays for the next try."""
    with serving_hub(Hub(tiny.read_bytes())) as hub:
        limited = ["-c", f'ulimit -f 512; trap "" XFSZ; exec claudius model get {KNOWN}']
        ran = machine.run(*limited, env={"HF_ENDPOINT": hub.url}, command="/bin/bash")

    assert "the disk is full" in ran.stderr
    assert "goes on from there" in ran.stderr
    assert [one.stat().st_size for one in _parts(machine)] == [512 * 1024]


def test_home_1_a_file_that_is_no_model_says_so(machine: Machine, tmp_path: Path) -> None:
    """Neither a file of another kind nor one that llama.cpp cannot load is passed off as a mind."""
    other, broken, large = tmp_path / "a.gguf", tmp_path / "b.gguf", tmp_path / "c.gguf"
    other.write_bytes(b"PK")
    broken.write_bytes(b"GGUF" + bytes(100))
    large.write_bytes(b"GGUF")
    os.truncate(large, 10**12)

    said = [machine.run("model", "get", str(path)).stderr for path in (other, broken, large)]

    assert "is no model" in said[0]
    assert "could not load b.gguf" in said[1]
    assert "`claudius model rm b` deletes it" in said[1]
    assert "c.gguf needs" in said[2]


def _parts(machine: Machine) -> list[Path]:
    return [*(machine.home / "models").glob(".*.part")]
