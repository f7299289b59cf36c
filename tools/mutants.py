"""Make one-line faults in the modules that judge, and count how many their tests notice.

`python tools/mutants.py [MODULE ...] [options] [-- PYTEST ARGUMENTS]` changes one line at a time in
a copy of the package (a comparison, a guard, a threshold, the order of two levels) and runs the
tests on the copy. It lists the faults that no test notices, and exits with code 1 if the tests
notice fewer than `--least` of all. `--list` only prints the faults.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import numpy  # noqa: F401  (each run of the tests is a fork, which need not import it)
import pytest

ROOT = Path(__file__).resolve().parent.parent
JUDGING = (
    "src/routeprism/judge/*.py",
    "src/routeprism/routes/_interventions.py",
    "src/routeprism/routes/_lost_cases.py",
    "src/routeprism/routes/_placebos.py",
    "src/routeprism/experiments/_advice.py",
    "src/routeprism/experiments/_baseline.py",
    "src/routeprism/experiments/causes.py",
    "src/routeprism/experiments/remedies.py",
)
"""The modules that judge, as patterns; one that matches no file is skipped."""

TESTS = (
    "tests/judge/test_advice.py",
    "tests/judge/test_baseline.py",
    "tests/judge/test_causes.py",
    "tests/judge/test_claims_of_rows.py",
    "tests/judge/test_repairs.py",
    "tests/judge/test_sentences.py",
    "tests/judge/test_verdict.py",
    "tests/routes/test_interventions.py",
    "tests/routes/test_lost_cases.py",
    "tests/routes/test_placebos.py",
)
"""Their tests; a path that does not exist is skipped."""
CHOICE = ("-m", "not slow and not realdata")

EQUIVALENT: dict[tuple[str, str], str] = {
    (
        "src/routeprism/judge/_claims.py",
        "bounds = (row.upper, row.lower)",
    ): "both bounds have to be within the margin",
    (
        "src/routeprism/routes/_interventions.py",
        "counts = [self._count_removed(arrivals) for arrivals in (short, beginning)]",
    ): "the same holds of both",
    (
        "src/routeprism/routes/_interventions.py",
        "if False or arrivals[moment].id not in self.rebuilds.case.pool.ids:",
    ): "the record is there until the arrival that was exchanged",
    (
        "src/routeprism/routes/_lost_cases.py",
        "numbers[key] += 2",
    ): "the numbers only order cases",
    (
        "src/routeprism/experiments/_baseline.py",
        'sides = [names.index(f"{quantity}.{side}") for side in ("route", "forward")]',
    ): "a question counts if both have the value",
    (
        "src/routeprism/judge/_causes.py",
        'NEVER_RIGHT: tuple[CauseKind, ...] = ("never kept", "not retrievable", "refused")',
    ): "a cause is in it or not",
    (
        "src/routeprism/judge/_causes.py",
        'NEVER_RIGHT: tuple[CauseKind, ...] = ("refused", "never kept", "not retrievable")',
    ): "a cause is in it or not",
    (
        "src/routeprism/experiments/_advice.py",
        "except (RoutePrismError, *OWN_ERRORS):",
    ): "the order of errors that are handled alike",
    (
        "src/routeprism/experiments/_advice.py",
        "plan.only((*repairs, policy)),",
    ): "rows are read by policy",
}
"""Faults that change nothing: the module and the changed line without its indentation, and why."""

SHORTEST_LIMIT = 20.0
"""Seconds that each run may take at least, however short the run without a fault was."""
FOREIGN_COPY = 99
"""The exit code of a run whose interpreter does not import the copy."""

_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">=")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<=")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
}
_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TWO_SIDED = {
    word: opposite
    for left, right in (
        ("lost", "gained"),
        ("lower", "upper"),
        ("before", "after"),
        ("first", "last"),
        ("older", "newer"),
        ("old", "new"),
        ("left", "right"),
        ("retained", "shown"),
        ("better", "worse"),
        ("reference", "pair"),
    )
    for word, opposite in ((left, right), (right, left))
}
_NOT_READ = ("annotation", "returns", "decorator_list", "type_params")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one fault: the bytes from `start` to `end` are replaced."""

    module: str
    """Its path below the root of the repository."""
    kind: str
    start: int
    end: int
    replacement: bytes

    def apply(self, source: bytes) -> bytes:
        """Put the fault into the module."""
        return source[: self.start] + self.replacement + source[self.end :]

    def compare_lines(self, source: bytes) -> tuple[int, str, str]:
        """Give the number of the first line that differs, the line, and the line with the fault."""
        before, after = (text.decode("utf-8").split("\n") for text in (source, self.apply(source)))
        at = next(at for at, line in enumerate(before) if line != after[at])
        return at + 1, before[at].strip(), after[at].strip()


