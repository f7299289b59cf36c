"""The route audit: what order changes at the source, context and state layers, with intervals."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from routeprism import workers as pool
from routeprism.answers import Plan as Cost
from routeprism.errors import SpecError, nearest
from routeprism.experiments._building import Pacing, builds_of, construct
from routeprism.experiments._case import work
from routeprism.experiments._contrasts import contrasts, mechanisms
from routeprism.experiments._diagnosis import Rewritten, diagnoses, interface_findings, layers
from routeprism.experiments._inside import note_sentences, reply_notes
from routeprism.experiments._inspecting import inspect_stages
from routeprism.experiments._kept import failure_notes, outside
from routeprism.experiments._mechanism import mechanism_sentences
from routeprism.experiments._over_time import retention_curves, retention_sentences
from routeprism.experiments._plans import Plan, interface_of
from routeprism.experiments._repeated import build_sentences, by_chance, chancy
from routeprism.experiments._rows import Key, Setting, estimate_rows, in_order
from routeprism.experiments._stages import Asked, Found, Stage, Traced, add_costs
from routeprism.experiments._strata import Masks
from routeprism.measures import RESAMPLES, Interval, Tally, chosen_interval, limits_said
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import (
    Policy,
    SourceOrder,
    builder_model,
    own_source,
    stored_states,
)
from routeprism.records import Benchmark
from routeprism.routes import cross_fit
from routeprism.runs import CONTRASTS, EstimateRow, Finding, Run

__all__ = ["Audit", "SEED", "WORKPLACE", "checked_masks", "distinct", "label_source", "run_audit"]

SEED = 20260910
"""The default bootstrap seed."""

WORKPLACE = "routeprism.experiments._case"
"""What a worker needs to import, whatever the audit."""

_GROWING = ("draws", "batches", "masks", "display", "reuse", "provenance_arms", "margin")
"""What may differ when a run is opened again: more answers, and other cuts of the same ones."""
_TAKEN = (
    "distinct-options",
    "flip-sample",
    "fixed-source",
    "selection-changed",
    "selection-unchanged",
)
"""Masks that experiments make by themselves."""
_MANY_CASES = 200
"""From how many pools on a second process is worth its start."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found."""

    benchmark: str
    rows: tuple[EstimateRow, ...]
    """Every number, as in `estimates.csv`."""
    sentences: tuple[str, ...]
    """One for each policy and schedule: at which layers order showed."""
    notes: tuple[str, ...]
    """What a reader of the numbers should know."""
    counts: Mapping[str, int]
    """Pools, records, questions."""
    directory: Path | None = None
    """Where the run is kept, if it is."""
    costs: Mapping[str, Cost] = field(default_factory=dict)
    """After a dry run: what each model would take."""
    findings: tuple[Finding, ...] = ()
    """What an experiment on orders found of pools and questions that is no single number."""
    tables: Mapping[str, Sequence[Sequence[object]]] = field(default_factory=dict, repr=False)
    """What its caller asked to keep: rows of the store, by table."""
    limits: str = ""
    """How the 95% limits of the rows were read, in words."""

    def value(self, quantity: str, **where: str) -> EstimateRow:
        """Give the one row with this quantity and these columns; stratum `all` unless said."""
        wanted = {"stratum": "all", **where}
        found = [
            row
            for row in self.rows
            if row.quantity == quantity
            and all(getattr(row, column) == value for column, value in wanted.items())
        ]
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows have {quantity=} and {wanted}")
        return found[0]

    def __str__(self) -> str:
        notes = (f"Note: {note}" for note in self.notes)
        return "\n".join((*self.sentences, *filter(None, (self.limits,)), *notes))


