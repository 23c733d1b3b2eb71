"""The bench's own arithmetic: its verdicts, intervals and costs are right before anything is measured."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import command
import cost
import figures

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize(
    ("sense", "floor", "aim", "interval", "verdict"),
    [
        (">=", 4.0, 6.0, (6.1, 7.0), "aim"),
        (">=", 4.0, 6.0, (5.0, 7.0), "ok"),
        (">=", 4.0, 6.0, (3.0, 7.0), "unsure"),
        (">=", 4.0, 6.0, (2.0, 3.9), "MISSED"),
        ("<=", 1.5, 1.2, (1.0, 1.2), "aim"),
        ("<=", 1.5, 1.2, (1.1, 1.3), "ok"),
        ("<=", 1.5, 1.2, (1.4, 1.6), "unsure"),
        ("<=", 1.5, 1.2, (1.51, 1.6), "MISSED"),
        (">=", 0.98, None, (1.0, 1.0), "ok"),
        ("<=", None, 2.3, (2.4, 2.5), "ok"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(
    sense: str, floor: float | None, aim: float | None, interval: tuple[float, float], verdict: str
) -> None:
    """Judging: `aim`, `ok` and `MISSED` need the whole interval on one side; across the floor it is `unsure`."""
    assert figures.Bound(sense, floor, aim).verdict(interval) == verdict


def test_every_bound_stands_once_and_the_page_says_the_same() -> None:
    """Bounds: a script writes none of its own, each one of bounds.toml is read by one, and the page is made from it."""
    texts = {path.name: path.read_text("utf-8") for path in BENCH.glob("p*.py")} | {
        "cx": (BENCH / "cx_cortex.py").read_text("utf-8")
    }
    read = {one for text in texts.values() for one in re.findall(r'"((?:P\d+|CX)\.\w+)', text)}

    assert [name for name, text in texts.items() if " Bound(" in text] == []
    assert read == {key.removesuffix("_cores") for key in figures.bounds()}
    assert command.PAGE.read_text("utf-8") == command.written()


def test_the_interval_holds_the_ratio_and_is_the_same_every_time() -> None:
    """Bootstrap: rounds are drawn in pairs, so noise that both sides share does not change the ratio."""
    anchor = [1.0, 2.0, 1.5, 3.0, 1.2, 2.2, 1.1]
    ours = [2 * one for one in anchor]

    assert figures.bootstrap(ours, anchor) == figures.bootstrap(ours, anchor)
    low, high = figures.bootstrap(ours, anchor)
    assert low <= figures.ratio(ours, anchor) <= high
    assert figures.bootstrap([0.9], [1.0]) == (0.9, 0.9)


def test_shares_are_compared_in_points() -> None:
    """A difference of shares: 0.97 beside 1.00 is three points less, whatever the ratio."""
    assert figures.ratio([0.97], [1.0], "points") == pytest.approx(-3.0)


def test_a_run_that_judges_nothing_says_why_in_every_row() -> None:
    """With `--quick` or an unsteady disk ratios are shown without a verdict.

    An absent peer is named with its remedy.
    """
    bound = figures.Bound(">=", 4.0, 6.0)
    beside = (figures.Beside(name="disk", bound=bound, samples=[1.0]), figures.not_run("claudicle", bound))
    figure = figures.Figure(id="P1", name="turns/s", unit="turns/s", samples=[8.0], beside=beside)

    assert [row.verdict for row in figures.rows(figure)] == ["aim", "not run: give --peer claudicle=PATH"]
    assert figures.rows(figure, "quick")[0].verdict == "not judged: quick"
    assert figures.rows(figure, "quick")[0].ratio == 8.0


def test_the_document_has_the_shape_that_others_read() -> None:
    """JSON: one entry a figure with samples and median; per anchor the ratio, its interval, floor, aim, verdict."""
    bound = figures.Bound(">=", 4.0, 6.0)
    beside = (figures.Beside(name="disk", version="3", bound=bound, samples=[2.0, 2.0]),)
    figure = figures.Figure(id="P1", name="n", unit="u", samples=[8.0, 10.0], beside=beside, note="why")

    document = json.loads(json.dumps(figures.document(figure)))

    assert document == {
        "id": "P1",
        "name": "n",
        "unit": "u",
        "ours": {"median": 9.0, "p99": 10.0, "samples": [8.0, 10.0]},
        "anchors": [{"name": "disk", "version": "3", "median": 2.0, "ratio": 4.5, "ci95": [4.0, 5.0], "floor": 4.0, "aim": 6.0, "verdict": "ok"}],
        "note": "why",
    }  # fmt: skip


def test_the_cost_model_gives_the_published_table() -> None:
    """Cost: the defaults reproduce the design's table, row by row."""
    table = {line[0]: line[1:] for line in cost.table(cost.Terms(), [10, 30, 100])}

    assert table["naive, one call"] == ("14.03 (3,478)", "22.58 (6,328)", "52.51 (16,302)")
    assert table["naive, three calls"][2].startswith("150.32")
    assert table["cache marked over a changing prefix"][1].startswith("27.33")
    assert table["12-turn window, uncached"][2].startswith("20.56")
    assert table["append-only, cached"] == ("6.74 (1,048)", "7.21 (1,202)", "10.06 (2,153)")
    compacted = table["append-only, cached, compaction (24 turns → 6 + 300 tokens)"]
    assert compacted == ("6.74 (1,048)", "7.11 (1,171)", "7.47 (1,291)")
    assert table["cached, three calls"][2].startswith("22.98")


def test_an_unknown_metric_is_a_usage_error() -> None:
    """`--only` with an unknown name ends with 2, and lists the names that exist."""
    ran = subprocess.run(
        [sys.executable, BENCH / "run", "--quick", "--only", "P99"], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 2
    assert "no metric P99: there are P1" in ran.stderr


def test_what_is_counted_is_judged_on_any_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens, bytes and calls are the same on an unsteady disk. A quick run does not judge even those."""
    why = command._unjudged
    timed, counted = (
        figures.Figure(id="P0", name="n", unit="u", samples=[1.0], is_counted=is_counted)
        for is_counted in (False, True)
    )

    assert why(timed, is_quick=False, steady=False) == "disk unsteady"
    assert why(counted, is_quick=False, steady=False) == ""
    assert why(counted, is_quick=True, steady=True) == "quick"
