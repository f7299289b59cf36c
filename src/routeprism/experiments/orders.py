"""Every order, the worst order, and the smallest change of order that loses the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from routeprism import workers as pool
from routeprism.errors import SpecError
from routeprism.experiments._order_case import Looking, OrderPlan, PoolResult, look_at
from routeprism.experiments._order_sentences import order_sentences, place_sentence
from routeprism.experiments._plans import interface_of
from routeprism.experiments._rows import Key, Setting, estimate_rows, in_order
from routeprism.experiments._stages import Asked, AsksNobody, Found, Traced
from routeprism.experiments._strata import Masks
from routeprism.experiments.routes import SEED, Audit, checked_masks, distinct, label_source
from routeprism.landscape import BINS, support_positions
from routeprism.measures import RESAMPLES, Interval, Tally, chosen_interval, limits_said
from routeprism.policies import Policy, builder_model, own_source
from routeprism.records import Benchmark
from routeprism.routes import cross_fit
from routeprism.runs import EstimateRow, Finding, Run

__all__ = ["EveryOrder", "run_orders"]


@dataclass(frozen=True, slots=True)
class EveryOrder(AsksNobody):
    """Looks at every order of the pools whose routes a run has traced."""

    looking: Looking

    def described(self) -> Mapping[str, object]:
        """Give what makes the results comparable."""
        return _described(self.looking)

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Look at the orders pool by pool, and estimate what order changes."""
        benchmark, setting = traced.benchmark, traced.setting
        fits = cross_fit(traced.policies, benchmark.cases)
        plan = OrderPlan(benchmark, fits, self.looking, traced.labels, traced.masks, store=True)
        every = _Every(benchmark)
        number = len(benchmark.cases)
        for result in pool.ordered_map(look_at, plan, number, workers=1, batch=1):
            every.add(result)
            for table in ("per_question", "per_unit"):
                traced.run.add(table, result.tables[table])
        rows = every.rows(
            traced.policies, self.looking, setting.seed, setting.resamples, setting.interval
        )
        traced.run.keep("orders", every.everything)
        return Found(rows, every.sentences(rows, traced.labels), every.said())


