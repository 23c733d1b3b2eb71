"""What a client says and hears: stdin, who is never answered, and each thing once if the other end repeats itself or goes."""

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from case_rows import Row, rows
from claudius.home import Home
from claudius.runtime.life import HomeLock
from drawn import drawn
from driven import CLAUDIUS, Machine, reply

HERE = "terminal:local:main:main"
ME = "terminal:local:ada"


class Peer:
    """One connection of a client to a soul that a test plays."""

    def __init__(self, connection: socket.socket) -> None:
        """Take the connection, and attach the client."""
        self._file = connection.makefile("rwb")
        self.hello = self.heard()
        self.tell(event="attached", conversation=HERE, person=ME)

    def heard(self) -> dict[str, Any]:
        """Return the next frame; an empty one once the client is gone."""
        found: dict[str, Any] = json.loads(self._file.readline() or b"{}")
        return found

    def tell(self, **frame: Any) -> None:
        """Send a frame."""
        self._file.write(json.dumps(frame).encode() + b"\n")
        self._file.flush()

    def speak(self, key: str, body: str, *answers: str) -> str:
        """Send an utterance, and return the key that the client says it has shown."""
        self.tell(
            event="speech", key=key, turn=key, body=body, kind="reply", apology=None, verb="said", answers=answers
        )
        shown = self.heard()
        assert shown["op"] == "shown"
        return str(shown["key"])


@contextmanager
def played(machine: Machine, *parts: Callable[[Peer], None]) -> Iterator[list[BaseException]]:
    """Play the soul of a home: one part for each connection, which ends with it. Yields what went wrong."""
    home, wrong = Home(machine.home), list[BaseException]()
    home.create()

    def play(listening: socket.socket) -> None:
        try:
            for part in parts:
                connection, _ = listening.accept()
                with connection:
                    part(Peer(connection))
        except (AssertionError, OSError, ValueError) as error:
            wrong.append(error)

    with HomeLock(home), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home.socket))
        listening.listen()
        playing = threading.Thread(target=play, args=(listening,), daemon=True)
        playing.start()
        yield wrong
        playing.join(60)
        assert not playing.is_alive()


def test_an_utterance_that_is_offered_again_is_confirmed_again_and_shown_once(machine: Machine) -> None:
    """The same key is one utterance, over several connections, too: the delivery may repeat itself, the screen never."""

    def twice(peer: Peer) -> None:
        assert [peer.speak("k1", "A reminder."), peer.speak("k1", "A reminder.")] == ["k1", "k1"]

    shown_all = threading.Event()

    def and_again(peer: Peer) -> None:
        assert peer.speak("k1", "A reminder.") == "k1"
        assert peer.speak("k2", "Another one.") == "k2"
        shown_all.set()
        peer.heard()

    with played(machine, twice, and_again) as wrong, drawn(machine, "chat") as shown:
        shown.until_said("Another one.")
        assert shown_all.wait(60)
        text = shown.text

    assert not wrong
    assert [text.count("A reminder."), text.count("Another one.")] == [1, 1]


def test_a_line_whose_answer_was_lost_is_sent_again_under_its_own_id(machine: Machine) -> None:
    """A connection that ends before the answer: the lines that wait are sent again, in order, each with its first id."""
    said, shown_both = list[list[str]](), threading.Event()

    def lost(peer: Peer) -> None:
        said.append([f"{frame['id']} {frame['text']}" for frame in (peer.heard(), peer.heard())])

    def found(peer: Peer) -> None:
        frames = peer.heard(), peer.heard()
        said.append([f"{frame['id']} {frame['text']}" for frame in frames])
        peer.speak("k1", "To both.", *[f"terminal:{frame['id']}" for frame in frames])
        shown_both.set()
        peer.heard()

    with played(machine, lost, found) as wrong, drawn(machine, "chat") as shown:
        shown.until_asked()
        shown.say("one")
        shown.say("two")
        shown.until_said("To both.")
        assert shown_both.wait(60)  # the client confirms what stands on the screen: let it
        text = shown.text

    assert not wrong
    assert said[0] == said[1]
    assert [line.partition(" ")[2] for line in said[0]] == ["one", "two"]
    assert [text.count("To both."), text.count("you › one"), text.count("you › two")] == [1, 1, 1]


