"""Statements about answers: of the routes, and under display, reuse, instructions, restoration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from routeprism.exhibits import Part, Severity, Statement, compose, join_parts
from routeprism.experiments._rows import P_ADJUSTED
from routeprism.experiments.statements import (
    describe_doubt,
    describe_floor,
    describe_residual,
    describe_size,
    describe_unreadable,
    excludes_zero,
    is_at_floor,
    is_claim_shown,
    keep_widest,
    show_count,
    show_estimate,
    show_flags,
    show_value,
)
from routeprism.runs import EstimateRow, Rows

__all__ = [
    "answer_statements",
    "display_statements",
    "fixed_source_statements",
    "provenance_statements",
    "restoration_statements",
    "reuse_statements",
]

Phrase = tuple[Part, ...]

_MEASURES = ("D_res", "H", "D_correct", "Delta_rep")
"""What a statement is about: the first that the answers allow."""


@dataclass(frozen=True, slots=True)
class _Answers:
    """The rows of one policy, schedule, model, batch and filler."""

    policy: str
    schedule: str
    scope: str
    rows: Mapping[tuple[str, str, str], EstimateRow]
    """By arm, mask and quantity."""

    def find(self, quantity: str, arm: str = "", mask: str = "") -> EstimateRow | None:
        """Find a row; None if the run does not have it."""
        return self.rows.get((arm, mask, quantity))

    def choose_measure(self, arm: str = "", mask: str = "") -> str:
        """Choose the residual if there are enough draws; free text has only correctness."""
        candidates = (name for name in _MEASURES if (arm, mask, name) in self.rows)
        return next(candidates, _MEASURES[0])

    def state(
        self,
        kind: str,
        row: EstimateRow,
        template: str,
        *,
        severity: Severity = "info",
        **values: Part | Sequence[Part],
    ) -> Statement:
        """Make a statement with the flags of a row; the template may use `{size}` of the row."""
        parts = compose(template, size=describe_size(row), **values)
        scope, flags = self.scope, show_flags(row)
        return Statement(parts, kind, self.policy, self.schedule, severity, "", scope, flags)


def _each_answers(rows: Sequence[EstimateRow], experiment: str) -> Iterator[_Answers]:
    """Group the rows over all questions by who answered what."""
    grouped: dict[tuple[str, ...], dict[tuple[str, str, str], EstimateRow]] = {}
    for row in Rows.of(rows).where(experiment=experiment, stratum="all"):
        if row.model:
            place = (row.policy, row.schedule, row.model, row.batch, row.filler)
            grouped.setdefault(place, {})[row.arm, row.mask, row.quantity] = row
    for (policy, schedule, model, batch, filler), group in keep_widest(grouped):
        batched = f", batch {batch}" if batch else ""
        scope = f"{schedule}, read by {model}{batched}, filler {filler}"
        yield _Answers(policy, schedule, scope, group)


def _list(phrases: Sequence[Phrase], separator: str = "; ") -> Phrase:
    return tuple(join_parts(separator, phrases))


def answer_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe for each policy, schedule and model what answers do beyond the model's noise."""
    for answers in _each_answers(rows, "routes"):
        change, residual, differ = map(answers.find, ("Delta_rep", "D_res", "H"))
        accuracy = answers.find("accuracy.forward")
        first = accuracy or differ
        if first is None:
            continue
        if unreadable := describe_unreadable(answers.find, f"on {answers.schedule}"):
            yield answers.state("answers", first, "{text}", text=unreadable, severity="warning")
            continue
        claimed = change is not None and _is_shown(answers, change)
        beyond = residual is not None and _is_shown(answers, residual)
        phrases = []
        if residual is not None:
            verdict = describe_residual(residual, established=beyond, moved=claimed)
            value = show_estimate(residual)
            phrases.append(compose("{verdict} (D_res = {value})", verdict=verdict, value=value))
        elif differ is not None:
            value = show_estimate(differ)
            phrases.append(compose("answers differ in {value} of pairs (one draw)", value=value))
        if change is not None:
            phrases.append(_describe_accuracy(answers, change))
        if claimed:  # what is shown comes before what is not
            phrases.reverse()
        severity: Severity = "problem" if claimed or beyond else "info"
        yield answers.state("answers", first, "{text}", text=_list(phrases), severity=severity)


