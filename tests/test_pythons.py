"""Which interpreters the fast tests also run on."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "pythons.py"))
SUPPORTED = [(3, 10), (3, 11), (3, 12), (3, 13)]


def test_the_supported_versions_are_those_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert TOOL["supported_versions"](project) == SUPPORTED


@pytest.mark.parametrize(
    ("installed", "own", "choice"),
    [
        ([(3, 10), (3, 12), (3, 13)], (3, 11), [(3, 10), (3, 13)]),
        ([(3, 10), (3, 11), (3, 12), (3, 13)], (3, 10), [(3, 13)]),
        ([(3, 12)], (3, 11), [(3, 12)]),
        ([(3, 11)], (3, 12), [(3, 11)]),
        ([(3, 12)], (3, 12), []),
        ([], (3, 11), []),
        ([(3, 13)], (3, 14), [(3, 13)]),  # one that is not supported yet
    ],
)
def test_the_oldest_and_the_newest_are_chosen(
    installed: list[tuple[int, int]], own: tuple[int, int], choice: list[tuple[int, int]]
) -> None:
    values = {version: Path(f"python{version[0]}.{version[1]}") for version in installed}
    assert list(TOOL["choose_interpreters"](values, SUPPORTED, own)) == choice


def test_an_interpreter_is_found_in_the_folder_of_pyenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = sys.version_info[:2]
    name = f"python{own[0]}.{own[1]}"
    broken = tmp_path / "versions" / f"{own[0]}.{own[1]}.99" / "bin" / name
    working = tmp_path / "versions" / f"{own[0]}.{own[1]}.1" / "bin" / name
    for path in (broken, working):
        path.parent.mkdir(parents=True)
    broken.write_text("no program")
    working.symlink_to(Path(sys.executable).resolve())
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert TOOL["find_interpreters"]([own, (3, 9)]) == {own: working}
