"""What `fetch` does and prints: the licence first, then the files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

from routeprism.cli._console import SafeConsole, print_json, print_line
from routeprism.downloads import Collection, Source, address, collection, fetch_all, missing
from routeprism.errors import SpecError

__all__ = ["show_download"]


def show_download(settings: Any) -> None:
    """Run `fetch`: show the licence, ask, then get the files that are missing."""
    benchmark, data, base_url = settings.benchmark, settings.data, settings.base_url
    files = collection(benchmark)
    if data is None:
        raise SpecError("where should the files go? Pass --data DIR or set ROUTEPRISM_DATA")
    absent = missing(files, data)
    if absent:
        _ask(files, absent, base_url, settings.yes)
    with _bar(settings.quiet or settings.json) as progress:
        fetched = fetch_all(files, data, base_url=base_url, progress=progress)
    if settings.json:
        entries = [
            {
                "file": str(download.path),
                "url": download.url,
                "sha256": download.sha256,
                "size": download.size,
                "was_there": download.was_there,
                "checked": download.checked,
            }
            for download in fetched
        ]
        print_json({"benchmark": benchmark, "licence": files.licence, "files": entries})
        return
    for download in fetched:
        state = "was there" if download.was_there else "fetched"
        sure = (
            "SHA-256 as expected"
            if download.checked
            else f"SHA-256 {download.sha256}, not known before"
        )
        print_line(f"{download.path}: {state}, {download.size:,} bytes, {sure}")
    print_line(f"Use it: routeprism audit {benchmark} --data {data} --policy recent:k=8")


def _ask(collection: Collection, sources: list[Source], base_url: str | None, yes: bool) -> None:
    print_line(f"Licence: {collection.licence}", file=sys.stderr)
    for source in sources:
        size = f" ({source.size:,} bytes)" if source.size else ""
        print_line(
            f"To fetch: {source.name}{size} from {address(source, base_url)}", file=sys.stderr
        )
    if yes:
        return
    if not sys.stdin.isatty():
        raise SpecError("pass --yes to accept the licence and download")
    if input("Accept and download? [y/N] ").strip().lower() not in ("y", "yes"):
        raise SpecError("not accepted; nothing was downloaded")


@contextmanager
def _bar(silent: bool) -> Iterator[Callable[[str, int, int | None], None] | None]:
    console = SafeConsole(stderr=True)
    if silent or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Bar(*columns, TransferSpeedColumn(), console=console, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def advance(name: str, have: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=have, total=total)

        yield advance
