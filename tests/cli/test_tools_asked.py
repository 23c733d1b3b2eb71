"""T7, T9, T10, T12 at the terminal: the soul asks before it reaches out, a letter or a command decides, a word does not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from driven import Machine, reply, until

MODULE = """
from pathlib import Path

from claudius.tool import tool


@tool("Send a mail.", cls="send")
def mail(to: str) -> str:
    with Path("SENT").open("a") as file:
        file.write(to + "\\n")
    return "accepted by the mail server"
"""
TO, SHOWN = "bo@example.\u202egro", r'"bo@example.\u202egro"'
"""Whom it writes to, and how that is shown to who decides: as it is, not as a terminal would draw it."""
USE = f'<internal_monologue>I send it.</internal_monologue><tool_use>{{"tool": "mail", "args": {{"to": "{TO}"}}}}</tool_use>'
SENT = "It is on its way to Bo."


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[Machine, int]]:
    """Return a machine whose soul can send mail, and the process of its daemon."""
    machine = Machine(tmp_path)
    (machine.user / "post.py").write_text(MODULE.replace("SENT", str(machine.root / "sent")))
    machine.env["PYTHONPATH"] = str(machine.user)
    machine.home.mkdir()
    (machine.home / "config.toml").write_text('[tools.own]\nmail = "post:mail"\n')
    machine.scripted(USE, reply(SENT), reply("I hear you."), reply("And again."))
    with machine.daemon() as pid:
        yield machine, pid


def sent(machine: Machine) -> list[str]:
    """Return whom mail was sent to."""
    path = machine.root / "sent"
    return path.read_text().split() if path.exists() else []


def states(machine: Machine) -> list[str]:
    """Return where each call stands, newest first."""
    return [one["state"] for one in machine.ok("tools", "calls", "--json").json]


def test_a_command_decides_and_the_next_words_tell_what_came_of_it(asked: tuple[Machine, int]) -> None:
    """`--once` names what waits and ends well; allowed once, it is done once; a second decision is told that it was."""
    machine, pid = asked
    said = machine.ok("chat", "--once", "Mail Bo.", "--json").json
    (waiting,) = said["waiting"]
    (pending,) = machine.ok("tools", "pending", "--json").json
    assert (pending["id"], pending["tool"], pending["class"], pending["state"]) == (waiting, "mail", "send", "waiting")
    assert pending["args"] == {"to": TO}
    assert SHOWN in machine.ok("tools", "pending").stdout
    assert sent(machine) == []

    assert machine.ok("tools", "allow", waiting).stdout == "Allowed by you.\n"
    until(pid, lambda: states(machine) == ["done"])
    assert machine.ok("tools", "deny", waiting).stdout == "That is decided: Allowed by the owner.\n"
    later = machine.ok("chat", "--once", "Thank you.", "--json").json

    assert (sent(machine), [one["reply"] for one in later["earlier"]]) == ([TO], [SENT])
    shown = machine.ok("tools", "show", waiting, "--json").json
    told = (shown["text"], shown["allowed_by"], shown["attempts"])
    assert told == ("accepted by the mail server", "terminal:local:ada", 1)
    acts = [one["act"] for one in machine.ok("audit", "--json").json if one["act"].startswith("tool")]
    assert acts == ["tool_allow", "tool_start"]
    assert "there is no call" in machine.run("tools", "allow", "nothing/0").stderr


@pytest.mark.parametrize(("letter", "state"), [("o", "done"), ("n", "refused"), ("yes", "waiting"), ("ok", "waiting")])
def test_a_letter_decides_and_a_word_does_not(asked: tuple[Machine, int], letter: str, state: str) -> None:
    """The letter alone as the next line; anything else is talk, and the question goes on waiting, over a restart, too."""
    machine, _ = asked
    with machine.terminal("chat") as terminal:
        terminal.type("Mail Bo.")
        terminal.until("May I use mail? (send, until ")
        terminal.until(SHOWN)
        terminal.until("[o]nce, [N]o")
        terminal.type(letter)
        terminal.until({"n": "Refused by you: I leave it."}.get(letter, SENT))
        terminal.type("/quit")
        terminal.rest()

    assert states(machine) == [state]
    assert sent(machine) == [TO][: int(letter == "o")]
    if letter == "yes":
        machine.scripted(reply("So it went."))
        machine.ok("daemon", "restart")
        with machine.terminal("chat") as terminal:
            terminal.type("!allow")
            terminal.until("Allowed by you.")
            terminal.until("So it went.")
        assert (states(machine), sent(machine)) == (["done"], [TO])


def test_t35_without_a_key_it_looks_and_asks_before_it_reaches_out(machine: Machine) -> None:
    """T35: time in Tokyo, a share of a sum, a page and a date, by the voice of a newcomer: one question in all."""
    lines = (
        "What time is it in Tokyo?",
        "What is 17 % of 240?",
        "¿Cuánto es 15 por 12?",
        "What does https://example.org/a say?",
        "What day will 3 May 2027 be?",
    )
    said = [machine.ok("chat", "--once", line).stdout + machine.ok("why").stdout for line in lines]
    used = {one["tool"]: (one["state"], one["args"]) for one in machine.ok("tools", "calls", "--json").json}

    assert "(Asia/Tokyo, UTC+09:00)" in said[0]
    assert "40.8" in said[1]
    assert "180" in said[2]
    assert "May I read https://example.org/a?" in said[3]
    assert "Monday, 3 May 2027" in said[4]
    assert used["clock"] == ("done", {"zone": "Asia/Tokyo"})
    assert used["calc"][0] == "done"
    assert "Better said than faked" not in "".join(said)
    assert used["web.read"] == ("waiting", {"url": "https://example.org/a"})
