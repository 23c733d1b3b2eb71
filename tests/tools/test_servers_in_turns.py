"""Servers of tools behind a running daemon: in force at once, waited for by no one, told once, gone with it."""

import json
import os
import signal
import sys
from pathlib import Path

from driven import Machine, in_force, reply, until
from lab.mcp_server import TOOLS

LAB = Path(__file__).parents[1] / "lab" / "mcp_server.py"
CANARY = "canary-of-the-notes"


def _use(tool: str, **args: str) -> str:
    return f"<tool_use>{json.dumps({'tool': tool, 'args': args})}</tool_use>"


def _add(machine: Machine, name: str, manner: str, *options: str) -> None:
    allowed = [f"--allow={tool['name']}=look" for tool in TOOLS]
    command = [sys.executable, "-I", str(LAB), manner, str(machine.root / name)]
    machine.ok("tools", "add", name, *allowed, *options, "--", *command)


def _children(pid: int) -> list[str]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{one}/cmdline").read_text() for one in found]


def test_a_server_is_in_force_at_the_next_turn_and_shows_no_secret(machine: Machine) -> None:
    """Added beside a running daemon, used at once; its own variables are masked before anybody sees them."""
    machine.home.mkdir(mode=0o700, parents=True)
    (machine.home / ".env").write_text(f"NOTES_TOKEN={CANARY}\n")
    (machine.home / ".env").chmod(0o600)
    machine.scripted(_use("notes.peek"), reply("Seen."))
    with machine.daemon() as pid:
        _add(machine, "notes", "good", "--env", "NOTES_TOKEN")
        in_force()
        seen = machine.ok("chat", "--once", "look", "--json").json
        hands = [one for one in _children(pid) if "mcp_worker" in one]

    call = machine.ok("tools", "show", f"{seen['turn']}/0", "--json").json
    asked = [json.loads(line) for line in machine.requests.read_text().splitlines()]
    assert (seen["reply"], len(hands)) == ("Seen.", 1)
    assert '"NOTES_TOKEN": "***"' in json.dumps(call).replace("\\", "")
    assert CANARY not in json.dumps([call, asked])
    kept = [path for path in machine.home.rglob("*") if path.is_file() and path.name != ".env"]
    assert not [path for path in kept if CANARY.encode() in path.read_bytes()]


def test_without_a_daemon_the_command_that_allows_a_call_sees_it_through(machine: Machine) -> None:
    """Its process ends when the call has: nothing is cut off in the middle, and the next command tells what came of it."""
    _add(machine, "lab", "good", "--allow=send=send")
    machine.scripted(_use("lab.send", text="hi"))
    (waiting,) = machine.ok("chat", "--once", "Send it.", "--json").json["waiting"]

    machine.ok("tools", "allow", waiting)

    assert machine.ok("tools", "show", waiting, "--json").json["state"] == "done"
    assert (machine.root / "lab").read_text().count("send ") == 1
    machine.scripted(reply("Sent."))  # each process reads them anew
    later = machine.ok("chat", "--once", "Thank you.", "--json").json
    assert [one["reply"] for one in later["earlier"]] == ["Sent."]


def test_neither_start_nor_a_turn_without_tools_waits_for_a_server(machine: Machine) -> None:
    """Three servers, one of which never answers: no process of theirs is there before a tool is used."""
    for name in ("one", "two", "mute"):
        _add(machine, name, "good")
    config = machine.home / "config.toml"
    text = config.read_text().replace(f'"good","{machine.root / "mute"}"', f'"silent","{machine.root / "mute"}"')
    config.write_text(text)
    for name in ("one", "two", "mute"):
        (machine.root / name).unlink()
    machine.scripted(reply("Hello."), _use("one.echo", text="hi"), reply("Done."))
    with machine.daemon() as pid:
        machine.ok("chat", "--once", "hello")
        assert not [one for one in _children(pid) if "mcp_worker" in one]
        used = machine.ok("chat", "--once", "use it", "--json").json

    assert used["reply"] == "Done."
    assert [name for name in ("one", "two", "mute") if (machine.root / name).exists()] == ["one"]


def test_a_changed_definition_is_off_and_the_daemon_takes_its_servers_along(machine: Machine) -> None:
    """The call is not made, the others go on, `tools list` says why; `kill -9` of the daemon leaves no process."""
    _add(machine, "lab", "changes")
    machine.scripted(_use("lab.echo", text="hi"), reply("It is off."), _use("lab.peek"), reply("This one is not."))
    with machine.daemon(is_stopped=False) as pid:
        machine.ok("chat", "--once", "use it")
        other = machine.ok("chat", "--once", "and the other", "--json").json
        listed = {one["tool"]: one["off"] for one in machine.ok("tools", "list", "--json").json}
        health = machine.ok("status", "--json").json
        [worker] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        servers = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        until(pid, lambda: not any(Path(f"/proc/{one}").exists() for one in (worker, *servers)))

    states = [(one["tool"], one["state"]) for one in machine.ok("tools", "calls", "--json").json]
    assert states == [("lab.peek", "done"), ("lab.echo", "failed")]
    assert other["reply"] == "This one is not."
    assert listed["lab.echo"] == "its definition is no longer the one that was agreed to"
    assert listed["lab.send"] == "its definition is gone"
    assert not listed["lab.peek"]
    assert "echo changed, new new, send vanished" in json.dumps(health)
    assert len({json.loads(line)["system"] for line in machine.requests.read_text().splitlines()}) == 1
    assert "echo " not in (machine.root / "lab").read_text()
