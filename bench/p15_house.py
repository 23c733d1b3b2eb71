"""P15: the size of the code base: what one terminal turn enters and calls, what ships, and duplicated rules.

    bench/p15_house.py                      this checkout
    bench/p15_house.py BEFORE AFTER         two checkouts side by side, each with its own .venv, as a Markdown table

Nothing is timed: every figure is counted, and the same on any machine.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from command import Bench, alone
from figures import Figure
from sides import environment

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
OLD_NAMES = frozenset({
    "turnstile", "careful", "brake", "patience", "body", "tending", "bell", "due", "door", "counsel", "company",
    "sight", "hydrating", "sign", "entrance", "substrate", "heads", "in_mind", "grounds", "echo", "encounter",
    "surroundings", "temper", "carrying", "told", "seats", "whole", "deafness", "taking_back", "peers",
})  # fmt: skip
"""Module names that were replaced by the field's standard terms."""

Counts = dict[str, int]


def measure(bench: Bench) -> Iterator[Figure]:
    """Count this checkout."""
    counts = counted(REPOSITORY, bench.home("house"))
    for name, unit in (("modules entered by a turn", "modules"), ("functions called by a turn", "functions")):
        yield Figure(id="P15", name=name, unit=unit, samples=[counts[name]], is_counted=True)
    yield Figure(
        id="P15",
        name="modules shipped",
        unit="modules",
        samples=[counts["modules shipped"]],
        note=f"{counts['lines shipped']:,} lines",
        is_counted=True,
    )


def counted(tree: Path, home: Path) -> Counts:
    """Return every figure of a checkout."""
    return entered(tree, home) | written(tree / "daemon" / "claudius")


def entered(tree: Path, home: Path) -> Counts:
    """Take one turn with the checkout's own code, and count what it enters."""
    python = tree / ".venv" / "bin" / "python"
    more = {"CLAUDIUS_HOME": str(home / "h"), "CLAUDIUS_PROVIDERS": "rehearsal"}
    more["PYTHONPATH"] = str(tree / "daemon")
    argv = [str(python if python.exists() else sys.executable), str(HERE / "house_turn.py")]
    ran = subprocess.run(argv, env=environment(home) | more, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return {
        "modules entered by a turn": len(found["modules"]),
        "functions called by a turn": found["functions"],
        "place of take_turn's module among them": found["modules"].index("cognition/turn.py") + 1,
    }


def written(package: Path) -> Counts:
    """Count the code, without `testing/`."""
    trees = {
        str(path.relative_to(package)): ast.parse(path.read_text("utf-8"))
        for path in sorted(package.rglob("*.py"))
        if "testing" not in path.relative_to(package).parts
    }
    lines = {name: len((package / name).read_text("utf-8").splitlines()) for name in trees}
    cognition = [name for name in trees if name.startswith("cognition/")]
    return {
        "modules shipped": len(trees),
        "lines shipped": sum(lines.values()),
        "modules of cognition": len(cognition),
        "lines of cognition": sum(lines[name] for name in cognition),
        "places that commit a turn": _calls(trees, ("store.turns.commit", "store.commit")),
        "functions of a turn that ask a model": _askers(trees),
        "imports back up inside cognition": _arrows_back(trees),
        "public class names in several modules": _doubles(trees),
        "modules with a name that gave way": sum(Path(name).stem in OLD_NAMES for name in trees),
    }


def _calls(trees: Mapping[str, ast.Module], wanted: tuple[str, ...]) -> int:
    turns = (tree for name, tree in trees.items() if name.startswith(("cognition/", "runtime/")))
    return sum(
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith(wanted)
        for tree in turns
        for node in ast.walk(tree)
    )


def _askers(trees: Mapping[str, ast.Module]) -> int:
    """Count functions of `cognition/` that ask a model: by `provider.complete`, or by a `call` around it."""
    made = (
        node
        for name, tree in trees.items()
        if name.startswith("cognition/")
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFunctionDef)
    )
    calls = ({ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)} for node in made)
    return sum("call" in names or any(name.endswith(".complete") for name in names) for names in calls)


def _arrows_back(trees: Mapping[str, ast.Module]) -> int:
    """Count the imports by which two rooms of `cognition/` import each other: the rarer direction of each pair."""
    arrows: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for name, tree in trees.items():
        if not name.startswith("cognition/"):
            continue
        here = name.removeprefix("cognition/").removesuffix(".py").partition("/")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("claudius.cognition."):
                there = str(node.module).split(".")[2]
                if there != here:
                    arrows[here, there].add((name, str(node.module)))
    return sum(min(len(arrows[a, b]), len(arrows[b, a])) for a, b in list(arrows) if a < b and (b, a) in arrows)


def _doubles(trees: Mapping[str, ast.Module]) -> int:
    places: dict[str, int] = defaultdict(int)
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name] += 1
    return sum(count > 1 for count in places.values())


def main(trees: list[str]) -> None:
    """Print the figures of these checkouts side by side."""
    with tempfile.TemporaryDirectory() as directory:
        found = [counted(Path(tree).resolve(), _made(Path(directory) / str(n))) for n, tree in enumerate(trees)]
    print(f"| | {' | '.join(('before', 'after')[: len(found)] if len(found) < 3 else trees)} |")
    print(f"|---|{'---|' * len(found)}")
    for name in found[0]:
        print(f"| {name} | {' | '.join(f'{one[name]:,}' for one in found)} |")


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    if any(not word.startswith("-") for word in sys.argv[1:]):
        main(sys.argv[1:])
    else:
        alone(__file__)
