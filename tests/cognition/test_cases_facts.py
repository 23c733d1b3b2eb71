"""What people say of themselves: shown as a fact where it bears on what is heard, and no longer once it is taken back."""

from __future__ import annotations

import json

import pytest

from case_rows import Row, rows
from claudius.home import Home
from claudius.memory.facts import KEYS
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from minds import Clock, by_tag, minds, say

_ACTS_TEXT = """
    diet medicine couple trade meeting phone until twice car-de sister-de shop-es flat-fr violin-it
    hockey-nl city-pl city-ru city-ja work-zh city-ar work-pt not-me kein-de no-es quote-landlord im-tom
    mo joana-de mara-pt anais-fr begona-es yulia-ru tanaka-ja dutch berlin-de
    birthday wedding six exam geburtstag-de forget-coriander meat june
"""
ACTS = _ACTS_TEXT.split()
"""What no pattern can read: the issue that lets a model read facts deletes this list."""


def remembered(request: Request) -> list[str]:
    """Return the texts of the lines of memory in a prompt, with what was said before each."""
    records = [json.loads(line) for line in request.tail.splitlines() if line.startswith('{"kind"')]
    lines = [line for one in records if one["kind"] == "memory" for line in one["lines"]]
    return [line[part] for line in lines for part in ("before", "text") if part in line]


@pytest.mark.parametrize("row", rows("facts", "fact", later=ACTS))
async def test_a_fact_is_in_force_until_it_is_taken_back(home: Home, row: Row) -> None:
    """What holds is shown as a fact, what was ended, denied, quoted or supposed is not; words said are still found."""
    row.knows_only("in_force", "ended", "never_in_force", "name", "until", "found_by", "deleted")
    holds, ended = row.right["in_force"], row.right.get("ended", ())
    never = row.right.get("never_in_force", ())
    clock, voice = Clock(), Scripted(default=by_tag())
    async with minds(home, voice, clock=clock) as soul:
        for line in row.input["says"]:
            await say(soul, line)
            clock.forward(days=14)
        clock.forward(days=7)
        asks = " ".join([*[words for _, words in (*holds, *ended)], *never, *row.input["says"]])
        await soul.network.hear(f"What of {asks}?", conversation="rehearsal:t:dm-ana:later")
        await soul.network.until_visible(len(row.input["says"]) + 1)
        await soul.idle()
        found = soul.records().person(row.right.get("found_by", "Ana"))
    lines = remembered(voice.requests[-1])
    facts = [line for line in lines if line.partition(": ")[0] in KEYS and ": " in line]
    said = [line for line in lines if line not in facts]

    assert [words for _, words in holds if not any(words in fact for fact in facts)] == []
    assert [words for _, words in ended if any(words in fact for fact in facts)] == []
    assert [words for _, words in ended if not any(words in line for line in said)] == []
    assert [words for words in never if any(words in fact for fact in facts)] == []
    assert found, "whoever told a name is found by it"
    assert {"until", "deleted"}.isdisjoint(row.right), "a pattern knows no end and deletes nothing"
    assert "name" not in row.right or not [fact for fact in facts if fact.startswith("name: ")]
