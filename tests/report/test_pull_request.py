"""The comment on a pull request, and the action that writes it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import routeprism

from ..doubles import list_executed, plant_files

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "pull_request.md"
FEW: dict[str, Any] = {"resamples": 100, "schedules": ("replay",)}


def make_runs(directory: Path) -> tuple[Path, Path]:
    for name, policy in (("base", "recent:k=3"), ("head", "recent:k=2")):
        routeprism.audit("sample", policy, run=directory / name, **FEW)
    return directory / "base", directory / "head"


def write_comment(before: Path, after: Path, **policies: Any) -> str:
    file = after.parent / "comment.md"
    routeprism.compare(before, after, markdown=file, **policies)
    return file.read_text(encoding="utf-8")


def test_the_comment_is_the_golden_file(tmp_path: Path) -> None:
    base, head = make_runs(tmp_path)
    pair = {"policies_a": ["recent:k=3"], "policies_b": ["recent:k=2"]}
    assert write_comment(base, head, **pair) == GOLDEN.read_text(encoding="utf-8")
    back = write_comment(head, base, policies_a=["recent:k=2"], policies_b=["recent:k=3"])
    assert "### RoutePrism: this change makes the memory better" in back
    assert "#### Worse" not in back and "no longer shown" not in back
    assert "### RoutePrism: no change was shown" in write_comment(base, base)


def test_hostile_questions_cannot_leave_their_place(
    own_data: Callable[..., Path], tmp_path: Path
) -> None:
    texts = "<img src=x> @everyone | `code` ](http://x)\n## heading"
    data = own_data(
        [{"user": u, "id": f"r{n}", "text": f"w{n} tea"} for u in "ab" for n in range(4)],
        [
            {"user": u, "id": f"q|{u}`<b>", "text": texts, "support": ["r0", "r1", "r2", "r3"]}
            for u in "ab"
        ],
    )
    for name, policy in (("base", "recent:k=3"), ("head", "recent:k=1")):
        routeprism.audit(data, policy, run=tmp_path / name, **FEW)
    pair = {"policies_a": ["recent:k=3"], "policies_b": ["recent:k=1"]}
    comment = write_comment(tmp_path / "base", tmp_path / "head", **pair)
    lines = [line for line in comment.splitlines() if "q¦a" in line]
    assert lines == [
        "- `q¦a'<b>` `<img src=x> @everyone ¦ 'code' ](http://x) ## heading`: no longer shown "
        "`r1`, `r2` (source order, reversal)"
    ]


# --- the action ------------------------------------------------------------------------------

STEPS = {
    step["name"]: step
    for step in yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
}
MEMORY = """
class Memory:
    def __init__(self):
        self.records = []

    def add(self, record):
        self.records = [*self.records, record][-{size}:]

    def retained(self):
        return [record.id for record in self.records]

    def expose(self, query):
        return self.retained()
"""
ARGUMENTS = """--resamples 100
  --schedule "replay" \\
  --workers '2'
"""
GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$GH_LOG"
case "$*" in *--paginate*) cat "$GH_COMMENTS";; esac
"""


