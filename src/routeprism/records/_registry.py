"""Which benchmarks there are, by name; a path is the user's own data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.records import jsonl
from routeprism.records._files import is_directory
from routeprism.records._nouns import Benchmark

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["load_benchmark", "registered_benchmarks"]


def registered_benchmarks() -> Mapping[str, EntryPoint]:
    """Give the entry points of the group `routeprism.benchmarks`, by name."""
    return specs.registered("benchmarks")


def load_benchmark(text: str, data: Path | None = None) -> Benchmark:
    """Load a benchmark by name (`sample`, `sample:seed=7`, `personamem`, …) or directory."""
    known = registered_benchmarks()
    path = Path(text)
    named = text.partition(":")[0] in known
    if not named and (is_directory(path) or len(path.parts) > 1):
        return jsonl.load(path)
    spec = specs.parse(text)
    if spec.name not in known:
        raise SpecError(
            f"There is no benchmark '{spec.name}'. {nearest(spec.name, known)} "
            f"Your own data is a directory with records.jsonl and questions.jsonl."
        )
    benchmark = specs.construct(known[spec.name].load(), spec, data=data)
    if not isinstance(benchmark, Benchmark):
        raise SpecError(f"the loader of '{spec.name}' gave no Benchmark")
    return benchmark