def run_audit(
    benchmark: Benchmark,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    *,
    kinds: Sequence[str] = (),
    labels: str | None = None,
    masks: Masks | None = None,
    ties: bool = False,
    over_time: bool = False,
    stages: Sequence[Stage] = (),
    command: str = "audit",
    dry_run: bool = False,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    workers: int | None = None,
    ray: str | None = None,
    directory: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    asked: Asked | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    builds: int = 1,
    values: Collection[str] = (),
    crew: pool.Crew | None = None,
) -> Audit:
    """Trace every pool under every policy and schedule, and estimate what changed.

    Memories that ask a model are built first, through the run's ledger. Stages go on from the
    stored traces; a `dry_run` only says what building and answers would take. Each route is built
    `builds` times; two or more tell order from a memory's own chance. `values` names quantities
    whose values are handed back although no traces are kept. A `crew` of as many workers that was
    begun before saves their start.
    """
    if builds < 1:
        raise SpecError(f"Expected 1 build or more but got {builds=}")
    if seed < 0 or resamples < 100:
        raise SpecError(
            f"Expected a seed of 0 or more and 100 resamples or more but got {seed=}, {resamples=}"
        )
    used = chosen_interval(interval, benchmark.interval)
    said_limits = limits_said(used, benchmark.interval)
    policies = distinct(policies)
    if dry_run and directory is not None and not directory.exists():
        directory = None  # nothing to resume, and a question about cost should leave nothing
    schedules = tuple(dict.fromkeys(s for s in schedules if s.name != FORWARD.name))
    if not policies or not schedules:
        raise SpecError("an audit needs at least one policy and one schedule other than forward")
    if not benchmark.has_text:
        _refuse_reading(benchmark, policies, stages)
    if ties and not any(callable(getattr(policy, "ties", None)) for policy in policies):
        raise SpecError(
            f"{', '.join(policy.name for policy in policies)}: no policy here counts ties; focal "
            f"does"
        )
    source = label_source(benchmark, labels)
    plan = Plan(
        benchmark,
        policies,
        schedules,
        source,
        contrasts(policies),
        ties,
        store=directory is not None or bool(stages),
        masks=checked_masks(masks or {}),
        fits=cross_fit(policies, benchmark.cases),
        over_time=over_time,
        builds=builds,
        values=tuple(values),
    )
    number = len(benchmark.cases)
    stored = [policy for policy in policies if stored_states(policy)]
    asking = [policy.name for policy in policies if builder_model(policy) is not None]
    notes: tuple[str, ...] = ()
    if asking and over_time:
        raise SpecError(
            f"{asking[0]} asks a model while it is built; looking at it over time would build it "
            f"anew for every moment of every pool"
        )
    if asking and workers is not None and workers > 1:
        notes = (f"One process instead of {workers}: {asking[0]} asks a model while it is built",)
    if asking and ray is not None:
        notes = (f"Here instead of on {ray}: {asking[0]} asks a model while it is built",)
    if stored:  # what they are revived from is here
        workers, ray = 1, None
    if workers is None:
        workers = pool.available() if number >= _MANY_CASES else 1
    tally: Tally[Key] = Tally(benchmark.weighting)
    counts: Counter[str] = Counter()
    found = Found()
    repeated: list[Finding] = []
    tables: dict[str, list[Sequence[object]]] = {}
    costs: dict[str, Cost] = {}
    with ExitStack() as stack:
        run = writer = None
        kept = directory
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory())) if stored else None
        if kept is None and (stages or stored):  # answers need a ledger, if only for this call
            kept = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        if kept is not None:
            configuration = _configuration(command, plan, kinds, stages, seed, resamples, used)
            run = stack.enter_context(
                Run.open(kept, configuration, inputs=benchmark.inputs, growing=_GROWING)
            )
            if scratch is not None:
                # What a dry run builds without replies is not what will be built.
                states = scratch / "states.sqlite" if dry_run else run.store
                plan = replace(plan, states=states)
                pacing = Pacing(rate_limit, concurrency, dry_run)
                wanted = partial(builds_of, plan, builds=builds)
                costs |= construct(run, states, stored, wanted, pacing, asked)
            if not run.fresh and any(map(outside, policies)) and run.store.exists():
                plan = replace(plan, kept=run.directory)
            writing = ExitStack()
            stack.push(writing)
            writer = writing.enter_context(run.writing())
        for done, result in enumerate(
            pool.ordered_map(work, plan, number, workers=workers, ray=ray, crew=crew), start=1
        ):
            tally.append(result.sums)
            counts.update(result.counts)
            repeated.extend(result.findings)
            for table, entries in result.tables.items():
                if writer is not None:
                    writer.insert(table, entries)
                elif values:
                    tables.setdefault(table, []).extend(entries)
            if progress is not None:
                progress(done, number)
        setting = _setting(plan, seed, resamples, used)
        rows = estimate_rows(tally, setting)
        totals = {name: counts[name] for name in ("pools", "records", "questions")}
        if run is not None:
            writing.close()
            if repeated:
                run.keep("builds", repeated)
            traced = Traced(
                run, benchmark, policies, schedules, plan.contrasts, source, setting, plan.masks
            )
            found = Found(notes=inspect_stages(stages, traced))
            for stage in stages:
                if dry_run:
                    for name, cost in stage.price(traced).items():
                        costs[name] = add_costs(costs.get(name), cost)
                    continue
                one = stage.perform(traced, asked)
                found = Found(
                    [*found.rows, *one.rows],
                    (*found.sentences, *one.sentences),
                    (*found.notes, *one.notes),
                )
        rows = [*rows, *found.rows]
        rows = in_order(
            rows,
            [policy.name for policy in policies],
            [schedule.name for schedule in schedules],
        )
        lines, arms = layers(rows), mechanisms(policies)
        said = diagnoses(lines, _rewritten(counts), synthetic=benchmark.synthetic)
        said |= build_sentences(rows, by_chance(rows, chancy(policies)), builds)
        sentences = (
            *said.values(),
            *note_sentences(rows),
            *mechanism_sentences(rows, arms),
            *retention_sentences(rows),
            *found.sentences,
        )
        every_note = (
            *benchmark.notes,
            *notes,
            *failure_notes(counts),
            *_notes(counts),
            *reply_notes(counts),
            *found.notes,
        )
        if run is not None and not dry_run:
            run.keep("routes", interface_findings(lines, said))
            run.keep("retention", retention_curves(rows))
            run.keep("mechanism", [one.finding(setting.interfaces[one.policy]) for one in arms])
            run.keep(CONTRASTS, [c.finding(setting.interfaces[c.policy]) for c in plan.contrasts])
            run.keep_masks(plan.masks)
            run.finish(
                rows,
                {**totals, "estimates": len(rows)},
                sentences=sentences,
                notes=every_note,
                limits=said_limits,
            )
    return Audit(
        benchmark.name,
        tuple(rows),
        sentences,
        every_note,
        totals,
        directory,
        costs,
        tables=tables,
        limits=said_limits,
    )


