"""A process that collects answers, which tests watch, interrupt and kill; and its cells.

python tests/answers/collection_process.py faults|many URL RUN [ANSWERS CONCURRENCY]
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from routeprism.answers import Cell, collect
from routeprism.models import Ask
from routeprism.models.openai import OpenAI
from routeprism.runs import Run

OPTIONS = ("one", "two", "three", "four")

FAULTS = {
    "[[429:1]] a [[say:a]]": ("answered", "a"),
    "[[500:2]] b [[say:B]]": ("answered", "b"),
    "[[drop:1]] c [[say:(c)]]": ("answered", "c"),
    "[[hang:1]] d [[say:d.]]": ("answered", "d"),
    "[[empty:1]] e [[say:**a**]]": ("answered", "a"),
    "[[malformed:1]] f [[say:b]]": ("answered", "b"),
    "[[refusal:9]] g": ("refused", None),
    "h [[say:I'm sorry, but I can't help with that.]]": ("refused", None),
    "i [[say:B) because the second is newer]]": ("answered", "b"),
    "j [[say:a or b, who knows]]": ("unparsable", None),
    "[[echo:9]] k": ("unparsable", None),
    "[[401:9]] l": ("failed", None),
    "[[500:99]] m": ("failed", None),
}
"""What a server does to a request, and what becomes of it."""


def cell(text: str, *, draw: int = 0, question: str = "", route: str = "forward") -> Cell:
    return Cell(Ask(text, "", text, OPTIONS, draw), question or text, route)


def opened(directory: Path) -> Any:
    return Run.open(directory, {"test": 1}, inputs={})


def main(task: str, url: str, directory: Path, answers: int = 0, concurrency: int = 8) -> None:
    """Collect, as the process that tests watch, interrupt and kill."""
    # A shell that starts jobs in the background has them ignore the interruption.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if task == "faults":
        model = OpenAI("m", base_url=url, retries=3, timeout=10.0, seed=0, concurrency=13)
        cells = [cell(text) for text in FAULTS]
    else:
        model = OpenAI("m", base_url=url, seed=0, concurrency=concurrency)
        cells = many(answers)
    with opened(directory) as run:
        print(collect(run, model, cells).outcomes)


def many(answers: int) -> list[Cell]:
    """Give pairs of a forward and another route, each with its own draws."""
    return [
        cell(
            f"question {n // 4}, {('forward', 'replay')[n % 2]}",
            draw=n % 4,
            question=f"q{n // 4}",
            route=("forward", "replay")[n % 2],
        )
        for n in range(answers)
    ]


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(arguments[0], arguments[1], Path(arguments[2]), *map(int, arguments[3:]))
