"""The one-line faults that `make mutants` puts into the modules that judge."""

from __future__ import annotations

import ast
import hashlib
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "mutants.py"))
MODULES = ["src/routeprism/measures/_agreement.py", "src/routeprism/measures/_claims.py"]
SOURCES = {module: (ROOT / module).read_bytes() for module in MODULES}


def list_lines(text: str) -> list[tuple[str, str]]:
    """Give the kind and the changed line of every fault of a module."""
    source = text.encode()
    mutants = TOOL["make_mutants"]("module.py", source)
    return [(mutant.kind, mutant.compare_lines(source)[2]) for mutant in mutants]


def list_statements(source: bytes) -> list[range]:
    """Give the lines of every statement, of those with a body the lines before it."""
    return [
        range(node.lineno, node.body[0].lineno)
        if isinstance(node, ast.If | ast.For | ast.With | ast.While | ast.FunctionDef)
        else range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef | ast.Try)
    ]


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("a < b", {"a <= b", "a > b"}),
        ("a >= b", {"a > b", "a <= b"}),
        ("a == b", {"a != b"}),
        ("a not in b", {"a in b"}),
        ("a is not b", {"a is b"}),
        ("a in (b, c)", {"a not in (b, c)"}),  # their order changes nothing
        ("a and b", {"a or b", "True and b", "a and True"}),
        ("a or 0.0", {"a and 0.0", "False or 0.0", "a or 1.0"}),
        ("not a", {"a"}),
        ("a - b", {"a + b", "b - a"}),
        ("'é' + a", set()),  # a text minus a number is an error, whatever the tests say
        ("x = 0.02", {"x = 0.01", "x = 0.04"}),
        ("x = 3", {"x = 2", "x = 4", "x = 6"}),
        ("max(a)", {"min(a)"}),
        ("judge(a, b)", {"judge(b, a)"}),
        ("Pair(lost=a, gained=b)", {"Pair(lost=b, gained=a)"}),
        ("é.lost, é.gained", {"é.gained, é.gained", "é.lost, é.lost", "é.gained, é.lost"}),
        ("('b', 'a')", {"('a', 'b')"}),
        ("{a: b, c: d}", {"{c: b, a: d}"}),
        ("x = a if b else c", {"x = a if True else c", "x = a if False else c"}),
        ("[a for a in b if c]", {"[a for a in b if True]", "[a for a in b if False]"}),
        ("def f(a=None): return False", {"def f(a=0): return False", "def f(a=None): return True"}),
        ("x: bool = True", {"x: bool = False"}),
        ("f'{a < b}'", set()),
        ("x: tuple[a, b]", set()),
        ("isinstance(a, b | c)", set()),
    ],
)
def test_a_line_has_these_faults(line: str, faults: set[str]) -> None:
    assert {text for _, text in list_lines(line)} == faults


def test_a_guard_of_several_lines_is_changed_where_it_begins() -> None:
    text = "if (\n    a\n    or b\n):\n    c()\n"
    assert [line for kind, line in list_lines(text) if kind == "guard"] == [
        "False and a",
        "True or a",
    ]


def test_two_levels_of_a_list_with_a_line_for_each_are_exchanged() -> None:
    text = 'LEVELS = (\n    "stable",\n    "moves",\n    "lost",\n)\n'
    source = text.encode()
    assert [mutant.apply(source).decode() for mutant in TOOL["make_mutants"]("m.py", source)] == [
        'LEVELS = (\n    "moves",\n    "stable",\n    "lost",\n)\n',
        'LEVELS = (\n    "stable",\n    "lost",\n    "moves",\n)\n',
    ]


def test_at_least_150_faults_compile_and_change_one_line_each() -> None:
    sample = TOOL["sample_mutants"](SOURCES, 200, seed=0)
    assert len(sample) >= 150
    assert len({(mutant.module, mutant.apply(SOURCES[mutant.module])) for mutant in sample}) == len(
        sample
    )
    statements = {module: list_statements(source) for module, source in SOURCES.items()}
    for mutant in sample:
        source = SOURCES[mutant.module]
        fault = mutant.apply(source)
        compile(fault, mutant.module, "exec")
        pairs = zip(source.splitlines(), fault.splitlines(), strict=True)
        lines = [number for number, (before, after) in enumerate(pairs, 1) if before != after]
        assert lines[0] == mutant.compare_lines(source)[0]
        # A fault that exchanges two lines of one statement counts as a fault of the first.
        assert len(lines) == 1 or any(
            set(lines) <= set(statement) for statement in statements[mutant.module]
        )


def test_a_sample_depends_on_the_seed_alone_and_is_balanced_over_modules() -> None:
    sample = TOOL["sample_mutants"](SOURCES, 60, seed=1)
    assert sample == TOOL["sample_mutants"](dict(reversed(SOURCES.items())), 60, seed=1)
    assert sample != TOOL["sample_mutants"](SOURCES, 60, seed=2)
    assert [sum(mutant.module == module for mutant in sample) for module in MODULES] == [30, 30]
    kinds = {mutant.kind for mutant in sample}
    assert {"comparison", "guard", "swap", "threshold", "one-sided guard"} <= kinds


def test_the_modules_that_judge_have_at_least_150_faults() -> None:
    sources = {module: (ROOT / module).read_bytes() for module in TOOL["find_modules"]()}
    assert sum(len(TOOL["make_mutants"](*module)) for module in sources.items()) >= 150


def test_each_equivalent_fault_is_still_made() -> None:
    for (module, line), reason in TOOL["EQUIVALENT"].items():
        source = (ROOT / module).read_bytes()
        lines = {m.compare_lines(source)[2] for m in TOOL["make_mutants"](module, source)}
        assert line in lines, f"{module} has no fault {line!r} ({reason})"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expected", "code", "sentence"),
    [
        ("{digest}", 0, "3 of 3 killed: 100.0%; at least 90% are required."),
        ("", 1, "0 of 3 killed: 0.0%; at least 90% are required."),
        ("another", 2, "the tests do not pass without a fault"),
    ],
)
def test_faults_are_in_the_package_that_the_tests_import_and_not_in_the_work_tree(
    expected: str, code: int, sentence: str, tmp_path: Path
) -> None:
    module = ROOT / "src/routeprism/specs.py"
    source = module.read_bytes()
    digest = expected.format(digest=hashlib.sha256(source).hexdigest())
    test = tmp_path / "test_bytes.py"
    test.write_text(
        "import hashlib\n"
        "from pathlib import Path\n"
        "from routeprism import specs\n"
        "def test_the_bytes_are_those_of_the_work_tree():\n"
        "    source = Path(specs.__file__).read_bytes()\n"
        f"    assert hashlib.sha256(source).hexdigest().startswith({digest!r})\n"
    )
    command = [sys.executable, ROOT / "tools/mutants.py", "src/routeprism/specs.py", "--most", "3"]
    run = subprocess.run([*command, "--", test], capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr) == (code, "")
    assert sentence in run.stdout
    assert run.stdout.count("survives  src/routeprism/specs.py:") == 3 * (code == 1)
    assert module.read_bytes() == source
