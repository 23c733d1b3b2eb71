"""The prompt of `claudius chat` on a terminal that draws: what arrives stands above the line being typed, once."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from prompt_toolkit.output.vt100 import Vt100_Output

from claudius.cli.prompt import LineEditor
from drawn import Drawn, drawn
from driven import Machine, reply

MONOLOGUE = "Somebody speaks."


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return ada's machine, with a soul that has spoken before."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted(reply("Good day."))
    machine.ok("chat", "--once", "hello", "--conversation", "elsewhere")
    return machine


def count(shown: Drawn, text: str) -> int:
    """Return how often a text is on the screen and above it."""
    return shown.text.count(text)


def test_what_arrives_by_itself_stands_above_the_line_being_typed_once(machine: Machine) -> None:
    """A reply to a person who speaks in the same conversation appears at once; the line being typed stays whole."""
    machine.scripted(reply("Said elsewhere."), reply("Said here."))
    with drawn(machine, "chat") as shown:
        shown.until_asked()
        shown.keys("half a li")
        shown.until(lambda: shown.typing == "you › half a li")
        with machine.terminal("chat") as other:
            other.until("you › ")
            other.type("hi")
            other.until("Said elsewhere.")
        shown.until_said("Said elsewhere.", typing="you › half a li")
        shown.say("ne")
        shown.until_said("Said here.")
        shown.keys("\x04")
        shown.rest()

    assert [count(shown, "Said elsewhere."), count(shown, "Said here."), count(shown, "half a line")] == [1, 1, 1]
    assert shown.lines.index("Said elsewhere.") < shown.lines.index("you › half a line")


def test_no_key_is_lost_or_echoed_while_something_is_printed(machine: Machine) -> None:
    """Keys that come while a reply is printed belong to the line: none is lost, and none is drawn beside it."""
    machine.scripted(*[reply(f"Answer {n}.") for n in range(5)])
    with drawn(machine, "chat") as shown:
        shown.until_asked()
        for n in range(5):
            shown.say(f"question {n}")
            for letter in "while it arrives":
                shown.keys(letter)
            shown.until_said(f"Answer {n}.", typing="you › while it arrives")
            shown.keys("\x15")
            shown.until_asked()
        shown.keys("\x04")
        shown.rest()

    assert [line for line in shown.lines[1:] if line] == [
        line for n in range(5) for line in (f"you › question {n}", f"Answer {n}.")
    ]


def test_a_paste_is_one_message(machine: Machine) -> None:
    """Bracketed paste: the lines of a paste are sent as one message, at Enter, and so are those made by Alt-Enter."""
    machine.scripted()
    with drawn(machine, "chat") as shown:
        shown.until_asked()
        shown.keys("\x1b[200~one\ntwo\x1b[201~")
        shown.until_shown("two")
        shown.keys("\x1b\rthree\r")
        shown.until_said("So it is.")
        shown.keys("\x04")
        shown.rest()

    entries = machine.ok("conversations", "show", "terminal:local:main:main", "--json").json["entries"]
    assert [one["content"] for one in entries if one["entry_type"] == "userMessage"] == ["one\ntwo\nthree"]
    assert [line for line in shown.lines if line.endswith(("one", "two", "three"))] == [
        "you › one",
        "      two",
        "      three",
    ]


def test_history_is_there_in_the_next_session(machine: Machine) -> None:
    """Up brings back what was said in an earlier session of the same conversation; no second copy of it is kept."""
    machine.scripted()
    with drawn(machine, "chat") as shown:
        shown.until_asked()
        shown.say("the first of all")
        shown.until_said("So it is.")
        shown.keys("\x04")
        shown.rest()
    with drawn(machine, "chat") as again:
        again.until_asked()
        again.keys("\x1b[A")
        again.until(lambda: again.typing == "you › the first of all")

    kept = [path for path in machine.files() if path.is_file() and b"the first of all" in path.read_bytes()]
    assert {path.name.partition("-")[0] for path in kept} <= {"claudius.db", "claudius.db-wal", "requests.jsonl"}, kept


def test_words_with_a_mark_are_completed(machine: Machine) -> None:
    """Tab completes a word that begins with `!` or `/`; `/help` says what can be typed, and is no message."""
    with drawn(machine, "chat") as shown:
        shown.until_asked()
        shown.keys("!who")
        shown.until_shown("!whoami")
        shown.keys("\t")
        shown.until(lambda: "you › !whoami" in shown.lines)
        shown.keys("\r")
        shown.until_shown("I do not know your name yet.")
        shown.say("/help")
        shown.until_shown("Alt-Enter breaks")
        shown.say("/nonsense")
        shown.until_shown("there is no /nonsense here")
        shown.until_asked()
        shown.say("/quit")
        shown.rest()

    assert shown.terminal.process.returncode == 0
    assert machine.run("conversations", "show", "terminal:local:main:main").code == 1


@pytest.mark.parametrize("columns", [80, 120])
def test_no_word_is_broken_at_the_edge(machine: Machine, columns: int) -> None:
    """What was typed and what is said are wrapped between words, at any width; wide characters count as two."""
    words = " ".join(f"word{number:03d}" for number in range(60)) + " 漢字かな交じり文"
    machine.scripted({"deltas": [reply(words)]})
    with drawn(machine, "chat", columns=columns) as shown:
        shown.until_asked()
        shown.keys(words)
        shown.until_shown(words)
        typed = shown.lines
        for _ in range(30):
            shown.keys("\x1b[D")
        shown.keys("!\x05")
        shown.until_shown(words[:-30] + "!" + words[-30:])
        shown.keys("\r")
        shown.until_shown(words)
        shown.until_said("交じり文")
        shown.keys("\x04")
        shown.rest()

    assert max(len(line) for line in shown.lines) > columns - 10
    assert max(len(line) for line in typed) > columns - 16
    assert count(shown, "word059") == 2


def test_thoughts_stand_dimly_before_the_words(machine: Machine) -> None:
    """`--thoughts`: the monologue comes first, marked and dim; `/thoughts off` and the default hide it."""
    machine.scripted(reply("So it is."), reply("Again."))
    with drawn(machine, "chat", "--thoughts") as shown:
        shown.until_asked()
        shown.say("hello")
        shown.until_said("So it is.")
        row = next(n for n, line in enumerate(shown.screen.display) if MONOLOGUE in line)
        assert shown.screen.buffer[row][0].italics
        shown.say("/thoughts off")
        shown.until_shown("(its private thoughts are hidden; /thoughts on shows them)")
        shown.until_asked()
        shown.say("and now?")
        shown.until_said("Again.")
        shown.keys("\x04")
        shown.rest()
    with drawn(machine, "chat") as plain:
        plain.until_asked()
        plain.keys("\x04")
        plain.rest()

    assert f"to itself) {MONOLOGUE}" in shown.text
    assert shown.lines.index(next(line for line in shown.lines if MONOLOGUE in line)) < shown.lines.index("So it is.")
    assert count(shown, MONOLOGUE) == 1
    assert MONOLOGUE not in plain.text


def test_the_thought_is_there_before_the_first_word(machine: Machine) -> None:
    """The thought is on the screen while the model still writes; a reply begun anew leaves no trace of the first one."""
    whole = list(reply("So it is."))
    machine.scripted({"deltas": whole, "reset_after": 30}, {"deltas": whole, "after": 50, "hang": True})
    with drawn(machine, "chat", "--thoughts") as shown:
        shown.until_asked()
        shown.say("hello")
        shown.until_said("So it is.")
        first = shown.text
        shown.say("and now?")
        shown.until_shown("to itself) Somebody", times=2)

    assert first.count("Some") == 1
    assert count(shown, "So it is.") == 1


def test_a_homes_first_session_shows_thoughts_and_says_how_to_hide_them(tmp_path: Path) -> None:
    """In a new home thoughts are on, and a line says how to switch them off; with --no-thoughts they are off."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted()
    for args in ((), ("--no-thoughts",)):
        with drawn(machine, "chat", *args) as shown:
            shown.until_asked()
        assert ("/thoughts off hides them" in shown.text) is not args


