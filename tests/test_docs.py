"""What README and docs show is what happens: every block is run, or checked where it cannot be.

The blocks run in a small environment that a wheel was installed into (`installation` of
conftest.py), through `page_runner.py`. Extras come from the development environment, and only for
blocks that name them.

A comment directly before a fence says what it is:

- `<!-- file: NAME -->`: the block is that file, in the page's directory;
- `<!-- output -->`: the block is what the one before it printed, or parts of it with `…` between;
- `<!-- needs: WHAT, WHAT -->`: `data` is there wherever ROUTEPRISM_DATA is set, `extra NAME` where
  that is installed (some only by `make test-extras`), `perl` on most machines. `a browser`, `a
  service` and `an openai key` have stand-ins here: one that opens nothing, and servers on loopback.
  A block that needs anything else, such as a network, is only parsed.

In the directory that a page's blocks run in there are `examples`, `data` with the benchmarks that
are here and a small generated LongMemEval, `my-data`, and `my_package` with a memory and one that
rewrites without saying what. Sheets that are exported are filled in, for `ann` and `bob`, too.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import importlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from routeprism.cli import COMMANDS
from routeprism.cli import parse as parse_command

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
FENCE = re.compile(
    r"^(?:<!-- (?P<said>[^>]+) -->\n)?```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
SHELLS = ("console", "sh", "bash")
KEY = "an openai key"
EXTRAS = {
    "extra charts": "vl_convert",
    "extra inspect": "inspect_ai",
    "extra pandas": "pandas",
    "extra parquet": "duckdb",
    "extra streaming": "sklearn",
    "extra langgraph": "langgraph",
    "extra langmem": "langmem",
    "extra llamaindex": "llama_index",
    "extra mem0": "mem0",
    "extra graphiti": "graphiti_core",
}
"""What an extra is imported as."""
STAND_INS = ("a browser", "a service", KEY)
MEMORY = """
from routeprism import Block


class Memory:
    def __init__(self):
        self.records = []

    def add(self, record):
        self.records = [*self.records, record][-2:]

    def retained(self):
        return {record.id for record in self.records}

    def expose(self, query):
        return [Block("record", record.text, {record.id}) for record in self.records]
"""
REWRITING = MEMORY.replace("record.text, {record.id}", "'They moved.', ()")
RECORDS = [
    {"user": "ann", "id": "r1", "text": "Ann has moved to Graz."},
    {"user": "ann", "id": "r2", "text": "Ann keeps bees."},
]
QUESTIONS = [{"user": "ann", "id": "q1", "text": "Where does Ann live?", "support": ["r1"]}]
SETTING_UP = ("python3 -m venv .venv", ". .venv/bin/activate")
GLOBAL = ("--help", "-h", "--version", "--install-completion", "--show-completion")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    kind: str
    body: str
    file: str = ""
    needs: str = ""
    output: bool = False

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether all that it needs is here."""
        return all(map(is_here, filter(None, self.needs.split(", "))))


