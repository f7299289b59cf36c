"""Terminal, quiet line, JSON, page, card, comment and gate give one judgement of each memory."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .memories import AsyncWithLock, SkipsCopies, SortedSet
from .zoo import BY_NAME, DEPTHS, OVERLAP, SOUND, ZOO, Planted

Cli = Callable[..., Any]
COPIES = "redeliver:copies=3"
ROOT = Path(__file__).parents[2]
FAST = ("keyed-overwrite", "gains-only", "oldest-wins", "adds-nothing", "torn-writes", "sorted-set")

WORDS = {
    "never kept": "keeps? it|never keeps?|not keep|never kept",
    "refused": "refuse",
    "not retrievable": "retriev|not shown|never shown|cannot find|does not show",
    "full": "full|room",
    "replaced": "replaced most of its content",
    "overwritten": "overwr|displace|replace",
    "merged": "merge",
    "duplicate": "duplicate|arrives first is kept|discarded .* had arrived before",
    "late": "late",
    "joint": "together|both|joint",
    "tie": r"\bties?\b|tied|rank the same",
    "budget": "budget",
    "ranking": "rank|retriev",
    "order of blocks": "order",
    "rewritten": "text|rewrit",
    "state only": "state",
    "untested": "likely|untested|not tested",
}
"""What a sentence about a cause contains, in whatever words it is written."""


CAUSAL = ("terminal", "page", "card", "comment", "check")
"""The outputs that explain a verdict in sentences."""


def name_memory(planted: Planted) -> Any:
    marks = [] if planted.name in FAST else [pytest.mark.slow]
    return pytest.param(planted.name, marks=marks, id=planted.name)


def strip_tags(page: str) -> str:
    """Return the words of a page that are there without its scripts."""
    plain = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(plain).split())


@pytest.mark.parametrize("name", [name_memory(planted) for planted in ZOO])
def test_all_outputs_agree(
    name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = BY_NAME[name]
    cli = draw_again(planted.memory, cli)
    monkeypatch.syspath_prepend(str(ROOT))
    with planted.open() as policy:
        result = planted.audit(policy, run=tmp_path / "run")
        (verdict,) = result.verdicts
        spec = policy if isinstance(policy, str) else planted.name_command()
        outputs = read_outputs(planted, spec, result, cli, tmp_path)
    numbers = f"{round(verdict.lost, 1):g} of {verdict.questions}"  # a mean has one decimal
    for output, text in outputs.items():
        assert verdict.level in text, output
        if verdict.lost and output != "json":
            assert numbers in text, output
        if verdict.level == verdict.depth and output in ("terminal", "quiet", "card", "comment"):
            worse = DEPTHS[DEPTHS.index(verdict.depth) + 1 :]
            assert not [level for level in worse if level in text], output
    data = json.loads(outputs["json"])["verdicts"][0]
    assert (data["level"], data["depth"]) == (verdict.level, verdict.depth)
    assert (data["lost"], data["gained"]) == (verdict.lost, verdict.gained)
    assert data["questions"] == verdict.questions
    assert [cause["cause"] for cause in data["causes"]] == [c.cause for c in verdict.causes]
    assert data["repair"].partition("(")[0] == verdict.repair.partition("(")[0]
    if verdict.causes and verdict.level != "internal only":
        first = verdict.causes[0]
        # A cause that was not tested has no example: its records are listed by what lists losses.
        names = ("comment", "check") if first.cause == "untested" else CAUSAL
        for output in CAUSAL:
            assert re.search(WORDS[first.cause], outputs[output], re.IGNORECASE), output
            if first.record and output in names:
                assert first.record in outputs[output], output


def draw_again(memory: Any, cli: Cli) -> Cli:
    """Let every command draw what this moment's audit draws, if the memory declares chance."""
    chance = getattr(memory, "chance", None)
    if chance is None:
        return cli
    state = chance.getstate()

    def call(*words: Any) -> Any:
        chance.setstate(state)
        return cli(*words)

    return call


def read_outputs(
    planted: Planted, spec: str, result: Any, cli: Cli, folder: Path
) -> dict[str, str]:
    """Collect what every output says of one memory."""
    benchmark = planted.benchmark()
    directory = benchmark.directory or write_cases(benchmark, folder / "cases")
    words = [
        *("audit", directory, "-p", spec, "--resamples", "100", "--workers", "1"),
        *(word for s in planted.options.get("schedules", ()) for word in ("--schedule", s)),
        *(("--builds", str(planted.options["builds"])) if "builds" in planted.options else ()),
    ]
    # What the comment compares with must be stable under these orders: a copy would show twice.
    sound = {OVERLAP: AsyncWithLock, COPIES: SkipsCopies}.get(planted.schedules[-1], SortedSet)
    base = planted.audit(sound, run=folder / "base")
    comment = folder / "comment.md"
    before, after = base.verdicts[0].policy, result.verdicts[0].policy
    compared = cli(
        *("compare", folder / "base", folder / "run", "--markdown", comment),
        *("--policy-a", before, "--policy-b", after, "--quiet"),
    )
    assert compared.code in (0, 1, 3)
    assert cli("report", folder / "run").code == 0
    texts = {
        "terminal": cli(*words).out,
        "quiet": cli(*words, "--quiet").out,
        "json": cli(*words, "--json").out,
        "page": strip_tags((folder / "run" / "report.html").read_text("utf-8")),
        "card": strip_tags(result._repr_html_()),
        "comment": comment.read_text("utf-8"),
        "check": read_check(planted, cli, folder / "run"),
    }
    # A terminal may break a line between any two words.
    return {output: " ".join(text.split()) for output, text in texts.items()}


def read_check(planted: Planted, cli: Cli, run: Path) -> str:
    """Return what `check` prints, after its exit code was found to be right."""
    gates = ["evidence.lost<=0.02", *(["anomaly<=0"] if OVERLAP in planted.schedules else [])]
    ended = cli("check", run, *(word for gate in gates for word in ("-g", gate)))
    if planted.inconclusive:
        assert ended.code in (1, 3)  # what is left to chance may exceed a limit
        assert cli("check", run, "-g", "J>=0").code == 3
    elif planted.promises:
        assert ended.code == 1
    elif planted in SOUND:
        assert ended.code == 0
    text: str = ended.out
    return text


def write_cases(benchmark: Any, directory: Path) -> Path:
    """Write a part of a sample as own data."""
    directory.mkdir()
    lines: dict[str, list[dict[str, Any]]] = {"records": [], "questions": []}
    for case in benchmark.cases:
        for record in case.pool.records:
            turns = [{"role": turn.role, "text": turn.text} for turn in record.turns]
            date = {"timestamp": record.timestamp} if record.timestamp else {}
            line = {"user": case.pool.user, "id": record.id, "turns": turns, **date}
            if older := case.supersedes.get(record.id):
                line["supersedes"] = sorted(older)
            lines["records"].append(line)
        for question in case.questions:
            line = {"user": question.user, "id": question.id, "text": question.text}
            (support,) = question.labels.values()
            stale = (
                {"stale": sorted(set().union(*question.stale.values()))} if question.stale else {}
            )
            options = {"options": list(question.options), "gold": question.gold}
            lines["questions"].append({**line, **options, "support": sorted(support), **stale})
    for name, entries in lines.items():
        text = "".join(json.dumps(entry) + "\n" for entry in entries)
        (directory / f"{name}.jsonl").write_text(text, "utf-8")
    return directory
