"""The recorded session of docs/session.md, replayed on a real terminal at two widths."""

from pathlib import Path

import pytest

from session import PAGE, machine_at, page, play


def words(screens: list[list[str]]) -> list[str]:
    """Return the words of some screens, wherever their lines break."""
    return " ".join(line for lines in screens for line in lines).split()


def recorded() -> list[list[str]]:
    """Return the recorded screens."""
    parts = PAGE.read_text("utf-8").split("```text\n")[1:]
    return [part.partition("\n```")[0].split("\n") for part in parts]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_recorded_session_is_what_a_terminal_shows(tmp_path: Path, columns: int) -> None:
    """Setup, greeting, ten lines, a reminder while typing, leaving, coming back: word for word, at both widths.

    At 80 columns the page is the screen line by line. At 120 the words are the same ones in the same order, so that
    none is broken at the edge at either width, and the lines are longer.
    """
    screens = play(machine_at(tmp_path), columns)

    if columns == 80:
        assert page(screens) == PAGE.read_text("utf-8"), "write it anew: .venv/bin/python tests/session.py"
    assert words(screens) == words(recorded())
    assert columns - 20 < max(len(line) for lines in screens for line in lines) <= columns
