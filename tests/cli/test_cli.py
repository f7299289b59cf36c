"""The command line: what it prints, what it refuses, and what it leaves behind."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism.policies import registered_policies
from routeprism.policies.raw import Raw

Cli = Callable[..., Any]
OwnData = Callable[..., Path]
FILES = ("estimates.csv", "manifest.json", "report.html", "run.sqlite")

RECORDS = [
    {"user": user, "id": f"{user}-{at}", "text": text}
    for user in ("ann", "bob")
    for at, text in enumerate(["I love green tea.", "I walk to work.", "My cat sleeps."])
]
QUESTIONS = [
    {"user": "ann", "id": "q1", "text": "Which tea?", "support": ["ann-0"], "kind": "drink"},
    {"user": "ann", "id": "q2", "text": "Which way?", "support": ["ann-1"], "kind": "way"},
    {"user": "bob", "id": "q3", "text": "Which pet?", "support": ["bob-2"], "kind": "pet"},
]

MEMORY = '''
class LastTwo:
    """A memory class as a user writes one."""

    def __init__(self, k=2):
        self.k, self.kept = k, []

    def add(self, record):
        self.kept = [*self.kept, record][-self.k:]

    def retained(self):
        return [record.id for record in self.kept]

    def expose(self, query):
        return self.kept


class Breaks(LastTwo):
    def add(self, record):
        if record.id.startswith("bob"):
            raise ValueError("no room for bob")
        super().add(record)


class Named:
    name = "mine[bold]v2[/bold]"

    def build(self, arrivals):
        from routeprism.policies.recent import Recent

        return Recent(2).build(arrivals)


def make():
    return LastTwo()


number = 5
'''


@pytest.fixture
def own_data_path(own_data: OwnData) -> Path:
    return own_data(RECORDS, QUESTIONS)


@pytest.fixture
def my_memory(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module into the directory that commands are called from; give its name."""
    Path("my_memory_of_a_test.py").write_text(MEMORY)
    monkeypatch.delitem(sys.modules, "my_memory_of_a_test", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return "my_memory_of_a_test"


# --- what it prints --------------------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_says_what_changed_and_where_it_is_kept(cli: Cli, own_data_path: Path) -> None:
    ended = cli(
        "audit", own_data_path, "-p", "recent:k=1", "-p", "raw", "--run", "out", "--verbose"
    )
    assert (ended.code, ended.err) == (0, "")
    assert ended.left == ("out", *(f"out/{name}" for name in FILES))
    lines = ended.out.splitlines()
    assert lines[0] == "mydata: 2 pools, 6 records, 3 questions"
    cells = [line.split() for line in lines]
    recent = next(line for line in cells if line and line[0] == "recent:k=1")
    # Source order shows the newest record: evidence of one of three questions.
    assert recent[1:3] == ["evidence", "moves"] and recent[3:6] == ["1", "of", "3"]
    # Nothing changes, but three questions are too few to show that.
    assert ["raw", *"inconclusive 3 of 3 −0 +0 −0 +0 −0 +0".split()] in cells
    at = lines.index("Where order enters")
    layers = [line for line in cells[at:] if line and line[0] == "replay"][:2]
    assert layers[0] == [
        *"replay 3 of 3 3 of 3 3 of 3 3 of 3".split(),
        "0.000",
        "[0.000,",
        "0.000]",
    ]
    assert layers[1] == [
        *"replay 0 of 3 0 of 3 0 of 3 3 of 3".split(),
        "1.000",
        "[1.000,",
        "1.000]",
    ]
    assert any(line.startswith("recent:k=1: evidence moves. ") for line in lines)
    assert lines[-1] == "Report: out/report.html (--verbose prints everything)"


@pytest.mark.slow
def test_the_sample_is_called_synthetic(cli: Cli) -> None:
    ended = cli("audit", "sample", "-p", "recent", "--resamples", "100")
    assert ended.code == 0
    assert ended.out.startswith("sample (synthetic): 30 pools, 165 records, 165 questions\n")
    assert "Note: The sample is synthetic: written by a generator with seed 20240607." in ended.out


def test_json_is_all_that_is_printed_and_has_every_row(cli: Cli, own_data_path: Path) -> None:
    ended = cli("audit", own_data_path, "-p", "recent:k=2", "--json", "--run", "out")
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert document["counts"] == {"pools": 2, "records": 6, "questions": 3}
    assert (document["benchmark"], document["run"], document["notes"]) == ("mydata", "out", [])
    table = list(csv.DictReader(io.StringIO(Path("out/estimates.csv").read_text())))
    assert len(document["estimates"]) == len(table) > 0
    (overlap,) = [
        row
        for row in document["estimates"]
        if (row["quantity"], row["stratum"], row["schedule"]) == ("J", "all", "replay")
    ]
    # Forward keeps records 1 and 2, replay 1 and 0: one of three in common.
    assert overlap["estimate"] == pytest.approx(1 / 3)
    assert (overlap["queries"], overlap["units"], overlap["unit"]) == (3, 2, "user")


@pytest.mark.slow
def test_without_a_directory_the_same_command_meets_its_own_run(
    cli: Cli, own_data_path: Path
) -> None:
    first = cli("audit", own_data_path, "-p", "raw", "--resamples", "100")
    repetition = cli("audit", own_data_path, "-p", "raw", "--resamples", "100")
    outcome = cli("audit", own_data_path, "-p", "recent", "--resamples", "100")
    assert (first.code, repetition.code, outcome.code) == (0, 0, 0)
    assert first.left == repetition.left
    runs = {Path(name).parts[1] for name in outcome.left if len(Path(name).parts) == 3}
    assert len(runs) == 2
    assert all(name.startswith("mydata-") for name in runs)


def test_names_of_ones_own_are_no_markup(cli: Cli, own_data_path: Path, my_memory: str) -> None:
    ended = cli("audit", own_data_path, "-p", f"{my_memory}:Named", "--run", "out")
    assert ended.code == 0
    reports = ended.out.partition("Note: ")[0]  # notes name it, too
    # In the table and in its statements it is written as it is named.
    assert reports.count("v2") == reports.count("mine[bold]v2[/bold]") >= 2


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ("policies", {"raw", "recent:k=…", "source-order(SPEC)", "package.module:Name"}),
        ("benchmarks", {"sample", "personamem", "locomo", "longmemeval", "DIRECTORY"}),
        ("schedules", {"forward", "replay", "half-swap", "odd-even"}),
        ("interfaces", {"all:display=…,text=…", "bm25:k=…,display=…,text=…"}),
        ("coordinates", {"J", "V_changed", "C_changed", "I_changed", "retained_changed"}),
    ],
)
def test_list_says_what_can_be_named(cli: Cli, subject: str, names: set[str]) -> None:
    outcome = cli("list", subject)
    document = json.loads(cli("list", subject, "--json").out)
    assert outcome.code == 0
    assert names <= set(document)
    assert all(meaning for meaning in document.values())
    assert {line.split()[0] for line in outcome.out.splitlines()} == set(document)


