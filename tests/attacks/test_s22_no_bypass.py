"""S22, the part that reads the source tree: nothing asks a model's tools to skip their own permissions."""

import re

from tree import texts

BYPASS = re.compile("bypass[P]ermissions|dangerously[-]skip-permissions")


def test_s22_nothing_in_the_tree_bypasses_permissions() -> None:
    """No file names the mode or the flag that makes an allow-list restrict nothing."""
    found = [f"{path}: {match[0]}" for path, text in texts() for match in BYPASS.finditer(text)]

    assert found == []
