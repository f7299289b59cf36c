"""The zoo: memories with one known fault or none, and the true judgement of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import routeprism
from routeprism import Audit, Benchmark, Record

from ..doubles import LoopbackServer
from ..experiments import order_faults
from . import data, memories
from .memories import fact_of

SORTING = frozenset(("hold", "rebuild", "checkpoint"))
"""Repairs that change the order of arrival and nothing else."""
DEPTHS = (
    "stable",
    "internal only",
    "text only",
    "different records",
    "evidence moves",
    "evidence lost",
    "answers worse",
)
CAUSES = frozenset(
    (
        "never kept",
        "refused",
        "not retrievable",
        "full",
        "replaced",
        "overwritten",
        "merged",
        "duplicate",
        "late",
        "procedure",
        "joint",
        "tie",
        "budget",
        "ranking",
        "order of blocks",
        "rewritten",
        "state only",
        "untested",
    )
)
ARRIVALS = ("jitter:w=2", "late-batch", "replay")
OVERLAP = "overlap:k=3"

SPARE: Mapping[str, Any] = {"resamples": 100, "workers": 1}
"""What every audit of a test passes, so that it is fast."""

Displaces = Callable[[Record, Record], bool]
"""Whether the first record, which was lost, can have gone because of the second."""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """What a recommended repair must achieve over source order and all arrivals in total."""

    required: bool = True
    """Whether there must be one that shows every question all its evidence, and no outdated value
    alone, in source order and in all arrivals: such a one is among the standard repairs. Where
    there need not be one, one that is named must still be better."""
    never: frozenset[str] = frozenset()
    """Repairs that would contradict the cause, such as sorting what is never kept."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A memory, the data that shows what it does, and the true judgement."""

    name: str
    memory: Any
    """The class; for the service, the settings that follow its address."""
    benchmark: Callable[[], Benchmark]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the audit."""
    depths: frozenset[str]
    """The depths that are true."""
    red: bool | None = False
    """Whether the verdict is red; None where the issue leaves it open."""
    inconclusive: bool = False
    promises: frozenset[str] = frozenset()
    """The promises that fail."""
    baseline: Mapping[str, int] = field(default_factory=dict)
    """Exact counts of what is wrong in source order already; a count that is missing is 0."""
    open_counts: frozenset[str] = frozenset()
    """Counts of the baseline that depend on a definition, so that no value is expected."""
    causes: frozenset[str] = frozenset()
    """What the most frequent cause may be; empty where there is none."""
    displaces: Displaces | None = None
    """What must be true of the record that was lost and the one that displaced it."""
    repair: Repair | None = None
    """None where nothing is to repair."""
    lost: Mapping[str, float] = field(default_factory=dict)
    """Questions that lose evidence, by schedule, where the number is exact."""
    gained: Mapping[str, float] = field(default_factory=dict)
    slow: bool = False

    @property
    def schedules(self) -> tuple[str, ...]:
        return tuple(self.options.get("schedules", ARRIVALS))

    @property
    def sound(self) -> bool:
        """Whether nothing at all is to be reported."""
        return not (self.causes or self.promises or self.inconclusive or self.baseline)

    @property
    def levels(self) -> frozenset[str]:
        """The levels that do not mislead."""
        if self.inconclusive:
            return frozenset(("inconclusive",))
        if self.promises:
            return frozenset(("promise failed",)) | (self.depths & {"evidence lost"})
        if self.depths == {"stable"} and self.baseline:
            return frozenset(("wrong in every order",))
        return self.depths

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Give what an audit takes as its policy; a service runs meanwhile."""
        if not isinstance(self.memory, str):
            yield self.memory
            return
        # A class of its own for each server, so that two never share what they keep.
        handler = type("Service", (memories.OverwritingService,), {"memories": {}})
        server = LoopbackServer(handler)
        try:
            yield f"http:url={server.url}{self.memory}"
        finally:
            server.stop()

    def audit(self, memory: Any = None, **more: Any) -> Audit:
        """Audit the memory, or a repaired one, on this data."""
        options = {**SPARE, **self.options, **more}
        if memory is not None:
            return routeprism.audit(self.benchmark(), memory, **options)
        with self.open() as policy:
            return routeprism.audit(self.benchmark(), policy, **options)

    def find_record(self, record: str) -> Record:
        """Return the record with this id."""
        return next(
            r for case in self.benchmark().cases for r in case.pool.records if r.id == record
        )

    def name_command(self) -> str:
        """Name the memory as a command line does, from the root of the repository."""
        return f"{self.memory.__module__}:{self.memory.__qualname__}"


