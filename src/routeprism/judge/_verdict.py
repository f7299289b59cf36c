"""The verdict on a memory, made in one place from the rows and findings of a run.

Experiments give evidence: rows of `estimates.csv`, anomalies, leaks, tested causes, measured
repairs. `judge` weighs it. Terminal, JSON, page, card, comment, gate and exit code are functions of
the verdict. docs/diagnosis.md explains the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from routeprism.exhibits import Results, Severity
from routeprism.judge._causes import NEVER_RIGHT, Cause
from routeprism.judge._claims import count_unreadable, is_beyond_chance, is_claim_shown
from routeprism.orders import locate_base, name_base, overlaps_writes
from routeprism.printing import pluralise
from routeprism.runs import EstimateRow, Rows, StoredRun

Depth = Literal[
    "stable",
    "internal only",
    "text only",
    "different records",
    "evidence moves",
    "evidence lost",
    "answers worse",
]
DEPTHS: tuple[Depth, ...] = get_args(Depth)
"""How deep a difference of order reaches, from the mildest to the most severe."""
PROMISE_FAILED, INCONCLUSIVE, ALWAYS_WRONG = (
    "promise failed",
    "inconclusive",
    "wrong in every order",
)
"""Levels where the depth alone would mislead, the most severe first."""
MISSING = "answers or routes are missing"
"""The doubt that an incomplete run raises, which `check --allow-missing` accepts."""
FEWEST_QUESTIONS = 5
"""With fewer questions, finding no difference shows nothing."""
ADVICE = "advice"
"""The name of the finding with the repair that an audit tried by itself."""
OBSERVED = "observed"
"""The name of the finding with what a run counted about each memory beside its rows."""

Group = Mapping[str, EstimateRow]
"""Rows of one memory and one order of arrival, by quantity."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise that a memory failed to keep: how often, and one case that shows it."""

    promise: str
    """`lost`, `duplicated`, `torn`, `stale` or `error` for overlapping writes; `leaked`."""
    failed: int
    of: int | None
    """How many trials there were; None for leaks, which are counted in routes."""
    schedule: str
    witness: str
    """One case, in words."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is wrong before order matters: evidence and updates in the reference order."""

    records: int = 0
    """Records that were added in source order."""
    kept: int = 0
    """Of these, records that the memory keeps."""
    questions: int = 0
    """Questions that name their evidence, without those whose text names no record."""
    lacking: int = 0
    """Questions that are not shown all of their evidence."""
    never_kept: int = 0
    """Of these, questions whose evidence no order keeps completely."""
    never_shown: int = 0
    """Of these, questions whose evidence some order keeps, but none shows completely."""
    updates: int = 0
    """Questions about facts that changed."""
    outdated: int = 0
    """Of these, questions that are shown the outdated value alone in every order that was built."""

    @property
    def lacks_always(self) -> bool:
        """Whether no order keeps and shows the evidence of most questions."""
        return 2 * (self.never_kept + self.never_shown) > self.questions


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The judgement about one memory."""

    policy: str
    depths: Mapping[str, Depth]
    """Arrival model or schedule → how deep its difference reaches."""
    rows: Mapping[str, Group]
    """Arrival model or schedule → quantity → row, of traces and evidence."""
    answers: Mapping[str, Group] = field(default_factory=dict)
    """Schedule → quantity → row, of the first model, or of one whose answers get worse."""
    promises: tuple[Promise, ...] = ()
    baseline: Baseline = field(default_factory=Baseline)
    inconclusive: str = ""
    """Why nothing can be concluded; empty if something can."""
    causes: tuple[Cause, ...] = ()
    repair: str = ""
    """The recommended repair as a spec; empty if none was measured or none helps."""
    command: str = ""
    """The command that follows from the verdict."""
    advice: str = ""
    """What the measured repairs achieve, in words; empty if none was measured."""
    is_incomplete: bool = False
    """Whether the run lacks answers or routes."""

    def __repr__(self) -> str:
        return f"<Verdict on {self.policy}: {self.label}>"

    def __str__(self) -> str:
        from routeprism.judge._sentences import state_verdict

        return str(state_verdict(self))

    @property
    def depth(self) -> Depth:
        """The most severe depth of all orders of arrival."""
        return max_depth(self.depths.values())

    @property
    def level(self) -> str:
        """The depth, or another word where the depth alone would mislead."""
        if self.is_harmful:
            return self.depth
        if self.promises:
            return PROMISE_FAILED
        if self.inconclusive:
            return INCONCLUSIVE
        is_mild = DEPTHS.index(self.depth) < DEPTHS.index("evidence moves")
        if self.is_always_wrong or (self.baseline.lacks_always and is_mild):
            return ALWAYS_WRONG
        return self.depth

    @property
    def label(self) -> str:
        """The level as people see it, marked while answers or routes are missing."""
        return f"{self.level} (incomplete)" if self.is_incomplete else self.level

    @property
    def is_harmful(self) -> bool:
        """Whether order is shown to take evidence away, or to make answers worse."""
        return DEPTHS.index(self.depth) >= DEPTHS.index("evidence lost")

    @property
    def is_always_wrong(self) -> bool:
        """Whether something is shown to be wrong in every order, source order included."""
        return bool(self.baseline.outdated) or any(
            cause.explained and cause.cause in NEVER_RIGHT for cause in self.causes
        )

    @property
    def is_red(self) -> bool:
        """Whether something is shown to be wrong: order, a promise, or the baseline."""
        return bool(self.is_harmful or self.promises or self.is_always_wrong)

    @property
    def severity(self) -> Severity:
        """The mark of the verdict in every output; only what is conclusive can be good."""
        if self.is_red:
            return "problem"
        unlabelled = self.depth == "different records" and not self.is_labelled
        lacking = 2 * self.baseline.lacking > self.baseline.questions
        if self.inconclusive or unlabelled or lacking or self.depth == "evidence moves":
            return "warning"
        return "good" if self.depth in ("stable", "internal only") else "info"

    @property
    def flags(self) -> tuple[str, ...]:
        """Marks of its numbers, such as `synthetic` data."""
        rows = (
            row for group in (*self.rows.values(), *self.answers.values()) for row in group.values()
        )
        flags = {flag for row in rows for flag in row.flags.split(";")}
        return tuple(flag for flag in ("synthetic", "embedded", "scripted") if flag in flags)

    @property
    def decisive(self) -> str:
        """The order of arrival that decides: the deepest, then the one that changes the most."""

        def rank(name: str) -> tuple[float, ...]:
            counts = (count(self.rows.get(name, {}), quantity) for quantity in _CHANGES)
            return (DEPTHS.index(self.depths[name]), *counts)

        return max(self.depths, key=rank, default="")

    @property
    def lost(self) -> float:
        """Questions that lose evidence under the decisive order; a mean over drawn orders."""
        return count(self.rows.get(self.decisive, {}), LOST)

    @property
    def gained(self) -> float:
        """Questions that gain evidence under the decisive order; a mean over drawn orders."""
        return count(self.rows.get(self.decisive, {}), GAINED)

    @property
    def questions(self) -> int:
        """The questions that are compared: those with labels, or all if none has."""
        group = self.rows.get(self.decisive, {})
        row = group.get(LOST) or group.get("V_changed")
        return 0 if row is None else row.queries or 0

    @property
    def is_labelled(self) -> bool:
        """Whether questions name their evidence."""
        return any(LOST in group for group in self.rows.values())

    @property
    def reference(self) -> str:
        """Names what its orders of arrival are compared with: `source order`, or a schedule."""
        return name_base(self.rows)

    @property
    def base(self) -> str:
        """Where the numbers of the reference were observed, such as `in source order`."""
        return locate_base(self.rows)

    def find(self, quantity: str) -> EstimateRow | None:
        """Find a quantity that does not depend on the order of arrival."""
        return next((group[quantity] for group in self.rows.values() if quantity in group), None)

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it, as cli/output.schema.json describes it."""
        return {
            "policy": self.policy,
            "level": self.level,
            "depth": self.depth,
            "severity": self.severity,
            "inconclusive": self.inconclusive,
            "incomplete": self.is_incomplete,
            "depths": dict(self.depths),
            "promises": [asdict(promise) for promise in self.promises],
            "baseline": asdict(self.baseline),
            "lost": self.lost,
            "gained": self.gained,
            "questions": self.questions,
            "causes": [cause.to_json() for cause in self.causes],
            "repair": self.repair,
            "advice": self.advice,
            "command": self.command,
        }


