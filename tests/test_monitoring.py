"""The dashboard and the alert rules in docs/monitoring/ fit what a running soul really reports."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import aiohttp
import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families

from claudius.config.schema import ModelSettings
from claudius.errors import BadRequest, Overloaded
from claudius.home import Home
from claudius.provider import Usage
from claudius.providers.chain import Chain
from claudius.providers.scripted import Line, Scripted
from claudius.testing.alive import alive
from claudius.tool import Tool, ToolClass
from driven import reply
from tree import REPOSITORY

MONITORING = REPOSITORY / "docs" / "monitoring"
OF_PROMETHEUS = {"up": {"job", "instance"}}
"""What Prometheus itself adds, and the labels that it adds to everything."""
BY_KIND = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}
MAY_BE_ABSENT = {"claudius_disk_days_left", "claudius_backup_age_seconds", "claudius_bytes_per_turn"}
"""What a home of this minute cannot know."""
SHARED = {f"claudius_{name}" for name in (
    "lanes_held", "looks_total", "lease_losses_total", "stale_turns_total", "late_copies_total", "batches_total",
    "batch_jobs_total", "lock_wait_seconds_total", "store_round_trip_seconds",
)}  # fmt: skip
"""What only a process reports that shares its store with others; tests/cli/test_postgres_seen.py looks for each."""


def dashboard() -> Any:
    """Return the dashboard's document."""
    return json.loads((MONITORING / "grafana.json").read_text())


def rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def queries() -> Iterator[str]:
    """Yield each query of both files, variables of the dashboard replaced."""
    for panel in dashboard()["panels"]:
        yield from (one["expr"].replace("$__rate_interval", "5m") for one in panel.get("targets", ()))
    yield from (rule["expr"] for rule in rules())


async def noon(_args: object, _call: object) -> str:
    """Tell the time."""
    return "Noon."


CLOCK = Tool(name="clock", purpose="Tell the time.", cls=ToolClass.LOOK, schema={"type": "object"}, run=noon)


@pytest.fixture
async def reported(home: Home) -> Mapping[str, set[str]]:
    """Return every metric of a soul that answered and failed, with the labels of its samples."""
    paid = Line(deltas=(reply("Yes."),), usage=Usage(input_tokens=9, output_tokens=9, cost_usd=0.01))
    use = '<tool_use>{"tool": "clock", "args": {}}</tool_use>'
    failing = Scripted([Overloaded("busy"), use, paid], default=BadRequest("no"))
    voice = Chain([failing], ModelSettings(retries=1), sleep=_at_once)
    settings = {"CLAUDIUS_BUDGET_DAILY_USD": "1"}
    async with alive(home, voice, settings=settings, tools=lambda: (CLOCK,)) as soul:
        voice._tally = soul.resources.tally
        await soul.network.hear("are you there?")
        await soul.idle()
        await soul.network.hear("and now?")
        await soul.idle()
        soul.network.link.down("gone")
        connector = aiohttp.UnixConnector(path=str(home.socket))
        async with (
            aiohttp.ClientSession(connector=connector) as client,
            client.get("http://localhost/metrics") as answered,
        ):
            text = await answered.text()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for ending in BY_KIND.get(family.type, ("",)):
            found[family.name + ending] = set()
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


async def _at_once(_: float) -> None:
    return


async def test_every_metric_is_ours_by_name(reported: Mapping[str, set[str]]) -> None:
    """Each name begins with `claudius_`, so that it can be told from those of other programs."""
    assert {name for name in reported if not name.startswith("claudius_")} == set()


async def test_every_query_asks_for_what_is_there(reported: Mapping[str, set[str]]) -> None:
    """Each query is valid, and names metrics and labels that a running soul reports."""
    unknown = []
    for query in queries():
        promql_parser.parse(query)
        for name, matchers in re.findall(r"\b(claudius_\w+|up)\b(?:\{([^}]*)\})?", query):
            labels = set(re.findall(r"(\w+)\s*[=!]", matchers)) - {"instance", "job"}
            known = reported.get(name, OF_PROMETHEUS.get(name))
            if known is None and name not in MAY_BE_ABSENT | SHARED:
                unknown.append(name)
            elif known is not None and not labels <= known:
                unknown.append(f"{name}: {labels - known}")
        asked = {label for found in re.findall(r"by \(([^)]*)\)", query) for label in found.split(", ")}
        there = set().union(*(reported.get(name, set()) for name in re.findall(r"claudius_\w+", query)))
        unknown += [f"{query}: by {label}" for label in asked - there - {"instance", "job"}]

    assert unknown == []


async def test_whatever_is_reported_is_shown(reported: Mapping[str, set[str]]) -> None:
    """No metric is counted for no one: the dashboard or a rule uses it, or it is a detail of the process."""
    used = {name for query in queries() for name in re.findall(r"claudius_\w+", query)}
    parts = {name.removesuffix(ending) for name in used for ending in ("_bucket", "_count", "_sum")}
    unused = {
        name
        for name in reported
        if name not in used
        and not name.startswith("claudius_process_")
        and not any(name in (part + "_count", part + "_sum", part + "_bucket") for part in parts)
    }

    assert unused == {
        "claudius_info",
        "claudius_uptime_seconds",
        "claudius_log_dropped_lines_total",
        "claudius_turns_total",
        "claudius_turns_today",
    }


def test_the_dashboard_is_one_that_grafana_reads() -> None:
    """Grafana's own model takes it, and gives it back with every panel and query."""
    document = dashboard()
    read = Dashboard.from_json(document)
    panels = document["panels"]

    assert len(read.panels or ()) == len(panels)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    assert not [(one["title"], other["title"]) for one, other in combinations(panels, 2) if _overlap(one, other)]
    assert {variable["name"] for variable in document["templating"]["list"]} == {"datasource", "instance"}


def _overlap(one: Any, other: Any) -> bool:
    here, there = one["gridPos"], other["gridPos"]
    return all(here[at] < there[at] + there[size] and there[at] < here[at] + here[size] for at, size in ("xw", "yh"))


def test_every_rule_says_what_to_do() -> None:
    """An alert has a severity, a summary, and what to do about it."""
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
