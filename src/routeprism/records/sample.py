"""The bundled sample: invented people, their talks with an assistant, and questions about them.

It is synthetic: a seeded generator writes it and needs no file. The benchmark's notes mark it.
"""

from __future__ import annotations

import hashlib
import json
from itertools import cycle, islice
from random import Random
from typing import TYPE_CHECKING, TypeVar

from routeprism.records._benchmarks import Benchmark, Case, letters
from routeprism.records._sample.lives import ask, plan_life, write_pool
from routeprism.records._sample.tables import invent, threads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from routeprism.records._sample.tables import Thread

__all__ = ["DEFAULT_SEED", "fingerprint_cases", "generate", "load"]

DEFAULT_SEED = 20240607
"""The seed of the sample that ships."""

_SIZES = (4, 5, 6, 7, 5, 6)
"""Records per user, dealt round; pools of four can't replace a record under recent:k=3."""

_QUESTIONS = (5, 6)
"""Questions per user, dealt round."""

_USERS = 30

T = TypeVar("T")


def load(data: Path | None = None, *, seed: int = DEFAULT_SEED) -> Benchmark:
    """Return the sample as a benchmark. `data` is ignored: there is no file to read."""
    cases = generate(seed)
    return Benchmark(
        name="sample",
        cases=cases,
        fingerprint=fingerprint_cases(cases),
        synthetic=True,
        labels=("benchmark",),
        notes=(f"The sample is synthetic: written by a generator with seed {seed}.",),
        licence="CC0-1.0 (synthetic, generated)",
    )


def generate(seed: int) -> tuple[Case, ...]:
    """Write all pools and questions of a seed; the same on every machine and in every process."""
    rng = Random(seed)  # noqa: S311 - reproducible text, no secret
    sizes = _deal_items(_SIZES, _USERS, rng)
    counts = _deal_items(_QUESTIONS, _USERS, rng)
    golds = iter(_deal_items(letters(4), sum(counts), rng))
    shelf: list[Thread] = []
    cases = []
    for index, persona in enumerate(invent(_USERS, rng)):
        user = f"u{index + 1:02d}"
        life = plan_life(_take(shelf, sizes[index], rng), counts[index], rng)
        pool = write_pool(user, persona, life, rng)
        questions = tuple(
            ask(user, number, persona, life, inquiry, next(golds), rng)
            for number, inquiry in enumerate(life.inquiries)
        )
        cases.append(Case(pool, questions))
    return tuple(cases)


def _deal_items(items: Sequence[T], count: int, rng: Random) -> list[T]:
    dealt = list(islice(cycle(items), count))
    rng.shuffle(dealt)
    return dealt


def _take(shelf: list[Thread], count: int, rng: Random) -> tuple[Thread, ...]:
    # A thread is put back only when all have been used, so that each is told about as often.
    selection: list[Thread] = []
    while len(selection) < count:
        if not any(thread not in selection for thread in shelf):
            shelf.extend(rng.sample(threads(), len(threads())))
        index = next(i for i, thread in enumerate(shelf) if thread not in selection)
        selection.append(shelf.pop(index))
    return tuple(selection)


def fingerprint_cases(cases: Sequence[Case]) -> str:
    """Return the digest of all that a sample says, its labels included."""
    content = [
        {
            "user": case.pool.user,
            "records": [[record.id, record.timestamp, record.text] for record in case.pool.records],
            "questions": [
                {
                    "id": question.id,
                    "text": question.text,
                    "options": question.options,
                    "gold": question.gold,
                    "kind": question.kind,
                    "detail": question.detail,
                    "support": _write_ids(question.labels),
                    **({"outdated": question.outdated} if question.outdated else {}),
                }
                for question in case.questions
            ],
            **({"supersedes": _write_ids(case.supersedes)} if case.supersedes else {}),
        }
        for case in cases
    ]
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _write_ids(labels: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {name: sorted(ids) for name, ids in sorted(labels.items())}
