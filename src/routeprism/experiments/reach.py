"""How far arrival order reaches into a memory: the one place that decides it, for every output.

The terminal, the report, `check`, `compare` and the pytest plugin all show what is decided here.
The rules are written down in docs/diagnosis.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from routeprism.exhibits import Results
from routeprism.experiments._verdicts import list_arms
from routeprism.experiments.statements import is_beyond_chance
from routeprism.runs import EstimateRow, Finding, Rows, StoredRun

Layer = Literal["sources", "context", "retained", "state", "none", "chance", "unknown"]
"""The outermost layer that order reached; `chance` where building again changes as much."""

FINDING = "reach"
"""Under this name the experiment `routes` stores what was decided."""

_HARDLY = 10
"""How many changed contexts for each changed source set mean that order hardly reaches sources."""
_MOSTLY = 0.5
"""Share of failing orders or pairs above which the failures are the finding."""
OUTERMOST_FIRST: tuple[Layer, ...] = (
    "sources",
    "context",
    "retained",
    "state",
    "unknown",
    "chance",
    "none",
)


_COUNTS = ("retained_changed_count", "V_changed_count", "C_changed_count", "I_changed_count")


@dataclass(frozen=True, slots=True)
class LayerChanges:
    """How many comparisons of a memory with its forward route changed, layer by layer."""

    pairs: int
    retained: int
    sources: int
    context: int
    state: int | None = None
    """None where the memory shows no state."""
    exposed: bool = True
    """Whether any question was asked; without one, only retained sets can be compared."""

    @classmethod
    def read(cls, group: Mapping[str, EstimateRow]) -> LayerChanges:
        """Read the counts of one policy and schedule, given its rows by quantity."""
        retained, sources, context, state = (
            None if (row := group.get(name)) is None else int(row.estimate or 0) for name in _COUNTS
        )
        pairs = group["V_changed_count"].queries or 0
        return cls(pairs, retained or 0, sources or 0, context or 0, state)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far order reaches into one memory."""

    policy: str
    layer: Layer
    title: str
    """The verdict in a few words."""
    changed: int = 0
    """How many comparisons changed at that layer."""
    pairs: int = 0
    sources: int = 0
    """How many comparisons changed their sources, also where the layer is `context`."""
    aside: bool = False
    """Whether it is an arm or a comparator of another policy, and not a memory by itself."""
    incomplete: bool = False
    """Whether the run lacks answers or routes, as the title says as well."""

    @property
    def phrase(self) -> str:
        """Return the title as a part of a sentence."""
        return self.title[:1].lower() + self.title[1:]

    def __str__(self) -> str:
        size = f", {self.changed} of {self.pairs} pairs" if self.changed else ""
        return f"{self.policy}: {self.phrase}{size}"


def decide_reach(
    changes: LayerChanges, policy: str = "", *, silent: bool = False, unsourced: bool = False
) -> Reach:
    """Name the outermost layer that order reached: sources, context, retained set, state.

    Where text changes ten times as often as sources do, the text is the finding. A `silent` memory
    shows nothing to any question, an `unsourced` one shows text that names no records.
    """
    return _without_evidence(_decide_layer(changes, policy), silent, unsourced)


def _decide_layer(changes: LayerChanges, policy: str) -> Reach:
    sources, pairs = changes.sources, changes.pairs
    if sources and sources * _HARDLY > changes.context:
        title = "Order changes which records are shown"
        return Reach(policy, "sources", title, sources, pairs, sources)
    if changes.context:
        title = "Order changes the text, not the records"
        if sources:
            title = f"Order changes the text, but hardly the records ({sources} of {pairs})"
        return Reach(policy, "context", title, changes.context, pairs, sources)
    if changes.retained:
        title = (
            "Order changes what is kept, not what is shown" if changes.exposed else _RECORDS_DIFFER
        )
        return Reach(policy, "retained", title, changes.retained, pairs)
    if changes.state:
        return Reach(
            policy, "state", "Order changes the internal state alone", changes.state, pairs
        )
    title = "Order changes nothing that was observed" if changes.exposed else _SAME
    return Reach(policy, "none", title, 0, pairs)


_RECORDS_DIFFER = "Different orders keep different records"
_SAME = "Every order keeps the same records"


def decide_reaches(
    rows: Sequence[EstimateRow],
    *,
    noisy: Collection[str] = (),
    arms: Collection[str] = (),
    silent: Collection[str] = (),
    unsourced: Collection[str] = (),
    incomplete: bool = False,
) -> list[Reach]:
    """Decide for every policy of a run, over all its schedules.

    `noisy` policies may differ when they are built again in the same order. `arms` are
    policies that stand for another one with some of its operations fixed. `silent` policies show
    nothing to any question, `unsourced` ones show text that names no records. An `incomplete` run
    lacks answers or routes.
    """
    every = Rows.of(rows)
    noisy = {*noisy, *(row.policy for row in _select_plain(every, "C_within") if row.estimate)}
    reaches = []
    for policy in filter(None, every.values("policy")):
        own = every.where(policy=policy)
        reach = (
            (_of_chance(policy, own) if policy in noisy else None)
            or _of_failures(policy, own)
            or _of_routes(policy, own)
            or _of_orders(policy, own)
        )
        reach = _without_evidence(reach, policy in silent, policy in unsourced)
        aside = policy in arms or policy.startswith("source-order(")
        reaches.append(replace(reach, aside=aside))
    if all(reach.aside for reach in reaches):  # then they are what the run is about
        reaches = [replace(reach, aside=False) for reach in reaches]
    return mark_reaches(reaches) if incomplete else reaches


