"""The nouns: what goes into an audit, frozen and validated when made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from routeprism.errors import InputError

__all__ = ["Benchmark", "Case", "Pool", "Question", "Record", "Turn", "letters"]

T = TypeVar("T")

_ROLE = re.compile(r"^\[(system|user|assistant)\][ \t]*", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of a record."""

    role: str
    """Who speaks, in lower case: `user`, `assistant`, `system`, or a speaker's name."""
    text: str
    """What was said, without the role marker."""


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
        if not self.id or not isinstance(self.id, str):
            raise InputError(f"Expected a non-empty string but got id={self.id!r}", field="id")
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
        """Give `function(self)`, computed once for as long as this record lives."""
        try:
            value: T = self._derived[function]
        except KeyError:
            value = self._derived[function] = function(self)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what was derived; it is derived again where it arrives."""
        return Record, (self.id, self.position, self.text, self.timestamp, self.spoken)


def _read_turns(record: Record) -> tuple[Turn, ...]:
    pieces = _ROLE.split(record.text)
    if len(pieces) == 1:
        return (Turn("", record.text.strip()),)
    head = (Turn("", pieces[0].strip()),) if pieces[0].strip() else ()
    marked = zip(pieces[1::2], pieces[2::2], strict=True)
    return head + tuple(Turn(role.lower(), text.strip()) for role, text in marked)


def _user_text(record: Record) -> str:
    said = [turn.text for turn in record.turns if turn.role == "user"]
    return "\n\n".join(said) if said else record.text.strip()


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
        seen: set[str] = set()
        for index, record in enumerate(self.records):
            if record.position != index:
                raise InputError(
                    f"Expected position={index} but got position={record.position} "
                    f"for record '{record.id}' of user '{self.user}'",
                    field="position",
                )
            if record.id in seen:
                raise InputError(
                    f"user '{self.user}' has two records with the id '{record.id}'", field="id"
                )
            seen.add(record.id)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def ids(self) -> tuple[str, ...]:
        """The records' ids in source order."""
        return tuple(record.id for record in self.records)


def letters(count: int) -> tuple[str, ...]:
    """Give the option letters a, b, c, … of a question with so many options."""
    return tuple(chr(ord("a") + index) for index in range(count))


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a pool. Only its text ever reaches a memory."""

    id: str
    """Unique in its benchmark."""
    user: str
    """Whose pool it is asked of."""
    text: str
    """What exposure is asked: the question alone, without options."""
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

    def __post_init__(self) -> None:
        if not self.id:
            raise InputError("Expected a non-empty string but got id=''", field="id")
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

    @property
    def duplicate_options(self) -> bool:
        """Whether two options have the same text after whitespace normalisation (Appendix C.6)."""
        return len({" ".join(option.split()) for option in self.options}) < len(self.options)


@dataclass(frozen=True, slots=True)
class Case:
    """One pool and the questions asked of it: the piece of work that travels to a process."""

    pool: Pool
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        known = frozenset(self.pool.ids)
        for question in self.questions:
            if question.user != self.pool.user:
                raise InputError(
                    f"question '{question.id}' belongs to user '{question.user}', "
                    f"not to '{self.pool.user}'",
                    field="user",
                )
            for source, ids in question.labels.items():
                if unknown := sorted(ids - known):
                    raise InputError(
                        f"question '{question.id}' ({source}) names the record '{unknown[0]}', "
                        f"which user '{self.pool.user}' does not have",
                        field="support",
                    )


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A set of cases with its declared statistics and its fingerprint."""

    name: str
    """What it is called in every output."""
    cases: Sequence[Case]
    """Pool by pool; a loader may make them when they are asked for."""
    fingerprint: str
    """SHA-256 of its content."""
    unit: str = "user"
    """What a pool is to the statistics: `user`, `question` or `conversation`; it is resampled."""
    weighting: Literal["unit", "question"] = "unit"
    """Whether units or questions count equally (PROTOCOL §6)."""
    interval: Literal["expanded", "percentile", "bca", "studentised"] = "expanded"
    """How limits are read unless the user says otherwise: `percentile` where they stand beside
    printed ones, which were read that way (PROTOCOL §6; docs/statistics.md)."""
    interface: str = "budget"
    """What whole-record policies expose through, unless the user says otherwise."""
    synthetic: bool = False
    """Whether its text was made by a generator."""
    labels: tuple[str, ...] = ()
    """The label sources its questions carry; the first is reported unless another is named."""
    inputs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """SHA-256 of every input file, by name."""
    notes: tuple[str, ...] = ()
    """What the loader found that a reader of the numbers should know."""
    licence: str = ""
    """Under which terms the data are used."""
    has_text: bool = True
    """Whether its records have words; without, only what is retained can be told."""

    def __post_init__(self) -> None:
        if not len(self.cases):
            raise InputError(f"benchmark '{self.name}' has no pools")
