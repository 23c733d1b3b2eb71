"""`claudius eval`: play scenes on a whole daemon in virtual time, and count how the soul did."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from claudius.cli.output import json_option, print_result, safe
from claudius.errors import EXIT_FAILED, UsageProblem
from claudius.home import Home

if TYPE_CHECKING:
    from claudius.eval.run import Evaluation

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("eval")
@click.argument("suites", nargs=-1)
@click.option("--provider", default="", help="Who speaks in the scenes; without it, the scripted voice.")
@click.option("--judge", "judge_name", default="", help="PROVIDER/MODEL that answers the judged checks.")
@click.option("--n", "most", type=click.IntRange(0, 10**6), default=0, help="At most this many scenes of each suite.")
@click.option("--seed", type=click.IntRange(0, 10**9), default=0, help="Chooses the scenes and the scripted lines.")
@click.option("--soul", "soul_file", type=FILE, help="Another soul.md.")
@click.option("--against", "earlier", type=FILE, help="An earlier result, to print what changed.")
@click.option("--replay", "recording", type=FILE, help="An earlier result, whose replies are checked again.")
@click.option("--mine", is_flag=True, help="Your own conversations as scenes, shown to you first.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as one Markdown page.")
@click.option("--budget", type=click.FloatRange(min=0), default=1.0, help="Dollars that are never passed (1.00).")
@json_option
def eval_(  # noqa: PLR0913, PLR0917 - the options of the command
    suites: Sequence[str],
    provider: str,
    judge_name: str,
    most: int,
    seed: int,
    soul_file: Path | None,
    earlier: Path | None,
    recording: Path | None,
    out: Path | None,
    budget: float,
    *,
    mine: bool,
    as_json: bool,
) -> int:
    """Measure the soul: scenes with checks, on a whole daemon in virtual time."""
    from msgspec import to_builtins

    from claudius.eval.command import EvalRequest, prepare
    from claudius.eval.report import against, compared, faults, page, read_outcome, table
    from claudius.eval.run import evaluate, is_no_model

    before = read_outcome(earlier) if earlier else None
    asked = EvalRequest(
        suites=tuple(suites),
        provider=provider,
        judge=judge_name,
        most=most,
        seed=seed,
        soul_file=soul_file,
        recording=recording,
        is_mine=mine,
        budget_usd=budget,
    )

    async def measured() -> Evaluation:
        async with prepare(asked, Home.of(os.environ), os.environ, _agreed) as run:
            if before and is_no_model(before.voice) and is_no_model(run.voice_name):
                raise UsageProblem("no model spoke in either result, so nothing of the soul differs: name --provider")
            return await evaluate(run, datetime.now(UTC).isoformat().replace("+00:00", "Z"))

    outcome = asyncio.run(measured())
    differences = against(outcome, before) if before else []
    if out:
        out.write_text(page(outcome, differences), "utf-8")
    lines = [safe(line) for line in (*table(outcome), *compared(differences))]
    document = to_builtins(outcome)
    if before:
        document["against"] = [to_builtins(one) | {"is_none": one.is_none} for one in differences]
    print_result(document, lines, as_json=as_json)
    return EXIT_FAILED if outcome.doubts or any(faults(outcome)) else 0


def _agreed(question: str, needs_person: bool) -> None:  # noqa: FBT001 - the protocol's signature
    """Ask in a terminal whether to go on. Raises: UsageProblem if the answer is no, or if a person is needed."""
    import sys

    if sys.stdin.isatty():
        if not click.confirm(safe(question), err=True):
            raise UsageProblem("nothing was asked, and nothing was spent")
    elif needs_person:
        raise UsageProblem("your own conversations are used only if you say so in a terminal")
    else:
        click.echo(safe(question), err=True)
