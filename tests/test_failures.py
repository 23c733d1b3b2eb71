"""Failures tell their cause and remedy: in the chat, in `--once`, in `status`, in `stream` and in `why`.

One daemon lives through every failure; a case sets what the model's server answers, or what the owner has set wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from driven import CLAUDIUS, REPOSITORY, Machine, reply
from lab.loopback.model import MODEL

DEAD = "http://127.0.0.1:9"
DESK = '''"""Processes of an owner's own, which fail."""

from claudius.cognition.craft import mental_process


@mental_process()
async def raises(turn, memory):
    """Fail."""
    raise ValueError(f"no desk for {turn.perception.text}")


@mental_process()
async def returns_text(turn, memory):
    """Return what no process may return."""
    return "a text"
'''
OWN = """+++
python = "shop.desk:{name}"
+++
The desk.
"""


@dataclass(frozen=True)
class Case:
    """One failure: what brings it about, and what must be told of it."""

    detail: str
    fix: str
    kind: str
    answer: Mapping[str, Any] | None = None
    """What the model's server answers each time; None = it would answer well."""
    base_url: str = "{server}/v1"
    model: str = MODEL
    own: str = ""
    """The owner's function that runs."""
    provider: str = "openai_compat"
    wait_s: float = 2.0
    first_byte_s: float = 60.0
    apology: str | None = "provider_down"


def status(code: int, message: str = "", **more: Any) -> dict[str, Any]:
    """Return an answer with an HTTP status."""
    return {"fault": "status", "status": code, "message": message, **more}


CASES: Mapping[str, Case] = {
    "dead server": Case("127.0.0.1:9/v1 cannot be reached", "start that server", "unreachable", base_url=DEAD + "/v1"),
    "wrong path": Case(
        "there is no {server}/elsewhere/chat/completions",
        "correct openai.base_url",
        "bad_request",
        base_url="{server}/elsewhere",
    ),
    "wrong model": Case("'nobody' not found", f"set openai.model to one that this server has: {MODEL}", "bad_request", model="nobody"),
    "401": Case("Incorrect API key", "CLAUDIUS_OPENAI_API_KEY", "auth_failed", status(401, "Incorrect API key")),
    "403": Case("not for you", "CLAUDIUS_OPENAI_API_KEY", "auth_failed", status(403, "not for you")),
    "400": Case("temperature is odd", "check openai.model", "bad_request", status(400, "temperature is odd")),
    "no credit": Case("credit balance is too low", "top up", "spend_limit", status(400, "Your credit balance is too low")),
    "spend limit": Case("API usage limits", "top up", "spend_limit", status(429, "You have reached your API usage limits")),
    "429": Case("slow down", "asks again by itself", "rate_limited", status(429, "slow down", retry_after=1)),
    "429 for an hour": Case("slow down", "asks again by itself", "rate_limited", status(429, "slow down", retry_after=3600)),
    "500": Case("a cog broke", "look at the server's own log", "overloaded", status(500, "a cog broke")),
    "529": Case("too many", "asks again by itself", "overloaded", status(529, "too many")),
    "proxy page": Case("HTTP 502", "look at the server's own log", "overloaded", {"fault": "html"}),
    "reset": Case("cannot be reached", "start that server", "unreachable", {"fault": "reset"}),
    "silent": Case("did not answer in time", "raise model.first_byte_s", "timed_out", {"fault": "hang"}, first_byte_s=1.0),
    "empty stream": Case("ended before its end", "runs out of memory", "cut", {"text": "x", "fault": "eof", "at": 0}),
    "cut stream": Case("broke off", "runs out of memory", "cut", {"text": "x", "fault": "truncate", "at": 0}),
    "no JSON": Case("stream is broken", "runs out of memory", "cut", {"text": "x", "fault": "bad_json", "at": 0}),
    "error in stream": Case("no room", "asks again by itself", "overloaded", {"text": "x", "fault": "error_event", "at": 0, "message": "no room"}),
    "Anthropic is away": Case("cannot be reached", "ANTHROPIC_BASE_URL", "unreachable", base_url=DEAD, provider="anthropic_api", wait_s=6.0),
    "Anthropic's 401": Case("invalid x-api-key", "ANTHROPIC_API_KEY", "auth_failed", status(401, "invalid x-api-key"), base_url="{server}", provider="anthropic_api", wait_s=6.0),
    "Anthropic's 529": Case("overloaded", "asks again by itself", "overloaded", status(529, "overloaded"), base_url="{server}", provider="anthropic_api", wait_s=6.0),
    "too long": Case("maximum context", "history.budget_tokens", "too_long", status(400, "maximum context length is 9"), apology="too_large"),
    "empty reply": Case("reply was empty", "model server's own log", "no_words", {"text": ""}, apology=None),
    "thoughts alone": Case("could be said aloud", "claudius why", "no_words", {"text": "<internal_monologue>hm</internal_monologue>"}, apology=None),
    "own function raises": Case("ValueError('no desk for hello') in shop/desk.py:9", "correct that line", "raised", own="raises", apology="unreadable"),
    "own function returns a text": Case("returned a str", "correct the process", "process_error", own="returns_text", apology="unreadable"),
}  # fmt: skip


ON_A_PUSH = ("dead server", "wrong path", "401", "thoughts alone", "own function raises")
"""One case of each kind; the others are run by `.ci/run full`."""


@dataclass(slots=True)
class Place:
    """A machine with one running daemon, and the model's server that it asks."""

    machine: Machine
    server: str
    settings: int = 0
    """How often the settings were written: a changed number gives the daemon a fresh provider, which does not rest."""

    def have(self, case: Case, wait_s: float | None = None) -> None:
        """Bring a failure about: the daemon reads its settings and soul before each turn."""
        self.reset()
        if case.answer is not None:
            self.say({**case.answer, "keep": True})
        for name in ("greeting", "main_process"):
            text = self.machine.home / "soul" / "processes" / f"{name}.md"
            text.parent.mkdir(exist_ok=True)
            shipped = REPOSITORY / "soul" / "processes" / text.name
            text.write_text(OWN.format(name=case.own) if case.own else shipped.read_text())
        self.set(case, wait_s)

    def set(self, case: Case, wait_s: float | None = None) -> None:
        """Write the settings."""
        url, self.settings = case.base_url.format(server=self.server), self.settings + 1
        (self.machine.home / "config.toml").write_text(
            f'providers = ["{case.provider}"]\n[{case.provider.partition("_")[0]}]\n'
            f'base_url = "{url}"\nmodel = "{case.model}"\n[terminal]\nwait_s = {wait_s or case.wait_s}\n'
            f"[model]\nretries = 1\nfirst_byte_s = {case.first_byte_s}\ntotal_s = {300 + self.settings}\n"
            "[psyche]\nenabled = false\n"
        )

    def reset(self) -> None:
        """Have the model's server answer well again."""
        self._post("reset")

    def say(self, answer: Mapping[str, Any]) -> None:
        """Have the model's server give an answer."""
        self._post("say", [answer])

    def _post(self, what: str, body: object = None) -> None:
        assert httpx.post(f"{self.server}/_control/{what}", json=body, trust_env=False).status_code == 200


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run the model's server and the daemon."""
    machine = Machine(
        tmp_path_factory.mktemp("failures"), env={"CLAUDIUS_PROVIDERS": "", "ANTHROPIC_API_KEY": "sk-ant-canary"}
    )
    own = machine.root / "own" / "shop"
    own.mkdir(parents=True)
    (own / "desk.py").write_text(DESK)
    machine.env["PYTHONPATH"] = str(own.parent)
    command = [sys.executable, "-m", "lab.loopback.model", "--default", reply("All is well.")]
    env = {"PYTHONPATH": str(REPOSITORY / "tests")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) as server:
        assert server.stdout
        try:
            made = Place(machine, json.loads(server.stdout.readline())["url"])
            machine.home.mkdir(mode=0o700)
            made.set(CASES["Anthropic is away"])  # its library is loaded with the daemon, no part of any wait here
            with machine.daemon():
                yield made
        finally:
            server.kill()


def has(shown: str, *texts: str) -> None:
    """Check that texts are shown, however the lines are wrapped."""
    flat = " ".join(shown.split())
    assert not [text for text in texts if text not in flat], shown


@pytest.mark.parametrize(
    "name", [name if name in ON_A_PUSH else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_failure_names_its_cause_and_remedy_everywhere(place: Place, name: str) -> None:
    """The chat, `--once`, `status` and `why` name the same cause and the same remedy."""
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

    has(machine.ok("why").stdout, said["turn"], detail, fix, "heard from ada: hello")
    has(machine.ok("status").stdout, detail, fix)

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
    told = document["failure"]
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
    env_file.unlink()

    assert refused.json["failure"]["kind"] == "auth_failed"
    assert answered.stdout.endswith("All is well.\n")
    assert "no such key: ***" in blotted.json["failure"]["detail"]
    assert "canary" not in blotted.shown + log.read_text()


def test_whoever_is_not_the_owner_is_told_no_cause(place: Place) -> None:
    """Keys, addresses and files are the owner's business: `--as` hears the apology alone."""
    place.have(CASES["401"])

    once = place.machine.run("chat", "--once", "hello", "--as", "ben", "--conversation", "ben", "--json")

    assert once.json["apology"] == "provider_down"
    assert "failure" not in once.json
    assert "API key" not in once.shown
