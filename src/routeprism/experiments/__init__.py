"""Which comparison is this: the experiments, each from cells to estimate rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routeprism.on_demand import names_on_demand

if TYPE_CHECKING:
    from routeprism.experiments._adding import AddProgress
    from routeprism.experiments._advice import try_repairs
    from routeprism.experiments._arrival_values import DRAWN_ORDERS
    from routeprism.experiments._audit import Tracing
    from routeprism.experiments._baseline import count_baseline
    from routeprism.experiments._case_values import coordinates_of
    from routeprism.experiments._collection import Asking, Manner
    from routeprism.experiments._comparison_stage import (
        CaseComparisons,
        ComparisonStage,
        enter_measures,
    )
    from routeprism.experiments._construction import construction_costs, stand_ins
    from routeprism.experiments._designs import DesignDecision, DesignRules, decide_designs
    from routeprism.experiments._execution import Pacing, RunExecution
    from routeprism.experiments._experiment import (
        AnswerNames,
        AnswerSelection,
        Conclusion,
        Experiment,
        find_experiment,
        list_answer_sources,
        make_stages,
        name_answer,
        registered_experiments,
        source_of_answers,
    )
    from routeprism.experiments._observations import LossCounts, is_unsourced
    from routeprism.experiments._order_case import Looking
    from routeprism.experiments._order_search import Outcome, outcome_named
    from routeprism.experiments._result import Audit
    from routeprism.experiments._route_comparisons import (
        compare_layouts,
        compare_routes,
        reversed_within_kinds,
    )
    from routeprism.experiments._rows import BY_QUESTION
    from routeprism.experiments._shards import (
        ResultFile,
        Shard,
        ShardResults,
        check_shards,
        parse_shard,
    )
    from routeprism.experiments._stages import OnlyPolicies
    from routeprism.experiments._subject import SEED, Statistics, Subject
    from routeprism.experiments._until import parse_until
    from routeprism.experiments.answers import ask_routes
    from routeprism.experiments.curves import Budgets, Curve, audit_budgets
    from routeprism.experiments.display import compare_displays
    from routeprism.experiments.layers import tabulate_layers
    from routeprism.experiments.mechanism import with_arms
    from routeprism.experiments.orders import EveryOrder, explore_subject
    from routeprism.experiments.remedies import Remedies
    from routeprism.experiments.restoration import restore_records
    from routeprism.experiments.reuse import reuse_states
    from routeprism.experiments.routes import WORKPLACE, audit_subject

__all__ = [
    "BY_QUESTION",
    "DRAWN_ORDERS",
    "SEED",
    "WORKPLACE",
    "AddProgress",
    "AnswerNames",
    "AnswerSelection",
    "Asking",
    "Audit",
    "Budgets",
    "CaseComparisons",
    "ComparisonStage",
    "Conclusion",
    "Curve",
    "DesignDecision",
    "DesignRules",
    "EveryOrder",
    "Experiment",
    "Looking",
    "LossCounts",
    "Manner",
    "OnlyPolicies",
    "Outcome",
    "Pacing",
    "Remedies",
    "ResultFile",
    "RunExecution",
    "Shard",
    "ShardResults",
    "Statistics",
    "Subject",
    "Tracing",
    "ask_routes",
    "audit_budgets",
    "audit_subject",
    "check_shards",
    "compare_displays",
    "compare_layouts",
    "compare_routes",
    "construction_costs",
    "coordinates_of",
    "count_baseline",
    "decide_designs",
    "enter_measures",
    "explore_subject",
    "find_experiment",
    "is_unsourced",
    "list_answer_sources",
    "make_stages",
    "name_answer",
    "outcome_named",
    "parse_shard",
    "parse_until",
    "registered_experiments",
    "restore_records",
    "reuse_states",
    "reversed_within_kinds",
    "source_of_answers",
    "stand_ins",
    "tabulate_layers",
    "try_repairs",
    "with_arms",
]

if not TYPE_CHECKING:  # else every name would pass for one that is there
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "._adding": "AddProgress",
            "._advice": "try_repairs",
            "._arrival_values": "DRAWN_ORDERS",
            "._baseline": "count_baseline",
            "._case_values": "coordinates_of",
            "._collection": "Asking Manner",
            "._shards": "ResultFile Shard ShardResults check_shards parse_shard",
            "._audit": "Tracing",
            "._construction": "construction_costs stand_ins",
            "._comparison_stage": "CaseComparisons ComparisonStage enter_measures",
            ".mechanism": "with_arms",
            "._designs": "DesignDecision DesignRules decide_designs",
            "._execution": "RunExecution Pacing",
            "._result": "Audit",
            "._subject": "SEED Statistics Subject",
            "._experiment": "AnswerNames AnswerSelection Conclusion Experiment find_experiment "
            "list_answer_sources make_stages name_answer registered_experiments source_of_answers",
            "._order_case": "Looking",
            "._order_search": "Outcome outcome_named",
            "._observations": "LossCounts is_unsourced",
            "._route_comparisons": "compare_layouts compare_routes reversed_within_kinds",
            ".layers": "tabulate_layers",
            "._rows": "BY_QUESTION",
            "._stages": "OnlyPolicies",
            "._until": "parse_until",
            ".answers": "ask_routes",
            ".curves": "Budgets Curve audit_budgets",
            ".display": "compare_displays",
            ".orders": "EveryOrder explore_subject",
            ".remedies": "Remedies",
            ".restoration": "restore_records",
            ".reuse": "reuse_states",
            ".routes": "WORKPLACE audit_subject",
        },
    )