def _is_shown(answers: _Answers, row: EstimateRow) -> bool:
    adjusted = answers.find(f"{P_ADJUSTED}.{row.quantity}")
    return is_claim_shown(row, {} if adjusted is None else {adjusted.quantity: adjusted})


def _describe_accuracy(answers: _Answers, change: EstimateRow) -> Phrase:
    before, after = (answers.rows["", "", f"accuracy.{side}"] for side in ("forward", "route"))
    doubt = describe_doubt(change)
    return compose(
        "accuracy {before} forward, {after} on {schedule} ({change}){floor}{doubt}",
        before=show_value(before),
        after=show_value(after),
        schedule=answers.schedule,
        change=show_estimate(change),
        floor=f": {describe_floor(change)}" if is_at_floor(change) else "",
        doubt=f": {doubt}" if doubt and not _is_shown(answers, change) else "",
    )


def restoration_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe for each policy, schedule and model whether the displaced record matters."""
    groups = list(_each_answers(rows, "restoration"))
    for answers in groups:
        for arm in ("", "bundle", "identity-swap", "presence"):
            if arm == "presence" and (row := answers.find("present-absent", arm)) is not None:
                yield answers.state(
                    "restoration",
                    row,
                    "the route that shows the displaced record gains {gain} of accuracy over the "
                    "route that does not ({size}, labels {labels})",
                    gain=show_estimate(row),
                    labels=row.labels,
                )
            if (update := answers.find("both-stale", "update")) is not None and not arm:
                yield _describe_update(answers, update)
            gain = answers.find("restored-absent", arm)
            control = answers.find("restored-replacement", arm)
            if gain is not None and control is not None:
                yield _describe_restoration(answers, arm, gain, control)
    yield from _eligibility_statements(rows)


_RESTORED = {
    "": ("the displaced record", "a matched record"),
    "bundle": ("the whole missing bundle", "an equal bundle"),
}
"""What is put back, and what is put there instead as a control."""


def _describe_restoration(
    answers: _Answers, arm: str, gain: EstimateRow, control: EstimateRow
) -> Statement:
    """Describe what a record that was put back, or exchanged, is worth."""
    values: dict[str, Part | Phrase] = {
        "gain": show_estimate(gain),
        "control": show_estimate(control),
        "labels": gain.labels,
    }
    record, control_phrase = _RESTORED.get(arm, ("exchanging support records", ""))
    template = "{floor} about {record} ({size}, labels {labels})"
    severity: Severity = "info"
    if is_at_floor(gain):
        values |= {"floor": describe_floor(gain), "record": record}
        severity = "warning"
    elif arm == "identity-swap":
        template = (
            "where one support record stands in another's place, exchanging them is worth {gain} "
            "of accuracy; against a record without support there {control} ({size}, labels "
            "{labels})"
        )
    else:
        present = answers.find("restored-present", arm)
        helps = (gain.estimate or 0.0) > 0 and _is_shown(answers, gain)
        severity = "problem" if helps else "info"
        template = (
            "putting {record} back {verdict} {gain} of accuracy; against {matched} without support "
            "{control}{present} ({size}, labels {labels})"
        )
        values |= {
            "record": record,
            "matched": control_phrase,
            "verdict": "recovers" if helps else "is not shown to help:",
            "present": ""
            if present is None
            else (", against the route that had it ", show_estimate(present)),
        }
    return answers.state("restoration", gain, template, severity=severity, **values)


def _is_gain(row: EstimateRow | None) -> bool:
    return row is not None and row.lower is not None and row.lower > 0


def _show_gain(row: EstimateRow | None) -> Part:
    return "not applicable" if row is None else show_estimate(row)


def _describe_update(answers: _Answers, put_back: EstimateRow) -> Statement:
    """Distinguish a reader that the old record misleads from a reader that lacks the new one."""
    if is_at_floor(put_back):
        return answers.state(
            "restoration",
            put_back,
            "{floor} about the old and the new record ({size}, labels {labels})",
            severity="warning",
            floor=describe_floor(put_back),
            labels=put_back.labels,
        )
    taken_out = answers.find("neither-stale", "update")
    both = answers.find("current-stale", "update")
    beside = answers.find("current-both", "update")
    missing, together = _is_gain(put_back), _is_gain(both)
    misled = _is_gain(taken_out) or _is_gain(beside)
    verdict = {
        (True, True): "the new record is missing, and the old one misleads",
        (True, False): "the old record misleads",
        (False, True): "the new record is missing",
        (False, False): "neither alone is shown to matter",
    }[misled, missing]
    return answers.state(
        "restoration",
        put_back,
        "where only the old value is shown, taking the old record out is worth {out} of accuracy, "
        "putting the current one back {back}, both {both}; taking it out beside the current one "
        "{beside}: {verdict} ({size}, labels {labels})",
        severity="problem" if misled or missing or together else "info",
        out=_show_gain(taken_out),
        back=show_estimate(put_back),
        both=_show_gain(both),
        beside=_show_gain(beside),
        verdict=verdict,
        labels=put_back.labels,
    )


def _eligibility_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Count the pairs that are eligible, and give the reasons why the rest is not."""
    from routeprism.labels import ELIGIBILITY  # which workers do without

    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in Rows.of(rows).plain(experiment="restoration", model=""):
        if row.quantity.startswith("count."):
            name = row.quantity.removeprefix("count.")
            grouped.setdefault((row.policy, row.schedule), {})[name] = row
    for (policy, schedule), counts in grouped.items():
        rules = [(rule, counts.pop(f"eligible.{rule}", None)) for rule in ELIGIBILITY]
        total = sum(int(row.estimate or 0) for row in counts.values())
        eligible = counts.pop("eligible", None)
        reasons = [compose("{n} {name}", n=show_count(row), name=n) for n, row in counts.items()]
        parts = compose(
            "{eligible} of {total} pairs are eligible ({rules}){reasons}",
            eligible="0" if eligible is None else show_count(eligible),
            total=str(total),
            rules=_list(
                [
                    compose("{n} by the rule {rule}", n=show_count(row) if row else "0", rule=rule)
                    for rule, row in rules
                ],
                ", ",
            ),
            reasons=("; left out: ", *_list(reasons, ", ")) if reasons else "",
        )
        yield Statement(parts, "eligibility", policy, schedule, scope=schedule)


