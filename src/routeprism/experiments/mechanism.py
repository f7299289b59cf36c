"""Contrasts between the policies of a run, and which operation of a policy makes the difference.

Γ compares a policy with its comparator. δ^op and interactions compare the arms of a policy, in each
of which some of its operations follow the order of arrival and the others source order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from routeprism.errors import SpecError
from routeprism.exhibits import (
    Chart,
    Results,
    Severity,
    Statement,
    Table,
    format_row,
    make_table,
    name_chart,
    read_limits,
    shorten,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment, select_sides
from routeprism.experiments.statements import compose_rows, state_row
from routeprism.judge import excludes_zero
from routeprism.policies import Policy, SourceOrder, list_operations, make_arms
from routeprism.quantities import find_quantity
from routeprism.runs import EstimateRow, Finding, Rows


@dataclass(frozen=True, slots=True)
class Contrast:
    """A signed sum over policies, taken question by question."""

    experiment: str
    prefix: str
    """`Gamma`, `delta_op` or `interaction`."""
    policy: str
    """The policy that the row is listed under."""
    arm: str
    terms: tuple[tuple[int, str], ...]
    """(sign, policy name)."""

    def finding(self, interface: str) -> Finding:
        """Keep what it is made of, so that its numbers can be traced."""
        value = {
            "experiment": self.experiment,
            "quantity": self.prefix,
            "policy": self.policy,
            "arm": self.arm,
            "terms": [list(term) for term in self.terms],
        }
        name = f"{self.experiment}:{self.prefix}:{self.arm}"
        return Finding(name=name, value=value, policy=self.policy, interface=interface)


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A policy with its own operations, and its arms that are in the run."""

    policy: str
    arms: Mapping[tuple[str, ...], str]
    """Operations that follow arrival order → the name of the arm; none for the canonical one."""

    @property
    def operations(self) -> tuple[str, ...]:
        """All operations that the policy declares."""
        return max(self.arms, key=len)

    @property
    def inner_arms(self) -> tuple[str, ...]:
        """The arms that stand for the policy with some of its operations fixed."""
        return tuple(name for name in self.arms.values() if name != self.policy)

    def finding(self, interface: str) -> Finding:
        """Record which policy is which arm, so that a reader of the run knows."""
        arms = [{"operations": list(key), "policy": name} for key, name in self.arms.items()]
        return Finding(name="arms", value=arms, policy=self.policy, interface=interface)


def with_arms(policies: Sequence[Policy]) -> list[Policy]:
    """Add the arms of every policy that declares operations."""
    by_name = {policy.name: policy for policy in policies}
    for policy in policies:
        for arm in make_arms(policy).values():
            by_name.setdefault(arm.name, arm)
    if not any(map(list_operations, policies)):
        raise SpecError(
            f"{', '.join(policy.name for policy in policies)}: no policy here declares operations "
            f"to distinguish; focal does, and your own can (operations, fixed(operation))"
        )
    return list(by_name.values())


def mechanisms(policies: Sequence[Policy]) -> list[Mechanism]:
    """Find the policies whose canonical arm is in the run; an arm of another is not one itself."""
    names = {policy.name for policy in policies}
    mechanisms_of_plan: list[Mechanism] = []
    for policy in policies:
        arms = {key: arm.name for key, arm in make_arms(policy).items() if arm.name in names}
        if arms and () in arms:
            mechanisms_of_plan.append(Mechanism(policy.name, arms))
    inner = {
        name
        for mechanism in mechanisms_of_plan
        for key, name in mechanism.arms.items()
        if key != mechanism.operations
    }
    return [mechanism for mechanism in mechanisms_of_plan if mechanism.policy not in inner]


def contrasts(policies: Sequence[Policy]) -> tuple[Contrast, ...]:
    """Find every contrast whose arms are all in the run."""
    names = {policy.name for policy in policies}
    contrasts_of_plan: list[Contrast] = []
    for policy in policies:
        comparator = SourceOrder(policy).name
        if comparator in names:
            terms = ((1, policy.name), (-1, comparator))
            contrasts_of_plan.append(
                Contrast("routes", "Gamma", policy.name, "ordered-comparator", terms)
            )
    for mechanism in mechanisms(policies):
        contrasts_of_plan.extend(_operation_contrasts(mechanism.arms))
    return tuple(dict.fromkeys(contrasts_of_plan))


def _operation_contrasts(arms: Mapping[tuple[str, ...], str]) -> Iterator[Contrast]:
    """Compare every arm with the canonical one, and sets of operations with their parts."""
    for following, policy in arms.items():
        if following:
            terms = ((1, policy), (-1, arms[()]))
            yield Contrast("mechanism", "delta_op", policy, "+".join(following), terms)
        if len(following) < 2:
            continue
        # Inclusion and exclusion; for two, (both − canonical) − (one − canonical) − (other − …).
        sizes = range(len(following) + 1)
        parts = [part for size in sizes for part in combinations(following, size)]
        if all(part in arms for part in parts):
            signs = tuple((-1 if (len(following) - len(p)) % 2 else 1, arms[p]) for p in parts)
            yield Contrast("mechanism", "interaction", policy, "×".join(following), signs)


_HALF = 0.5
"""The share of the whole change at which an operation counts as its cause."""

Place = tuple[str, str, str]
"""Schedule, model, filler."""
Parts = dict[tuple[str, str, str], EstimateRow]
"""(quantity, policy, arm) → its row."""


