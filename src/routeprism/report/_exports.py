"""The files of a run: its page, tables and charts; answers and numbers for other tools."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import product
from pathlib import Path
from typing import Any

from routeprism.errors import InputError, MissingExtraError, RunError, SpecError
from routeprism.experiments import AnswerNames, list_answer_sources, name_answer
from routeprism.files import write_output
from routeprism.report._exhibits import build_spec, list_charts, list_tables
from routeprism.report._html import as_csv, as_latex, as_markdown
from routeprism.report._page import gather, page
from routeprism.review.answers import TracedAnswer, judge_answers
from routeprism.runs import COLUMNS, REPORT, StoredQuestion, StoredRun, read_configuration
from routeprism.spreadsheets import write_csv

_MOST_MEGABYTES = 10_000
_LABELS = {"axisX": {"labelFlush": False}, "axisY": {"labelLimit": 0}}
"""Cutting labels to a width takes vl-convert most of its time; names are cut before."""


def write_report(directory: Path, target: Path | None = None, *, megabytes: float = 10) -> Path:
    """Write a run's report, into its directory unless another file is named.

    `megabytes` is how much room the texts of pools may take, compressed.
    """
    if not 0 <= megabytes <= _MOST_MEGABYTES:
        raise SpecError(f"Expected from 0 to {_MOST_MEGABYTES:,} megabytes but got {megabytes=}")
    path = target or directory / REPORT
    write_page(path, page(gather(directory, most=int(megabytes * 1_000_000))))
    return path


def write_final_report(directory: Path) -> Path:
    """Write the report of a run that has just come to its end, which is complete without it."""
    try:
        return write_report(directory)
    except RunError as error:
        raise RunError(
            f"{error}. The run itself is complete; routeprism report {directory} writes its report"
        ) from error


def write_page(path: Path, text: str) -> None:
    """Write a page; half of a surrogate pair, which no file can hold, becomes a question mark."""
    _write(path, text.encode("utf-8", "replace"))


def write_tables(directory: Path, target: Path) -> list[Path]:
    """Write every table of a run as Markdown, LaTeX and CSV."""
    files = []
    renderers = {".md": as_markdown, ".tex": as_latex, ".csv": as_csv}
    for table in list_tables(gather(directory).results):
        for suffix, render in renderers.items():
            files.append(target / f"{table.name}{suffix}")
            write_page(files[-1], render(table))
    return files


def write_charts(
    directory: Path,
    target: Path,
    formats: Sequence[str] = ("svg", "png"),
    *,
    names: Collection[str] | None = None,
) -> list[Path]:
    """Write every chart of a run as SVG and as PNG, or those of some names."""
    try:
        import vl_convert
    except ModuleNotFoundError:
        raise MissingExtraError("Writing charts as SVG or PNG", "charts") from None
    files = []
    for chart in list_charts(gather(directory).results):
        if names is not None and chart.name not in names:
            continue
        spec = {
            **build_spec(chart),
            "width": 560,
            "title": chart.title,
            "background": "white",
            "config": _LABELS,
        }
        svg = vl_convert.vegalite_to_svg(spec)  # the slow part, once for all formats
        for suffix in formats:
            files.append(target / f"{chart.name}.{suffix}")
            content = svg.encode() if suffix == "svg" else vl_convert.svg_to_png(svg, scale=2)
            _write(files[-1], content)
    return files


def _write(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{path} cannot be written: {reason}") from error


def list_answers(
    stored: StoredRun, configuration: Mapping[str, Any]
) -> Iterator[tuple[str, TracedAnswer, StoredQuestion]]:
    """List every answer that a run's numbers depend on, with its experiment and its question."""
    questions = stored.questions()
    for model, batch, experiment, policy in product(
        configuration.get("models", ()),
        configuration.get("batches", ()),
        list_answer_sources(),
        configuration.get("policies", ()),
    ):
        answers = stored.answers(experiment, model=model, batch=batch, policy=policy)
        for answer in judge_answers(stored, configuration["judge"], answers, questions):
            yield experiment, answer, questions[answer.answer.question]


ANSWER_COLUMNS = (
    *("model", "batch", "question", "policy", "schedule", "pair", "condition", "design"),
    *("filler", "prompt_control", "draw", "answer", "correct", "submission"),
)
"""What is written of each answer."""


def write_answers(run: Path, file: Path) -> int:
    """Write every answer that a run's numbers depend on; count them."""
    with StoredRun(run) as stored:
        rows = list(_rows(stored, run))
    if not rows:
        raise RunError(f"{run} contains no answers: no model was asked")
    try:
        write_output(file, write_csv(ANSWER_COLUMNS, rows).encode())
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", file=file) from error
    return len(rows)


def _rows(stored: StoredRun, run: Path) -> Iterator[list[str]]:
    configuration = read_configuration(stored, run)
    identities: set[tuple[str, ...]] = set()
    for experiment, answer, question in list_answers(stored, configuration):
        has_gold = question.gold is not None
        names = _names(experiment, answer, configuration["prompt_control"], has_gold)
        row = [names.get(column, "") for column in ANSWER_COLUMNS]
        place = tuple(row[: ANSWER_COLUMNS.index("answer")])
        if place not in identities:  # experiments may share answers
            identities.add(place)
            yield row


def _names(experiment: str, traced: TracedAnswer, control: str, has_gold: bool) -> dict[str, str]:
    answer = traced.answer
    names = (answer.question, answer.policy, answer.schedule, answer.filler)
    place = name_answer(experiment, AnswerNames(*names, answer.condition, answer.side), control)
    order = answer.order
    if order is None and not answer.model.startswith("recorded:"):
        order = answer.submission  # that of recorded answers is only the order of looking them up
    return {
        **dict(place),
        "model": answer.model,
        "batch": answer.batch,
        "draw": str(answer.turn),
        "answer": answer.raw,
        # A verdict that could not be read counts as wrong, and so it is wrong in the file.
        "correct": str(bool(traced.correct)).lower() if has_gold else "",
        "submission": "" if order is None else str(order),
    }


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
        samples = [
            _make_sample(number, *answer)
            for number, answer in enumerate(list_answers(stored, configuration), 1)
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
