"""What several functions make of the arguments they are given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from routeprism.answers import EmbeddedJudge, Judge, ModelJudge, RecordedJudge
from routeprism.errors import SpecError
from routeprism.experiments import Asking, Manner, SupportChangeAgreement, passes_of
from routeprism.experiments._stages import Stage
from routeprism.models import Model, make_model, make_models
from routeprism.policies import Policy, SourceOrder, as_policy, make_policy, parse_interface
from routeprism.records import Benchmark, load_benchmark, only_kinds

__all__ = ["given_asking", "given_benchmark", "given_policies", "label_stages"]


def given_benchmark(
    benchmark: str | Path | Benchmark, kinds: Sequence[str], data: str | Path | None
) -> Benchmark:
    """Load a benchmark that is named, and keep the questions of some kinds."""
    if not isinstance(benchmark, Benchmark):
        benchmark = load_benchmark(str(benchmark), _data(data))
    return only_kinds(benchmark, kinds) if kinds else benchmark


def given_policies(
    policies: Sequence[Any],
    benchmark: Benchmark,
    interface: str | None,
    comparators: bool,
    base_url: str | None,
) -> list[Policy]:
    """Make the policies, and their comparators where these are wanted."""
    shown = parse_interface(interface or benchmark.interface)
    made: list[Policy] = [
        make_policy(policy, shown, base_url=base_url)
        if isinstance(policy, str)
        else as_policy(policy)
        for policy in policies
    ]
    if comparators:
        named = {policy.name for policy in made}
        twins = [SourceOrder(p) for p in made if not isinstance(p, SourceOrder)]
        made.extend(twin for twin in twins if twin.name not in named)
    return made


def given_asking(
    models: Sequence[str | Model],
    manner: Manner,
    batches: Sequence[str],
    judge: str | Judge | None,
    *,
    base_url: str | None,
    rate_limit: float | None,
    concurrency: int | None,
) -> Asking | None:
    """Say who is asked, and how; None where there is nobody."""
    if not models:
        return None
    if manner.draws < 1:
        raise SpecError(f"Expected 1 draw or more but got draws={manner.draws}")
    if not manner.fillers or not batches:
        raise SpecError("asking needs at least one filler and one batch")
    made = [
        one
        for model in models
        for one in (make_models(model, base_url=base_url) if isinstance(model, str) else [model])
    ]
    if len({model.name for model in made}) < len(made):
        raise SpecError("two models have the same name; ask them in runs of their own")
    return Asking(
        tuple(made),
        manner,
        tuple(dict.fromkeys(batches)),
        _judge(judge, made, base_url),
        rate_limit,
        concurrency,
    )


def _judge(judge: str | Judge | None, models: Sequence[Model], base_url: str | None) -> Judge:
    unjudged = [one.name for one in models if not getattr(one, "judged", False)]
    if judge is None:
        return EmbeddedJudge() if unjudged else RecordedJudge()
    if not isinstance(judge, str):
        return judge
    if judge == "recorded":
        if unjudged:
            raise SpecError(f"the judge 'recorded' needs verdicts, and {unjudged[0]} has none")
        return RecordedJudge()
    if judge == "embedded":
        return EmbeddedJudge()
    return ModelJudge(make_model(judge, base_url=base_url))


def _data(data: str | Path | None) -> Path | None:
    named = data or os.environ.get("ROUTEPRISM_DATA")
    return Path(named) if named else None


def label_stages(benchmark: Benchmark) -> list[Stage]:
    """Compare label passes, where there are two or more."""
    return [SupportChangeAgreement()] if len(passes_of(benchmark)) > 1 else []