class _Faults(ast.NodeVisitor):
    """Collects every fault that can be made in one module."""

    def __init__(self, module: str, source: bytes) -> None:
        self.module = module
        self.source = source
        self.mutants: list[Mutant] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._tree = ast.parse(source)
        self._names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        self._attributes = {
            node.attr for node in ast.walk(self._tree) if isinstance(node, ast.Attribute)
        }
        self._reads_literals = "get_args" in self._names
        self.visit(self._tree)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Give the bytes that an expression takes, without parentheses around it."""
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def replace(self, kind: str, start: int, end: int, replacement: str | bytes) -> None:
        """Note one fault; a replacement has as many lines as what it replaces."""
        text = replacement.encode() if isinstance(replacement, str) else replacement
        replaced = self.source[start:end]
        if text != replaced and text.count(b"\n") == replaced.count(b"\n"):
            self.mutants.append(Mutant(self.module, kind, start, end, text))

    def replace_between(
        self, kind: str, left: ast.AST, right: ast.AST, token: str, replacement: str
    ) -> None:
        """Replace the operator between two expressions."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = re.sub(rb"#[^\n]*", lambda match: b" " * len(match[0]), self.source[start:end])
        match = re.search(token.encode(), gap)
        if match:
            self.replace(kind, start + match.start(), start + match.end(), replacement)

    def swap(self, kind: str, left: ast.AST, right: ast.AST) -> None:
        """Exchange two expressions of one statement."""
        (start, left_end), (right_start, end) = self.span(left), self.span(right)
        text = self.source
        self.replace(
            kind,
            start,
            end,
            text[right_start:end] + text[left_end:right_start] + text[start:left_end],
        )

    def generic_visit(self, node: ast.AST) -> None:
        for name, child in ast.iter_fields(node):
            if name not in _NOT_READ:
                for part in child if isinstance(child, list) else [child]:
                    if isinstance(part, ast.AST):
                        self.visit(part)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip it: before Python 3.12 the parts of an f-string have no exact positions."""

    def visit_Compare(self, node: ast.Compare) -> None:
        values = [node.left, *node.comparators]
        for left, operator, right in zip(values, node.ops, values[1:], strict=False):
            token, replacements = _COMPARISONS[type(operator)]
            for replacement in replacements:
                self.replace_between("comparison", left, right, token, replacement)
            if isinstance(operator, ast.In | ast.NotIn) and isinstance(right, ast.Tuple):
                for element in right.elts:  # their order does not matter
                    self.visit(element)
            else:
                self.visit(right)
        self.visit(node.left)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        is_and = isinstance(node.op, ast.And)
        token, opposite = ("and", "or") if is_and else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.replace_between("and/or", left, right, token, opposite)
        for value in node.values:
            if not isinstance(value, ast.Constant):
                self.replace("one-sided guard", *self.span(value), str(is_and))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start = self.span(node)[0]
        if isinstance(node.op, ast.Not):
            match = re.match(rb"not[ ]*", self.source[start:])
            assert match is not None  # noqa: S101
            self.replace("not", start, start + match.end(), "")
        elif isinstance(node.op, ast.USub):
            self.replace("sign", start, start + 1, "")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = any(
            isinstance(part, ast.JoinedStr | ast.List | ast.Tuple)
            or (isinstance(part, ast.Constant) and isinstance(part.value, str))
            for part in (node.left, node.right)
        )
        if type(node.op) in _OPERATORS and not is_text:
            token, opposite = _OPERATORS[type(node.op)]
            self.replace_between("sign", node.left, node.right, token, opposite)
        if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv):
            self.swap("swap", node.left, node.right)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            if node.func.id == "isinstance":
                self.visit(node.args[0])
                return
            if node.func.id in _CALLS:
                self.replace("min/max", *self.span(node.func), _CALLS[node.func.id])
        if not (isinstance(node.func, ast.Name) and node.func.id in ("min", "max")):
            for left, right in zip(node.args, node.args[1:], strict=False):
                if all(isinstance(part, ast.Name | ast.Attribute) for part in (left, right)):
                    self.swap("swap", left, right)
        values = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        for name, value in values.items():
            opposite = self._opposite(name, set(values))
            if opposite and self.span(value) < self.span(values[opposite]):
                self.swap("swap", value, values[opposite])
        self.generic_visit(node)

    def _opposite(self, name: str, known: set[str]) -> str:
        """Give the name of the other of two sides, if the module has it."""
        words = name.split("_")
        for at, word in enumerate(words):
            opposite = "_".join([*words[:at], _TWO_SIDED.get(word, word), *words[at + 1 :]])
            if opposite != name and opposite in known:
                return opposite
        return ""

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and self._opposite(node.id, self._names):
            self.replace("swap", *self.span(node), self._opposite(node.id, self._names))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        opposite = self._opposite(node.attr, self._attributes)
        if opposite:
            end = self.span(node)[1]
            self.replace("swap", end - len(node.attr.encode()), end, opposite)
        self.visit(node.value)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        if isinstance(node.ctx, ast.Load):
            for left, right in zip(node.elts, node.elts[1:], strict=False):
                self.swap("order", left, right)
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        for left, right in zip(node.elts, node.elts[1:], strict=False):
            self.swap("order", left, right)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for left, right in zip(node.keys, node.keys[1:], strict=False):
            if left and right:
                self.swap("order", left, right)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            if self._reads_literals:
                self.visit(node.slice)
        elif isinstance(node.slice, ast.Tuple):  # the parameters of a type, or one key
            for element in node.slice.elts:
                self.visit(element)
        else:
            self.visit(node.slice)

    def _guard(self, test: ast.expr) -> None:
        start, end = self.span(test)
        for value, opening in (("True", "True or "), ("False", "False and ")):
            if b"\n" in self.source[start:end]:
                self.replace("guard", start, start, opening)
            else:
                self.replace("guard", start, end, value)

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._guard(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._guard(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._guard(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        self._value("return", node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "__all__" not in names:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._value("constant", node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *node.kw_defaults):
            self._value("default", default)

    def _value(self, kind: str, value: ast.expr | None) -> None:
        """Change a constant that is returned, stored or a default, texts and `None` included."""
        if isinstance(value, ast.Constant):
            self._constant(kind, value)
            if isinstance(value.value, str):
                self.replace(kind, *self.span(value), '""' if value.value else '"-"')
            elif value.value is None:
                self.replace(kind, *self.span(value), "0")
        elif value is not None:
            self.visit(value)

    def visit_Constant(self, node: ast.Constant) -> None:
        self._constant("threshold", node)

    def _constant(self, kind: str, node: ast.Constant) -> None:
        number = node.value
        if isinstance(number, bool):
            self.replace(kind, *self.span(node), str(not number))
        elif isinstance(number, int):
            for changed in sorted({number - 1, number + 1, number * 2} - {number}):
                self.replace(kind, *self.span(node), str(changed))
        elif isinstance(number, float):
            for changed_number in (number / 2, number * 2) if number else (1.0,):
                self.replace(kind, *self.span(node), repr(changed_number))


def find_modules(patterns: Sequence[str] = JUDGING) -> list[str]:
    """Find the files that the patterns match, as paths below the root of the repository."""
    return sorted(
        {
            str(path.relative_to(ROOT))
            for pattern in patterns
            for path in ROOT.glob(pattern)
            if path.suffix == ".py"
        }
    )


def make_mutants(module: str, source: bytes) -> list[Mutant]:
    """Make every one-line fault of one module, in the order of its lines."""
    distinct: dict[bytes, Mutant] = {}
    for mutant in _Faults(module, source).mutants:
        distinct.setdefault(mutant.apply(source), mutant)
    return sorted(distinct.values(), key=lambda mutant: (mutant.start, mutant.replacement))


def sample_mutants(sources: dict[str, bytes], most: int, seed: int) -> list[Mutant]:
    """Draw at most so many faults: each module in turn, and in each module each kind in turn."""
    draw = random.Random(seed)  # noqa: S311
    modules = {}
    for module in sorted(sources):
        kinds: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in make_mutants(module, sources[module]):
            if (module, mutant.compare_lines(sources[module])[2]) not in EQUIVALENT:
                kinds[mutant.kind].append(mutant)
        for mutants in kinds.values():
            draw.shuffle(mutants)
        modules[module] = [kinds[kind] for kind in sorted(kinds)]
    sample: list[Mutant] = []
    turns = {module: cycle(kinds) for module, kinds in modules.items()}
    while len(sample) < most and any(map(any, modules.values())):
        for module, kinds in modules.items():
            if any(kinds) and len(sample) < most:
                mutant = next(mutants for mutants in turns[module] if mutants).pop()
                with suppress(SyntaxError):
                    compile(mutant.apply(sources[module]), module, "exec")
                    sample.append(mutant)
    return sample


@dataclass(slots=True)
class _FirstFailure:
    """Runs the tests that noticed earlier faults first, and writes down which one fails."""

    first: list[str]
    record: Path

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        rank = {name: at for at, name in enumerate(self.first)}
        items.sort(key=lambda item: rank.get(item.nodeid, len(rank)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.record.exists():
            self.record.write_text(report.nodeid, encoding="utf-8")


@dataclass(slots=True)
class Copy:
    """A copy of the package on which the tests run in a process of their own."""

    folder: Path
    arguments: Sequence[str]
    process: int = 0
    mutant: Mutant | None = None
    begin: float = 0.0
    seconds: float = 0.0
    first: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", self.folder / "src", ignore=ignore)

    @property
    def output(self) -> Path:
        """What the tests print."""
        return self.folder / "output.txt"

    @property
    def failure(self) -> Path:
        """A file with the name of the first test that fails."""
        return self.folder / "failure.txt"

    def write(self, text: bytes, seconds: int) -> None:
        """Write the module of the fault; with its own time, it is always compiled again."""
        assert self.mutant is not None  # noqa: S101
        path = self.folder / self.mutant.module
        path.write_bytes(text)
        os.utime(path, (seconds, seconds))

    def start(self) -> None:
        """Fork a process that runs the tests on this copy."""
        self.failure.unlink(missing_ok=True)
        self.begin = time.monotonic()
        sys.stdout.flush()
        self.process = os.fork()
        if self.process:
            return
        code: int = 1
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            target = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, 1)
            os.dup2(target, 2)
            os.environ["PYTHONPATH"] = str(self.folder / "src")
            sys.path[:] = [
                str(self.folder / "src"),
                *(path for path in sys.path if Path(path) != ROOT / "src"),
            ]
            code = self._run_tests()
        finally:
            sys.stdout.flush()
            os._exit(code)

    def _run_tests(self) -> int:
        expected = self.folder / "src" / "routeprism" / "__init__.py"
        package = importlib.util.find_spec("routeprism")
        if package is None or package.origin != str(expected):
            print(f"the tests import {package and package.origin}, and not {expected}")
            return FOREIGN_COPY
        plugin = _FirstFailure(self.first, self.failure)
        arguments = ["-x", "-q", "-p", "no:cacheprovider", *self.arguments]
        code = int(pytest.main(arguments, plugins=[plugin]))
        origin = getattr(sys.modules.get("routeprism"), "__file__", str(expected))
        return code if origin == str(expected) else FOREIGN_COPY

    def poll(self, limit: float) -> int | None:
        """Give the exit code of the tests, -1 if they take longer than the limit, or `None`."""
        process, status = os.waitpid(self.process, os.WNOHANG)
        self.seconds = time.monotonic() - self.begin
        if process:
            self.process = 0
            code = os.waitstatus_to_exitcode(status)
            if code == FOREIGN_COPY:
                raise SystemExit(self.output.read_text(encoding="utf-8", errors="replace"))
            return code
        if self.seconds > limit:
            self.kill()
            return -1
        return None

    def kill(self) -> None:
        """End the process and everything that it started."""
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self.process, 0)
            self.process = 0


@dataclass(slots=True)
class Tally:
    """Which faults the tests noticed."""

    killed: int = 0
    late: int = 0
    """Those whose run was ended at the time limit; they count as killed."""
    survivors: list[Mutant] = field(default_factory=list)
    killers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By module: the tests that noticed its faults."""

    def add(self, mutant: Mutant, code: int, failure: Path) -> None:
        """Count one run."""
        if code == 0:
            self.survivors.append(mutant)
            return
        self.killed += 1
        self.late += code == -1
        if failure.exists():
            self.killers[mutant.module][failure.read_text(encoding="utf-8")] += 1


