"""The demonstration: every experiment of the protocol in one run with one report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routeprism.runs import StoredRun

pytestmark = pytest.mark.slow


def test_the_demonstration_runs_the_whole_protocol(demonstration: Any) -> None:
    run = demonstration.directory / "runs" / "demo"
    with StoredRun(run) as stored:
        rows = stored.estimates()
        names = {row.experiment for row in rows}
        assert names == {
            "routes", "retention", "mechanism", "support", "restoration", "display", "reuse",
            "orders", "readouts",
        }  # fmt: skip
        # Every order of pools of four to seven records: 33,720 of them in thirty pools.
        orders = {
            row.policy: row.estimate
            for row in rows
            if (row.experiment, row.quantity, row.stratum) == ("orders", "order_change", "all")
        }
        assert orders.keys() == {"focal", "recent:k=3"}
        assert stored.findings("orders", "smallest_reordering")
    # What is printed is a page, and says where the rest is.
    assert "83 of 165 questions lose evidence" in " ".join(demonstration.printed.split())
    assert len(demonstration.printed.splitlines()) < 90
    assert "Report: runs/demo/report.html" in demonstration.printed.splitlines()[-1]
    page = (run / "report.html").read_text("utf-8")
    for name in ("verdict", "evidence", "questions", "restoration", "mechanism", "display",
                 "reuse", "orders", "answers", "gates"):  # fmt: skip
        assert f'<section id="{name}"' in page
    assert "routeprism demo --run runs/demo" in page
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    assert manifest["configuration"]["command"] == "demo"


def test_the_demonstration_includes_facts_that_change(demonstration: Any) -> None:
    assert (
        "facts:by=arrival, reversal: 144 of 144 questions about updates end with the old value "
        "when records arrive in this order; resolving by event time prevents all of them"
    ) in " ".join(demonstration.printed.split())
    run = demonstration.directory / "runs" / "demo-updates"
    with StoredRun(run) as stored:
        assert "updates" in {row.experiment for row in stored.estimates()}
    assert (run / "report.html").exists()


def test_quiet_prints_the_verdict_of_the_protocol_in_one_line(cli: Any) -> None:
    ended = cli("demo", "--quiet")
    assert ended.code == 0, ended.err
    assert ended.out.count("\n") == 1 and "questions lose evidence" in ended.out