LOST, GAINED, NET = "evidence.lost", "evidence.gained", "evidence.net"
_CHANGES = (LOST, GAINED, "V_changed", "C_changed")
"""What an order of arrival changes, in the order in which it counts."""


def count(group: Group, quantity: str) -> float:
    """Return how many questions a quantity counts; 0 if it does not apply."""
    row = group.get(f"{quantity}_count")
    return 0.0 if row is None else row.estimate or 0.0


def max_depth(depths: Iterable[Depth]) -> Depth:
    """Combine the depths of several orders: the most severe one."""
    return max(depths, key=DEPTHS.index, default="stable")


def _read(group: Group, quantity: str) -> float:
    row = group.get(quantity)
    return 0.0 if row is None else row.estimate or 0.0


def decide_depth(group: Group, answers: Sequence[Group] = ()) -> Depth:
    """Decide how deep one order of arrival reaches into one memory.

    `answers` are the rows of each model that answered. Worse answers are a claim, which has to hold
    among all claims of the run. A loss of evidence that was seen is a fact, unless gains outweigh
    it or answers are shown to improve: then evidence moves.
    """
    if any(map(_get_worse, answers)):
        return "answers worse"
    changes = [(rows["Delta_rep"], rows) for rows in answers if "Delta_rep" in rows]
    is_better = any(is_claim_shown(row, rows) for row, rows in changes)
    lost, gained = count(group, LOST), count(group, GAINED)
    if lost + gained:
        net = group.get(NET)
        upper = None if net is None else net.upper
        is_net_loss = not gained or (upper is not None and upper < 0)
        return "evidence lost" if is_net_loss and not is_better else "evidence moves"
    names = ("V_changed", "retained_changed", "C_changed", "I_changed")
    records, retained, texts, states = (_read(group, name) for name in names)
    return scale_depth(records=records + retained, texts=texts, states=states)


