"""What happens over every order: enumeration, merged states, sampling, worst order, shrinking.

Labels, predicates and objectives are passed in; this room knows nothing of questions.
"""

from routeprism.landscape._closed import recent_keeps
from routeprism.landscape._explore import DRAWN, MOST_DRAWN, MOST_ORDERS, explore
from routeprism.landscape._intervals import anytime_limits, fixed_limits
from routeprism.landscape._moves import Move, apply_moves, inversions, moves_of, say_moves
from routeprism.landscape._nouns import Failure, Landscape, Method, Share
from routeprism.landscape._positions import (
    BINS,
    SupportPositions,
    normalised,
    support_positions,
)
from routeprism.landscape._shrink import Predicate, Reordering, shrink, shrink_all
from routeprism.landscape._states import MOST_STATES, Ending, StateGraph, merge_states
from routeprism.landscape._worst import MOST_BUILDS, Objective, WorstOrder, worst_order

__all__ = [
    "BINS",
    "DRAWN",
    "MOST_BUILDS",
    "MOST_DRAWN",
    "MOST_ORDERS",
    "MOST_STATES",
    "Ending",
    "Failure",
    "Landscape",
    "Method",
    "Move",
    "Objective",
    "Predicate",
    "Reordering",
    "Share",
    "StateGraph",
    "SupportPositions",
    "WorstOrder",
    "anytime_limits",
    "apply_moves",
    "explore",
    "fixed_limits",
    "inversions",
    "merge_states",
    "moves_of",
    "normalised",
    "recent_keeps",
    "say_moves",
    "shrink",
    "shrink_all",
    "support_positions",
    "worst_order",
]
