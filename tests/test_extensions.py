"""A stranger's schedule, interface, judge, benchmark, model and policy work in all three ways.

An object in Python, `package.module:Name` on the command line, and a name that an installed package
registers as an entry point.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError

MODULE = '''
"""A package that knows RoutePrism's contracts and nothing else of it."""
from dataclasses import dataclass, replace

from routeprism import Benchmark, Block, Exposure, Schedule, load_benchmark
from routeprism.answers import Verdict
from routeprism.models import Reply
from routeprism.models.reader import Reader


def _rotated(size, user, records):
    return (*range(1, size), *range(1)) if size else ()


rotated = Schedule("rotated", _rotated)


def shifted(by: int = 1) -> Schedule:
    """Every record arrives some places earlier."""
    return Schedule("shifted", Shift(by))


@dataclass(frozen=True)
class Shift:
    by: int

    def __call__(self, size, user, records):
        return tuple((at + self.by) % size for at in range(size))


@dataclass(frozen=True)
class Headlines:
    """The first words of every retained record."""

    words: int = 4
    display: str = "source"

    @property
    def name(self):
        return f"headlines:words={self.words}"

    def open(self, arrivals, retained):
        shown = sorted(retained, key=lambda record: record.position)
        blocks = tuple(map(self.block, shown))
        return lambda query: Exposure(blocks)

    def block(self, record):
        words = record.user_text.split()[: self.words]
        return Block("record", " ".join(words), frozenset([record.id]))

    def too_long(self, record):
        return False


class Lenient:
    """Every answer with a word in it is right."""

    name = "lenient"
    embedded = False

    def judge(self, question, gold, response, kind):
        return Verdict(bool(response.strip()))


def without_options(question):
    gold = question.options["abcd".index(question.gold)]
    return replace(question, options=(), gold=gold)


def few(data=None, users: int = 2) -> Benchmark:
    """The first users of the sample, without options."""
    sample = load_benchmark("sample")
    cases = []
    for case in sample.cases[:users]:
        questions = tuple(map(without_options, case.questions))
        cases.append(replace(case, questions=questions))
    return replace(sample, name="few", cases=tuple(cases))


class Second(Reader):
    """The embedded reader under a name of its own."""

    name = "second"


class Last:
    """A memory of one record."""

    records = ()

    def add(self, record):
        self.records = (record,)

    def retained(self):
        return [record.id for record in self.records]

    def expose(self, query):
        return self.records
