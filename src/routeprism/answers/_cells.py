"""Which prompts are compared, which answers they need, and in which order these are requested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from routeprism.models import Ask, Model
from routeprism.policies import Block
from routeprism.prompts import Control, Draft, Filler, Prompt, Unmatched, match
from routeprism.records import Question
from routeprism.runs import Key, Ledger, Request, StoredExposure, sha256
from routeprism.text import tokens

RecordSpans = tuple[tuple[str, int, int], ...]
"""(record id, first character, character after the last) of each whole record in a prompt."""


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: its texts are long
class Comparison:
    """Prompts of one question under one filler whose answers are compared, side by side."""

    experiment: str
    """The name under which its answers are stored."""
    question: Question
    policy: str
    schedule: str
    """The route that is compared with forward."""
    filler: Filler
    names: tuple[str, ...]
    """The sides, such as two routes or four conditions."""
    prompts: tuple[Prompt, ...]
    """One for each side; none if they could not be made or matched."""
    condition: str = ""
    """What distinguishes it from comparisons of the same routes, such as a layout or a design."""
    reason: str = ""
    """Why there are no prompts."""
    exposures: tuple[StoredExposure, ...] = ()
    """The exposures of forward and of the route."""
    records: tuple[RecordSpans, ...] = ()
    """For each prompt, where whole records are in it."""
    detail: Any = None
    """Further facts about it that an experiment needs."""

    @property
    def group(self) -> str:
        """Identify the comparison, so that its sides take turns in being asked first."""
        parts = (self.policy, self.schedule, self.question.id, self.filler, self.condition)
        return "\0".join((self.experiment, *parts))

    @property
    def series(self) -> str:
        """Identify the comparisons over which sides take turns in being asked first."""
        return "\0".join((self.policy, self.schedule, self.condition, self.filler))

    @property
    def sides(self) -> tuple[tuple[str, Prompt], ...]:
        """Return (name, prompt) for each side; nothing if there are no prompts."""
        return tuple(zip(self.names, self.prompts, strict=True)) if self.prompts else ()

    @property
    def same_prompt(self) -> bool:
        """Whether the first two sides ask the same text."""
        return bool(self.prompts) and self.prompts[0].sha256 == self.prompts[1].sha256

    @property
    def same_sources(self) -> bool:
        """Whether both routes show the same sources in different texts."""
        forward, route = self.exposures
        return forward.sources == route.sources and forward.context_sha256 != route.context_sha256


def match_prompts(
    drafts: Sequence[Draft], control: Control, filler: Filler
) -> tuple[tuple[Prompt, ...], str]:
    """Pad drafts to matched prompts; give no prompts and a reason if that is impossible."""
    result = match(drafts, control, filler)
    return ((), result.reason) if isinstance(result, Unmatched) else (result.prompts, "")


def find_records(prompt: Prompt, blocks: Sequence[Block]) -> RecordSpans:
    """Find the blocks of single records in a prompt, in their order."""
    spans: list[tuple[str, int, int]] = []
    position = prompt.evidence_span.start
    for block in blocks:
        start = prompt.text.find(block.text, position)
        if start >= 0 and len(block.sources) == 1:
            position = start + len(block.text)
            (record,) = block.sources
            spans.append((record, start, position))
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer that a comparison needs."""

    ask: Ask
    question: str
    """The question's id."""
    route: str
    """The route's or condition's name: what the comparison compares."""
    group: str = ""
    """The name of its comparison, such as a question under one filler; by default the question."""
    series: str = ""
    """Comparisons over which routes take turns, such as those of two routes under one filler."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The calls, tokens and money that a collection of answers takes."""

    cells: int
    kept: int
    """How many distinct answers the ledger has already."""
    calls: int | None
    """How many distinct answers are missing; None if it cannot be known."""
    input_tokens: int | None
    """Of the missing ones, under `o200k_base`; None if it cannot be known."""
    cost: float | None
    """At least this much: the input's price, where prices are known."""
    most: float | None
    """At most this much, without retries, where the longest answer is known too."""
    note: str = ""
    """Costs that the numbers do not include."""
    estimated: bool = False
    """Whether the prompts are not known yet, so that the numbers are an estimate."""

    def __str__(self) -> str:
        calls = "an unknown number of" if self.calls is None else f"{self.calls:,}"
        tokens = "an unknown number of" if self.input_tokens is None else f"{self.input_tokens:,}"
        text = f"{calls} calls, {tokens} input tokens"
        if self.kept:
            text += f" ({self.kept:,} answers are already in the run)"
        if self.cost is not None:
            text += f"; {self.cost:.2f} for the input"
            text += f", at most {self.most:.2f} in all" if self.most is not None else ""
        return f"{text} ({self.note})" if self.note else text

    def add_to(self, total: Cost | None) -> Cost:
        """Add this cost to a different one, if there is one; unknown numbers stay unknown."""
        if total is None:
            return self
        return Cost(
            total.cells + self.cells,
            total.kept + self.kept,
            _add(total.calls, self.calls),
            _add(total.input_tokens, self.input_tokens),
            _add(total.cost, self.cost),
            _add(total.most, self.most),
            total.note or self.note,
            total.estimated or self.estimated,
        )


