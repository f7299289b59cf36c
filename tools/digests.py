"""Run a fixed set of commands and compare their numbers with stored digests.

The commands together use every experiment. For each one the script takes the SHA-256 of its
`estimates.csv`, of the numbers among its findings (without sentences and copied answers), of the
prompts in its ledger, and of the numbers that it prints as JSON.

    python tools/digests.py --write     # store the digests in tools/digests.json
    python tools/digests.py             # compare with them; exit code 1 if one differs

Commands on PersonaMem and LoCoMo need ROUTEPRISM_DATA; without it they are left out and named.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

STORED = Path(__file__).with_name("digests.json")
PROGRAM = (sys.executable, "-c", "from routeprism.cli import main; main()")
FEW = ("--resamples", "200", "--seed", "7")
READER = ("-m", "reader", "--draws", "2")

COMMANDS: dict[str, tuple[str, ...]] = {
    "audit-sample": (
        *("audit", "sample", "-p", "focal", "-p", "recent:k=3", "-p", "utility:k=3"),
        *("-p", "lexical", "-p", "memochat", "-p", "raw", "-s", "replay", "-s", "odd-even"),
        *("--comparators", "--ties", *READER, "--filler", "A", "--filler", "B"),
    ),
    "mechanism-sample": ("audit", "sample", "-p", "focal", "--mechanism", "--over-time", *READER),
    "streaming-sample": ("audit", "sample", "-p", "streaming", "--builds", "2"),
    "display-sample": (
        *("audit", "sample", "-p", "recent:k=3", "--display", "reversed", "--display", "source"),
        *("--reuse", *READER, "--batch", "one", "--batch", "two"),
    ),
    "provenance-sample": (
        *("audit", "sample", "-p", "raw", "-p", "recent:k=3", "--provenance", "preserved"),
        *("--provenance", "gated", "--margin", "0.1", *READER),
    ),
    "restore-sample": ("restore", "sample", "-p", "focal", "-p", "recent:k=3", *READER),
    "orders-sample": (
        *("orders", "sample", "-p", "focal", "-p", "recent:k=3"),
        *("--shrink", "support", "--worst", "support"),
    ),
    "curve-sample": ("curve", "sample", "-p", "recent", "--budget", "k=1,2,3"),
    "recorded-sample": (
        *("audit", "sample", "-p", "focal", "-p", "recent:k=3", "-p", "utility:k=3"),
        *("-p", "lexical", "-p", "memochat", "-p", "raw", "-s", "replay", "-s", "odd-even"),
        *("--comparators", "--ties", "-m", "recorded:answers.csv", "--draws", "2"),
        *("--filler", "A", "--filler", "B"),
    ),
    "screen-sample": (
        "screen",
        "sample",
        "--pass",
        "ann=screen-filled.csv",
        "--pass",
        "bob=screen-filled.csv",
    ),
    "support-sample": ("support", "sample", "--pass", "ann=support-filled.csv"),
    "audit-personamem": (
        *("audit", "personamem", "-p", "focal", "-p", "recent:k=3", "-p", "utility:k=3"),
        *("-p", "lexical", "-p", "memochat", "-s", "replay", "-s", "half-swap", "-s", "odd-even"),
    ),
    "restore-personamem": (
        *("restore", "personamem", "--kind", "fact-recall", "-p", "focal", *READER),
    ),
    "audit-locomo": ("audit", "locomo", "-p", "recent:k=3", "-p", "recent:k=16", "-p", "focal"),
}
"""Commands that leave a run, by the name of the run."""

READINGS: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "audit-sample", "recorded-sample", "--json"),
    "check": ("check", "audit-sample", "--gate", "J>=0.5", "--json"),
    "trace": ("trace", "restore-sample", "--row", "1", "--json"),
    "plan": (
        *("plan", "audit-sample", "--policy", "focal", "--schedule", "replay"),
        *("--quantity", "J", "--half-width", "0.05", "--json"),
    ),
    "reproduce": ("reproduce", "--json"),
}
"""Commands that print JSON about a run."""


def run_command(words: Iterable[str], where: Path) -> str:
    """Run one command; 1 is the exit code of a failed gate, which is a result."""
    done = subprocess.run(  # noqa: S603 (the commands above)
        [*PROGRAM, *words], cwd=where, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def digest(value: object) -> str:
    """Give the SHA-256 of a value as JSON, or of bytes."""
    content = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()


def numbers(value: Any) -> Any:
    """Keep the shape of a JSON value and its numbers; texts become None."""
    if isinstance(value, dict):
        return {name: numbers(inner) for name, inner in value.items() if name != "seconds"}
    if isinstance(value, list):
        return [numbers(inner) for inner in value]
    return None if isinstance(value, str) else value


def digest_run(directory: Path) -> dict[str, str]:
    """Give the digests of a run."""
    with closing(sqlite3.connect(directory / "run.sqlite")) as store:
        tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master")}
        findings = store.execute("SELECT * FROM findings ORDER BY 1, 2, 3, 4, 5, 6, 7").fetchall()
        prompts = (
            store.execute("SELECT sha256 FROM prompts ORDER BY 1").fetchall()
            if "prompts" in tables
            else []
        )
    shown = [[*names, numbers(json.loads(value))] for *names, value in findings]
    return {
        "estimates": digest((directory / "estimates.csv").read_bytes()),
        "findings": digest(shown),
        "prompts": digest(prompts),
    }


def fill_sheet(sheet: Path, label: str, rest: str) -> None:
    """Fill a sheet in: every third row gets the second label."""
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows):
        row["label"] = label if number % 3 else rest
    with sheet.with_name(f"{sheet.stem}-filled.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def take_digests(
    where: Path, *, with_data: bool, only: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Run the commands, or only those named with what they need, and give their digests."""
    needed = {"compare", "check", "plan", "recorded-sample"} & only and {"audit-sample"}
    if "compare" in only:
        needed |= {"recorded-sample"}
    if "trace" in only:
        needed |= {"restore-sample"}
    wanted = only | needed
    run_command(("screen", "sample", "--export", "screen.csv"), where)
    run_command(("support", "sample", "--export", "support.csv"), where)
    fill_sheet(where / "screen.csv", "admissible", "inadmissible")
    fill_sheet(where / "support.csv", "direct", "none")
    found: dict[str, Any] = {}
    for name, words in COMMANDS.items():
        if wanted and name not in wanted:
            continue
        if not with_data and name.endswith(("personamem", "locomo")):
            print(f"{name}: left out, ROUTEPRISM_DATA is not set", file=sys.stderr)
            continue
        run_command((*words, *FEW, "--run", name, "--quiet"), where)
        found[name] = digest_run(where / name)
        if name == "audit-sample":
            run_command(("report", name, "--answers", "answers.csv"), where)
    for name, words in READINGS.items():
        if wanted and name not in wanted:
            continue
        found[name] = {"json": digest(numbers(json.loads(run_command(words, where))))}
    return found


def main() -> None:
    """Store the digests, or compare with those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--write", action="store_true", help="store the digests")
    parser.add_argument("--only", default="", help="names of commands, separated by commas")
    parser.add_argument("--keep", type=Path, help="keep the runs in this directory")
    wanted = parser.parse_args()
    with_data = bool(os.environ.get("ROUTEPRISM_DATA"))
    with tempfile.TemporaryDirectory() as scratch:
        where = wanted.keep or Path(scratch)
        where.mkdir(parents=True, exist_ok=True)
        only = frozenset(filter(None, wanted.only.split(",")))
        found = take_digests(where, with_data=with_data, only=only)
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    if wanted.write:
        STORED.write_text(json.dumps(stored | found, indent=1, sort_keys=True) + "\n")
        return
    different = [
        f"{name}: {part}"
        for name, parts in found.items()
        for part, value in parts.items()
        if stored.get(name, {}).get(part) != value
    ]
    print("\n".join(different) or f"All {len(found)} commands give the stored digests.")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
