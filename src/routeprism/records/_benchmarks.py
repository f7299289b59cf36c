"""Records, pools, questions, cases and benchmarks, and benchmarks restricted to some questions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar, overload

from routeprism.errors import InputError, SpecError, nearest
from routeprism.records._times import check_supersedes

T = TypeVar("T")

# With the line break before it, a marker begins with two fixed characters: those are found fast.
_ROLE = re.compile(r"\n\[(system|user|assistant)\][ \t]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of a record."""

    role: str
    """Who speaks, in lower case: `user`, `assistant`, `system`, or a speaker's name."""
    text: str
    """The text, without the role marker."""


@dataclass(frozen=True, slots=True)
class Record:
    """One source of a pool: what a memory receives, one after the other."""

    id: str
    """The stable source identifier."""
    position: int
    """The zero-based source position in its pool."""
    text: str
    """The whole serialised text, all roles."""
    timestamp: str | None = None
    """The date as the benchmark writes it, if it has one."""
    spoken: tuple[Turn, ...] = ()
    """The turns, where they were given apart from the text; else they are read from its markers."""
    _derived: dict[Callable[[Record], Any], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise InputError(f"Expected a non-blank string but got id={self.id!r}", field="id")
        if self.position < 0:
            raise InputError(
                f"Expected a position of 0 or more but got position={self.position}",
                field="position",
            )
        if not isinstance(self.text, str) or not self.text.strip():
            raise InputError(
                f"record '{self.id}' has no text; give it some or leave it out", field="text"
            )

    @classmethod
    def from_turns(
        cls, id: str, position: int, turns: Sequence[Turn], *, timestamp: str | None = None
    ) -> Record:
        """Make a record from turns; its text is `[ROLE] words` blocks with blank lines between."""
        text = "\n\n".join([f"[{turn.role.upper()}] {turn.text}" for turn in turns])
        if not any(turn.text.strip() for turn in turns):
            text = ""
        return cls(id, position, text, timestamp, tuple(turns))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns; one without a role where the text has no marker."""
        return self.spoken or self.derive(_read_turns)

    @property
    def user_text(self) -> str:
        """What lexical decisions read: user turns joined by two newlines (Appendix D.4).

        A record without any user turn counts with its whole stripped text.
        """
        return self.derive(_user_text)

    def derive(self, function: Callable[[Record], T]) -> T:
        """Return `function(self)`, computed once for as long as this record lives."""
        try:
            value: T = self._derived[function]
        except KeyError:
            value = self._derived[function] = function(self)
        return value

    def has_derived(self, function: Callable[[Record], Any]) -> bool:
        """Return whether `function(self)` was derived already."""
        return function in self._derived

    def at(self, position: int) -> Record:
        """Return this record at another position, made once: what is derived from it stays."""
        if position == self.position:
            return self
        copies = self.derive(_start_copies)
        if position not in copies:
            copies[position] = replace(self, position=position)
        return copies[position]

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what was derived; it is derived again where it arrives."""
        return Record, (self.id, self.position, self.text, self.timestamp, self.spoken)


def _start_copies(record: Record) -> dict[int, Record]:
    return {}


def _read_turns(record: Record) -> tuple[Turn, ...]:
    pieces = _ROLE.split(f"\n{record.text}")
    if len(pieces) == 1:
        return (Turn("", record.text.strip()),)
    head = (Turn("", pieces[0].strip()),) if pieces[0].strip() else ()
    marked = zip(pieces[1::2], pieces[2::2], strict=True)
    return head + tuple(Turn(role.lower(), text.strip()) for role, text in marked)


def _user_text(record: Record) -> str:
    texts = [turn.text for turn in record.turns if turn.role == "user"]
    return "\n\n".join(texts) if texts else record.text.strip()


@dataclass(frozen=True, slots=True)
class Pool:
    """All records of one user, in source order."""

    user: str
    """Whose records these are; the unit of resampling."""
    records: tuple[Record, ...]
    """The records; a record's index is its source position."""

    def __post_init__(self) -> None:
        if not self.records:
            raise InputError(f"the pool of user '{self.user}' is empty: it has no records")
        ids: set[str] = set()
        for index, record in enumerate(self.records):
            if record.position != index:
                raise InputError(
                    f"Expected position={index} but got position={record.position} "
                    f"for record '{record.id}' of user '{self.user}'",
                    field="position",
                )
            if record.id in ids:
                raise InputError(
                    f"user '{self.user}' has two records with the id '{record.id}'", field="id"
                )
            ids.add(record.id)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def ids(self) -> tuple[str, ...]:
        """The records' ids in source order."""
        return tuple(record.id for record in self.records)


def normalise(text: str) -> str:
    """Fold case, accents' encoding, punctuation, articles and white space, for comparing texts."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = re.sub(r"[^\w\s]", " ", folded.replace("'", "").replace("’", "")).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))


def letters(count: int) -> tuple[str, ...]:
    """Return the option letters a, b, c, … of a question with this many options."""
    return tuple(chr(ord("a") + index) for index in range(count))


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a pool. Only its text ever reaches a memory."""

    id: str
    """Unique in its benchmark."""
    user: str
    """The user whose pool the question is about."""
    text: str
    """The text that a memory is asked: the question alone, without options."""
    options: tuple[str, ...] = ()
    """Answer options, without their letters; empty for a free-text question."""
    gold: str | None = None
    """The right option's letter, or the right answer's text; None where it is not known."""
    kind: str = ""
    """The stratum it is reported in."""
    detail: str = ""
    """The benchmark's own, finer type."""
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    """Support by label source (`benchmark`, `reference-session`, `audited:NAME`): record ids."""
    date: str | None = None
    """The day it is asked, as the benchmark writes it, if it has one."""
    stale: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    """Outdated evidence by label source: ids of records whose value a later record replaced."""
    outdated: tuple[str, ...] = ()
    """Answers that were once right: letters of options, or texts for a free-text question."""

    def __post_init__(self) -> None:
        if not self.id.strip():
            raise InputError(f"Expected a non-blank string but got id={self.id!r}", field="id")
        if not self.text.strip():
            raise InputError(f"question '{self.id}' has no text", field="text")
        if self.options and len(self.options) > 26:
            raise InputError(
                f"question '{self.id}' has {len(self.options)} options; at most 26 have letters",
                field="options",
            )
        if self.options and self.gold is not None and self.gold not in letters(len(self.options)):
            raise InputError(
                f"question '{self.id}': gold={self.gold!r} is none of its option letters "
                f"{', '.join(letters(len(self.options)))}",
                field="gold",
            )
        self._check_times()

    def _check_times(self) -> None:
        """Refuse labels by which the same thing is right and outdated."""
        for source, ids in self.stale.items():
            if both := sorted(ids & self.labels.get(source, frozenset())):
                raise InputError(
                    f"question '{self.id}' ({source}) names the record '{both[0]}' as current and "
                    f"as outdated evidence",
                    field="stale",
                )
        if any(not answer.strip() for answer in self.outdated):
            raise InputError(
                f"question '{self.id}': an outdated answer is blank; leave it out", field="outdated"
            )
        if self.gold is not None and self.is_outdated(self.gold):
            raise InputError(
                f"question '{self.id}': the right answer {self.gold!r:.60} cannot be outdated",
                field="outdated",
            )
        unknown = set(self.outdated) - set(letters(len(self.options)))
        if self.options and unknown:
            raise InputError(
                f"question '{self.id}': outdated={min(unknown)!r:.60} is none of its option "
                f"letters {', '.join(letters(len(self.options)))}",
                field="outdated",
            )

    def is_outdated(self, answer: str) -> bool:
        """Whether an answer was once right; texts may differ in case, articles and punctuation."""
        if self.options:
            return answer in self.outdated
        return normalise(answer) in map(normalise, self.outdated)

    @property
    def duplicate_options(self) -> bool:
        """Whether two options have the same text after whitespace normalisation (Appendix C.6)."""
        return len({" ".join(option.split()) for option in self.options}) < len(self.options)


@dataclass(frozen=True, slots=True)
class Case:
    """One pool and the questions asked of it: the piece of work that travels to a process."""

    pool: Pool
    questions: tuple[Question, ...]
    supersedes: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    """Record → the records whose statement it replaces: labels, which no policy is given."""

    def __post_init__(self) -> None:
        pool_ids = frozenset(self.pool.ids)
        for question in self.questions:
            if question.user != self.pool.user:
                raise InputError(
                    f"question '{question.id}' belongs to user '{question.user}', "
                    f"not to '{self.pool.user}'",
                    field="user",
                )
            for name, labels in (("support", question.labels), ("stale", question.stale)):
                for source, ids in labels.items():
                    if unknown := sorted(ids - pool_ids):
                        raise InputError(
                            f"question '{question.id}' ({source}) names the record "
                            f"'{unknown[0]}', which user '{self.pool.user}' does not have",
                            field=name,
                        )
        if self.supersedes:
            check_supersedes(self.pool.records, self.supersedes, self.pool.user)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A set of cases with its declared statistics and its fingerprint."""

    name: str
    """Its name in every output."""
    cases: Sequence[Case]
    """Pool by pool; a loader may make them when they are asked for."""
    fingerprint: str
    """SHA-256 of its content."""
    unit: str = "user"
    """What a pool is to the statistics: `user`, `question` or `conversation`; it is resampled."""
    weighting: Literal["unit", "question"] = "unit"
    """Whether units or questions count equally (PROTOCOL §6)."""
    arrivals: tuple[str, ...] = ("jitter:w=2", "late-batch")
    """Arrival models that an audit estimates by default, beside full reversal."""
    interval: Literal["expanded", "percentile", "bca", "studentised"] = "expanded"
    """How limits are read by default: `percentile` where they are next to
    printed ones, which were read that way (PROTOCOL §6; docs/statistics.md)."""
    interface: str = "budget"
    """The default interface of policies that keep whole records."""
    synthetic: bool = False
    """Whether its text was made by a generator."""
    labels: tuple[str, ...] = ()
    """The label sources its questions carry; the first is reported unless another is named."""
    updates: tuple[str, ...] = ()
    """The label sources under which its questions also have outdated evidence."""
    inputs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """SHA-256 of every input file, by name."""
    notes: tuple[str, ...] = ()
    """Notes of the loader for people who read the numbers."""
    licence: str = ""
    """Under which terms the data are used."""
    has_text: bool = True
    """Whether its records have words; without, only retained records can be measured."""
    directory: str = ""
    """The directory that it was read from, as it was given; empty for any other benchmark."""

    @property
    def argument(self) -> str:
        """The argument with which a command loads it again."""
        return self.directory or self.name

    def __post_init__(self) -> None:
        if not len(self.cases):
            raise InputError(f"benchmark '{self.name}' has no pools")


@dataclass(frozen=True, slots=True)
class LazyCases(Sequence[Case]):
    """A sequence that makes each case when it is requested, and stores none."""

    number: int
    make: Callable[[int], Case]
    """Makes the case at an index; picklable, if cases are processed in several processes."""

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(self.number)))
        at = index + self.number if index < 0 else index
        if not 0 <= at < self.number:
            raise IndexError(f"there are {self.number} cases, and no case {index}")
        return self.make(at)


def choose_cases(benchmark: Benchmark, order: Sequence[int]) -> Benchmark:
    """Choose some pools of a benchmark, in an order."""
    return replace(
        benchmark, cases=LazyCases(len(order), partial(_find_case, benchmark.cases, order))
    )


def _find_case(cases: Sequence[Case], order: Sequence[int], index: int) -> Case:
    return cases[order[index]]


def only_kinds(benchmark: Benchmark, kinds: Sequence[str]) -> Benchmark:
    """Restrict a benchmark to questions of these kinds; pools stay complete."""
    existing = {question.kind for case in benchmark.cases for question in case.questions}
    for kind in kinds:
        if kind not in existing:
            raise SpecError(
                f"benchmark '{benchmark.name}' has no questions of kind '{kind}'. "
                + nearest(kind, existing)
            )
    return _cut(benchmark, "kind", kinds)


def only_questions(benchmark: Benchmark, ids: Collection[str]) -> Benchmark:
    """Restrict a benchmark to these questions; pools stay complete."""
    return _cut(benchmark, "id", ids)


def _cut(benchmark: Benchmark, field: str, values: Collection[str]) -> Benchmark:
    select = partial(_select_questions, benchmark.cases, field, frozenset(values))
    return replace(benchmark, cases=LazyCases(len(benchmark.cases), select))


def _select_questions(
    cases: Sequence[Case], field: str, values: frozenset[str], index: int
) -> Case:
    case = cases[index]
    questions = tuple(question for question in case.questions if getattr(question, field) in values)
    return replace(case, questions=questions)
