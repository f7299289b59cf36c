"""The experiment index: for every experiment of a run what went in, who answered, what was done.

A finishing run makes it from the configuration, which contains what stages describe, from the
estimate rows and from the store. It is the same for the same run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routeprism.runs._rows import EstimateRow
from routeprism.runs._stored_run import StoredRun

CONTRASTS = "contrasts"
"""The name under which the signed policies of contrasts are stored; it is not an experiment."""

_STUDIES = ("screen", "support")
"""Commands whose experiments are passes over cards."""
_INSTRUCTION = "provenance"
"""The entry of a configuration that describes every prompt."""
_RUBRIC = ("rubric", "rubric_sha256", "cards_sha256")

Entry = dict[str, Any]
Configuration = Mapping[str, Any]


def experiment_index(
    configuration: Configuration,
    rows: Sequence[EstimateRow],
    stored: StoredRun,
    *,
    sources: Mapping[str, str],
    own_entries: Mapping[str, str],
) -> dict[str, Entry]:
    """Describe every experiment that has a row.

    `sources` names the experiment whose stored answers each reads. `own_entries` names for entries
    of the configuration the stored answers that they alone describe.
    """
    by_experiment: dict[str, list[EstimateRow]] = {}
    for row in rows:
        by_experiment.setdefault(row.experiment, []).append(row)
    index = {}
    for experiment, own_rows in by_experiment.items():
        source = sources.get(experiment, experiment)
        own = [name for name, owner in own_entries.items() if owner == source]
        index[experiment] = {
            "inputs": _inputs(configuration, own_rows, stored),
            "answers": _answers(configuration, source, own_rows, stored),
            "prompts": _prompts(configuration, own, own_rows),
            "analysis": _analysis(configuration, experiment, own_rows, stored),
        }
    return index


def _inputs(configuration: Configuration, rows: Sequence[EstimateRow], stored: StoredRun) -> Entry:
    sizes = {name: len(ids) for name, ids in stored.masks().items()}
    # `primary:fixed-source` is cut by a given mask and by one of the experiment's own.
    masks = _take_distinct(
        name for row in rows for name in row.mask.removeprefix("outside-").split(":")
    )
    return {
        "benchmark": rows[0].benchmark,
        "fingerprint": configuration.get("fingerprint"),
        "policies": _take_distinct(row.policy for row in rows),
        "interfaces": _take_distinct(row.interface for row in rows),
        "schedules": _take_distinct(row.schedule for row in rows),
        "kinds": configuration.get("kinds", []),
        "labels": _take_distinct(row.labels for row in rows),
        "masks": {name: sizes.get(name) for name in masks},  # of its own ones no size is declared
        "questions": max(row.queries or 0 for row in rows),
        "units": max(row.units or 0 for row in rows),
    }


def _answers(
    configuration: Configuration, source: str, rows: Sequence[EstimateRow], stored: StoredRun
) -> Entry | None:
    if configuration.get("command") in _STUDIES:
        passes = configuration["passes"]
        number = sum(stored.count_batch(source, name) for name, source in passes.items())
        return {"passes": passes, "number": number}
    models = _take_distinct(row.model for row in rows)
    if not models:
        return None
    batches = configuration.get("batches", [""])
    return {
        "models": {name: configuration["models"][name] for name in models},
        "judge": _take_distinct(row.judge for row in rows),
        "batches": batches,
        "draws": configuration["draws"],
        "number": stored.count_answers([source], models, batches),
    }


def _prompts(
    configuration: Configuration, own_names: Sequence[str], rows: Sequence[EstimateRow]
) -> Entry | None:
    if configuration.get("command") in _STUDIES:
        return {name: configuration[name] for name in _RUBRIC}
    if not any(row.model for row in rows):
        return None
    names = (name for name in (_INSTRUCTION, *own_names) if name in configuration)
    return {
        "control": configuration["prompt_control"],
        "fillers": configuration["fillers"],
        **{name: configuration[name] for name in names},
    }


def _analysis(
    configuration: Configuration, experiment: str, rows: Sequence[EstimateRow], stored: StoredRun
) -> Entry:
    values = (finding.value for finding in stored.findings(CONTRASTS))
    contrasts = [value for value in values if value["experiment"] == experiment]
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


def _take_distinct(names: Iterable[str]) -> list[str]:
    """Take every name once, in the order of the rows; an empty one is none."""
    return [name for name in dict.fromkeys(names) if name]
