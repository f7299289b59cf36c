"""A stranger's experiment, coordinate and procedure: one file each, and nothing else.

An entry point registers them; `--use package.module:Name` and `use_extensions` name them.

Schedules, interfaces, judges, benchmarks, models and adapters are in test_extensions.py.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.experiments import registered_experiments

pytestmark = pytest.mark.slow

MODULE = '''
"""An experiment and a coordinate of one's own."""

from dataclasses import dataclass

from routeprism.experiments import (
    CaseComparisons,
    ComparisonStage,
    Experiment,
    compare_routes,
    enter_measures,
)
from routeprism.measures import Coordinate
from routeprism.orders import Procedure
from routeprism.settings import option


@dataclass(frozen=True)
class EchoSettings:
    """Options of the experiment."""

    echo: bool = option(False, help="Ask both routes of each pair for an echo.", group="Answers")


def compare(traced, asking, case, stored):
    routes = traced.policies, traced.schedules
    pairs = compare_routes(
        case, stored, *routes, asking.manner, experiment="echo", condition="loud"
    )
    return CaseComparisons(case, list(pairs))


def measure(pair, answers):
    forward, route = answers.symbols[pair]
    return {"E_changed": float(forward[0] != route[0])}


def stage(settings, asking, benchmark):
    if not settings.echo or asking is None:
        return None
    return ComparisonStage(
        "echo", asking, compare, enter_measures(measure), configuration={"echo": True}
    )


experiment = Experiment(
    name="echo",
    title="Echoes of the answers",
    summary="Count how often the echo of an answer changes.",
    settings=EchoSettings,
    stage=stage,
)


def count_blocks(pair):
    return float(len(pair.forward_exposure.blocks) != len(pair.route_exposure.blocks))


blocks = Coordinate(
    "N_changed",
    "N",
    "whether the routes show a different number of blocks",
    "the same number",
    "a different number",
    "this test",
    count_blocks,
)


def add_without_first(memory, records):
    for record in records[1:]:
        memory.add(record)


headless = Procedure("headless", "own", fill=add_without_first)


def without_first():
    return headless


class Everything:
    """A memory of all records."""

    def __init__(self):
        self.records = []

    def add(self, record):
        self.records.append(record)

    def retained(self):
        return [record.id for record in self.records]

    def expose(self, query):
        return self.records