def _interval_sign(row: EstimateRow) -> int:
    """Return the side of zero that an interval is on; 0 if it contains zero or there is none."""
    if row.lower is None or row.upper is None:
        return 0
    return (row.lower > 0) - (row.upper < 0)


_SOURCES = {
    1: "the records that were kept change the answers more than their layout does",
    -1: "the layout changes the answers more than the records that were kept do",
    0: "neither construction nor display is shown to change the answers more",
}
_SERIALISED = {
    1: "source display removes a part of the route's effect",
    -1: "source display adds to the route's effect",
    0: "source display is not shown to change the route's effect",
}


def display_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe whether construction or display changes answers, and what source display leaves."""
    for answers in _each_answers(rows, "display"):
        measure = answers.choose_measure("construction")
        gap = answers.find(f"Gamma.{measure}", "construction-display")
        if gap is not None:
            arms = ("construction", "display")
            values = [
                compose("{a} {m} = {v}", a=arm, m=measure, v=show_estimate(row))
                for arm in arms
                if (row := answers.find(measure, arm)) is not None
            ]
            changes = [(arm, answers.find("Delta_rep", arm)) for arm in arms]
            signed = [compose("{a} {v}", a=a, v=show_estimate(row)) for a, row in changes if row]
            accuracy: Phrase = ("; change of accuracy: ", *_list(signed, ", ")) if signed else ()
            built = changes[0][1]
            if built is not None and is_at_floor(built):
                accuracy = (f"; {describe_floor(built)}",)
            yield answers.state(
                "display",
                gap,
                "{verdict}: {values}, difference {gap}{accuracy} ({size})",
                verdict=_SOURCES[_interval_sign(gap)],
                values=_list(values, ", "),
                gap=show_estimate(gap),
                accuracy=accuracy,
            )
        yield from _describe_serialisation(answers)
    for row in Rows.of(rows).where(experiment="display", stratum="all", mask=""):
        if row.quantity == "count.refused" and row.estimate:
            how = "reversed within their kinds" if row.arm == "display" else "put in source order"
            parts = compose(
                "the blocks of {count} of {total} pairs cannot be {how}",
                count=show_count(row),
                total=str(row.queries),
                how=how,
            )
            yield Statement(parts, "display", row.policy, row.schedule, scope=row.schedule)


_SELECTIONS = (
    ("", "all pairs"),
    ("selection-changed", "changed selections"),
    ("selection-unchanged", "unchanged selections"),
)


def _describe_serialisation(answers: _Answers) -> Iterator[Statement]:
    measure = answers.choose_measure("serialisation:source")
    gap = answers.find(f"Gamma.{measure}", "serialisation:native-source")
    if gap is None:
        return
    phrases = []
    for mask, selection in _SELECTIONS:
        native = answers.find(measure, "serialisation:native", mask)
        source = answers.find(measure, "serialisation:source", mask)
        if native is None or source is None:
            continue
        if not mask or source.queries != gap.queries:  # else the part is the whole
            phrases.append(
                compose(
                    "{selection} {native} native, {source} in source order ({size})",
                    selection=selection,
                    native=show_estimate(native),
                    source=show_estimate(source),
                    size=describe_size(source),
                )
            )
    yield answers.state(
        "display",
        gap,
        "{verdict}: {measure} {phrases}; native minus source {gap}",
        verdict=_SERIALISED[_interval_sign(gap)],
        measure=measure,
        phrases=_list(phrases),
        gap=show_estimate(gap),
    )


def reuse_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe what the states do to questions that they were not built for."""
    exposed = Rows.of(rows).where(experiment="reuse", model="", mask="", stratum="all")
    for answers in _each_answers(rows, "reuse"):
        measure = answers.choose_measure()
        row = answers.find(measure)
        if row is None:
            continue
        change = answers.find("Delta_rep")
        own = exposed.where(policy=row.policy, schedule=row.schedule)
        phrases = [
            compose(
                "{questions} different questions of {units} {unit}s ({several} with two or more) "
                "were asked of one state per route; sources changed in {V}, contexts in {C}",
                questions=str(row.queries),
                units=str(row.units),
                unit=row.unit,
                several=show_count(own.one("count.several_targets")),
                V=show_count(own.one("V_changed_count")),
                C=show_count(own.one("C_changed_count")),
            ),
            compose("{measure} = {value}", measure=measure, value=show_estimate(row)),
        ]
        if measure == "D_res":
            moved = change is not None and excludes_zero(change)
            verdict = describe_residual(row, moved=moved)
            phrases[1] = compose("{verdict} ({value})", verdict=verdict, value=phrases[1])
        if change is not None and is_at_floor(change):
            phrases.append((describe_floor(change),))
        elif change is not None and measure != "Delta_rep":
            phrases.append(compose("change of accuracy {value}", value=show_estimate(change)))
        phrases.extend(_describe_support(answers))
        yield answers.state("reuse", row, "{text}", text=_list(phrases))


