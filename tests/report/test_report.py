"""The page, its tables and charts without a browser: what they say, and that nothing breaks out."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import runpy
import shlex
import sqlite3
import webbrowser
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.cli import run_command
from routeprism.errors import RunError
from routeprism.policies import NamedPolicy, make_policy
from routeprism.report import write_charts, write_comparison, write_report, write_tables
from routeprism.runs import Rows, StoredRun

OwnData = Callable[..., Path]

RECORDS = [
    {"user": user, "id": f"{user}{n}", "text": f"the parcel number {n} of {user}"}
    for user in ("a", "b")
    for n in range(3)
]


def question(user: str, **more: Any) -> dict[str, Any]:
    return {"user": user, "id": f"q{user}", "text": "Which parcel?", **more}


def audited(directory: Path, run: Path, *policies: str, **settings: Any) -> Path:
    policies = policies or ("recent:k=1",)
    routeprism.audit(str(directory), *policies, interface="all", run=run, resamples=100, **settings)
    return run


def read_page(run: Path) -> str:
    return write_report(run).read_text("utf-8")


def visible_text(page: str) -> str:
    visible = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", visible)).split())


def read_text(run: Path) -> str:
    """Give the page's visible text."""
    return visible_text(read_page(run))


def read_charts(page: str) -> dict[str, list[dict[str, Any]]]:
    """Read the values of every chart from a page."""
    (block,) = re.findall(r'id="rp-charts">(.*?)</script>', page, re.S)
    return {name: values for name, (_, values, *_) in json.loads(block)["charts"].items()}


def read_pools(page: str) -> list[Any]:
    """Unpack the texts of the pools that a page contains."""
    blocks = re.findall(r'id="rp-chunk-\d+">(.*?)</script>', page, re.S)
    return [json.loads(zlib.decompress(base64.b64decode(block), -15)) for block in blocks]


def read_rows(run: Path) -> Rows:
    with StoredRun(run) as stored:
        return Rows.of(stored.estimates())


def read_gate_command(page: str) -> list[str]:
    """Read the arguments of the `check` that the section on gates suggests."""
    gates = page[page.index('<section id="gates"') :]
    command = re.findall(r"<code>(routeprism check .*?)</code>", gates, re.S)[0]
    return shlex.split(html.unescape(command).replace("\\\n", ""))[1:]


# --- runs that lack something ----------------------------------------------------------------


def test_without_a_model_it_says_how_to_ask_one(own_data: OwnData, tmp_path: Path) -> None:
    directory = own_data(RECORDS, [question("a", support=["a2"]), question("b", support=["b0"])])
    text = read_text(audited(directory, tmp_path / "run"))
    assert (
        "This memory shows different evidence under ordinary disorder, late batch and reversal."
    ) in text
    assert "No model was asked, so there are no answers" in text
    assert "--model reader --draws 3" in text
    assert "There are no evidence labels" not in text
    # Source order shows the newest record, reversal the oldest: each loses the other's evidence.
    assert "Under reversal, 1 of 2 questions lose evidence that source order shows, and 1 " in text


def test_without_labels_it_says_how_to_get_them(own_data: OwnData, tmp_path: Path) -> None:
    directory = own_data(RECORDS, [question("a"), question("b")])
    text = read_text(audited(directory, tmp_path / "run"))
    assert "There are no evidence labels, so nothing shows whether what was lost matters." in text
    # The name of the benchmark is that of its directory, and is no argument of a command.
    assert f"routeprism support {directory} --pass NAME=MODEL" in text
    assert f"routeprism orders {directory} --policy" in text


def test_one_question_has_no_interval_and_the_page_says_so(
    own_data: OwnData, tmp_path: Path
) -> None:
    run = audited(own_data(RECORDS[:3], [question("a", support=["a2"])]), tmp_path / "run")
    text = read_text(run)
    assert "There is one user, so no estimate has an interval." in text
    assert "J = 0.000" in text


def test_no_eligible_pair_is_said_with_the_reasons(own_data: OwnData, tmp_path: Path) -> None:
    """A memory that keeps everything exposes the same support on both routes."""
    options = {"options": ["one", "two"], "gold": "a"}
    directory = own_data(
        RECORDS,
        [question("a", support=["a2"], **options), question("b", support=["b0"], **options)],
    )
    run = tmp_path / "run"
    routeprism.restore(str(directory), "raw", models=["reader"], run=run, resamples=100)
    text = read_text(run)
    assert "No pair of routes was eligible for restoration." in text
    assert "same-support" in text


