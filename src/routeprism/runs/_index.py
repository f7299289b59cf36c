"""The experiment index: for every experiment of a run what went in, who answered, what was done.

It is made from the configuration, which holds what stages describe, from the estimate rows and from
the store, when a run finishes; so it says what is there, and the same for the same run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routeprism.runs._rows import EstimateRow
from routeprism.runs._stored import Stored

__all__ = ["CONTRASTS", "answered_by", "experiment_index"]

CONTRASTS = "contrasts"
"""Under this name stand the signed policies of each contrast, which is no experiment."""

_STUDIES = ("screen", "support")
"""Commands whose experiments are passes over cards."""
_PROMPTS = ("provenance", "provenance_arms", "display", "bundle_tokens")
_OF_ONE = {"display": "display", "bundle_tokens": "restoration", "provenance_arms": "routes"}
"""Settings that one experiment alone has."""
_RUBRIC = ("rubric", "rubric_sha256", "cards_sha256")
_OTHERS = ("mechanism", "readouts", "replication", "support")
"""Experiments that are read off the answers to pairs of routes."""

Entry = dict[str, Any]


def answered_by(experiment: str) -> str:
    """Name the experiment whose comparisons hold the answers that another one reads."""
    return "routes" if experiment in _OTHERS else experiment


def experiment_index(
    configuration: Mapping[str, Any], rows: Sequence[EstimateRow], stored: Stored
) -> dict[str, Entry]:
    """Describe every experiment that has a row."""
    by_experiment: dict[str, list[EstimateRow]] = {}
    for row in rows:
        by_experiment.setdefault(row.experiment, []).append(row)
    return {
        experiment: {
            "inputs": _inputs(configuration, found, stored),
            "answers": _answers(configuration, experiment, found, stored),
            "prompts": _prompts(configuration, experiment, found),
            "analysis": _analysis(configuration, experiment, found, stored),
        }
        for experiment, found in by_experiment.items()
    }


def _inputs(configuration: Mapping[str, Any], rows: Sequence[EstimateRow], stored: Stored) -> Entry:
    given = {name: len(ids) for name, ids in stored.masks().items()}
    masks = _distinct(row.mask.removeprefix("outside-") for row in rows)
    return {
        "benchmark": rows[0].benchmark,
        "fingerprint": configuration.get("fingerprint"),
        "policies": _distinct(row.policy for row in rows),
        "interfaces": _distinct(row.interface for row in rows),
        "schedules": _distinct(row.schedule for row in rows),
        "kinds": configuration.get("kinds", []),
        "labels": _distinct(row.labels for row in rows),
        "masks": {name: given.get(name) for name in masks},  # of its own ones no size is declared
        "questions": max(row.queries or 0 for row in rows),
        "units": max(row.units or 0 for row in rows),
    }


def _answers(
    configuration: Mapping[str, Any],
    experiment: str,
    rows: Sequence[EstimateRow],
    stored: Stored,
) -> Entry | None:
    if configuration.get("command") in _STUDIES:
        passes = configuration["passes"]
        number = sum(stored.count_batch(source, name) for name, source in passes.items())
        return {"passes": passes, "number": number}
    models = _distinct(row.model for row in rows)
    if not models:
        return None
    batches = configuration.get("batches", [""])
    return {
        "models": {name: configuration["models"][name] for name in models},
        "judge": _distinct(row.judge for row in rows),
        "batches": batches,
        "draws": configuration["draws"],
        "number": stored.count_answers([answered_by(experiment)], models, batches),
    }


def _prompts(
    configuration: Mapping[str, Any], experiment: str, rows: Sequence[EstimateRow]
) -> Entry | None:
    if configuration.get("command") in _STUDIES:
        return {name: configuration[name] for name in _RUBRIC}
    if not any(row.model for row in rows):
        return None
    more = {
        name: configuration[name]
        for name in _PROMPTS
        if name in configuration
        and (name not in _OF_ONE or _OF_ONE[name] == answered_by(experiment))
    }
    return {
        "control": configuration["prompt_control"],
        "fillers": configuration["fillers"],
        **more,
    }


def _analysis(
    configuration: Mapping[str, Any],
    experiment: str,
    rows: Sequence[EstimateRow],
    stored: Stored,
) -> Entry:
    contrasts = [
        one.value for one in stored.findings(CONTRASTS) if one.value["experiment"] == experiment
    ]
    study = configuration.get("command") in _STUDIES
    return {
        "unit": next((row.unit for row in rows if row.unit), ""),
        "weighting": "item" if study else configuration.get("weighting"),
        "interval": configuration.get("interval", "percentile"),
        "resamples": configuration.get("resamples"),
        "seed": configuration.get("seed"),
        "rows": len(rows),
        **({"contrasts": contrasts} if contrasts else {}),
    }


def _distinct(names: Iterable[str]) -> list[str]:
    """Take every name once, in the order of the rows; an empty one is none."""
    return [name for name in dict.fromkeys(names) if name]
