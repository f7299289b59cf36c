"""What README and docs show is what happens: every block is run, or checked where it cannot be.

A comment directly before a fence says what it is:

- `<!-- file: NAME -->`: the block is that file, in the page's directory;
- `<!-- output -->`: the block is what the one before it printed, or parts of it with `…` between;
- `<!-- needs: WHAT, WHAT -->`: `data` is there wherever ROUTEPRISM_DATA is set, `extra NAME` where
  that is installed (`make test-extras`), `perl` on most machines. `a browser`, `a service` and `an
  openai key` have stand-ins here: one that opens nothing, and servers on loopback. A block that
  needs anything else, such as a network, is only parsed.

In the directory that a page's blocks run in there are `examples`, `data` with the benchmarks that
are here and a small generated LongMemEval, `my-data`, and `my_package` with a memory and one that
rewrites without saying what. Sheets that are exported are filled in, for `ann` and `bob`, too.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
import yaml

from routeprism.cli import main
from routeprism.cli._app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
FENCE = re.compile(
    r"^(?:<!-- (?P<said>[^>]+) -->\n)?```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
SHELLS = ("console", "sh", "bash")
EXTRAS = {
    "extra langgraph": "langgraph",
    "extra langmem": "langmem",
    "extra llamaindex": "llama_index",
    "extra mem0": "mem0",
}
"""What an extra is imported as."""
KEY = "an openai key"
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
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMMAND: Any = typer.main.get_command(app)


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
    found = []
    for match in FENCE.finditer(text):
        said = match["said"] or ""
        name, _, value = said.partition(": ")
        found.append(
            Block(
                page=str(page.relative_to(ROOT)),
                line=text[: match.start()].count("\n") + 1,
                kind=match["kind"],
                body=match["body"],
                file=value if name == "file" else "",
                needs=value if name == "needs" else "",
                output=said == "output",
            )
        )
    return found


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Give each command of a shell block with the output that is shown below it."""
    command, shown = "", ""
    for line in block.body.replace("\\\n", " ").splitlines():
        starts = line.startswith("$ ") or (block.kind != "console" and line.strip())
        if starts:
            if command:
                yield command, shown
            command, shown = line.removeprefix("$ "), ""
        else:
            shown += line + "\n"
    if command:
        yield command, shown


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


def parse(arguments: list[str], place: str) -> None:
    """Fail where a command or an option does not exist."""
    try:
        with COMMAND.make_context("routeprism", list(arguments)) as above:
            name, found, rest = COMMAND.resolve_command(above, list(arguments))
            with found.make_context(name, rest, parent=above):
                pass
    except Exception as error:
        message = getattr(error, "message", error)
        pytest.fail(f"{place}: routeprism {shlex.join(arguments)}: {message}", pytrace=False)


def call(arguments: list[str]) -> tuple[int, str]:
    out = io.StringIO()
    before, sys.argv = sys.argv, ["routeprism", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main()
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    finally:
        sys.argv = before
    return 0, out.getvalue()


def squeezed(text: str) -> str:
    return " ".join(text.split())


def compare(shown: str, printed: str, place: str) -> None:
    """Hold every part of what is shown (between lines `…`) to what was printed, in its order."""
    rest = squeezed(printed)
    for part in re.split(r"^\s*…\s*$", shown, flags=re.MULTILINE):
        wanted = squeezed(part)
        at = rest.find(wanted)
        assert at >= 0, f"{place} shows\n{part}\nbut this was printed:\n{printed}"
        rest = rest[at + len(wanted) :]


CALLS: dict[tuple[str, ...], tuple[int, str]] = {}
"""What calls on the sample printed, which several pages show."""


def called_once(arguments: list[str]) -> tuple[int, str]:
    key = tuple(arguments)
    if (
        "sample" not in key
        or "--run" in key
        or any(":" in word and "=" not in word for word in key)
    ):
        return call(arguments)  # it may read or leave files
    if key not in CALLS:
        CALLS[key] = call(arguments)
    return CALLS[key]


def run_command(command: str, block: Block, compared: bool) -> str:
    """Run one command of a page, or only parse it; with few resamples unless it is compared."""
    program, *arguments = words(command)
    if program == "make":
        for target in arguments:
            recipe = re.search(rf"^{target}:.*\n(?:\t\$\(BIN\)/routeprism (.*))?", MAKEFILE, re.M)
            assert recipe, f"{block.place}: there is no target {target} in the Makefile"
            if recipe[1]:
                return demo(recipe[1])
        return ""
    if program == "pip":
        for extra in re.findall(r"routeprism\[(\w+)\]", command):
            assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        return ""
    if program == "python":
        assert (ROOT / arguments[0]).is_file(), f"{block.place}: there is no {arguments[0]}"
        if arguments[-1] == "&":
            serve(arguments[:-1])
        return ""
    if program == "pytest":
        called = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        ended = subprocess.run(called, capture_output=True, text=True, check=False)
        code, printed = ended.returncode, ended.stdout
    else:
        assert program == "routeprism", f"{block.place}: what is {program}?"
        parse(arguments, block.place)
        if not block.runs:
            return ""
        fast = not compared and arguments[0] in ("audit", "restore", "orders")
        code, printed = called_once([*arguments, *(["--resamples", "200"] if fast else [])])
        if "--export" in arguments:
            fill_in(Path(arguments[arguments.index("--export") + 1]))
    wanted = 1 if "# exits with 1" in command else 0
    assert code == wanted, f"{block.place}: {command} ended with {code}:\n{printed}"
    return printed


SERVING: list[subprocess.Popen[bytes]] = []
"""What a page started in the background; the desk ends it."""


def serve(arguments: list[str]) -> None:
    """Start a service, and wait until it listens."""
    port = int(arguments[arguments.index("--port") + 1])
    SERVING.append(subprocess.Popen([sys.executable, *arguments]))
    for _ in range(100):
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


@lru_cache(maxsize=1)
def demo(arguments: str) -> str:
    code, printed = call([*words(arguments), "--quiet"])
    assert code == 0, printed
    return printed


def run_python(block: Block) -> str:
    tree = ast.parse(block.body, block.place)
    if not block.runs:
        return ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, block.place, "exec"), {"__name__": "page"})  # noqa: S102
    return out.getvalue()