def run_mutants(
    mutants: Sequence[Mutant], sources: dict[str, bytes], copies: Sequence[Copy], limit: float
) -> Tally:
    """Run the tests on every fault, as many at once as there are copies."""
    tally = Tally()
    waiting = list(enumerate(mutants, 1))[::-1]
    begin = time.monotonic()
    while waiting or any(copy.process for copy in copies):
        for copy in copies:
            if copy.process:
                code = copy.poll(limit)
                if code is None:
                    continue
                assert copy.mutant is not None  # noqa: S101
                tally.add(copy.mutant, code, copy.failure)
                copy.write(sources[copy.mutant.module], 0)
                if code == 0:
                    print(f"survives  {describe(copy.mutant, sources)}", flush=True)
                count = tally.killed + len(tally.survivors)
                if count % 10 == 0 or count == len(mutants):
                    seconds = time.monotonic() - begin
                    print(f"{tally.killed} of {count} killed, {seconds:.0f} s", flush=True)
            if waiting:
                at, copy.mutant = waiting.pop()
                copy.first = [name for name, _ in tally.killers[copy.mutant.module].most_common()]
                source = sources[copy.mutant.module]
                copy.write(copy.mutant.apply(source), at)
                copy.start()
        time.sleep(0.02)
    return tally


def describe(mutant: Mutant, sources: dict[str, bytes]) -> str:
    """Name the line of a fault, and print it before and after."""
    line, before, after = mutant.compare_lines(sources[mutant.module])
    return f"{mutant.module}:{line} ({mutant.kind})\n    - {before}\n    + {after}"