def _describe_support(answers: _Answers) -> Iterator[Phrase]:
    """Describe accuracy where support changed, where it did not, and units with both."""
    for arm, where in (
        ("support-changed", "where support changed"),
        ("support-preserved", "where support was preserved"),
        ("support-absent", "where neither route shows any"),
    ):
        if (row := answers.find("Delta_rep", arm)) is not None:
            yield compose(
                "{where} {value} ({size}, labels {labels})",
                where=where,
                value=show_estimate(row),
                size=describe_size(row),
                labels=row.labels,
            )
    if (row := answers.find("changed-preserved.Delta_rep")) is not None:
        value = show_estimate(row)
        yield compose("changed minus preserved within {u}s {v}", u=row.unit, v=value)
    if (row := answers.find("changed-absent.Delta_rep")) is not None:
        yield compose(
            "mean where support changed minus mean where neither route shows any {value}",
            value=show_estimate(row),
        )


def provenance_statements(
    rows: Sequence[EstimateRow], contrasts: Sequence[tuple[str, str]], margin: float
) -> Iterator[Statement]:
    """Describe for every two instructions what the first changes, and whether it costs accuracy."""
    for answers in _each_answers(rows, "routes"):
        for first, second in contrasts:
            gaps = {
                quantity.removeprefix("Gamma."): row
                for (arm, mask, quantity), row in answers.rows.items()
                if arm == f"{first}-{second}" and not mask
            }
            changes = [
                compose("{name} {value}", name=name, value=show_estimate(gaps[name]))
                for name in ("H", "D_res", "Delta_rep")
                if name in gaps
            ]
            if not changes:
                continue
            costs = _describe_costs(answers, gaps, first, second, margin)
            yield answers.state(
                "provenance",
                gaps["H"] if "H" in gaps else gaps["Delta_rep"],
                "{first} minus {second}: {text} ({size})",
                first=first,
                second=second,
                text=_list([_list(changes, ", "), *costs]),
            )
    yield from fixed_source_statements(rows)


