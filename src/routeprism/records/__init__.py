"""What goes in: records, pools, questions, benchmarks, and their loaders."""

from routeprism.records._lazy import LazyCases
from routeprism.records._nouns import Benchmark, Case, Pool, Question, Record, Turn, letters
from routeprism.records._registry import load_benchmark, registered_benchmarks
from routeprism.records._restrict import only_kinds, only_questions

__all__ = [
    "Benchmark",
    "Case",
    "LazyCases",
    "Pool",
    "Question",
    "Record",
    "Turn",
    "letters",
    "load_benchmark",
    "only_kinds",
    "only_questions",
    "registered_benchmarks",
]
