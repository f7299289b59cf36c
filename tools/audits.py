"""Audit every memory system that runs here and write docs/audits.md: `make audits`.

Each row of the page comes from one command, which the page shows. Systems whose packages are not
installed are listed as left out. The model that extracts is the scripted one: no key, no network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from routeprism.exhibits import format_count
from routeprism.judge import GAINED, LOST
from routeprism.policies import make_policy, registered_policies
from routeprism.runs import EstimateRow, Rows

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "audits.md"
BEFORE_TWO = Path(".venv") / "mem0-1"
"""Where `make` puts mem0 1.x, beside the current version."""
NODE = Path(".venv") / "node" / "node_modules"
"""Where `make` puts servers from npm."""
BENCHMARKS = ("sample", "sample-updates")
SHARD = "1/10"
ORDERS = ("--arrival", "jitter:w=2", "--arrival", "late-batch", "--schedule", "replay")
PROCEDURES = ("--schedule", "overlap:k=2", "--schedule", "restart")
DRAWN = ("--schedule", "jitter:w=2,seed=0", "--schedule", "late-batch:seed=0", *ORDERS[4:])
"""One drawn order in place of the expectation over many, for systems that take long to build."""
COLUMNS = ("jitter:w=2", "late-batch", "replay", "restart")
OVERLAP = "overlap:k=2"


@dataclass(frozen=True)
class System:
    """One row of the page."""

    spec: str
    package: str = ""
    """The module that it needs; empty for a built-in policy."""
    path: Path | None = None
    """A directory with a different version of the package."""
    orders: Sequence[str] = (*ORDERS, *PROCEDURES)
    server: str = ""
    """The npm package of a server, if it is one."""

    @property
    def name(self) -> str:
        """The name of its policy in the estimates."""
        return make_policy(self.spec).name

    @property
    def missing(self) -> str:
        """Give the reason why it cannot run here; empty if it can."""
        name = self.spec.partition(":")[0]
        if name not in registered_policies():
            return "there is no such adapter"
        if self.package and find_spec(self.package.partition(".")[0]) is None:
            return f"{self.package} is not installed"
        if self.path is not None and not (ROOT / self.path).is_dir():
            return f"{self.path} does not exist"
        if self.server and not (ROOT / NODE / self.server).is_dir():
            return f"{self.server} is not installed"
        return ""


SYSTEMS = (
    *(System(spec) for spec in ("focal", "recent:k=3", "lexical", "facts:by=arrival")),
    *(System(spec) for spec in ("facts:by=time", "bitemporal", "dedup")),
    System("langgraph-store:k=3", "langgraph"),
    System("langmem:k=3", "langmem"),
    System("langmem:model=scripted,deletes=true", "langmem", orders=(*DRAWN, *PROCEDURES)),
    System("llamaindex-memory:token_limit=2000,flush=200", "llama_index"),
    System("llamaindex-buffer:token_limit=1000,chars=4000", "llama_index"),
    System("llamaindex-vector", "llama_index"),
    System("mem0", "mem0"),
    System("mem0:model=scripted", "mem0", orders=(*DRAWN, *PROCEDURES)),
    System("mem0:model=scripted", "mem0", BEFORE_TWO, orders=(*DRAWN, *PROCEDURES)),
    System(
        f"mcp:command={NODE}/.bin/mcp-server-memory",
        "mcp",
        orders=(*DRAWN, *PROCEDURES),
        server="@modelcontextprotocol/server-memory",
    ),
    System(
        f"mcp:command={NODE}/.bin/mcp-memory-libsql,profile=mcp-memory-libsql",
        "mcp",
        orders=(*DRAWN, *PROCEDURES),
        server="mcp-memory-libsql",
    ),
    System("graphiti:model=scripted", "graphiti_core", orders=(*DRAWN, *PROCEDURES)),
    System("graphiti:model=scripted,show=current", "graphiti_core", orders=(*DRAWN, *PROCEDURES)),
)


@dataclass
class Row:
    """What one audit found."""

    system: System
    command: str
    origin: str
    level: str
    """The level of its verdict."""
    rows: Rows
    calls: str = "none"
    notes: list[str] = field(default_factory=list)


def run_command(words: Sequence[str], path: Path | None) -> Any:
    """Run a command of RoutePrism and read what it prints as JSON."""
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = str(ROOT / path)
    program = [sys.executable, "-m", "routeprism", *words]
    done = subprocess.run(  # noqa: S603
        program, capture_output=True, text=True, env=environment, check=False, cwd=ROOT
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def audit(system: System, benchmark: str, folder: Path) -> Row:
    """Audit one system on one benchmark."""
    words = ["audit", benchmark, "-p", system.spec, *system.orders, "--shard", SHARD]
    run = folder / f"{benchmark}-{len(list(folder.iterdir()))}"
    found = run_command([*words, "--run", str(run), "--json"], system.path)
    rows = Rows.of([EstimateRow(**row) for row in found["estimates"]])
    levels = [verdict["level"] for verdict in found["verdicts"] if verdict["policy"] == system.name]
    prefix = f"PYTHONPATH={system.path} " if system.path is not None else ""
    row = Row(
        system,
        f"{prefix}routeprism {' '.join(words)}",
        describe_origin(system),
        levels[0] if levels else "not decided",
        rows,
        notes=found["notes"],
    )
    if "model=scripted" in system.spec:
        row.calls = count_calls(system, benchmark)
    return row


def describe_origin(system: System) -> str:
    """Name the packages behind a system, with their versions."""
    if not system.package:
        return "built in"
    script = (
        "import sys; from routeprism.policies import make_policy; "
        "print(make_policy(sys.argv[1]).origin())"
    )
    environment = {**os.environ}
    if system.path is not None:
        environment["PYTHONPATH"] = str(ROOT / system.path)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, system.spec],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        cwd=ROOT,
    )
    origin = done.stdout.strip()
    if system.server:
        package = json.loads((ROOT / NODE / system.server / "package.json").read_text())
        origin += f", {system.server} {package['version']}"
    return origin


def count_calls(system: System, benchmark: str) -> str:
    """Count what the same audit takes with a language model, by a dry run."""
    spec = system.spec.replace("model=scripted", "model=NAME,base_url=http://127.0.0.1:9/v1")
    words = ["audit", benchmark, "-p", spec, "--schedule", "replay", "--shard", SHARD]
    costs = run_command([*words, "--dry-run", "--json"], system.path)
    cost = next(iter(costs.values()), None)
    if cost is None:
        return "not known"
    return f"{cost['calls']:,} calls, {cost['input_tokens']:,} tokens"


def count_questions(row: Row, schedule: str, quantity: str) -> tuple[str, int]:
    """Return how many questions a share is, and of how many; a dash and 0 if it does not apply."""
    chosen = row.rows.where(policy=row.system.name, quantity=quantity, stratum="all", mask="")
    schedules = {schedule, f"{schedule},seed=0", f"{schedule}:seed=0"}
    for estimate in chosen:
        if estimate.schedule in schedules and estimate.estimate is not None and estimate.queries:
            return format_count(estimate.estimate * estimate.queries), estimate.queries
    return "–", 0


def show_count(row: Row, schedule: str, quantity: str) -> str:
    """Show how many of how many questions a share is; a dash if it does not apply."""
    number, total = count_questions(row, schedule, quantity)
    return f"{number} of {total}" if total else number


def show_change(row: Row, schedule: str) -> str:
    """Show how many questions lose evidence, and how many gain some."""
    (lost, total), (gained, _) = (count_questions(row, schedule, name) for name in (LOST, GAINED))
    return f"−{lost} +{gained} of {total}" if total else lost


def show_anomalies(row: Row) -> str:
    """Show how many trials of overlapping writes end in a way that no serial order does."""
    chosen = row.rows.where(policy=row.system.name, quantity="anomaly", schedule=OVERLAP)
    values = [one for one in chosen.where(stratum="all") if one.estimate is not None]
    if not values:
        return "–"
    return f"{values[0].estimate * values[0].queries:.0f} of {values[0].queries}"


def show_row(number: int, row: Row, *, updates: bool) -> str:
    """Write one line of a table."""
    name = f"`{row.system.spec}`"
    if row.system.path is not None:
        name += " (1.x)"
    cells = [str(number), name, row.level, *(show_change(row, schedule) for schedule in COLUMNS)]
    cells.insert(-1, show_anomalies(row))
    cells.append(show_count(row, "replay", "all_covered.exposed.forward"))
    if updates:
        cells += [
            show_count(row, "replay", f"{quantity}.{side}")
            for quantity in ("stale_only", "stale_last")
            for side in ("forward", "route")
        ]
    cells.append(row.calls)
    return f"| {' | '.join(cells)} |"


HEADER = (
    "#",
    "memory",
    "verdict",
    "ordinary disorder",
    "late batch",
    "reversal",
    "overlap, trials",
    "restart",
    "evidence shown",
)
UPDATES = (
    "only old value, in order",
    "only old value, reversed",
    "old value last, in order",
    "old value last, reversed",
)


def write_table(benchmark: str, rows: Sequence[Row]) -> Iterator[str]:
    """Write the section of one benchmark."""
    updates = benchmark == "sample-updates"
    columns = (*HEADER, *(UPDATES if updates else ()), "with a language model, two routes")
    yield f"## `{benchmark}`\n"
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for number, row in enumerate(rows, start=1):
        yield show_row(number, row, updates=updates)
    yield "\nCommands, row by row:\n"
    for number, row in enumerate(rows, start=1):
        yield f"{number}. `{row.command}` ({row.origin})"
    yield ""


TEMPLATE = Path(__file__).with_suffix(".md")


def main() -> None:
    """Audit everything and write the page."""
    present = [system for system in SYSTEMS if not system.missing]
    sections: list[str] = []
    pools: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for benchmark in BENCHMARKS:
            rows = []
            for system in present:
                print(benchmark, system.spec, system.path or "", flush=True)
                rows.append(audit(system, benchmark, Path(folder)))
            number = run_command(
                ["audit", benchmark, "-p", "recent:k=3", "--shard", SHARD, "--json"], None
            )["counts"]
            pools.append(f"{number['pools']} of `{benchmark}`")
            sections.extend(write_table(benchmark, rows))
    absent = [f"- `{one.spec}`: {one.missing}" for one in SYSTEMS if one.missing]
    if absent:
        sections += ["## Left out\n", *absent, ""]
    text = TEMPLATE.read_text(encoding="utf-8").format(shard=SHARD, pools=" and ".join(pools))
    PAGE.write_text(text + "\n" + "\n".join(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
