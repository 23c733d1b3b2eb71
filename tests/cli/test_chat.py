"""`claudius chat`: one line or a conversation, alone or through a process that is already awake."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import termios
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from claudius.home import Home
from claudius.runtime.life import HomeLock
from driven import CLAUDIUS, Machine, in_force, reply

MAIN = "terminal:local:main:main"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return ada's machine, with a soul that repeats what it is told."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted(reply("first"), reply("second"), reply("third"))
    return machine


def requests(machine: Machine) -> list[dict[str, Any]]:
    """Return the requests that the model received."""
    return [json.loads(line) for line in machine.requests.read_text().splitlines()]


def test_once_prints_the_reply_and_nothing_else(machine: Machine) -> None:
    """Without --json the reply stands alone on stdout."""
    ran = machine.ok("chat", "--once", "hello")

    assert (ran.stdout, ran.stderr) == ("first\n", "")


def test_once_as_json_has_the_shape_of_the_interface(machine: Machine) -> None:
    """The output is one document with every key that scripts rely on."""
    document = machine.ok("chat", "--once", "hello", "--json").json

    assert set(document) >= {
        "turn", "conversation", "person", "reply", "verb", "process", "provider", "model", "usage", "ms",
    }  # fmt: skip
    assert set(document["usage"]) >= {
        "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_usd",
    }  # fmt: skip
    assert (document["reply"], document["conversation"], document["person"], document["provider"]) == (
        "first",
        MAIN,
        "terminal:local:ada",
        "scripted",
    )


def test_receipts_follow_the_reply_after_a_blank_line(machine: Machine) -> None:
    """What was done is printed under the words, and stands in the document beside them, never in them."""
    at = (datetime.now(UTC) + timedelta(days=30)).replace(microsecond=0, tzinfo=None).isoformat()
    act = json.dumps({"do": "remind", "at": at, "text": "the dentist", "zone": "UTC"})
    machine.scripted(reply("I will.", acts=act))  # each process begins it anew, and one plan for one minute is one

    plain = machine.ok("chat", "--once", "hello").stdout.splitlines()
    document = machine.ok("chat", "--once", "hello", "--json").json

    assert plain[:2] == ["I will.", ""]
    assert [line.startswith("⏰") and line.endswith(" · the dentist · p1") for line in plain[2:]] == [True]
    assert document["reply"] == "I will."
    assert document["receipts"] == plain[2:]


def test_conversations_and_persons_are_named_by_options(machine: Machine) -> None:
    """--conversation and --as choose where and who. Speaking as another gives no owner's rights."""
    document = machine.ok("chat", "--once", "hello", "--conversation", "bridge", "--as", "Ben", "--json").json

    assert document["conversation"] == "terminal:local:main:bridge"
    assert document["person"] == "terminal:local:as-Ben"


@pytest.mark.slow
def test_s15_what_one_person_said_in_a_conversation_is_not_shown_to_the_next(machine: Machine) -> None:
    """S15, two persons at one terminal: what one said alone is in no prompt for the other, there or elsewhere."""
    learned = reply(
        "first",
        user_model_check="true",
        user_model_update="## Persona\n- CANARY",
        model_change_note="CANARY",
        soul_state_check="true",
        soul_state_update="currentTopic: CANARY",
    )
    machine.env["CLAUDIUS_SOUL_STATE_INTERVAL"] = "1"
    machine.scripted(learned)
    machine.ok("chat", "--once", "CANARY", "--as", "ana")
    machine.scripted()
    machine.ok("chat", "--once", "hello", "--as", "ben")
    machine.ok("chat", "--once", "hello", "--as", "ben", "--conversation", "other")
    machine.ok("chat", "--once", "hello")

    asked = [json.dumps(request) for request in requests(machine)]
    assert ["CANARY" in one for one in asked] == [True, False, False, False]
    assert "CANARY" in machine.ok("users", "show", "terminal:local:as-ana").stdout


