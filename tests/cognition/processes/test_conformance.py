"""The conformance cases are complete: each of the 54 has a test, and the docs list those that others fail."""

import re
from pathlib import Path

from tree import REPOSITORY

CASES = set(range(1, 56)) - {48}
"""48 is about tools, and the soul has none."""


def borne() -> dict[int, list[str]]:
    """Return the tests of each case number."""
    found: dict[int, list[str]] = {}
    for file in Path(__file__).parent.glob("test_*.py"):
        for name, numbers in re.findall(r"def (test_((?:c\d\d_)+)\w+)", file.read_text("utf-8")):
            for number in re.findall(r"c(\d\d)_", numbers):
                found.setdefault(int(number), []).append(name)
    return found


def test_every_case_has_its_test() -> None:
    """Each of the 54 cases has a test with its number, and every number in a test's name is a case."""
    assert set(borne()) == CASES


def test_the_docs_name_existing_cases_only() -> None:
    """Every case that docs/design/open-souls.md lists is in this suite."""
    text = (REPOSITORY / "docs" / "design" / "open-souls.md").read_text("utf-8")
    listed = {int(number) for row in re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE) for number in row.split(",")}

    assert listed
    assert listed <= set(borne())