def _get_worse(answers: Group) -> bool:
    """Return whether the answers of a model are shown to get worse."""
    change = answers.get("Delta_rep")
    return change is not None and (change.estimate or 0.0) < 0 and is_claim_shown(change, answers)


def scale_depth(*, records: float = 0.0, texts: float = 0.0, states: float = 0.0) -> Depth:
    """Place what differs without evidence on the scale: records, text, internal state."""
    if records:
        return "different records"
    if texts:
        return "text only"
    return "internal only" if states else "stable"


def judge(results: Results) -> list[Verdict]:
    """Judge every memory of a run, but not its repairs and arms unless the run is about these."""
    rows = results.rows
    routes = rows.where(experiment=("routes", "overlap"), arm="")
    policies = [policy for policy in routes.where(quantity=_JUDGED).values("policy") if policy]
    aside = list_asides(results)
    aside |= {policy for policy in policies if policy.startswith("source-order(")}
    subjects = [policy for policy in policies if policy not in aside] or policies
    if not subjects:
        return [_judge_orders(policy, rows, results) for policy in _list_explored(rows)]
    return [_add_repair(_judge_memory(policy, results), results) for policy in subjects]


def _add_repair(verdict: Verdict, results: Results) -> Verdict:
    """Add the repair that was measured, or tried, and the command that audits it."""
    from routeprism.judge._repairs import choose_repair, write_command

    data = str(read_observed(results, verdict.policy).get("data", ""))
    repair, text = _read_advice(results, verdict.policy)
    command = verdict.command
    if (advice := choose_repair(verdict, results)) is not None:
        # Repairs were measured: if none of them helps, there is no command.
        repair, text, command = advice.spec, advice.text, ""
    command = write_command(repair, data) if repair else command
    return replace(verdict, repair=repair, advice=text, command=command)


def _read_advice(results: Results, policy: str) -> tuple[str, str]:
    """Read the repair that an audit tried by itself, and what it achieves; empty if none."""
    for finding in results.findings.get(ADVICE, ()):
        if finding.policy == policy:
            return str(finding.value["repair"]), str(finding.value["text"])
    return "", ""


_JUDGED = frozenset({"V_changed", "count.failed_pairs", "count.not_applicable", "anomaly"})
"""Quantities of a memory that was compared, or that could not be."""


def list_asides(results: Results) -> frozenset[str]:
    """Name the policies of a run that are repairs or arms of another one."""
    repairs = (finding.policy for finding in results.findings.get("repair", ()))
    return list_arms(results).union(repairs)


def list_arms(results: Results) -> frozenset[str]:
    """Name the policies that are an arm of another one, with some operations in source order."""
    return frozenset(
        arm["policy"]
        for finding in results.findings.get("arms", ())
        for arm in finding.value
        if arm["policy"] != finding.policy
    )


def read_observed(results: Results, policy: str) -> Mapping[str, Any]:
    """Read what a run counted about a memory beside its rows; empty for an older run."""
    for finding in results.findings.get(OBSERVED, ()):
        if finding.policy == policy:
            value: Mapping[str, Any] = finding.value
            return value
    return {}


