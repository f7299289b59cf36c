"""What `plan` prints: how many units, questions and draws a study takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from routeprism.experiments.planning import plan_study

__all__ = ["run_plan"]


def run_plan(
    run: Path,
    quantity: str,
    *,
    half_width: float | None,
    effect: float | None,
    power: float,
    policy: str | None,
    schedule: str | None,
    model: str | None,
    experiment: str | None,
    arm: str | None,
    questions: Sequence[float],
    draws: Sequence[int],
    as_json: bool,
) -> None:
    """Plan, and print the ways to reach the goal."""
    found = plan_study(
        run,
        quantity,
        half_width=half_width,
        effect=effect,
        power=power,
        policy=policy,
        schedule=schedule,
        model=model,
        experiment=experiment,
        arm=arm,
        questions=questions,
        draws=draws,
    )
    if as_json:
        json.dump({**asdict(found), "sentence": found.sentence}, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    console = Console()
    console.print(found.sentence, highlight=False, markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    alone = found.unit == "question"
    inside = [] if alone else [f"questions per {found.unit}"]
    for heading in (*inside, "draws", f"{found.unit}s"):
        table.add_column(heading, justify="right")
    for way in found.ways:
        drawn = "n/a" if way.draws is None else str(way.draws)
        table.add_row(*([] if alone else [f"{way.questions:.1f}"]), drawn, str(way.units))
    console.print(table)
    units, asked, _ = found.pilot
    spread = found.spread
    console.print(
        f"Pilot: {units} {found.unit}s"
        + ("" if alone else f", {asked} questions")
        + f"; standard deviation between {found.unit}s {spread.unit**0.5:.3f}"
        + ("" if alone else f", between a {found.unit}'s questions {spread.question**0.5:.3f}")
        + (f", between draws {spread.draw**0.5:.3f}" if spread.draw else ""),
        style="dim",
        highlight=False,
        soft_wrap=True,
    )
    for note in found.notes:
        console.print(f"Note: {note}", highlight=False, markup=False, soft_wrap=True)
