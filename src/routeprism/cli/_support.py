"""What `support` does and prints: which records, or which contexts, carry the answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from routeprism.cli import _passes as passes_
from routeprism.errors import SpecError, nearest
from routeprism.support import (
    COMPILED,
    SUPPORT,
    Card,
    RouteName,
    Study,
    audited_labels,
    cards_for,
    compiled_cards,
    routes_of,
    stored_contexts,
)

__all__ = ["run_support"]


def run_support(
    benchmark: str,
    *,
    passes: Sequence[str] = (),
    export: Path | None = None,
    compiled: Path | None = None,
    policies: Sequence[str] = (),
    kinds: Sequence[str] = (),
    masks: Sequence[str] = (),
    primary: str | None = None,
    base_url: str | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    dry_run: bool = False,
    yes: bool = False,
    data: Path | None = None,
    run: Path | None = None,
    seed: int,
    resamples: int,
    interval: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Write cards to be labelled, or make passes over them and compare these.

    With `compiled`, a finished run, the contexts that it compiled are read instead of records;
    `policies` limits them to some of its policies.
    """
    if policies and compiled is None:
        raise SpecError("--policy chooses among the contexts of a run: say --compiled RUN, too")
    loaded = passes_.load(benchmark, data, kinds)
    rubric = SUPPORT if compiled is None else COMPILED
    cards: Sequence[Card]
    if compiled is None:
        cards = cards_for(loaded, rubric)
    else:
        questions = [question.id for case in loaded.cases for question in case.questions]
        routes = _routes(compiled, policies)
        cards = compiled_cards(loaded, stored_contexts(compiled, routes, questions), rubric)
    if export is not None:
        passes_.export_cards(cards, rubric, export, as_json=as_json)
        return
    study = passes_.make_study(
        loaded,
        benchmark,
        cards,
        rubric,
        passes_.parse_passes(passes, base_url),
        run=run,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
        quiet=quiet,
        seed=seed,
        resamples=resamples,
        interval=interval,
        primary=primary,
        masks=passes_.read_masks(masks, loaded),
        rate_limit=rate_limit,
        concurrency=concurrency,
    )
    if study is not None:
        more = {} if compiled is not None else _labels(study)
        passes_.show(study, more, as_json=as_json)


def _routes(run: Path, policies: Sequence[str]) -> list[RouteName]:
    found = routes_of(run)
    known = {route.policy for route in found}
    for policy in policies:
        if policy not in known:
            raise SpecError(f"{run} has no policy '{policy}'. {nearest(policy, known)}")
    return [route for route in found if not policies or route.policy in policies]


def _labels(study: Study) -> dict[str, Any]:
    """Give the primary pass's labels in the one shape that labels have."""
    labels = audited_labels(study.primary)
    return {
        "labels": {
            "source": f"audited:{study.primary.name}",
            "questions": {id: sorted(records) for id, records in labels.items()},
        }
    }
