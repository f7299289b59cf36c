"""Sentences about contrasts of display, reuse and instructions, made from the rows by rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from routeprism.experiments._sentences import beyond, interval, said_flags, said_size, widest
from routeprism.runs import EstimateRow

__all__ = [
    "display_sentences",
    "fixed_source_sentences",
    "provenance_sentences",
    "reuse_sentences",
]

Found = Mapping[tuple[str, str, str], EstimateRow]
"""Rows of one policy, schedule, model, batch and filler, by arm, mask and quantity."""

_MEASURES = ("D_res", "H", "D_correct", "Delta_rep")
"""What a sentence is about: the first that the answers allow."""


def _each(rows: Sequence[EstimateRow], experiment: str) -> Iterator[tuple[str, Found]]:
    """Give who answered what, with the rows of it."""
    grouped: dict[tuple[str, ...], dict[tuple[str, str, str], EstimateRow]] = {}
    for row in rows:
        if row.experiment == experiment and row.model and row.stratum == "all":
            place = (row.policy, row.schedule, row.model, row.batch, row.filler)
            grouped.setdefault(place, {})[row.arm, row.mask, row.quantity] = row
    for (policy, schedule, model, batch, filler), found in widest(grouped).items():
        batched = f", batch {batch}" if batch else ""
        yield f"{policy}, {schedule}, read by {model}{batched}, filler {filler}", found


def _sign(row: EstimateRow) -> int:
    """Say which side of zero an interval is on; 0 where it holds zero or there is none."""
    if row.lower is None or row.upper is None:
        return 0
    return (row.lower > 0) - (row.upper < 0)


def _measure(found: Found, arm: str, mask: str = "") -> str:
    """Choose the residual where there are draws enough for it; free text has correctness alone."""
    known = (name for name in _MEASURES if (arm, mask, name) in found)
    return next(known, _MEASURES[0])


def display_sentences(rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say whether construction or display moves the answers, and what source display leaves."""
    sentences = []
    for who, found in _each(rows, "display"):
        measure = _measure(found, "construction")
        if (gap := found.get(("construction-display", "", f"Gamma.{measure}"))) is not None:
            verdict = {
                1: "what was built moves the answers more than how it is laid out",
                -1: "how it is laid out moves the answers more than what was built",
                0: "neither construction nor display is shown to move the answers more",
            }[_sign(gap)]
            parts = [
                f"{arm} {measure} = {interval(found[arm, '', measure])}"
                for arm in ("construction", "display")
            ]
            signed = [
                f"{arm} {interval(found[arm, '', 'Delta_rep'])}"
                for arm in ("construction", "display")
                if (arm, "", "Delta_rep") in found
            ]
            accuracy = f"; change of accuracy: {', '.join(signed)}" if signed else ""
            sentences.append(
                f"{who}: {verdict}: {', '.join(parts)}, difference {interval(gap)}{accuracy} "
                f"({said_size(gap)}){said_flags(gap)}"
            )
        sentences.extend(_serialised(who, found))
    return (*sentences, *_refused(rows))


def _serialised(who: str, found: Found) -> Iterator[str]:
    measure = _measure(found, "serialisation:source")
    gap = found.get(("serialisation:native-source", "", f"Gamma.{measure}"))
    if gap is None:
        return
    verdict = {
        1: "source display takes away a part of the route's effect",
        -1: "source display adds to the route's effect",
        0: "source display is not shown to change the route's effect",
    }[_sign(gap)]
    parts = []
    for mask, said in (
        ("", "all pairs"),
        ("selection-changed", "changed selections"),
        ("selection-unchanged", "unchanged selections"),
    ):
        native = found.get(("serialisation:native", mask, measure))
        source = found.get(("serialisation:source", mask, measure))
        if native is None or source is None:
            continue
        if not mask or source.queries != gap.queries:  # else the part is the whole
            parts.append(
                f"{said} {interval(native)} native, {interval(source)} in source order "
                f"({said_size(source)})"
            )
    yield (
        f"{who}: {verdict}: {measure} {'; '.join(parts)}; native minus source {interval(gap)}"
        f"{said_flags(gap)}"
    )


def _refused(rows: Sequence[EstimateRow]) -> Iterator[str]:
    for row in rows:
        counted = row.experiment == "display" and row.quantity == "count.refused"
        if counted and row.stratum == "all" and not row.mask and row.estimate:
            what = "reversed within their kinds" if row.arm == "display" else "put in source order"
            yield (
                f"{row.policy}, {row.schedule}: the blocks of {row.estimate:.0f} of {row.queries} "
                f"pairs cannot be {what}"
            )


