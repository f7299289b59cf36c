"""Passes over cards by a model: one prompt for each card, through the ledger like every answer.

A pass is a batch, so several passes of one model are independent readings, and a pass that was
stopped goes on where it was. A reply that cannot be read stays unread under its pass's name: asking
again until something fits would choose among readings. A new pass asks anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from routeprism.answers import Cell, Plan, Progress, collect, plan
from routeprism.errors import ModelError, SpecError
from routeprism.models import Model
from routeprism.runs import Ledger, Run
from routeprism.support._cards import Card
from routeprism.support._readings import Readings, check_name
from routeprism.support._replies import ask_of, read_reply, unread
from routeprism.support._rubrics import Rubric

__all__ = ["check_reader", "plan_pass", "read_cards"]


def check_reader(model: Model) -> None:
    """Refuse a model that cannot follow a written rule, before anything is asked."""
    if model.embedded:
        raise SpecError(
            f"'{model.name}' scores options and quotes sentences; it cannot follow a rubric or "
            f"write JSON, so it cannot read cards. Models that answer in free text can: "
            f"openai:MODEL, inspect:PROVIDER/MODEL, hf:PATH, or recorded:FILE with such replies; "
            f"and so can people: export the cards as a sheet, and give the filled sheet as a pass"
        )


def cells_of(cards: Sequence[Card], rubric: Rubric) -> list[Cell]:
    """Give what has to be asked."""
    return [Cell(ask_of(card, rubric), card.question, rubric.name, card.id) for card in cards]


def plan_pass(
    cards: Sequence[Card],
    rubric: Rubric,
    model: Model,
    *,
    name: str,
    ledger: Ledger | None = None,
) -> Plan:
    """Say what a pass would take; ask nothing."""
    check_reader(model)
    return plan(cells_of(cards, rubric), ledger, model, batch=check_name(name))


def read_cards(
    cards: Sequence[Card],
    rubric: Rubric,
    model: Model,
    *,
    name: str,
    run: Run | None = None,
    progress: Callable[[Progress], None] | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
) -> Readings:
    """Let a model read every card once, as the pass `name`.

    Args:
        cards: what is read.
        rubric: by which rule.
        model: who reads.
        name: the pass, which is the batch of its requests.
        run: whose ledger is used; without one, replies live as long as this call.
        progress: is told now and then, and at the end.
        rate_limit: requests a minute at most.
        concurrency: requests at once, where it should differ from the model's own number.

    """
    check_reader(model)
    check_name(name)
    cells = cells_of(cards, rubric)
    collected = collect(
        run,
        model,
        cells,
        batch=name,
        progress=progress,
        rate_limit=rate_limit,
        concurrency=concurrency,
    )
    if collected.failures:
        last = list(collected.failures.values())[-1]
        raise ModelError(
            f"pass '{name}': {len(collected.failures)} of {len(cards)} requests failed, the last "
            f"one so: {last.error}. A pass is whole or none; the same command asks for the others",
            attempts=last.attempts,
        )
    found = {}
    for card, cell in zip(cards, cells, strict=True):
        answer = collected.of(cell)
        if answer is None:
            raise ModelError(f"pass '{name}': {card.id} has no reply; the same command asks again")
        if answer.outcome == "refused":
            found[card.id] = unread(card, rubric, "the model refused")
        else:
            found[card.id] = read_reply(answer.raw, card, rubric)
    settings = json.dumps(dict(model.settings), sort_keys=True, ensure_ascii=False)
    return Readings(
        name=name,
        kind=rubric.kind,
        rubric=rubric.name,
        rubric_digest=rubric.digest,
        source=model.name,
        source_digest=hashlib.sha256(settings.encode()).hexdigest(),
        cards=found,
    )
