"""How often 95% intervals hold the true value, on simulated data sets whose truth is known.

Each data set has users with a few questions each, four-option answers in three draws on two routes
(or four conditions), and users that differ from each other. The truth is the mean over users of the
law that the data sets are drawn from. Limit: 93–97% at 30 users for the interval that is used
unless a benchmark declares or a user names another.
Run: python benchmarks/interval_coverage.py [--sets N] [--users N …] [--plot FILE]; the last results
are in docs/coverage.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from routeprism.measures import INTERVALS, RESAMPLES
from routeprism.measures._intervals import limits
from routeprism.records import Benchmark

Floats = npt.NDArray[np.float64]
USERS = (10, 20, 30, 60)
DEFAULT = {field.name: field.default for field in fields(Benchmark)}["interval"]
"""What a benchmark declares unless it says otherwise."""
LIMIT = (0.93, 0.97)
LIMIT_USERS = 30
DRAWS = 3
OPTIONS = 4
TRUTH_USERS = 400_000
QUESTIONS = (0.38, 0.28, 0.20, 0.14)
"""How many users have 1, 2, 3, 4 questions: 2.1 on average, as 63 questions of 29 users."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One simulated quantity: per-user numerators and denominators, and what they estimate."""

    name: str
    sample: Callable[[np.random.Generator, int], tuple[Floats, Floats]]
    """(generator, users) → what each user adds above and below the line."""
    truth: float


def _questions(random: np.random.Generator, users: int) -> npt.NDArray[np.intp]:
    return random.choice(len(QUESTIONS), size=users, p=QUESTIONS) + 1


def _user_means(values: Floats, asked: npt.NDArray[np.bool_]) -> Floats:
    return np.where(asked, values, 0.0).sum(axis=1) / asked.sum(axis=1)


def _asked(random: np.random.Generator, users: int) -> npt.NDArray[np.bool_]:
    return np.arange(len(QUESTIONS))[None, :] < _questions(random, users)[:, None]


def _even(values: Floats) -> tuple[Floats, Floats]:
    return values, np.ones_like(values)


