"""Print the twelve stories as a page: each line, its appraisal, and what the prompt then said of feeling.

    bench/stories.py [LANGUAGE]

An obedient model appraises each line as a human did (`tests/cases/feeling.json`); everything else is the daemon's own.
The figures judge nothing: read it aloud, and ask whether a person would say so.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from claudius.home import Home
from claudius.perception import Kind
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from minds import Wall, by_tag

CASES = Path(__file__).resolve().parents[1] / "tests" / "cases" / "feeling.json"
HALL, BETWEEN = "rehearsal:t:hall:1", timedelta(minutes=2)
AFTER = "And what goes into a soup?"
"""What the one of whom the story is asks at its end: its prompt shows what the last line left."""


def block(tail: str) -> str:
    """Return what a prompt says of feeling, its markers left out."""
    lines = tail.partition("## Psyche\n")[2].partition("\n## ")[0].splitlines()
    return " ".join(str(json.loads(one)["text"]) for one in lines if one.startswith("{"))


async def told(says: Sequence[Any], of: Sequence[Sequence[str]]) -> AsyncIterator[tuple[str, str, str, str]]:
    """Yield each line of a story: who, what, its appraisal, and what the next prompt said of feeling."""
    clock, appraisal, left = Wall("2026-11-26T10:00:00"), [""], list(of)
    voice = Scripted(default=by_tag(appraisal=lambda _: appraisal[0], acts="none"))
    with tempfile.TemporaryDirectory() as place:
        home = Home(Path(place) / "home")
        home.create()
        settings = {"CLAUDIUS_RUNTIME_FOLLOW": "listen"}  # else nobody whom it overhears is known to it
        async with alive(home, voice, settings=settings, clock=clock, running=clock.running) as soul:
            waiting: tuple[str, str, str] | None = None
            for one in [*says, AFTER]:
                if isinstance(one, dict):
                    clock.passes(hours=one["gap_h"])
                    continue
                name, text = one if isinstance(one, list) else ("Ada", one)
                is_shared, is_answered = isinstance(one, list) or is_crowd(says), name == "Ada"
                wanted = left.pop(0) if is_answered and left else ["nothing"]
                appraisal[0] = next((kind for kind in wanted if " of " in kind), wanted[0])
                asked = len(voice.requests)
                await soul.network.hear(
                    text.replace("{bot}", "Claudius,"),
                    person=name.lower(),
                    conversation=HALL if is_shared else "",
                    is_shared=is_shared,
                    kind=Kind.MENTION if is_shared and is_answered else Kind.MESSAGE,
                )
                clock.passes(seconds=BETWEEN.total_seconds())
                await asyncio.sleep(0.05)
                await soul.idle()
                thought = [request.tail for request in voice.requests[asked:] if request.purpose == "turn"]
                if waiting and (thought or not is_answered):
                    yield *waiting, block(thought[0]) if thought else ""
                waiting = (name, text, appraisal[0] if thought else "overheard")


def is_crowd(says: Sequence[Any]) -> bool:
    """Return whether a story is of several people."""
    return any(isinstance(one, list) for one in says)


async def page(language: str) -> AsyncIterator[str]:
    """Yield the lines of the page."""
    stories: Sequence[Mapping[str, Any]] = [
        one for one in json.loads(CASES.read_text("utf-8"))["rows"] if one["kind"] == "story"
    ]
    for row in stories:
        yield f"\n## {row['id']}: {row['situation']}\n\nA human: {row['right']['then']}.\n"
        async for who, text, appraisal, felt in told(row["input"][language], row["right"]["of"]):
            yield f"- **{who}**: {text}\n  - appraised: `{appraisal}`\n  - then its prompt says: {felt or '(nothing)'}"


async def main(language: str = "en") -> None:
    """Print the page."""
    print(f"# Twelve stories, {datetime.now():%Y-%m-%d}")  # noqa: DTZ005 - for a reader
    async for line in page(language):
        print(line)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
