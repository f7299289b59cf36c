"""What source order lacks already, counted from tables of values made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routeprism.experiments import coordinates_of, count_baseline
from routeprism.records import Case, Pool, Question, Record
from routeprism.routes import ExposureTrace, Route

EVIDENCE = (("a", "b"), ("a",), ("b",), ("c",), ())
RECORDS = tuple(Record(id, at, f"record {id}") for at, id in enumerate("abc"))
QUESTIONS = tuple(
    Question(f"q{at}", "ada", f"question {at}", labels={"given": frozenset(ids)} if ids else {})
    for at, ids in enumerate(EVIDENCE)
)
CASE = Case(Pool("ada", RECORDS), QUESTIONS)
NAN = float("nan")

Shares = Sequence[float]
MEMORY, PROMPT, STALE = "all_covered.retained", "all_covered.exposed", "stale_only"


def make_route(
    policy: str = "memory",
    schedule: str = "forward",
    sources: str = "a",
    order: tuple[int, ...] = (0, 1, 2),
    *,
    failed: str = "",
) -> Route:
    """Make a route that keeps `a` and `b` and shows the same to every question."""
    exposures = tuple(ExposureTrace(q, frozenset(sources), "", 0, ()) for q in QUESTIONS)
    return Route(
        policy, schedule, "ada", order, frozenset("ab"), None, exposures, (), {}, failed=failed
    )


def make_table(values: Mapping[str, Shares], labels: str = "given") -> npt.NDArray[np.float64]:
    """Make the values of five questions; what is not given does not apply."""
    names = [coordinate.name for _, _, coordinate in coordinates_of(labels, labels)]
    table = np.full((5, len(names)), NAN)
    for name, column in values.items():
        table[:, names.index(name)] = column
    return table


def count(
    routes: Sequence[Route],
    tables: Mapping[tuple[str, str], npt.NDArray[np.float64]],
    labels: str = "given",
) -> dict[tuple[str, str], int]:
    return {
        key: number
        for key, number in count_baseline(
            CASE, routes, coordinates_of(labels, labels), tables, "given"
        ).items()
        if number
    }


def test_source_order_is_counted_question_by_question() -> None:
    """It shows `a` alone: of four questions with evidence, the first, third and fourth lack some.

    A record that is delivered twice counts once.
    """
    routes = [
        make_route(order=(0, 1, 1, 2)),
        make_route("another", sources="abc"),
        make_route("broken", failed="an error"),
        make_route(schedule="replay", sources=""),
    ]
    assert count(routes, {}, labels="") == {
        ("memory", "records"): 3,
        ("memory", "kept"): 2,
        ("memory", "questions"): 4,
        ("memory", "lacking"): 3,
        ("another", "records"): 3,
        ("another", "kept"): 2,
        ("another", "questions"): 4,
    }


def test_a_text_that_names_no_record_may_contain_any() -> None:
    """The first two questions see text without sources, and the third one sees nothing."""
    route = make_route(sources="")
    characters = (9, 9, 0, 9, 0)
    exposures = tuple(
        replace(exposure, context_chars=number, sources=frozenset("c" if at == 3 else ""))
        for at, (exposure, number) in enumerate(zip(route.exposures, characters, strict=True))
    )
    lost = make_table(dict.fromkeys((f"{MEMORY}.forward", f"{MEMORY}.route"), (0, 0, 0, 0, NAN)))
    counts = count([replace(route, exposures=exposures)], {("memory", "replay"): lost})
    assert (counts["memory", "questions"], counts["memory", "lacking"]) == (2, 1)
    assert counts["memory", "never_kept"] == 2


def test_the_baseline_is_that_of_the_reference_order() -> None:
    restart = replace(make_route(schedule="restart", sources=""), reference="")
    compared = replace(make_route(schedule="bulk", sources="abc"), reference="restart")
    assert count([restart, compared], {}, labels="")["memory", "lacking"] == 4
    # With several references, and with none, it is source order, which shows `a` alone.
    for routes in ([restart, compared, make_route()], [replace(make_route(), reference="")]):
        assert count(routes, {}, labels="")["memory", "lacking"] == 3


def test_what_no_order_keeps_shows_or_updates() -> None:
    """q0 is never kept, q1 only in some orders of jitter, q2 in source order, q3 in reversal."""
    replay = make_table(
        {
            f"{MEMORY}.forward": (0, 0, 1, 0, NAN),
            f"{MEMORY}.route": (0, 0, 0, 1, NAN),
            f"{PROMPT}.forward": (0, 0, 0, 0, NAN),
            f"{PROMPT}.route": (0, 0, 0, 1, NAN),
            f"{STALE}.forward": (NAN, 1, 1, 0, 1),
            f"{STALE}.route": (NAN, 1, 1, 1, NAN),
        }
    )
    jitter = make_table(
        {
            f"{MEMORY}.forward": (0, 0, 1, 0, NAN),
            f"{MEMORY}.route": (0, 0.5, 0, 0, NAN),
            f"{PROMPT}.forward": (0, 0, 0, 0, NAN),
            f"{PROMPT}.route": (0, 0, 0, 0, NAN),
            f"{STALE}.forward": (NAN, 1, 1, 0, 1),
            f"{STALE}.route": (NAN, 1, 0.9, 1, 1),
        }
    )
    everything = make_table(dict.fromkeys((f"{MEMORY}.route", f"{PROMPT}.route"), (1, 1, 1, 1, 1)))
    tables = {
        ("memory", "replay"): replay,
        ("memory", "jitter:w=2"): jitter,
        ("memory", "overlap:k=2"): everything,  # no order of arrival
        ("another", "replay"): everything,
    }
    assert count([], tables) == {
        ("memory", "never_kept"): 1,  # q0
        ("memory", "never_shown"): 2,  # q1 and q2; q0 is not even kept
        ("memory", "outdated"): 1,  # q1; q2 is right in a tenth of the orders
        ("memory", "updates"): 3,  # q1, q2 and q3; reversal has no value for q4
    }


def test_an_order_alone_is_enough_to_be_right() -> None:
    values = {f"{MEMORY}.forward": (0,) * 5, f"{PROMPT}.forward": (0,) * 5}
    some = make_table({**values, f"{MEMORY}.route": (1,) * 5, f"{PROMPT}.route": (0,) * 5})
    none = make_table({**values, f"{MEMORY}.route": (0,) * 5, f"{PROMPT}.route": (0,) * 5})
    for tables in ([some, none], [none, some]):
        orders = {("memory", name): table for name, table in zip("xy", tables, strict=True)}
        assert count([], orders) == {("memory", "never_shown"): 5}


def test_without_labels_nothing_is_known() -> None:
    assert count([], {("memory", "replay"): make_table({}, "")}, labels="") == {}
