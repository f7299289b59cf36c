"""Own classes: what they declare is honoured, what they raise is reported in their frames."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism import Block, Exposure, Record
from routeprism.errors import ContractError, OwnCodeError, SpecError
from routeprism.landscape import explore
from routeprism.orders import parse_schedule
from routeprism.policies import as_policy, is_deterministic, make_policy
from routeprism.records import Case, Pool, Question
from routeprism.routes import Route, trace_case
from routeprism.routes.conformance import check_adapter

POOL = Pool("ann", tuple(Record(f"r{at}", at, f"[USER] Words number {at}.") for at in range(4)))
CASE = Case(POOL, (Question("q1", "ann", "Which words?"),))

MODULE = """
import sys


class Plain:
    def __init__(self):
        self.records = []

    def add(self, record):
        self.records.append(record)

    def retained(self):
        return [record.id for record in self.records]

    def expose(self, query):
        return self.records


class Adds(Plain):
    def add(self, record):
        if record.position == 2:
            self.look_up(record)
        super().add(record)

    def look_up(self, record):
        raise KeyError("colour")


class Exits(Plain):
    def expose(self, query):
        sys.exit(0)


class Sized(Plain):
    def __init__(self, k=None, size=3, share=0.5, word="a"):
        super().__init__()
        self.settings = (k, size, share, word)


class Builds:
    name = "builds"

    def build(self, arrivals):
        for one in arrivals:
            raise ValueError("not this one")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a directory with a module of the user's own, importable."""
    file = tmp_path / "own_classes.py"
    file.write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield file
    sys.modules.pop("own_classes", None)


