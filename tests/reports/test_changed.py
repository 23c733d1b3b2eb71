"""What a turn changed, as sentences: the owner reads no JSON and no names of ours."""

from typing import Any

import pytest

from claudius.reports.conversations import changed


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"process": {"from": "main_process", "to": "deep_work"}}, ["The conversation went from main process to deep work."]),
        ({"mood": "engaged"}, ["The mood is now engaged."]),
        (
            {"soul_state": {"currentTopic": "her daughter's name", "openTasks": ["a", "b"]}},
            ["Current topic from now on: “her daughter's name”.", "Open tasks from now on: “a; b”."],
        ),
        (
            {"user_model": {"result": "stored", "person": "terminal:local:ada", "version": 2, "note": "Likes tea."}},
            ["Its portrait of them has a version 2: Likes tea."],
        ),
        ({"user_model": {"result": "refused:tainted"}}, ["A change of the user model was refused: tainted."]),
        ({"soul_state": {"result": "refused:check"}, "user_model": {"result": "same"}}, []),
        ({"own_note": {"isOpen": True, "by": None}}, ["Own note: is open yes, by none."]),
    ],
)  # fmt: skip
def test_a_change_is_told_in_a_sentence(changes: dict[str, Any], told: list[str]) -> None:
    """Each change is a sentence; what was looked at and kept is none."""
    assert [*changed(changes)] == told
