"""A request: the settings of a command with everything loaded and parsed that they name."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from routeprism.answers import EmbeddedJudge, Judge, ModelJudge, RecordedJudge, make_judge
from routeprism.api.settings import settings_for
from routeprism.errors import ModelError, SpecError
from routeprism.experiments import Asking, Budgets, Manner
from routeprism.labels import mask_from_file, with_label_file
from routeprism.models import (
    Allowance,
    Ask,
    Model,
    Reply,
    costs_money,
    make_allowance,
    make_models,
    replay_model,
)
from routeprism.models.recorded import Recorded
from routeprism.policies import (
    Interface,
    Policy,
    SourceOrder,
    as_policy,
    builder_model,
    describe_client,
    make_policy,
    own_source,
    parse_interface,
    refuse_unpriced,
)
from routeprism.records import Benchmark, load_benchmark, only_kinds
from routeprism.runs import Cassette, check_cassette
from routeprism.settings import (
    describe_options,
    make_settings,
    options_of,
    signature_of,
    write_command,
)
from routeprism.workers import RayCluster, check_workers

__all__ = ["RunRequest", "load_named", "name_run", "prepare", "read_masks", "takes_settings"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Masks = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class AnyModel:
    """Stands for a model that is not named yet: a dry run counts what any would be asked."""

    name: str = "each model"
    embedded: bool = False
    concurrency: int = 1

    @property
    def settings(self) -> Mapping[str, str]:
        """It has none."""
        return {}

    def answer(self, ask: Ask, /) -> Reply:
        """Refuse: a dry run asks nothing."""
        raise ModelError("no model is named; pass models")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One call of a command that makes a run."""

    command: str
    settings: Any
    benchmark: Benchmark
    policies: tuple[Policy, ...]
    masks: Masks
    asking: Asking | None = None
    allowance: Allowance | None = None
    cassette: Cassette | None = None
    """Recorded replies that stand for every model."""
    cluster: RayCluster | None = None
    """Where models that compute in this process answer instead."""

    @property
    def words(self) -> list[str]:
        """Return the words of the command that resumes it."""
        return ["demo"] if self.command == "demo" else write_command(self.command, self.settings)

    @property
    def directory(self) -> Path | None:
        """Return the directory of the run; None if nothing is kept."""
        return None if self.settings.run is None else Path(self.settings.run)

    @property
    def builders(self) -> list[Model]:
        """Return the models that build memories."""
        return [model for policy in self.policies if (model := builder_model(policy)) is not None]

    def may_spend(self) -> bool:
        """Return whether building, answering or judging may cost money."""
        if self.cassette is not None:
            return False
        return any(map(costs_money, _asked_models(self.asking))) or self.may_build_cost()

    def may_build_cost(self) -> bool:
        """Return whether building may cost money."""
        clients = (describe_client(policy) for policy in self.policies)
        spends = any(client is not None and client.spends for client in clients)
        return spends or any(map(costs_money, self.builders))

    def with_run(self) -> RunRequest:
        """Choose a directory for the request, named by its content, unless it has one."""
        if self.directory is not None:
            return self
        models = [*(self.asking.models if self.asking else ()), *self.builders]
        content: list[Any] = [self.benchmark.fingerprint, *map(own_source, self.policies)]
        content += [[model.name, dict(model.settings)] for model in models]
        directory = name_run(self.command, self.settings, content)
        return replace(self, settings=replace(self.settings, run=directory))


def name_run(command: str, settings: Any, content: Sequence[Any]) -> Path:
    """Name a run by its settings and content, so that the same call finds its own run again."""
    words = write_command(command, settings, resume=False)
    identity = json.dumps([words, list(content)], sort_keys=True, default=str)
    benchmark = str(getattr(settings.benchmark, "name", settings.benchmark))
    name = Path(benchmark.partition(":")[0]).name or "data"
    return Path("runs") / f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def prepare(command: str, settings: Any, *, allowance: Allowance | None = None) -> RunRequest:
    """Load and parse what settings name; nothing is built, asked or written."""
    check_workers(settings.workers)
    if getattr(settings, "measure", False) and not settings.dry_run:
        raise SpecError("measure applies to a dry run: set dry_run as well")
    asking = _make_asking(command, settings, allowance) if hasattr(settings, "models") else None
    benchmark = load_named(settings)
    policies = _make_policies(settings, benchmark)
    shared = allowance or make_allowance(
        [model for policy in policies if (model := builder_model(policy)) is not None],
        settings.max_calls,
        settings.max_cost,
    )
    refuse_unpriced(policies, allowance.max_cost if allowance else settings.max_cost)
    masks = read_masks(getattr(settings, "masks", ()), benchmark)
    used = shared if asking is None else asking.allowance
    cassette = _open_cassette(settings)
    if asking is not None and cassette is not None:
        asking = _replay_asking(asking, cassette)
    return RunRequest(command, settings, benchmark, tuple(policies), masks, asking, used, cassette)


