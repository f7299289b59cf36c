"""People label and screen in a spreadsheet; the labels and the mask then steer a restoration."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from routeprism.cli import run_command
from routeprism.errors import RoutePrismError
from routeprism.labels import SCREEN, STALE, SUPPORT, cards_for
from routeprism.records import load_benchmark


def run(*arguments: str) -> None:
    run_command(arguments)


def filled(path: Path, fill) -> Path:
    """Fill a sheet in, as a person would, and save it as a spreadsheet with semicolons does."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        fill(row)
    done = path.with_name(f"filled-{path.name}")
    with done.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return done


@pytest.mark.slow
def test_labels_from_a_sheet_steer_a_restoration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = load_benchmark("sample")
    support = {q.id: q.labels["benchmark"] for case in sample.cases for q in case.questions}
    pools = {q.id: case.pool.ids for case in sample.cases for q in case.questions}
    question = {card.id: card.question for card in cards_for(sample, SUPPORT)}

    def label(row: dict[str, str]) -> None:
        question_id = question[row["card"]]
        record = pools[question_id][int(row["record"]) - 1]
        row["label"] = "direct" if record in support[question_id] else "none"

    sheet = tmp_path / "support.csv"
    run("support", "sample", "--export", str(sheet))
    done = filled(sheet, label)
    run("support", "sample", "--pass", f"ann={done}", "--run", str(tmp_path / "labels"))
    readings = tmp_path / "labels" / "readings-ann.json"
    assert json.loads(readings.read_text())["name"] == "ann"
    page = (tmp_path / "labels" / "report.html").read_text("utf-8")
    assert f"--readings {readings} --labels audited:ann" in page
    capsys.readouterr()
    base = ("restore", "sample", "-p", "focal", "-m", "reader", "--draws", "1", "--json")
    run(*base, "--readings", str(readings), "--labels", "audited:ann", "--run", str(tmp_path / "a"))
    audited = json.loads(capsys.readouterr().out)
    run(*base, "--run", str(tmp_path / "b"))
    published = json.loads(capsys.readouterr().out)

    def contrast(result: dict[str, object], labels: str) -> list[object]:
        return [
            (row["estimate"], row["queries"])
            for row in result["estimates"]
            if row["quantity"] == "restored-absent"
            and row["stratum"] == "all"
            and not row["arm"]
            and row["labels"] == labels
        ]

    # The person agreed with the benchmark on every record, so the numbers are the same.
    assert contrast(audited, "audited:ann") == contrast(published, "benchmark")
    assert len(contrast(audited, "audited:ann")) == 1


@pytest.mark.slow
def test_two_screenings_gate_an_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "screen.csv"
    run("screen", "sample", "--export", str(sheet))
    counts = {"at": 0}

    def first(row: dict[str, str]) -> None:
        row["label"] = "admissible" if counts["at"] % 2 else "inadmissible"
        counts["at"] += 1

    def second(row: dict[str, str]) -> None:
        row["label"] = "admissible"

    ann = filled(sheet, first)
    bob = filled(sheet.rename(tmp_path / "again.csv"), second)
    mask = tmp_path / "primary.txt"
    run(
        "screen", "sample", "--pass", f"ann={ann}", "--pass", f"bob={bob}", "--primary", "ann",
        "--gate", "intersection", "--write-mask", str(mask), "--run", str(tmp_path / "screened"),
    )  # fmt: skip
    assert len(mask.read_text().split()) == 82  # every second of 165
    manifest = json.loads((tmp_path / "screened" / "manifest.json").read_text())
    assert manifest["configuration"]["primary"] == {"ann": "file:filled-screen.csv"}
    page = (tmp_path / "screened" / "report.html").read_text("utf-8")
    assert "82 of 165" in page  # what passes the gate
    assert f"Report: {tmp_path / 'screened' / 'report.html'}" in capsys.readouterr().out
    capsys.readouterr()
    run(
        "audit", "sample", "-p", "focal", "--mask", f"primary={mask}", "--json",
        "--run", str(tmp_path / "audit"),
    )  # fmt: skip
    rows = json.loads(capsys.readouterr().out)["estimates"]
    sizes = {
        r["mask"]: r["queries"] for r in rows if r["quantity"] == "J" and r["stratum"] == "all"
    }
    assert sizes == {"": 165, "primary": 82, "outside-primary": 83}


def test_the_embedded_reader_cannot_screen(tmp_path: Path) -> None:
    assert SCREEN.name == "screen"
    with pytest.raises(RoutePrismError, match="reader"):
        run("screen", "sample", "--pass", "one=reader", "--run", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_outdated_evidence_from_two_sheets_with_agreement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One person finds all outdated records, the second person none of those of one user."""
    sample = load_benchmark("sample-updates")
    stale = {q.id: q.stale["benchmark"] for case in sample.cases for q in case.questions}
    pools = {q.id: case.pool.ids for case in sample.cases for q in case.questions}
    question = {card.id: card.question for card in cards_for(sample, STALE)}

    def label(row: dict[str, str]) -> None:
        question_id = question[row["card"]]
        record = pools[question_id][int(row["record"]) - 1]
        row["label"] = "direct" if record in stale[question_id] else "none"

    def overlook(row: dict[str, str]) -> None:
        label(row)
        if question[row["card"]].startswith("u01-"):
            row["label"] = "none"

    sheet, second = tmp_path / "stale.csv", tmp_path / "second.csv"
    for path in (sheet, second):
        run("support", "sample-updates", "--stale", "--export", str(path))
    passes = [f"ann={filled(sheet, label)}", f"bob={filled(second, overlook)}"]
    capsys.readouterr()
    labelled = tmp_path / "labels"
    run(
        *("support", "sample-updates", "--stale", "--json", "--run", str(labelled)),
        *(word for item in passes for word in ("--pass", item)),
    )
    study = json.loads(capsys.readouterr().out)
    assert study["rubric"] == "stale"
    assert study["stale"]["source"] == "audited:ann"
    assert {id: frozenset(ids) for id, ids in study["stale"]["questions"].items()} == stale
    # Each of the 144 questions lists all records of its user; bob overlooks the outdated records
    # of the six questions about u01.
    labels = sum(len(case.pool) * len(case.questions) for case in sample.cases)
    wrong = sum(len(ids) for id, ids in stale.items() if id.startswith("u01-"))
    (agreement,) = [text for text in study["sentences"] if text.startswith("ann and bob agree")]
    assert agreement.startswith(
        f"ann and bob agree on {labels - wrong} of {labels} record labels ("
    )
    assert " and on 138 of 144 sets of outdated records (" in agreement
    kappas = [row for row in study["estimates"] if row["quantity"] == "kappa"]
    assert kappas
    assert all(0.9 < row["estimate"] < 1 for row in kappas if row["stratum"] == "all")

    readings = labelled / "readings-bob.json"
    base = ("audit", "sample-updates", "-p", "facts:by=arrival", "--json", "--readings")
    run(*base, str(readings), "--labels", "audited:bob", "--run", str(tmp_path / "audit"))
    rows = json.loads(capsys.readouterr().out)["estimates"]
    (count,) = [
        row
        for row in rows
        if (row["quantity"], row["stratum"], row["schedule"])
        == ("stale_only.route_count", "all", "replay")
    ]
    assert (count["labels"], count["estimate"], count["queries"]) == ("audited:bob", 138, 138)