def overlap(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """J of a bounded window: decided by the pool's size, a little less after the budget."""
    sizes = random.choice([0.5, 0.2, 0.0], size=users, p=[5 / 37, 19 / 37, 13 / 37])
    asked = _asked(random, users)
    cut = random.random(asked.shape) < 0.25
    return _even(_user_means(np.where(cut, 0.0, sizes[:, None]), asked))


def rare_overlap(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """J of a compactor: nothing in common for most users, a third for a few."""
    return _even(np.where(random.random(users) < 0.135, 1 / 3, 0.0))


def _laws(random: np.random.Generator, users: int, moved: float) -> tuple[Floats, Floats]:
    """Give each question's answer distribution on two routes; how far it moves differs by user.

    Option 0 is right: likely where the evidence is there, as likely as the others where it is lost.
    """
    shape = (users, len(QUESTIONS))
    base = random.dirichlet(np.array([1.4, *[0.2] * (OPTIONS - 1)]), size=shape)
    other = random.dirichlet(np.full(OPTIONS, 0.35), size=shape)
    lost = random.random(shape) < random.beta(2 * moved, 2 * (1 - moved), size=users)[:, None]
    return base, np.where(lost[..., None], other, base)


def _drawn(random: np.random.Generator, law: Floats) -> npt.NDArray[np.intp]:
    """Draw answers: … × draws."""
    edges = law.cumsum(axis=-1)[..., None, :]
    return (random.random((*law.shape[:-1], DRAWS, 1)) > edges).sum(axis=-1).clip(0, OPTIONS - 1)


def _residual(one: npt.NDArray[np.intp], other: npt.NDArray[np.intp]) -> Floats:
    across = (one[..., :, None] != other[..., None, :]).mean(axis=(-1, -2))
    within = sum(
        (side[..., :, None] != side[..., None, :]).sum(axis=(-1, -2)) / (DRAWS * (DRAWS - 1))
        for side in (one, other)
    )
    return np.asarray(across - within / 2)


def _change(one: npt.NDArray[np.intp], other: npt.NDArray[np.intp]) -> Floats:
    return np.asarray((other == 0).mean(axis=-1) - (one == 0).mean(axis=-1))


def _routes(
    measure: Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], Floats], moved: float
) -> Callable[[np.random.Generator, int], tuple[Floats, Floats]]:
    def sample(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
        one, other = _laws(random, users, moved)
        values = measure(_drawn(random, one), _drawn(random, other))
        return _even(_user_means(values, _asked(random, users)))

    return sample


def contrast(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Γ of D_res: one policy that moves many answers against one that moves few, same questions."""
    asked = _asked(random, users)
    values = [
        _residual(*(_drawn(random, law) for law in _laws(random, users, moved)))
        for moved in (0.7, 0.2)
    ]
    return _even(_user_means(values[0] - values[1], asked))


def restoration(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Restored − absent: accuracies that differ by question, with users in common."""
    shape = (users, len(QUESTIONS))
    ease = random.normal(0, 0.8, size=users)[:, None]
    right = [
        random.binomial(DRAWS, 1 / (1 + np.exp(-(level + ease + random.normal(0, 1, shape)))))
        for level in (-1.3, 2.0)
    ]
    return _even(_user_means((right[1] - right[0]) / DRAWS, _asked(random, users)))


def recall(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Evidence recall with questions weighted equally: conversations of many questions."""
    asked = random.integers(105, 260, size=users).astype(np.float64)
    share = random.beta(6, 10, size=users)
    return random.binomial(asked.astype(int), share).astype(np.float64), asked


def _misled(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Draw for each question whether it ends with the old value, forward and on the other route.

    The questions of a user share facts, so users differ: some memories resolve all by arrival.
    """
    shape = (users, len(QUESTIONS))
    forward = random.random(shape) < random.beta(0.4, 3.6, size=users)[:, None]
    route = forward | (random.random(shape) < random.beta(1.2, 1.8, size=users)[:, None])
    return forward.astype(np.float64), route.astype(np.float64)


def stale_only(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Share of questions that are shown the old value alone on the other route."""
    return _even(_user_means(_misled(random, users)[1], _asked(random, users)))


def stale_change(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Share on the other route minus the share on the forward route."""
    forward, route = _misled(random, users)
    return _even(_user_means(route - forward, _asked(random, users)))


def _shown_values(random: np.random.Generator, users: int) -> npt.NDArray[np.intp]:
    """Draw what each question is shown: the current value, the old one, both, or neither (0–3).

    Users differ in how their memory resolves changes. Each shows both values at least once, since
    the order of the two is not applicable to any other user.
    """
    shares = random.dirichlet((2.0, 1.2, 1.5, 0.3), size=users).cumsum(axis=1)
    draws = random.random((users, len(QUESTIONS), 1))
    shown = (draws > shares[:, None, :3]).sum(axis=-1)
    shown[:, 0] = 2
    return shown


def _share_shown(
    *values: int,
) -> Callable[[np.random.Generator, int], tuple[Floats, Floats]]:
    """Share of questions that are shown one of these values on the other route."""

    def sample(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
        shown = np.isin(_shown_values(random, users), values).astype(np.float64)
        return _even(_user_means(shown, _asked(random, users)))

    return sample


def stale_last(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Share of the questions with both values shown where the old value comes last."""
    both = _shown_values(random, users) == 2
    last = random.random(both.shape) < random.beta(0.8, 1.2, size=users)[:, None]
    return _even((last & both).sum(axis=1) / both.sum(axis=1))


def outdated_change(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Outdated answers on the other route minus those on the forward route, in three draws."""
    shares = [
        random.binomial(DRAWS, np.where(stale == 1, 0.85, 0.1)) / DRAWS
        for stale in _misled(random, users)
    ]
    return _even(_user_means(shares[1] - shares[0], _asked(random, users)))


def stale_over_orders(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Probability over all orders that a question ends with the old value alone.

    A memory that resolves by arrival is wrong in 1/2, 2/3 or 3/4 of the orders of a chain of 2, 3
    or 4 values; two in five users have a memory that shows both values, and is never wrong.
    """
    shape = (users, len(QUESTIONS))
    chances = random.choice([1 / 2, 2 / 3, 3 / 4], size=shape)
    resolves = random.random(users) < 0.6
    values = np.where(resolves[:, None], chances, 0.0)
    return _even(_user_means(values, _asked(random, users)))


def update_restoration(random: np.random.Generator, users: int) -> tuple[Floats, Floats]:
    """Accuracy with both records minus accuracy with the old one alone, in three draws."""
    shape = (users, len(QUESTIONS))
    ease = random.normal(0, 0.8, size=users)[:, None]
    right = [
        random.binomial(DRAWS, 1 / (1 + np.exp(-(level + ease + random.normal(0, 1, shape)))))
        for level in (-2.0, 0.5)
    ]
    return _even(_user_means((right[1] - right[0]) / DRAWS, _asked(random, users)))


def quantities(seed: int) -> list[Quantity]:
    """Name what is simulated; truths from a large population of users."""
    laws: dict[str, Callable[[np.random.Generator, int], tuple[Floats, Floats]]] = {
        "J": overlap,
        "J, near-degenerate": rare_overlap,
        "D_res": _routes(_residual, 0.6),
        "D_res, near zero": _routes(_residual, 0.05),
        "Delta_rep": _routes(_change, 0.6),
        "restored-absent": restoration,
        "Gamma.D_res": contrast,
        "recall, question-weighted": recall,
        "stale_only.route": stale_only,
        "stale_only.route-forward": stale_change,
        "outdated_answer.route-forward": outdated_change,
        "stale_only.uniform": stale_over_orders,
        "both-stale": update_restoration,
        "current_exposed.route": _share_shown(0, 2),
        "stale_exposed.route": _share_shown(1, 2),
        "both_exposed.route": _share_shown(2),
        "stale_last.route": stale_last,
    }
    found = []
    for at, (name, sample) in enumerate(laws.items()):
        above, below = sample(np.random.default_rng([seed, 1, at]), TRUTH_USERS)
        found.append(Quantity(name, sample, float(above.sum() / below.sum())))
    return found


def coverage(
    quantity: Quantity, users: int, sets: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Give for each interval how often it held the truth, and its mean width."""
    random = np.random.default_rng([seed, 2, users])
    drawn = [quantity.sample(random, users) for _ in range(sets)]
    above = np.array([one for one, _ in drawn])
    below = np.array([other for _, other in drawn])
    found = {}
    for interval in INTERVALS:
        held: list[float] = []
        widths: list[float] = []
        for start in range(0, sets, 250):
            part = slice(start, start + 250)
            lower, upper = limits(
                above[part], below[part], seed=seed, resamples=RESAMPLES, interval=interval
            )
            held += ((lower <= quantity.truth) & (quantity.truth <= upper)).tolist()
            widths += (upper - lower).tolist()
        found[interval] = (sum(held) / sets, sum(widths) / sets)
    return found


def main() -> None:
    """Print coverage and width for every quantity, number of users and interval."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=2_000)
    parser.add_argument("--users", type=int, nargs="+", default=list(USERS))
    parser.add_argument("--seed", type=int, default=20260910)
    parser.add_argument("--plot", default="")
    parser.add_argument("--only", nargs="+", default=[], help="names of quantities")
    options = parser.parse_args()
    print(f"{options.sets} data sets each, {RESAMPLES} resamples, seed {options.seed}")
    print(f"{'quantity':30}{'truth':>8}{'users':>7}" + "".join(f"{i:>22}" for i in INTERVALS))
    rows = []
    for quantity in quantities(options.seed):
        if options.only and quantity.name not in options.only:
            continue
        for users in options.users:
            found = coverage(quantity, users, options.sets, options.seed)
            cells = "".join(f"{held:>14.3f} ({width:.3f})" for held, width in found.values())
            print(f"{quantity.name:30}{quantity.truth:>8.3f}{users:>7}{cells}", flush=True)
            for interval, (held, _) in found.items():
                row = {"quantity": quantity.name, "users": users, "interval": interval}
                rows.append({**row, "coverage": held})
    print(_verdict(rows))
    if options.plot:
        plot(rows, options.plot)


def _verdict(rows: list[dict[str, object]]) -> str:
    """Say for the default interval which quantities are beyond the limit."""
    low, high = LIMIT
    held = {
        str(row["quantity"]): float(str(row["coverage"]))
        for row in rows
        if row["interval"] == DEFAULT and row["users"] == LIMIT_USERS
    }
    beyond = [f"{name} {value:.3f}" for name, value in held.items() if not low <= value <= high]
    return (
        f"{DEFAULT}, the default, at {LIMIT_USERS} users: {len(held) - len(beyond)} of {len(held)} "
        f"within {low:.0%} to {high:.0%}" + (f"; not {', '.join(beyond)}" if beyond else "")
    )


def plot(rows: list[dict[str, object]], path: str) -> None:
    """Draw coverage against the number of users."""
    import altair as alt

    base = alt.Chart(alt.Data(values=rows))
    band = base.mark_rect(color="#dddddd", opacity=0.4).encode(
        y=alt.datum(0.93), y2=alt.datum(0.97)
    )
    lines = base.mark_line(point=True).encode(
        x=alt.X("users:Q", title="users", scale=alt.Scale(domain=[5, 65])),
        y=alt.Y("coverage:Q", title="coverage", scale=alt.Scale(domain=[0.6, 1.0], clamp=True)),
        color=alt.Color("interval:N", scale=alt.Scale(range=["#0072B2", "#D55E00", "#009E73"])),
        strokeDash="interval:N",
    )
    chart = alt.layer(band, lines).properties(width=180, height=130)
    chart.facet(facet=alt.Facet("quantity:N", title=None), columns=4).save(path)


if __name__ == "__main__":
    main()
