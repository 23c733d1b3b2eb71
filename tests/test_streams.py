"""What models and their servers send, and what people may see of it: the rows of `cases/streams.json`.

One daemon lives through them all and is asked by `claudius chat --once`; a row sets what its model's server answers.
The rows of the kinds `quoting` and `echo` are no part of this file.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from claudius.testing.model_calls import Call, Reply
from driven import REPOSITORY, Machine, Ran, in_force, reply, until
from lab.loopback.model import MODEL
from lab.loopback.model_families import Family
from lab.loopback.model_rows import RowServer, events, failure, threaded, usual
from stream_rows import ROWS, Right, rows

RETRY = "Those are the words of the retry."
WIRES = {
    "openai": Family("other"),
    "ollama": Family("ollama", enforces=False, capabilities=("completion", "thinking")),
    "anthropic": Family("other"),
}


@dataclass(slots=True)
class Place:
    """A daemon, and the servers of its model, one a wire."""

    machine: Machine
    servers: dict[str, RowServer] = field(default_factory=dict)
    written: int = 0
    """How often the settings were written: a changed number gives the daemon a fresh provider, which does not rest."""

    def have(self, wire: str, *settings: str) -> RowServer:
        """Let the daemon ask the server of a wire, which answers well again; return the server.

        `settings`: further lines for the table of its provider.
        """
        server, self.written = self.servers[wire], self.written + 1
        server.reset()
        server.instead, server.default = usual, RETRY
        name, url = ("anthropic_api", server.url) if wire == "anthropic" else ("openai_compat", f"{server.url}/v1")
        (self.machine.home / "config.toml").write_text(
            f'providers = ["{name}"]\n[{name.partition("_")[0]}]\nbase_url = "{url}"\nmodel = "{MODEL}"\n'
            + "".join(f"{line}\n" for line in settings)
            + ("" if "[cortex]" in settings else "[cortex]\nenabled = false\n")  # it would take what a turn is to get
            + f"[runtime]\npatience_s = 20\n[model]\ntotal_s = {300 + self.written}\n[psyche]\nenabled = false\n"
        )
        in_force()  # and what follows the last reply has had its answer
        server.reset()
        return server

    def hear(self, text: str, row: Mapping[str, Any]) -> Ran:
        """Say one line in the row's own conversation, and wait for the answer."""
        return self.machine.run("chat", "--once", text, "--conversation", row["id"], "--json")

    def calls(self, ran: Ran) -> list[dict[str, Any]]:
        """Return the calls of the turn that answered."""
        found: list[dict[str, Any]] = self.machine.ok("why", ran.json["turn"], "--json").json["calls"]
        return found


