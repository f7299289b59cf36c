"""The registry of experiments: names, rows, places of recorded answers, and stages."""

from __future__ import annotations

import pytest

from routeprism import load_benchmark
from routeprism.errors import SpecError
from routeprism.experiments import (
    AnswerNames,
    AnswerSelection,
    Asking,
    Experiment,
    find_experiment,
    make_stages,
    name_answer,
    registered_experiments,
    source_of_answers,
)
from routeprism.models.reader import Reader
from routeprism.runs import EstimateRow


def _row(experiment: str, **columns: str) -> EstimateRow:
    names = {"quantity": "H", **columns}
    return EstimateRow(experiment=experiment, benchmark="sample", estimate=0.5, **names)


def test_every_experiment_has_a_title_a_summary_and_a_name_of_its_own() -> None:
    experiments = registered_experiments()
    names = [experiment.name for experiment in experiments]
    assert len(set(names)) == len(names)
    assert {"answers", "provenance", "display", "reuse", "restoration", "agreement"} <= set(names)
    assert all(experiment.title and experiment.summary.endswith(".") for experiment in experiments)
    assert [experiment.rank for experiment in experiments] == sorted(
        experiment.rank for experiment in experiments
    )


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (_row("routes", model="reader", quantity="H"), "answers"),
        (_row("routes", model="reader", arm="gated", quantity="H"), "provenance"),
        (_row("routes", model="m", arm="gated-neutral"), "provenance"),
        (_row("routes", model="m", arm="support-changed"), "answers"),
        (_row("replication", model="m", quantity="Gamma.H"), "answers"),
        (_row("support", policy="focal", arm="support-change"), "agreement"),
        (_row("restoration", quantity="H"), "restoration"),
    ],
)
def test_a_row_belongs_to_one_experiment(row: EstimateRow, name: str) -> None:
    assert [experiment.name for experiment in registered_experiments() if experiment.owns(row)] == [
        name
    ]
    result = find_experiment(row)
    assert result is not None and result.name == name


def test_derived_experiments_read_the_answers_of_the_routes() -> None:
    assert source_of_answers("readouts") == source_of_answers("replication") == "routes"
    assert source_of_answers("display") == "display"
    assert source_of_answers("not-installed") == "not-installed"


@pytest.mark.parametrize(
    ("experiment", "condition", "side", "columns"),
    [
        ("routes", "", "replay", {"schedule": "replay", "condition": "", "pair": "replay"}),
        ("reuse", "", "forward", {"schedule": "forward", "condition": "", "pair": "replay"}),
        ("restoration", "", "absent", {"condition": "absent", "design": "single"}),
        ("restoration", "bundle", "restored:1", {"condition": "restored:1", "design": "bundle"}),
        ("display", "source", "route-native", {"condition": "source:route-native"}),
        ("my-own", "loud", "forward", {"condition": "my-own:loud:forward"}),
    ],
)
def test_an_answer_is_named_by_the_columns_of_its_experiment(
    experiment: str, condition: str, side: str, columns: dict[str, str]
) -> None:
    names = AnswerNames("q1", "focal", "replay", "A", condition, side)
    common = {"question": "q1", "policy": "focal", "schedule": "replay"}
    rest = {"filler": "A", "prompt_control": "exact"}
    assert dict(name_answer(experiment, names, "exact")) == common | columns | rest


def _selected(row: EstimateRow, conditions: tuple[str, ...]) -> AnswerSelection:
    experiment = find_experiment(row)
    assert experiment is not None
    configuration = {"provenance": "preserved", "batches": ["one", "two"]}
    return experiment.select_answers(row, configuration, conditions)


def test_a_row_leads_to_the_answers_that_it_reads() -> None:
    accuracy = _row("routes", model="m", schedule="replay", quantity="accuracy.route.single")
    assert _selected(accuracy, ("",)).sides == ("replay",)
    unread = _row("routes", model="m", schedule="replay", quantity="count.no_answer.forward")
    assert _selected(unread, ("",)).sides == ("forward",)
    outdated = _row("updates", model="m", schedule="replay", quantity="outdated_answer.route")
    assert _selected(outdated, ("",)).sides == ("replay",)
    repeated = _row("replication", model="m", batch="two", quantity="Gamma.H")
    assert _selected(repeated, ("",)).batches == ("two", "one")
    arm = _row("routes", model="m", arm="gated-preserved", quantity="Gamma.H")
    assert _selected(arm, ("", "gated")).conditions == ("gated", "")
    assert _selected(arm, ("preserved", "gated")).conditions == ("gated", "preserved")
    layout = _row("display", arm="display:serialisation:route", quantity="H")
    assert _selected(layout, ()) == AnswerSelection(
        "display", ("route-native", "route-source"), ("source",)
    )
    both = _row("display", arm="construction:reversed", quantity="H")
    assert _selected(both, ()).sides == ("forward-reversed", "route-reversed")
    mean = _row("display", arm="construction", quantity="H")
    assert _selected(mean, ()) == AnswerSelection("display", (), ("reversed",))
    restored = _row("restoration", arm="bundle", quantity="loo_min.restored-absent")
    assert _selected(restored, ()) == AnswerSelection(
        "restoration", ("restored", "absent"), ("bundle",)
    )
    counted = _row("restoration", quantity="count.same_as_present.restored")
    assert _selected(counted, ()).sides == ("restored", "present")


def test_an_experiment_without_more_selects_the_answers_of_its_arm() -> None:
    own = Experiment(name="own", title="Own")
    row = _row("own", arm="loud", quantity="H")
    assert own.select_answers(row, {}, ("loud", "quiet")).conditions == ("loud",)
    assert own.select_answers(row, {}, ("quiet",)).conditions is None


def test_settings_decide_which_stages_a_command_performs() -> None:
    sample = load_benchmark("sample")
    assert make_stages("audit", {}, None, sample) == []
    asking = Asking((Reader(),))
    assert len(make_stages("audit", {}, asking, sample)) == 1
    options = {"display": ("source",), "reuse": True, "margin": 0.1, "unknown": 1}
    assert len(make_stages("audit", options, asking, sample)) == 3
    (restore,) = make_stages("restore", {"bundle_tokens": 500}, asking, sample)
    assert restore.described()["bundle_tokens"] == 500


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("audit", {"display": ("sideways",)}, "There is no display 'sideways'"),
        ("audit", {"display": ("source",)}, "display needs a model to answer"),
        ("audit", {"reuse": True}, "reuse needs a model to answer"),
        ("audit", {"margin": 2.0}, "Expected a margin between 0 and 1 but got margin=2.0"),
        ("restore", {}, "restoration needs at least one model to answer"),
        ("restore", {"designs": ("singel",)}, "There is no design 'singel'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    command: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        make_stages(command, options, None, load_benchmark("sample"))
