"""S20: our secrets are in no prompt, log, git object, database, argv, reply or traceback."""

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from claudius.config.load import SECRETS
from driven import Machine, Ran, reply
from lab.loopback.model import ModelServer

SHAPES = {"ANTHROPIC_API_KEY": "sk-ant-api03-", "SLACK_BOT_TOKEN": "xoxb-", "SLACK_APP_TOKEN": "xapp-1-"}
CANARIES = {name: f"{SHAPES.get(name, '')}canary-{number}-4f1c9e07b6" for number, name in enumerate(SECRETS)}
TELLTALE = "4f1c9e07b6"
"""Every canary contains this text, and nothing else does."""

PERSON = "terminal:local:ada"
ABOUT_ADA = reply(
    "Well met, Ada.",
    user_model_check="true",
    user_model_update="# Ada\n\n## Persona\n- Builds bridges.",
    model_change_note="She told me her trade.",
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine whose environment and `.env` hold every kind of secret, with the most verbose logging."""
    machine = Machine(tmp_path, env={"CLAUDIUS_LOG_LEVEL": "DEBUG"})
    names = sorted(CANARIES)
    machine.env |= {name: CANARIES[name] for name in names[::2]}
    machine.home.mkdir(mode=0o700)
    dotenv = machine.home / ".env"
    dotenv.touch(mode=0o600)
    dotenv.write_text("".join(f'{name}="{CANARIES[name]}"\n' for name in names[1::2]))
    return machine


def _everything(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield everything that was written anywhere, with git's objects unpacked. Only the owner's `.env` is left out."""
    for path in machine.files():
        if path.is_file() and path != machine.home / ".env":
            yield str(path), path.read_bytes()
    memory = machine.home / "memory"
    if (memory / ".git").exists():
        objects = ["git", "-C", str(memory), "cat-file", "--batch-all-objects", "--batch", "--unordered"]
        yield "git objects", subprocess.run(objects, capture_output=True, check=True).stdout


def _assert_kept(machine: Machine, *ran: Ran) -> None:
    for one in ran:
        assert TELLTALE not in one.shown, one.args
    told = [where for where, content in _everything(machine) if TELLTALE.encode() in content]
    assert told == []


def _read_all(machine: Machine) -> list[Ran]:
    """Run every command that reads."""
    (conversation,) = machine.ok("conversations", "list", "--json").json
    shown = machine.ok("conversations", "show", conversation["conversation"], "--json").json
    turns = [entry["turn"] for entry in shown["entries"]]
    asked = [
        ("status",), ("status", "--json"), ("doctor",), ("doctor", "--json"), ("doctor", "--security"),
        ("config", "show"), ("config", "show", "--json"), ("config", "check"), ("soul", "show"), ("soul", "check"),
        *(("config", "get", name) for name in SECRETS), ("state", "show"), ("conversations", "list"),
        ("conversations", "show", conversation["conversation"]), ("users", "list"), ("users", "show", PERSON),
        ("users", "log", PERSON), ("users", "log", PERSON, "--diff"), ("users", "log", PERSON, "--blame"), ("usage",),
        ("why", turns[-1]), ("why", turns[-1], "--json"), ("replay", turns[-1]),
    ]  # fmt: skip
    return [machine.run(*args) for args in asked]


def test_s20_nothing_told_to_a_model_kept_or_printed_holds_a_secret(machine: Machine) -> None:
    """After two turns and every reading command, no prompt, log, row, git object or printed line holds a secret."""
    machine.scripted(ABOUT_ADA, reply("So it is."))

    said = [machine.ok("chat", "--once", "My name is Ada."), machine.ok("chat", "--once", "What is my name?", "--json")]

    assert "Ada" in machine.requests.read_text()
    assert (machine.home / "memory" / ".git").is_dir()
    _assert_kept(machine, *said, *_read_all(machine))


@pytest.mark.slow
def test_s20_no_child_inherits_a_secret(machine: Machine) -> None:
    """The commands that we start see no secret, neither in their arguments nor in their environment."""
    seen = machine.root / "children"
    machine.shim("git", f'{{ tr "\\0" "\\n" </proc/$$/cmdline; env; }} >>{seen}')
    machine.scripted(ABOUT_ADA)

    machine.ok("chat", "--once", "My name is Ada.")

    assert "git" in seen.read_text()
    assert TELLTALE not in seen.read_text()


@pytest.mark.slow
async def test_s20_a_key_goes_to_its_own_server_in_the_header_alone(machine: Machine) -> None:
    """The key stands in the provider's header alone, not in body or path, and no other secret is sent."""
    async with ModelServer(default=ABOUT_ADA) as server:
        url = f"http://127.0.0.1:{server.port}"
        machine.env |= {"CLAUDIUS_PROVIDERS": "anthropic_api", "ANTHROPIC_BASE_URL": url}
        ran = await asyncio.to_thread(machine.ok, "chat", "--once", "My name is Ada.")

        assert server.calls
        for call in server.calls:
            assert TELLTALE not in call.path
            assert TELLTALE.encode() not in call.raw
            told = {name for name, value in call.headers.items() if TELLTALE in value}
            assert {name.lower() for name in told} <= {"x-api-key", "authorization"}
            others = [canary for name, canary in CANARIES.items() if name != "ANTHROPIC_API_KEY"]
            assert not any(canary in value for canary in others for value in call.headers.values())
    _assert_kept(machine, ran)


@contextmanager
def _server_that_tells_on_us(status: int) -> Iterator[str]:
    """Return the URL of a server whose every error repeats the key that it was sent."""

    class Telltale(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            key = self.headers.get("x-api-key") or self.headers.get("authorization")
            body = f'{{"type":"error","error":{{"type":"api_error","message":"not you: {key}"}}}}'.encode()
            self.send_response(status, f"not you: {key}")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815 - the library's name

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Telltale)
    thread = threading.Thread(target=server.serve_forever, name="telltale")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 500])
