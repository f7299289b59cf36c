"""Writing what a person looks at: the page, tables, charts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from routeprism.errors import MissingExtraError, RunError, SpecError
from routeprism.files import write_output
from routeprism.report._exhibits import build_spec, list_charts, list_tables
from routeprism.report._page import gather, page
from routeprism.report._tables import as_csv, as_latex, as_markdown

__all__ = [
    "REPORT",
    "write_charts",
    "write_final_report",
    "write_page",
    "write_report",
    "write_tables",
]

REPORT = "report.html"
_MOST_MEGABYTES = 10_000
_LABELS = {"axisX": {"labelFlush": False}, "axisY": {"labelLimit": 0}}
"""Cutting labels to a width takes vl-convert most of its time; names are cut before."""


def write_report(directory: Path, target: Path | None = None, *, megabytes: float = 10) -> Path:
    """Write a run's report, into its directory unless another file is named.

    `megabytes` is how much room the texts of pools may take, compressed.
    """
    if not 0 <= megabytes <= _MOST_MEGABYTES:
        raise SpecError(f"Expected from 0 to {_MOST_MEGABYTES:,} megabytes but got {megabytes=}")
    path = target or directory / REPORT
    material = gather(directory, most=int(megabytes * 1_000_000))
    write_page(path, page(material))
    return path


def write_final_report(directory: Path) -> Path:
    """Write the report of a run that has just come to its end, which is complete without it."""
    try:
        return write_report(directory)
    except RunError as error:
        raise RunError(
            f"{error}. The run itself is complete; routeprism report {directory} writes its report"
        ) from error


def write_page(path: Path, text: str) -> None:
    """Write a page; half of a surrogate pair, which no file can hold, becomes a question mark."""
    _write(path, text.encode("utf-8", "replace"))


def write_tables(directory: Path, target: Path) -> list[Path]:
    """Write every table of a run as Markdown, LaTeX and CSV."""
    files = []
    renderers = {".md": as_markdown, ".tex": as_latex, ".csv": as_csv}
    for table in list_tables(gather(directory).results):
        for suffix, render in renderers.items():
            text = render(table)
            path = target / f"{table.name}{suffix}"
            _write(path, text.encode("utf-8", "replace"))
            files.append(path)
    return files


def write_charts(
    directory: Path,
    target: Path,
    formats: Sequence[str] = ("svg", "png"),
    *,
    names: Collection[str] | None = None,
) -> list[Path]:
    """Write every chart of a run as SVG and as PNG, or those of some names."""
    try:
        import vl_convert
    except ModuleNotFoundError:
        raise MissingExtraError("Writing charts as SVG or PNG", "charts") from None
    files = []
    for chart in list_charts(gather(directory).results):
        if names is not None and chart.name not in names:
            continue
        spec = {
            **build_spec(chart),
            "width": 560,
            "title": chart.title,
            "background": "white",
            "config": _LABELS,
        }
        svg = vl_convert.vegalite_to_svg(spec)  # the slow part, once for all formats
        for suffix in formats:
            path = target / f"{chart.name}.{suffix}"
            content = svg.encode() if suffix == "svg" else vl_convert.svg_to_png(svg, scale=2)
            _write(path, content)
            files.append(path)
    return files


def _write(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{path} cannot be written: {reason}") from error
