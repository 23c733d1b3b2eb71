"""The command `bench/run`, and what every `bench/pNN_….py` does when it is run alone."""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import Beside, Bound, Figure, Row, document, failed, not_run, page, rows
from ground import Ground, is_steady, look, probe_fsync
from sides import TESTS, SideFailed

sys.path.append(str(TESTS))  # the test lab, for benches that a loopback server answers

METRICS: dict[str, str] = {
    "P1": "p01_serial",
    "P2": "p01_serial",
    "P3": "p03_growth",
    "P4": "p04_overhead",
    "P5": "p05_first_word",
    "P6": "p06_tokens",
    "P7": "p07_prefix",
    "P8": "p08_year",
    "P9": "p09_head_of_line",
    "P10": "p10_memory",
    "P11": "p11_start",
    "P12": "p12_parser",
    "P13": "p13_archive",
    "P14": "p14_size",
    "P15": "p15_house",
    "P16": "p16_erasure",
    "P17": "p17_console",
    "P18": "p18_failures",
    "P19": "p19_scale",
    "P20": "p20_company",
    "P21": "p21_hands",
    "CX": "cx_cortex",
}
"""A metric is one module with `measure(bench)`, which yields figures."""

ROUNDS, QUICK_ROUNDS = 7, 2
UNSTEADY = "disk unsteady"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "performance.md"
PEERS = ("claudicle", "nanobot", "claude", "before")


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: its rounds, its thoroughness, its peers, and where it may put files."""

    rounds: int
    is_quick: bool
    peers: Mapping[str, Path]
    directory: Path
    """A temporary directory on the measured file system."""
    places: list[int] = field(default_factory=list)

    def home(self, name: str) -> Path:
        """Create a directory that no other side of this run has."""
        self.places.append(0)
        made = self.directory / f"{name}{len(self.places)}"
        made.mkdir()
        return made

    def peer(self, name: str, bound: Bound, drive: Callable[[Path], Beside]) -> Beside:
        """Run a peer if its path was given. A peer that fails is reported as failed."""
        if name not in self.peers:
            return not_run(name, bound)
        try:
            return drive(self.peers[name])
        except (SideFailed, OSError) as error:
            return failed(name, bound, error)


Measure = Callable[[Bench], Iterable[Figure]]


def main(argv: Sequence[str] | None = None, *, only: Sequence[str] | None = None) -> None:
    """Run the requested metrics, print and store the results, and judge them."""
    options = _parser(alone=only is not None).parse_args(argv)
    if options.page:
        PAGE.write_text(written(), "utf-8")
        return
    wanted = only or options.only or list(METRICS)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    with _directory() as directory:
        bench = Bench(rounds, options.quick, dict(options.peer), directory)
        before = look(directory)
        _print_header(before, bench)
        modules = dict.fromkeys(METRICS[name] for name in wanted)
        figures = [figure for module in modules for figure in _measured(module, bench)]
        after = probe_fsync(directory)
    steady = is_steady(before.fsync, after)
    print(f"\nfsync after: p50 {after.p50:.2f} ms, p99 {after.p99:.2f} ms{'' if steady else f' · {UNSTEADY}'}\n")
    unjudged = [_unjudged(figure, is_quick=bench.is_quick, steady=steady) for figure in figures]
    table = [row for figure, why in zip(figures, unjudged, strict=True) for row in rows(figure, why)]
    _print_table(table)
    if options.json:
        metrics = [document(figure, why) for figure, why in zip(figures, unjudged, strict=True)]
        kept = before.json() | {"rounds": bench.rounds, "metrics": metrics}
        kept["machine"]["fsync_ms"] |= {"p50_after": after.p50, "p99_after": after.p99}
        options.json.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if options.gate and any(row.verdict == "MISSED" for row in table):
        sys.exit(1)


def written() -> str:
    """Return docs/design/performance.md with its table made anew from bounds.toml."""
    words = PAGE.read_text("utf-8").partition("\n\n| ")[0]
    return f"{words}\n\n{page()}"


def alone(file: str) -> None:
    """Run the one metric of a file."""
    stem = Path(file).stem
    main(only=[name for name, module in METRICS.items() if module == stem])


def _parser(*, alone: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="end within 2 minutes and judge nothing")
    if not alone:
        parser.add_argument("--only", type=_names, metavar="P1,P7", help=f"of {', '.join(METRICS)}")
    parser.add_argument("--rounds", type=_positive, metavar="N", help=f"after one to warm up (default {ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures as one document")
    parser.add_argument(
        "--page", action="store_true", help="print docs/design/performance.md anew, and measure nothing"
    )
    parser.add_argument("--gate", action="store_true", help="exit 1 if a floor is missed")
    parser.add_argument(
        "--peer", type=_peer, action="append", default=[], metavar="NAME=PATH", help=f"of {', '.join(PEERS)}"
    )
    if alone:
        parser.set_defaults(only=None)
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip().upper() for name in text.split(",")]
    for name in names:
        if name not in METRICS:
            raise argparse.ArgumentTypeError(f"no metric {name}: there are {', '.join(METRICS)}")
    return names


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return int(text)


def _peer(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if name not in PEERS or not Path(path).exists():
        raise argparse.ArgumentTypeError(f"expected NAME=PATH with NAME one of {', '.join(PEERS)} and an existing PATH")
    return name, Path(path).resolve()


def _measured(module: str, bench: Bench) -> list[Figure]:
    print(f"\n{module} …", flush=True)
    found = []
    measure: Measure = importlib.import_module(module).measure
    for figure in measure(bench):
        print(f"  {figure.name}: {_amount(statistics.median(figure.samples))} {figure.unit}", flush=True)
        for line in filter(None, figure.note.splitlines()):
            print(f"      {line}")
        for row in rows(figure):
            print(f"      beside {' '.join(_cells(row)[3:6])}", flush=True)
        found.append(figure)
    return found


def _unjudged(figure: Figure, *, is_quick: bool, steady: bool) -> str:
    """Return why a figure is not judged, or an empty text if it is."""
    if is_quick:
        return "quick"
    return "" if steady or figure.is_counted else UNSTEADY


@contextmanager
def _directory() -> Any:
    path = Path(tempfile.mkdtemp(prefix="cb-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _print_header(ground: Ground, bench: Bench) -> None:
    cores = ",".join(map(str, ground.cores))
    versions = " · ".join(f"{name} {version}" for name, version in ground.versions.items())
    print(f"claudius bench · commit {ground.commit} · {ground.at} · {bench.rounds} rounds after 1 to warm up")
    print(f"{ground.cpu} · cores {cores} · {ground.ram_mb} MiB · governor {ground.governor} · load {ground.load:.2f}")
    print(f"file system {ground.file_system} · fsync p50 {ground.fsync.p50:.2f} ms, p99 {ground.fsync.p99:.2f} ms")
    print(versions)
    for name, path in bench.peers.items():
        print(f"peer {name}: {path}")


def _print_table(table: Sequence[Row]) -> None:
    head = ("id", "name", "ours", "anchor", "ratio", "95 % interval", "floor", "aim", "verdict")
    cells = [head, *(_cells(row) for row in table)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    figure, beside = row.figure, row.beside
    ours = f"{_amount(statistics.median(figure.samples))} {figure.unit}"
    if beside is None:
        return (figure.id, figure.name, ours, "–", "–", "–", "–", "–", row.verdict)
    theirs = f"{beside.name} {_amount(statistics.median(beside.samples))}" if beside.samples else beside.name
    unit = " pt" if beside.compare == "points" else "×"
    return (
        figure.id,
        figure.name,
        ours,
        theirs,
        f"{row.ratio:.3g}{unit}" if row.ratio is not None else "–",
        f"{row.interval[0]:.3g} … {row.interval[1]:.3g}" if row.interval else "–",
        beside.bound.shown(beside.bound.floor),
        beside.bound.shown(beside.bound.aim),
        row.verdict,
    )


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