def reuse_sentences(rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say what the states do to questions that they were not built for."""
    exposed = {
        (row.policy, row.schedule, row.quantity): row
        for row in rows
        if row.experiment == "reuse" and not (row.model or row.mask) and row.stratum == "all"
    }
    sentences = []
    for who, found in _each(rows, "reuse"):
        measure = _measure(found, "")
        if (row := found.get(("", "", measure))) is None:
            continue
        changed = {
            layer: exposed[row.policy, row.schedule, f"{layer}_changed_count"].estimate or 0
            for layer in "VC"
        }
        several = exposed[row.policy, row.schedule, "count.several_targets"].estimate or 0
        parts = [
            f"{row.queries} other questions of {row.units} {row.unit}s ({several:.0f} with two or "
            f"more) were asked of one state per route; sources changed in {changed['V']:.0f}, "
            f"contexts in {changed['C']:.0f}",
            f"{beyond(row)} ({measure} = {interval(row)})"
            if measure == "D_res"
            else f"{measure} = {interval(row)}",
        ]
        if ("", "", "Delta_rep") in found and measure != "Delta_rep":
            parts.append(f"change of accuracy {interval(found['', '', 'Delta_rep'])}")
        parts.extend(_by_support(found))
        sentences.append(f"{who}: {'; '.join(parts)}{said_flags(row)}")
    return tuple(sentences)


def _by_support(found: Found) -> Iterator[str]:
    """Say what accuracy does where the support changed, where not, and within those with both."""
    for arm, said in (
        ("support-changed", "where support changed"),
        ("support-preserved", "where support was preserved"),
        ("support-absent", "where neither route shows any"),
    ):
        if (row := found.get((arm, "", "Delta_rep"))) is not None:
            yield f"{said} {interval(row)} ({said_size(row)}, labels {row.labels})"
    if (row := found.get(("", "", "changed-preserved.Delta_rep"))) is not None:
        yield f"changed minus preserved within {row.unit}s {interval(row)}"


def provenance_sentences(
    rows: Sequence[EstimateRow], contrasts: Sequence[tuple[str, str]], margin: float
) -> tuple[str, ...]:
    """Say for every two instructions what the first changes, and whether it costs accuracy."""
    sentences = []
    for who, found in _each(rows, "routes"):
        for one, other in contrasts:
            gaps = {
                quantity.removeprefix("Gamma."): row
                for (arm, mask, quantity), row in found.items()
                if arm == f"{one}-{other}" and not mask
            }
            changes = [
                f"{name} {interval(gaps[name])}"
                for name in ("H", "D_res", "Delta_rep")
                if name in gaps
            ]
            if not changes:
                continue
            worse = [
                _not_worse(route, gaps[f"accuracy.{route}"], one, other, margin)
                for route in ("forward", "route")
                if f"accuracy.{route}" in gaps
            ]
            row = gaps["H"] if "H" in gaps else gaps["Delta_rep"]
            sentences.append(
                f"{who}: {one} minus {other}: {'; '.join((', '.join(changes), *worse))} "
                f"({said_size(row)}){said_flags(row)}"
            )
    return (*sentences, *fixed_source_sentences(rows))


def _not_worse(route: str, row: EstimateRow, one: str, other: str, margin: float) -> str:
    where = "forward" if route == "forward" else f"on {row.schedule}"
    said = f"accuracy {where} {interval(row)}"
    if row.lower is None:
        return f"{said}, which says nothing against the margin of {margin:g}"
    shown = "is shown" if row.lower > -margin else "is not shown"
    return f"{said}: that {one} is at most {margin:g} worse than {other} {shown}"


def fixed_source_sentences(rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say what answers do where both routes show the same sources in another text."""
    sentences = []
    for who, found in _each(rows, "routes"):
        for (arm, mask, quantity), row in found.items():
            if mask != "fixed-source" or quantity != _measure(found, arm, mask):
                continue
            parts = [f"{quantity} = {interval(row)}"]
            parts += [
                f"{name} = {interval(found[arm, mask, name])}"
                for name in ("D_correct", "Delta_rep")
                if name != quantity and (arm, mask, name) in found
            ]
            under = f", {arm}" if arm else ""
            sentences.append(
                f"{who}{under}: where sources agree and texts differ ({said_size(row)}), "
                f"{', '.join(parts)}{said_flags(row)}"
            )
    return tuple(sentences)