def _judge_memory(policy: str, results: Results) -> Verdict:
    rows = results.rows.where(policy=policy)
    groups, answers = _group_rows(rows)
    observed = read_observed(results, policy)
    depths: dict[str, Depth] = {
        schedule: decide_depth(group, answers.get(schedule, ()))
        for schedule, group in groups.items()
        if not overlaps_writes(schedule)  # whose outcome need not equal that of source order
    }
    is_random = differs_by_chance(rows, policy, declared=bool(observed.get("chance")))
    if is_random:
        depths = dict.fromkeys(depths, "stable")  # no difference is shown to be one of order
    doubts = [
        *_doubt_traces(rows, groups, observed, max_depth(depths.values())),
        *_doubt_answers(answers),
        *([_doubt_chance(groups)] if is_random else []),
        *([MISSING] if results.incomplete else []),
        "",
    ]
    first = {
        schedule: next((rows for rows in models if _get_worse(rows)), models[0])
        for schedule, models in answers.items()
    }
    names = Baseline.__dataclass_fields__
    return Verdict(
        policy,
        depths,
        groups,
        first,
        tuple(_list_promises(policy, rows, results)),
        Baseline(**{name: observed[name] for name in names if name in observed}),
        doubts[0],
        tuple(_read_causes(results, policy)),
        command=str(observed.get("command", "")),
        is_incomplete=results.incomplete,
    )


def _group_rows(rows: Rows) -> tuple[dict[str, Group], dict[str, list[Group]]]:
    """Group the rows of a memory by order of arrival: those of its routes, and of each model."""
    routes = rows.where(experiment="routes", arm="")
    more = [
        rows.where(experiment=name, arm="", model="").group("schedule")
        for name in ("retention", "updates", "overlap")
    ]
    groups: dict[str, Group] = {}
    for (schedule,), group in routes.where(model="").group("schedule").items():
        if schedule and "V_changed" in group:
            parts = [group, *(rows_of_part.get((schedule,), {}) for rows_of_part in more)]
            groups[schedule] = {name: row for part in parts for name, row in part.items()}
    answers: dict[str, list[Group]] = {}
    for (schedule, model), group in routes.group("schedule", "model").items():
        if model:
            answers.setdefault(schedule, []).append(group)
    return groups, answers


def _doubt_traces(
    rows: Rows, groups: Mapping[str, Group], observed: Mapping[str, Any], depth: Depth
) -> Iterator[str]:
    """List the reasons why traces allow no conclusion about a memory, the most basic first."""
    plain = rows.where(stratum="all", mask="", arm="", model="")
    failed = _sum(plain.where(quantity="count.failed_pairs"))
    sizes = [group["V_changed"].queries or 0 for group in groups.values()]
    pairs, questions = sum(sizes), max(sizes, default=0)
    if failed > 0 and failed >= pairs:
        yield f"the memory failed on {failed:.0f} of {failed + pairs:.0f} pairs of routes"
    has_trials = bool(plain.where(quantity="anomaly"))  # a trial needs no question
    if not (pairs or has_trials):
        yield "nothing was compared: the memory cannot perform what was asked of it"
    if _is_zero(groups, "context_length.forward", "context_length.route"):
        yield "the memory shows nothing to any question"
    if _is_zero(groups, "kept.forward", "kept.route"):
        yield "the memory keeps no record in any order"
    if 0 < observed.get("pools", 0) == observed.get("single_record_pools"):
        yield "every pool has one record and so one order"
    if observed.get("unsourced") and depth == "text only":
        yield "the text that is shown names no records, so lost evidence would not be seen"
    is_witnessed = DEPTHS.index(depth) >= DEPTHS.index("evidence moves")
    if questions < FEWEST_QUESTIONS and not (is_witnessed or has_trials):
        yield f"{pluralise(questions, 'question')} cannot show that losses are rare: too few"


def _sum(rows: Rows) -> float:
    return sum(row.estimate or 0.0 for row in rows)


def _doubt_chance(groups: Mapping[str, Group]) -> str:
    if any("D_build" in group for group in groups.values()):
        reason = "different orders are not shown to differ more than builds of the same order"
    else:
        reason = (
            "each order was built once, so order cannot be distinguished from chance: audit again "
            "with --builds 3 (builds=3 in Python)"
        )
    return f"the memory differs by chance, and {reason}"


def _is_zero(groups: Mapping[str, Group], *quantities: str) -> bool:
    """Return whether a quantity is known and zero in every order."""
    rows = [group[name] for group in groups.values() for name in quantities if name in group]
    return bool(rows) and all(row.estimate == 0 for row in rows)


