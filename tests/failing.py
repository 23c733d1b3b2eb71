"""Failures of a model, of a setting and of an owner's own part, and a daemon that has them one after the other."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from driven import REPOSITORY, Machine, reply
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
    said: str = ""
    """What the other side wrote: for `why` alone."""
    provider: str = "openai_compat"
    wait_s: float = 2.0
    first_byte_s: float = 60.0
    apology: str | None = "provider_down"


def status(code: int, message: str = "", **more: Any) -> dict[str, Any]:
    """Return an answer with an HTTP status."""
    return {"fault": "status", "status": code, "message": message, **more}


CASES: Mapping[str, Case] = {
    "dead server": Case("127.0.0.1:9/v1 cannot be reached", "start that server", "unreachable", base_url=DEAD + "/v1"),
    "wrong path": Case("there is no {server}/elsewhere/chat/completions", "correct openai.base_url", "bad_request", base_url="{server}/elsewhere"),
    "wrong model": Case("the model was not found", f"set openai.model to one that this server has: {MODEL}", "bad_request", model="nobody", said="'nobody' not found"),
    "401": Case("HTTP 401 Unauthorized", "CLAUDIUS_OPENAI_API_KEY", "auth_failed", status(401, "Incorrect API key"), said="Incorrect API key"),
    "403": Case("HTTP 403 Forbidden", "CLAUDIUS_OPENAI_API_KEY", "auth_failed", status(403, "not for you"), said="not for you"),
    "400": Case("HTTP 400 Bad Request", "check openai.model", "bad_request", status(400, "temperature is odd"), said="temperature is odd"),
    "no credit": Case("spending limit is reached (HTTP 400", "top up", "spend_limit", status(400, "Your credit balance is too low"), said="Your credit balance is too low"),
    "spend limit": Case("spending limit is reached (HTTP 429", "top up", "spend_limit", status(429, "You have reached your API usage limits"), said="API usage limits"),
    "429": Case("HTTP 429 Too Many Requests", "asks again by itself", "rate_limited", status(429, "slow down", retry_after=1), said="slow down"),
    "429 for an hour": Case("HTTP 429 Too Many Requests", "asks again by itself", "rate_limited", status(429, "slow down", retry_after=3600), said="slow down"),
    "500": Case("HTTP 500 Internal Server Error", "look at the server's own log", "overloaded", status(500, "a cog broke"), said="a cog broke"),
    "529": Case("HTTP 529", "asks again by itself", "overloaded", status(529, "too many"), said="too many"),
    "proxy page": Case("HTTP 502", "look at the server's own log", "overloaded", {"fault": "html"}),
    "reset": Case("cannot be reached", "start that server", "unreachable", {"fault": "reset"}),
    "silent": Case("did not answer in time", "raise model.first_byte_s", "timed_out", {"fault": "hang"}, first_byte_s=1.0),
    "empty stream": Case("ended before its end", "runs out of memory", "cut", {"text": "x", "fault": "eof", "at": 0}),
    "cut stream": Case("broke off", "runs out of memory", "cut", {"text": "x", "fault": "truncate", "at": 0}),
    "no JSON": Case("stream is broken", "runs out of memory", "cut", {"text": "x", "fault": "bad_json", "at": 0}),
    "nested too deep": Case("stream is broken", "runs out of memory", "cut", {"text": "x", "fault": "deep_json", "at": 0}, base_url="{server}", provider="anthropic_api", wait_s=6.0),
    "error in stream": Case("in the stream", "asks again by itself", "overloaded", {"text": "x", "fault": "error_event", "at": 0, "message": "no room"}, said="no room"),
    "Anthropic is away": Case("cannot be reached", "ANTHROPIC_BASE_URL", "unreachable", base_url=DEAD, provider="anthropic_api", wait_s=6.0),
    "Anthropic's 401": Case("HTTP 401 Unauthorized", "ANTHROPIC_API_KEY", "auth_failed", status(401, "invalid x-api-key"), said="invalid x-api-key", base_url="{server}", provider="anthropic_api", wait_s=6.0),
    "Anthropic's 529": Case("HTTP 529, overloaded_error", "asks again by itself", "overloaded", status(529, "a full house"), said="a full house", base_url="{server}", provider="anthropic_api", wait_s=6.0),
    "too long": Case("too long for the model (HTTP 400", "history.budget_tokens", "too_long", status(400, "maximum context length is 9"), said="context length is 9", apology="too_large"),
    "empty reply": Case("reply was empty", "model server's own log", "no_words", {"text": ""}, apology=None),
    "thoughts alone": Case("could be said aloud", "claudius why", "no_words", {"text": "<internal_monologue>hm</internal_monologue>"}, apology=None),
    "own function raises": Case("ValueError in shop/desk.py:9", "correct that line", "raised", said="ValueError('no desk for hello')", own="raises", apology="unreadable"),
    "own function returns a text": Case("returned a str", "correct the process", "process_error", own="returns_text", apology="unreadable"),
}  # fmt: skip


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
            f'base_url = "{url}"\nmodel = "{case.model}"\n[runtime]\npatience_s = {wait_s or case.wait_s}\n'
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


@contextmanager
def failing(root: Path) -> Iterator[Place]:
    """Run a model's server and one daemon below `root`."""
    machine = Machine(root, env={"CLAUDIUS_PROVIDERS": "", "ANTHROPIC_API_KEY": "sk-ant-canary"})
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


@contextmanager
def limited(size: int, pid: int = 0) -> Iterator[None]:
    """Limit files to `size` bytes for a block: a write that crosses it is cut short, and the next fails as on a full disk."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
