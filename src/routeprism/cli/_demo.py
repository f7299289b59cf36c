"""What `demo` does: the whole protocol on the sample, in one run with one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routeprism.cli._audit import run_and_show
from routeprism.experiments import (
    Asking,
    AskRoutes,
    Audit,
    Display,
    EveryOrder,
    Looking,
    Manner,
    OnlyPolicies,
    Restore,
    Reuse,
    run_audit,
    with_arms,
)
from routeprism.models import Model
from routeprism.orders import parse_arrival, parse_schedule
from routeprism.policies import make_policy, parse_interface
from routeprism.records import Benchmark

__all__ = ["show_demo"]

POLICIES = ("focal", "recent:k=3", "utility:k=3", "lexical", "raw")
SENSITIVE = POLICIES[:3]
"""Those whose sources order changes: what the interventions are about."""
EXPLORED = POLICIES[:2]
"""Those whose every order is looked at."""


def show_demo(*, run: Path | None, as_json: bool, quiet: bool) -> None:
    """Audit the sample, ask the embedded reader, intervene, and look at every order."""
    run_and_show(
        "sample",
        POLICIES,
        call=demo,
        main=_main,
        models=["reader"],
        run=run,
        as_json=as_json,
        quiet=quiet,
    )


def _main(found: Audit) -> Audit:
    """Keep the five policies, and of what is said the diagnosis, restoration and every order."""
    begins = {
        *(f"{policy}: " for policy in POLICIES),
        *(f"{policy}, replay, read by reader, filler A: " for policy in SENSITIVE),
        *(f"{policy}, uniform: " for policy in EXPLORED),
    }
    said: dict[str, str] = {}
    for sentence in found.sentences:
        before, colon, _ = sentence.partition(": ")
        if before + colon in begins:
            said.setdefault(before, sentence)
    more = len(found.sentences) - len(said)
    return replace(
        found,
        rows=tuple(
            row for row in found.rows if row.policy in POLICIES or row.experiment == "mechanism"
        ),
        sentences=tuple(said.values()),
        notes=(*found.notes[:1], f"{more} more sentences and all numbers are in the report."),
    )


def demo(
    benchmark: Benchmark,
    *policies: str,
    models: Sequence[Model],
    run: Path | None,
    masks: object = None,
    **settings: Any,
) -> Audit:
    """Run the protocol: routes, mechanism, answers, restoration, display, reuse, every order.

    Instructions are left out: the reader counts words, and follows none.
    """
    shown = parse_interface(benchmark.interface)
    made = [make_policy(policy, shown) for policy in policies]
    asking = Asking(tuple(models), Manner(draws=3, control="aligned"))
    looking = Looking((parse_arrival("uniform"),), worst="support", outcome="support")
    return run_audit(
        benchmark,
        [*with_arms(made[:1]), *made[1:]],
        [parse_schedule("replay")],
        stages=[
            AskRoutes(asking),
            OnlyPolicies(Restore(asking), SENSITIVE),
            OnlyPolicies(Display(asking, ("reversed", "source")), SENSITIVE),
            OnlyPolicies(Reuse(asking), SENSITIVE),
            OnlyPolicies(EveryOrder(looking), EXPLORED),
        ],
        command="demo",
        directory=run,
        **settings,
    )
