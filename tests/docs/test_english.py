"""The English of docs, strings and docstrings follows the list of tools/english.txt."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def english() -> ModuleType:
    spec = importlib.util.spec_from_file_location("english", ROOT / "tools" / "english.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["english"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_docs_and_source_contain_no_pattern_of_the_list(
    english: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert english.main() == 0, capsys.readouterr().out


def test_an_occurrence_names_file_line_and_advice(english: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nThe count\nrests on it.\n", encoding="utf-8")
    (occurrence,) = english.find_occurrences(page, english.read_patterns())
    assert str(occurrence) == "page.md:4: 'rests on': \"depends on\""


def test_docstrings_and_messages_are_read_and_code_is_not(
    english: ModuleType, tmp_path: Path
) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Help nobody here."""\n\nnobody = "nobody"\nmessage = f"ask {nobody} or somebody"\n',
        encoding="utf-8",
    )
    occurrences = english.find_occurrences(module, english.read_patterns())
    assert [(item.line, item.words) for item in occurrences] == [(1, "nobody"), (4, "somebody")]
    page = tmp_path / "code.md"
    page.write_text("Use `nobody`:\n\n```text\nnobody\n```\n", encoding="utf-8")
    assert not english.find_occurrences(page, english.read_patterns())


def test_the_texts_of_data_files_are_read(english: ModuleType, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text('{\n "nobody": ["ask \\"somebody\\" here"]\n}\n', encoding="utf-8")
    (occurrence,) = english.find_occurrences(data, english.read_patterns())
    assert (occurrence.line, occurrence.words) == (2, "somebody")


def test_every_pattern_has_advice(english: ModuleType) -> None:
    assert all(pattern.advice for pattern in english.read_patterns())