def test_an_interrupted_run_is_readable_and_says_how_to_go_on(
    own_data: OwnData, tmp_path: Path
) -> None:
    run = audited(own_data(RECORDS, [question("a"), question("b")]), tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    for name in ("statements", "notes"):
        del manifest[name]
    (run / "manifest.json").write_text(
        json.dumps({**manifest, "status": "running", "counts": {}}), "utf-8"
    )
    with closing(sqlite3.connect(run / "run.sqlite")) as connection, connection:
        for table in ("estimates", "findings", "per_question"):
            connection.execute(f"DROP TABLE {table}")
    text = read_text(run)
    assert "This run was interrupted before its estimates." in text
    assert "The same command resumes where it stopped." in text
    assert f"--policy recent:k=1 --interface all --resamples 100 --run {run}" in text
    assert len(read_pools(read_page(run))) == 2  # what was stored is there to look at
    (run / "run.sqlite").unlink()  # killed before anything was stored
    assert "The run was interrupted, so it has no estimates." in read_text(run)


@pytest.mark.slow
def test_the_command_that_resumes_a_run_comes_from_its_settings(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options: dict[str, Any] = {"models": ["reader"], "draws": 2, "provenance": "gated"}
    routeprism.restore(
        "sample", "focal", **options, judge="embedded", seed=3, resamples=100, workers=2,
        interface="bm25:k=2", kinds=["preference"], run=run,
    )  # fmt: skip
    configuration = json.loads((run / "manifest.json").read_text("utf-8"))["configuration"]
    words = configuration["command_line"]
    assert shlex.join(words) == (
        "restore sample --kind preference --policy focal --interface bm25:k=2 --model reader "
        "--draws 2 --provenance gated --judge embedded --seed 3 --resamples 100"
    )
    assert f"routeprism {shlex.join(words)} --run {run}" in read_text(run)
    before = (run / "estimates.csv").read_bytes()
    run_command([*words, "--run", str(run), "--dry-run"])
    run_command([*words, "--run", str(run), "--quiet"])  # it is the same run
    assert (run / "estimates.csv").read_bytes() == before


@pytest.mark.slow
def test_the_recommended_repair_comes_first_and_all_orders_have_causes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    routeprism.remedy("sample", "recent:k=3", run=run, resamples=100)
    page = write_report(run).read_text(encoding="utf-8")
    card = page[page.index('<article class="action') : page.index("</article>")]
    # A log of dropped records shows the evidence of all 165 questions in every order.
    assert "<p>Repair: adding the 3 best matches from a log of dropped records shows" in card
    assert "of 165 instead of 93.6 of 165 questions" in card
    assert "Next: <code>routeprism audit sample --policy" in card
    causes = page[page.index('id="causes"') :]
    for arrival in ("ordinary disorder", "late batch", "reversal"):
        assert arrival in causes[: causes.index("</table>")]
    assert "hold:w=1" not in causes[: causes.index("</table>")]


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="contains no run"):
        write_report(tmp_path)


# --- what is in it ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("report") / "run"
    routeprism.restore(
        "sample", "focal", models=["reader"], draws=2, fillers=["A", "B"], run=run, resamples=100
    )
    return run


@pytest.mark.slow
def test_points_are_the_units_that_the_estimates_are_means_of(sample: Path) -> None:
    rows = {
        row.quantity: row.estimate
        for row in read_rows(sample)
        if row.stratum == "all" and not row.arm and not row.mask and row.filler in ("", "A+B")
    }
    charts = read_charts(read_page(sample))

    def mean_point(chart: str, **entry: str) -> float:
        points = [
            value["estimate"]
            for value in charts[chart]
            if value["kind"] == "unit" and entry.items() <= value.items()
        ]
        assert len(points) > 20
        return sum(points) / len(points)

    # The profile shows 1 − J: how much of the evidence changes.
    assert mean_point("profile-J") == pytest.approx(1 - rows["J"], abs=1e-9)
    for condition in ("absent", "present"):
        mean = mean_point("restoration-focal-replay-reader", condition=condition)
        assert mean == pytest.approx(rows[f"accuracy.{condition}"], abs=1e-9)


def put_together(chunk: Any, side: Any) -> str:
    """Pieces are frames, blocks and padding, which is counted."""
    times = [piece[2] if len(piece) == 3 else 1 for piece in side["pieces"]]
    texts = [chunk["texts"][piece[0]] for piece in side["pieces"]]
    return "".join(text * number for text, number in zip(texts, times, strict=True))


@pytest.mark.slow
def test_prompts_are_kept_with_the_places_of_their_records(sample: Path) -> None:
    """The four prompts of u01-q0 differ in one record; the pieces put together are the prompt."""
    chunk = read_pools(read_page(sample))[0]
    comparisons = chunk["questions"]["u01-q0"]["asked"][0]
    comparison = next(
        entry for entry in comparisons if entry["filler"] == "A" and entry["arm"] == ""
    )
    records = {
        side["name"]: {
            chunk["records"][record][0]
            for piece in side["pieces"]
            if len(piece) == 2
            for record in piece[1]
        }
        for side in comparison["sides"]
    }
    assert records["absent"] - records["restored"] == records["absent"] - records["replacement"]
    assert records["restored"] - records["absent"] == {"u01-r3"}
    with closing(sqlite3.connect(sample / "run.sqlite")) as connection:
        for side in comparison["sides"]:
            (text,) = connection.execute(
                "SELECT text FROM prompts WHERE sha256 = ?", (side["prompt"],)
            ).fetchone()
            assert put_together(chunk, side) == text


@pytest.fixture(scope="module")
def intervened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Displays, instructions and reuse of one state, on the same routes."""
    run = tmp_path_factory.mktemp("report") / "run"
    routeprism.audit(
        "sample",
        "memochat",
        models=["reader"],
        draws=2,
        display=["reversed", "source"],
        provenance=["preserved", "gated"],
        reuse=True,
        run=run,
        resamples=100,
    )
    return run


@pytest.mark.slow
def test_every_experiment_keeps_what_was_asked_and_said(intervened: Path) -> None:
    """Each side is the prompt it names, and each of its two draws has an answer in the ledger."""
    chunk = read_pools(read_page(intervened))[0]
    assert chunk["anchor"] == "u01-q0"
    with closing(sqlite3.connect(intervened / "run.sqlite")) as connection:
        for question in chunk["questions"].values():
            (comparisons,) = question["asked"]
            sides = {
                (comparison["experiment"], comparison["arm"]): comparison["sides"]
                for comparison in comparisons
            }
            assert sides.keys() >= {("routes", ""), ("routes", "gated")}
            assert [side["name"] for side in sides["routes", "gated"]] == ["forward", "replay"]
            for comparison in comparisons:
                for at, side in enumerate(comparison["sides"]):
                    (text,) = connection.execute(
                        "SELECT text FROM prompts WHERE sha256 = ?", (side["prompt"],)
                    ).fetchone()
                    assert put_together(chunk, side) == text
                    assert any(len(piece) == 2 for piece in side["pieces"])
                    assert [len(answers["said"][at]) for answers in comparison["answers"]] == [2]
    # Reversing moves blocks and touches none.
    comparison = next(
        comparison
        for question in chunk["questions"].values()
        for comparison in question["asked"][0]
        if comparison["experiment"] == "display" and comparison["sides"]
    )
    blocks = {
        side["name"]: [piece for piece in side["pieces"] if len(piece) == 2]
        for side in comparison["sides"]
    }
    native, rearranged = blocks["forward-native"], blocks[f"forward-{comparison['arm']}"]
    assert native != rearranged
    assert sorted(native) == sorted(rearranged)


@pytest.mark.slow
def test_suggested_gates_are_useful_limits(sample: Path, tmp_path: Path, cli: Any) -> None:
    """A memory that loses evidence fails them, and one that loses none keeps them."""
    page = read_page(sample)
    command = read_gate_command(page)
    assert command == ["check", str(sample), "--gate", "evidence.lost<=0.02"]
    assert "in each order of arrival, at most 2 of 100 questions lose" in visible_text(page)
    assert cli(*command).code == 1
    run = tmp_path / "run"
    routeprism.audit("sample", "raw", schedules=["replay"], resamples=100, workers=1, run=run)
    assert cli(*read_gate_command(read_page(run))).code == 0


@pytest.mark.slow
def test_arms_stand_aside_and_the_headline_speaks_of_memories(tmp_path: Path) -> None:
    run = tmp_path / "run"
    routeprism.audit("sample", "focal", mechanism=True, comparators=True, run=run, resamples=100)
    text = read_text(run)
    assert text.index("This memory shows different evidence under") < text.index("Summary")
    assert "Arms and comparators (4)" in text


def test_charts_of_names_that_are_cut_stay_apart(
    own_data: OwnData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are cut at sixty characters for files; two of that length differ in their ends."""
    import vl_convert

    options = {"options": ["one", "two"], "gold": "a"}
    data = own_data(RECORDS, [question("a", support=["a2"], **options)])
    policies = [NamedPolicy(make_policy("recent:k=1"), f"{'x' * 70}{end}") for end in "ab"]
    run = tmp_path / "run"
    routeprism.restore(str(data), *policies, models=["reader"], draws=1, resamples=100, run=run)
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda spec: "<svg/>")  # the slow part
    names = [path.name for path in write_charts(run, tmp_path / "charts", ("svg",))]
    assert len(names) == len(set(names)) > 4
    assert sum(name.startswith("restoration-x") for name in names) == 2