@cache
def audit_once(planted_name: str) -> Audit:
    """Audit a memory once for all tests of this process."""
    return BY_NAME[planted_name].audit()


def is_red(verdict: Any) -> bool:
    """Whether a verdict must not pass: evidence lost, a promise failed, or wrong in every order."""
    return bool(verdict.is_red)


def read_count(counts: Any, name: str) -> int:
    """Read a count from a mapping or from an object."""
    value = counts.get(name, 0) if isinstance(counts, Mapping) else getattr(counts, name)
    return int(value or 0)


def measure_total(result: Audit, schedules: tuple[str, ...]) -> tuple[float, float]:
    """Return how many questions have all evidence, and how many only an outdated value, in total.

    Source order counts once, and each arrival once; orders that were drawn count by their mean.
    """
    evidence = outdated = 0.0
    for quantity, weight in (("forward", 1 / len(schedules)), ("route", 1.0)):
        for schedule in schedules:
            covered = read_row(result, f"all_covered.exposed.{quantity}", schedule)
            if covered is not None:
                evidence += weight * covered.estimate * covered.queries
            stale = read_row(result, f"stale_only.{quantity}_count", schedule)
            if stale is not None:
                outdated += weight * stale.estimate
    return evidence, outdated


def read_row(result: Audit, quantity: str, schedule: str) -> Any:
    """Return the row of a quantity over all questions; None if there is none."""
    rows = result.rows.where(quantity=quantity, schedule=schedule, stratum="all", model="")
    return next((row for row in rows if row.policy), None)


def share_fact(record: Record, by: Record) -> bool:
    return fact_of(record) == fact_of(by)


def share_fact_and_be_older(record: Record, by: Record) -> bool:
    return share_fact(record, by) and str(by.timestamp) < str(record.timestamp)


def share_fact_within_a_day(record: Record, by: Record) -> bool:
    return share_fact_and_be_older(record, by) and (
        (memories.day_of(record) - memories.day_of(by)).days == 1
    )


def share_fact_and_day(record: Record, by: Record) -> bool:
    return share_fact(record, by) and record.timestamp == by.timestamp


def share_slot(record: Record, by: Record) -> bool:
    slots = memories.CollidingSlots()
    return slots.find_slot(record) == slots.find_slot(by)


def be_an_import(record: Record, by: Record) -> bool:
    return fact_of(by) == "Import"


def resemble(record: Record, by: Record) -> bool:
    return memories.SimilarityEviction().resemble(record, by)


def be_newer(record: Record, by: Record) -> bool:
    return str(by.timestamp) > str(record.timestamp)


def own(write_lines: Callable[[], data.Lines]) -> Callable[[], Benchmark]:
    """Give the function that loads these lines."""
    return lambda: data.load(write_lines)


@cache
def take_sample(name: str, first: int = 0) -> Benchmark:
    """Load eight pools of a bundled sample."""
    whole = routeprism.load_benchmark(name, None)
    return replace(whole, cases=whole.cases[first : first + 8])


def sample(name: str = "sample", first: int = 0) -> Callable[[], Benchmark]:
    return lambda: take_sample(name, first)


def kinds(*names: str) -> frozenset[str]:
    assert set(names) <= CAUSES
    return frozenset(names)


