"""The first evening with a model, through the real command: what it cost, what failed, and who speaks plainly."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from case_rows import Row, rows
from driven import Machine
from lab.loopback.model import MODEL, ModelServer


def _machine(root: Path, server: ModelServer, provider: str = "openai_compat", **more: str) -> Machine:
    keyed = {"ANTHROPIC_API_KEY": "sk-ant-canary", "ANTHROPIC_BASE_URL": server.url, "CLAUDIUS_ANTHROPIC_MODEL": MODEL}
    there = {"CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1", "CLAUDIUS_OPENAI_MODEL": MODEL}
    return Machine(root, {"CLAUDIUS_PROVIDERS": provider, **keyed, **there, **more})


@pytest.mark.parametrize("row", rows("newcomer", "any", only="unknown-price"))
async def test_an_unknown_price_is_unknown_and_cache_writes_are_counted(tmp_path: Path, row: Row) -> None:
    """`usage` says so for each row and the total; what was written to the cache has its column, and is part of "in"."""
    async with ModelServer(default="<external_dialogue>Good day.</external_dialogue>") as server:
        machine = _machine(tmp_path, server, "anthropic_api")
        await asyncio.to_thread(machine.ok, "chat", "--once", "hello")
        written = server.asked[0].counted.write_5m + server.asked[0].counted.write_1h
        shown = (await asyncio.to_thread(machine.ok, *row.input["says"][0].removeprefix("$ claudius ").split())).stdout
        found = (await asyncio.to_thread(machine.ok, "usage", "--json")).json["total"]

    row.knows_only("must", "never")
    assert not [one for one in row.right["never"] if re.search(one, shown)]
    heads, *lines = [re.split(r"\s{2,}", line.strip()) for line in shown.splitlines()]
    assert [dict(zip(heads, line, strict=True))["cost"] for line in lines] == ["unknown", "unknown"]
    total = dict(zip(heads, lines[-1], strict=True))
    assert written > 0
    assert total["written"] == f"{written:,}"
    assert total["in"] == f"{found['input_tokens'] + found['cache_read_tokens'] + found['cache_write_tokens']:,}"
    assert (found["cost_usd"], found["unpriced"]) == (None, 1)
