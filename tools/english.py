"""Find words and patterns that do not read as idiomatic English; `make check` calls it.

It reads the documentation, the strings and docstrings of the source, and the texts of its JSON
files. It prints one line for each occurrence: file, line, the words, and what to write instead.
Code blocks, inline code, link targets and prompts (whose wording is part of the method) are left
out.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATTERNS = Path(__file__).with_name("english.txt")
UNREAD = (
    "docs/reproduction.md",  # generated: its strings are read in the source
    "src/routeprism/prompts/",  # read by models, the same byte for byte
)
"""Files and directories that are not read."""

_CODE = re.compile(r"^```.*?^```$|^<!--.*?-->$|^ {4}.*$", re.DOTALL | re.MULTILINE)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_INLINE = re.compile(r"`[^`\n]*`|\]\([^)]*\)|<[^>\n]+>")


@dataclass(frozen=True)
class Pattern:
    """Words to avoid, and what to write instead."""

    expression: re.Pattern[str]
    advice: str


@dataclass(frozen=True)
class Occurrence:
    """One place where such words stand."""

    path: str
    line: int
    words: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r}: {self.advice}"


def read_patterns(path: Path = PATTERNS) -> list[Pattern]:
    """Read the list: an expression, a tab and the advice in each line."""
    patterns = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            expression, _, advice = line.partition("\t")
            patterns.append(Pattern(re.compile(expression, re.IGNORECASE), advice.strip()))
    return patterns


def blank(text: str, expression: re.Pattern[str]) -> str:
    """Replace matches by blanks, so that lines keep their numbers."""
    return expression.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def read_prose(path: Path) -> Iterator[tuple[int, str]]:
    """Give the texts of a file with the number of their first line."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield 1, blank(blank(source, _CODE), _INLINE)
        return
    if path.suffix == ".json":
        for number, line in enumerate(source.splitlines(), start=1):
            texts = (json.loads(match[0]) for match in _STRING.finditer(line))
            yield from ((number, blank(text, _INLINE)) for text in texts if " " in text)
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, blank(node.value, _INLINE)


def find_occurrences(path: Path, patterns: list[Pattern]) -> list[Occurrence]:
    """Find every pattern in one file, in the order of its lines."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return sorted(
        {
            Occurrence(
                name,
                first + text.count("\n", 0, match.start()),
                " ".join(match[0].split()),
                pattern.advice,
            )
            for first, text in read_prose(path)
            for pattern in patterns
            for match in pattern.expression.finditer(text)
        },
        key=lambda occurrence: (occurrence.line, occurrence.words),
    )


def list_files() -> list[Path]:
    """List the files whose English is checked."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    files += sorted(
        path for ending in ("py", "json") for path in (ROOT / "src").rglob(f"*.{ending}")
    )
    return [path for path in files if not path.relative_to(ROOT).as_posix().startswith(UNREAD)]


def main() -> int:
    """Print every occurrence; exit code 1 if there is one."""
    patterns = read_patterns()
    occurrences = [found for path in list_files() for found in find_occurrences(path, patterns)]
    for occurrence in occurrences:
        print(occurrence)
    if occurrences:
        print(f"{len(occurrences)} places to rewrite; tools/english.txt has the list of patterns")
    return 1 if occurrences else 0


if __name__ == "__main__":
    sys.exit(main())
