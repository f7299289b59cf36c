"""Write the figures of the experiments' pages: `make docs-figures`, about a minute.

They are charts of the report, from runs on the sample; the pages show the commands. Those of long
histories are from LoCoMo, and are left as they are where ROUTEPRISM_DATA is not set.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import routeprism
from routeprism.report import write_charts

IMAGES = Path(__file__).parents[1] / "docs" / "images"

Call = tuple[Callable[..., Any], tuple[str, ...], dict[str, Any]]

ASKED: dict[str, Any] = {"models": ["reader"], "draws": 2}
FIGURES: dict[str, tuple[str, Call]] = {
    "restoration": (
        "restoration-focal-replay-reader",
        (routeprism.restore, ("sample", "focal"), {"models": ["reader"]}),
    ),
    "mechanism": (
        "mechanism-J-focal",
        (
            routeprism.audit,
            ("sample", "focal"),
            {"mechanism": True, "schedules": ["replay", "half-swap", "odd-even"]},
        ),
    ),
    "display": (
        "display-memochat-replay-reader",
        (routeprism.audit, ("sample", "memochat"), {**ASKED, "display": ["reversed"]}),
    ),
    "serialisation": (
        "display-utility-k=3-replay-reader",
        (routeprism.audit, ("sample", "utility:k=3"), {**ASKED, "display": ["source"]}),
    ),
    "reuse": (
        "reuse-memochat-replay-reader",
        (
            routeprism.audit,
            ("sample", "memochat"),
            {**ASKED, "fillers": ["A", "B"], "control": "aligned", "reuse": True},
        ),
    ),
    "instructions": (
        "instructions-focal-replay-reader",
        (routeprism.audit, ("sample", "focal"), {**ASKED, "provenance": ["preserved", "gated"]}),
    ),
    "fixed-source": (
        "fixed-source-memochat-replay-reader",
        (routeprism.audit, ("sample", "memochat"), ASKED),
    ),
    "orders": ("survival-focal-uniform", (routeprism.explore_orders, ("sample", "focal"), {})),
    "budgets": (
        "curve-budget-recent-replay-bm25",
        (routeprism.curve, ("locomo",), {"budgets": "k=4,8,16,24,32", "schedules": ["replay"]}),
    ),
    "evidence": (
        "coverage-recent-k=8-exposed-replay-kinds",
        (routeprism.audit, ("locomo", "recent:k=8"), {}),
    ),
}
"""File in docs/images → name of the chart, and the call whose run has it."""


def draw(figure: str) -> None:
    """Write one figure."""
    chart, (call, named, settings) = FIGURES[figure]
    with tempfile.TemporaryDirectory() as kept:
        run = Path(kept) / "run"
        call(*named, run=run, **settings)
        (written,) = write_charts(run, Path(kept) / "charts", ["svg"], names=[chart])
        shutil.copyfile(written, IMAGES / f"{figure}.svg")


if __name__ == "__main__":
    for name, (_, (_, (benchmark, *_), _)) in FIGURES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        if benchmark != "sample" and "ROUTEPRISM_DATA" not in os.environ:
            print(f"docs/images/{name}.svg stays as it is: ROUTEPRISM_DATA is not set")
            continue
        draw(name)
        print(f"docs/images/{name}.svg")