def _refuse_reading(
    benchmark: Benchmark, policies: Sequence[Policy], stages: Sequence[Stage]
) -> None:
    """Refuse what would read words where there are none, rather than give it numbers."""
    if stages:
        raise SpecError(f"benchmark '{benchmark.name}' has no texts that a model could read")
    for policy in policies:
        inner = policy.inner if isinstance(policy, SourceOrder) else policy
        if interface_of(policy) != "all" or hasattr(inner, "unseen"):
            raise SpecError(
                f"benchmark '{benchmark.name}' has session ids and no texts, and {policy.name} "
                f"with the interface {interface_of(policy)} reads texts; use recent:k=N with "
                f"--interface all"
            )


def checked_masks(masks: Masks) -> Masks:
    """Refuse masks whose names or ids cannot be used."""
    for name in masks:
        if not name or name in _TAKEN or name.startswith("outside-"):
            raise SpecError(f"a mask cannot be called {name!r}")
    for name, ids in masks.items():
        if isinstance(ids, str):
            raise SpecError(f"Expected question ids for mask '{name}' but got the text {ids!r:.60}")
    return {name: frozenset(ids) for name, ids in masks.items()}


def _digest(ids: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


def distinct(policies: Sequence[Policy]) -> tuple[Policy, ...]:
    """Take each policy once; refuse two of the same name."""
    by_name: dict[str, Policy] = {}
    for policy in policies:
        if by_name.setdefault(policy.name, policy) != policy:
            raise SpecError(f"two different policies are called '{policy.name}'")
    return tuple(by_name.values())


def label_source(benchmark: Benchmark, labels: str | None) -> str:
    """Give the label source to read; the benchmark's first unless named."""
    if labels is None:
        return benchmark.labels[0] if benchmark.labels else ""
    if labels not in benchmark.labels:
        raise SpecError(
            f"benchmark '{benchmark.name}' has no labels '{labels}'. "
            + (nearest(labels, benchmark.labels) or "It has none.")
        )
    return labels


def _configuration(
    command: str,
    plan: Plan,
    kinds: Sequence[str],
    stages: Sequence[Stage],
    seed: int,
    resamples: int,
    interval: Interval,
) -> Mapping[str, object]:
    described = {name: value for stage in stages for name, value in stage.described().items()}
    return {
        **described,
        "command": command,
        "benchmark": plan.benchmark.name,
        "fingerprint": plan.benchmark.fingerprint,
        "synthetic": plan.benchmark.synthetic,
        "policies": [policy.name for policy in plan.policies],
        **_builders(plan),
        "sources": {p.name: source for p in plan.policies if (source := own_source(p))},
        "interfaces": [interface_of(policy) for policy in plan.policies],
        "schedules": [schedule.name for schedule in plan.schedules],
        "kinds": sorted(kinds),
        "labels": plan.labels,
        "masks": {name: _digest(ids) for name, ids in plan.masks.items()},
        "ties": plan.ties,
        "unit": plan.benchmark.unit,
        "weighting": plan.benchmark.weighting,
        "seed": seed,
        "resamples": resamples,
        "interval": interval,
        **({"over_time": True} if plan.over_time else {}),
        **({"builds": plan.builds} if plan.builds > 1 else {}),
        **({"folds": len(plan.fits.by_fold)} if plan.fits and plan.fits.by_fold else {}),
    }


def _builders(plan: Plan) -> Mapping[str, object]:
    """Say which models build, with all that can change their replies."""
    models = {policy.name: builder_model(policy) for policy in plan.policies}
    found = {name: {m.name: dict(m.settings)} for name, m in models.items() if m is not None}
    return {"builders": found} if found else {}


def _setting(plan: Plan, seed: int, resamples: int, interval: Interval) -> Setting:
    return Setting(
        plan.benchmark,
        {policy.name: interface_of(policy) for policy in plan.policies},
        seed,
        interval,
        resamples,
        counted={coordinate.name for _, _, coordinate in plan.coordinates if coordinate.counted},
        embedded={
            policy.name
            for policy in plan.policies
            if (model := builder_model(policy)) is not None and model.embedded
        },
    )


def _notes(counts: Counter[str]) -> tuple[str, ...]:
    notes = []
    if single := counts["pools of one record"]:
        notes.append(
            f"{single} of {counts['pools']} pools have one record: they have only one order, "
            f"and count as unchanged"
        )
    if unseen := counts["unseen records"]:
        blind = [who for what, who, number in _named(counts) if what == "unseen" and number]
        notes.append(
            f"{unseen} of {counts['records']} records have no Latin-letter words: the lexical "
            f"tokeniser of {', '.join(blind)} finds nothing in them to compare or to rank"
        )
    for what, who, number in _named(counts):
        if what == "too long" and number:
            notes.append(
                f"{number} of {counts['records']} records alone pass the limit of the interface "
                f"{who}; they can be retained but never exposed"
            )
    return tuple(notes)


def _rewritten(counts: Counter[str]) -> Rewritten:
    """Give the kinds of block that each policy rewrote."""
    found: dict[str, dict[str, int]] = {}
    for what, who, number in _named(counts):
        if what == "rewritten":
            policy, _, kind = who.partition("\0")
            found.setdefault(policy, {})[kind] = number
    return found


def _named(counts: Counter[str]) -> list[tuple[str, str, int]]:
    """Take apart the counts that name a policy or an interface."""
    parts = ((*name.partition("\0")[::2], number) for name, number in counts.items())
    return [(what, who, number) for what, who, number in parts if who]
