"""Restoration of changed facts: misled by the old record, or missing the new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError


@pytest.mark.slow
def test_the_reader_lacks_the_new_record_and_is_misled_by_the_old_one() -> None:
    restoration = routeprism.restore(
        "sample-updates",
        "facts:by=arrival",
        models=["reader:temperature=0"],
        designs=["update"],
        resamples=200,
    )
    rows = restoration.rows.where(experiment="restoration", arm="update", stratum="all", mask="")
    values = {row.quantity: row.estimate for row in rows}
    assert values["count.eligible"] == 141
    assert values["count.no-replacement"] == 3
    assert values["accuracy.current"] == 1
    assert values["outdated_answer.current"] == 0
    assert (values["outdated_answer.stale"] or 0) > 0.9
    assert (values["accuracy.stale"] or 0) < 0.2
    assert (values["both-stale"] or 0) > 0.5
    (statement,) = [
        str(item)
        for item in restoration.statements
        if "where only the old value is shown" in str(item)
    ]
    assert "the new record is missing, and the old one misleads (141 pairs" in statement


def test_a_model_that_is_never_right_allows_no_conclusion(
    scripted: Any, own_data: Callable[..., Path]
) -> None:
    records = [
        {"user": user, "id": name, "text": f"Words about {name}."}
        for user in ("ann", "bob")
        for name in "xyabz"
    ]
    for record in records[3::5]:
        record["supersedes"] = ["a"]  # type: ignore[assignment]
    question = {"text": "Which one?", "options": ["old", "new"], "gold": "b", "support": ["b"]}
    questions = [
        {**question, "user": user, "id": user, "outdated": ["a"]} for user in ("ann", "bob")
    ]
    restoration = routeprism.restore(
        own_data(records, questions),
        "recent:k=3",
        models=[scripted(lambda ask: "a")],
        designs=["update"],
        resamples=100,
    )
    (statement,) = [str(s) for s in restoration.statements if "old and the new record" in str(s)]
    assert "no answer is correct, so the model is at floor" in statement
    assert not any("misleads" in str(s) for s in restoration.statements)


def test_a_benchmark_without_such_labels_is_refused() -> None:
    with pytest.raises(SpecError, match="no labels of outdated evidence"):
        routeprism.restore("sample", "recent:k=3", models=["reader"], designs=["update"])
