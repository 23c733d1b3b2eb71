"""What models and their servers send, and what people may see of it: the rows of `cases/streams.json`.

One daemon lives through them all and is asked by `claudius chat --once`; a row sets what its model's server answers.
The rows of the kinds `quoting` and `echo` are no part of this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from claudius.testing.model_calls import Reply
from driven import Machine, Ran
from lab.loopback.model import MODEL
from lab.loopback.model_families import Family
from lab.loopback.model_rows import RowServer, threaded, usual
from stream_rows import Right, rows

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

    def have(self, wire: str, **more: str) -> RowServer:
        """Let the daemon ask the server of a wire, which answers well again; return the server."""
        server, self.written = self.servers[wire], self.written + 1
        server.reset()
        server.instead, server.default = usual, RETRY
        name, url = ("anthropic_api", server.url) if wire == "anthropic" else ("openai_compat", f"{server.url}/v1")
        (self.machine.home / "config.toml").write_text(
            f'providers = ["{name}"]\n[{name.partition("_")[0]}]\nbase_url = "{url}"\nmodel = "{MODEL}"\n'
            f"[terminal]\nwait_s = 20\n[model]\ntotal_s = {300 + self.written}\n[psyche]\nenabled = false\n"
            + "".join(f"[{table}]\n{lines}\n" for table, lines in more.items())
        )
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

    ran = place.hear("Good morning!", row)

    said = ran.json["reply"]
    assert said in [right.take("said", said), *(RETRY if "retry" in one else one for one in right.take("said_any", ()))]
    assert len([call for call in place.calls(ran) if call["purpose"] in ("turn", "repair")]) <= right.take(
        "calls_at_most", 2
    )
    assert not [text for text in right.take("never", ()) if text in ran.shown]
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