def run_orders(
    benchmark: Benchmark,
    policies: Sequence[Policy],
    looking: Looking,
    *,
    kinds: Sequence[str] = (),
    labels: str | None = None,
    masks: Masks | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    workers: int | None = None,
    ray: str | None = None,
    directory: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Look at every order of every pool, or at drawn ones, and estimate what order changes."""
    policies = distinct(policies)
    if not policies or not looking.arrivals:
        raise SpecError("looking at orders needs at least one policy and one arrival model")
    used = chosen_interval(interval, benchmark.interval)
    said_limits = limits_said(used, benchmark.interval)
    for policy in policies:
        if builder_model(policy) is not None:
            raise SpecError(
                f"{policy.name} asks a model while it is built, and would ask it for every order; "
                f"audit it under a few schedules instead"
            )
    source = label_source(benchmark, labels)
    if looking.outcome == "support" and not source:
        raise SpecError(
            f"benchmark '{benchmark.name}' has no support labels; shrink another outcome: "
            f"retained, exposed, or a function of your own"
        )
    if looking.worst == "support" and not source:
        looking = replace(looking, worst="J")
    checked = checked_masks(masks or {})
    plan = OrderPlan(
        benchmark,
        cross_fit(policies, benchmark.cases),
        looking,
        source,
        checked,
        directory is not None,
    )
    every = _Every(benchmark)
    number = len(benchmark.cases)
    with ExitStack() as stack:
        run = writer = None
        if directory is not None:
            configuration = _configuration(plan, policies, kinds, seed, resamples, used)
            run = stack.enter_context(Run.open(directory, configuration, inputs=benchmark.inputs))
            writing = ExitStack()
            stack.push(writing)
            writer = writing.enter_context(run.writing())
        count = pool.available() if workers is None and number > 1 else workers or 1
        results = pool.ordered_map(look_at, plan, number, workers=count, ray=ray, batch=1)
        for done, result in enumerate(results, start=1):
            every.add(result)
            if writer is not None:
                for table, entries in result.tables.items():
                    writer.insert(table, entries)
            if progress is not None:
                progress(done, number)
        rows = every.rows(policies, looking, seed, resamples, used)
        findings = every.everything
        totals = {name: every.counts[name] for name in ("pools", "records", "questions")}
        sentences = every.sentences(rows, source)
        notes = (*benchmark.notes, *every.said())
        if run is not None:
            writing.close()
            run.keep("orders", findings)
            run.keep_masks(checked)
            counts = {**totals, "estimates": len(rows)}
            run.finish(rows, counts, sentences=sentences, notes=notes, limits=said_limits)
    return Audit(
        benchmark.name,
        tuple(rows),
        sentences,
        notes,
        totals,
        directory,
        findings=findings,
        limits=said_limits,
    )


class _Every:
    """What all pools add up to."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark
        self.tally: Tally[Key] = Tally(benchmark.weighting)
        # Permutations count equally here, whatever the benchmark's weighting (Appendix D.11).
        self.clusters: Tally[Key] = Tally("question")
        self.counts: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.sampled: set[tuple[str, str]] = set()
        self.positions: list[float] = []
        self.one_sided: dict[tuple[str, str], list[float]] = {}

    def add(self, result: PoolResult) -> None:
        self.tally.append(result.sums)
        self.clusters.append(result.clusters)
        self.counts.update(result.counts)
        self.findings += result.findings
        self.notes += result.notes
        self.sampled |= result.sampled
        self.positions += result.positions
        for side, means in result.one_sided.items():
            self.one_sided.setdefault(side, []).extend(means)

    def rows(
        self,
        policies: Sequence[Policy],
        looking: Looking,
        seed: int,
        resamples: int,
        interval: Interval,
    ) -> list[EstimateRow]:
        interfaces = {policy.name: interface_of(policy) for policy in policies}
        setting = Setting(self.benchmark, interfaces, seed, interval, resamples)
        rows = estimate_rows(self.tally, setting)
        rows += [
            replace(row, queries=None)  # what is counted are orders, not questions
            for row in estimate_rows(self.clusters, setting)
            if (row.policy, row.schedule) not in self.sampled
        ]
        rows = [
            replace(row, flags=";".join(filter(None, (row.flags, "sampled"))))
            if (row.policy, row.schedule) in self.sampled
            else row
            for row in rows
        ]
        names = [policy.name for policy in policies]
        return in_order(rows, names, [model.name for model in looking.arrivals])

    @property
    def everything(self) -> tuple[Finding, ...]:
        """Give what is no single number."""
        return (*self.findings, *self.placed())

    def sentences(self, rows: Sequence[EstimateRow], labels: str) -> tuple[str, ...]:
        """Say it in words."""
        found, synthetic = self.everything, self.benchmark.synthetic
        return (
            *order_sentences(rows, self.counts, found, synthetic=synthetic),
            *place_sentence(found, labels),
        )

    def placed(self) -> list[Finding]:
        """Summarise where support sits: in all, and where one end alone keeps it."""
        if not self.positions:
            return []
        found = support_positions(self.positions)
        value = {
            "instances": found.instances,
            "quartiles": found.quartiles,
            "bins": [[*bounds, count] for bounds, count in zip(BINS, found.bins, strict=True)],
        }
        by_policy: dict[str, dict[str, object]] = {}
        for (policy, side), means in sorted(self.one_sided.items()):
            by_policy.setdefault(policy, {})[f"only_{side}"] = {
                "questions": len(means),
                "mean_position": sum(means) / len(means),
            }
        return [
            Finding(name="support_position", value=value),
            *(
                Finding(name="support_position", policy=policy, value=sides)
                for policy, sides in by_policy.items()
            ),
        ]

    def said(self) -> tuple[str, ...]:
        drawn = Counter(
            finding.value["note"]
            for finding in self.findings
            if finding.name == "order_distribution"
            and finding.value["note"]
            and finding.value["chance"] is None
        )
        notes = [
            note if number == 1 else f"{note} ({number} pools)" for note, number in drawn.items()
        ]
        return (*dict.fromkeys(self.notes), *notes)


def _configuration(
    plan: OrderPlan,
    policies: Sequence[Policy],
    kinds: Sequence[str],
    seed: int,
    resamples: int,
    interval: Interval,
) -> Mapping[str, object]:
    return {
        "command": "orders",
        "benchmark": plan.benchmark.name,
        "fingerprint": plan.benchmark.fingerprint,
        "synthetic": plan.benchmark.synthetic,
        "policies": [policy.name for policy in policies],
        "sources": {p.name: source for p in policies if (source := own_source(p))},
        "interfaces": [interface_of(policy) for policy in policies],
        **_described(plan.looking),
        "kinds": sorted(kinds),
        "labels": plan.labels,
        "masks": sorted(plan.masks),
        "unit": plan.benchmark.unit,
        "weighting": plan.benchmark.weighting,
        "seed": seed,
        "resamples": resamples,
        "interval": interval,
    }


def _described(looking: Looking) -> Mapping[str, object]:
    outcome = looking.outcome
    return {
        "arrivals": [model.name for model in looking.arrivals],
        "method": looking.method or "auto",
        "drawn": looking.drawn,
        "half_width": looking.half_width,
        "most_drawn": looking.most_drawn,
        "most_states": looking.most_states,
        "worst": looking.worst,
        "outcome": outcome if outcome is None or isinstance(outcome, str) else _name(outcome),
    }


def _name(function: Callable[..., object]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"
