"""What --json prints follows the schema that the reference is made from."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from routeprism.api.settings import settings_for
from routeprism.cli import COMMANDS
from routeprism.settings import options_of

SCHEMA = json.loads((files("routeprism.cli") / "output.schema.json").read_text("utf-8"))
Cli = Callable[..., Any]


def validate(kind: str, text: str) -> Any:
    value = json.loads(text)
    schema = {"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}
    Draft202012Validator(schema).validate(value)
    return value


@pytest.fixture
def own_data_path(own_data: Callable[..., Path]) -> Path:
    return own_data(
        [{"user": u, "id": f"{u}{n}", "text": f"w{n} tea"} for u in "abc" for n in range(5)],
        [
            {"user": u, "id": f"q{u}{n}", "text": "tea?", "options": ["x", "y"], "gold": "a"}
            | {"support": [f"{u}{n}"]}
            for u in "abc"
            for n in range(2)
        ],
    )


def test_the_schema_is_valid_and_covers_every_command_with_json() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    covered = {
        name
        for name in COMMANDS
        if any(option.name == "json" for option in options_of(settings_for(name)))
    }
    assert set(SCHEMA["commands"]) == covered
    names = {kind for kinds in SCHEMA["commands"].values() for kind in kinds}
    assert names <= set(SCHEMA["$defs"])


@pytest.mark.slow
def test_commands_that_build_memories_follow_the_schema(cli: Cli, own_data_path: Path) -> None:
    few = ("--resamples", "100", "--workers", "1", "--json")
    answers = ("-p", "recent:k=2", "-m", "reader", *few)
    for command, arguments in {
        "audit": (own_data_path, *answers),
        "restore": (own_data_path, *answers),
        "remedy": (own_data_path, "-p", "recent:k=2", *few),
        "orders": (own_data_path, "-p", "recent:k=2", "--shrink", "support", *few),
        "curve": (own_data_path, "--budget", "k=1,2", *few),
    }.items():
        ended = cli(command, *arguments)
        assert ended.code == 0, ended.err
        value = validate(SCHEMA["commands"][command][0], ended.out)
        assert value["benchmark"] == "mydata" and value["estimates"]
    priced = cli("audit", own_data_path, "-p", "raw", "-m", "reader", "--dry-run", "--json")
    assert "reader" in validate("costs", priced.out)


@pytest.mark.slow
def test_commands_that_read_runs_follow_the_schema(cli: Cli, own_data_path: Path) -> None:
    for run, policy in (("a", "recent:k=3"), ("b", "recent:k=2")):
        few = ("-s", "replay", "--resamples", "100", "--workers", "1", "--quiet")
        assert (
            cli("audit", own_data_path, "-p", policy, "-m", "reader", "--run", run, *few).code == 0
        )
    pair = ("--policy-a", "recent:k=3", "--policy-b", "recent:k=2")
    compared = validate("compare", cli("compare", "a", "b", *pair, "--json").out)
    assert compared["policies"] == [["recent:k=3", "recent:k=2"]]
    checked = validate("check", cli("check", "a", "-g", "J>=1", "--json").out)
    assert checked["passed"] is False and checked["gates"][0]["questions"]
    for quantity in ("J", "H"):
        row = f"policy=recent:k=3,schedule=replay,quantity={quantity}"
        ended = cli("trace", "a", "--row", row, "--json", "--prompts")
        assert validate("trace", ended.out)["agrees"] is True
    validate("plan", cli("plan", "a", "--quantity", "J", "--half-width", "0.1", "--json").out)
    assert validate("report", cli("report", "a", "--json").out)["report"] == "a/report.html"


@pytest.mark.slow
def test_the_rest_follows_the_schema(cli: Cli, own_data_path: Path) -> None:
    assert "focal" in str(validate("list", cli("list", "--json").out))
    checks = validate("check-adapter", cli("check-adapter", "recent:k=3", "--json").out)
    assert checks["adapter"] == "recent:k=3"
    assert cli("check-adapter", "recent:k=3", "--quiet").out == "recent:k=3 can be audited\n"
    call = cli("reproduce", "tab:mechanism-state", "--quiet")
    assert (call.code, call.out) == (0, "12 numbers: reproduced: measured 12\n")
    counts = (
        "2327 numbers: reproduced: measured 58, reproduced: denominators 46, reproduced: "
        "arithmetic 14, differs 17, consistent 18, machinery 2107, not derivable 67\n"
    )
    assert cli("reproduce", "--quiet").out == counts
    table = cli("reproduce", "tab:mechanism-state", "--json").out
    assert validate("reproduce", table)["tables"][0]["label"] == "tab:mechanism-state"
    sheet = validate("cards", cli("support", own_data_path, "--export", "cards.csv", "--json").out)
    assert sheet["sheet"] == "cards.csv"
    with Path("cards.csv").open(encoding="utf-8", newline="") as stream:
        rows = [{**row, "label": "direct"} for row in csv.DictReader(stream)]
    with Path("cards.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    passes = ("--pass", "a=cards.csv", "--primary", "a", "--resamples", "100")
    study = validate("study", cli("support", own_data_path, *passes, "--json").out)
    assert study["primary"] == "a" and study["labels"]["source"] == "audited:a"


def test_screening_and_merging_follow_the_schema(cli: Cli, own_data_path: Path) -> None:
    sheet = cli("screen", own_data_path, "--export", "cards.csv", "--json")
    assert validate("cards", sheet.out)["cards"] == 6
    few = ("-p", "recent:k=2", "-s", "replay", "--resamples", "100", "--workers", "1")
    for part in ("1", "2"):
        ended = cli("audit", own_data_path, *few, "--shard", f"{part}/2", "--run", part, "--quiet")
        assert ended.code == 0, ended.err
    merged = cli("merge", "1", "2", "--run", "whole", "--json")
    assert merged.code == 0, merged.err
    assert validate(SCHEMA["commands"]["merge"][0], merged.out)["run"] == "whole"
