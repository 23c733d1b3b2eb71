"""The bench of memory on the public set of long conversations."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import locomo
import prefeval
from claudius.errors import UsageProblem
from locomo import read

LOCOMO = [
    {
        "sample_id": "conv-0",
        "conversation": {
            "speaker_a": "Ada",
            "session_2_date_time": "10:00 am on 9 May, 2023",
            "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "The crane came.", "blip_caption": "a red crane"}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "I ordered a crane."}, {"speaker": "Bo", "dia_id": "D1:2", "text": "A big one?"}],
        },
        "qa": [
            {"question": "What did Ada order?", "answer": "a crane", "evidence": ["D1:1"], "category": 4},
            {"question": "When did it come?", "answer": "9 May", "evidence": ["D2:1; D1:1"], "category": 2},
            {"question": "Who painted it?", "adversarial_answer": "Bo", "evidence": ["D9:9"], "category": 5},
        ],
    }
]  # fmt: skip


def test_eval_u9_the_public_set_is_read(tmp_path: Path) -> None:
    """U9: sessions in their order, dated, with captions; evidence by message; unanswerable questions are marked."""
    file = tmp_path / "set.json"
    file.write_text(json.dumps(LOCOMO), "utf-8")

    (conversation,) = read(file)

    assert [one.id for one in conversation.messages] == ["D1:1", "D1:2", "D2:1"]
    assert f"{conversation.messages[0].at:%Y-%m-%d %H:%M}" == "2023-05-08 13:56"
    assert (conversation.messages[2].text, conversation.messages[2].picture) == ("The crane came.", "a red crane")
    assert [(one.evidence, one.is_answerable) for one in conversation.questions] == [
        (("D1:1",), True),
        (("D2:1", "D1:1"), True),
        ((), False),
    ]
    file.write_text("[{}]", "utf-8")
    with pytest.raises(UsageProblem, match="the set's own JSON file"):
        read(file)


def test_memory_e1_the_bench_measures_the_public_set_by_its_path(tmp_path: Path) -> None:
    """E1, E3: each conversation is lived and asked about; the figures are printed, for each and for all."""
    file = tmp_path / "set.json"
    file.write_text(json.dumps(LOCOMO), "utf-8")

    first, every = measured(file)

    assert (first["name"], every["name"]) == ("conv-0", "all")
    assert (every["questions"], every["unanswerable"]) == (2, 1)
    assert every["evidence"] >= 0.5
    assert every["found"] >= every["evidence"]
    overheard = measured(file, "--overheard")[-1]
    assert overheard["evidence"] == every["evidence"]


def measured(file: Path, *more: str) -> list[dict[str, Any]]:
    """Return what the bench prints of a file."""
    command = [sys.executable, locomo.__file__, str(file), *more, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def test_memory_prefeval_a_preference_stands_by_a_word_or_by_its_keys(tmp_path: Path) -> None:
    """Without keys a preference stands where a word is shared; with keys where none is, and only those are asked."""
    data = tmp_path / "benchmark_dataset"
    (data / "explicit_preference").mkdir(parents=True)
    pairs = [
        {"preference": "I avoid crowded hotels.", "question": "Which hotels are good in Rome?"},
        {"preference": "I can't stand spicy dishes.", "question": "Where should we eat in Bangkok?"},
    ]
    others = [{"preference": f"I sort box {n}, {'slowly, ' * 30}", "question": f"Box {n}?"} for n in range(9)]
    (data / "explicit_preference" / "travel.json").write_text(json.dumps([*pairs, *others]), "utf-8")
    said = [{"conversation": [{"role": "user", "content": f"Line {n} of a parser."} for n in range(4)]}]
    (data / "filtered_inter_turns.json").write_text(json.dumps(said), "utf-8")
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({pairs[1]["preference"]: ["restaurant", "eat", "Thai"]}), "utf-8")

    def measured(*more: str) -> dict[str, Any]:
        command = [sys.executable, prefeval.__file__, str(tmp_path), *more, "--json"]
        found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return found

    without = measured()
    assert without["asked"] == 11
    assert 0.8 <= without["stood"] <= 1.0
    assert measured("--keys", str(keys)) == {"asked": 1, "stood": 1.0}