# --- a memory of one's own -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "overlap"),
    # The last two of three: 1/3; the last one: 0; all three: 1.
    [("LastTwo", 1 / 3), ("LastTwo:k=1", 0.0), ("LastTwo:k=3", 1.0), ("make", 1 / 3)],
)
def test_a_class_beside_the_caller_is_found(
    cli: Cli, own_data_path: Path, my_memory: str, name: str, overlap: float
) -> None:
    ended = cli("audit", own_data_path, "-p", f"{my_memory}:{name}", "--json", "--run", "out")
    assert (ended.code, ended.err) == (0, "")
    (row,) = [
        row
        for row in json.loads(ended.out)["estimates"]
        if (row["quantity"], row["stratum"], row["schedule"]) == ("J", "all", "replay")
    ]
    assert (row["policy"], row["interface"]) == (f"{my_memory}:{name}", "own")
    assert row["estimate"] == pytest.approx(overlap)


def test_a_class_that_raises_is_shown_where_and_leaves_nothing(
    cli: Cli, own_data_path: Path, my_memory: str
) -> None:
    ended = cli("audit", own_data_path, "-p", f"{my_memory}:Breaks", "--run", "new/out")
    assert (ended.code, ended.out) == (2, "")  # 1 would say that a gate failed
    assert 'raise ValueError("no room for bob")' in ended.err
    assert (
        "a new run without answers or checkpoints leaves nothing behind. To resume:\n" in ended.err
    )
    assert ended.left == (f"{my_memory}.py",)


# --- what it refuses -------------------------------------------------------------------------