@contextmanager
def placed(root: Path) -> Iterator[Place]:
    """Run the servers and the daemon."""
    machine = Machine(root, env={"CLAUDIUS_PROVIDERS": "", "ANTHROPIC_API_KEY": "sk-ant-canary"})
    machine.home.mkdir(mode=0o700)
    with ExitStack() as stack:
        place = Place(machine)
        for wire, family in WIRES.items():
            place.servers[wire] = server = RowServer(family=family)
            stack.enter_context(threaded(server))
        place.have("openai")
        stack.enter_context(machine.daemon())
        yield place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return the place of all rows."""
    with placed(tmp_path_factory.mktemp("streams")) as made:
        yield made


@rows("words_alone")
def test_what_a_model_thinks_aloud_is_never_said(place: Place, row: Mapping[str, Any]) -> None:
    """Only the words are posted; where there are none, or none can be told from the thought, they are asked once more."""
    given, right = row["input"], Right(row)
    server = place.have(given.get("wire", "openai"))
    answer = Reply(
        text=given.get("content", ""), deltas=tuple(given.get("chunks", ())), thinking=given.get("thinking", "")
    )
    server.say(answer, *([given["again"]] if "again" in given else ()))

    ran = place.hear(given.get("asks", "Good morning!"), row)

    said = ran.json["reply"]
    assert said in [right.take("said", said), *(RETRY if "retry" in one else one for one in right.take("said_any", ()))]
    assert len([call for call in place.calls(ran) if call["purpose"] in ("turn", "repair")]) <= right.take(
        "calls_at_most", 2
    )
    assert not [text for text in right.take("never", ()) if text in ran.shown]
    right.end()


@rows("wire")
def test_an_odd_stream_is_read_for_what_it_says(place: Place, row: Mapping[str, Any]) -> None:
    """What a server adds, leaves out or puts elsewhere changes nothing; where no word comes, it is asked once more."""
    given, right = row["input"], Right(row)
    server = place.have("openai")
    server.instead = lambda _: events(given["events"], given.get("line_end", "\n"))

    ran = place.hear("Good morning!", row)

    said = ran.json.get("reply")
    assert said == right.take("said", said)
    assert not [text for text in right.take("never", ()) if text in ran.shown]
    assert len(place.calls(ran)) <= right.take("calls_at_most", 9)
    if right.take("then"):
        explained = place.machine.ok("why", ran.json["turn"]).stdout
        assert ran.json["failure"]["detail"] in " ".join(explained.split())
    right.end()


def told(call: Call) -> int:
    """Return how many characters of history a call sent: what stands between its system part and its last message."""
    return sum(len(text) for role, text in call.messages if role != "system") - len(call.tail)


def size(call: Call) -> int:
    """Return how many characters a call sent."""
    return len(call.system) + told(call) + len(call.tail)


ON_A_PUSH = ("long-anthropic", "long-openai", "long-gemini", "long-lmstudio", "long-one-message")
"""A refusal of each shape; the others are run by `.ci/run full`."""
LONG = [
    pytest.param(row, id=row["id"], marks=() if row["id"] in ON_A_PUSH else pytest.mark.slow)
    for row in ROWS
    if row.get("kind") == "too_long" and ("status" in row["input"] or "repeat" in str(row["input"]))
]


@pytest.mark.parametrize("row", LONG)
def test_a_conversation_that_is_too_long_for_its_model_goes_on(place: Place, row: Mapping[str, Any]) -> None:
    """It is told less until that fits; the owner reads of it; what was left out is folded, so that the next turns fit."""
    given, right = row["input"], Right(row)
    wire = given["wire"] if given.get("wire") in WIRES else "openai"
    server = place.have(wire, *(() if wire == "anthropic" else ('profile = "full"',)))
    is_one = given.get("history") == "empty"
    server.default = reply("All is well here. " * 60)
    for number in range(3):
        aside = {"id": "aside"} if is_one else row
        place.hear(f"{number}: " + "The barge was late again. " * 40, aside)
    says = given["says"]["repeat"] * given["says"]["times"] if is_one else "And what now?"
    limit = max(len(one.system) for one in server.asked) + 9000 if is_one else 0
    refused: list[Call] = []

    def answer(call: Call) -> web.Response | None:
        nonlocal limit
        if not limit and says in call.tail:  # what was folded meanwhile is left out of it already
            limit = size(call) - 500
        if not limit or size(call) <= limit:
            return None
        refused.append(call)
        return failure(given.get("status", 400), given.get("body", "the prompt is too long"))

    server.calls.clear()
    server.instead, server.default = answer, reply("It came.")

    ran = place.hear(says, row)

    calls = place.servers[wire].asked
    right.take("answered")
    assert ran.json["reply"] == "It came."
    wanted = right.take("next_prompt")
    if "head" in wanted:
        shown = json.loads(next(line for line in calls[-1].tail.splitlines() if line.startswith('{"kind":"message"')))
        assert says.startswith(shown["text"])
        assert says.endswith(shown["end"])
    else:
        assert [told(one) for one in calls[1:]]
        assert 2 * told(calls[1]) <= told(calls[0])
    assert len(calls) <= right.take("calls_at_most", 9)
    if right.take("status_names"):
        assert "too long" in place.machine.ok("status").stdout
    if right.take("then"):
        until(os.getpid(), lambda: len(server.asked) > len(refused) + 1 and server.asked[-1].finished)
        place.machine.ok("daemon", "restart")
        before = len(refused)
        assert place.hear("And now?", row).json["reply"] == "It came."
        assert len(refused) == before
    right.end()


@rows(None)
def test_a_model_is_asked_as_its_server_wants_it(place: Place, row: Mapping[str, Any]) -> None:
    """Every call of the model has what the row names."""
    right = Right(row)
    server = place.have(row["input"]["wire"])
    assert row["input"]["show"]["capabilities"] == list(server.family.capabilities)

    place.hear("Good morning!", row)

    wanted = right.take("request_has")
    bodies = [call.body for call in server.calls if call.path == "/api/chat"]
    assert bodies
    assert not [body for body in bodies if not wanted.items() <= body.items()]
    right.end()


# -- what goes wrong, and is well again --------------------------------------------------------------------------------


def test_an_account_that_was_paid_is_tried_by_the_owners_next_message(place: Place) -> None:
    """A provider rests for ten minutes after its account was refused, but not for an owner, who may have paid."""
    row, server = {"id": "paid"}, place.have("openai")
    server.instead = lambda _: failure(402, {"error": {"message": "Your credit balance is too low"}})
    refused = place.hear("Hello?", row)
    assert (refused.json["apology"], refused.json["failure"]["kind"]) == ("provider_down", "spend_limit")
    assert "rests for" in place.machine.run("status").stdout

    server.instead, server.default = usual, "I am back."
    ran = place.hear("And now?", row)

    assert ran.json["reply"] == "I am back."
    assert ran.stderr == ""
    assert "rests for" not in place.machine.run("status").stdout


def test_a_failure_that_was_retried_and_answered_is_not_told(place: Place) -> None:
    """One overloaded answer, then the reply: neither the chat, nor `why`, nor `status` speaks of a failure."""
    server = place.have("openai")
    server.say(Reply(fault="status", status=529, message="too many"), "It came.")

    ran = place.hear("Hello?", {"id": "transient"})

    assert ran.json["reply"] == "It came."
    assert len(server.asked) >= 2
    assert ran.stderr == ""
    assert place.machine.ok("why", ran.json["turn"], "--json").json["failure"] is None
    assert "too many" not in place.machine.ok("status").stdout


@pytest.mark.parametrize("drips", ["/props", "/v1/models"])
def test_a_server_that_answers_drop_by_drop_keeps_nobody_waiting(place: Place, drips: str) -> None:
    """What is asked of a server at home before the first turn has a limit for the whole answer: the talk goes on."""
    server = RowServer(family=Family("llama.cpp"), default="It came.", drips=drips)
    with threaded(server):
        place.servers["drips"] = server
        place.have("drips")
        server.default = "It came."

        ran = place.hear("Hello?", {"id": f"drips{drips}"})

    assert ran.json["reply"] == "It came."


@rows("fault")
def test_a_server_that_fails_costs_one_apology(place: Place, row: Mapping[str, Any]) -> None:
    """The person hears that it does not go, the owner why, and the next message is answered where all is well again."""
    given, right = row["input"], Right(row)
    server = place.have(given.get("wire", "openai"))
    if "cut_at" in given:
        server.default = Reply(deltas=tuple(f"It came {n} times, " for n in range(99)), fault="eof", at=4000)
    else:
        server.instead = lambda _: failure(given["status"], given.get("body", "overloaded"))

    ran = place.hear("Hello?", row)

    assert bool(ran.json["failure"]) == right.take("apology")
    assert len(server.asked) <= right.take("calls_at_most", 99)
    assert right.take("status_has", "") in place.machine.run("status").stdout
    shown = ran.shown
    if right.take("next_answered"):
        server.instead, server.default = usual, "It came."
        after = place.hear("And now?", row)
        shown += after.shown
        assert after.json["reply"] == "It came."
    assert not [text for text in right.take("never", ()) if text in shown]
    right.end()


# -- one slot ----------------------------------------------------------------------------------------------------------


@rows("slot")
def test_a_server_with_one_slot_never_thinks_beside_somebody_who_waits(tmp_path: Path, row: Mapping[str, Any]) -> None:
    """What the second mind asks is broken off while anybody is answered, and asked to its end when no one waits."""
    given, right = row["input"], Right(row)
    thinks = (REPOSITORY / "soul" / "cortex.md").read_text("utf-8").splitlines()[-1]

    def answer(call: Call) -> Reply:
        return Reply(text="{}", delay_s=2.0) if thinks in call.system else Reply(text="Plane it.", delay_s=0.2)

    server = RowServer(family=Family("llama.cpp", enforces=False), default=answer, host=given["server"]["address"])
    with threaded(server), placed(tmp_path) as place:
        place.servers["slot"] = server
        place.have("slot", "[cortex]", 'triggers = ["interaction_count: 2"]')
        server.default = answer
        for number in range(given["messages"]):
            assert place.hear(f"{number}: how do I smooth a board?", row).json["reply"] == "Plane it."
        shown = place.machine.ok("status").stdout
        until(os.getpid(), lambda: [call for call in server.asked if thinks in call.system and call.finished])

    assert len([pair for pair in server.beside if any(thinks in one.system for one in pair)]) == right.take(
        "calls_of_the_second_mind_beside_a_person"
    )
    assert right.take("status_says")
    assert "second mind waits" in shown
    right.end()
