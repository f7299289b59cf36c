"""The registry of quantities: the only code that takes the name of a quantity apart."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any

from routeprism.errors import SpecError
from routeprism.quantities._quantity import Quantity
from routeprism.specs import EXTENSIONS, Extension, registered

_PARTS: Mapping[str, Sequence[str]] = {
    "where": ("retained", "exposed"),
    "side": ("forward", "route"),
    "arrival": ("forward", "reverse", "uniform", "arrival"),
}
"""What can stand for the `{parts}` of a template in `quantities.json`."""
_COUNT = "_count"
"""The end of the number of pairs whose value is 1."""


def _fill(template: Any, words: Mapping[str, str]) -> Any:
    """Fill the `{parts}` of a text, or of every text of a list."""
    if isinstance(template, str):
        for name, word in words.items():
            template = template.replace(f"{{{name}}}", word)
        return template
    return (
        tuple(_fill(item, words) for item in template) if isinstance(template, list) else template
    )


def _expand(template: str, texts: Mapping[str, Any]) -> Iterator[Quantity[Any]]:
    """Make the quantities of a template, one for each way of filling it."""
    names = re.findall(r"{(\w+)}", template)
    for parts in product(*(_PARTS[name] for name in names)):
        words = dict(zip(names, parts, strict=True))
        sides = (words["side"],) if "side" in words else ()
        words["other"] = "forward" if words.get("side") == "forward" else "other"
        fields = {"emphasis": "", "sides": sides, **_fill_all(texts, words)}
        yield Quantity(_fill(template, words), **fields)


def _fill_all(texts: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    return {name: _fill(text, words) for name, text in texts.items()}


@cache
def _read_texts() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    texts: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
        files("routeprism.quantities").joinpath("quantities.json").read_text("utf-8")
    )
    return texts


@cache
def built_in_quantities() -> Mapping[str, Quantity[Any]]:
    """Return the quantities of RoutePrism by name, the most important first."""
    quantities: dict[str, Quantity[Any]] = {}
    for template, texts in _read_texts()["quantities"].items():
        for quantity in _expand(template, texts):
            quantities.setdefault(quantity.name, quantity)
    return quantities


def registered_quantities() -> tuple[Quantity[Any], ...]:
    """Return the quantities that installed packages add, by name.

    They are entry points of the group `routeprism.coordinates`. One that is computed for every pair
    reads what the two routes retain and expose and the labels of the question, nothing else about
    the question.
    """
    return _load_quantities(tuple(sys.path), EXTENSIONS.get())


@lru_cache(maxsize=4)
def _load_quantities(
    path: tuple[str, ...], extensions: tuple[Extension, ...]
) -> tuple[Quantity[Any], ...]:
    quantities: dict[str, Quantity[Any]] = {}
    for point in registered("coordinates").values():
        quantity = point.load()
        if not isinstance(quantity, Quantity):
            raise SpecError(
                f"Expected the entry point '{point.name}' of the group 'routeprism.coordinates' to "
                f"be a Quantity but got {quantity!r:.60}"
            )
        if quantity.name in quantities or quantity.name in built_in_quantities():
            raise SpecError(f"two quantities are called '{quantity.name}'")
        quantities[quantity.name] = quantity
    return tuple(quantities.values())


def list_quantities() -> tuple[Quantity[Any], ...]:
    """List every quantity, the most important first, and registered ones last."""
    return (*built_in_quantities().values(), *registered_quantities())


def find_quantity(name: str, *prefixes: str) -> Quantity[Any]:
    """Find everything known about a number by its name in `estimates.csv`.

    A name that is derived from another quantity, such as `V_changed_count`, `p.D_res` or
    `Gamma.J`, gives a quantity that knows its `base`. `prefixes` are derivations that
    experiments add. An unknown name gives a quantity that has nothing but its name.
    """
    quantity = built_in_quantities().get(name)
    return quantity or _resolve(name, prefixes, tuple(sys.path), EXTENSIONS.get())


@lru_cache(maxsize=4096)
def _resolve(
    name: str,
    prefixes: tuple[str, ...],
    path: tuple[str, ...],
    extensions: tuple[Extension, ...],
) -> Quantity[Any]:
    quantities = {quantity.name: quantity for quantity in _load_quantities(path, extensions)}
    if name in quantities:
        return quantities[name]
    if name.endswith(_COUNT):
        base = find_quantity(name.removesuffix(_COUNT), *prefixes)
        return _derive(name, base, "count", {"plain": "{base}", "estimator": "sum"})
    derivations = {**dict.fromkeys(prefixes, _PREFIXED), **_read_texts()["derivations"]}
    for prefix in sorted(derivations, key=len, reverse=True):
        if name.startswith(f"{prefix}."):
            base = find_quantity(name.removeprefix(f"{prefix}."), *prefixes)
            return _derive(name, base, prefix, derivations[prefix])
    for template, texts in _read_texts()["families"].items():
        start, _, end = template.partition("{part}")
        if name.startswith(start) and name.endswith(end):
            part = name.removeprefix(start).removesuffix(end)
            fields = _fill_all(texts, {"part": part})
            fields["plain"] = fields["plain"].replace("_", " ")
            return Quantity(name, emphasis="", family=template, part=part, **fields)
    return Quantity(name, emphasis="")


_PREFIXED: Mapping[str, Any] = {"plain": "{base}", "estimator": "difference"}
"""What is known of a difference between groups that an experiment of one's own compares."""


def _derive(
    name: str, base: Quantity[Any], derivation: str, texts: Mapping[str, Any]
) -> Quantity[Any]:
    """Derive a quantity: what it reads stays the same, and what it claims does not."""
    return Quantity(
        name,
        of=base.of,
        better=base.better if texts.get("estimator") in ("sum", "least", "greatest") else "",
        emphasis="",
        sides=base.sides,
        reads_answers=base.reads_answers,
        first_draw=base.first_draw,
        derivation=derivation,
        derived_from=base,
        **_fill_all(texts, {"base": base.plain}),
    )