class Plain:
    """Keeps everything."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def retained(self) -> Any:
        return [record.id for record in self.records]

    def expose(self, query: str) -> Any:
        return self.records


def trace(policy: Any) -> tuple[Route, ...]:
    return trace_case(CASE, [as_policy(policy)], [parse_schedule("replay")])


# --- what is raised ----------------------------------------------------------------------------


def test_an_exception_names_policy_user_order_record_and_the_owners_frames(own: Path) -> None:
    with pytest.raises(OwnCodeError) as raised:
        routeprism.audit("sample", "own_classes:Adds", resamples=100)
    assert str(raised.value).splitlines() == [
        "own_classes:Adds, user 'u01', order forward, in add(), record 'u01-r2' raised KeyError: "
        "'colour'",
        f'  File "{own}", line 22, in add',
        "    self.look_up(record)",
        f'  File "{own}", line 26, in look_up',
        '    raise KeyError("colour")',
    ]
    repetition = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 (it travels between processes)
    assert (str(repetition), repetition.frames) == (str(raised.value), raised.value.frames)


def test_a_policy_names_the_record_it_was_at(own: Path) -> None:
    with pytest.raises(OwnCodeError, match=r"^builds, .*, in build\(\), record 'u01-r0' raised V"):
        routeprism.audit("sample", "own_classes:Builds", resamples=100)


@pytest.mark.slow
@pytest.mark.parametrize("command", [["audit"], ["orders", "--worst", "J"]])
def test_leaving_the_program_inside_a_memory_is_an_error(
    own: Path, cli: Callable[..., Any], command: list[str]
) -> None:
    verb, *more = command
    ended = cli(verb, "sample", "-p", "own_classes:Exits", "--resamples", "100", *more)
    assert ended.code == 2
    assert ", in expose(), question 'u01-q0' raised SystemExit(0), which would have" in ended.err


def test_the_command_line_shows_no_frames_of_its_library(
    own: Path, cli: Callable[..., Any]
) -> None:
    ended = cli("audit", "sample", "-p", "own_classes:Adds")
    assert ended.code == 2
    assert "Traceback" not in ended.err
    files = [line for line in ended.err.splitlines() if line.startswith("  File ")]
    assert len(files) == 2
    assert all(str(own) in line for line in files)


@pytest.mark.parametrize("raised", ["asyncio.CancelledError('too slow')", "GeneratorExit('end')"])
def test_what_is_no_exception_shows_the_owners_frames_as_well(
    own: Path, cli: Callable[..., Any], raised: str
) -> None:
    """Python prints a traceback for these and exits with 1, which would say that a gate failed."""
    lines = (
        "import asyncio",
        "from own_classes import Adds",
        "class Cancels(Adds):",
        "    def add(self, record):",
        f"        raise {raised}",
    )
    own.with_name("own_cancels.py").write_text("\n".join(lines) + "\n")
    ended = cli("audit", "sample", "-p", "own_cancels:Cancels")
    sys.modules.pop("own_cancels")
    name, _, rest = raised.partition("(")
    first, *frames = ended.err.splitlines()[:3]
    assert ended.code == 2
    text = f"{name.rpartition('.')[2]}: {rest[1:-2]}"
    assert first == f"routeprism: in add(), record 'u01-r0' raised {text}"
    assert frames == [
        f'  File "{own.with_name("own_cancels.py")}", line 5, in add',
        f"    raise {raised}",
    ]


def test_a_module_that_cannot_be_imported(own: Path, cli: Callable[..., Any]) -> None:
    own.with_name("own_broken.py").write_text("import sys\nsys.exit(0)\n")
    ended = cli("audit", "sample", "-p", "own_broken:Name")
    assert ended.code == 2
    assert ended.err.splitlines()[:3] == [
        "routeprism: importing own_broken raised SystemExit(0), which would have ended RoutePrism",
        f'  File "{own.with_name("own_broken.py")}", line 2, in <module>',
        "    sys.exit(0)",
    ]


def test_leaving_in_some_orders_is_counted_as_an_error() -> None:
    class Leaves(Plain):
        def add(self, record: Record) -> None:
            if record.id == "r0" and self.records:
                sys.exit(0)
            super().add(record)

    exploration = explore(as_policy(Leaves), POOL)
    assert (exploration.orders, exploration.failed) == (24, 18)
    assert exploration.failures[0].message == "SystemExit: 0"


def test_methods_with_the_wrong_arguments_are_named() -> None:
    class Deaf(Plain):
        def add(self) -> None:  # type: ignore[override]
            """Take nothing."""

    with pytest.raises(ContractError) as refused:
        trace(Deaf)
    assert str(refused.value) == (
        "Deaf.add() -> 'None' cannot be called as RoutePrism calls it. Expected add(record)"
    )


# --- what is declared --------------------------------------------------------------------------


class Memory:
    """A memory whose ids come in different containers."""

    container: Callable[..., Any] = list

    def __init__(self, arrivals: Sequence[Record]) -> None:
        self.records = list(arrivals)[-2:]

    def retained(self) -> Any:
        return type(self).container(record.id for record in self.records)

    def state(self) -> Any:
        return [record.id for record in self.records]

    def expose(self, query: str) -> Exposure:
        return Exposure(tuple(Block("record", r.text, frozenset({r.id})) for r in self.records))


@pytest.mark.slow
@pytest.mark.parametrize("container", [list, tuple, set, iter, dict.fromkeys])
def test_a_policys_memory_may_give_any_iterable(container: Callable[..., Any]) -> None:
    kind = type("Any", (Memory,), {"container": staticmethod(container)})
    policy: Any = type("P", (), {"name": "p", "build": lambda self, arrivals: kind(arrivals)})()
    assert [sorted(route.retained) for route in trace(policy)] == [["r2", "r3"], ["r0", "r1"]]
    outcomes = {check.outcome for check in check_adapter(policy)}
    assert outcomes == {"passed", "not observed"}
    exploration = routeprism.explore_orders(
        "sample", policy, worst="support", shrink="support", resamples=100
    )
    assert exploration.value("order_change").estimate > 0


def test_close_is_called_for_every_build_and_when_adding_fails() -> None:
    result: list[Any] = []

    class Closing(Plain):
        fails = False

        def __init__(self) -> None:
            super().__init__()
            self.closed = 0
            result.append(self)

        def add(self, record: Record) -> None:
            super().add(record)
            if self.fails and record.position == 1:
                raise ValueError("no")

        def close(self) -> None:
            self.closed += 1

    trace(Closing)
    explore(as_policy(Closing), POOL)
    assert {memory.closed for memory in result} == {1}
    Closing.fails = True
    with pytest.raises(OwnCodeError, match="record 'r1' raised ValueError: no"):
        trace(Closing)
    assert {memory.closed for memory in result} == {1}


@pytest.mark.slow
def test_declared_chance_of_a_class_is_honoured() -> None:
    class Dice(Plain):
        deterministic = False

    class Sealed(Plain):
        @property
        def deterministic(self) -> bool:
            return False

    def make() -> Plain:
        return Dice()

    assert [is_deterministic(as_policy(item)) for item in (Plain, Dice, Sealed, make)] == [
        True,
        False,
        False,
        False,
    ]
    result = routeprism.audit("sample", Dice, resamples=100)
    assert "each order was built once, so order cannot be distinguished from chance" in str(result)


@pytest.mark.parametrize(
    ("values", "settings"),
    [("size=2", (None, 2, 0.5, "a")), ("share=1,word=b", (None, 3, 1.0, "b"))],
)
def test_parameters_take_the_type_of_their_default(
    own: Path, values: str, settings: tuple[object, ...]
) -> None:
    policy: Any = make_policy(f"own_classes:Sized:{values}")
    assert policy.factory().settings == settings


def test_a_parameter_of_unknown_type_is_refused_before_anything_is_built(own: Path) -> None:
    with pytest.raises(SpecError) as refused:
        make_policy("own_classes:Sized:k=2")
    assert str(refused.value) == (
        "the type of parameter 'k' of 'own_classes:Sized' is unknown, so k=2 cannot be read. "
        "Annotate it, such as k: int, or give it a default of its type"
    )