def perform(step: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step as GitHub does."""
    variables = {**os.environ, **environment}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]["run"]]
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)


def test_the_action_installs_its_own_version_unless_another_is_named(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nprintf '%s\\n' \"$*\"\n")
    (tmp_path / "python").chmod(0o755)
    where = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": "/its/checkout"}
    for package, installed in (("", "/its/checkout"), ("routeprism==1", "routeprism==1")):
        done = perform("Install RoutePrism", tmp_path, **where, PACKAGE=package)
        assert done.stdout.split()[-1] == installed, done.stderr


def test_no_script_contains_an_expression() -> None:
    assert all("${{" not in step["run"] for step in STEPS.values())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_action_audits_compares_comments_and_fails(
    tmp_path: Path, own_data: Callable[..., Path]
) -> None:
    repository, tools = tmp_path / "repository", tmp_path / "tools"
    for folder in (repository, tools, tmp_path / "temp"):
        folder.mkdir()

    def git(*words: str) -> str:
        names = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        call = ["git", *names, *words]
        return subprocess.run(
            call, cwd=repository, check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet")
    commits = []
    for size in (4, 2):
        (repository / "memory.py").write_text(MEMORY.format(size=size))
        git("add", "memory.py")
        git("commit", "--quiet", "-m", f"{size} records")
        commits.append(git("rev-parse", "HEAD").strip())
    (tools / "python").symlink_to(sys.executable)
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    (tmp_path / "ids").write_text("")
    common = {
        "PATH": f"{Path(sys.executable).parent}:{tools}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GH_LOG": str(tmp_path / "gh.log"),
        "GH_COMMENTS": str(tmp_path / "ids"),
    }
    plant_files(repository, last=True)  # none of them is executed, also not by pip and by workers
    (tools / "memory.py").write_text("raise SystemExit('an installed memory hides the checkout')")
    audited = perform(
        "Audit base and head",
        repository,
        **common,
        PYTHONPATH=str(tools),
        POLICY="memory:Memory\nrecent:k=2",
        BENCHMARK="sample",
        ARGUMENTS=ARGUMENTS,
        INSTALL="",
        BASE=commits[0],
    )
    assert audited.returncode == 0, audited.stderr
    for name in ("base", "head"):
        manifest = (tmp_path / "temp" / "routeprism" / name / "manifest.json").read_text()
        configuration = json.loads(manifest)["configuration"]
        assert (configuration["resamples"], configuration["schedules"]) == (100, ["replay"])
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary.startswith("<!-- routeprism -->\n### RoutePrism: this change makes 1 of 2 ")
    assert "worse" in summary and "- Next: `routeprism audit sample" in summary
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert Path(outputs["comment-file"]).read_text(encoding="utf-8") == summary

    where = {"REPOSITORY": "o/r", "NUMBER": "7", "FILE": outputs["comment-file"], "GH_TOKEN": "x"}
    for ids in ("", "42\n"):
        (tmp_path / "ids").write_text(ids)
        assert perform("Comment", repository, **common, **where).returncode == 0
    calls = (tmp_path / "gh.log").read_text().splitlines()
    assert [call.split(" -F ")[0] for call in calls if "--paginate" not in call] == [
        "api --silent -X POST repos/o/r/issues/7/comments",
        "api --silent -X PATCH repos/o/r/issues/comments/42",
    ]

    nowhere = perform("Audit base and head", repository, **common, POLICY="x:Y", BASE="")
    assert nowhere.returncode == 2 and "::error::there is no commit" in nowhere.stdout

    checked = perform("Check", repository, **common, GATES="", WORSE="true", RUNS=outputs["runs"])
    assert checked.returncode == 1, checked.stderr
    assert "FAIL" in checked.stdout
    calm = perform("Check", repository, **common, GATES="", WORSE="false", RUNS=outputs["runs"])
    assert calm.returncode == 0
    assert list_executed(repository) == []

    data = own_data(
        [{"user": "u", "id": f"r{n}", "text": f"fact {n}"} for n in range(4)],
        [{"user": "u", "id": "q", "text": "Which?", "options": ["x", "y"], "support": ["r1"]}],
    )
    unanswered = f"{ARGUMENTS} --model openai:m,retries=0 --base-url http://127.0.0.1:1/v1"
    missing = perform(
        "Audit base and head", repository, **common, POLICY="memory:Memory", BENCHMARK=str(data),
        ARGUMENTS=unanswered, INSTALL="", BASE=commits[0],
    )  # fmt: skip
    assert missing.returncode == 0, missing.stderr  # the comment is written, and the job fails
    comment = Path(outputs["comment-file"]).read_text(encoding="utf-8")
    assert (
        "### RoutePrism: nothing can be concluded (incomplete): old version: 1 question" in comment
    )
    assert (tmp_path / "output").read_text().endswith("status=3\n")
    gates = {"GATES": "", "WORSE": "false", "RUNS": outputs["runs"], "STATUS": "3"}
    assert perform("Check", repository, **common, **gates).returncode == 3

    for arguments, message in (
        ("--max-calls '5", "a quote in arguments is not closed"),
        ("'--resamples' \"$(touch ran)\" `touch ran`; touch ran", ""),
    ):
        refused = perform(
            "Audit base and head", repository, **common, POLICY="memory:Memory", BENCHMARK="sample",
            ARGUMENTS=arguments, INSTALL="", BASE=commits[0],
        )  # fmt: skip
        assert refused.returncode == 2 and message in refused.stdout
    comment = Path(outputs["comment-file"]).read_text(encoding="utf-8")
    assert "### RoutePrism: the new version cannot be audited" in comment
    assert not [*tmp_path.rglob("ran")]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        pair = {"policies_a": ["recent:k=3"], "policies_b": ["recent:k=2"]}
        GOLDEN.write_text(write_comment(*make_runs(Path(folder)), **pair), encoding="utf-8")
