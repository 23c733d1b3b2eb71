"""The metrics of one process, in the text format of Prometheus; docs/monitoring/ has a dashboard and rules for them.

Everything is read when somebody asks: a turn pays nothing for it but a few counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

import claudius
from claudius.cortex.models import CycleTally
from claudius.errors import StoreError
from claudius.memory.leases import LeaseStore
from claudius.provider import CallTally, Provider
from claudius.runtime.health import Report
from claudius.runtime.lanes import Lanes
from claudius.runtime.process_resources import ProcessResources
from claudius.runtime.turn_log import BUCKETS_S, TurnLog

Values = Mapping[Any, float]
"""The values of one metric by the tuple of its labels."""


def render(
    report: Report,
    lanes: Lanes,
    resources: ProcessResources,
    provider: Provider,
    uptime_s: float,
    share: LeaseStore,
    cortex: CycleTally | None = None,
    beliefs: int = 0,
) -> str:
    """Return every metric of this process, as text; `share` where several processes share the store."""
    families = [
        *_of_report(report),
        *_of_turns(lanes.turn_log),
        *_of_calls(resources.tally),
        _gauge("lanes", "Conversations that have something to do.", {(): lanes.busy}),
        _counter("tool_calls", "How calls of tools ended.", lanes.hands.ended, "tool", "state"),
        _gauge("tool_waiting", "Calls of tools that wait for consent.", {(): lanes.hands.waiting}),
        *(_of_cortex(cortex, beliefs) if cortex else ()),
        *(_of_share(share) if share.is_shared else ()),
        _counter("log_dropped_lines", "Lines that could not be logged.", {(): resources.log_dropped()}),
        _gauge("uptime_seconds", "Seconds since the start.", {(): uptime_s}),
        _gauge(
            "info",
            "What runs.",
            {(claudius.__version__, provider.name, provider.model): 1.0},
            "version",
            "provider",
            "model",
        ),
    ]
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(namespace="claudius", registry=registry)
    registry.register(_Once(families))
    return generate_latest(registry).decode()


def _of_share(share: LeaseStore) -> Iterator[Metric]:
    tally = share.tally
    yield _gauge("lanes_held", "Conversations that this process holds.", {(): tally.held})
    yield _counter("looks", "How often it looked for conversations.", {(): tally.looks})
    yield _counter("lease_losses", "Leases that it did not keep.", {(): tally.lost})
    yield _counter("stale_turns", "Writes that were refused because another process has the lane.", {(): tally.stale})
    yield _counter("late_copies", "Posts that it took down: another process had posted the same.", {(): tally.late})
    yield _counter("batches", "Transactions that wrote.", {(): tally.batches})
    yield _counter("batch_jobs", "What was written in them.", {(): tally.jobs})
    yield _counter("lock_wait_seconds", "For how long transactions waited to begin.", {(): tally.lock_wait_s})
    with suppress(StoreError):
        yield _gauge("store_round_trip_seconds", "How long the server took to answer.", {(): share.round_trip_s()})


def _of_cortex(tally: CycleTally, beliefs: int) -> Iterator[Metric]:
    yield _counter("cortex_cycles", "Cycles of the cortex by what became of them.", tally.cycles, "trigger", "outcome")
    yield _counter("cortex_assessments", "Peers that its cycles assessed.", {(): tally.assessments})
    yield _gauge("cortex_beliefs", "Beliefs that it holds now.", {(): beliefs})
    family = SummaryMetricFamily("claudius_cortex_reflection_seconds", "How long its cycles took.")
    family.add_metric([], sum(tally.cycles.values()), tally.seconds)
    yield family


def _of_calls(tally: CallTally) -> Iterator[Metric]:
    yield _counter("provider_answers", "Replies of models.", tally.answers, "provider", "model", "purpose")
    yield _counter("provider_failures", "Failed attempts to ask a model.", tally.failures, "provider", "error")
    yield _counter("tokens", "Tokens of requests and replies.", tally.tokens, "model", "purpose", "kind")
    yield _counter("cost_usd", "Dollars, where the price is known.", tally.dollars, "model", "purpose")


def _of_turns(turns: TurnLog) -> Iterator[Metric]:
    family = HistogramMetricFamily(
        "claudius_turn_seconds",
        "Seconds from hearing to the last post; of these, for models, and for everything else.",
        labels=["part"],
    )
    for part, durations in turns.durations.items():
        so_far, buckets = 0, []
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), durations.counts, strict=True):
            so_far += count
            buckets.append((bound, float(so_far)))
        family.add_metric([part], buckets, durations.total_s)
    yield family
    yield _counter("apologies", "Apologies by kind.", {(kind,): n for kind, n in turns.apologies.items()}, "kind")


def _of_report(report: Report) -> Iterator[Metric]:
    facts, kept = report.facts, report.facts.kept
    yield _gauge("healthy", "1 = /health says 200.", {(): report.is_well})
    standing = {(one.kind, one.subject): 1.0 for one in report.problems}
    yield _gauge("problem", "1 for each problem that stands now.", standing, "kind", "subject")
    networks = {(name,): one for name, one in facts.networks.items()}
    yield _gauge(
        "network_up", "1 = it is heard.", {key: one.unheard_s is None for key, one in networks.items()}, "network"
    )
    heard = {key: one.heard_s for key, one in networks.items() if one.heard_s is not None}
    yield _gauge("network_heard_seconds", "Seconds since something was heard there.", heard, "network")
    reconnects = {key: one.reconnects for key, one in networks.items()}
    yield _counter("network_reconnects", "How often it was connected again.", reconnects, "network")
    yield _gauge("voice_up", "1 = the last model call did not fail, and no provider rests.", {(): facts.voice.is_well})
    resting = {(one.name,): one.left_s for one in facts.voice.resting}
    yield _gauge("provider_resting_seconds", "For how long a provider is not asked.", resting, "provider")
    yield _gauge("store_up", "1 = the store writes.", {(): not facts.store})
    limits = {(one.budget,): one.limit_usd for one in kept.spending if one.limit_usd}
    yield _gauge("budget_limit_usd", "Dollars that may be spent.", limits, "budget")
    spent = {(one.budget,): one.spent_usd for one in kept.spending}
    yield _gauge("budget_spent_usd", "Dollars that are spent.", spent, "budget")
    for section, counts in kept.counts.items():
        for name, value in counts.items():
            kind = _counter if name == "total" else _gauge
            label = section if name == "total" else f"{section}_{name}"
            yield kind(label, f"As `claudius status` counts it: {section}, {name}.", {(): value})
    ages = {(queue,): (facts.at - kept.waits_since[queue]).total_seconds() if queue in kept.waits_since else 0.0
            for queue in ("inbox", "outbox")}  # fmt: skip
    yield _gauge("queue_age_seconds", "For how long the oldest unfinished row waits.", ages, "queue")
    yield _gauge("archive_lag", "Versions that git does not hold yet.", {(): kept.archive_lag})
    yield _gauge("database_bytes", "Size of the database.", {(): kept.database_bytes})
    yield _gauge("disk_free_bytes", "Free space where the home is.", {(): kept.disk_free_bytes})
    if kept.bytes_per_turn is not None:
        yield _gauge("bytes_per_turn", "What a turn adds to the database.", {(): kept.bytes_per_turn})
    if kept.disk_days_left is not None:
        yield _gauge("disk_days_left", "Days until the disk is full, at the present rate.", {(): kept.disk_days_left})
    if kept.backup_at:
        age_s = (facts.at - kept.backup_at).total_seconds()
        yield _gauge("backup_age_seconds", "Seconds since the newest backup.", {(): age_s})


class _Once(Collector):
    """Passes metric families that are already built to a registry."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield each family."""
        yield from self._families


def _gauge(name: str, says: str, values: Values, *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"claudius_{name}", says, labels=labels), values)


def _counter(name: str, says: str, values: Values, *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"claudius_{name}", says, labels=labels), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> GaugeMetricFamily | CounterMetricFamily:
    for key, value in values.items():
        family.add_metric(key, float(value))
    return family
