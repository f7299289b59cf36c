"""The journeys in the architecture page name functions that exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import routeprism

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def _functions() -> list[str]:
    sections = PAGE.read_text().split("\n## ")
    journeys = [section for section in sections if section.startswith("Journey")]
    names = [re.findall(r"`(routeprism\.[\w.]+)`", journey) for journey in journeys]
    assert len(names) == 3, "an audit, a restored answer, and a number back to its code"
    assert all(len(journey) >= 5 for journey in names), "a journey can be followed step by step"
    return [name for journey in names for name in journey]


@pytest.mark.parametrize("name", _functions())
def test_a_function_of_a_journey_exists(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert callable(getattr(import_module(module), function))


def test_the_table_has_every_package() -> None:
    text = PAGE.read_text().split("\n## ")[1]
    names = {name for row in text.splitlines() if row.startswith("| `") for name in _first(row)}
    source = Path(routeprism.__file__).parent
    files = {path.name for path in source.glob("*.py") if not path.name.startswith("_")}
    folders = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    assert names == files | folders


def _first(row: str) -> list[str]:
    return re.findall(r"`([^`]+)`", row.split("|")[1])