def mark_reaches(reaches: Sequence[Reach]) -> list[Reach]:
    """Say of every verdict of a run that answers or routes are missing."""
    return [
        reach
        if reach.incomplete
        else replace(reach, incomplete=True, title=f"{reach.title} (incomplete)")
        for reach in reaches
    ]


def _without_evidence(reach: Reach, silent: bool, unsourced: bool) -> Reach:
    """Replace an all-clear about records where what is shown names none."""
    if silent:
        title = "The memory shows nothing to any question, so nothing can be concluded"
        return replace(reach, layer="unknown", title=title)
    if unsourced and reach.layer == "context":
        title = "Order changes the text, which names no sources: its records may also differ"
        return replace(reach, layer="unknown", title=title)
    return reach


def _select_plain(rows: Rows, *quantities: str) -> Rows:
    """Keep the rows over all questions that no model, mask or arm narrows down."""
    return rows.where(quantity=quantities, stratum="all", model="", mask="", arm="")


def _of_chance(policy: str, rows: Rows) -> Reach | None:
    """Decide for a memory with chance in it; None where order changes more than chance does."""
    if not _select_plain(rows, "J"):
        return None
    if not _select_plain(rows, "D_build"):
        title = "One build per route cannot separate order from the memory's own chance"
        return Reach(policy, "unknown", title)
    if is_beyond_chance(rows.where(stratum="all", model="", mask="", arm="")):
        return None
    title = "Order is not shown to change more than building again does"
    return Reach(policy, "chance", title)


def _of_failures(policy: str, rows: Rows) -> Reach | None:
    """Decide for a memory that failed on most of its routes; None for any other."""
    failed = sum(row.estimate or 0 for row in _select_plain(rows, "count.failed_pairs"))
    compared = sum(row.queries or 0 for row in _select_plain(rows, "V_changed_count"))
    if not failed or failed < _MOSTLY * (failed + compared):
        return None
    total = int(failed) + compared
    return Reach(policy, "unknown", f"The memory failed on {int(failed)} of {total} pairs")


def _of_routes(policy: str, rows: Rows) -> Reach | None:
    groups = _select_plain(rows, *_COUNTS).where(experiment="routes").group("schedule")
    reaches = [
        decide_reach(LayerChanges.read(group), policy)
        for group in groups.values()
        if "V_changed_count" in group
    ]
    return min(reaches, key=lambda r: (OUTERMOST_FIRST.index(r.layer), -r.changed), default=None)


def _of_orders(policy: str, rows: Rows) -> Reach:
    """Decide where only arrival models were looked at."""
    failed = max((row.estimate or 0 for row in _select_plain(rows, "order_failed")), default=0.0)
    if failed >= _MOSTLY:
        title = f"The memory raises an error in {failed:.0%} of orders"
        return Reach(policy, "unknown", title)
    changed = [row for row in _select_plain(rows, "order_change") if row.estimate is not None]
    if not changed:
        return Reach(policy, "none", "What was found")
    if any(row.estimate for row in changed):
        return Reach(policy, "retained", _RECORDS_DIFFER)
    return Reach(policy, "none", _SAME)


def summarise_reaches(reaches: Sequence[Reach]) -> str:
    """Summarise the verdicts in one sentence; empty without a traced memory."""
    memories = [reach for reach in reaches if not reach.aside]
    if not any(reach.pairs or reach.layer in ("chance", "unknown") for reach in memories):
        return ""
    incomplete = any(reach.incomplete for reach in memories)
    return f"{'Incomplete: ' * incomplete}{_summarise_memories(memories)}"


def _summarise_memories(memories: Sequence[Reach]) -> str:
    alone = len(memories) == 1
    by_layer: dict[Layer, list[Reach]] = {}
    for reach in memories:
        by_layer.setdefault(reach.layer, []).append(reach)
    if sources := by_layer.get("sources"):
        subject = (
            "this memory shows" if alone else f"{len(sources)} of {len(memories)} memories show"
        )
        return f"Arrival order changes which records {subject}."
    if context := by_layer.get("context"):
        return _summarise_context(context, alone=alone)
    unclear = [reach for reach in memories if reach.layer in ("unknown", "chance")]
    if unclear:
        return f"{unclear[0].title}{'' if alone else f' ({unclear[0].policy})'}."
    subject = "this memory shows" if alone else "these memories show"
    return f"Arrival order changes nothing that {subject}."


def _summarise_context(reaches: Sequence[Reach], *, alone: bool) -> str:
    worst = max(reaches, key=lambda reach: reach.sources)
    if not worst.sources:
        return "Arrival order changes the text that is shown, but not which records it comes from."
    return (
        "Arrival order changes the text that is shown, but hardly which records it comes from "
        f"({worst.sources} of {worst.pairs} pairs{'' if alone else f' of {worst.policy}'})."
    )


def store_reaches(reaches: Sequence[Reach]) -> list[Finding]:
    """Write what was decided for the store."""
    return [Finding(name=FINDING, value=asdict(reach), policy=reach.policy) for reach in reaches]


def read_reaches(stored: StoredRun) -> list[Reach]:
    """Read how far order reaches into the memories of a finished run."""
    findings = {
        "arms": stored.findings("mechanism", "arms"),
        FINDING: stored.findings("routes", FINDING),
    }
    rows, incomplete = Rows.of(stored.estimates()), bool(stored.shortfall())
    return find_reaches(Results(rows, findings, incomplete=incomplete))


def find_reaches(results: Results) -> list[Reach]:
    """Return what was decided about a run; decide now where it has no record of it."""
    reaches = [Reach(**finding.value) for finding in results.findings.get(FINDING, ())]
    reaches = reaches or decide_reaches(results.rows, arms=list_arms(results))
    return mark_reaches(reaches) if results.incomplete else reaches
