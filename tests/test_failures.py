"""Failures tell their cause and remedy: in the chat, in `--once`, in `status`, in `stream` and in `why`.

One daemon lives through every failure; a case sets what the model's server answers, or what the owner has set wrong.
How soon each is told, `bench/p18_failures.py` measures.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from driven import CLAUDIUS
from failing import CASES, Case, Place, failing

ON_A_PUSH = ("dead server", "wrong path", "401", "thoughts alone", "own function raises")
"""One case of each kind; the others are run by `.ci/run full`."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run the model's server and the daemon."""
    with failing(tmp_path_factory.mktemp("failures")) as place:
        yield place


def has(shown: str, *texts: str) -> None:
    """Check that texts are shown, however the lines are wrapped."""
    flat = " ".join(shown.split())
    assert not [text for text in texts if text not in flat], shown


@pytest.mark.parametrize(
    "name", [name if name in ON_A_PUSH else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_failure_names_its_cause_and_remedy_everywhere(place: Place, name: str) -> None:
    """The chat, `--once`, `status` and `why` name the same cause and the same remedy; `why` alone quotes."""
    case, machine = CASES[name], place.machine
    place.have(case)
    detail, fix = case.detail.format(server=place.server), case.fix

    once = machine.run("chat", "--once", "hello", "--conversation", f"once {name}", "--json")
    assert once.code == (75 if case.apology else 0), once.shown
    said = once.json
    assert said.get("apology") == case.apology
    assert said["failure"]["kind"] == case.kind
    has(said["failure"]["detail"], detail)
    has(said["failure"]["fix"], fix)
    has(once.stderr, detail, fix)

    has(machine.ok("why").stdout, said["turn"], detail, fix, "heard from terminal:local:ada: hello", case.said)
    has(machine.ok("status").stdout, detail, fix)
    assert not case.said or case.said not in once.shown + machine.ok("status", "--json").stdout

    with machine.terminal("chat", "--conversation", f"chat {name}") as terminal:
        terminal.until("you")
        terminal.type("hello")
        terminal.until(fix.split()[0])
        has(terminal.shown, detail)
        terminal.until("you")


def streamed(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Return the events of a stream."""
    return [json.loads(line) for line in lines]


def test_a_dead_server_is_named_while_the_command_still_waits(place: Place) -> None:
    """The cause comes at once, long before the wait is over; when the server is there, the answer comes."""
    machine = place.machine
    place.have(CASES["dead server"], wait_s=300.0)
    env, home = machine.environment(), machine.user
    command = [str(CLAUDIUS), "chat", "--once", "hello", "--conversation", "waits"]
    watching = [str(CLAUDIUS), "stream", "--json", "--count", "2"]
    with subprocess.Popen(
        watching, env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout
        assert watch.stderr
        assert "watching" in watch.stderr.readline()
        with subprocess.Popen(
            command, env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as once:
            assert once.stdout
            assert once.stderr
            has(once.stderr.readline(), "cannot be reached", "start that server")
            assert once.poll() is None
            shown, explained = machine.ok("status").stdout, machine.ok("why").stdout
            live, document = machine.ok("status", "--json").json, machine.ok("why", "--json").json
            place.set(Case("", "", ""), wait_s=300.0)
            assert once.stdout.readline() == "All is well.\n"
        events = streamed(watch.stdout.readlines())

    has(shown, "cannot be reached", "start that server")
    has(explained, "cannot be reached", "start that server", "no answer yet")
    assert [one["kind"] for one in events] == ["hear", "error"]
    assert events[0]["turn"] == events[1]["turn"]
    has(events[1]["text"], "cannot be reached", "start that server")
    told = {name: text for name, text in document["failure"].items() if name != "said"}
    assert (told["kind"], live["provider"]["last_error"]) == ("unreachable", told)
    assert live["last_failure"] == {"turn": document["turn"], "at": live["last_failure"]["at"], **told}
    assert document["perception"]["text"] == "hello"
    after = machine.ok("status", "--json").json
    assert (after["provider"]["last_error"], after["last_failure"]) == (None, None)


def test_an_address_without_v1_works_and_is_named(place: Place) -> None:
    """Where the address itself holds no API, `/v1` below it is tried, and the owner is told to set that."""
    place.have(Case("", "", "", base_url="{server}"))

    once = place.machine.ok("chat", "--once", "hello", "--conversation", "v1")

    assert once.stdout == "All is well.\n"
    has(once.stderr, "set openai.base_url to that", f"{place.server}/v1")


def test_a_key_that_is_corrected_is_taken_by_the_next_message(place: Place) -> None:
    """A refused key in `.env` is written over, and the daemon that runs asks with the new one; none is in the log."""
    env_file, log = place.machine.home / ".env", place.machine.log
    place.have(CASES["401"])
    env_file.touch(mode=0o600)
    env_file.write_text("CLAUDIUS_OPENAI_API_KEY=sk-wrong-canary\n")
    refused = place.machine.run("chat", "--once", "hello", "--conversation", "key", "--json")
    place.reset()

    env_file.write_text("CLAUDIUS_OPENAI_API_KEY=sk-corrected-canary\n")
    answered = place.machine.ok("chat", "--once", "hello", "--conversation", "key")
    place.say({"fault": "status", "status": 401, "message": "no such key: sk-corrected-canary"})
    blotted = place.machine.run("chat", "--once", "hello", "--conversation", "key", "--json")
    record = place.machine.ok("why", blotted.json["turn"], "--json")
    env_file.unlink()

    assert refused.json["failure"]["kind"] == "auth_failed"
    assert answered.stdout.endswith("All is well.\n")
    assert "no such key: ***" in record.json["failure"]["said"]
    assert "canary" not in blotted.shown + record.shown + log.read_text()


def test_whoever_is_not_the_owner_is_told_no_cause(place: Place) -> None:
    """Keys, addresses and files are the owner's business: `--as` hears the apology alone."""
    place.have(CASES["401"])

    once = place.machine.run("chat", "--once", "hello", "--as", "ben", "--conversation", "ben", "--json")

    assert once.json["apology"] == "provider_down"
    assert "failure" not in once.json
    assert "API key" not in once.shown