def test_charts_of_names_that_differ_in_a_mark_stay_apart(
    own_data: OwnData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's name has `-` for `:`, so `m:a` and `m-a` look alike; neither chart is lost."""
    import vl_convert

    data = own_data(RECORDS, [question("a", support=["a2"]), question("b", support=["b0"])])
    policies = [
        NamedPolicy(make_policy(f"recent:k={k}"), f"m{mark}a") for k, mark in ((1, ":"), (2, "-"))
    ]
    run = tmp_path / "run"
    routeprism.explore_orders(str(data), *policies, resamples=100, run=run)
    write_report(run)
    on_page = read_charts((run / "report.html").read_text("utf-8"))
    survival = [values for name, values in on_page.items() if name.startswith("survival-m-a")]
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda spec: "<svg/>")  # the slow part
    files = [path.name for path in write_charts(run, tmp_path / "charts", ("svg",))]
    assert len(files) == len(set(files))
    # Each memory has a curve for each arrival model; k=1 and k=2 of three records differ.
    assert len(survival) == sum(name.startswith("survival-m-a") for name in files)
    assert len({json.dumps(values) for values in survival}) == len(survival) > 1


@pytest.mark.slow
def test_every_share_has_a_bar(tmp_path: Path) -> None:
    """Counts of arrival models are means over orders, so they may have a decimal."""
    run = tmp_path / "run"
    routeprism.audit("sample", "focal", arrivals=["late-batch"], resamples=100, run=run)
    cells = re.findall(
        r'<td class="number">(<a [^>]*>[\d.]+ of \d+(?: on average)?</a>.*?)</td>', read_page(run)
    )
    shares = [
        re.search(r">([\d.]+) of (\d+)(?: on average)?</a><.* style=\"--share:([\d.]+)\"", cell)
        for cell in cells
    ]
    assert all(shares) and any("." in share[1] for share in shares if share)
    for share in filter(None, shares):
        assert float(share[3]) == pytest.approx(float(share[1]) / float(share[2]), abs=1e-4)