@pytest.mark.parametrize("voice", ["anthropic_api", "openai_compat"])
def test_s20_an_error_that_repeats_the_key_is_not_repeated(machine: Machine, voice: str, status: int) -> None:
    """An error text is untrusted: if it holds our key, log, reply, row and `doctor` show it without the key."""
    with _server_that_tells_on_us(status) as url:
        machine.env |= {
            "CLAUDIUS_PROVIDERS": voice,
            "CLAUDIUS_MODEL_RETRIES": "0",
            "CLAUDIUS_RUNTIME_PATIENCE_S": "0.01",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDIUS_OPENAI_BASE_URL": f"{url}/v1",
            "CLAUDIUS_OPENAI_MODEL": "some-model",
        }
        said = machine.run("chat", "--once", "Hello?")
        told = machine.run("doctor", "--live")

    assert said.code == 75, said.shown
    assert "model" in told.shown
    _assert_kept(machine, said, told, machine.run("status"))


BOOM = """
class Voice:
    name = model = "boom"

    def __init__(self, key):
        self.key = key

    async def complete(self, request):
        raise RuntimeError("cannot use " + self.key)
        yield

    async def aclose(self):
        pass


def build(loaded, home):
    voice = Voice(loaded.secret("ANTHROPIC_API_KEY"))
    if PLACE == "build":
        raise RuntimeError("cannot use " + voice.key)
    return voice
"""


@pytest.mark.parametrize("place", ["turn", "build"])
def test_s20_a_traceback_is_shown_without_secrets(machine: Machine, place: str) -> None:
    """If a third-party plug-in raises an error with our key in it, the traceback is kept and shown without the key."""
    (machine.root / "boom.py").write_text(f"PLACE = {place!r}\n{BOOM}")
    machine.env |= {"CLAUDIUS_PROVIDERS": "boom", "PYTHONPATH": str(machine.root)}

    ran = machine.run("chat", "--once", "Hello?")

    assert ran.code != 0
    assert "RuntimeError" in ran.shown + machine.log.read_text()
    _assert_kept(machine, ran)