def test_s15_a_reply_is_heard_by_the_one_it_answers_alone(machine: Machine) -> None:
    """S15: whoever else is attached to the conversation, now or later, never receives another person's reply."""
    machine.scripted({"deltas": [reply("CANARY")], "delay_s": 6})
    late = machine.run("chat", "--once", "private", "--timeout", "4")
    machine.scripted(reply("hello tom"))
    toms = machine.ok("chat", "--once", "hi", "--as", "tom", "--json")
    mine = machine.ok("chat", "--once", "and now?", "--json").json
    with machine.terminal("chat", "--as", "tom") as terminal:
        terminal.until("you › ")
        machine.scripted(reply("CANARY"))
        machine.ok("chat", "--once", "private again")
        terminal.type("\x04")
        shown = terminal.rest()

    assert late.code == 75
    assert "CANARY" not in toms.stdout
    assert "CANARY" in json.dumps(mine.get("earlier", []))
    assert "CANARY" not in shown


def _hang_up_on_everyone(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            listening.accept()[0].close()


def test_a_process_that_dies_while_it_is_joined_is_looked_for_again(machine: Machine) -> None:
    """A socket that hangs up at once is neither a usage error nor a traceback: chat retries until its time is over."""
    machine.home.mkdir(mode=0o700)
    (machine.home / "run").mkdir(mode=0o700)
    with HomeLock(Home(machine.home)), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(machine.home / "run" / "claudius.sock"))
        listening.listen(50)
        listening.setblocking(True)
        hangs_up = threading.Thread(target=_hang_up_on_everyone, args=(listening,), daemon=True)
        hangs_up.start()
        ran = machine.run("chat", "--once", "hello", "--timeout", "2")
        listening.shutdown(socket.SHUT_RDWR)
        hangs_up.join()

    assert ran.code == 75
    assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr


def test_a_start_with_a_broken_soul_uses_the_last_good_one(machine: Machine) -> None:
    """R20: a process that starts with a broken file uses the last good one of an earlier process, and says so."""
    machine.scripted()
    machine.ok("chat", "--once", "hello")
    soul = machine.home / "soul" / "soul.md"
    soul.write_text("You are Beata, the first.")
    machine.ok("chat", "--once", "hello")
    soul.write_bytes(b"\xff\xfe")
    ran = machine.ok("chat", "--once", "hello")

    assert requests(machine)[-1]["system"].startswith("You are Beata, the first.")
    assert "last good version stays in use" in ran.stderr


def test_why_and_replay_work_for_an_apology(machine: Machine) -> None:
    """`why` and `replay` know every turn, including one that no model answered."""
    machine.scripted({"error": "AuthFailed"})
    turn = machine.run("chat", "--once", "hello", "--json").json["turn"]

    assert machine.ok("why", turn, "--json").json["prompt"]["tail"].startswith("## This Turn")
    assert machine.ok("replay", turn, "--json").json["identical"]


def test_a_home_that_is_a_file_is_one_line(machine: Machine) -> None:
    """A path that cannot be a home is reported in one line, with exit 78."""
    (machine.user / "plain").write_text("x")
    for args in (("status", "--json"), ("chat", "--once", "x")):
        ran = machine.run(*args, env={"CLAUDIUS_HOME": str(machine.user / "plain")})
        assert ran.code == 78, ran.shown
        assert len(ran.stderr.strip().splitlines()) == 1


def test_the_owner_alone_at_his_terminal_sees_everything(machine: Machine) -> None:
    """The home's owner, alone in a conversation, is shown what others taught the soul."""
    machine.env["CLAUDIUS_SOUL_STATE_INTERVAL"] = "1"
    moved = reply("second", soul_state_check="true", soul_state_update="currentTopic: CANARY")
    machine.scripted(reply("first"))
    machine.ok("chat", "--once", "hi", "--as", "ana", "--conversation", "hers")
    machine.scripted(moved)
    machine.ok("chat", "--once", "so", "--as", "ana", "--conversation", "hers")
    machine.scripted()
    machine.ok("chat", "--once", "hello")

    assert "CANARY" in json.dumps(requests(machine)[-1])


