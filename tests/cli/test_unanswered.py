"""Who is heard and never answered is told so where they would wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from driven import Machine

LINE = "nothing is answered here"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_muted_person_is_not_left_waiting_at_the_terminal(tmp_path: Path, *, is_terminal: bool) -> None:
    """They are told at once that nothing is answered; `why` gives that cause."""
    machine = Machine(tmp_path)
    machine.ok("config", "set", "access.muted", "terminal:local:as-bo")
    if is_terminal:
        with machine.terminal("chat", "--as", "bo") as terminal:
            terminal.until("you › ")
            terminal.type("Are you there?")
            terminal.until(LINE)
            terminal.type("/quit")
            told, why = terminal.rest(), "they are muted"
    else:
        told = machine.ok("chat", "--as", "bo", "--once", "Are you there?").stdout
        why = machine.ok("why").stdout

    assert LINE in told
    assert "is kept, and" not in told
    assert "they are muted" in why
