"""What a new user does first: install a wheel, and run the demonstration in an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import MissingExtraError
from routeprism.models import make_model
from routeprism.policies.streaming import fit_predictor

LARGEST = 180_000_000
"""Bytes on disk that the environment of a core installation may take, pip included."""


def run(*words: object, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COLUMNS")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_a_wheel_of_a_clean_checkout_runs_the_demonstration(
    installation: Any, demonstration: Any, tmp_path: Path
) -> None:
    """The wheel was built from the files that git knows, as a clone has them."""
    assert "routeprism/report/vega.js" in zipfile.ZipFile(installation.wheel).namelist()
    assert installation.size <= LARGEST

    assert "focal" in demonstration.printed
    report = (demonstration.directory / "runs" / "demo" / "report.html").read_text(encoding="utf-8")
    assert "window.vegaEmbed" in report
    lacking = "import routeprism, importlib.util as u; print(u.find_spec('vl_convert'))"
    assert run(installation.python, "-c", lacking, cwd=tmp_path) == "None\n"


@pytest.mark.parametrize("package", ["sklearn.linear_model", "scipy.sparse"])
def test_streaming_names_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'routeprism\[streaming\]'"):
        fit_predictor([])


def test_a_model_of_openai_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    assert make_model("openai:x").name == "openai:x"


@pytest.mark.slow
def test_charts_as_files_name_their_extra(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("audit", "sample", "-p", "recent:k=3", "--run", "run", "--resamples", "100", "-q")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    outcome = cli("report", "run", "--charts", "charts")
    assert outcome.code == 2
    assert "pip install 'routeprism[charts]'" in outcome.err


def test_a_local_model_names_its_extra_at_the_first_question(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    few = ("-s", "replay", "--resamples", "100", "--workers", "1")
    outcome = cli("audit", "sample", "-p", "recent:k=3", "-m", "smollm2", *few)
    assert outcome.code == 2
    assert outcome.err.endswith("smollm2 needs an extra: pip install 'routeprism[local]'\n")
    assert "in a row" not in outcome.err