def _describe_costs(
    answers: _Answers, gaps: Mapping[str, EstimateRow], first: str, second: str, margin: float
) -> list[Phrase]:
    """Describe whether the first instruction costs accuracy on either route."""
    pair = (answers.find("Delta_rep", arm) for arm in (first, second))
    floor = [row for row in pair if row is not None and is_at_floor(row)]
    if len(floor) == 2:
        return [(describe_floor(floor[0]),)]
    return [
        _describe_margin(route, gaps[f"accuracy.{route}"], first, second, margin)
        for route in ("forward", "route")
        if f"accuracy.{route}" in gaps
    ]


def _describe_margin(
    route: str, row: EstimateRow, first: str, second: str, margin: float
) -> Phrase:
    where = "forward" if route == "forward" else f"on {row.schedule}"
    accuracy = compose("accuracy {where} {value}", where=where, value=show_estimate(row))
    if row.lower is None:
        return (*accuracy, f", which allows no conclusion about the margin of {margin:g}")
    verdict = "is shown" if row.lower > -margin else "is not shown"
    return (*accuracy, f": that {first} is at most {margin:g} worse than {second} {verdict}")


def fixed_source_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe answers where both routes show the same sources in a different text."""
    for answers in _each_answers(rows, "routes"):
        for (arm, mask, quantity), row in answers.rows.items():
            if mask != "fixed-source" or quantity != answers.choose_measure(arm, mask):
                continue
            names = (quantity, *(n for n in ("D_correct", "Delta_rep") if n != quantity))
            values = [
                compose("{name} = {value}", name=name, value=show_estimate(estimate))
                for name in names
                if (estimate := answers.find(name, arm, mask)) is not None
            ]
            yield answers.state(
                "fixed-source",
                row,
                "{arm}where sources agree and texts differ ({size}), {values}",
                arm=f"under {arm}, " if arm else "",
                values=_list(values, ", "),
            )