def _open_cassette(settings: Any) -> Cassette | None:
    """Read the cassette that stands for models, if one is named, and check one to write to."""
    path, record = getattr(settings, "replay", None), getattr(settings, "record", None)
    if record is not None:
        check_cassette(Path(record))
    if path is None:
        return None
    if settings.dry_run:
        raise SpecError("replay asks no model, so dry_run has nothing to count: set one of them")
    if record is not None:
        raise SpecError("record and replay exclude each other: set one of them")
    return Cassette.read(Path(path))


def _replay_asking(asking: Asking, cassette: Cassette) -> Asking:
    """Put a cassette in the place of the models that answer and judge."""
    judge = asking.judge
    if isinstance(judge, ModelJudge):
        judge = replace(judge, model=replay_model(judge.model, cassette))
    models = tuple(replay_model(model, cassette) for model in asking.models)
    return replace(asking, models=models, judge=judge)


def load_named(settings: Any) -> Benchmark:
    """Load the benchmark, with the labels of further files and the questions of some kinds."""
    benchmark = settings.benchmark
    if not isinstance(benchmark, Benchmark):
        benchmark = load_benchmark(str(benchmark), Path(settings.data) if settings.data else None)
    readings = getattr(settings, "readings", ())
    for file in readings:
        benchmark = with_label_file(benchmark, Path(file))
    if readings and settings.labels is None:
        raise SpecError(f"choose the labels to use: labels={benchmark.labels[-1]!r}")
    return only_kinds(benchmark, settings.kinds) if settings.kinds else benchmark


def read_masks(masks: Sequence[str] | Masks, benchmark: Benchmark) -> Masks:
    """Return sets of questions by name; each is a set already, or `[NAME=]FILE`."""
    if isinstance(masks, Mapping):
        return masks
    sets: dict[str, Collection[str]] = {}
    for text in masks:
        name, equals, file = text.partition("=")
        path = Path(file if equals else text)
        mask = mask_from_file(path, benchmark, name=name if equals else "")
        sets[mask.name] = mask.question_ids
    return sets


def _make_policies(settings: Any, benchmark: Benchmark) -> list[Policy]:
    """Make the policies, and their comparators if they are wanted."""
    interface = settings.interface or benchmark.interface
    shared_interface = parse_interface(interface) if isinstance(interface, str) else interface
    base_url = getattr(settings, "base_url", None)
    policies = [
        _make_policy(policy, shared_interface, base_url) for policy in _named_policies(settings)
    ]
    if getattr(settings, "comparators", False):
        names = {policy.name for policy in policies}
        twins = [SourceOrder(item) for item in policies if not isinstance(item, SourceOrder)]
        policies.extend(twin for twin in twins if twin.name not in names)
    return policies


def _named_policies(settings: Any) -> Iterable[Any]:
    if hasattr(settings, "policies"):
        return tuple(settings.policies)
    if not isinstance(settings.policy, str):
        raise SpecError(
            "Expected the name of a policy, such as 'recent' or 'my_module:Memory', but got "
            f"policy={settings.policy!r}"
        )
    return Budgets.parse(settings.budgets).of(settings.policy)


def _make_policy(policy: Any, interface: Interface, base_url: str | None) -> Policy:
    if isinstance(policy, str):
        return make_policy(policy, interface, base_url=base_url)
    return as_policy(policy)


