"""The repository as the project's own tests read it: its files, its modules, their syntax."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "daemon" / "claudius"


@cache
def tracked() -> tuple[Path, ...]:
    """Return every file that is, or is about to be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (REPOSITORY / name for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in paths if path.is_file())


def texts() -> Iterator[tuple[str, str]]:
    """Yield each text file by its path in the repository."""
    for path in tracked():
        try:
            yield str(path.relative_to(REPOSITORY)), path.read_text("utf-8")
        except UnicodeDecodeError:
            continue


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Yield each module of the package by its path in it, parsed."""
    paths = sorted(path for path in PACKAGE.rglob("*.py"))
    return tuple((str(path.relative_to(PACKAGE)), ast.parse(path.read_text("utf-8"))) for path in paths)


def python_files() -> Iterator[tuple[str, ast.Module]]:
    """Yield each Python file of the repository by its path in it, parsed."""
    for path in tracked():
        if path.suffix == ".py":
            yield str(path.relative_to(REPOSITORY)), ast.parse(path.read_text("utf-8"))


def dotted(node: ast.expr) -> str:
    """Return a name or attribute as it appears in the source: `yaml.load`; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}".removeprefix(".")
        case _:
            return ""


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Yield each call with the name it calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)
