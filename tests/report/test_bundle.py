"""Vega's script becomes part of every report, so a different script is never used."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import pytest

from routeprism.errors import MissingExtraError, RunError
from routeprism.report import _html

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "routeprism" / "report"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(PACKAGE / "vega.sha256", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_build_hook_writes_the_script_that_reports_use(folder: Path) -> None:
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))
    hook["write_script"](folder)
    assert "vegaEmbed" in _html.read_script(folder)
    (folder / "vega.js").write_text("alert(1)")
    hook["write_script"](folder)
    assert _html.read_script(folder) == _html.vega_bundle()


def test_a_changed_script_is_refused(folder: Path) -> None:
    (folder / "vega.js").write_text(f"{_html.vega_bundle()};alert(1)")
    with pytest.raises(RunError, match=r"vega\.js is not the script"):
        _html.read_script(folder)


def test_without_the_script_and_its_maker_the_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'routeprism\[charts\]'"):
        _html.read_script(folder)


@pytest.mark.slow
def test_the_build_hook_refuses_a_script_of_another_version(folder: Path) -> None:
    (folder / "vega.sha256").write_text("0" * 64)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))
    with pytest.raises(RuntimeError, match="makes a different script"):
        hook["write_script"](folder)
    assert not (folder / "vega.js").exists()
