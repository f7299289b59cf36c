"""What `check-adapter` does and prints."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import typer
from rich.console import Console

from routeprism.policies import make_policy
from routeprism.routes.conformance import check_adapter

__all__ = ["run_checks"]

_MARKS = {"passed": "ok     ", "failed": "FAILED ", "not tried": "–      "}


def run_checks(spec: str, *, as_json: bool) -> None:
    """Check an adapter; exit with 1 if anything is wrong with it."""
    policy = make_policy(spec)
    checks = check_adapter(policy)
    failed = [check for check in checks if check.outcome == "failed"]
    if as_json:
        found = {"adapter": policy.name, "checks": [asdict(check) for check in checks]}
        json.dump(found, sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        console = Console()
        for check in checks:
            said = f": {check.said}" if check.said else ""
            lines = [f"{_MARKS[check.outcome]}{check.name}{said}"]
            if check.fix:
                lines.append(f"       to fix it: {check.fix}")
            for line in lines:
                console.print(line, highlight=False, markup=False, soft_wrap=True)
        verdict = (
            f"{policy.name}: {len(failed)} of {len(checks)} checks failed"
            if failed
            else f"{policy.name} can be audited"
        )
        console.print(verdict, highlight=False, markup=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)
