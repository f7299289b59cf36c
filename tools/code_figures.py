"""Print the size and shape of the code: lines, files, long and complex functions, private imports.

`python tools/code_figures.py` measures `src`, counts the test modules that use private modules, and
shows the figures before the upper packages were renovated beside these. `--list` names every
function and import beyond a limit. `--check` prints only those, and exits with code 1 if a limit
does not hold; `make check` calls it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "routeprism"
TESTS = ROOT / "tests"
LONGEST_FUNCTION = 80
MOST_COMPLEX = 15
MOST_PRIVATE_IMPORTS = 5
MOST_PRIVATE_TESTS = 11
"""The test modules that reach into private modules: it may fall, and must not rise."""
BEFORE = (44_280, 289, 11, 50, 32, 11, 1_841, 1_264, 47)
"""The figures in the order in which they are printed, before the upper packages were renovated; the
last two, before the tests followed."""

NOT_A_NAME = frozenset(
    """
    found said told kept one other there asked answered given inside mine theirs what whose others
    ones here again shown held seen wanted named drawn taken made gone known written listed chosen
    """.split()
)
"""Participles, pronouns and adverbs that do not say what a variable or a function is."""

_INTERFACE = frozenset({("_rows.py", "one"), ("remedies.py", "held")})
"""Names that people use: `Rows.one`, and the parameter of `hold:w=2,held=hidden`."""

_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.comprehension,
    ast.match_case,
)


@dataclass(frozen=True, slots=True)
class Function:
    """One function with its length in lines and its cyclomatic complexity."""

    place: str
    lines: int
    complexity: int


def functions(path: Path, tree: ast.AST) -> Iterator[Function]:
    """Give every function and method of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            place = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            yield Function(place, length, complexity(node))


def complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the branches of a function, without those of functions inside it (McCabe)."""
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        count += isinstance(node, _BRANCHES)
        if isinstance(node, ast.comprehension):
            count += len(node.ifs)
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        waiting.extend(ast.iter_child_nodes(node))
    return count


def private_imports(path: Path, tree: ast.AST) -> Iterator[str]:
    """Give every import of a private module of a different package."""
    package = path.relative_to(SOURCE).parts[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = node.module.split(".")
            names = [*parts[1:], *(alias.name for alias in node.names)]
            is_private = any(part.startswith("_") for part in names)
            if parts[0] == "routeprism" and len(parts) > 1 and parts[1] != package and is_private:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.module}"


_PRIVATE_MODULE = re.compile(r"routeprism(\.[a-z]\w*)*\._[a-z]\w*")


def private_uses(path: Path, tree: ast.AST) -> Iterator[str]:
    """Give every import of a private module in a test, and every text that names one."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        for module in {match[0] for match in map(_PRIVATE_MODULE.search, names) if match}:
            yield f"{path.relative_to(ROOT)}:{node.lineno} {module}"


def unclear_names(path: Path, tree: ast.AST) -> Iterator[str]:
    """Give every variable, parameter and function that is named by a word of `NOT_A_NAME`.

    Fields of classes are left out, because some are part of a stored format.
    """
    fields = {
        id(item.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        name = ""
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in fields
        ):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        if name.strip("_").lower() in NOT_A_NAME and (path.name, name) not in _INTERFACE:
            yield f"{path.relative_to(ROOT)}:{node.lineno} {name}"


def public_classes(tree: ast.Module) -> Iterator[str]:
    """Give the names of the classes of a module that do not begin with an underscore."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of all code in `src`, and of the tests."""

    lines: int
    files: int
    long: tuple[str, ...]
    """Functions that are too long."""
    complicated: tuple[str, ...]
    """Functions that are too complex."""
    imports: tuple[str, ...]
    """Imports of private modules across packages."""
    namesakes: tuple[str, ...]
    """Public classes that share a name."""
    names: tuple[str, ...]
    """Names in `src` that do not say what something is."""
    test_names: tuple[str, ...]
    """Such names in tests."""
    tests: tuple[str, ...]
    """Uses of private modules in tests."""

    @property
    def private_tests(self) -> int:
        """The number of test modules that use private modules."""
        return len({use.partition(":")[0] for use in self.tests})

    @property
    def excesses(self) -> tuple[str, ...]:
        """Everything beyond its limit; imports only if there are too many of them."""
        imports = self.imports if len(self.imports) > MOST_PRIVATE_IMPORTS else ()
        tests = self.tests if self.private_tests > MOST_PRIVATE_TESTS else ()
        names = (*self.names, *self.test_names)
        return (*self.long, *self.complicated, *imports, *self.namesakes, *names, *tests)


def measure_code() -> Figures:
    """Measure every file in `src`, and read every test."""
    files = sorted(SOURCE.rglob("*.py"))
    tests = [(path, ast.parse(path.read_text("utf-8"))) for path in sorted(TESTS.rglob("*.py"))]
    lines = 0
    measured: list[Function] = []
    imports: list[str] = []
    names: list[str] = []
    classes: dict[str, list[str]] = {}
    for path in files:
        text = path.read_text("utf-8")
        lines += text.count("\n")
        tree = ast.parse(text)
        measured += functions(path, tree)
        imports += private_imports(path, tree)
        names += unclear_names(path, tree)
        for name in public_classes(tree):
            classes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return Figures(
        lines,
        len(files),
        tuple(f"{f.place}: {f.lines} lines" for f in measured if f.lines > LONGEST_FUNCTION),
        tuple(
            f"{f.place}: complexity {f.complexity}" for f in measured if f.complexity > MOST_COMPLEX
        ),
        tuple(imports),
        tuple(
            f"class {name}: {', '.join(places)}" for name, places in classes.items() if places[1:]
        ),
        tuple(names),
        tuple(name for path, tree in tests for name in unclear_names(path, tree)),
        tuple(use for path, tree in tests for use in private_uses(path, tree)),
    )


def main() -> None:
    """Measure the code and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="name what is beyond a limit")
    parser.add_argument("--check", action="store_true", help="fail if a limit does not hold")
    arguments = parser.parse_args()
    figures = measure_code()
    if arguments.check:
        if figures.excesses:
            print(*figures.excesses, sep="\n")
            sys.exit(
                "too long, too complex, too many private imports, two classes with one name, "
                "a name that does not say what something is, or too many test modules that use "
                "private modules"
            )
        return
    table = {
        "lines in src": figures.lines,
        "files in src": figures.files,
        f"functions over {LONGEST_FUNCTION} lines": len(figures.long),
        f"functions of complexity over {MOST_COMPLEX}": len(figures.complicated),
        "imports of private modules across packages": len(figures.imports),
        "public classes that share a name": len(figures.namesakes),
        "names that are participles, pronouns or adverbs": len(figures.names),
        "such names in tests": len(figures.test_names),
        "test modules that import private modules": figures.private_tests,
    }
    for (name, number), before in zip(table.items(), BEFORE, strict=True):
        print(f"{name}: {number:,} (before: {before:,})")
    if arguments.list:
        print(*figures.excesses, *figures.imports, *figures.tests, sep="\n")


if __name__ == "__main__":
    main()
