"""What a new user does first: install a wheel, and run the demonstration in an empty directory."""

from __future__ import annotations

import os
import re
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


ROOT = Path(__file__).parent.parent
PIN = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?==(?P<version>\S+)(?P<marker> ; [^\\]+)?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def read_pins(file: str) -> dict[tuple[str, str], tuple[str, int]]:
    """Read a file of locked requirements: name and marker → version, and the number of hashes."""
    text = "\n".join(
        line for line in (ROOT / file).read_text("utf-8").splitlines() if "    #" not in line
    )
    pins = {}
    for entry in text.replace("\\\n", "").splitlines():
        first, *hashes = entry.split(" --hash")
        pin = PIN.fullmatch(first.strip())
        assert pin is not None, f"{file}: no pinned requirement: {entry[:80]}"
        number = sum(HASH.fullmatch(f"--hash{item.strip()}") is not None for item in hashes)
        assert number == len(hashes)
        pins[pin["name"], (pin["marker"] or "").strip()] = (pin["version"], number)
    return pins


@pytest.mark.parametrize(
    "file", ["requirements.txt", "requirements-core.txt", "requirements-extras.txt"]
)
def test_every_locked_requirement_carries_hashes(file: str) -> None:
    """pip checks hashes only if every requirement has one; all files have the same versions."""
    pins = read_pins(file)
    assert len(pins) > 10
    assert [name for name, (_, hashes) in pins.items() if hashes == 0] == []
    assert "://" not in (ROOT / file).read_text("utf-8")
    base = read_pins("requirements.txt")
    shared = {name: version for (name, _), (version, _) in base.items()}
    versions = {(name, version) for (name, _), (version, _) in base.items()}
    assert {(n, v) for (n, _), (v, _) in pins.items() if n in shared} <= versions


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
