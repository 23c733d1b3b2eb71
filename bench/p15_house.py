"""P15: the size of the code base: what one terminal turn enters and calls, what ships, and what is written twice.

    bench/p15_house.py                      this checkout, beside the bounds of bench/house.toml
    bench/p15_house.py BEFORE AFTER         two checkouts side by side, each with its own .venv, as a Markdown table
    bench/p15_house.py --page               docs/design/house.md, from the bounds

Nothing is timed: every figure is counted, and the same on any machine.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from command import Bench, alone
from figures import Figure
from sides import environment

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
BOUNDS, PAGE = HERE / "house.toml", REPOSITORY / "docs" / "design" / "house.md"
WINGS = ("adapters/slack/", "adapters/discord/", "memory/postgres/", "eval/", "console/", "claude_code/", "testing/")
"""Rooms that only a registry imports: the core works without them."""

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
    return entered(tree, home) | written(tree)


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


def written(repository: Path) -> Counts:
    """Count the source of a checkout. What ships is without `testing/`; the core, without the other wings, too."""
    package = repository / "daemon" / "claudius"
    texts = {str(path.relative_to(package)): path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    shipped = {name: count for name, count in lines.items() if not name.startswith("testing/")}
    outside = (text for name, text in texts.items() if name in shipped and not name.startswith("memory/"))
    store = {name: count for name, count in shipped.items() if name.startswith("memory/")}
    tests = _lines_of_tests(repository)
    return {
        "modules shipped": len(shipped),
        "lines shipped": sum(shipped.values()),
        "lines of the core, without wings": sum(n for name, n in shipped.items() if not name.startswith(WINGS)),
        "lines of the largest module outside memory": max(n for name, n in shipped.items() if name not in store),
        "lines of the largest module of memory": max(store.values()),
        "places of a topic of the store": max(_places(repository, texts).values()),
        "lines outside memory that name leases": sum(
            "leases" in line for text in outside for line in text.splitlines()
        ),
        "modules in a circle of imports": sum(map(len, circles(trees))),
        "places that commit a turn": _calls(trees, ("store.turns.commit", "store.commit")),
        "functions of a turn that ask a model": _askers(trees),
        "loops that ask and repair": _repairs(trees),
        "loops of a lane": _calls(trees, ("inbox.oldest",)),
        "imports back up inside cognition": _arrows_back(trees),
        "public class names in several modules": _doubles({name: trees[name] for name in shipped}),
        "lines of tests": sum(n for name, n in tests.items() if not name.startswith("contracts/")),
        "lines of the store's contracts": sum(n for name, n in tests.items() if name.startswith("contracts/"))
        + sum(n for name, n in lines.items() if name.startswith("testing/store_contract/")),
    }


def _lines_of_tests(repository: Path) -> Counts:
    tests = repository / "tests"
    return {str(path.relative_to(tests)): len(path.read_text("utf-8").splitlines()) for path in tests.rglob("*.py")}


def _places(repository: Path, names: Iterable[str]) -> Counts:
    """Count, for each topic that has SQL and a contract, the files of these and of Python that bear its name."""
    contracts = [Path(name).stem for name in names if name.startswith("testing/store_contract/")]
    contracts += [path.stem for path in (repository / "tests" / "contracts" / "store").glob("*.py")]
    sql = [path.stem for path in (repository / "memory").rglob("*.sql")]
    modules = [Path(name).stem for name in names if name.startswith("memory/") and "/archive/" not in name]
    return {topic: [*modules, *sql, *contracts].count(topic) for topic in {*sql} & {*contracts}}


def circles(trees: Mapping[str, ast.Module]) -> list[list[str]]:
    """Return each set of modules that import each other, in functions and for type checkers included."""
    modules = {
        ("claudius." + name.removesuffix(".py").replace("/", ".")).removesuffix(".__init__"): name for name in trees
    }
    imported: dict[str, set[str]] = {}
    for name, tree in trees.items():
        wanted: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                full = (f"{node.module}.{one.name}" for one in node.names)
                wanted |= {one if one in modules else node.module for one in full}
        imported[name] = {modules[one] for one in wanted & modules.keys()} - {name}
    reached = {name: _reached(name, imported) for name in trees}
    found = {frozenset(one for one in reached[name] if name in reached[one]) for name in trees}
    return [sorted(one) for one in found if one]


def _reached(name: str, imported: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [name]
    while left:
        left += (new := imported[left.pop()] - found)
        found |= new
    return found


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


def _repairs(trees: Mapping[str, ast.Module]) -> int:
    calls = (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(ast.unparse(one.func) == "climb" and any(word.arg == "repair" for word in one.keywords) for one in calls)


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


def bounds() -> dict[str, dict[str, int]]:
    """Return of each figure what it was `before`, the `most` it may be, and until its row has landed, `meanwhile`."""
    found: dict[str, dict[str, int]] = tomllib.loads(BOUNDS.read_text("utf-8"))["figures"]
    return found


def faults(counts: Counts) -> list[str]:
    """Return a line for each figure that is above its bound, and one if docs/design/house.md says others."""
    limits = {name: bound.get("meanwhile", bound["most"]) for name, bound in bounds().items()}
    stale = ["docs/design/house.md: print it anew, with --page"] if PAGE.read_text("utf-8") != page() else []
    return [f"{name}: {counts[name]:,} > {limit:,}" for name, limit in limits.items() if counts[name] > limit] + stale


def page() -> str:
    """Return docs/design/house.md with its table made anew."""
    words = PAGE.read_text("utf-8").partition("\n\n| ")[0]
    made = [f"| {name} | {bound['before']:,} | {bound['most']:,} |" for name, bound in bounds().items()]
    return "\n".join([words, "", "| | before | at most |", "|---|---|---|", *made, ""])


def main(trees: list[str]) -> None:
    """Print the figures of these checkouts side by side; of one, beside the bounds."""
    with tempfile.TemporaryDirectory() as directory:
        found = [counted(Path(tree).resolve(), _made(Path(directory) / str(n))) for n, tree in enumerate(trees)]
    heads = ["before", "after"] if len(found) == 2 else trees
    if len(found) == 1:
        heads = ["before", "at most", "now"]
        kept = bounds()
        found = [{name: kept[name][one] for name in found[0] if name in kept} for one in ("before", "most")] + found
    print(f"| | {' | '.join(heads)} |")
    print(f"|---|{'---|' * len(found)}")
    for name in found[-1]:
        print(f"| {name} | {' | '.join(f'{one[name]:,}' if name in one else '' for one in found)} |")
    if len(trees) == 1:
        sys.exit("\n".join(faults(found[-1])) or None)


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--page"]:
            PAGE.write_text(page(), "utf-8")
        case [word, *_] as words if not word.startswith("-"):
            main(words)
        case [_, *_]:
            alone(__file__)
        case []:
            main([str(REPOSITORY)])
