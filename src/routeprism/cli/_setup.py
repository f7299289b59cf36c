"""What `list`, `fetch` and `check-adapter` do: names, files, and whether a memory can be used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

from routeprism.api.reviews import prepare_adapter, price_adapter, run_adapter_checks
from routeprism.cli._console import SafeConsole, print_json, print_line
from routeprism.cli._terminal import LateProgress, may_proceed
from routeprism.downloads import Collection, Source, address, collection, fetch_all, missing
from routeprism.errors import SpecError
from routeprism.policies import describe_client
from routeprism.printing import printable
from routeprism.routes.conformance import Check


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
        names = ("url", "sha256", "size", "was_there", "checked")
        entries = [
            {"file": str(download.path), **{name: getattr(download, name) for name in names}}
            for download in fetched
        ]
        print_json({"benchmark": benchmark, "licence": files.licence, "files": entries})
        return
    for download in fetched:
        state = "was there" if download.was_there else "fetched"
        sure = f"SHA-256 {download.sha256}, not known before"
        if download.checked:
            sure = "SHA-256 as expected"
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


_MARKS = {
    "passed": "ok     ",
    "failed": "FAILED ",
    "not tried": "–      ",
    "not observed": "?      ",
}


def _print_check(check: Check) -> None:
    """Print a result at once: a check of a slow service takes a while."""
    detail = f": {check.message}" if check.message else ""
    print(printable(f"{_MARKS[check.outcome]}{check.name}{detail}", lines=True), flush=True)
    if check.fix:
        print(printable(f"       to fix it: {check.fix}", lines=True), flush=True)


def _print_untried(checks: Sequence[Check]) -> None:
    """Print the checks that were not tried, one line for each reason, and count the unobserved."""
    reasons: dict[str, list[str]] = {}
    for check in checks:
        if check.outcome == "not tried":
            reasons.setdefault(check.message, []).append(check.name)
    for message, names in reasons.items():
        _print_check(Check(", ".join(names), "not tried", message))
    if unobserved := sum(check.outcome == "not observed" for check in checks):
        print(f"not observed: {unobserved} of {len(checks)} checks")


def show_adapter_checks(settings: Any) -> None:
    """Run `check-adapter`; exit with 1 if anything is wrong with it."""
    policy, allowance = prepare_adapter(settings)
    client = describe_client(policy)
    spends = client is not None and client.spends
    if not may_proceed(settings, spends, lambda: price_adapter(policy)):
        return
    checks: list[Check] = []
    silent = settings.json or settings.quiet
    bar = LateProgress(silent)
    for check in run_adapter_checks(policy, allowance, bar.show_answers):
        bar.close()
        checks.append(check)
        if not silent and check.outcome != "not tried":
            _print_check(check)
    failed = [check for check in checks if check.outcome == "failed"]
    if settings.json:
        print_json({"adapter": policy.name, "checks": [asdict(check) for check in checks]})
    else:
        _print_untried(() if settings.quiet else checks)
        verdict = (
            f"{policy.name}: {len(failed)} of {len(checks)} checks failed"
            if failed
            else f"{policy.name} can be audited"
        )
        print(printable(verdict, lines=True))
    if failed:
        sys.exit(1)