@pytest.mark.slow
def test_a_page_without_room_lists_what_it_leaves_out(sample: Path, tmp_path: Path) -> None:
    small = write_report(sample, tmp_path / "small.html", megabytes=0).read_text("utf-8")
    assert "The texts of 30 of 30 pools are not in this page" in small
    assert 'id="rp-chunk-0"' not in small
    assert "Who sold Ottilie the telescope?" in small


def test_only_its_own_scripts_may_run(own_data: OwnData, tmp_path: Path) -> None:
    questions = [question("a", support=["a2"]), question("b", support=["b0"])]
    page = read_page(audited(own_data(RECORDS, questions), tmp_path / "run"))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    allowed = html.unescape(policy)
    assert "default-src 'none'" in allowed
    assert "unsafe-eval" not in allowed
    scripts = re.findall(r'<script(?: type="text/plain" id="rp-vega")?>(.*?)</script>', page, re.S)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    expected = {f"sha256-{base64.b64encode(digest).decode()}" for digest in digests}
    assert set(re.findall("sha256-[^']+", allowed)) == expected
    assert len(expected) == 2
    markup = page[: page.index(scripts[0])]
    assert not re.search(r"\son\w+=", markup)
    assert not re.search(r'(src|href)="(?!#)', markup)


@pytest.mark.slow
def test_the_same_run_gives_the_same_page(sample: Path, tmp_path: Path) -> None:
    first, second = (write_report(sample, tmp_path / name).read_bytes() for name in ("1", "2"))
    assert first == second