def test_thoughts_are_for_the_owners_own_conversation_alone(machine: Machine) -> None:
    """No one else is shown a thought: not `--as` a person, not the owner while another is answered."""
    machine.scripted(reply("To tom."))
    refused = machine.run("chat", "--thoughts", "--as", "tom")
    with drawn(machine, "chat", "--thoughts") as shown, drawn(machine, "chat", "--as", "tom") as toms:
        shown.until_asked()
        toms.until_asked()
        toms.say("hello")
        toms.until_shown("To tom.")
        toms.keys("\x04")
        toms.rest()
        shown.say("!whoami")
        shown.until_shown("I do not know your name yet.")

    assert (refused.code, len(refused.stderr.splitlines())) == (2, 1)
    assert MONOLOGUE not in shown.text + toms.text


def test_thoughts_of_one_line_go_to_stderr(machine: Machine) -> None:
    """`--once --thoughts`: the reply stands alone on stdout, the thought on stderr."""
    machine.scripted()

    ran = machine.ok("chat", "--once", "hello", "--thoughts")

    assert ran.stdout == "So it is.\n"
    assert ran.stderr == "(thought, to itself) It was asked.\n"


def test_several_lines_can_be_sent_before_the_first_is_answered(machine: Machine) -> None:
    """A line may be typed while the soul still thinks: each is heard once, and every reply is shown once."""
    machine.scripted({"deltas": [reply("One.")], "delay_s": 1}, reply("Two."), reply("Three."))
    with drawn(machine, "chat") as shown:
        shown.until_asked()
        shown.say("first")
        shown.until_shown("… thinking")
        shown.say("second")
        shown.until_said("Two.")
        shown.keys("\x04")
        shown.rest()

    entries = machine.ok("conversations", "show", "terminal:local:main:main", "--json").json["entries"]
    assert [one["content"] for one in entries if one["entry_type"] == "userMessage"] == ["first", "second"]
    assert [count(shown, "One."), count(shown, "Two."), count(shown, "… thinking")] == [1, 1, 0]


