"""The result of a study, as the Python functions return it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeprism.answers import Cost
from routeprism.errors import SpecError
from routeprism.exhibits import Results, Statement, make_card, shorten_lines
from routeprism.experiments._question_rows import list_questions
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, Finding, Rows, Shortfall

if TYPE_CHECKING:
    from routeprism.judge import Advice, Verdict


@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """The result of a study."""

    benchmark: str
    rows: Rows
    """Every number, as in `estimates.csv`."""
    statements: tuple[Statement, ...]
    """What the numbers show, policy by policy."""
    notes: tuple[str, ...]
    """What a reader of the numbers should know."""
    counts: Mapping[str, int]
    """Pools, records, questions."""
    directory: Path | None = None
    """Where the run is stored, if it is."""
    costs: Mapping[str, Cost] = field(default_factory=dict)
    """After a dry run: what each model would take."""
    findings: tuple[Finding, ...] = ()
    """Results of an experiment on orders about pools and questions, beyond single numbers."""
    tables: Mapping[str, Sequence[Sequence[object]]] = field(default_factory=dict, repr=False)
    """Rows of the store that the caller asked for, by table."""
    limits: str = ""
    """How the 95% limits of the rows were read, in words."""
    shortfall: Shortfall = field(default_factory=Shortfall)
    """Answers and routes that are missing, and why."""
    measure_repairs: Callable[[], Audit] | None = field(default=None, repr=False, compare=False)
    """Measures the standard repairs of the audited memories; None if they were not audited."""
    repeat: Callable[[Path], object] | None = field(default=None, repr=False, compare=False)
    """Repeats the study and stores it in a directory; None if it is stored already."""

    @classmethod
    def of_costs(cls, benchmark: Benchmark, costs: Mapping[str, Cost], **more: Any) -> Audit:
        """Return the result of a dry run."""
        return cls(benchmark.name, Rows(), (), benchmark.notes, {}, costs=costs, **more)

    @property
    def results(self) -> Results:
        """The rows and findings that tables and charts are made from."""
        return Results.of(self.rows, self.findings, incomplete=bool(self.shortfall))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The statements as texts."""
        return tuple(map(str, self.statements))

    def value(self, quantity: str, **where: str) -> EstimateRow:
        """Return the one row with this quantity and these columns; by default, stratum `all`."""
        return self.rows.one(quantity, **where)

    def to_pandas(self) -> Any:
        """Return every number as a pandas data frame with the columns of `estimates.csv`."""
        return self.rows.to_pandas()

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each memory."""
        from routeprism.judge import judge

        return judge(self.results)

    @property
    def verdict(self) -> str:
        """The most severe level of all memories, marked while incomplete; empty without any."""
        from routeprism.judge import LEVELS

        verdicts = sorted(self.verdicts, key=lambda verdict: -LEVELS.index(verdict.level))
        return verdicts[0].label if verdicts else ""

    def remedies(self) -> list[Advice]:
        """Return the repair that each memory should get.

        After `routeprism.audit` this measures the standard repairs first, as `routeprism.remedy`
        does, on the same records and orders of arrival. No model is asked.
        """
        from routeprism.judge import choose_repair

        if self.results.findings.get("repair") or self.measure_repairs is None:
            advice = (choose_repair(verdict, self.results) for verdict in self.verdicts)
            return [each for each in advice if each is not None]
        return self.measure_repairs().remedies()

    def questions(self) -> list[dict[str, Any]]:
        """Return one row for each question with the records and the accuracy of each order.

        `pandas.DataFrame(result.questions())` makes a data frame. An audit that is not stored is
        repeated for it, unless that would cost money or the memory differs by chance.
        """
        with self._stored_run() as directory:
            return list_questions(directory)

    def report(self, path: Path | str) -> Path:
        """Write the report of the run to a file; an audit that is not stored is repeated for it."""
        # The report package is above this one, so it is not imported with it.
        pages: Any = import_module("routeprism.report")
        with self._stored_run() as directory:
            page: Path = pages.write_report(directory, Path(path))
            return page

    @contextmanager
    def _stored_run(self) -> Iterator[Path]:
        """Provide the directory of the run, for a moment if it is not stored."""
        if self.directory is not None:
            yield self.directory
            return
        if self.repeat is None:
            raise SpecError("The run is not stored: pass run='DIRECTORY' to the function")
        with tempfile.TemporaryDirectory() as directory:
            self.repeat(Path(directory) / "run")
            yield Path(directory) / "run"

    def _list_lines(self) -> Iterator[str]:
        """List the verdict on each memory with all that explains it, then further statements."""
        from routeprism.judge import EXPLAINED, explain_verdict

        verdicts = self.verdicts
        for verdict in verdicts:
            yield str(verdict)
            _, *phrases = explain_verdict(verdict)
            yield from (f"  {''.join(map(str, phrase))}" for phrase in phrases)
        yield from (str(s) for s in self.statements if not verdicts or s.kind not in EXPLAINED)

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        lines = [f"{self.benchmark}: {counts}", *self._list_lines(), self.limits]
        lines += [f"Note: {note}" for note in self.notes]
        return shorten_lines(lines, "sentences and notes")

    def __repr__(self) -> str:
        parts = filter(None, (self.verdict, f"{len(self.rows)} numbers"))
        return f"<Audit of {self.benchmark}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Show the verdict of each memory as a short card in a notebook."""
        from routeprism.judge import tabulate_memories

        tables = tabulate_memories(self.verdicts)
        rows = [list(table.columns) for table in tables]
        rows += [[str(cell) for cell in row] for table in tables for row in table.rows]
        lines = [line.strip() for line in self._list_lines()]
        return make_card(self.benchmark, lines, rows[: _MOST_MEMORIES + 1], most=_MOST_SENTENCES)


_MOST_SENTENCES = 12
"""How many sentences a card shows."""
_MOST_MEMORIES = 10
"""How many memories, or orders of a single one, a card shows."""
