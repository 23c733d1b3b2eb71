"""S32: line breaks, escapes and JSON in names and texts: one escaped log line each, nothing raw on a terminal."""

import json
import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cli.output import safe
from claudius.runtime.logs import JsonLines
from driven import Machine, reply

OSC, CLEAR, UP, C1, RED = "\x1b]0;PWNED\x07", "\x1b[2J", "\x1b[1A", "\u009b2J", "\x1b[38;5;197m"
FORGED = '\r\n{"at":"2026-01-01T00:00:00.000Z","level":"CRITICAL","logger":"claudius","event":"FORGED"}\r\n'
HOSTILE = f"start{OSC}{CLEAR}{UP}{C1}{RED}\x08\x08{FORGED}\u202egnihtemos\u2066\u2028end"
NAME = '{"level":"CRITICAL","event":"FORGED"}'
"""A display name, which may hold printable characters only."""

RAW = re.compile(r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]|\r(?!\r*\n)|\x1b\[38;5;197m")
"""What a terminal acts on: any sequence except a plain colour (and the attacker's colour), any control character."""
REORDERS = re.compile("[\u202a-\u202e\u2066-\u2069\u2028\u2029]")
"""What makes a line look like a different one: bidirectional overrides and Unicode's own line breaks."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return a machine whose soul has heard, said, thought and written hostile text in every field."""
    machine = Machine(
        tmp_path_factory.mktemp("hostile"), env={"CLAUDIUS_LOG_LEVEL": "DEBUG", "CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
    )
    hostile = reply(
        f"Heard: {HOSTILE}",
        internal_monologue=f"They send {HOSTILE}",
        user_model_check="true",
        user_model_update=f"# Ada\n\n## Persona\n- Sends {HOSTILE}",
        model_change_note=f"Noted {HOSTILE}",
        soul_state_check="true",
        soul_state_update=f"currentTopic: {OSC}{CLEAR}{C1}{RED} topic\u202e",
    )
    machine.scripted(hostile)
    machine.ok("chat", "--once", HOSTILE)
    machine.ok("chat", "--once", HOSTILE, "--as", NAME, "--conversation", NAME)
    return machine


@pytest.fixture(scope="module")
def screens(machine: Machine) -> dict[tuple[str, ...], str]:
    """Return what a terminal is sent by every command that prints what was heard, said, thought or kept."""
    (conversation, *_) = machine.ok("conversations", "list", "--json").json
    (turn, *_) = machine.ok("conversations", "show", conversation["conversation"], "--json").json["entries"]
    people = machine.ok("users", "list", "--json").json
    asked: list[tuple[str, ...]] = [
        ("conversations", "list"),
        ("conversations", "show", conversation["conversation"]),
        ("why", turn["turn"]),
        ("users", "list"),
        *(("users", verb, people[0]["person"]) for verb in ("show", "log")),
        ("users", "log", people[0]["person"], "--blame"),
        ("state", "show", "--all"),
        ("usage", "--by", "person"),
        ("usage", "--by", "conversation"),
        ("status",),
        ("doctor",),
    ]
    return {args: machine.seen(*args) for text in asked for args in (text, (*text, "--json"))}


def test_s32_nothing_raw_reaches_the_terminal(screens: dict[tuple[str, ...], str]) -> None:
    """At a terminal no reading command prints an escape sequence, a control character or a lone carriage return."""
    assert {args: found[0] for args, shown in screens.items() if (found := RAW.search(shown))} == {}


def test_s32_nothing_on_the_terminal_reorders_what_is_read(screens: dict[tuple[str, ...], str]) -> None:
    """At a terminal no reading command prints a bidirectional override or a hidden line break."""
    assert {args: found[0] for args, shown in screens.items() if (found := REORDERS.search(shown))} == {}


def test_s32_a_reply_is_shown_without_what_a_terminal_acts_on(tmp_path: Path) -> None:
    """In conversation, streamed or whole, a reply's words come through and its escape sequences do not."""
    machine = Machine(tmp_path)
    whole = reply(f"Heard {OSC}{CLEAR}{C1}{RED}\x08 these words\u202e.")
    machine.scripted({"deltas": [whole[at : at + 2] for at in range(0, len(whole), 2)]}, whole)

    with machine.terminal("chat") as terminal:
        terminal.until("you › ")
        terminal.type("Hello.")
        terminal.until("these words")
        terminal.until("you › ")

        assert not re.search(r"\x1b\]|\x1b\[2J|\x1b\[1A|\x1b\[38;5;197m|\x07|\x08|\u009b|\u202e", terminal.shown)
    for shown in (machine.seen("chat", "--once", "Hello."), machine.seen("chat", "--once", "Hello.", "--json")):
        assert "these words" in shown
        assert not RAW.search(shown)


def test_s32_what_was_said_before_is_shown_without_what_a_terminal_acts_on(machine: Machine) -> None:
    """The latest exchanges, which a conversation begins with, are also text of others."""
    with machine.terminal("chat") as terminal:
        terminal.until("end with Ctrl-D")

        assert "PWNED" in terminal.shown
        assert not RAW.search(terminal.shown)
        assert not REORDERS.search(terminal.shown)


def test_s32_an_invalid_name_is_refused(tmp_path: Path) -> None:
    """An unprintable or overlong name is a usage error: one clean line, and nothing is kept."""
    machine = Machine(tmp_path)

    for name in ("a\r\nb", "a\x1b[2Jb", "a\u202eb", "a\u2028b", "a\u009bb", " a", "x" * 1000):
        for option in ("--as", "--conversation"):
            ran = machine.run("chat", "--once", "Hello.", option, name)

            assert (ran.code, len(ran.stderr.splitlines())) == (2, 1), (option, name)
            assert not RAW.search(ran.shown)
    assert machine.ok("users", "list", "--json").json == []


def test_s32_each_event_is_one_line_of_json(machine: Machine) -> None:
    """After all this, every line of the log is one JSON object in plain ASCII, and none of them is forged."""
    content = machine.log.read_bytes()

    assert content.endswith(b"\n")
    assert content.isascii()
    for line in content.decode().splitlines():
        event = json.loads(line)
        assert {"at", "level", "logger", "event"} <= set(event)
        assert event["event"] != "FORGED"


def test_s32_no_words_and_no_names_stand_in_the_log(tmp_path: Path) -> None:
    """Above DEBUG the log holds ids and events, never what was said or under which name."""
    machine = Machine(tmp_path)

    machine.ok("chat", "--once", "My name is Bartholomew and I like Heliotropes.", "--as", "zacharias-name")

    log = machine.log.read_text()
    assert "awake" in log
    for word in ("Bartholomew", "Heliotrope"):
        assert word not in log


@given(message=st.text(), name=st.text(), number=st.integers() | st.floats(allow_nan=False))
def test_s32_any_text_makes_one_line(message: str, name: str, number: float) -> None:
    """Property: whatever an event holds, it is one line of ASCII that reads back as the same event."""
    record = logging.makeLogRecord(
        {"name": "claudius.test", "msg": "%s", "args": (message,), "who": name, "number": number}
    )

    line = JsonLines(()).format(record)

    assert line.isascii()
    assert not re.search(r"[\x00-\x1f\x7f]", line)
    event = json.loads(line)
    assert event["event"] == message
    assert event["who"] == name


@given(st.text())
def test_s32_printed_text_holds_nothing_raw(text: str) -> None:
    """Property: a terminal acts on nothing in others' text that a command prints."""
    assert not RAW.search(safe(text))
