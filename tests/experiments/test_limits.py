"""Which limits are read: the benchmark declares, the user decides, and every path does the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.labels import SCREEN, cards_for, run_study
from routeprism.records import Benchmark, load_benchmark
from routeprism.report import write_report
from routeprism.review.comparison import compare_runs

pytestmark = pytest.mark.usefixtures("only_reversal")

OWN = "95% limits: percentile bootstrap, expanded for few units"
PUBLISHED = (
    "95% limits: percentile bootstrap, as in the published protocol; interval=expanded "
    "contains the true value closer to 95% of the time"
)

CALLS: dict[str, Callable[..., routeprism.Audit]] = {
    "audit": lambda data, **more: routeprism.audit(data, "recent:k=3", **more),
    "answers": lambda data, **more: routeprism.audit(data, "recent:k=3", models=["reader"], **more),
    "restore": lambda data, **more: routeprism.restore(
        data, "focal", models=["reader"], draws=1, **more
    ),
    "orders": lambda data, **more: routeprism.explore_orders(data, "recent:k=3", **more),
    "curve": lambda data, **more: routeprism.curve(
        data, budgets="k=3", schedules=["replay"], **more
    ),
}


@pytest.fixture(scope="module")
def sample() -> Benchmark:
    whole = load_benchmark("sample")
    return replace(whole, cases=whole.cases[:12])


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_the_declared_interval_is_used_unless_another_is_named(
    sample: Benchmark, call: str, tmp_path: Path
) -> None:
    printed = replace(sample, interval="percentile")  # as a benchmark of the published protocol
    values = {
        "own": CALLS[call](sample, resamples=500, run=tmp_path / "run"),
        "own, percentile": CALLS[call](sample, resamples=500, interval="percentile"),
        "printed": CALLS[call](printed, resamples=500),
        "printed, expanded": CALLS[call](printed, resamples=500, interval="expanded"),
    }
    rows = {name: item.rows for name, item in values.items()}
    assert rows["own"] == rows["printed, expanded"]
    assert rows["printed"] == rows["own, percentile"] != rows["own"]
    assert (values["own"].limits, values["printed"].limits) == (OWN, PUBLISHED)
    # Twelve units are enough for expanded limits and few for percentile ones.
    few = {name: any("few-units" in row.flags for row in rows[name]) for name in rows}
    assert few["printed"]
    twelve = [row for row in rows["own"] if row.units == 12]
    assert twelve and not any("few-units" in row.flags for row in twelve)
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["configuration"]["interval"] == "expanded"
    assert manifest["limits"] == OWN
    assert {item["analysis"]["interval"] for item in manifest["experiments"].values()} == {
        "expanded"
    }
    write_report(tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert f"<dt>95% limits</dt><dd>{OWN.partition(': ')[2]}</dd>" in page


def test_a_comparison_reads_limits_as_its_runs_do(sample: Benchmark, tmp_path: Path) -> None:
    for name, policy, interval in (
        ("first", "recent:k=2", "expanded"),
        ("second", "recent:k=3", "expanded"),
        ("other", "recent:k=3", "percentile"),
    ):
        routeprism.audit(sample, policy, resamples=500, interval=interval, run=tmp_path / name)  # type: ignore[arg-type]
    both = compare_runs(tmp_path / "first", tmp_path / "second")
    assert (both.limits, both.notes) == (OWN, ())
    mixed = compare_runs(tmp_path / "first", tmp_path / "other")
    assert mixed.notes == (
        "the first run has expanded limits, the second percentile ones; differences have the "
        "second's",
    )
    assert mixed.limits == "95% limits: percentile bootstrap"

    def width(result: Any) -> float:
        difference = next(
            difference for difference in result.differences if difference.column.quantity == "J"
        ).difference
        return float(difference.upper - difference.lower)

    assert width(both) > width(mixed) > 0


def test_agreement_of_passes_is_read_the_same_way(sample: Benchmark, tmp_path: Path) -> None:
    cards = cards_for(sample, SCREEN)
    sheets = {}
    for name, turn in (("A", 3), ("B", 4)):
        sheets[name] = tmp_path / f"{name}.csv"
        labels = ("admissible" if at % turn else "ambiguous" for at in range(len(cards)))
        lines = (f"{card.question},{label}" for card, label in zip(cards, labels, strict=True))
        sheets[name].write_text("\n".join(["question,label", *lines]) + "\n")
    values = {
        interval: run_study(sample, cards, SCREEN, sheets, seed=1, resamples=500, interval=interval)
        for interval in (None, "expanded", "percentile", "bca")
    }
    rows = {name: item.rows for name, item in values.items()}
    assert rows[None] == rows["expanded"] != rows["percentile"]
    kappas = {
        name: next(row for row in own if row.quantity == "kappa") for name, own in rows.items()
    }
    assert kappas["bca"] == kappas["expanded"]  # κ has no other limits than these two
    assert kappas["expanded"].lower < kappas["percentile"].lower
    assert kappas["percentile"].flags == "synthetic;few-units"
    assert kappas["expanded"].flags == "synthetic"
    assert values[None].limits == OWN


@pytest.mark.realdata
def test_published_benchmarks_give_published_limits(data: Path) -> None:
    """PersonaMem, 589 questions of 37 users: 0.045 [0.009, 0.081] is printed (PROTOCOL §4)."""
    result = routeprism.audit("personamem", "focal", data=data)
    row = result.value("J")
    assert [round(value, 3) for value in (row.estimate, row.lower, row.upper)] == [
        *(0.045, 0.009, 0.081)
    ]
    assert result.limits == PUBLISHED
    expanded = routeprism.audit("personamem", "focal", data=data, interval="expanded")
    assert expanded.value("J").upper > row.upper
    assert expanded.limits == (f"{OWN}; interval=percentile gives those of the published protocol")
    names = ("locomo", "longmemeval:path=one_question.json.gz", "longmemeval:variant=index")
    assert {load_benchmark(name, data).interval for name in names} == {"percentile"}


@pytest.mark.slow
def test_the_command_says_it(cli: Callable[..., Any]) -> None:
    reports = cli("audit", "sample", "-p", "recent:k=3", "--resamples", "200", "--verbose")
    assert OWN in reports.out
    call = cli(
        *("audit", "sample", "-p", "recent:k=3", "--resamples", "200", "--interval", "bca"),
        "--json",
    )
    assert json.loads(call.out)["limits"] == (
        "95% limits: bias-corrected and accelerated bootstrap"
    )
    orders = cli("orders", "sample", "-p", "recent:k=3", "--resamples", "200")
    assert OWN in orders.out
    curve = cli("curve", "sample", "--budget", "k=3", "--resamples", "200")
    assert OWN in curve.out
