"""Where an answer belongs, by the columns that files of recorded answers name it with."""

from __future__ import annotations

__all__ = ["Place", "place_of"]

Place = tuple[tuple[str, str], ...]
"""(column, value), always in the same order for an experiment."""


def place_of(
    experiment: str,
    *,
    question: str,
    policy: str,
    schedule: str,
    filler: str,
    condition: str,
    side: str,
    control: str,
) -> Place:
    """Name one side of a comparison by columns; draws are counted from 0 in each.

    `condition` and `side` are those of the comparison (the table `comparisons` of a run).
    """
    names = {"question": question, "policy": policy, "schedule": schedule}
    if experiment == "restoration":
        names |= {"condition": side, "design": condition or "single"}
    elif experiment == "display":
        names |= {"condition": f"{condition}:{side}"}
    else:  # a route and the one it is compared with
        names |= {"schedule": side, "condition": condition, "pair": schedule}
    return tuple((names | {"filler": filler, "prompt_control": control}).items())