def check_data(block: Block) -> None:
    if block.kind == "json":
        try:
            json.loads(block.body)
        except json.JSONDecodeError:
            for line in block.body.splitlines():
                json.loads(line)
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
    return directory


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_histories: Path) -> Iterator[Path]:
    """An empty directory that a page's blocks share, with the examples beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("GITHUB_ACTIONS", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "my_package").mkdir()
    for name, written in (("my_module", MEMORY), ("rewriting", REWRITING)):
        (tmp_path / "my_package" / f"{name}.py").write_text(written, encoding="utf-8")
    (tmp_path / "my-data").mkdir()
    for name, rows in (("records", RECORDS), ("questions", QUESTIONS)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "my-data" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "longmemeval").symlink_to(long_histories)
    if "ROUTEPRISM_DATA" in os.environ:
        for name in ("personamem-32k", "locomo"):
            (tmp_path / "data" / name).symlink_to(Path(os.environ["ROUTEPRISM_DATA"]) / name)
    before = set(sys.modules)
    yield tmp_path
    while SERVING:
        service = SERVING.pop()
        service.terminate()
        service.wait()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def a_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Serves a model that answers with letters, for who has a key."""
    loopback = runpy.run_path(str(Path(__file__).with_name("support_server.py")))["Loopback"]
    with contextlib.ExitStack() as stack:

        def give() -> None:
            monkeypatch.setenv("OPENAI_API_KEY", "none")
            monkeypatch.setenv("OPENAI_BASE_URL", stack.enter_context(loopback()).url)

        yield give


@pytest.mark.parametrize("name", NAMES)
def test_every_block_of_a_page_runs(name: str, desk: Path, a_model: Callable[[], None]) -> None:
    printed = ""
    found = blocks(ROOT / name)
    if any(KEY in block.needs for block in found):
        a_model()
    for at, block in enumerate(found):
        if block.file:
            path = desk / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
        if block.output:
            compare(block.body, printed, block.place)
        elif block.kind in SHELLS:
            printed = ""
            for command, shown in commands(block):
                followed = at + 1 < len(found) and found[at + 1].output
                said = run_command(command, block, bool(shown.strip()) or followed)
                if shown.strip() and block.runs:
                    compare(shown, said, block.place)
                printed += said
        elif block.kind == "python":
            printed = run_python(block)
        else:
            assert block.kind in ("text", "json", "yaml"), f"{block.place}: what is {block.kind}?"
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


def test_the_two_commands_come_first_in_the_readme() -> None:
    first = next(block for block in blocks(ROOT / "README.md") if block.kind == "console")
    assert [words(command) for command, _ in commands(first)][:2] == [
        ["make", "demo"],
        ["make", "test"],
    ]


def test_the_ten_lines_of_the_readme_are_at_most_ten() -> None:
    (code,) = [block.body for block in blocks(ROOT / "README.md") if block.kind == "python"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_generated_pages_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for path, text in loaded(ROOT / "tools" / "reference.py").pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run make docs-reference"


@pytest.mark.slow
def test_the_site_builds_and_fetches_nothing(tmp_path: Path) -> None:
    """--strict: every page is in the nav, and every link and anchor leads somewhere."""
    called = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    ended = subprocess.run(
        [*called, "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    fetched = re.compile(r'<(?:script|img|link)[^>]+(?:src|href)="?(?:https?:)?//[^">]+')
    for page in (tmp_path / "site").rglob("*.html"):
        assert not fetched.findall(page.read_text(encoding="utf-8")), page
