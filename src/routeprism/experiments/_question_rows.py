"""The questions of a stored run, one row each, with what each order kept, showed and answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeprism.runs import StoredRun, read_configuration

Cells = dict[str, dict[str, Any]]
"""The columns of each question."""


def list_questions(directory: Path) -> list[dict[str, Any]]:
    """List the questions of a stored run with what each order kept, showed and answered."""
    with StoredRun(directory) as stored:
        questions = stored.questions()
        cells: Cells = {
            id: {"user": question.user, "question": id, "text": question.text}
            for id, question in questions.items()
        }
        _enter_records(stored, cells)
        _enter_losses(stored, cells)
        _enter_answers(stored, directory, cells)
        return list(cells.values())


def _enter_records(stored: StoredRun, cells: Cells) -> None:
    """Add the records that each route kept, and those that it showed."""
    for policy, interface, schedule in stored.routes():
        exposed = stored.sources(policy, interface, schedule)
        retained = {
            user: sorted(trace.retained)
            for user in stored.users()
            if (trace := stored.trace(policy, interface, schedule, user)) is not None
        }
        for id, row in cells.items():
            if id in exposed:
                row[f"{policy}, {schedule}: kept"] = retained.get(row["user"], [])
                row[f"{policy}, {schedule}: records"] = sorted(exposed[id])


def _enter_losses(stored: StoredRun, cells: Cells) -> None:
    """Add in which share of the orders of an arrival each question loses evidence."""
    for column, users in stored.per_question(experiment="retention").items():
        if column.quantity == "evidence_lost" and not (column.arm or column.mask):
            for values in users.values():
                for id, value in values.items():
                    cells[id][f"{column.policy}, {column.schedule}: evidence lost"] = value


def _enter_answers(stored: StoredRun, directory: Path, cells: Cells) -> None:
    """Add the answers of each model, and the share of right ones."""
    configuration = read_configuration(stored, directory)
    for model in configuration.get("models", ()):
        for policy in configuration["policies"]:
            for answer in stored.answers(
                "routes", model=model, batch=configuration["batches"][0], policy=policy
            ):
                place = f"{policy}, {model}, {answer.side}: answers"
                cells[answer.question].setdefault(place, []).append(answer.answer)
    for column, users in stored.per_question(experiment="routes").items():
        if column.quantity in ("accuracy.forward", "accuracy.route"):
            side = "forward" if column.quantity == "accuracy.forward" else column.schedule
            for values in users.values():
                for id, value in values.items():
                    cells[id][f"{column.policy}, {column.model}, {side}: accuracy"] = value