def parse_arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line; everything after `--` is for pytest."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("modules", nargs="*", default=JUDGING, help="paths or patterns")
    parser.add_argument("--most", type=int, default=200, help="how many faults to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=0.9, help="share that must be killed")
    parser.add_argument("--limit", type=float, default=4.0, help="time limit, in unmutated runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only print the faults")
    end = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    tests = [path for path in TESTS if (ROOT / path).exists()]
    arguments.tests = words[end + 1 :] or ([*tests, *CHOICE] if tests else [])
    return arguments


def main(words: list[str]) -> int:
    """Make the faults, run the tests on each, and print those that survive."""
    arguments = parse_arguments(words)
    modules = find_modules(arguments.modules)
    sources = {module: (ROOT / module).read_bytes() for module in modules}
    mutants = sample_mutants(sources, arguments.most, arguments.seed)
    if not mutants:
        print(f"no faults can be made: {', '.join(modules) or 'no module matches'}")
        return 2
    if arguments.list:
        print(*(describe(mutant, sources) for mutant in mutants), sep="\n")
        print(f"{len(mutants)} faults in {len(modules)} modules")
        return 0
    if not arguments.tests:
        print(f"no tests: neither {' nor '.join(TESTS)} exists; pass pytest arguments after --")
        return 2
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the tests and removes the copies
    with tempfile.TemporaryDirectory() as scratch:
        copies = [
            Copy(Path(scratch).resolve() / f"copy{at}", arguments.tests)
            for at in range(arguments.processes)
        ]
        try:
            for copy in copies[:1] * 2:  # the first run compiles modules, the second counts
                copy.start()
                while (code := copy.poll(600.0)) is None:
                    time.sleep(0.02)
                if code:
                    print(copy.output.read_text(encoding="utf-8", errors="replace")[-4000:])
                    print("the tests do not pass without a fault")
                    return 2
            usual = copies[0].seconds
            print(f"without a fault: {usual:.1f} s", flush=True)
            tally = run_mutants(
                mutants, sources, copies, max(SHORTEST_LIMIT, arguments.limit * usual)
            )
        finally:
            for copy in copies:
                copy.kill()
    if tally.survivors:
        print("\nNo test notices:")
        order = sorted(tally.survivors, key=lambda mutant: (mutant.module, mutant.start))
        print(*(describe(mutant, sources) for mutant in order), sep="\n")
    share = tally.killed / len(mutants)
    late = f" ({tally.late} at the time limit)" if tally.late else ""
    print(
        f"\n{tally.killed} of {len(mutants)} killed{late}: {share:.1%}; "
        f"at least {arguments.least:.0%} are required. Without a fault: {usual:.1f} s"
    )
    return int(share < arguments.least)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
