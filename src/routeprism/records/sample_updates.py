"""Generate the sample with updates: invented people whose facts change, and questions about them.

It is synthetic: a seeded generator writes it and needs no file. The benchmark's notes mark it.
Every record has a date. A fact has two to four values; each new record replaces the one before.
"""

from __future__ import annotations

from itertools import cycle, islice
from random import Random
from typing import TYPE_CHECKING

from routeprism.records._benchmarks import Benchmark, Case
from routeprism.records._sample.changes import name_fact, topics, write_case
from routeprism.records._sample.tables import invent
from routeprism.records.sample import fingerprint_cases

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DEFAULT_SEED", "generate", "load", "name_fact"]

DEFAULT_SEED = 20240607
"""The seed of the sample that ships."""

_USERS = 24
_FACTS = 2
"""Facts per user."""
_LENGTHS = (2, 3, 4)
"""Values per fact, dealt round."""


def load(data: Path | None = None, *, seed: int = DEFAULT_SEED) -> Benchmark:
    """Return the sample as a benchmark. `data` is ignored: there is no file to read."""
    cases = generate(seed)
    return Benchmark(
        name="sample-updates",
        cases=cases,
        fingerprint=fingerprint_cases(cases),
        synthetic=True,
        labels=("benchmark",),
        updates=("benchmark",),
        notes=(f"The sample is synthetic: written by a generator with seed {seed}.",),
        licence="CC0-1.0 (synthetic, generated)",
    )


def generate(seed: int) -> tuple[Case, ...]:
    """Write all pools and questions of a seed; the same on every machine and in every process."""
    rng = Random(seed)  # noqa: S311 - reproducible text, no secret
    lengths = list(islice(cycle(_LENGTHS), _USERS * _FACTS))
    rng.shuffle(lengths)
    cases = []
    for index, persona in enumerate(invent(_USERS, rng)):
        topics_of_user = rng.sample(topics(), _FACTS)
        dealt = lengths[index * _FACTS : (index + 1) * _FACTS]
        cases.append(write_case(f"u{index + 1:02d}", persona, topics_of_user, dealt, rng))
    return tuple(cases)
