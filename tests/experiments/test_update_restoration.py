"""Restoration of changed facts: misled by the old record, or missing the new one."""

from __future__ import annotations

import pytest

import routeprism
from routeprism.errors import SpecError


def test_the_reader_lacks_the_new_record_and_is_misled_by_the_old_one() -> None:
    found = routeprism.restore(
        "sample-updates",
        "facts:by=arrival",
        models=["reader:temperature=0"],
        designs=["update"],
        resamples=200,
    )
    rows = found.rows.where(experiment="restoration", arm="update", stratum="all", mask="")
    values = {row.quantity: row.estimate for row in rows}
    assert values["count.eligible"] == 108
    assert values["count.no-replacement"] == 36
    assert values["accuracy.current"] == 1
    assert values["outdated_answer.current"] == 0
    assert (values["outdated_answer.stale"] or 0) > 0.9
    assert (values["accuracy.stale"] or 0) < 0.2
    assert (values["both-stale"] or 0) > 0.5
    (statement,) = [
        str(one) for one in found.statements if "where only the old value is shown" in str(one)
    ]
    assert "the new record is missing, and the old one misleads (108 pairs" in statement


def test_a_benchmark_without_such_labels_is_refused() -> None:
    with pytest.raises(SpecError, match="no labels of outdated evidence"):
        routeprism.restore("sample", "recent:k=3", models=["reader"], designs=["update"])
