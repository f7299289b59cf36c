"""The demonstration: every experiment of the protocol in one run with one report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from routeprism.runs import Stored


def test_the_demonstration_runs_the_whole_protocol(cli: Callable[..., Any]) -> None:
    ended = cli("demo", "--run", "demo", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    with Stored(Path("demo")) as stored:
        rows = stored.estimates()
        found = {row.experiment for row in rows}
        assert found == {
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
    assert "Accuracy in the four conditions" in ended.out
    assert len(ended.out.splitlines()) < 60
    assert ended.out.endswith("Report: demo/report.html\n")
    page = Path("demo/report.html").read_text("utf-8")
    for name in ("verdict", "evidence", "questions", "restoration", "mechanism", "display",
                 "reuse", "orders", "answers", "gates"):  # fmt: skip
        assert f'<section id="{name}"' in page
    assert "routeprism demo --run demo" in page
    manifest = json.loads(Path("demo/manifest.json").read_text("utf-8"))
    assert manifest["configuration"]["command"] == "demo"
