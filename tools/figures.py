"""Write the figures of the experiments' pages: `make docs-figures`, about a minute.

They are charts of the report, from runs on the sample; the pages show the commands.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import routeprism
from routeprism.report import write_charts

IMAGES = Path(__file__).parents[1] / "docs" / "images"

FIGURES: Mapping[str, str] = {
    "restoration": "restoration-focal-replay-reader",
    "mechanism": "mechanism-J-focal",
    "display": "forest-display-D_res",
    "orders": "survival-focal-uniform",
}
"""File in docs/images → name of the chart."""


def run(figure: str, directory: Path) -> None:
    """Make the run that a figure is drawn from."""
    if figure == "restoration":
        routeprism.restore("sample", "focal", models=["reader"], run=directory)
    elif figure == "mechanism":
        schedules = ["replay", "half-swap", "odd-even"]
        routeprism.audit("sample", "focal", mechanism=True, schedules=schedules, run=directory)
    elif figure == "display":
        asked = {"models": ["reader"], "draws": 2, "display": ["reversed"]}
        routeprism.audit("sample", "memochat", run=directory, **asked)
    else:
        routeprism.explore_orders("sample", "focal", run=directory)


def draw(figure: str) -> None:
    """Write one figure."""
    with tempfile.TemporaryDirectory() as kept:
        run(figure, Path(kept) / "run")
        written = write_charts(Path(kept) / "run", Path(kept) / "charts", ["svg"])
        (chosen,) = [path for path in written if path.stem == FIGURES[figure]]
        shutil.copyfile(chosen, IMAGES / f"{figure}.svg")


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        draw(name)
        print(f"docs/images/{name}.svg")