def at(*names: str) -> frozenset[str]:
    assert set(names) <= set(DEPTHS)
    return frozenset(names)


LOST = at("evidence lost")
MOVES = at("evidence moves")
TEXT = at("text only")
STABLE = at("stable")
NOTHING = {"inconclusive": True, "depths": STABLE}

# The twelve of the tests. The sample has 43 questions in the first eight pools (44 in the next),
# the one about updates 48. Depths are what the definition gives for the counts that are measured.
PLANTED = (
    Planted(
        name="overwrites-by-arrival",
        memory=order_faults.OverwritesByArrival,
        benchmark=sample("sample-updates"),
        depths=LOST,
        red=True,
        causes=kinds("overwritten"),
        displaces=lambda record, by: str(by.timestamp) < str(record.timestamp),
        repair=Repair(),
        lost={"replay": 48},
        gained={"replay": 0},
        slow=True,
    ),
    Planted(
        name="short-window",
        memory=order_faults.ShortWindow,
        benchmark=sample(),
        depths=MOVES,
        red=False,
        baseline={"lacking": 20},
        open_counts=frozenset(("never_kept",)),  # some orders are drawn
        causes=kinds("full"),
        repair=Repair(),
        lost={"replay": 17},
        gained={"replay": 19},
    ),
    Planted(
        name="merges-into-first",
        memory=order_faults.MergesIntoFirst,
        benchmark=sample(),
        depths=LOST,
        red=True,
        baseline={"lacking": 10},
        causes=kinds("merged", "duplicate"),
        repair=Repair(),
    ),
    Planted(
        name="merges-into-longest",
        memory=order_faults.MergesIntoLongest,
        benchmark=sample("sample", 8),
        depths=MOVES,
        red=False,
        open_counts=frozenset(("never_kept",)),
        baseline={"lacking": 16},
        causes=kinds("merged", "overwritten", "duplicate"),
        repair=Repair(),
    ),
    Planted(
        name="breaks-ties-by-arrival",
        memory=order_faults.BreaksTiesByArrival,
        benchmark=sample(),
        depths=MOVES,
        red=False,
        baseline={"lacking": 11},
        causes=kinds("tie"),
        repair=Repair(required=False),
        lost={"replay": 5},
        gained={"replay": 10},
    ),
    Planted(
        name="shows-by-arrival",
        memory=order_faults.ShowsByArrival,
        benchmark=sample(),
        depths=TEXT,
        causes=kinds("order of blocks"),
        repair=Repair(required=False),
    ),
    Planted(
        name="counts-arrivals",
        memory=order_faults.CountsArrivals,
        benchmark=sample(),
        depths=at("internal only"),
        causes=kinds("state only"),
    ),
    Planted(
        name="forgets-all",
        memory=order_faults.ForgetsAll,
        benchmark=sample(),
        **NOTHING,
        baseline={"lacking": 43, "never_kept": 43},
        open_counts=frozenset(("never_shown",)),
        causes=kinds("never kept"),
        repair=Repair(required=False, never=SORTING),
    ),
    Planted(
        name="deduplicates-updates",
        memory=order_faults.DeduplicatesUpdates,
        benchmark=sample("sample-updates"),
        depths=MOVES,
        red=None,
        baseline={"lacking": 48},
        open_counts=frozenset(("outdated", "never_kept", "never_shown")),
        # In chains of three and four values, two or three earlier ones each keep the newest out.
        causes=kinds("duplicate", "joint"),
        repair=Repair(never=SORTING - {"hold"}),
        lost={"replay": 0},
        gained={"replay": 48},
    ),
    Planted(
        name="resolves-by-time",
        memory=order_faults.ResolvesByTime,
        benchmark=sample("sample-updates"),
        depths=STABLE,
    ),
    Planted(
        name="append-only",
        memory=order_faults.AppendOnly,
        benchmark=sample(),
        depths=STABLE,
    ),
    Planted(
        name="keeps-at-random",
        memory=order_faults.KeepsAtRandom,
        benchmark=sample(),
        options={"builds": 3},
        depths=frozenset(DEPTHS[:5]),
        inconclusive=True,
        open_counts=frozenset(("lacking", "never_kept", "never_shown")),
        repair=Repair(required=False),
    ),
)

