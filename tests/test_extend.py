"""docs/extend.md and docs/network.md are true: the parts work as they stand; one of the wrong shape is named at once.

So is what docs/claude-code.md says of a session that thinks for the soul, and docs/daimons.md of two souls that talk.
"""

import re
from pathlib import Path

import pytest

from claudius.runtime.adapter import Adapter
from claudius.shape import misfit
from daimons.test_two_souls import free_port
from driven import REPOSITORY, Machine

FILE = re.compile(r"^`~/([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["extend.md network.md", "observers.md", "claude-code.md", "daimons.md"])
def test_the_page_runs_as_it_stands(tmp_path: Path, page: str) -> None:
    """Each part is written, checked, and used through a real command or daemon, in the order of the page."""
    whole = "".join([(REPOSITORY / "docs" / name).read_text("utf-8") for name in page.split()])
    for port in ("3033", "3034"):
        whole = whole.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
    machine = Machine(tmp_path, env={"LOGNAME": "ada", "CLAUDIUS_PROVIDERS": ""})
    machine.ok("status", "--help")
    for name, text in FILE.findall(whole):
        file = machine.user / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.parent.name == "parts":
            file.write_text(text)

    exports = ""
    for block in SHELL.finditer(whole):
        for name, text in FILE.findall(whole[: block.start()]):
            (machine.user / name).write_text(text)
        for part in re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]:
            typed, _, shown = part.partition("\n")
            if typed.startswith("export "):
                exports = f"{typed}; "
                continue
            ran = machine.run("-euo", "pipefail", "-c", exports + typed, command="bash")
            assert (ran.code, "Traceback" in ran.stderr) == (0, False), f"$ {typed}\n{ran.shown}"
            pattern = ".*?".join(re.escape(piece) for piece in shown.strip().split("…"))
            assert re.fullmatch(pattern, ran.stdout.strip(), re.DOTALL), f"$ {typed}\n{ran.shown}"


@pytest.fixture
def owner(tmp_path: Path) -> Machine:
    """Return a machine whose owner writes parts."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada", "CLAUDIUS_PROVIDERS": ""})
    (machine.root / "parts").mkdir()
    (machine.home / "soul" / "processes").mkdir(parents=True)
    (machine.home / "soul" / "steps").mkdir()
    machine.home.chmod(0o700)
    machine.env["PYTHONPATH"] = str(machine.root / "parts")
    return machine


WHOLE = "    name, model = 'own', ''\n    async def aclose(self): ...\n"
PROVIDERS = {
    "no build": ("", "has no build()"),
    "no complete": ("class V:\n" + WHOLE + "def build(loaded, home): return V()", "it has no complete(request)"),
    "no yield": (
        "class V:\n" + WHOLE + "    async def complete(self, request): return 'x'\ndef build(loaded, home): return V()",
        "its complete has to `yield` what it returns",
    ),
    "another signature": (
        "class V:\n" + WHOLE + "    async def complete(self, a, b): yield 'x'\ndef build(loaded, home): return V()",
        "cannot be called as complete(request): missing a required argument: 'b'",
    ),
    "build raises": ("def build(loaded, home): raise KeyError('url')", "KeyError('url') in own.py:1"),
    "import raises": ("1 / 0", "ZeroDivisionError('division by zero') in own.py:1"),
}


@pytest.mark.parametrize("fault", PROVIDERS)
def test_a_provider_of_the_wrong_shape_is_named_by_the_checks(owner: Machine, fault: str) -> None:
    """`config check` names it without a traceback; `doctor` and the first talk say the same, seen with one of them."""
    source, problem = PROVIDERS[fault]
    (owner.root / "parts" / "own.py").write_text(source)
    (owner.home / "config.toml").write_text('providers = ["own"]\n')

    ways = [("config", "check"), ("chat", "--once", "hello"), ("doctor",)][: 3 if fault == "no complete" else 1]
    told = [owner.run(*way) for way in ways]

    assert [ran.code for ran in told] == [78, 78, 1][: len(told)]
    for ran in told:
        assert problem in ran.shown, ran.shown
        assert "docs/extend.md" in ran.shown
        assert "Traceback" not in ran.shown


def test_an_adapter_of_the_wrong_shape_is_named_by_the_checks(owner: Machine) -> None:
    """A network that cannot speak is refused before the daemon hears anything."""
    source = "from claudius.runtime.adapter import PlainAdapter\nclass A(PlainAdapter):\n    name = 'own'\n"
    source += "    async def listen(self, accept): ...\ndef build(loaded, clock): return A()\n"
    (owner.root / "parts" / "own.py").write_text(source)
    (owner.home / "config.toml").write_text('providers = ["rehearsal"]\nadapters = ["own"]\n')

    checked, started = owner.run("config", "check"), owner.run("daemon", "start")

    assert "it has no speak(utterance)" in checked.stdout
    assert "it has no speak(utterance)" in started.stderr
    assert (checked.code, started.code) == (78, 78)
    kept = {"listen": Adapter.listen, "speak": Adapter.speak} | dict.fromkeys(
        ("name", "post_chars", "appears_s", "link")
    )
    assert misfit(type("Alone", (), kept)(), Adapter) == "it has no is_plain"


PROCESSES = {
    "a way to nowhere": (
        '+++\nsteps = ["external_dialogue"]\nafter = "main_proces"\n+++\nHm.',
        "leads to 'main_proces', which is no process; did you mean 'main_process'?",
    ),
    "an unknown step": ('+++\nsteps = ["external_dialog"]\n+++\nHm.', "did you mean 'external_dialogue'"),
    "an unknown heading": (
        '+++\nsteps = ["external_dialogue"]\n+++\nHm.\n\n## external_dialoge\nShort.',
        "## external_dialoge: there is no such step; did you mean 'external_dialogue'",
    ),
    "a heading that it does not ask": (
        '+++\nsteps = ["external_dialogue"]\n+++\nHm.\n\n## internal_monologue\nShort.',
        "## internal_monologue: it does not ask this step",
    ),
    "no words": ('+++\nsteps = ["internal_monologue"]\n+++\nHm.', "it never speaks"),
    "no async": ('+++\npython = "own:plain"\n+++\nHm.', "the function is not `async def`"),
    "another signature": ('+++\npython = "own:narrow"\n+++\nHm.', "cannot be called with (turn, memory)"),
}
CODE = """from claudius.cognition.craft import Ask, cognitive_step, mental_process

