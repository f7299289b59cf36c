"""A run in the formats of other tools: its numbers as Parquet, its answers as an Inspect log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from routeprism.errors import MissingExtraError, RunError
from routeprism.experiments import list_answer_sources
from routeprism.review.answers import TracedAnswer, judge_answers
from routeprism.runs import COLUMNS, StoredQuestion, StoredRun, read_configuration

__all__ = ["write_inspect_log", "write_parquet"]

_DOUBLES = ("estimate", "lower", "upper")
_WHOLE = ("queries", "units", "draws", "seed")


def write_parquet(run: Path, file: Path) -> int:
    """Write the numbers of a run as Parquet, with the columns of `estimates.csv`; count them."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtraError("Writing Parquet", "parquet") from None
    with StoredRun(run) as stored:
        rows = [astuple(row) for row in stored.estimates()]
    kinds = {**dict.fromkeys(_DOUBLES, "DOUBLE"), **dict.fromkeys(_WHOLE, "BIGINT")}
    columns = ", ".join(f'"{name}" {kinds.get(name, "VARCHAR")}' for name in COLUMNS)
    target = str(file).replace("'", "''")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE estimates ({columns})")
            marks = ", ".join("?" * len(COLUMNS))
            connection.executemany(f"INSERT INTO estimates VALUES ({marks})", rows)  # noqa: S608
            connection.execute(f"COPY estimates TO '{target}' (FORMAT parquet)")
    except (OSError, duckdb.Error) as error:
        raise RunError(f"{file} cannot be written: {error}") from error
    return len(rows)


def write_inspect_log(run: Path, file: Path) -> int:
    """Write the answers of a run as a log for Inspect View, a sample for each; count them."""
    try:
        from inspect_ai import log as logs
        from inspect_ai.log import EvalStats
    except ModuleNotFoundError:
        raise MissingExtraError("Writing an Inspect log", "inspect") from None
    with StoredRun(run) as stored:
        configuration = read_configuration(stored, run)
        questions = stored.questions()
        samples = [
            _make_sample(number, experiment, answer, questions[answer.answer.question])
            for number, (experiment, answer) in enumerate(_answers(stored, configuration), 1)
        ]
        created = str(stored.manifest().get("created", "")) or "1970-01-01T00:00:00+00:00"
    if not samples:
        raise RunError(f"{run} contains no answers: no model was asked")
    models = configuration["models"]
    log = logs.EvalLog(
        status="success",
        eval=logs.EvalSpec(
            created=created,
            task="routeprism",
            dataset=logs.EvalDataset(name=configuration["benchmark"], samples=len(samples)),
            model=", ".join(models),
            config=logs.EvalConfig(),
        ),
        stats=EvalStats(started_at=created, completed_at=created),
        results=logs.EvalResults(total_samples=len(samples), completed_samples=len(samples)),
        samples=samples,
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        logs.write_eval_log(log, str(file))
    except (OSError, ValueError) as error:
        raise RunError(f"{file} cannot be written: {error}") from error
    return len(samples)


def _answers(
    stored: StoredRun, configuration: Mapping[str, Any]
) -> Iterator[tuple[str, TracedAnswer]]:
    questions = stored.questions()
    for model in configuration.get("models", ()):
        for batch in configuration["batches"]:
            for experiment in list_answer_sources():
                for policy in configuration["policies"]:
                    answers = stored.answers(experiment, model=model, batch=batch, policy=policy)
                    judged = judge_answers(stored, configuration["judge"], answers, questions)
                    yield from ((experiment, answer) for answer in judged)


def _make_sample(
    number: int, experiment: str, traced: TracedAnswer, question: StoredQuestion
) -> Any:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import CORRECT, INCORRECT, Score

    answer = traced.answer
    names = ("policy", "schedule", "side", "condition", "filler", "model", "batch")
    scores = None
    if question.gold is not None:
        value = CORRECT if traced.correct else INCORRECT
        scores = {"correct": Score(value=value, answer=answer.answer)}
    return EvalSample(
        id=number,
        epoch=1,
        input=question.text,
        choices=list(question.options) or None,
        target=question.gold or "",
        output=ModelOutput.from_content(answer.model, answer.raw),
        scores=scores,
        metadata={
            "experiment": experiment,
            "question": question.id,
            "user": question.user,
            "draw": answer.turn,
            "prompt_sha256": answer.prompt_sha256,
            **{name: getattr(answer, name) for name in names},
        },
    )