def mechanism_statements(
    rows: Sequence[EstimateRow], effects: Sequence[Mechanism]
) -> Iterator[Statement]:
    """Describe each policy and schedule: its sources, and each model's answers."""
    places: dict[Place, Parts] = {}
    for row in Rows.of(rows).where(experiment="mechanism", stratum="all", mask="", batch=""):
        parts = places.setdefault((row.schedule, row.model, row.filler), {})
        parts[row.quantity, row.policy, row.arm] = row
    for mechanism in effects:
        for place, parts in places.items():
            readings = ("D_res", "H") if place[1] else ("J",)
            statements = (_describe(mechanism, name, place, parts) for name in readings)
            yield from [statement for statement in statements if statement is not None][:1]


def _describe(mechanism: Mechanism, quantity: str, place: Place, parts: Parts) -> Statement | None:
    """Make the statement about one quantity; None if the run does not have it."""
    arms = {
        following: row
        for following, name in mechanism.arms.items()
        if (row := parts.get((f"delta_op.{quantity}", name, "+".join(following))))
    }
    whole = arms.get(mechanism.operations)
    if whole is None:
        return None
    schedule, model, filler = place
    alone = {following[0]: row for following, row in arms.items() if len(following) == 1}
    reader = f", read by {model}, filler {filler}" if model else ""
    words = compose_rows("{quantity} changes by {value}", quantity=quantity, value=whole)
    if len(mechanism.operations) > 1:
        words += (f" with {' and '.join(mechanism.operations)} in arrival order",)
        for name, row in alone.items():
            words += compose_rows(", {value} with {name} alone", value=row, name=name)
        words += (f"; {_describe_cause(whole, alone)}",)
    severity: Severity = "problem" if excludes_zero(whole) else "info"
    scope = f"{schedule}{reader}, against its canonical arm"
    return state_row("mechanism", whole, words, severity=severity, scope=scope)


def _describe_cause(whole: EstimateRow, alone: Mapping[str, EstimateRow]) -> str:
    """Name the operations that alone make half of the change or more, with an interval of it."""
    if not excludes_zero(whole):
        return "no effect of order is shown"
    total = whole.estimate or 0.0
    causes = [
        name
        for name, row in alone.items()
        if excludes_zero(row) and (row.estimate or 0.0) / total >= _HALF
    ]
    if not causes:
        return "no operation alone accounts for half of it"
    return f"{' and '.join(causes)} alone accounts for half of it or more"


def conclude_mechanism(outcome: AuditOutcome) -> Conclusion:
    """Describe which operations make the difference, and store which policy is which arm."""
    effects = mechanisms(outcome.plan.policies)
    interfaces = outcome.setting.interfaces
    return Conclusion(
        tuple(mechanism_statements(outcome.rows, effects)),
        {"mechanism": [each.finding(interfaces[each.policy]) for each in effects]},
    )


_MECHANISM = ("J", "C_changed", "H", "Delta", "D_res", "Delta_rep")
"""Quantities by which operations are compared; the rest is among all estimates."""
_REPEATED = {"H": "D_res", "Delta": "Delta_rep"}
"""Quantities that are drawn in place of single-draw ones if there are several draws."""


def _read_mechanism(results: Results) -> list[EstimateRow]:
    rows = results.rows.where(experiment="mechanism", stratum="all", mask="")
    return [row for row in rows if find_quantity(row.quantity).base.name in _MECHANISM]


def _tabulate(results: Results) -> list[Table]:
    """Show what each order-dependent operation does."""
    return make_table(
        "mechanism",
        "Which operation does it",
        "δ^op compares the policy with the arm in which the named operations follow source order. "
        "The interaction is what two operations do together beyond the sum of each.",
        ("policy", "schedule", "model", "operations", "quantity", "estimate"),
        [
            (row.policy, row.schedule, row.model, row.arm, row.quantity, format_row(row))
            for row in _read_mechanism(results)
        ],
        names=5,
    )


def _chart(results: Results) -> list[Chart]:
    """Draw the arms of a policy side by side: each operation, all together, interactions."""
    groups: dict[tuple[str, str, str], list[EstimateRow]] = {}
    for row in _read_mechanism(results):
        if not row.batch and row.lower is not None:
            family = row.policy.partition(":")[0]
            key = (find_quantity(row.quantity).base.name, family, row.model)
            groups.setdefault(key, []).append(row)
    return [
        _draw_mechanism(*key, rows)
        for key, rows in groups.items()
        if (_REPEATED.get(key[0]), *key[1:]) not in groups
    ]


def _is_interaction(row: EstimateRow) -> bool:
    return find_quantity(row.quantity).derivation == "interaction"


def _draw_mechanism(quantity: str, family: str, model: str, rows: list[EstimateRow]) -> Chart:
    rows.sort(key=lambda row: (_is_interaction(row), row.arm.count("+")))
    ambiguous = len({(row.policy, row.arm) for row in rows}) > len({row.arm for row in rows})

    def label(row: EstimateRow) -> str:
        interaction = "interaction " if _is_interaction(row) else ""
        return shorten(f"{interaction}{row.arm}" + (f", {row.policy}" if ambiguous else ""))

    words = "; ".join(f"{row.schedule}, {label(row)}, {format_row(row)}" for row in rows)
    reader = f", read by {shorten(model)}" if model else ""
    return Chart(
        f"mechanism-{name_chart(quantity, family, model)}",
        f"{shorten(family)}: change of {quantity} by operation{reader}",
        f"Difference of {quantity} that operations in arrival order make: {words}.",
        "mechanism",
        tuple(
            {"schedule": shorten(row.schedule), "arm": label(row), **read_limits(row)}
            for row in rows
        ),
    )


experiment = Experiment(
    name="mechanism",
    title="Mechanism",
    summary="Fix order-dependent operations to source order, one by one and together.",
    rank=15,
    answers="routes",
    answers_behind=partial(select_sides, "routes"),
    tables=_tabulate,
    charts=_chart,
    conclude=conclude_mechanism,
)
