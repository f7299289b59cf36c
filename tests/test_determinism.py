"""Same input, same bytes: whatever the process, the hash seed, the number of workers, the order.

The command line runs in processes of its own here, because a hash seed is set when one starts.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.orders import parse_schedule
from routeprism.policies import Policy, make_policy
from routeprism.records import Case
from routeprism.records.sample import load
from routeprism.routes import Route, trace_case

pytestmark = pytest.mark.slow

POLICIES = (
    "focal",
    "focal:cluster=source",
    "focal:survivor=source-position",
    "focal:cluster=source,survivor=source-position",
    "recent:k=2",
    "utility:k=3",
    "lexical:k=3,window=64",
    "memochat",
    "raw",
    "streaming",
)
COMMAND = (
    *("audit", "sample", "--comparators", "--ties", "--resamples", "100"),
    *itertools.chain.from_iterable(("--policy", policy) for policy in POLICIES),
    *("--schedule", "replay", "--schedule", "random:seed=7"),
)
RUNS = {
    "seed 0": ("0", "1"),
    "seed 1": ("1", "1"),
    "two workers": ("2", "2"),
}
"""Hash seed and number of workers."""


def start(directory: Path, hash_seed: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-c", "from routeprism.cli import main; main()"),
            *(*arguments, "--run", str(directory), "--json"),
        ],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, text = process.communicate()
    return process.returncode, text


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Audit the sample in every way, two processes at a time."""
    base = tmp_path_factory.mktemp("runs")
    values = {name: base / name.replace(" ", "-") for name in RUNS}
    waiting = iter(RUNS.items())
    while pair := list(itertools.islice(waiting, 2)):
        with ExitStack() as stack:
            under_way = [
                stack.enter_context(start(values[name], seed, *COMMAND, "--workers", workers))
                for name, (seed, workers) in pair
            ]
            assert [finish(process) for process in under_way] == [(0, "")] * len(pair)
    return values


def dump(directory: Path) -> list[str]:
    """Give every row of the store, table by table, in an order of its own."""
    with closing(sqlite3.connect(directory / "run.sqlite")) as connection:
        return sorted(connection.iterdump())


@pytest.mark.parametrize("name", ["seed 1", "two workers"])
def test_the_same_bytes_in_every_process(runs: dict[str, Path], name: str) -> None:
    expected = (runs["seed 0"] / "estimates.csv").read_bytes()
    assert (runs[name] / "estimates.csv").read_bytes() == expected
    for part in ("manifest.json",):
        assert (runs[name] / part).read_bytes() == (runs["seed 0"] / part).read_bytes()
    assert dump(runs[name]) == dump(runs["seed 0"])


def test_the_table_is_worth_comparing(runs: dict[str, Path]) -> None:
    table = (runs["seed 0"] / "estimates.csv").read_text()
    for policy in POLICIES:
        for name in (policy, f"source-order({policy})"):
            quoted = f'"{name}"' if "," in name else name
            assert f"\nroutes,sample,{quoted},budget,replay," in table or (
                f"\nroutes,sample,{quoted},own,replay," in table
            )
    for quantity in ("Gamma.J", "delta_op.J", "interaction.J", "count.representative_ties"):
        assert f",{quantity}," in table


def test_the_same_command_again_gives_the_same_bytes(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = runs["two workers"]
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    stored = dump(directory)
    with start(directory, "1", *COMMAND, "--workers", "1") as process:
        assert finish(process) == (0, "")
    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert set(after) == {"estimates.csv", "manifest.json", "report.html", "run.sqlite"}
    assert after["estimates.csv"] == before["estimates.csv"]
    assert after["manifest.json"] == before["manifest.json"]
    assert dump(directory) == stored


def test_another_command_on_that_directory_is_refused(runs: dict[str, Path]) -> None:
    directory = runs["seed 1"]
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with start(directory, "0", "audit", "sample", "--policy", "raw") as process:
        code, text = finish(process)
    assert code == 2
    assert text.startswith(
        f"routeprism: {directory} holds another run; choose a different directory."
    )
    assert [line.split(":")[0].strip() for line in text.splitlines()[1:]] == [
        "arrivals",
        "folds",
        "interfaces",
        "policies",
        "resamples",
        "schedules",
        "ties",
    ]
    assert "  resamples: 100 there, 10000 here\n" in text
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


# --- every order of every pool ---------------------------------------------------------------

INNER = ("focal", "recent:k=3", "utility:k=3", "raw", "lexical", "memochat")
each_policy = pytest.mark.parametrize("inner", INNER)


@cache
def cases() -> tuple[Case, ...]:
    return tuple(load().cases)


@cache
def comparator(inner: str) -> Policy:
    return make_policy(f"source-order({inner})")


def both(case: Case, policy: Policy, order: tuple[int, ...]) -> tuple[Route, Route]:
    """Trace a pool forward and in one other order."""
    schedule = parse_schedule(f"explicit:order={'-'.join(map(str, order))}")
    forward, alternative = trace_case(case, [policy], [schedule])
    assert alternative.order == order
    return forward, alternative


def observed(route: Route) -> tuple[object, ...]:
    """All that a comparator must hold fixed: retained, V, C and I, for every question."""
    return (
        route.retained,
        route.signature,
        [
            (exposure.sources, exposure.context_sha256, exposure.blocks)
            for exposure in route.exposures
        ],
    )


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Case, tuple[int, ...]]:
    case = draw(st.sampled_from(cases()))
    return case, tuple(draw(st.permutations(range(len(case.pool)))))


@each_policy
@given(arrived=arrivals())
@settings(max_examples=60)
def test_a_comparator_is_the_same_under_every_order(
    inner: str, arrived: tuple[Case, tuple[int, ...]]
) -> None:
    case, order = arrived
    forward, alternative = both(case, comparator(inner), order)
    assert forward.signature is not None
    assert observed(alternative) == observed(forward)


def smallest() -> Iterator[tuple[Case, tuple[int, ...]]]:
    case = min(cases(), key=lambda case: len(case.pool))
    assert len(case.pool) == 4
    for order in itertools.permutations(range(4)):
        yield case, order


@each_policy
def test_a_comparator_is_the_same_under_all_24_orders_of_a_pool_of_four(inner: str) -> None:
    values = [observed(both(case, comparator(inner), order)[1]) for case, order in smallest()]
    assert len(values) == 24
    assert all(item == values[0] for item in values)


@each_policy
def test_what_it_is_the_comparator_of_is_not(inner: str) -> None:
    """Else the two tests above could not fail."""
    policy = make_policy(inner)
    changed = 0
    for case in cases():
        forward, replay = both(case, policy, tuple(reversed(range(len(case.pool)))))
        changed += observed(forward) != observed(replay)
    assert changed == len(cases())