@pytest.mark.slow
def test_the_templates_are_those_that_altair_makes() -> None:
    """After a change: python tools/chart_templates.py."""
    from importlib import resources

    make_templates = runpy.run_path(
        str(Path(__file__).parents[2] / "tools" / "chart_templates.py")
    )["written"]

    asset = resources.files("routeprism.report").joinpath("assets/charts.json")
    assert json.loads(asset.read_text("utf-8")) == json.loads(make_templates())


# --- tables and charts as files --------------------------------------------------------------


@pytest.fixture
def audit_named(own_data: OwnData, tmp_path: Path) -> Callable[[str], Path]:
    """Audit a memory under a name."""

    def audit(name: str) -> Path:
        policy = NamedPolicy(make_policy("recent:k=1"), name)
        data = own_data(RECORDS, [question("a", support=["a2"]), question("b", support=["b0"])])
        routeprism.audit(str(data), policy, interface="all", resamples=100, run=tmp_path / "run")
        return tmp_path / "run"

    return audit


def test_markdown_and_latex_escape_names(
    audit_named: Callable[[str], Path], tmp_path: Path
) -> None:
    name = r"a|b <script> \ $1 {_}"
    tables = {
        path.name: path.read_text("utf-8")
        for path in write_tables(audit_named(name), tmp_path / "tables")
    }
    # The last order is reversal: nothing that is shown is the same.
    assert tables["layers.md"].splitlines()[-1] == (
        r"| a\|b \<script\> \\ \$1 \{\_\} | replay | 2 of 2 | 2 of 2 | 2 of 2 | 2 of 2 "
        r"| 0.000 \[0.000, 0.000\] |"
    )
    assert (
        r"a|b <script> \textbackslash{} \$1 \{\_\} & replay & 2 of 2 & 2 of 2 & 2 of 2 & 2 of 2 "
        r"& 0.000 {[}0.000, 0.000{]} \\"
    ) in tables["layers.tex"]
    assert r"& evidence moves & 1 of 2 &" in tables["summary.tex"]
    assert r"\caption{Share of the records" in tables["evidence.tex"]
    assert r"and J\textasciicircum{}T, the overlap" in tables["evidence.tex"]
    assert tables["layers.csv"].splitlines()[0] == "policy,schedule,kept,shown,text,state,J"


def test_markup_is_only_what_was_made_as_markup(audit_named: Callable[[str], Path]) -> None:
    name = '</script><!--zq7"><zq7 &'
    page = read_page(audit_named(name))
    assert "<zq7" not in page
    assert "<!--zq7" not in page
    assert "&lt;/script&gt;&lt;!--zq7" in page
    assert re.search(r'="[^"]*&lt;!--zq7&quot;&gt;&lt;zq7 &amp;', page)  # in an attribute
    (block,) = re.findall(r'id="rp-questions">(.*?)</script>', page, re.S)
    assert "<" not in block
    assert json.loads(block)["policies"] == [name]