def test_a_reply_that_is_begun_anew_stands_on_the_screen_once(machine: Machine) -> None:
    """What grew and was then replaced leaves no trace; an utterance of another turn does not end what is growing."""

    def grows(peer: Peer) -> None:
        key = f"terminal:{peer.heard()['id']}"
        peer.tell(event="working", on=True)
        peer.tell(event="thinking", turn="t1", step="internal_monologue", verb="mused", text="Wrong thought")
        peer.tell(event="void", turn="t1", step="", verb="", text="")
        peer.tell(event="thinking", turn="t1", step="internal_monologue", verb="mused", text="Right thought.")
        peer.tell(event="thinking", turn="t1", step="user_model_check", verb="", text="true")
        peer.tell(event="delta", key="k1", turn="t1", text="Begun wrongly")
        assert peer.speak("k0", "By the way.") == "k0"
        peer.tell(event="delta", key="k1", turn="t1", text=" and going on")
        peer.tell(
            event="speech",
            key="k1",
            turn="t1",
            body="Said well.",
            kind="reply",
            apology=None,
            verb="said",
            answers=[key],
        )
        peer.heard()
        peer.heard()

    with played(machine, grows) as wrong, drawn(machine, "chat", "--thoughts") as shown:
        shown.until_asked()
        shown.say("one")
        shown.until_said("Said well.")
        text = shown.text

    assert not wrong
    assert "wrong" not in text.lower()
    assert "true" not in text
    assert [text.count("By the way."), text.count("Right thought."), text.count("Said well.")] == [1, 1, 1]
    assert text.index("By the way.") < text.index("Right thought.") < text.index("Said well.")


NOTES = "The kiln cracked on Tuesday.\nOrder 12 bricks – zq-notes.\n"


def said(machine: Machine, command: str, stdin: bytes) -> subprocess.CompletedProcess[str]:
    """Run a row's command with this file as its stdin."""
    (machine.user / "notes.txt").write_bytes(stdin)
    typed = command.removeprefix("$ claudius").replace("notes.txt", str(machine.user / "notes.txt"))
    return subprocess.run(
        ["sh", "-c", f"{CLAUDIUS}{typed}"],
        env=machine.environment(),
        cwd=machine.user,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("row", rows("newcomer", "any", only="stdin"))
def test_a_text_on_stdin_stands_in_the_prompt(row: Row, tmp_path: Path) -> None:
    """Both ways it is in the prompt once, whole; the words of the command stand before it."""
    row.knows_only("must")
    for number, command in enumerate(row.input["says"]):
        machine = Machine(tmp_path / str(number))
        machine.scripted(reply("Bricks."))
        ran = said(machine, command, NOTES.encode())
        tail = machine.ok("why", "--json").json["prompt"]["tail"]

        assert (ran.returncode, ran.stdout.strip()) == (0, "Bricks."), ran.stderr
        assert tail.count("zq-notes") == 1
        assert "The kiln cracked on Tuesday." in tail
        assert ("summarise this" in tail) == ("summarise" in command)


def test_what_is_no_text_is_refused(machine: Machine) -> None:
    """Bytes that are no text, and nothing at all behind `-`, are named in one line; nothing is said."""
    told = [
        said(machine, f"$ claudius chat --once {what} < notes.txt", stdin)
        for what, stdin in (("hi", b"\xff\xfe\x00"), ("-", b" \n"))
    ]

    assert [one.returncode for one in told] == [2, 2]
    assert ["no text" in told[0].stderr, "needs a text" in told[1].stderr] == [True, True]


def test_a_loop_over_a_file_keeps_its_lines(machine: Machine) -> None:
    """A file that something read from already is a loop's; one that is taken whole is told on stderr, not with --json."""
    machine.scripted(reply("One."))
    loop = f'while read x; do {CLAUDIUS} chat --once "$x"; done < notes.txt'
    (machine.user / "notes.txt").write_text(NOTES)
    ran = subprocess.run(
        ["sh", "-c", loop], env=machine.environment(), cwd=machine.user, capture_output=True, text=True, check=False
    )
    told = [
        said(machine, f"$ claudius chat --once hi {how} < notes.txt", NOTES.encode()).stderr for how in ("", "--json")
    ]

    assert ran.stdout.split() == ["One.", "One."], ran.stderr
    assert ["(attached 0.1 kB from stdin)" in one for one in told] == [True, False]


LINE = "nothing is answered here"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_muted_person_is_not_left_waiting_at_the_terminal(machine: Machine, *, is_terminal: bool) -> None:
    """They are told at once that nothing is answered; `why` gives that cause."""
    machine.ok("config", "set", "access.muted", "terminal:local:as-bo")
    if is_terminal:
        with machine.terminal("chat", "--as", "bo") as terminal:
            terminal.until("you › ")
            terminal.type("Are you there?")
            terminal.until(LINE)
            terminal.type("/quit")
            told, why = terminal.rest(), "they are muted"
    else:
        told = machine.ok("chat", "--as", "bo", "--once", "Are you there?").stdout
        why = machine.ok("why").stdout

    assert LINE in told
    assert "is kept, and" not in told
    assert "they are muted" in why
