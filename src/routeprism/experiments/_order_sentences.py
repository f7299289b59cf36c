"""Sentences about orders that a person can repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from routeprism.experiments._sentences import interval
from routeprism.runs import EstimateRow, Finding

__all__ = ["order_sentences", "place_sentence"]

_METHODS = {
    "enumerated": "every order",
    "merged": "every order, by merged states",
    "replayed": "every order, one by one",
    "sampled": "drawn orders",
}


def order_sentences(
    rows: Sequence[EstimateRow],
    counts: Counter[str],
    findings: Iterable[Finding],
    *,
    synthetic: bool,
) -> tuple[str, ...]:
    """Say for each policy and arrival model how often order changes what is kept."""
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        if row.stratum == "all" and not row.mask:
            grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    tail = " (synthetic sample)" if synthetic else ""
    sentences = []
    for (policy, arrival), found in grouped.items():
        parts = []
        if "order_change" in found:
            share = interval(found["order_change"])
            parts.append(f"another set than forward's is retained in {share} of orders")
        across = found.get("support_kept.uniform") or found.get("support_kept.arrival")
        if across is not None:
            ends = [
                f"{found[f'support_kept.{side}'].estimate:.3f} {side}"
                for side in ("forward", "reverse")
                if f"support_kept.{side}" in found
            ]
            parts.append(
                f"support is kept in {interval(across)} of orders, {', '.join(ends)} "
                f"(labels {across.labels})"
            )
        if "mean_clusters" in found:
            parts.append(f"{found['mean_clusters'].estimate:.3f} clusters on average")
        looked = counts[f"orders\0{policy}\0{arrival}"]
        how = [
            f"{_METHODS[name]} of {number} pools"
            for name in _METHODS
            if (number := counts[f"method\0{policy}\0{arrival}\0{name}"])
        ]
        sentences.append(
            f"{policy}, {arrival}: {'; '.join(parts)} ({looked:,} orders: {', '.join(how)}){tail}"
        )
    return (*sentences, *_shrunk(findings))


def _shrunk(findings: Iterable[Finding]) -> list[str]:
    """Say how small the reorderings are that lose, or save, support."""
    grouped: dict[str, list[Mapping[str, object]]] = {}
    for finding in findings:
        if finding.name == "smallest_reordering" and finding.value["outcome"] == "support":
            grouped.setdefault(finding.policy, []).append(finding.value)
    said = []
    for policy, values in grouped.items():
        kept = [value for value in values if value["forward_keeps"]]
        lost = [value for value in kept if value["found"]]
        dropped = [value for value in values if not value["forward_keeps"]]
        saved = [value for value in dropped if value["found"]]
        one = sum(value["inversions"] == 1 for value in lost)
        said.append(
            f"{policy}: of {len(kept)} questions whose support source order keeps, {len(lost)} "
            f"lose it by some reordering, {one} by exchanging two neighbours; of {len(dropped)} "
            f"whose support it drops, {len(saved)} keep it by some reordering"
        )
    return said


def place_sentence(findings: Iterable[Finding], labels: str) -> tuple[str, ...]:
    """Say where support sits."""
    said = []
    for finding in findings:
        if finding.name != "support_position":
            continue
        value = finding.value
        if not finding.policy:
            bins = ", ".join(str(count) for *_, count in value["bins"])
            said.append(
                f"Support sits at a median of {value['quartiles'][1]:.3f} of the source "
                f"({value['instances']} instances, by quarters {bins}; labels {labels})"
            )
            continue
        for side, one in value.items():
            said.append(
                f"{finding.policy}: {one['questions']} questions keep support {side[5:]} only; it "
                f"sits at {one['mean_position']:.3f} of the source on average"
            )
    return tuple(said)