Number = TypeVar("Number", int, float)


def _add(first: Number | None, second: Number | None) -> Number | None:
    return None if first is None or second is None else first + second


def key_of(model: Model, ask: Ask, batch: str = "") -> Key:
    """Return the ledger's key of one request."""
    realisation = _realisation(model, ask, batch)
    return Key.of(model.name, model.settings, ask.text, batch=realisation, draw=ask.draw)


def _realisation(model: Model, ask: Ask, batch: str) -> str:
    """Name the batch; answers that are looked up by place are not shared between places."""
    if not getattr(model, "by_place", False):
        return batch
    return "@".join((batch, *(value for _, value in ask.place)))


def keys_of(model: Model, cells: Sequence[Cell], batch: str) -> list[Key]:
    """Return the keys of many cells; each text, and the settings, are hashed once."""
    if not cells:
        return []
    first = key_of(model, cells[0].ask, batch)
    hashed = {text: sha256(text) for text in {cell.ask.text for cell in cells}}
    return [
        Key(
            first.model,
            first.settings,
            hashed[cell.ask.text],
            _realisation(model, cell.ask, batch),
            cell.ask.draw,
        )
        for cell in cells
    ]


_Columns = list[list[Cell]]
"""The cells of one comparison: those of each route, draw by draw."""


_Request = tuple[str, int]
"""What makes two cells one request: its text and its draw."""
_Earlier = dict[_Request, set[_Request]]
"""Request → requests that are made before it."""


class _AnswerTurns:
    """Counts which route began each comparison of a pool, so that all begin equally often.

    Pools depend on each other only where they share a request, so that a shard asks in the same
    order as a single run.
    """

    def __init__(self, pool: int, submitted: dict[_Request, int]) -> None:
        self._pool = pool
        self._submitted = submitted
        """The place of each request that was made so far, for any pool."""
        self._begun: dict[tuple[str, int], tuple[int, list[int]]] = {}

    def order(self, bundle: Sequence[_Columns]) -> Iterator[Cell]:
        """Order the cells of comparisons that share requests; their routes begin by turns."""
        places = self._choose_first_routes(bundle)
        for round_ in range(max(len(column) for columns in bundle for column in columns)):
            for cell in _order_round(bundle, places, round_):
                self._submitted.setdefault(_request(cell), len(self._submitted))
                yield cell

    def _choose_first_routes(self, bundle: Sequence[_Columns]) -> list[int]:
        """Choose for each comparison the route that begins: of those in turn, the first possible.

        A request that comparisons share has one place in the order, which can rule a route out.
        """
        places: list[int] = []
        earlier: _Earlier = {}
        for columns in bundle:
            number, counts = self._count(columns)
            # The fillers of a question begin with different routes, and so do pools.
            due = _add_digits(self._pool, len(columns)) + number + sum(counts)
            requests = [_request(column[0]) for column in columns]
            never = len(self._submitted)
            for place in sorted(
                range(len(columns)),
                key=lambda at: (
                    self._submitted.get(requests[at], never),
                    counts[at],
                    (at - due) % len(columns),
                ),
            ):
                later = {*requests} - {requests[place]}
                if not later & _list_earlier(requests[place], earlier):
                    break
            for request in later:
                earlier.setdefault(request, set()).add(requests[place])
            counts[place] += 1
            places.append(place)
        return places

    def _count(self, columns: _Columns) -> tuple[int, list[int]]:
        """Return the number of a comparison's series, and how often each of its routes began."""
        new = len(self._begun), [0] * len(columns)
        return self._begun.setdefault((columns[0][0].series, len(columns)), new)


def _list_earlier(request: _Request, earlier: _Earlier) -> set[_Request]:
    """List all requests that are made before one."""
    reached: set[_Request] = set()
    pending = [request]
    while pending:
        new = earlier.get(pending.pop(), set()) - reached
        reached |= new
        pending += new
    return reached