def test_a_model_that_is_refused_ends_in_an_apology_and_exit_75(machine: Machine) -> None:
    """The apology is printed as the reply, the JSON holds its kind, and the exit code means: try again."""
    machine.scripted({"error": "AuthFailed"})

    plain = machine.run("chat", "--once", "hello")
    document = machine.run("chat", "--once", "hello", "--json")

    assert plain.code == document.code == 75
    assert plain.stdout.strip()
    assert document.json["apology"] == "provider_down"


@pytest.mark.slow
def test_a_reply_that_takes_too_long_is_shown_next_time(machine: Machine) -> None:
    """--timeout: the message is kept, and its reply is shown to the one who attaches next."""
    machine.scripted({"deltas": [reply("late")], "hang": True})
    ran = machine.run("chat", "--once", "hello", "--timeout", "4")
    machine.scripted(reply("late"), reply("now"))

    again = machine.ok("chat", "--once", "again", "--json").json

    assert ran.code == 75
    assert ran.stdout == ""
    assert len(ran.stderr.splitlines()) == 1
    assert [one["reply"] for one in again["earlier"]] == ["late"]
    assert again["reply"] == "now"


@pytest.mark.slow
def test_many_at_once_are_all_answered(machine: Machine) -> None:
    """Twenty commands race for one home: one process at a time takes the turns, and everybody gets a reply."""
    machine.scripted()
    running = [
        subprocess.Popen(
            [
                str(CLAUDIUS),
                "chat",
                "--once",
                f"line {number}",
                "--json",
                "--conversation",
                f"c{number % 4}",
                "--timeout",
                "50",
            ],
            env=machine.environment(),
            cwd=machine.user,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(20)
    ]
    ended = [process.communicate(timeout=60) for process in running]

    assert [process.returncode for process in running] == [0] * 20, ended
    turns = [json.loads(out)["turn"] for out, _ in ended]
    assert len(set(turns)) == 20
    status = machine.run("status", "--json").json
    assert (status["turns"]["total"], status["inbox"]["pending"], status["outbox"]["pending"]) == (20, 0, 0)


def test_a_conversation_before_a_person(machine: Machine) -> None:
    """At a terminal, words are shown as they arrive, and another command joins the same process meanwhile."""
    machine.scripted({"deltas": list(reply("Good day to you, Ada."))}, reply("to the other"), reply("Until then."))
    with machine.terminal("chat") as terminal:
        terminal.until("you › ")
        terminal.type("hello")
        terminal.until("Good day to you, Ada.")
        terminal.until("you › ")
        joined = machine.ok("chat", "--once", "me too", "--conversation", "other", "--json").json
        status = machine.ok("status", "--json").json
        terminal.type("so long")
        terminal.until("Until then.")
        terminal.until("you › ")
        terminal.type("\x04")
        shown = terminal.rest()

    assert joined["reply"] == "to the other"
    assert status["running"]
    assert status["adapters"][0]["name"] == "terminal"
    assert "Somebody speaks" not in shown
    assert not machine.run("status", "--json").json["running"]


def test_a_joined_conversation_outlives_the_process_it_joined(machine: Machine) -> None:
    """When the process that held the home ends, the joined one takes over, and nothing is said twice."""
    machine.scripted()
    with (
        machine.terminal("chat", "--conversation", "a") as first,
        machine.terminal("chat", "--conversation", "b") as second,
    ):
        first.until("you › ")
        second.until("you › ")
        first.type("hello")
        first.until("So it is.")
        first.until("you › ")
        first.type("\x04")
        first.rest()
        second.type("still there?")
        second.until("So it is.")
        second.until("you › ")
        second.type("\x04")
        second.rest()

    assert machine.run("status", "--json").json["turns"]["total"] == 2


def test_a_command_runs_without_a_model_call(machine: Machine) -> None:
    """`!whoami` and `!kothar` are commands at the terminal too, and the owner's commands work for the owner alone."""
    machine.ok("chat", "--once", "Hello")
    with machine.daemon():
        whoami = machine.ok("chat", "--once", "!whoami", "--json").json
        spoken = machine.ok("chat", "--once", "!kothar speak").stdout
        refused = machine.ok("chat", "--once", "!kothar off", "--as", "tom").stdout
        machine.ok("chat", "--once", "!ensoul off", "--as", "tom")
        answered = machine.ok("chat", "--once", "Still there?").stdout

    assert whoami["reply"].startswith("I do not know your name yet.")
    assert (whoami["conversation"], whoami["person"], whoami["turn"]) == (MAIN, "terminal:local:ada", "")
    assert spoken.startswith("Kothar speaks here")
    assert refused.startswith("Only an owner")
    assert answered == "first\n"
    assert len(requests(machine)) == 2


def test_lines_from_a_pipe_are_answered_one_by_one(machine: Machine) -> None:
    """Without a terminal each line of the input is a message, and each reply is a line of the output."""
    ran = machine.ok("chat", stdin="one\ntwo\n")

    assert ran.stdout == "first\nsecond\n"


def test_a_broken_configuration_is_one_line_and_exit_78(machine: Machine) -> None:
    """The line names the file, the key and the remedy."""
    machine.home.mkdir(mode=0o700)
    for config, names in (
        ("[memory]\nwindow = 0\n", "memory.window"),
        ("[memory]\nwindwo = 3\n", "did you mean memory.window"),
        ("memory = [\n", "is not TOML"),
        ('providers = ["oracle"]\n', "there is no 'oracle'"),
    ):
        (machine.home / "config.toml").write_text(config)
        ran = machine.run("chat", "--once", "x", env={"CLAUDIUS_PROVIDERS": ""})

        assert (ran.code, len(ran.stderr.strip().splitlines())) == (78, 1), ran.shown
        assert names in ran.stderr


def test_an_edit_of_the_settings_takes_effect_at_the_next_turn(machine: Machine) -> None:
    """In a living process the next turn uses a changed setting; for a broken file the last good one is kept."""
    with machine.terminal("chat") as terminal:
        terminal.until("you › ")
        terminal.type("good day")
        terminal.until("first")
        terminal.until("you › ")
        machine.ok("config", "set", "soul_state.interval", "1")
        in_force()
        terminal.type("one")
        terminal.until("second")
        terminal.until("you › ")
        (machine.home / "config.toml").write_text("[soul_state]\ninterval = -1\n")
        in_force()
        terminal.type("two")
        terminal.until("the last good version stays in use")
        assert "config.toml: soul_state.interval" in terminal.shown

    assert ["soul_state_check" in request["tail"] for request in requests(machine)] == [False, True, True]


def test_a_line_that_is_too_long_is_refused_and_the_next_is_heard(machine: Machine) -> None:
    """A line that the socket would refuse is not sent: one line says so, and the soul answers the next message."""
    ran = machine.ok("chat", stdin="x" * (9 * 2**20) + "\nhello\n")

    assert ran.stdout == "first\n"
    assert "too long" in ran.stderr
    assert machine.log.read_text().count('"event": "awake"') == 1


def test_an_interrupt_at_the_prompt_ends_at_once_and_gives_the_terminal_back(machine: Machine) -> None:
    """Ctrl-C while a line is awaited: the soul shuts down in order, and the shell has its echo back."""
    with machine.terminal("chat") as terminal:
        before = termios.tcgetattr(terminal.master)
        terminal.until("you › ")
        terminal.type("hello")
        terminal.until("first")
        terminal.until("you › ")
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.rest()
        after = termios.tcgetattr(terminal.master)

    assert terminal.process.returncode == 130
    assert after == before
    assert '"event": "asleep"' in machine.log.read_text()


def test_what_arrives_by_itself_is_printed_at_once_where_a_terminal_only_prints(machine: Machine) -> None:
    """On a terminal without cursor movement, too: a line of its own, once, and then the prompt again."""
    machine.scripted(reply("Said elsewhere."))
    with machine.terminal("chat") as first, machine.terminal("chat") as other:
        first.until("you › ")
        other.until("you › ")
        other.type("hi")
        other.until("Said elsewhere.")
        first.until("you › ")
        first.type("\x04")
        shown = first.rest().replace("\r", "")

    assert "you › \nSaid elsewhere.\nyou › " in shown
    assert shown.count("Said elsewhere.") == 1