def test_s20_a_secret_that_the_model_says_is_withheld(machine: Machine) -> None:
    """However the model learned it, a secret that we hold is neither said nor written down anywhere."""
    key = CANARIES["ANTHROPIC_API_KEY"]
    machine.scripted(
        reply(
            f"Your key is {key}, keep it safe.",
            user_model_check="true",
            user_model_update=f"# Ada\n\n## Persona\n- Has the key {key}.",
            model_change_note=f"Learned {key}.",
            soul_state_check="true",
            soul_state_update=f"currentTopic: {key}",
        )
    )
    machine.env["CLAUDIUS_SOUL_STATE_INTERVAL"] = "1"

    said = machine.ok("chat", "--once", "Say it.", "--json")

    assert said.json["reply"]
    assert TELLTALE not in said.shown
    assert TELLTALE not in machine.log.read_text()
    files = {where: content for where, content in _everything(machine) if "/memory/" in where or where == "git objects"}
    assert [where for where, content in files.items() if TELLTALE.encode() in content] == []
    assert TELLTALE not in machine.ok("state", "show", "--all", "--json").shown


def test_s20_a_secret_is_not_streamed_before_it_is_withheld(machine: Machine) -> None:
    """A streamed reply hides a secret as a whole one does: no identifying part of the key reaches the screen."""
    key = CANARIES["ANTHROPIC_API_KEY"]
    whole = reply(f"Your key is {key} and that is that.")
    machine.scripted({"deltas": [whole[at : at + 3] for at in range(0, len(whole), 3)]})

    with machine.terminal("chat") as terminal:
        terminal.until("you › ")
        terminal.type("Say it.")
        terminal.until("you › ")

        assert "canary" not in terminal.shown
        assert TELLTALE not in terminal.shown


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.toml", f'anthropic_api_key = "{TELLTALE}"\n'),
        ("config.toml", f'[anthropic]\napi_key = "{TELLTALE}"\n'),
        ("config.toml", f"[anthropic]\napi_key = {TELLTALE}\n"),
        (".env", f"ANTHROPIC_API_KEY: {TELLTALE}\n"),
        (".env", f"sk-ant-{TELLTALE}\n"),
    ],
)
def test_s20_a_secret_in_the_wrong_place_is_refused_unseen(tmp_path: Path, file: str, content: str) -> None:
    """A secret among the settings, or in an unreadable line, is named by its place and never by its value."""
    machine = Machine(tmp_path)
    machine.home.mkdir(mode=0o700)
    (machine.home / file).touch(mode=0o600)
    (machine.home / file).write_text(content)

    for args in (("chat", "--once", "Hello"), ("config", "check", "--json"), ("doctor",), ("status",)):
        ran = machine.run(*args)

        assert ran.code in (1, 78), ran.shown
        assert file in ran.shown
        assert TELLTALE not in ran.shown


def test_s20_an_env_file_that_others_can_read_is_refused(machine: Machine) -> None:
    """A `.env` wider than 0600 stops everything with exit 78 and the command that fixes it."""
    (machine.home / ".env").chmod(0o640)

    ran, check = machine.run("chat", "--once", "Hello?"), machine.run("config", "check", "--json")

    assert (ran.code, check.code) == (78, 78)
    assert "chmod 600" in ran.stderr
    assert check.json["problems"][0]["fix"].startswith("run: chmod 600")
    assert TELLTALE not in ran.shown


def test_s20_a_secret_is_not_set_as_a_setting(machine: Machine) -> None:
    """`config set` refuses a secret, names `.env`, and writes nothing."""
    before = (machine.home / ".env").read_bytes()

    ran = machine.run("config", "set", "ANTHROPIC_API_KEY", CANARIES["ANTHROPIC_API_KEY"])

    assert ran.code == 78
    assert ".env" in ran.stderr
    assert (machine.home / ".env").read_bytes() == before
    _assert_kept(machine, ran)