def is_here(need: str) -> bool:
    if need in EXTRAS:
        return importlib.util.find_spec(EXTRAS[need]) is not None
    if need == "data":
        return "ROUTEPRISM_DATA" in os.environ
    return need in STAND_INS or (need == "perl" and shutil.which(need) is not None)


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    values = []
    for match in FENCE.finditer(text):
        is_same = match["said"] or ""
        name, _, value = is_same.partition(": ")
        values.append(
            Block(
                page=str(page.relative_to(ROOT)),
                line=text[: match.start()].count("\n") + 1,
                kind=match["kind"],
                body=match["body"],
                file=value if name == "file" else "",
                needs=value if name == "needs" else "",
                output=is_same == "output",
            )
        )
    return values


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Give each command of a shell block with the output that is shown below it."""
    command, text = "", ""
    for line in block.body.replace("\\\n", " ").splitlines():
        starts = line.startswith("$ ") or (block.kind != "console" and line.strip())
        if starts:
            if command:
                yield command, text
            command, text = line.removeprefix("$ "), ""
        else:
            text += line + "\n"
    if command:
        yield command, text


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


def parse(arguments: list[str], place: str) -> None:
    """Fail where a command or an option does not exist."""
    try:
        if arguments and arguments[0] in COMMANDS:
            parse_command(arguments[0], arguments[1:])
        else:
            assert not arguments or arguments[0] in GLOBAL, arguments[0]
    except Exception as error:
        pytest.fail(f"{place}: routeprism {shlex.join(arguments)}: {error}", pytrace=False)


class Desk:
    """Sends what a page's blocks do to the interpreter of the installed wheel."""

    def __init__(self, python: Path) -> None:
        self.python = python
        self.demonstration = ""
        self._called: dict[tuple[str, ...], tuple[int, str]] = {}
        self._process = subprocess.Popen(
            [str(python), "-W", "error", str(Path(__file__).with_name("page_runner.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def send(self, **request: object) -> tuple[int, str]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        return reply["code"], reply["printed"]

    def call(self, arguments: list[str]) -> tuple[int, str]:
        """Call the program; once only for calls on the sample, which several pages show."""
        key = tuple(arguments)
        files = "--run" in key or any(":" in word and "=" not in word for word in key)
        if "sample" not in key or files:  # it may read or leave files
            return self.send(do="command", arguments=arguments)
        if key not in self._called:
            self._called[key] = self.send(do="command", arguments=arguments)
        return self._called[key]

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def desk(installation: Any) -> Iterator[Desk]:
    result = Desk(installation.python)
    yield result
    result.close()


def squeezed(text: str) -> str:
    return " ".join(text.split())


def compare(excerpt: str, printed: str, place: str) -> None:
    """Hold every part of what is shown (between lines `…`) to what was printed, in its order."""
    rest = squeezed(printed)
    for part in re.split(r"^\s*…\s*$", excerpt, flags=re.MULTILINE):
        expected = squeezed(part)
        at = rest.find(expected)
        assert at >= 0, f"{place} shows\n{part}\nbut this was printed:\n{printed}"
        rest = rest[at + len(expected) :]


def run_command(desk: Desk, command: str, block: Block, compared: bool) -> str:
    """Run one command of a page, or only parse it; with few resamples unless it is compared."""
    program, *arguments = words(command)
    if program == "make":
        for target in arguments:
            recipe = re.search(
                rf"^{target}:.*\n(?:\t\$\(DEMO\)/bin/routeprism (.*))?", MAKEFILE, re.M
            )
            assert recipe, f"{block.place}: there is no target {target} in the Makefile"
            if recipe[1]:
                assert recipe[1] == "demo --run runs/demo"
                return desk.demonstration
        return ""
    if command in SETTING_UP:
        return ""
    if program == "pip":
        for extra in re.findall(r"routeprism\[(\w+)\]", command):
            assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        return ""
    if program == "npm":
        assert arguments[-1] in MAKEFILE, (
            f"{block.place}: the Makefile installs a different version"
        )
        return ""
    if program == "python":
        assert (ROOT / arguments[0]).is_file(), f"{block.place}: there is no {arguments[0]}"
        if arguments[-1] == "&":
            serve(desk.python, arguments[:-1])
        return ""
    if program == "pytest":
        called = [str(desk.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        ended = subprocess.run(called, capture_output=True, text=True, check=False)
        code, printed = ended.returncode, ended.stdout
    else:
        assert program == "routeprism", f"{block.place}: what is {program}?"
        parse(arguments, block.place)
        if not block.runs:
            return ""
        fast = not compared and arguments[0] in ("audit", "restore", "orders")
        code, printed = desk.call([*arguments, *(["--resamples", "200"] if fast else [])])
        if "--export" in arguments:
            fill_in(Path(arguments[arguments.index("--export") + 1]))
    expected = 1 if "# exits with 1" in command else 0
    assert code == expected, f"{block.place}: {command} ended with {code}:\n{printed}"
    return printed


SERVING: list[subprocess.Popen[bytes]] = []
"""What a page started in the background; the desk ends it."""


def serve(python: Path, arguments: list[str]) -> None:
    """Start a service, and wait until it listens."""
    port = int(arguments[arguments.index("--port") + 1])
    SERVING.append(subprocess.Popen([str(python), *arguments]))
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    pytest.fail(f"nobody listens on port {port}")


def fill_in(sheet: Path) -> None:
    """Do what a person does with an exported sheet: a label in every line."""
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["label"] = (
            "admissible" if "reason" in row else "direct" if row["record"] == "1" else "none"
        )
    for path in (sheet, Path("ann.csv"), Path("bob.csv")):
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


def run_python(desk: Desk, block: Block) -> str:
    ast.parse(block.body, block.place)
    if not block.runs:
        return ""
    code, printed = desk.send(do="python", body=block.body, place=block.place)
    assert code == 0, printed
    return printed


def check_data(block: Block) -> None:
    if block.kind == "json":
        try:
            json.loads(block.body)
        except json.JSONDecodeError:
            for line in block.body.splitlines():
                json.loads(line)
    if block.kind == "toml":
        importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(
            block.body
        )
    if block.kind == "yaml":
        for line in re.findall(r"run: (routeprism .*)", block.body):
            parse(words(line)[1:], block.place)
        assert yaml.safe_load(block.body)


@pytest.fixture(scope="module")
def long_histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight questions in the form of LongMemEval, with histories of 40 sessions or more."""
    directory = tmp_path_factory.mktemp("longmemeval")
    module = loaded(ROOT / "benchmarks" / "longmemeval_generate.py")
    module.write(directory / "longmemeval_s_cleaned.json", 8)
    if "ROUTEPRISM_DATA" in os.environ:
        name = "session_index_237.json.gz"
        (directory / name).symlink_to(Path(os.environ["ROUTEPRISM_DATA"]) / "longmemeval" / name)
    return directory


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_histories: Path) -> Iterator[Path]:
    """An empty directory that a page's blocks share, with the examples beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("GITHUB_ACTIONS", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "my_package").mkdir()
    for name, content in (("my_module", MEMORY), ("rewriting", REWRITING)):
        (tmp_path / "my_package" / f"{name}.py").write_text(content, encoding="utf-8")
    (tmp_path / "my-data").mkdir()
    for name, rows in (("records", RECORDS), ("questions", QUESTIONS)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "my-data" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "longmemeval").symlink_to(long_histories)
    if "ROUTEPRISM_DATA" in os.environ:
        for name in ("personamem-32k", "locomo"):
            (tmp_path / "data" / name).symlink_to(Path(os.environ["ROUTEPRISM_DATA"]) / name)
    yield tmp_path
    while SERVING:
        service = SERVING.pop()
        service.terminate()
        service.wait()


@pytest.fixture
def a_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Serves a model that answers with letters, for who has a key."""
    from .support_server import Loopback

    with contextlib.ExitStack() as stack:

        def give() -> None:
            monkeypatch.setenv("OPENAI_API_KEY", "none")
            monkeypatch.setenv("OPENAI_BASE_URL", stack.enter_context(Loopback()).url)

        yield give


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_block_of_a_page_runs(
    name: str, desk: Desk, table: Path, a_model: Callable[[], None], request: pytest.FixtureRequest
) -> None:
    printed = ""
    result = blocks(ROOT / name)
    if any(KEY in block.needs for block in result):
        a_model()
    if any("make demo" in block.body for block in result):
        desk.demonstration = request.getfixturevalue("demonstration").printed
    desk.send(do="begin", directory=str(table), environment=dict(os.environ))
    for at, block in enumerate(result):
        if block.runs and any(need in EXTRAS for need in block.needs.split(", ")):
            desk.send(do="extend", directory=sysconfig.get_path("purelib"))
        if block.file:
            path = table / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
        if block.output:
            compare(block.body, printed, block.place)
        elif block.kind in SHELLS:
            printed = ""
            for command, display in commands(block):
                followed = at + 1 < len(result) and result[at + 1].output
                text = run_command(desk, command, block, bool(display.strip()) or followed)
                if display.strip() and block.runs:
                    compare(display, text, block.place)
                printed += text
        elif block.kind == "python":
            printed = run_python(desk, block)
        else:
            assert block.kind in ("text", "json", "toml", "yaml"), (
                f"{block.place}: what is {block.kind}?"
            )
            check_data(block)


def test_markers_stand_before_fences_and_commands_without_a_fence_are_right() -> None:
    for page, name in zip(PAGES, NAMES, strict=True):
        text = page.read_text(encoding="utf-8")
        comments = re.findall(r"^<!-- (?:needs|file|output).*-->\n(?!```)", text, re.M)
        assert not comments, f"{name}: {comments} is not directly before a fence"
        for command in re.findall(r"^ {4}(routeprism .*)", FENCE.sub("", text), re.M):
            parse(words(command)[1:], name)


def test_a_wrong_option_is_found() -> None:
    with pytest.raises(pytest.fail.Exception, match="--polcy"):
        parse(["audit", "sample", "--polcy", "focal"], "here:1")


def test_output_that_was_not_printed_is_found() -> None:
    compare("a  b\n…\nd\n", "a\nb c d", "here:1")
    with pytest.raises(AssertionError, match="here:1 shows"):
        compare("d\n…\na b\n", "a\nb c d", "here:1")


def test_the_readme_installs_first_and_then_names_the_two_commands() -> None:
    install, both = [b for b in blocks(ROOT / "README.md") if b.kind == "console"][:2]
    assert [command for command, _ in commands(install)][:3] == [*SETTING_UP[:2], "pip install ."]
    assert [words(command) for command, _ in commands(both)] == [["make", "demo"], ["make", "test"]]


def test_the_readme_fits_on_a_few_screens_and_uses_no_symbol_of_the_paper() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    symbols = r"\b[JVCIH]\b(?!\.)|D_res|Delta_rep|[Δδ×Γκ]|H_within"
    assert not re.findall(symbols, text)


LONG = ("Reference", "Research")
"""Parts of the navigation whose pages may be of any length."""


def pages_of(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    items = part.values() if isinstance(part, dict) else part
    return [page for item in items for page in pages_of(item)]  # type: ignore[attr-defined]


def test_pages_outside_of_reference_and_research_have_at_most_1500_words() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text)["nav"]
    short = [part for part in nav if not set(part) & set(LONG)]
    for page in pages_of(short):
        length = len((ROOT / "docs" / page).read_text(encoding="utf-8").split())
        assert length <= 1500, f"docs/{page} has {length} words"


def test_every_page_begins_with_whom_it_is_for() -> None:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"))
        opening = next(p for p in text.split("\n\n")[1:] if p.strip())
        assert "This page is for" in opening, f"{path.name} does not say whom it is for"


def test_the_ten_lines_of_the_readme_are_at_most_ten() -> None:
    (code,) = [block.body for block in blocks(ROOT / "README.md") if block.kind == "python"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


def test_the_generated_pages_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for path, text in loaded(ROOT / "tools" / "reference.py").pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run make docs-reference"