KNOWN_OWN = "Your own class is named 'package.module:Name'."
KNOWN_DATA = "Your own data is a directory with records.jsonl and questions.jsonl."
REFUSED = {
    "policy": (
        ["sample", "-p", "fokal"],
        f"There is no policy 'fokal'. Did you mean 'focal'? {KNOWN_OWN}",
    ),
    "policy like none": (
        ["sample", "-p", "zzz"],
        f"There is no policy 'zzz'. Known: {', '.join(sorted(registered_policies()))}. {KNOWN_OWN}",
    ),
    "policy of a comparator": (
        ["sample", "-p", "source-order(recnt:k=2)"],
        f"There is no policy 'recnt'. Did you mean 'recent'? {KNOWN_OWN}",
    ),
    "comparator left open": (
        ["sample", "-p", "source-order(raw"],
        "Expected 'source-order(SPEC)' but got 'source-order(raw'",
    ),
    "parameter": (
        ["sample", "-p", "focal:treshold=0.1"],
        "'focal' has no parameter 'treshold'. Did you mean 'threshold'?",
    ),
    "parameter of none": (
        ["sample", "-p", "raw:k=2"],
        "'raw' takes no parameters, but got 'k'",
    ),
    "parameter twice": (["sample", "-p", "recent:k=2,k=3"], "'recent:k=2,k=3' gives 'k' twice"),
    "parameter without a value": (
        ["sample", "-p", "recent:k="],
        "Expected key=value but got 'k=' in 'recent:k='",
    ),
    "parameter that is no number": (
        ["sample", "-p", "recent:k=three"],
        "Expected a whole number but got k=three in 'recent:k=three'",
    ),
    "parameter too small": (
        ["sample", "-p", "recent:k=0"],
        "Expected k of 1 or more but got k=0 in 'recent:k=0'",
    ),
    "parameter past its range": (
        ["sample", "-p", "focal:threshold=nan"],
        "Expected a threshold from 0 to 1 but got threshold=nan in 'focal'",
    ),
    "choice": (
        ["sample", "-p", "focal:cluster=sorce"],
        "Expected one of arrival, source but got cluster=sorce in 'focal:cluster=sorce'. "
        "Did you mean 'source'?",
    ),
    "schedule": (
        ["sample", "-p", "raw", "-s", "half_swap"],
        "There is no schedule 'half_swap'. Did you mean 'half-swap'?",
    ),
    "schedule without its seed": (
        ["sample", "-p", "raw", "-s", "random"],
        "Expected 'random:seed=N' but got schedule 'random'",
    ),
    "schedule of another size": (
        ["sample", "-p", "raw", "-s", "explicit:order=1-0"],
        "schedule 'explicit:order=1-0' is not a permutation of the 4 positions of a pool "
        "(user 'u01')",
    ),
    "only forward": (
        ["sample", "-p", "raw", "-s", "forward"],
        "an audit needs at least one policy, and an arrival model or a schedule other than forward",
    ),
    "interface": (
        ["sample", "-p", "raw", "--interface", "budgt"],
        "There is no interface 'budgt'. Did you mean 'budget'?",
    ),
    "interface parameter": (
        ["sample", "-p", "raw", "--interface", "budget:char=9"],
        "'budget' has no parameter 'char'. Did you mean 'chars'?",
    ),
    "benchmark": (
        ["persona-mem", "-p", "raw"],
        f"There is no benchmark 'persona-mem'. Did you mean 'personamem'? {KNOWN_DATA}",
    ),
    "benchmark of a name too long": (
        ["s" * 300, "-p", "raw"],
        f"There is no benchmark '{'s' * 300}'. Known: locomo, longmemeval, personamem, "
        f"sample, sample-updates. {KNOWN_DATA}",
    ),
    "benchmark parameter": (
        ["sample:sed=7", "-p", "raw"],
        "'sample' has no parameter 'sed'. Did you mean 'seed'?",
    ),
    "label source": (
        ["sample", "-p", "raw", "--labels", "bench-mark"],
        "benchmark 'sample' has no labels 'bench-mark'. Did you mean 'benchmark'?",
    ),
    "module": (
        ["sample", "-p", "no_such_module:Memory"],
        "There is no module 'no_such_module' to load 'no_such_module:Memory' from; "
        "run from its directory or install it",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_known_is_said_with_the_nearest(
    cli: Cli, arguments: list[str], message: str
) -> None:
    ended = cli("audit", *arguments, "--run", "new/out")
    assert (ended.code, ended.out, ended.left) == (2, "", ())
    assert ended.err == f"routeprism: {message}\n"


def test_an_unknown_list_is_said_with_the_nearest(cli: Cli) -> None:
    ended = cli("list", "policys")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "routeprism: There is no list of 'policys'. Did you mean 'policies'?\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("LastThree", "'{}' has no 'LastThree'. Did you mean 'LastTwo'?"),
        ("LastTwo:n=3", "'{}:LastTwo' has no parameter 'n'. Known: k."),
        ("number:k=3", "'{}:number' takes no parameters: it is not a class"),
        ("make:k=3", "'{}:make' takes no parameters, but got 'k'"),
    ],
)
def test_what_a_module_of_ones_own_does_not_have(
    cli: Cli, my_memory: str, name: str, message: str
) -> None:
    ended = cli("audit", "sample", "-p", f"{my_memory}:{name}", "--run", "out")
    assert (ended.code, ended.left) == (2, (f"{my_memory}.py",))
    assert ended.err == f"routeprism: {message.format(my_memory)}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "sample"],
        ["audit", "-p", "raw"],
        ["audit", "sample", "-p", "raw", "--no-such-option"],
        ["audit", "sample", "-p", "raw", "--seed", "x"],
        ["audit", "sample", "-p", "raw", "more"],
        ["no-such-command"],
    ],
)
def test_a_wrong_call_ends_with_two(cli: Cli, arguments: list[str]) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.left) == (2, ())
    assert "Usage: routeprism" in ended.err + ended.out


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--resamples", "99", "Expected from 100 to 1,000,000 resamples but got resamples=99"),
        ("--workers", "0", "Expected workers of 1 or more but got workers=0"),
        ("--seed", "-1", "Expected seed of 0 or more but got seed=-1"),
    ],
)
def test_a_number_out_of_range_is_refused_in_one_line(
    cli: Cli, option: str, value: str, message: str
) -> None:
    ended = cli("audit", "sample", "-p", "raw", option, value)
    assert (ended.code, ended.out, ended.left) == (2, "", ())
    assert ended.err == f"routeprism: {message}\n"


