"""What did it say: collecting, reading and judging answers."""

from routeprism.answers._calls import Pace
from routeprism.answers._cells import Cell, Cost, dispatch_order, key_of, plan
from routeprism.answers._collector import collect
from routeprism.answers._comparison import (
    Comparison,
    RecordSpans,
    find_records,
    match_prompts,
)
from routeprism.answers._consulting import Consultant, DistantConsultant
from routeprism.answers._judges import (
    EmbeddedJudge,
    Judge,
    Judged,
    ModelJudge,
    RecordedJudge,
    Verdict,
    ask_judge,
    judge_all,
    make_judge,
    plan_judging,
    read_verdict,
    rubric_of,
)
from routeprism.answers._parse import Parsed, parse, parse_text
from routeprism.answers._results import AnswerProgress, Collected, Progress

__all__ = [
    "AnswerProgress",
    "Cell",
    "Collected",
    "Comparison",
    "Consultant",
    "Cost",
    "DistantConsultant",
    "EmbeddedJudge",
    "Judge",
    "Judged",
    "ModelJudge",
    "Pace",
    "Parsed",
    "Progress",
    "RecordSpans",
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