def _order_round(bundle: Sequence[_Columns], places: Sequence[int], round_: int) -> Iterator[Cell]:
    """Order the cells of one draw: each comparison begins with its route, moved on by the draw."""
    cells: dict[_Request, list[Cell]] = {}
    earlier: _Earlier = {}
    for rank in range(max(map(len, bundle))):
        for columns, place in zip(bundle, places, strict=True):
            column = columns[(place + round_ + rank) % len(columns)]
            if rank >= len(columns) or round_ >= len(column):
                continue
            request = _request(column[round_])
            cells.setdefault(request, []).append(column[round_])
            for first in columns[(place + round_) % len(columns)][round_ : round_ + 1]:
                earlier.setdefault(request, set()).update({_request(first)} - {request})
    while cells:
        # Sharing can make turns impossible in later draws of more than two routes.
        ready = (request for request in cells if not earlier.get(request, set()) & cells.keys())
        yield from cells.pop(next(ready, next(iter(cells))))


def _request(cell: Cell) -> _Request:
    """Return what makes two cells one request."""
    return cell.ask.text, cell.ask.draw


def _add_digits(number: int, base: int) -> int:
    """Add the digits of a number up: modulo the base, a sequence that no shard has a period of.

    Of `base` pools in a row, each begins with a different route (the Thue-Morse sequence).
    """
    total = 0
    while number and base > 1:
        number, digit = divmod(number, base)
        total += digit
    return total


def dispatch_order(cells: Sequence[Cell], pools: Mapping[str, int] | None = None) -> list[Cell]:
    """Order cells so that each route is asked first equally often in every series of comparisons.

    Comparisons of a pool that share a request follow each other as one bundle, which has the shared
    request in its middle where their routes take turns. Their n-th cells of each route make a
    round, and which route begins moves on by one from round to round. `pools` has the number of
    each question's pool.
    """
    grouped: dict[int, dict[str, dict[str, list[Cell]]]] = {}
    for cell in cells:
        groups = grouped.setdefault(0 if pools is None else pools[cell.question], {})
        group = groups.setdefault(cell.group or cell.question, {})
        group.setdefault(cell.route, []).append(cell)
    ordered: list[Cell] = []
    submitted: dict[_Request, int] = {}
    for pool, groups in grouped.items():
        turns = _AnswerTurns(pool, submitted)
        for bundle in _bundle_comparisons([list(group.values()) for group in groups.values()]):
            ordered.extend(turns.order(bundle))
    return ordered


def _bundle_comparisons(comparisons: Iterable[_Columns]) -> Iterable[list[_Columns]]:
    """Put comparisons that share a request together, in the order of their first comparison."""
    bundles: dict[int, list[_Columns]] = {}
    bundle_of: dict[_Request, int] = {}
    for number, columns in enumerate(comparisons):
        shared = [_request(column[0]) for column in columns]
        first, *rest = sorted({bundle_of.get(request, number) for request in shared})
        bundle = bundles.setdefault(first, [])
        for later in rest:
            bundle += bundles.pop(later, [])
            bundle_of |= {request: first for request, at in bundle_of.items() if at == later}
        bundle.append(columns)
        bundle_of |= dict.fromkeys(shared, first)
    return bundles.values()


def requests(
    model: Model, cells: Iterable[Cell], batch: str, pools: Mapping[str, int] | None = None
) -> dict[Key, tuple[Request, Cell]]:
    """Return the distinct requests in dispatch order; equal keys are one request."""
    ordered = dispatch_order(list(cells), pools)
    cells_by_key: dict[Key, tuple[Request, Cell]] = {}
    for key, cell in zip(keys_of(model, ordered, batch), ordered, strict=True):
        if key not in cells_by_key:
            cells_by_key[key] = Request(key, cell.ask.text, cell.question, cell.route), cell
    return cells_by_key


def plan(
    cells: Sequence[Cell],
    ledger: Ledger | None,
    model: Model,
    *,
    batch: str = "",
    planned: set[Key] | None = None,
) -> Cost:
    """Describe what collecting would take; without a ledger everything is missing.

    What is `planned` already counts no more; what counts now is added to it.
    """
    requested = requests(model, cells, batch)
    if planned is not None:
        requested = {key: request for key, request in requested.items() if key not in planned}
        planned.update(requested)
    missing = list(requested) if ledger is None else ledger.missing(requested)
    input_tokens: dict[str, int] = {}
    total = 0
    for key in missing:
        if key.prompt not in input_tokens:
            input_tokens[key.prompt] = tokens.count(requested[key][0].text)
        total += input_tokens[key.prompt]
    cost, most = money(model, len(missing), total)
    return Cost(len(cells), len(requested) - len(missing), len(missing), total, cost, most)


def money(model: Model, calls: int, input_tokens: int) -> tuple[float | None, float | None]:
    """Compute the least and the greatest price of a number of calls, if prices are known."""
    price_in: float | None = getattr(model, "price_in", None)
    price_out: float | None = getattr(model, "price_out", None)
    longest: int | None = getattr(model, "max_tokens", None)
    if price_in is None:
        return None, None
    cost = input_tokens * price_in / 1e6
    if price_out is None or longest is None:
        return cost, None
    return cost, cost + calls * longest * price_out / 1e6