@mental_process()
def plain(turn, memory): ...

@mental_process()
async def narrow(turn): ...

@cognitive_step("weighed")
def weighed(): return Ask()
"""


@pytest.mark.parametrize("fault", PROCESSES)
def test_a_process_that_cannot_do_what_it_says_is_named_by_the_checks(owner: Machine, fault: str) -> None:
    """`soul check` names the file, what is wrong in it, and the nearest name; `doctor` does, seen with one of them."""
    text, problem = PROCESSES[fault]
    (owner.root / "parts" / "own.py").write_text(CODE)
    (owner.home / "soul" / "processes" / "desk.md").write_text(text)

    ways = [("soul", "check"), ("doctor",)][: 2 if fault == "an unknown step" else 1]
    told = [owner.run(*way) for way in ways]

    assert [ran.code for ran in told] == [1] * len(told)
    for ran in told:
        assert "desk.md" in ran.stdout
        assert problem in ran.stdout, ran.stdout


MISFITS = {
    "an unknown section": ("## greting\n- Ahoy.", ":1: ## greting is never said", "did you mean 'greeting'?"),
    "an unknown placeholder": ("## greeting\n- Ahoy, $whom.", ":2: $whom is not a placeholder", "$name"),
    "an unknown word of its head": (
        '+++\nsmal_words = ["a"]\n+++\n## greeting\n- Ahoy.',
        "`smal_words`",
        "shipped file",
    ),
    "a line of no kind": ("## greeting\n* Ahoy.", ":2: is not used", "begin it with `- `"),
    "no section": ("Ahoy.", ":1: nothing in it is used", "begin one with `## `"),
}


def test_lines_of_ones_own_that_do_not_fit_are_named_by_the_checks(owner: Machine) -> None:
    """`soul check` names file, line and remedy in one line, `doctor` likewise; a greeting alone is a whole file."""
    own = owner.home / "soul" / "rehearsal.md"
    own.write_text("## greeting\n- Ahoy.\n")
    fine = owner.run("soul", "check")
    for text, problem, remedy in MISFITS.values():
        own.write_text(text)

        checked = owner.run("soul", "check")

        named = [line for line in checked.stdout.splitlines() if "rehearsal.md:" in line]
        assert (fine.code, checked.code, len(named)) == (0, 1, 1), checked.stdout
        assert problem in named[0]
        assert remedy in named[0]
    assert named[0] in owner.run("doctor").stdout


def test_a_step_of_ones_own_is_used_if_ones_code_asks_it(owner: Machine) -> None:
    """A step file that a process's module asks is fine; one that nothing asks is named, with its nearest."""
    (owner.root / "parts" / "own.py").write_text(CODE.replace("def plain", "async def plain"))
    (owner.home / "soul" / "processes" / "desk.md").write_text('+++\npython = "own:plain"\n+++\nHm.')
    step = owner.home / "soul" / "steps"
    (step / "weighed.md").write_text('+++\ntag = "weighed"\nslots = ["what"]\n+++\nWeigh $what.')
    fine = owner.run("soul", "check")
    (step / "weighd.md").write_text('+++\ntag = "weighd"\nslots = ["what"]\n+++\nWeigh $what.')
    unused = owner.run("soul", "check")

    assert fine.code == 0, fine.stdout
    assert "weighd.md" in unused.stdout
    assert "did you mean 'weighed'?" in unused.stdout


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("staus",), "'status'"),
        (("config", "chek"), "'check'"),
        (("users", "show", "Ad"), "'Ada'"),
        (("process", "show", "deepwork"), "'deep_work'"),
        (("soul", "show", "sole.md"), "'soul.md'"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(owner: Machine, typed: tuple[str, ...], meant: str) -> None:
    """Commands, people, processes and files: what was meant is named."""
    owner.ok("chat", "--once", "My name is Ada.", env={"CLAUDIUS_PROVIDERS": "rehearsal"})

    ran = owner.run(*typed)

    assert ran.code in (1, 2)
    assert f"did you mean {meant}" in ran.stderr