def differs_by_chance(rows: Rows, policy: str, *, declared: bool) -> bool:
    """Whether builds may differ by chance, and order is not shown to change more than that.

    Where repeated builds of one order never differ, a difference is one of order. `declared` says
    that the memory declares chance.
    """
    plain = rows.where(experiment="routes", policy=policy, model="", stratum="all")
    within = list(plain.where(quantity="C_within"))
    differs = any(row.estimate for row in within)
    if not differs and (within or not declared):
        return False
    return not is_beyond_chance(plain.where(arm="", mask=""))


def _doubt_answers(answers: Mapping[str, Sequence[Group]]) -> Iterator[str]:
    """Doubt answers none of which can be read, in source order or on a route."""
    for groups in answers.values():
        for group in groups:
            for side in ("forward", "route"):
                unreadable, total = count_unreadable(group.get, side)
                if total and unreadable == total:
                    model = next(iter(group.values())).model
                    yield f"none of {total} answers of {model} could be read (empty or refused)"


def _list_promises(policy: str, rows: Rows, results: Results) -> Iterator[Promise]:
    """List the promises that overlapping writes or other users showed to fail."""
    shares: Mapping[tuple[str, ...], Group] = rows.where(
        experiment="overlap", quantity="anomaly"
    ).group("schedule")
    for name in _ANOMALIES:
        for finding in results.findings.get(f"anomaly.{name}", ()):
            if finding.policy == policy:
                row = shares.get((finding.schedule,), {}).get("anomaly")
                value = finding.value
                witness = f"writes {', '.join(map(str, value['writes']))}"
                if value.get("steps"):
                    witness += f": {'; '.join(map(str, value['steps']))}"
                trials = None if row is None else row.queries
                yield Promise(name, int(value["trials"]), trials, finding.schedule, witness)
    if leaks := [f.value for f in results.findings.get("leaks", ()) if f.policy == policy]:
        yield _describe_leaks(leaks)


def _describe_leaks(leaks: Sequence[Mapping[str, Any]]) -> Promise:
    from routeprism.routes import Leak, choose_leak  # which builds memories: only if one leaked

    names = Leak.__dataclass_fields__
    example = choose_leak(
        [Leak(**{name: leak[name] for name in names if name in leak}) for leak in leaks]
    )
    number = sum(leak.get("routes", 1) for leak in leaks)
    return Promise("leaked", number, None, "", "" if example is None else example.description)


_ANOMALIES = ("error", "lost", "duplicated", "torn", "stale")


def _read_causes(results: Results, policy: str) -> Iterator[Cause]:
    """Read the causes of a memory, the most frequent first, untested cases last."""
    findings = [f for f in results.findings.get("causes", ()) if f.policy == policy]
    causes = [Cause(**value) for finding in findings for value in finding.value]
    tested = {cause.is_baseline for cause in causes if cause.explained}
    # What takes a record away comes before what merely looks different.
    for cause in sorted(causes, key=lambda cause: (not cause.record, -cause.explained)):
        if cause.explained or cause.is_baseline not in tested:  # else a sentence counts them
            yield cause


def _list_explored(rows: Rows) -> tuple[str, ...]:
    return rows.where(experiment="orders", quantity=("order_change", "order_failed")).values(
        "policy"
    )


def _judge_orders(policy: str, rows: Rows, results: Results) -> Verdict:
    """Judge a memory of which only the records that each order keeps were looked at."""
    explored = rows.where(experiment="orders", policy=policy).group("schedule")
    groups: dict[str, Group] = {
        schedule: group for (schedule,), group in explored.items() if schedule
    }
    depths: dict[str, Depth] = {
        schedule: "different records" if _read(group, "order_change") else "stable"
        for schedule, group in groups.items()
    }
    failed = max(
        (row.estimate or 0.0 for g in groups.values() if (row := g.get("order_failed"))),
        default=0.0,
    )
    doubt = "the memory raises an error in most orders" if failed >= 0.5 else ""
    return Verdict(policy, depths, groups, inconclusive=doubt, is_incomplete=results.incomplete)


def read_verdicts(stored: StoredRun) -> list[Verdict]:
    """Judge every memory of a stored run."""
    findings: dict[str, list[Any]] = {}
    for experiment in _JUDGED_FINDINGS:
        for finding in stored.findings(experiment):
            findings.setdefault(finding.name, []).append(finding)
    rows, incomplete = Rows.of(stored.estimates()), bool(stored.shortfall())
    return judge(Results(rows, findings, incomplete=incomplete))


_JUDGED_FINDINGS = ("remedies", "mechanism", "overlap", "leaks", "causes", OBSERVED, ADVICE)
"""The experiments under which findings are stored that the judgement reads."""
