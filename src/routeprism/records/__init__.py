"""What goes in: records, pools, questions, benchmarks, and their loaders."""

from routeprism.records._benchmarks import (
    Benchmark,
    Case,
    LazyCases,
    Pool,
    Question,
    Record,
    Turn,
    choose_cases,
    letters,
    normalise,
    only_kinds,
    only_questions,
)
from routeprism.records._files import decode_utf8, parse_json
from routeprism.records._registry import load_benchmark, registered_benchmarks
from routeprism.records._times import (
    TIME_EXAMPLES,
    derive_stale,
    event_order,
    find_superseded,
    find_superseding,
    is_in_event_order,
    read_time,
)

__all__ = [
    "TIME_EXAMPLES",
    "Benchmark",
    "Case",
    "LazyCases",
    "Pool",
    "Question",
    "Record",
    "Turn",
    "choose_cases",
    "decode_utf8",
    "derive_stale",
    "event_order",
    "find_superseded",
    "find_superseding",
    "is_in_event_order",
    "letters",
    "load_benchmark",
    "normalise",
    "only_kinds",
    "only_questions",
    "parse_json",
    "read_time",
    "registered_benchmarks",
]
