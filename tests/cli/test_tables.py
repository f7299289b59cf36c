"""The tables of the terminal: layers with answers, models side by side, mechanism, restoration."""

from __future__ import annotations

import json

TWO = ("--model", "reader", "--model", "reader:temperature=0.5", "--draws", "2")


def table(out: str, heading: str) -> list[list[str]]:
    """Give the cells below a heading, as far as its lines have as many words as its head."""
    lines = out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(heading)) + 1
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[start:]]
    end = next((at for at, row in enumerate(rows) if at and len(row) < len(rows[0])), None)
    return rows[:end]


def test_one_model_stands_beside_the_layers(cli) -> None:
    out = cli("audit", "sample", "-p", "raw", "-m", "reader", "--draws", "2", "-q").out
    head, line = (row.split() for row in out.splitlines()[1:3])
    assert head == ["policy", "schedule", "retained", "V", "C", "I", "J", "D_res", "Δ_rep"]
    assert line[:7] == ["raw", "replay", "0", "0", "0", "165", "1.000"]
    assert "D_res: disagreement beyond the model's own" in out
    assert "Answers, model by model" not in out


def test_long_histories_show_what_is_left_of_the_evidence(cli, tmp_path) -> None:
    asked = {
        "question_type": "multi-session",
        "question": "How many boats?",
        "answer": "two",
        "haystack_session_ids": ["a", "b", "c"],
        "haystack_sessions": [[{"role": "user", "content": f"{n} boats"}] for n in "123"],
        "answer_session_ids": ["a", "b"],
    }
    file = tmp_path / "long.json"
    file.write_text(json.dumps([{**asked, "question_id": f"q{at}"} for at in range(3)]))
    arguments = ("-p", "recent:k=1", "--comparators", "-q", "--resamples", "100")
    out = cli("audit", f"longmemeval:path={file}", *arguments).out
    head, line, *_ = table(out, "Evidence kept and shown")
    assert head == ["policy", "schedule", "kept F", "R", "R−F", "shown F", "R", "R−F"]
    # Forward keeps the last session, which is none of the two; reversed, the first.
    assert line == ["recent:k=1", "replay", *("0.000", "0.500", "0.500") * 2]
    assert "Evidence kept" not in cli("audit", "sample", *arguments).out


def test_ties_are_shown_where_they_were_asked_for(cli) -> None:
    arguments = ("audit", "sample", "-p", "focal", "-q", "--resamples", "100")
    head, *lines = table(cli(*arguments, "--ties").out, "Ties that processing order decided")
    assert head == ["policy", "schedule", "representative", "assignment"]
    estimates = {
        (row["schedule"], row["quantity"]): f"{row['estimate']:g}"
        for row in json.loads(cli(*arguments, "--ties", "--json").out)["estimates"]
        if row["stratum"] == "all"
    }
    assert lines == [
        ["focal", schedule]
        + [estimates[schedule, f"count.{name}_ties"] for name in ("representative", "assignment")]
        for schedule in ("forward", "replay")
    ]
    assert "Ties" not in cli(*arguments).out
    refused = cli("audit", "sample", "-p", "raw", "-p", "recent:k=3", "--ties", "-q")
    assert refused.code == 2
    assert "raw, recent:k=3: no policy here counts ties; focal does" in refused.err


def test_one_draw_shows_plain_disagreement(cli) -> None:
    out = cli("audit", "sample", "-p", "raw", "-m", "reader", "-q", "--resamples", "100").out
    assert out.splitlines()[1].split()[-2:] == ["H", "Δ_rep"]
    assert "H: disagreement of the answers; Δ_rep: change of accuracy" in " ".join(out.split())


def test_free_text_has_no_disagreement_to_show(cli, own_data) -> None:
    records = [{"user": "ann", "id": f"r{n}", "text": f"[USER] I met Ada {n}."} for n in (1, 2, 3)]
    question = {"user": "ann", "id": "q1", "text": "Who was met?", "gold": "Ada"}
    directory = own_data(records, [question])
    out = cli("audit", str(directory), "-p", "recent:k=1", "-m", "reader", "-q").out
    assert out.splitlines()[1].split()[-2:] == ["J", "Δ_rep"]


def test_two_models_give_the_replication_table(cli) -> None:
    arguments = ("-p", "raw", "-p", "recent:k=3", *TWO, "-q", "--resamples", "100")
    out = cli("audit", "sample", *arguments).out
    head, *lines = table(out, "Answers, model by model")
    # The schedule is the same in all lines.
    assert head == ["policy", "model", "H", "D_res [95%]", "Δ_rep [95%]"]
    assert [line[:2] for line in lines] == [
        ["raw", "reader"],
        ["raw", "reader:temperature=0.5"],
        ["recent:k=3", "reader"],
        ["recent:k=3", "reader:temperature=0.5"],
    ]
    assert all("[" in line[3] for line in lines)


def test_the_replication_table_fits_a_terminal(cli, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    several = ("-p", "raw", "-p", "recent:k=3", "-s", "replay", "-s", "half-swap", *TWO)
    for arguments in (("-p", "raw", *TWO), several):
        out = cli("audit", "sample", *arguments, "-q", "--resamples", "100").out
        lines = out.partition("Answers, model by model\n")[2].splitlines()[:3]
        assert max(map(len, lines)) <= 80
        assert lines[0].rstrip().endswith("Δ_rep [95%]")
        limits = "".join(lines[1:])
        assert limits.count("[") == limits.count("]") == 2


def test_restoration_has_a_line_for_each_model(cli) -> None:
    arguments = ("-p", "focal", *TWO, "-q", "--resamples", "100")
    out = cli("restore", "sample", *arguments).out
    head, *lines = table(out, "Accuracy in the four conditions")
    assert head == [
        *("policy", "model"),  # the schedule is the same in both lines
        *("present", "absent", "restored", "replacement"),
        *("R−A [95%]", "R−P [95%]"),
    ]
    assert [line[1] for line in lines] == ["reader", "reader:temperature=0.5"]
    assert float(lines[0][4]) > float(lines[0][3])  # restored above absent


def test_the_restoration_table_fits_a_terminal(cli, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ("-p", "focal", "-m", "reader", "--draws", "1", "-q", "--resamples", "100")
    out = cli("restore", "sample", *arguments).out
    lines = out.partition("Accuracy in the four conditions\n")[2].splitlines()[:4]
    assert max(map(len, lines)) <= 80
    assert lines[0].endswith("R−P [95%]")
    assert "[" in lines[2] and "]" in lines[3]  # intervals go on below


def test_the_mechanism_table_fits_a_terminal(cli, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = cli("audit", "sample", "-p", "focal", "--mechanism", "-q", "--resamples", "100").out
    head, *lines = table(out, "Each operation against the canonical arm")
    assert head == ["in arrival order", "schedule", "δ J", "δ C"]
    assert [line[0] for line in lines] == [
        *("clustering+survivor", "clustering", "survivor"),
        "clustering × survivor",
    ]
    assert "focal, replay, against its canonical arm" in out