# Own data: 8 users. A ledger has 4 questions for each user, of which 3 are about facts that change.
OVERWRITES = (
    Planted(
        name="keyed-overwrite",
        memory=memories.KeyedOverwrite,
        benchmark=own(data.write_ledger),
        depths=LOST,
        red=True,
        causes=kinds("overwritten"),
        displaces=share_fact_and_be_older,
        repair=Repair(),
        lost={"jitter:w=2": 9, "late-batch": 4.25, "replay": 24},
        gained={"jitter:w=2": 0, "late-batch": 0, "replay": 0},
    ),
    Planted(
        name="http-overwrite",
        memory="",
        benchmark=own(data.write_small_ledger),
        options={"schedules": ("replay",)},
        depths=LOST,
        red=True,
        causes=kinds("overwritten", "untested"),
        displaces=share_fact_and_be_older,
        repair=Repair(required=False),  # a service is built again only if `remedy` is called
        lost={"replay": 12},
        gained={"replay": 0},
    ),
    Planted(
        name="colliding-slots",
        memory=memories.CollidingSlots,
        benchmark=own(data.write_diary),
        depths=MOVES,
        baseline={"lacking": 19},
        causes=kinds("overwritten"),
        displaces=share_slot,
        repair=Repair(),
        lost={"replay": 14},
        gained={"replay": 14},
    ),
    Planted(
        name="owned-slots",
        memory=memories.OwnedSlots,
        benchmark=own(data.write_diary),
        depths=MOVES,
        baseline={"lacking": 19},
        # Whoever comes first wins: no repeated text, but one record brings the other back.
        causes=kinds("duplicate", "overwritten"),
        displaces=share_slot,
        repair=Repair(),
        lost={"replay": 14},
        gained={"replay": 14},
    ),
    Planted(
        name="bitemporal-off-by-one",
        memory=memories.BitemporalOffByOne,
        benchmark=own(data.write_ledger),
        depths=LOST,
        red=True,
        causes=kinds("overwritten"),
        displaces=share_fact_within_a_day,
        repair=Repair(),
        lost={"replay": 16},
        gained={"replay": 0},
    ),
    Planted(
        name="equal-days-overwrite",
        memory=memories.EqualDaysOverwrite,
        benchmark=own(data.write_equal_days),
        depths=LOST,
        red=True,
        causes=kinds("overwritten"),
        displaces=share_fact_and_day,
        repair=Repair(),
        lost={"replay": 16},
        gained={"replay": 0},
    ),
    Planted(
        name="replaced-by-import",
        memory=memories.ReplacedByImport,
        benchmark=own(data.write_import),
        depths=LOST,
        red=True,
        causes=kinds("overwritten"),
        displaces=be_an_import,
        repair=Repair(),
        lost={"replay": 24},
        gained={"replay": 0},
    ),
    Planted(
        name="replaced-by-night",
        memory=memories.ReplacedByNight,
        benchmark=own(data.write_late_diary),
        depths=LOST,
        red=True,
        baseline={"lacking": 8},
        # No room is exceeded: four records go at once, and the count of arrivals decides when.
        causes=kinds("replaced"),
        repair=Repair(),
        lost={"replay": 24},
        gained={"replay": 8},
    ),
    Planted(
        name="soft-delete",
        memory=memories.SoftDelete,
        benchmark=own(data.write_ledger),
        depths=LOST,
        red=True,
        # Retained, but shown only without the arrival that marked it.
        causes=kinds("overwritten"),
        displaces=share_fact_and_be_older,
        repair=Repair(),
        lost={"replay": 24},
        gained={"replay": 0},
    ),
    Planted(
        name="soft-delete-unlisted",
        memory=memories.SoftDeleteUnlisted,
        benchmark=own(data.write_ledger),
        depths=LOST,
        red=True,
        causes=kinds("overwritten"),
        displaces=share_fact_and_be_older,
        repair=Repair(),
        lost={"replay": 24},
        gained={"replay": 0},
    ),
    Planted(
        name="similarity-eviction",
        memory=memories.SimilarityEviction,
        benchmark=own(data.write_twins),
        depths=LOST,
        red=True,
        causes=kinds("overwritten", "merged", "duplicate"),
        displaces=resemble,
        repair=Repair(),
        lost={"replay": 8},
        gained={"replay": 0},
    ),
    Planted(
        name="two-votes",
        memory=memories.TwoVotes,
        benchmark=own(data.write_ledger),
        depths=LOST,
        red=True,
        causes=kinds("joint", "overwritten"),
        displaces=share_fact_and_be_older,
        repair=Repair(),
        lost={"jitter:w=2": 0, "late-batch": 0.375, "replay": 8},
        gained={"replay": 0},
    ),
    Planted(
        name="one-bad-pool",
        memory=memories.BadForOneUser,
        benchmark=own(data.write_many_pools),
        depths=LOST,
        red=True,
        causes=kinds("overwritten"),
        displaces=share_fact_and_be_older,
        repair=Repair(),
        lost={"jitter:w=2": 0.5, "late-batch": 0.5, "replay": 1},
        gained={"replay": 0},
        slow=True,
    ),
)