'''
ENTRY_POINTS = """\
[routeprism.schedules]
shifted = stranger:shifted
[routeprism.interfaces]
headlines = stranger:Headlines
[routeprism.judges]
lenient = stranger:Lenient
[routeprism.benchmarks]
few = stranger:few
[routeprism.models]
second = stranger:Second
[routeprism.policies]
last = stranger:Last
"""


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An installed package: a module, and the metadata that registers its objects."""
    site = tmp_path / "site"
    metadata = site / "stranger-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "stranger.py").write_text(MODULE, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    import importlib

    importlib.invalidate_caches()
    yield importlib.import_module("stranger")
    del sys.modules["stranger"]


NAMES = {
    "-s": ("shifted:by=2", "stranger:rotated"),
    "--interface": ("headlines:words=6", "stranger:Headlines:words=6"),
    "--judge": ("lenient", "stranger:Lenient"),
    "-m": ("second", "stranger:Second"),
    "-p": ("last", "stranger:Last"),
}


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(0, id="entry point"),
        pytest.param(1, id="package.module:Name", marks=pytest.mark.slow),
    ],
)
def test_every_extension_works_on_the_command_line(
    stranger: Any, cli: Callable[..., Any], way: int
) -> None:
    words = [word for option, names in NAMES.items() for word in (option, names[way])]
    benchmark = ("few:users=3", "stranger:few:users=3")[way]
    whole = ("-p", "recent:k=2")
    audited = cli(
        "audit", benchmark, *whole, *words, "--json", "--run", "run", "--resamples", "100"
    )
    assert audited.code == 0, audited.err
    rows = json.loads(audited.out)["estimates"]
    assert {row["schedule"] for row in rows if row["quantity"] == "J"} == {NAMES["-s"][way]}
    assert {row["benchmark"] for row in rows} == {"few"}
    assert {row["interface"] for row in rows if row["policy"] == "recent:k=2"} >= {
        "headlines:words=6"
    }
    assert {row["model"] for row in rows} == {"", "second"}
    assert {row["judge"] for row in rows} == {"", "lenient"}
    assert NAMES["-p"][way] in {row["policy"] for row in rows}
    right = [row for row in rows if row["quantity"] == "accuracy.route" and row["stratum"] == "all"]
    assert right
    assert all(row["estimate"] == 1 for row in right)  # the judge is lenient
    assert cli("check", "run", "--gate", "J>=0").code == 0


def test_every_extension_works_as_an_object(stranger: Any) -> None:
    audited = routeprism.audit(
        stranger.few(users=3),
        "recent:k=2",
        stranger.Last,
        schedules=[stranger.shifted(by=2)],
        interface=stranger.Headlines(words=6),
        models=[stranger.Second()],
        judge=stranger.Lenient(),
        resamples=100,
    )
    row = audited.value("J", policy="recent:k=2")
    assert (row.schedule, row.interface) == ("shifted", "headlines:words=6")
    assert audited.value("accuracy.route", policy="Last", mask="", arm="").judge == "lenient"


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ("schedules", ["shifted", "package.module:Name"]),
        ("interfaces", ["headlines", "package.module:Name"]),
        ("judges", ["embedded", "lenient", "package.module:Name"]),
        ("benchmarks", ["few", "package.module:Name"]),
        ("models", ["second", "package.module:Name"]),
    ],
)
def test_every_extension_is_listed(
    stranger: Any, cli: Callable[..., Any], subject: str, names: list[str]
) -> None:
    document = json.loads(cli("list", subject, "--json").out)
    assert document["package.module:Name"].endswith(f"{subject[:-1]} of your own.")
    assert set(names) <= {name.partition(":by=")[0].partition(":words=")[0] for name in document}


def test_what_is_listed_is_described_by_its_own_docstring(
    stranger: Any, cli: Callable[..., Any]
) -> None:
    benchmarks = json.loads(cli("list", "benchmarks", "--json").out)
    assert benchmarks["few"] == "The first users of the sample, without options."
    assert benchmarks["locomo"].startswith("LoCoMo: long two-person conversations")
    schedules = json.loads(cli("list", "schedules", "--json").out)
    assert schedules["shifted:by=…"] == "Every record arrives some places earlier."
    interfaces = json.loads(cli("list", "interfaces", "--json").out)
    assert interfaces["package.module:Name"] == "An interface of your own."


@pytest.mark.slow
def test_the_next_step_for_a_registered_memory_is_a_command(
    stranger: Any, cli: Callable[..., Any]
) -> None:
    audited = cli("audit", "sample", "-p", "last", "--resamples", "100")
    assert "Next: routeprism audit sample --policy '" in audited.out and "(last)'\n" in audited.out
    own = routeprism.audit("sample", stranger.Last, resamples=100)
    assert "call remedies() of this result" in {statement.next_step for statement in own.statements}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-s", "shiftd"), "There is no schedule 'shiftd'. Did you mean 'shifted'?"),
        (("-s", "stranger:few"), "Expected a routeprism.Schedule, or a function that returns one"),
        (
            ("--interface", "headline"),
            "There is no interface 'headline'. Did you mean 'headlines'?",
        ),
        (("--interface", "stranger:Last"), "'stranger:Last' is not an interface: it has no 'name'"),
        (("-m", "reader", "--judge", "stranger:Last"), "'stranger:Last' is not a judge"),
        (("-m", "secnd"), "There is no model 'secnd'. Did you mean 'second'?"),
    ],
)
def test_what_is_no_extension_is_refused(
    stranger: Any, cli: Callable[..., Any], words: tuple[str, ...], message: str
) -> None:
    refused = cli("audit", "sample", "-p", "recent:k=2", *words)
    assert refused.code == 2
    assert message in refused.err


def test_a_loader_that_gives_something_else_is_refused(stranger: Any) -> None:
    with pytest.raises(SpecError, match="Expected a Benchmark from the loader 'stranger:shifted'"):
        routeprism.load_benchmark("stranger:shifted")


def test_the_public_names_are_there() -> None:
    names = {"Model", "Schedule", "Interface", "Record", "Question", "Benchmark", "Block"}
    assert names <= set(routeprism.__all__)
    errors = {
        name
        for name, value in vars(routeprism.errors).items()
        if isinstance(value, type) and issubclass(value, routeprism.RoutePrismError)
    }
    assert {"RoutePrismError", "InputError", "LimitError"} <= errors <= set(routeprism.__all__)
    assert all(getattr(routeprism, name) is not None for name in routeprism.__all__)
