"""What happens over every order: enumeration, merged states, sampling, worst order, shrinking.

Labels, predicates and objectives are passed in; this room knows nothing of questions.
"""

from routeprism.landscape._arrival_trie import (
    ArrivalTrie,
    NodeStore,
    TriePolicy,
    check_restoration,
    explore_trie,
)
from routeprism.landscape._exploration import MOST_DRAWN, MOST_ORDERS, USUAL_ORDERS, explore
from routeprism.landscape._growth import can_share
from routeprism.landscape._landscape import (
    Building,
    Landscape,
    Method,
    OrderFailure,
    Share,
    anytime_limits,
    fixed_limits,
)
from routeprism.landscape._moves import (
    BINS,
    Move,
    SupportPositions,
    describe_reordering,
    find_moves,
    format_count,
    inversions,
    normalised,
    support_positions,
)
from routeprism.landscape._searches import (
    Objective,
    Predicate,
    Reordering,
    WorstOrder,
    shrink,
    shrink_all,
    worst_order,
)
from routeprism.landscape._states import (
    MOST_STATES,
    OrderBuilds,
    RetainedValue,
    StateGraph,
    inspect_memory,
    merge_states,
)
from routeprism.landscape._trie_plan import (
    CHECKED_ORDERS,
    DrawnOrders,
    TriePlan,
    choose_checks,
    plan_trie,
)

__all__ = [
    "BINS",
    "CHECKED_ORDERS",
    "MOST_DRAWN",
    "MOST_ORDERS",
    "MOST_STATES",
    "USUAL_ORDERS",
    "ArrivalTrie",
    "Building",
    "DrawnOrders",
    "Landscape",
    "Method",
    "NodeStore",
    "Move",
    "Objective",
    "OrderBuilds",
    "OrderFailure",
    "Predicate",
    "Reordering",
    "RetainedValue",
    "Share",
    "StateGraph",
    "SupportPositions",
    "TriePlan",
    "TriePolicy",
    "WorstOrder",
    "anytime_limits",
    "can_share",
    "check_restoration",
    "choose_checks",
    "describe_reordering",
    "explore",
    "explore_trie",
    "find_moves",
    "fixed_limits",
    "format_count",
    "inspect_memory",
    "inversions",
    "merge_states",
    "normalised",
    "plan_trie",
    "shrink",
    "shrink_all",
    "support_positions",
    "worst_order",
]