ROOM = (
    Planted(
        name="least-recently-used",
        memory=memories.LeastRecentlyUsed,
        benchmark=own(data.write_mentions),
        depths=LOST,
        red=True,
        baseline={"lacking": 8},
        causes=kinds("full"),
        repair=Repair(),
        lost={"replay": 16},
        gained={"replay": 8},
    ),
    Planted(
        name="decay",
        memory=memories.Decay,
        benchmark=own(data.write_late_diary),
        depths=LOST,
        red=True,
        causes=kinds("full"),
        repair=Repair(),
        lost={"replay": 16},
        gained={"replay": 0},
    ),
    Planted(
        name="gains-only",
        memory=memories.LastFive,
        benchmark=own(data.write_sixty),
        options={"schedules": ("replay",)},
        depths=MOVES,
        baseline={"lacking": 59},
        causes=kinds("full"),
        repair=Repair(),
        lost={"replay": 1},
        gained={"replay": 59},
    ),
    Planted(
        name="says-full",
        memory=memories.SaysFull,
        benchmark=own(data.write_diary),
        depths=MOVES,
        baseline={"lacking": 24},
        causes=kinds("full", "refused"),
        repair=Repair(),
        lost={"replay": 24},
        gained={"replay": 24},
    ),
    Planted(
        name="raises-full",
        memory=memories.RaisesFull,
        benchmark=own(data.write_diary),
        **NOTHING,
        open_counts=frozenset(("lacking", "never_kept", "never_shown")),
        repair=Repair(required=False, never=SORTING),
    ),
    Planted(
        name="refuses-late",
        memory=memories.RefusesLate,
        benchmark=own(data.write_late_diary),
        depths=LOST,
        red=True,
        causes=kinds("late"),
        displaces=be_newer,
        repair=Repair(),
        lost={"replay": 24},
        gained={"replay": 0},
    ),
)

