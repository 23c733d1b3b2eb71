"""The seed's rules and anti-patterns that can be checked in the source tree, each with its number.

The others are tested with what they rule: 2, 11 and 12 in test_life, 3, 4 and 10 in test_beside, 9 in test_info_score.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from claudius.memory.ledger import format_beliefs
from reflecting import ANN, belief
from tree import PACKAGE, REPOSITORY, calls, dotted, modules


def room(*prefixes: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules of some packages."""
    return ((path, tree) for path, tree in modules() if path.startswith(prefixes))


def test_rule_01_dataclasses_stand_in_models() -> None:
    """Rule 1: the second mind's own values are defined in one file."""
    strays = {
        f"{path}:{node.lineno}"
        for path, tree in room("cortex/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and path != "cortex/models.py"
        and any(
            word in ast.dump(one) for one in (*node.decorator_list, *node.bases) for word in ("dataclass", "Struct")
        )
    }

    assert strays == set()


def test_rule_05_it_keeps_everything_through_the_store() -> None:
    """Rule 5, anti-patterns "calling the database" and "writing files": it opens no file or database itself."""
    forbidden = re.compile(r"(^|\.)(open|write_text|write_bytes|execute|executemany|executescript)$")
    named = {f"{path}: {name}" for path, tree in room("cortex/") for _, name in calls(tree) if forbidden.search(name)}
    imported = {
        f"{path}: {dotted(node)}"
        for path, tree in room("cortex/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("_db", "connection")
    }
    modules_used = {
        f"{path}: {alias.name}"
        for path, tree in room("cortex/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if "sqlite" in alias.name or "sqlite" in (getattr(node, "module", "") or "")
    }

    assert named | imported | modules_used == set()


def test_rule_06_it_has_its_own_log() -> None:
    """Rule 6, anti-pattern "print": neither the second mind nor memory prints."""
    printed = {
        f"{path}:{call.lineno}"
        for path, tree in room("cortex/", "memory/")
        for call, name in calls(tree)
        if name == "print"
    }

    assert printed == set()


def test_rule_07_the_belief_lines_are_exact() -> None:
    """Rule 7: the lines have exactly these bytes, and without beliefs there are none."""
    shown = [
        belief("ann-is-reliable", value="Ann consistently delivers what she says", peer_id=ANN),
        belief("long-answers", value="Readers here skip anything past three paragraphs"),
    ]

    assert format_beliefs(shown) == (
        "- ann-is-reliable (slack:T1:Ann): Ann consistently delivers what she says\n"
        "- long-answers: Readers here skip anything past three paragraphs"
    )
    assert format_beliefs([]) == ""


def test_fr_cx_06_beliefs_keep_to_their_budget() -> None:
    """FR-CX-06: 200 tokens at most, in whole lines, in the given order."""
    many = [belief(f"key-{n}", value="v" * 190) for n in range(20)]

    lines = format_beliefs(many).splitlines()

    assert lines == [f"- key-{n}: {'v' * 190}" for n in range(len(lines))]
    assert sum(len(line) + 1 for line in lines) <= 801


def test_rule_08_information_is_counted_in_one_place() -> None:
    """Rule 8, anti-pattern "computing it in the cortex": only memory/ledger.py calls `compute_info_score`."""
    callers = {
        path for path, tree in modules() for _, name in calls(tree) if name.rpartition(".")[2] == "compute_info_score"
    }

    assert callers == {"memory/ledger.py"}


def test_anti_pattern_a_blocking_cycle() -> None:
    """Anti-pattern "blocking": a cycle runs in its own task, and the first mind awaits only a consultation."""
    awaited = {
        f"{path}: {name}"
        for path, tree in room("cognition/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call)
        for name in (dotted(node.value.func),)
        if "consult" in name or "cortex" in name
    }

    assert awaited == {"cognition/proactive.py: mind.consult"}


def test_the_words_of_the_second_mind_are_files() -> None:
    """Prompts are in soul/, and no module of the second mind holds prose for a model."""
    for name in ("cortex.md", "consult.md", "triage.md", "trust.md"):
        assert (REPOSITORY / "soul" / name).is_file()
    assert not [path for path in (PACKAGE / "cortex").glob("*.py") if "You are " in path.read_text("utf-8")]


@pytest.mark.parametrize("number", range(1, 15))
def test_each_simulation_has_its_test(number: int) -> None:
    """The design's simulations 2 to 14 are tests that carry their number. The first needs a rater."""
    text = "\n".join(path.read_text("utf-8") for path in (REPOSITORY / "tests").rglob("test_*.py"))

    assert re.search(
        rf"def test_simulation_{number:02d}_|def test_simulation_\d\d_and_{number:02d}|_and_{number:02d}_", text
    )
