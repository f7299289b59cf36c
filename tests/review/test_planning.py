"""Planning from a pilot run, in Python and on the command line."""

import json
from pathlib import Path

import pytest

import routeprism
from routeprism.errors import RunError, SpecError

pytestmark = pytest.mark.usefixtures("only_reversal")


@pytest.fixture
def pilot(restored_sample: Path) -> Path:
    return restored_sample


@pytest.mark.slow
def test_a_narrower_interval_takes_more_users(pilot: Path) -> None:
    wide = routeprism.plan_study(pilot, "restored-absent", half_width=0.1)
    narrow = routeprism.plan_study(pilot, "restored-absent", half_width=0.05)
    assert narrow.ways[0].units >= 3 * wide.ways[0].units  # four times, less Student's part
    assert wide.pilot[2] == wide.ways[0].draws == 2
    assert "a half-width of 0.1 takes" in wide.sentence and "2 draws" in wide.sentence


def test_more_questions_and_draws_take_no_more_users(pilot: Path) -> None:
    plan = routeprism.plan_study(
        pilot, "restored-absent", effect=0.3, power=0.9, questions=[8], draws=[6]
    )
    assert [(way.questions == 8, way.draws) for way in plan.ways] == [
        (False, 2),
        (False, 6),
        (True, 2),
        (True, 6),
    ]
    units = [way.units for way in plan.ways]
    assert units[0] >= units[1] and units[2] >= units[3] and units[0] >= units[2]


@pytest.mark.slow
@pytest.mark.parametrize("fillers", [("A",), ("A", "B")])
def test_answers_of_an_audit_are_planned_from_all_its_questions(
    tmp_path: Path, fillers: tuple[str, ...]
) -> None:
    """Its rows are there twice: of all questions, and of those whose options all differ."""
    routeprism.audit(
        *("sample", "focal"),
        models=["reader"],
        draws=2,
        fillers=fillers,
        run=tmp_path / "run",
        resamples=100,
    )
    for quantity in ("D_res", "Delta_rep"):
        plan = routeprism.plan_study(tmp_path / "run", quantity, half_width=0.1)
        assert plan.pilot == (30, 165, 2)


@pytest.mark.slow
def test_of_several_experiments_the_routes_are_meant_unless_another_is_named(
    tmp_path: Path,
) -> None:
    routeprism.audit(
        *("sample", "focal"),
        models=["reader"],
        draws=2,
        reuse=True,
        display=["reversed"],
        run=tmp_path / "run",
        resamples=100,
    )
    plain = routeprism.plan_study(tmp_path / "run", "D_res", half_width=0.1)
    assert plain.pilot[1] == 165
    reused = routeprism.plan_study(tmp_path / "run", "D_res", half_width=0.1, experiment="reuse")
    assert reused.pilot[1] == 135  # one question of each of 30 users is the first
    with pytest.raises(SpecError, match="experiment or arm"):
        routeprism.plan_study(tmp_path / "run", "D_res", half_width=0.1, experiment="display")
    plan = routeprism.plan_study(
        tmp_path / "run", "D_res", half_width=0.1, experiment="display", arm="display"
    )
    assert plan.ways[0].units < plain.ways[0].units


def test_a_pilot_without_spread_says_so(tmp_path: Path) -> None:
    routeprism.audit("sample", "raw", run=tmp_path / "run", resamples=100)
    plan = routeprism.plan_study(tmp_path / "run", "J", half_width=0.1)
    assert plan.notes == (
        "all values of this pilot are the same, so it shows no spread to plan with",
    )


def test_what_is_not_one_row_is_said(pilot: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="restored-absent"):
        routeprism.plan_study(pilot, "restored-absnt", half_width=0.1)
    with pytest.raises(SpecError, match=r"0 rows of .* have J, policy=raw"):
        routeprism.plan_study(pilot, "J", half_width=0.1, policy="raw")
    with pytest.raises(SpecError, match="either a half-width or an effect"):
        routeprism.plan_study(pilot, "J")
    with pytest.raises(RunError, match="contains no run"):
        routeprism.plan_study(tmp_path, "J", half_width=0.1)


@pytest.mark.slow
def test_where_every_question_is_a_unit_questions_are_counted(
    pilot: Path, tmp_path: Path, cli
) -> None:  # type: ignore[no-untyped-def]
    history = {
        "haystack_session_ids": ["answer_1", "b", "c"],
        "haystack_sessions": [
            [{"role": "user", "content": text}] for text in ("one", "two", "six")
        ],
        "answer_session_ids": ["answer_1"],
        "question_type": "multi-session",
        "question": "How many?",
        "answer": "1",
    }
    turned = {**history, "answer_session_ids": ["c"]}
    requests = [
        {**(history if at % 2 else turned), "question_id": f"q{at}", "question": "How many?"}
        for at in range(6)
    ]
    file = tmp_path / "long.json"
    file.write_text(json.dumps(requests), encoding="utf-8")
    run = tmp_path / "run"
    routeprism.audit(f"longmemeval:path={file}", "recent:k=1", run=run, resamples=100)
    plan = routeprism.plan_study(str(run), "recall.retained.forward", half_width=0.1)
    # Half of the six are right: the variance is 6/5 · 1/4, and 1.980² · 0.3 / 0.1² = 117.7.
    assert plan.spread.unit == pytest.approx(0.3)
    assert plan.ways[0].units == 118
    assert plan.sentence.endswith(f"a half-width of 0.1 takes {plan.ways[0].units} questions")
    outcome = cli("plan", run, "--quantity", "recall.retained.forward", "--half-width", "0.1")
    assert "questions per" not in outcome.out and "Pilot: 6 questions; standard" in outcome.out
    with pytest.raises(SpecError, match="leave questions out"):
        routeprism.plan_study(run, "recall.retained.forward", half_width=0.1, questions=[3])


def test_the_command_says_it_in_a_sentence(pilot: Path, cli) -> None:  # type: ignore[no-untyped-def]
    outcome = cli("plan", str(pilot), "--quantity", "J", "--half-width", "0.05", "--questions", "3")
    assert "J of focal on replay: a half-width of 0.05 takes" in outcome.out
    plain = cli("plan", str(pilot), "--quantity", "J", "--half-width", "0.05", "--json")
    assert json.loads(plain.out)["unit"] == "user"