EXPOSURES = (
    Planted(
        name="summary-by-arrival",
        memory=memories.SummaryByArrival,
        benchmark=own(data.write_diary),
        depths=TEXT,
        causes=kinds("rewritten"),
        repair=Repair(required=False),
    ),
    Planted(
        name="first-seen-name",
        memory=memories.FirstSeenName,
        benchmark=own(data.write_names),
        depths=TEXT,
        causes=kinds("rewritten"),
        repair=Repair(required=False),
    ),
    Planted(
        name="ties-by-arrival",
        memory=memories.TiesByArrival,
        benchmark=own(data.write_ties),
        depths=LOST,
        red=True,
        causes=kinds("tie"),
        repair=Repair(required=False),
        lost={"replay": 8},
        gained={"replay": 0},
    ),
    Planted(
        name="shows-last-three",
        memory=memories.ShowsLastThree,
        benchmark=own(data.write_late_diary),
        depths=LOST,
        red=True,
        baseline={"lacking": 8},
        causes=kinds("ranking"),
        repair=Repair(required=False),
        lost={"replay": 24},
        gained={"replay": 0},
        # The fourth record is among the last three in no order but those with much disorder.
        open_counts=frozenset(("never_shown",)),
    ),
    Planted(
        name="cuts-at-budget",
        memory=memories.CutsAtBudget,
        benchmark=own(data.write_early_diary),
        depths=LOST,
        red=True,
        causes=kinds("budget", "ranking"),
        repair=Repair(required=False),
        lost={"replay": 24},
        gained={"replay": 0},
    ),
    Planted(
        name="cannot-find",
        memory=memories.CannotFind,
        benchmark=own(data.write_diary),
        depths=STABLE,
        red=None,
        baseline={"lacking": 16, "never_shown": 16},
        causes=kinds("not retrievable"),
        repair=Repair(required=False, never=SORTING),
    ),
    Planted(
        name="shows-nothing",
        memory=memories.ShowsNothing,
        benchmark=own(data.write_diary),
        **NOTHING,
        baseline={"lacking": 64, "never_shown": 64},
        causes=kinds("not retrievable"),
        repair=Repair(required=False, never=SORTING),
    ),
    Planted(
        name="without-sources",
        memory=memories.WithoutSources,
        benchmark=own(data.write_diary),
        depths=at("text only", "different records"),
        inconclusive=True,
        open_counts=frozenset(("lacking", "never_kept", "never_shown")),
        causes=kinds("order of blocks", "rewritten", "ranking", "untested"),
        repair=Repair(required=False),
    ),
)

NEVER = (
    Planted(
        name="adds-nothing",
        memory=memories.AddsNothing,
        benchmark=own(data.write_diary),
        **NOTHING,
        baseline={"lacking": 64, "never_kept": 64},
        open_counts=frozenset(("never_shown",)),
        causes=kinds("never kept"),
        repair=Repair(required=False, never=SORTING),
    ),
    Planted(
        name="lossy-adapter",
        memory=memories.LossyAdapter,
        benchmark=own(data.write_prices),
        depths=STABLE,
        red=None,
        baseline={"lacking": 16, "never_kept": 16},
        open_counts=frozenset(("never_shown",)),
        causes=kinds("never kept"),
        repair=Repair(never=SORTING),
    ),
    Planted(
        name="refuses-prices",
        memory=memories.RefusesPrices,
        benchmark=own(data.write_prices),
        depths=STABLE,
        red=None,
        baseline={"lacking": 16, "never_kept": 16},
        open_counts=frozenset(("never_shown",)),
        causes=kinds("refused"),
        repair=Repair(never=SORTING),
    ),
    Planted(
        name="oldest-wins",
        memory=memories.OldestWins,
        benchmark=own(data.write_ledger),
        depths=STABLE,
        red=True,
        baseline={"lacking": 24, "outdated": 24},
        open_counts=frozenset(("never_kept", "never_shown")),
        causes=kinds("late", "duplicate", "overwritten"),
        displaces=lambda record, by: share_fact_and_be_older(record, by),
        repair=Repair(never=SORTING),
    ),
    Planted(
        name="first-arrival-wins",
        memory=memories.FirstArrivalWins,
        benchmark=own(data.write_ledger),
        depths=MOVES,
        red=None,
        baseline={"lacking": 24},
        open_counts=frozenset(("outdated", "never_kept", "never_shown")),
        causes=kinds("duplicate", "overwritten"),
        displaces=share_fact,
        repair=Repair(never=SORTING - {"hold"}),
        lost={"replay": 0},
        gained={"replay": 24},
    ),
    Planted(
        name="old-after-rebuilding",
        memory=memories.FirstArrivalWins,
        benchmark=own(data.write_newest_first),
        depths=LOST,
        red=True,
        causes=kinds("duplicate", "overwritten"),
        displaces=share_fact_and_be_older,
        repair=Repair(never=SORTING - {"hold"}),
        lost={"replay": 24},
        gained={"replay": 0},
    ),
    Planted(
        name="shows-by-chance",
        memory=memories.ShowsByChance,
        benchmark=own(data.write_diary),
        options={"builds": 3},
        depths=frozenset(DEPTHS[:5]),
        inconclusive=True,
        open_counts=frozenset(("lacking", "never_kept", "never_shown")),
        repair=Repair(required=False),
    ),
)

