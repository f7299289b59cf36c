"""Writing what a person looks at: the page, tables, charts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from routeprism.errors import RunError
from routeprism.report._charts import spec_of
from routeprism.report._page import all_charts, all_tables, gather, page
from routeprism.report._table_writing import as_latex, as_markdown

__all__ = ["REPORT", "write_charts", "write_page", "write_report", "write_tables"]

REPORT = "report.html"
_LABELS = {"axisX": {"labelFlush": False}, "axisY": {"labelLimit": 0}}
"""Cutting labels to a width takes vl-convert most of its time; `_charts.short` has cut them."""


def write_report(directory: Path, target: Path | None = None, *, megabytes: float = 10) -> Path:
    """Write a run's report, into its directory unless another file is named.

    `megabytes` is how much room the texts of pools may take, compressed.
    """
    path = target or directory / REPORT
    material = gather(directory, most=int(megabytes * 1_000_000))
    write_page(path, page(material))
    return path


def write_page(path: Path, text: str) -> None:
    """Write a page; half of a surrogate pair, which no file can hold, becomes a question mark."""
    _write(path, text.encode("utf-8", "replace"))


def write_tables(directory: Path, target: Path) -> list[Path]:
    """Write every table of a run as Markdown and as LaTeX."""
    written = []
    for table in all_tables(gather(directory)):
        for suffix, text in ((".md", as_markdown(table)), (".tex", as_latex(table))):
            path = target / f"{table.name}{suffix}"
            _write(path, text.encode("utf-8", "replace"))
            written.append(path)
    return written


def write_charts(
    directory: Path,
    target: Path,
    formats: Sequence[str] = ("svg", "png"),
    *,
    names: Collection[str] | None = None,
) -> list[Path]:
    """Write every chart of a run as SVG and as PNG, or those of some names."""
    import vl_convert

    written = []
    for chart in all_charts(gather(directory)):
        if names is not None and chart.name not in names:
            continue
        spec = {
            **spec_of(chart),
            "width": 560,
            "title": chart.title,
            "background": "white",
            "config": _LABELS,
        }
        drawn = vl_convert.vegalite_to_svg(spec)  # the slow part, once for all formats
        for suffix in formats:
            path = target / f"{chart.name}.{suffix}"
            made = drawn.encode() if suffix == "svg" else vl_convert.svg_to_png(drawn, scale=2)
            _write(path, made)
            written.append(path)
    return written


def _write(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    beside = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
