"""The demonstration: its policies, its requests, and the experiments that it performs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeprism.api.requests import RunRequest, prepare
from routeprism.api.settings import settings_for
from routeprism.errors import SpecError
from routeprism.experiments import (
    Asking,
    EveryOrder,
    Looking,
    Manner,
    OnlyPolicies,
    ask_routes,
    compare_displays,
    restore_records,
    reuse_states,
)
from routeprism.models import make_models
from routeprism.orders import parse_arrival
from routeprism.policies import make_policy, parse_interface
from routeprism.records import load_benchmark
from routeprism.settings import make_settings

__all__ = ["DEMO_POLICIES", "list_demo_stages", "prepare_demo", "prepare_update_demo"]

DEMO_POLICIES = ("focal", "recent:k=3", "utility:k=3", "lexical", "raw")
SENSITIVE = DEMO_POLICIES[:3]
"""Those whose sources depend on order: the interventions are about them."""
EXPLORED = DEMO_POLICIES[:2]
"""Those whose every order is looked at."""


def prepare_demo(settings: Any) -> RunRequest:
    """Prepare the protocol on the sample; the reader counts words, so no instructions vary."""
    full = make_settings(
        settings_for("audit"),
        {"benchmark": "sample", "policies": DEMO_POLICIES, "models": ["reader"], "draws": 3}
        | {"control": "aligned"}
        | {name: getattr(settings, name) for name in ("run", "json", "quiet", "verbose")},
    )
    benchmark = load_benchmark("sample", None)
    interface = parse_interface(benchmark.interface)
    policies = tuple(make_policy(policy, interface) for policy in DEMO_POLICIES)
    asking = Asking(tuple(make_models("reader")), Manner(draws=3, control="aligned"))
    return RunRequest("demo", full, benchmark, policies, {}, asking)


UPDATE_POLICIES = ("facts:by=arrival", "facts:by=time", "dedup")


def prepare_update_demo(settings: Any) -> RunRequest:
    """Prepare the demonstration of facts that change, in a run beside the first."""
    run = None if settings.run is None else Path(settings.run)
    full = make_settings(
        settings_for("audit"),
        {"benchmark": "sample-updates", "policies": UPDATE_POLICIES, "models": ["reader"]}
        | {"schedules": ["replay"], "json": settings.json, "quiet": settings.quiet}
        | {"run": None if run is None else run.with_name(f"{run.name}-updates")},
    )
    return prepare("audit", full)


def list_demo_stages(asking: Asking | None) -> list[Any]:
    """List what it performs: answers, restoration, display, reuse and every order."""
    if asking is None:
        raise SpecError("the demonstration needs a model")
    looking = Looking((parse_arrival("uniform"),), worst="support", outcome="support")
    return [
        ask_routes(asking),
        OnlyPolicies(restore_records(asking), SENSITIVE),
        OnlyPolicies(compare_displays(asking, ("reversed", "source")), SENSITIVE),
        OnlyPolicies(reuse_states(asking), SENSITIVE),
        OnlyPolicies(EveryOrder(looking), EXPLORED),
    ]
