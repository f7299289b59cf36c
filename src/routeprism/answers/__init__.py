"""Collect, read and judge answers."""

from routeprism.answers._calls import Pace
from routeprism.answers._cells import (
    Cell,
    Comparison,
    Cost,
    dispatch_order,
    find_records,
    key_of,
    match_prompts,
    plan,
)
from routeprism.answers._collector import AnswerProgress, Collected, Progress, collect
from routeprism.answers._consulting import Consultant
from routeprism.answers._judges import (
    EmbeddedJudge,
    Grade,
    Judge,
    Judged,
    ModelJudge,
    RecordedJudge,
    ask_judge,
    judge_all,
    make_judge,
    plan_judging,
    read_verdict,
    rubric_of,
)
from routeprism.answers._parse import parse, parse_text

Verdict = Grade
"""The earlier name of `Grade`, which judges of other packages may still import."""

__all__ = [
    "AnswerProgress",
    "Cell",
    "Collected",
    "Comparison",
    "Consultant",
    "Cost",
    "EmbeddedJudge",
    "Grade",
    "Judge",
    "Judged",
    "ModelJudge",
    "Pace",
    "Progress",
    "RecordedJudge",
    "Verdict",
    "ask_judge",
    "collect",
    "dispatch_order",
    "find_records",
    "judge_all",
    "key_of",
    "make_judge",
    "match_prompts",
    "parse",
    "parse_text",
    "plan",
    "plan_judging",
    "read_verdict",
    "rubric_of",
]