'''
ENTRY_POINTS = """\
[routeprism.experiments]
echo = echoes:experiment
[routeprism.coordinates]
blocks = echoes:blocks
[routeprism.procedures]
headless = echoes:headless
"""


@dataclass(frozen=True)
class Stranger:
    """A directory with a run, and a function that calls the command line there."""

    directory: Path
    call: Callable[..., str]

    @property
    def rows(self) -> list[dict[str, str]]:
        with (self.directory / "run" / "estimates.csv").open(encoding="utf-8") as stream:
            return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """A run with the experiment, made by the command line with the package installed."""
    directory = tmp_path_factory.mktemp("stranger")
    metadata = directory / "site" / "echoes-1.0.dist-info"
    metadata.mkdir(parents=True)
    (directory / "site" / "echoes.py").write_text(MODULE, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: echoes\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join([*filter(None, sys.path), str(directory / "site")])

    def call(*words: str) -> str:
        program = "from routeprism.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    policies = ("-p", "recent:k=3", "-m", "reader", "--draws", "2", "--echo")
    call("audit", "sample", *policies, "--run", "run", "--resamples", "100")
    return Stranger(directory, call)


def test_its_option_is_in_the_help_of_the_command(stranger: Stranger) -> None:
    text = " ".join(stranger.call("audit", "--help").split())
    assert "--echo" in text
    assert "Ask both routes of each pair for an echo." in text


def test_its_estimates_are_in_the_file_of_estimates(stranger: Stranger) -> None:
    rows = [row for row in stranger.rows if row["experiment"] == "echo"]
    assert {row["quantity"] for row in rows} == {"E_changed"}
    (echo,) = [row for row in rows if row["stratum"] == "all"]
    # The prompts and draws are those of the routes, so it equals their disagreement.
    (answers,) = [
        row
        for row in stranger.rows
        if (row["experiment"], row["quantity"]) == ("routes", "H")
        and (row["stratum"], row["mask"], row["arm"]) == ("all", "", "")
    ]
    assert (echo["arm"], echo["estimate"]) == ("loud", answers["estimate"])


def test_it_is_in_the_manifest(stranger: Stranger) -> None:
    manifest = json.loads((stranger.directory / "run" / "manifest.json").read_text("utf-8"))
    assert manifest["configuration"]["echo"] is True
    entry = manifest["experiments"]["echo"]
    assert entry["inputs"]["questions"] == 165
    assert entry["answers"]["number"] == 165 * 2 * 2
    assert entry["analysis"]["rows"] == 5


def test_the_report_has_a_section_with_a_table_and_a_chart(stranger: Stranger) -> None:
    stranger.call("report", "run", "--tables", "tables", "--charts", "charts")
    page = (stranger.directory / "run" / "report.html").read_text("utf-8")
    assert "Echoes of the answers</h2>" in page
    table = (stranger.directory / "tables" / "echo.md").read_text("utf-8")
    assert "| recent:k=3 | replay | loud | reader |" in table
    assert (stranger.directory / "charts" / "echo.svg").exists()


def test_its_number_is_traced_to_its_answers(stranger: Stranger) -> None:
    where = "experiment=echo,stratum=all,quantity=E_changed"
    trail = json.loads(stranger.call("trace", "run", "--row", where, "--json"))
    answers = trail["answers"]
    assert len(answers) == 165 * 2 * 2
    assert {answer["side"] for answer in answers} == {"forward", "replay"}
    assert {answer["condition"] for answer in answers} == {"loud"}


def test_its_answers_are_written_and_read_again(stranger: Stranger) -> None:
    stranger.call("report", "run", "--answers", "answers.csv")
    with (stranger.directory / "answers.csv").open(encoding="utf-8-sig") as stream:
        conditions = [row["condition"] for row in csv.DictReader(stream)]
    assert conditions.count("echo:loud:forward") == conditions.count("echo:loud:replay") == 330
    repetition = ("-p", "recent:k=3", "-m", "recorded:answers.csv", "--draws", "2", "--echo")
    result = stranger.call(
        "audit", "sample", *repetition, "--json", "--run", "again", "--resamples", "100"
    )
    rows = json.loads(result)["estimates"]
    (row,) = [r for r in rows if r["experiment"] == "echo" and r["stratum"] == "all"]
    (own,) = [r for r in stranger.rows if r["experiment"] == "echo" and r["stratum"] == "all"]
    assert row["estimate"] == pytest.approx(float(own["estimate"]), abs=1e-9)


def test_it_is_listed_and_its_number_can_be_a_gate(stranger: Stranger) -> None:
    document = json.loads(stranger.call("list", "experiments", "--json"))
    assert document["echo"] == "Count how often the echo of an answer changes."
    assert "ok" in stranger.call("check", "run", "--gate", "E_changed<=1")


def test_a_coordinate_is_measured_listed_and_can_be_a_gate(stranger: Stranger) -> None:
    values = {
        row["quantity"]: float(row["estimate"])
        for row in stranger.rows
        if row["experiment"] == "routes" and row["stratum"] == "all" and not row["model"]
        if row["estimate"]
    }
    # `recent` keeps the same number of records on both routes; the budget may show fewer.
    assert 0 <= values["N_changed"] <= values["V_changed"]
    document = json.loads(stranger.call("list", "coordinates", "--json"))
    assert document["N_changed"].startswith("whether the routes show a different number of blocks")
    assert "ok" in stranger.call("check", "run", "--gate", "N_changed<=1")


@pytest.fixture
def echoes(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same module in the current directory, which no package registers; beside it, own data."""
    Path("own_echoes.py").write_text(MODULE, encoding="utf-8")
    data = Path("few")
    data.mkdir()
    records, questions = [], []
    for user in ("ann", "ben"):
        texts = ("Tea is green.", "Rain is wet.", "Bread is warm.", "Chess is long.")
        for at, text in enumerate(texts):
            records.append({"user": user, "id": f"{user}{at}", "text": text})
        question = {"user": user, "id": f"{user}-q", "text": "What is green?", "gold": "a"}
        questions.append({**question, "options": ["tea", "rain"], "support": [f"{user}0"]})
    for name, entries in (("records", records), ("questions", questions)):
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        (data / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path.cwd())])
    yield import_module("own_echoes")
    del sys.modules["own_echoes"]


def test_objects_extend_every_function_inside_a_block(echoes: Any) -> None:
    with routeprism.use_extensions(echoes.experiment, echoes.blocks, echoes.headless):
        audit = routeprism.audit(
            "few",
            "recent:k=2",
            echoes.Everything,
            schedules=["replay", "headless"],
            models=["reader"],
            echo=True,
            run="run",
            resamples=100,
        )
        assert "N_changed" in {row.quantity for row in audit.rows}
        assert {row.experiment for row in audit.rows} >= {"echo", "routes"}
        assert routeprism.check("run", "E_changed<=1").passed
        routeprism.write_report("run")
        assert "Echoes of the answers</h2>" in Path("run/report.html").read_text("utf-8")
    # The first record is evidence; the procedure does not add it, and every question loses it.
    lost = audit.value("evidence_lost", policy="Everything", schedule="headless")
    assert lost.estimate == 1
    assert "echo" not in {experiment.name for experiment in registered_experiments()}
    with pytest.raises(TypeError, match="echo"):
        routeprism.audit("few", "recent:k=2", echo=True)


def test_the_command_line_names_them_in_any_command(echoes: Any, cli: Callable[..., Any]) -> None:
    used = ("--use", "own_echoes:experiment", "--use", "own_echoes:blocks")
    arguments = ("-p", "recent:k=2", "-s", "replay", "-m", "reader", "--echo", "--workers", "2")
    call = cli("audit", "few", *arguments, *used, "--run", "run", "--resamples", "100", "--json")
    assert call.code == 0, call.err
    assert {"N_changed", "E_changed"} <= {r["quantity"] for r in json.loads(call.out)["estimates"]}
    manifest = json.loads(Path("run/manifest.json").read_text("utf-8"))
    assert manifest["configuration"]["command_line"][1:5] == list(used)
    assert cli("check", "run", "--gate", "E_changed<=1", *used).code == 0
    assert "echo" in json.loads(cli("list", "experiments", "--json", *used).out)
    procedure = cli(
        *("audit", "few", "-p", "own_echoes:Everything", "-s", "own_echoes:headless", "--json")
    )
    rows = json.loads(procedure.out)["estimates"]
    (lost,) = [r for r in rows if r["quantity"] == "evidence_lost" and r["stratum"] == "all"]
    assert (lost["schedule"], lost["estimate"]) == ("own_echoes:headless", 1)


def test_an_object_of_another_kind_is_refused(echoes: Any, cli: Callable[..., Any]) -> None:
    message = "Expected an Experiment, a Quantity or a Procedure"
    with pytest.raises(SpecError, match=message), routeprism.use_extensions(echoes.compare):
        pass
    assert "needs the name of an extension" in cli("list", "--use").err


def test_a_registered_procedure_is_listed(stranger: Stranger) -> None:
    document = json.loads(stranger.call("list", "procedures", "--json"))
    assert document["headless"] == "Defined as echoes:headless."


def test_a_procedure_is_passed_as_an_object_or_made_by_a_function(echoes: Any) -> None:
    audit = routeprism.audit(
        *("few", echoes.Everything),
        schedules=[echoes.headless, "own_echoes:without_first"],
        resamples=100,
    )
    for schedule in ("headless", "own_echoes:without_first"):
        assert audit.value("evidence_lost", schedule=schedule).estimate == 1
