"""Severity, cause and remedy of twelve memories with one known fault or none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import routeprism
from routeprism.experiments import Audit
from routeprism.experiments.severity import decide_verdicts
from routeprism.policies import Policy, as_policy
from routeprism.policies.remedies import parse_remedy
from routeprism.records import Benchmark, load_benchmark

from . import order_faults as faults

HOLD = "hold:w=2"
LOG = "log-fallback:k=3"
KEPT = "different records, evidence kept"
CASES = [
    (faults.OverwritesByArrival, "evidence lost", "older overwrote newer", HOLD),
    (faults.ShortWindow, "evidence lost", "window too short", HOLD),
    (faults.MergesIntoFirst, "evidence lost", "merge kept another record", HOLD),
    (faults.MergesIntoLongest, "evidence lost", "merge kept another record", HOLD),
    (faults.BreaksTiesByArrival, "evidence lost", "retrieval chose other records", HOLD),
    (faults.ShowsByArrival, "text only", "blocks in a different order", HOLD),
    (faults.CountsArrivals, "internal only", "state only", None),
    (faults.ForgetsAll, "stable", "discarded as a duplicate", LOG),
    (
        faults.DeduplicatesUpdates,
        "different records, evidence kept",
        "discarded as a duplicate",
        LOG,
    ),
    (faults.ResolvesByTime, "stable", None, None),
    (faults.AppendOnly, "stable", None, None),
    (faults.KeepsAtRandom, "chance, order not shown", None, None),
]
ABOUT_UPDATES = (faults.OverwritesByArrival, faults.DeduplicatesUpdates, faults.ResolvesByTime)


def load_part(memory: Any) -> Benchmark:
    """Load a third of the sample, or of the one about updates."""
    whole = load_benchmark("sample-updates" if memory in ABOUT_UPDATES else "sample", None)
    first = 8 if memory is faults.MergesIntoLongest else 0
    return replace(whole, cases=whole.cases[first : first + 8])


def audit(benchmark: Benchmark, memory: Any, **more: Any) -> Audit:
    return routeprism.audit(benchmark, memory, resamples=100, workers=1, **more)


@pytest.mark.parametrize(("memory", "level", "cause", "remedy"), CASES)
def test_severity_and_cause(memory: Any, level: str, cause: str | None, remedy: str | None) -> None:
    builds = {"builds": 3} if memory is faults.KeepsAtRandom else {}
    found = audit(load_part(memory), memory, **builds)
    (verdict,) = decide_verdicts(found.rows)
    assert verdict.ordinary_level == level
    assert verdict.lacks_evidence is (remedy == LOG)
    kinds = [statement.kind for statement in found.statements]
    assert kinds[0] == ("sanity" if remedy == LOG else "source order")
    losses = [loss for f in found.findings if f.name == "losses" for loss in f.value]
    if cause is None:
        assert losses == []
        return
    first = next(s for s in found.statements if s.kind == "causes")
    own = [loss for loss in losses if loss["schedule"] == first.schedule]
    assert {loss["cause"] for loss in own if loss["record"] or remedy != HOLD} <= {cause}
    assert any(loss["cause"] == cause for loss in own)


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "level", "cause", "remedy"), CASES)
def test_the_recommended_remedy_works(
    memory: Any, level: str, cause: str | None, remedy: str | None
) -> None:
    benchmark = load_part(memory)
    found = routeprism.remedy(benchmark, memory, resamples=100, workers=1)
    (advice,) = [s for s in found.statements if s.kind == "recommendation"]
    if remedy is None:
        assert advice.next_step == ""
        assert str(advice).startswith(f"{memory.__name__}: Recommended: nothing to repair.")
        return
    spec = f"{remedy}({memory.__name__})"
    assert advice.next_step == f"routeprism audit {benchmark.name} --policy '{spec}'"
    repaired = parse_remedy(spec, lambda _: as_policy(memory))
    assert isinstance(repaired, Policy)
    again = audit(benchmark, repaired)
    (verdict,) = decide_verdicts(again.rows)
    assert not verdict.lacks_evidence
    (recommended,) = found.remedies()
    if remedy == HOLD:
        assert verdict.levels["jitter:w=2"] == "stable"
        assert again.value("J", schedule="jitter:w=2").estimate == 1
        assert recommended.levels == verdict.levels  # late batch and reversal, as promised
        assert recommended.thorough is not None
        thorough = parse_remedy(recommended.thorough.policy, lambda _: as_policy(memory))
        (whole,) = audit(benchmark, thorough).verdicts
        assert set(whole.levels.values()) == {"stable"}
    else:
        shown = again.value("all_covered.exposed.forward", schedule="jitter:w=2")
        assert shown.estimate == 1


def test_rebuilding_gives_full_overlap_on_every_arrival() -> None:
    found = audit(load_part(faults.ShortWindow), "rebuild(recent:k=3)")
    overlaps = found.rows.where(quantity="J", experiment="routes", stratum="all")
    assert [row.schedule for row in overlaps] == ["jitter:w=2", "late-batch", "replay"]
    assert {row.estimate for row in overlaps} == {1.0}