@pytest.mark.slow
def test_tables_and_charts_are_written(own_data: OwnData, tmp_path: Path) -> None:
    run = audited(own_data(RECORDS[:3], [question("a")]), tmp_path / "run")
    tables = write_tables(run, tmp_path / "tables")
    assert [path.name for path in tables] == [
        f"{table}.{suffix}"
        for table in ("summary", "causes", "layers", "estimates")
        for suffix in ("md", "tex", "csv")
    ]
    assert "| recent:k=1 | replay | 1 of 1 | 1 of 1 |" in tables[6].read_text("utf-8")
    charts = write_charts(run, tmp_path / "charts")
    assert [path.name for path in charts] == ["profile-J.svg", "profile-J.png"]
    assert charts[0].read_text("utf-8").startswith("<svg")
    assert charts[1].read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_every_number_of_a_table_names_its_row(restored_sample: Path, tmp_path: Path) -> None:
    """The row that a cell links to is the one whose number it shows, and can be traced."""
    from routeprism.review.tracing import trace_rows

    page = write_report(restored_sample, tmp_path / "report.html").read_text("utf-8")
    rows = read_rows(restored_sample)
    linked = re.findall(r'<a href="#row=(\d+)" title="Row \1 of all estimates">([^<]+)</a>', page)
    assert len(linked) > 20
    for number, text in linked:
        row = rows[int(number) - 1]
        if row.quantity.startswith("context_length"):  # in characters, four for each token
            assert text == f"{4 * row.estimate:,.0f}"
            continue
        plain = (f"{row.estimate:.3f}", f"{row.estimate:+.3f}", f"{row.estimate:.0f}")
        assert text.split(" ")[0] in plain
    for trail in trace_rows(restored_sample, sorted({int(number) for number, _ in linked})):
        assert trail.agrees, trail.row.identity
    # What is no name and no link is no number, or no estimate: the number of pairs, and the cases
    # with each cause.
    plain = re.findall(r'<td class="number">([^<]+)</td>', page)
    pairs = {str(row.queries) for row in rows if row.quantity == "restored-absent"}
    with StoredRun(restored_sample) as stored:
        losses = [loss for finding in stored.findings("causes", "losses") for loss in finding.value]
    cases = Counter((loss["policy"], loss["cause"]) for loss in losses)
    counts = {str(number) for number in cases.values()}
    assert {text for text in plain if any(map(str.isdigit, text))} <= pairs | counts


def test_a_comparison_lists_newly_lost_support(own_data: OwnData, tmp_path: Path) -> None:
    """Of three records, keeping one instead of two loses the middle one on both routes."""
    from routeprism.review.comparison import compare_runs

    questions = [question("a", support=["a1"]), question("b", support=["b2"])]
    directory = own_data(RECORDS, questions)
    runs = [
        audited(directory, tmp_path / name, policy)
        for name, policy in (("before", "recent:k=2"), ("after", "recent:k=1"))
    ]
    comparison = compare_runs(*runs, [("recent:k=2", "recent:k=1")])
    page = write_comparison(comparison, tmp_path / "compare.html").read_text("utf-8")
    assert "this change makes the memory worse: " in page
    assert "no longer shown some evidence" in page
    assert "recent:k=2 → recent:k=1" in page
    assert ">qa<" in page
    assert ">a1<" in page


def test_the_command_says_what_it_wrote(
    cli: Any, own_data: OwnData, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = own_data(RECORDS, [question("a"), question("b")])
    assert cli("audit", directory, "-p", "recent:k=1", "--run", "out", "--quiet").code == 0
    ended = cli("report", "out", "--tables", "tables", "--json")
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert document["report"] == "out/report.html"
    assert "tables/layers.md" in document["tables"]
    opened: list[str] = []
    for has_browser in (True, False):
        monkeypatch.setattr(
            webbrowser,
            "open",
            lambda url, has_browser=has_browser: opened.append(url) or has_browser,
        )
        outcome = cli("report", "out", "--open", "--quiet")
        assert (outcome.code, outcome.out) == (0, "")
        assert outcome.err == (
            "" if has_browser else "routeprism: no browser could be started; open out/report.html\n"
        )
    assert opened == [Path("out/report.html").resolve().as_uri()] * 2
    refused = cli("report", "nowhere")
    assert refused.code == 2
    assert "nowhere contains no run" in refused.err


@pytest.mark.slow
def test_the_picture_of_evidence_by_policy_has_every_interface(tmp_path: Path) -> None:
    """`lexical` brings its own interface, the others are shown through the budget."""
    run = tmp_path / "run"
    routeprism.audit("sample", "recent:k=3", "lexical", run=run, resamples=200)
    charts = read_charts(read_page(run))
    labels = [value["label"] for value in charts["coverage-exposed-replay"]]
    assert labels == ["recent:k=3"] * 2 + ["lexical"] * 2
