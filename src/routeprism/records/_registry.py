"""Benchmarks by name; a path names your own data."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.records._benchmarks import Benchmark
from routeprism.records._files import is_directory


def registered_benchmarks() -> Mapping[str, specs.Registration]:
    """List the entry points of the group `routeprism.benchmarks`, by name."""
    return specs.registered("benchmarks")


def load_benchmark(text: str, data: Path | None = None) -> Benchmark:
    """Load a benchmark by name (`sample`, `sample:seed=7`, `personamem`, …) or directory.

    Without `data`, its files are looked for in the directory that ROUTEPRISM_DATA names.
    """
    loaders = registered_benchmarks()
    path = Path(text)
    is_registered = text.partition(":")[0] in loaders
    if not is_registered and (is_directory(path) or len(path.parts) > 1):
        from routeprism.records import jsonl  # it uses numpy

        return replace(jsonl.load(path), directory=text)
    spec = specs.parse(text)
    loader = specs.find_extension("benchmarks", spec)
    if loader is None:
        raise SpecError(
            f"There is no benchmark '{spec.name}'. {nearest(spec.name, loaders)} "
            f"Your own data is a directory with records.jsonl and questions.jsonl."
        )
    if isinstance(loader, Benchmark):
        return loader
    if data is None and (directory := os.environ.get("ROUTEPRISM_DATA")):
        data = Path(directory)
    arguments = {"data": data} if "data" in inspect.signature(loader).parameters else {}
    benchmark = specs.construct(loader, spec, **arguments)
    if not isinstance(benchmark, Benchmark):
        raise SpecError(
            f"Expected a Benchmark from the loader '{spec.name}' but got {type(benchmark).__name__}"
        )
    return benchmark
