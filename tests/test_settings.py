"""Settings as data: one declaration gives the checks, the signature, the identity and a command."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from routeprism.errors import SpecError
from routeprism.settings import (
    ANSWERS,
    compose,
    describe_options,
    make_settings,
    option,
    options_of,
    read_command,
    signature_of,
    take,
    write_command,
)


@dataclass(frozen=True)
class Subject:
    benchmark: str = option(help="The benchmark.", flag="")
    policies: Sequence[str] = option(help="A policy.", flag="--policy", short="-p")
    data: Path | None = option(None, help="The files.", identity=False)


@dataclass(frozen=True)
class Asking:
    models: Sequence[str] = option(
        (), help="A model.", group=ANSWERS, flag="--model", accepts="Sequence[str | Model]"
    )
    draws: int = option(1, help="Answers per prompt.", group=ANSWERS, minimum=1)
    reuse: bool = option(False, help="Reuse states.", group=ANSWERS)


Restoration = compose("Restoration", Subject, Asking, defaults={"draws": 3}, without=["reuse"])


def test_composed_settings_have_the_fields_of_their_parts() -> None:
    names = [item.name for item in options_of(Restoration)]
    assert names == ["benchmark", "policies", "data", "models", "draws"]
    settings = make_settings(Restoration, {"benchmark": "sample", "policies": "focal"})
    assert (settings.policies, settings.draws) == (("focal",), 3)  # a single value is a list of one
    assert take(Subject, settings) == Subject(benchmark="sample", policies=("focal",))
    with pytest.raises(TypeError, match="two parts of Twice declare 'benchmark'"):
        compose("Twice", Subject, Subject)
    with pytest.raises(TypeError, match="Wrong has no 'drawn'"):
        compose("Wrong", Asking, defaults={"drawn": 3})


def test_wrong_values_are_refused_by_their_python_name() -> None:
    values = {"benchmark": "sample", "policies": ["focal"]}
    with pytest.raises(SpecError, match="Expected draws of 1 or more but got draws=0"):
        make_settings(Restoration, {**values, "draws": 0})
    with pytest.raises(TypeError, match=r"There is no argument 'model'\. Did you mean 'models'\?"):
        make_settings(Restoration, {**values, "model": "reader"})
    with pytest.raises(TypeError, match="The argument 'policies' is missing"):
        make_settings(Restoration, {"benchmark": "sample"})


def test_the_command_has_what_makes_it_this_run_and_no_secret() -> None:
    settings = make_settings(
        compose("Audit", Subject, Asking),
        {
            "benchmark": "my data",
            "policies": ["focal", "raw"],
            "models": ["openai:m,base_url=http://me:secret@host/v1"],
            "draws": 1,
            "reuse": True,
            "data": Path("here"),
        },
    )
    assert write_command("audit", settings) == [
        *("audit", "my data", "--policy", "focal", "--policy", "raw"),
        *("--model", "openai:m,base_url=http://[hidden]@host/v1", "--reuse"),
    ]


def test_objects_are_written_by_their_names() -> None:
    class WithName:
        name = "mine"

    settings = make_settings(Restoration, {"benchmark": WithName(), "policies": [WithName, Path]})
    module = Path.__module__
    assert write_command("restore", settings) == [
        *("restore", "mine", "--policy", "mine", "--policy", f"{module}:Path"),
    ]


def test_the_signature_and_the_documentation_come_from_the_same_fields() -> None:
    first = inspect.Parameter("benchmark", inspect.Parameter.POSITIONAL_ONLY)
    signature = signature_of(Restoration, [first])
    assert str(signature) == (
        "(benchmark, /, *, policies: 'Sequence[str]', data: 'str | Path | None' = None, "
        "models: 'Sequence[str | Model]' = (), draws: 'int' = 3)"
    )
    assert describe_options(Asking).splitlines() == [
        "Args:",
        "    models: A model.",
        "    draws: Answers per prompt.",
        "    reuse: Reuse states.",
    ]


def test_the_words_of_a_command_give_its_settings_again() -> None:
    settings = make_settings(
        compose("Audit", Subject, Asking),
        {"benchmark": "sample", "policies": ["focal", "recent:k=3"], "models": ["m"], "draws": 4}
        | {"reuse": True},
    )
    command, *words = write_command("audit", settings)
    assert (command, read_command(type(settings), words)) == ("audit", settings)