def test_help_groups_options_and_shows_whole_summaries(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    overview = cli("--help").out
    assert "  compare        Report what changed between two runs.\n" in overview
    assert max(map(len, overview.splitlines())) <= 80
    help_text = cli("audit", "--help").out
    assert max(map(len, help_text.splitlines())) <= 80
    headings = [
        line[:-1] for line in help_text.splitlines() if line[:1] != " " and line[-1:] == ":"
    ]
    assert headings == [
        *("What to audit", "Arrivals", "Answers", "Statistics", "Money", "Execution", "Output"),
        *("Research", "Examples"),
    ]
    for option in ("-p, --policy TEXT", "--display TEXT", "--reuse", "--margin NUMBER"):
        assert f"  {option} " in help_text


def test_another_run_in_the_directory_is_refused_with_the_difference(
    cli: Cli, own_data_path: Path
) -> None:
    assert cli("audit", own_data_path, "-p", "raw", "--run", "out").code == 0
    before = {name: Path("out", name).read_bytes() for name in FILES}
    ended = cli(
        "audit", own_data_path, "-p", "raw", "-p", "recent:k=1", "--run", "out", "--seed", "5"
    )
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "routeprism: out holds another run; choose a different directory. It differs in:\n"
        '  interfaces: ["budget"] there, ["budget", "budget"] here\n'
        '  policies: ["raw"] there, ["raw", "recent:k=1"] here\n'
        "  seed: 20260910 there, 5 here\n"
    )
    assert {name: Path("out", name).read_bytes() for name in FILES} == before


def test_changed_data_is_another_run(cli: Cli, own_data_path: Path) -> None:
    assert cli("audit", own_data_path, "-p", "raw", "--run", "out").code == 0
    with (own_data_path / "records.jsonl").open("a") as records:
        records.write(json.dumps({"user": "ann", "id": "new", "text": "I moved."}))
    ended = cli("audit", own_data_path, "-p", "raw", "--run", "out")
    assert ended.code == 2
    changed = [line.split(":")[0].strip() for line in ended.err.splitlines()[1:]]
    assert changed == ["fingerprint", "inputs"]


def test_foreign_files_are_left_alone(cli: Cli, own_data_path: Path) -> None:
    Path("out").mkdir()
    Path("out/thesis.txt").write_text("years of work")
    ended = cli("audit", own_data_path, "-p", "raw", "--run", "out")
    assert (ended.code, ended.left) == (2, ("out", "out/thesis.txt"))
    assert ended.err == (
        "routeprism: out contains files that do not belong to a run; choose an empty directory\n"
    )
    assert Path("out/thesis.txt").read_text() == "years of work"


def test_control_c_leaves_nothing(
    cli: Cli, own_data_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Raw, "build", interrupt)
    ended = cli("audit", own_data_path, "-p", "raw", "--run", "out", "--workers", "1")
    assert (ended.code, ended.out, ended.left) == (130, "", ())
    assert ended.err.startswith("routeprism: stopped. Answers and checkpoints are kept")


# --- the installed command -------------------------------------------------------------------


@pytest.mark.slow
def test_the_installed_command_is_this_one(tmp_path: Path, own_data: OwnData) -> None:
    program = Path(sys.executable).with_name("routeprism")
    directory = own_data(RECORDS, [{**QUESTIONS[0], "user": "eve"}])
    ended = subprocess.run(
        [program, "audit", directory, "-p", "raw", "--run", tmp_path / "out"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"routeprism: {directory / 'questions.jsonl'}, line 1, field 'user': "
        "user 'eve' has no records in records.jsonl\n"
    )
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "runs").exists()


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'rich.table', 'splintr', 'routeprism.experiments'} & set(sys.modules)"
    code = (
        "import sys; from routeprism.cli import main; sys.argv = ['routeprism', '--help']\n"
        f"try: main()\nexcept SystemExit: print('HEAVY', sorted({heavy}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("HEAVY []\n")