OVERLAPPING = {"benchmark": own(data.write_pairs), "options": {"schedules": (OVERLAP,)}}
WRITES = (
    Planted(
        name="torn-writes",
        memory=memories.TornWrites,
        **OVERLAPPING,
        depths=at("stable", "internal only"),
        red=True,
        promises=frozenset(("torn",)),
        repair=Repair(required=False),
    ),
    Planted(
        name="lost-updates",
        memory=memories.LostUpdates,
        **OVERLAPPING,
        depths=at("stable", "different records", "evidence moves", "evidence lost"),
        red=True,
        promises=frozenset(("lost",)),
        repair=Repair(required=False),
    ),
    Planted(
        name="duplicated-writes",
        memory=memories.DuplicatedWrites,
        **OVERLAPPING,
        depths=at("stable", "different records"),
        red=True,
        promises=frozenset(("duplicated",)),
        repair=Repair(required=False),
    ),
    Planted(
        name="serial-window",
        memory=memories.SerialWindow,
        **OVERLAPPING,
        # Other records than in source order, as in some serial order: no fault, no evidence lost.
        depths=at("stable", "internal only", "text only", "different records"),
    ),
)

SOUND = (
    Planted(
        name="sorted-set", memory=memories.SortedSet, benchmark=own(data.write_diary), depths=STABLE
    ),
    Planted(
        name="newest-of-fact",
        memory=memories.NewestOfFact,
        benchmark=own(data.write_ledger),
        depths=STABLE,
    ),
    Planted(
        name="ranks-by-words",
        memory=memories.RanksByWords,
        benchmark=own(data.write_diary),
        depths=STABLE,
    ),
    Planted(
        name="keyed-by-time",
        memory=memories.KeyedByTime,
        benchmark=own(data.write_diary),
        depths=STABLE,
    ),
    Planted(
        name="summary-by-time",
        memory=memories.SummaryByTime,
        benchmark=own(data.write_diary),
        depths=STABLE,
    ),
    Planted(
        name="newest-four",
        memory=memories.NewestFour,
        benchmark=own(data.write_newest_diary),
        depths=STABLE,
    ),
    Planted(
        name="word-counts",
        memory=memories.WordCounts,
        benchmark=own(data.write_diary),
        depths=STABLE,
    ),
    Planted(
        name="skips-copies",
        memory=memories.SkipsCopies,
        benchmark=own(data.write_diary),
        options={"schedules": ("replay", "redeliver:copies=3")},
        depths=STABLE,
    ),
    Planted(
        name="async-with-lock",
        memory=memories.AsyncWithLock,
        benchmark=own(data.write_ledger),
        depths=STABLE,
    ),
    Planted(
        name="async-with-lock-overlapping",
        memory=memories.AsyncWithLock,
        **OVERLAPPING,
        depths=STABLE,
    ),
)

ZOO = (*PLANTED, *OVERWRITES, *ROOM, *EXPOSURES, *NEVER, *WRITES, *SOUND)
BY_NAME = {planted.name: planted for planted in ZOO}
assert len(BY_NAME) == len(ZOO)
