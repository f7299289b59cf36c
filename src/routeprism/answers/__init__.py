"""What did it say: collecting, reading and judging answers."""

from routeprism.answers._cells import Cell, Plan, dispatch_order, key_of, plan
from routeprism.answers._collector import collect
from routeprism.answers._consulting import Consultant
from routeprism.answers._judges import (
    EmbeddedJudge,
    Judge,
    Judged,
    ModelJudge,
    RecordedJudge,
    Verdict,
    ask_judge,
    judge_all,
    plan_judging,
    read_verdict,
    rubric_of,
)
from routeprism.answers._parse import Parsed, normalise, parse, parse_text
from routeprism.answers._results import Collected, Progress

__all__ = [
    "Cell",
    "Collected",
    "Consultant",
    "EmbeddedJudge",
    "Judge",
    "Judged",
    "ModelJudge",
    "Parsed",
    "Plan",
    "Progress",
    "RecordedJudge",
    "Verdict",
    "ask_judge",
    "collect",
    "dispatch_order",
    "judge_all",
    "key_of",
    "normalise",
    "parse",
    "parse_text",
    "plan",
    "plan_judging",
    "read_verdict",
    "rubric_of",
]