def _make_asking(command: str, settings: Any, allowance: Allowance | None) -> Asking | None:
    """Decide who is asked, and how; None if no model answers."""
    base_url = settings.base_url
    models = _list_models(settings.models, base_url)
    if not models and command == "restore" and settings.dry_run:
        models = [AnyModel()]
    if not models:
        _refuse_idle(settings)
        return None
    several = settings.provenance
    arms = (several,) if isinstance(several, str) else tuple(dict.fromkeys(several))
    if not arms or not settings.fillers or not settings.batches:
        raise SpecError("asking needs at least one instruction, one filler and one batch")
    if len({model.name for model in models}) < len(models):
        raise SpecError("two models have the same name; ask them in separate runs")
    allocate = getattr(settings, "allocate", False)
    if allocate:
        _refuse_allocation(settings, models)
    judge = _choose_judge(settings.judge, models, base_url)
    paid = [*models, judge.model] if isinstance(judge, ModelJudge) else models
    return Asking(
        tuple(models),
        Manner(settings.draws, settings.control, tuple(settings.fillers), arms[0], allocate),
        tuple(dict.fromkeys(settings.batches)),
        judge,
        settings.rate_limit,
        settings.concurrency,
        allowance or make_allowance(paid, settings.max_calls, settings.max_cost),
        instructions=arms,
    )


_FEWEST_DRAWS = 5
"""The fewest draws of a prompt that are divided into a pilot and later ones."""


def _refuse_allocation(settings: Any, models: Sequence[Model]) -> None:
    """Refuse to divide draws that are too few, exist already, or are not all here."""
    if settings.draws < _FEWEST_DRAWS:
        raise SpecError(
            f"Expected {_FEWEST_DRAWS} draws or more to allocate but got draws={settings.draws}"
        )
    if getattr(settings, "shard", None) is not None:
        raise SpecError("allocate does not apply to a shard: a shard cannot know what others found")
    for model in models:
        if isinstance(model, Recorded):
            raise SpecError(f"allocate does not apply to {model.name}: its answers exist already")


def _list_models(names: Sequence[str | Model], base_url: str | None) -> list[Model]:
    """Make the models that are named; a model that exists is unchanged."""
    groups = (
        make_models(name, base_url=base_url) if isinstance(name, str) else [name] for name in names
    )
    return [model for group in groups for model in group]


def _refuse_idle(settings: Any) -> None:
    """Refuse options about answers where no model answers."""
    for item in options_of(type(settings)):
        value = getattr(settings, item.name)
        if item.needs_model and value != item.default:
            raise SpecError(f"{item.name} applies to answers, and no model answers: set models")


def _choose_judge(judge: str | Judge | None, models: Sequence[Model], url: str | None) -> Judge:
    unjudged = [model.name for model in models if not getattr(model, "judged", False)]
    if judge is None:
        return EmbeddedJudge() if unjudged else RecordedJudge()
    if not isinstance(judge, str):
        return judge
    if judge == "recorded":
        if unjudged:
            raise SpecError(f"the judge 'recorded' needs verdicts, and {unjudged[0]} has none")
        return RecordedJudge()
    return make_judge(judge, base_url=url)


def _asked_models(asking: Asking | None) -> list[Model]:
    if asking is None:
        return []
    judge = asking.judge
    return [*asking.models, *([judge.model] if isinstance(judge, ModelJudge) else [])]


def takes_settings(
    command: str, *positional: str, **extras: str
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Make a function of settings take them as arguments, with the signature they declare.

    `positional` names the arguments that need no keyword; a name that begins with `*` takes all
    that follow. `extras` describes the arguments of the function itself.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        declared = settings_for(command)
        own = [*inspect.signature(function).parameters.values()][1:]
        leading = [
            inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL, annotation="Any")
            if name.startswith("*")
            else signature_of(declared)
            .parameters[name]
            .replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for name in positional
        ]

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Result:
            settings = settings_for(command)
            values = {
                item.name: item.keyword_default
                for item in options_of(settings)
                if item.python_default is not ...
            }
            values |= _place_arguments(positional, arguments, function.__name__)
            values |= {name: value for name, value in keywords.items() if name not in extras}
            own = {name: value for name, value in keywords.items() if name in extras}
            return function(make_settings(settings, values), **own)

        signature = signature_of(
            declared, leading, own, returns=inspect.signature(function).return_annotation
        )
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.getdoc(function)}\n\n{describe_options(declared, extras)}"
        return call

    return decorate


def _place_arguments(
    positional: Sequence[str], arguments: tuple[Any, ...], function: str
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for place, name in enumerate(positional):
        if name.startswith("*"):
            if arguments[place:] or name[1:] == "policies":
                values[name[1:]] = arguments[place:]
            return values
        if place < len(arguments):
            values[name] = arguments[place]
    if len(arguments) > len(positional):
        raise TypeError(
            f"{function}() takes {len(positional)} positional arguments but got {len(arguments)}"
        )
    return values