async def test_a_key_that_comes_while_something_is_printed_is_taken_as_it_was_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-D typed in the very moment of printing ends the input: the terminal does not take it for itself."""
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    flush = Vt100_Output.flush

    def typed_meanwhile(output: Vt100_Output) -> None:
        """Print, and type while the terminal is in the mode of printing."""
        is_it = any("Two." in piece for piece in output._buffer)
        flush(output)
        if is_it:
            os.write(master, b"\x04")

    monkeypatch.setattr(Vt100_Output, "flush", typed_meanwhile)
    with os.fdopen(os.dup(slave), "r") as keyboard, os.fdopen(os.dup(slave), "w") as shown:
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys, "stdout", shown)
        editor = LineEditor({}, [])
        line = asyncio.create_task(editor.line())
        await asyncio.sleep(0)

        await editor.speech("t1", "Two.")
        ended = await asyncio.wait_for(line, 20)
        editor.close()
    after = termios.tcgetattr(slave)
    os.close(slave)
    os.close(master)

    assert ended is None
    assert after == before


def test_an_interrupt_ends_it_at_once_and_gives_the_terminal_back(machine: Machine) -> None:
    """Ctrl-C, typed or sent: the soul shuts down in order, and the shell has its echo back."""
    for send in (lambda shown: shown.keys("\x03"), lambda shown: os.kill(shown.terminal.process.pid, signal.SIGINT)):
        with drawn(machine, "chat") as shown:
            before = termios.tcgetattr(shown.terminal.master)
            shown.until_asked()
            shown.keys("half")
            shown.until(lambda shown=shown: shown.typing.endswith("half"))
            send(shown)
            shown.rest()
            after = termios.tcgetattr(shown.terminal.master)

        assert shown.terminal.process.returncode == 130
        assert after == before
    assert machine.log.read_text().count('"event": "asleep"') == 3


def test_the_library_is_loaded_on_a_terminal_only(machine: Machine) -> None:
    """Pipes, `--once` and a terminal that only prints never load prompt_toolkit."""
    script = "import sys; from claudius.cli import main\ntry: main()\nfinally: print('prompt_toolkit' in sys.modules)"
    for args, typed in ((("--once", "hello"), ""), ((), "hello\n")):
        ran = subprocess.run(
            [sys.executable, "-c", script, "chat", *args],
            env=machine.environment(),
            input=typed,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.splitlines()[-1] == "False"
