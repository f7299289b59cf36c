"""The page: one file with everything in it, which runs nothing but its own two scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from routeprism.report._bundle import vega_bundle
from routeprism.report._cards import verdict_cards
from routeprism.report._charts import Chart, charts, templates
from routeprism.report._command import command_of
from routeprism.report._coverage import coverage_charts
from routeprism.report._findings import (
    Found,
    arms_of,
    finding_charts,
    finding_tables,
    read_findings,
)
from routeprism.report._gates import gate_section
from routeprism.report._html import Markup, data_block, fragment, tag
from routeprism.report._interventions import intervention_charts, intervention_tables
from routeprism.report._published import printed_section
from routeprism.report._questions import FLAGS, Questions, packed, read_questions
from routeprism.report._table import Table, numbered
from routeprism.report._table_writing import as_html
from routeprism.report._tables import tables
from routeprism.report._units import Points, unit_values
from routeprism.report._verdict import Missing, headline, missing, verdicts
from routeprism.runs import EstimateRow, Stored, read_manifest

__all__ = ["Material", "all_charts", "all_tables", "figure", "gather", "page", "shell"]

_SCRIPTS = (
    "base.js",
    "prism.js",
    "asked.js",
    "question.js",
    "list.js",
    "estimates.js",
    "charts.js",
)


@dataclass(frozen=True, slots=True)
class Material:
    """All that a report is made from."""

    directory: Path
    manifest: Mapping[str, Any]
    rows: tuple[EstimateRow, ...]
    questions: Questions
    units: Mapping[Points, Mapping[str, float]]
    """The same numbers unit by unit, for charts."""
    found: Found
    """What is no single number."""
    answers: int
    """How many answers the ledger holds."""
    failures: int

    @property
    def configuration(self) -> Mapping[str, Any]:
        """What the run was asked to do."""
        made: Mapping[str, Any] = self.manifest.get("configuration", {})
        return made


def gather(directory: Path, *, most: int = 10_000_000) -> Material:
    """Read a run, complete or not; texts take `most` characters at most."""
    manifest = read_manifest(directory)
    made = manifest.get("configuration", {})
    names = made.get("policies") or [], made.get("schedules") or []
    if not (directory / "run.sqlite").exists():  # interrupted before anything was stored
        return Material(directory, manifest, (), Questions(*names, []), {}, {}, 0, 0)
    with Stored(directory) as stored:
        return Material(
            directory,
            manifest,
            tuple(stored.estimates()),
            read_questions(stored, *names, made.get("labels") or "", most=most),
            unit_values(stored),
            read_findings(stored),
            stored.counted("answers"),
            stored.counted("failures"),
        )


def all_charts(material: Material) -> list[Chart]:
    """Make every chart that a run allows."""
    rows = material.rows
    made = [
        *charts(rows, material.units),
        *coverage_charts(rows, arms_of(material.found)),
        *intervention_charts(rows),
        *finding_charts(material.found, rows),
    ]
    # Long names are cut, and may then be the same.
    seen: Counter[str] = Counter()
    for at, chart in enumerate(made):
        seen[chart.name] += 1
        if seen[chart.name] > 1:
            made[at] = replace(chart, name=f"{chart.name}-{seen[chart.name]}")
    return made


def all_tables(material: Material) -> list[Table]:
    """Make every table that a run allows."""
    rows = material.rows
    places = {row: at for at, row in enumerate(rows, start=1)}
    made = [*tables(rows), *intervention_tables(rows), *finding_tables(material.found)]
    return [numbered(table, places) for table in made]


def page(material: Material) -> str:
    """Write the whole report."""
    rows, questions = material.rows, material.questions
    found = verdicts(material.manifest, rows, questions, arms_of(material.found))
    made = all_charts(material)
    shown = {table.name: table for table in all_tables(material)}
    lacking = missing(material.manifest, rows, questions, material.directory, material.answers)
    parts = [
        ("verdict", "Verdict", verdict_cards(found, material.manifest, rows)),
        ("layers", "Layers", _tables(shown, "layers")),
        ("evidence", "Evidence", _charted(made, "evidence", _tables(shown, "evidence"))),
        ("questions", "Questions", _questions(questions)),
        (
            "restoration",
            "Restoration",
            _charted(made, "restoration", _tables(shown, "restoration", "eligibility")),
        ),
        ("mechanism", "Mechanism", _charted(made, "mechanism", _tables(shown, "mechanism"))),
        ("display", "Display", _charted(made, "display", _tables(shown, "display"))),
        ("reuse", "Reuse", _charted(made, "reuse", _tables(shown, "reuse"))),
        (
            "instructions",
            "Instructions",
            _charted(made, "instructions", _tables(shown, "instructions")),
        ),
        (
            "orders",
            "Every order",
            _charted(made, "orders", _tables(shown, "smallest-reordering", "worst-order")),
        ),
        ("curves", "Budgets and time", _charted(made, "curves", None)),
        ("answers", "Answers", _charted(made, "answers", _tables(shown, "answers"))),
        ("agreement", "Agreement", _tables(shown, "agreement", "admissible", "readings")),
        ("gates", "Gates", gate_section(rows, material.directory, arms_of(material.found))),
        (
            "reproduction",
            "Published numbers",
            printed_section(material.found.get("printed_table", ())),
        ),
        (
            "replication",
            "Model by model",
            _charted(made, "replication", _tables(shown, "replication")),
        ),
        ("estimates", "All estimates", _estimates(made, shown.get("estimates"))),
        ("missing", "What is not here", _missing(lacking)),
        ("run", "How it was made", _manner(material)),
    ]
    body = [
        tag("section", tag("h2", title), content, id=name, aria_label=title)
        for name, title, content in parts
        if content is not None
    ]
    links = [(name, title) for name, title, content in parts if content is not None]
    blocks = [
        data_block("rp-charts", _chart_data(made)),
        data_block("rp-questions", _question_data(questions, material)),
        *(_chunk(str(at), chunk) for at, chunk in enumerate(questions.chunks) if chunk),
    ]
    if everything := shown.get("estimates"):
        listed = {
            "columns": everything.columns,
            "names": everything.names,
            "rows": everything.rows,
            "run": shlex.quote(str(material.directory)),
        }
        blocks.append(_chunk("estimates", packed(listed)))
    name = str(material.configuration.get("benchmark", material.directory.name))
    return shell(
        f"RoutePrism: {name}",
        _header(material, headline(found, material.manifest.get("status") == "complete"), links),
        fragment(body),
        blocks,
        charted=bool(made),
    )


def shell(
    title: str, header: Markup, body: Markup, blocks: Iterable[Markup] = (), *, charted: bool = True
) -> str:
    """Put a page together: only the scripts given here may run, and nothing may be fetched."""
    own = "\n".join(_asset(name) for name in _SCRIPTS)
    vega = vega_bundle() if charted else ""
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in (own, vega) if script)
    policy = (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("meta", name_="referrer", content="no-referrer"),
        tag("title", title),
        Markup(f"<style>{_asset('report.css')}</style>"),
    )
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    main = tag("main", body, id="content", tabindex="-1")
    # Reading Vega takes long: it waits as text until a chart is to be drawn.
    held = Markup(f'<script type="text/plain" id="rp-vega">{vega}</script>') if vega else None
    run = Markup(f"<script>{own}</script>")
    whole = tag("html", head, tag("body", skip, header, main, *blocks, held, run), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _chunk(name: str, content: str) -> Markup:
    return Markup(f'<script type="text/plain" id="rp-chunk-{name}">{content}</script>')


def _digest(script: str) -> str:
    if "</script" in script.lower():
        raise ValueError("a script would end early")
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return resources.files("routeprism.report").joinpath(f"assets/{name}").read_text("utf-8")


def _header(material: Material, said: str, links: Sequence[tuple[str, str]]) -> Markup:
    made = material.configuration
    flags = {flag for row in material.rows for flag in row.flags.split(";")}
    badges = [
        tag("span", words, class_=f"badge {kind}")
        for kind, words, shown in (
            ("warning", "interrupted", material.manifest.get("status") != "complete"),
            ("plain", "synthetic data", bool(made.get("synthetic"))),
            ("plain", "embedded model or judge", "embedded" in flags),
        )
        if shown
    ]
    counts = material.manifest.get("counts") or {}
    told = ", ".join(
        f"{counts[name]} {name if counts[name] != 1 else name[:-1]}"
        for name in ("pools", "records", "questions")
        if name in counts
    )
    about = " · ".join(part for part in (str(made.get("benchmark", "")), told) if part)
    return tag(
        "header",
        tag(
            "div",
            tag("p", "RoutePrism", class_="brand"),
            tag("button", "Theme: auto", type="button", id="theme", class_="quiet"),
            class_="bar",
        ),
        tag("h1", said),
        tag("p", about, " ", fragment(badges), class_="about"),
        tag(
            "nav",
            tag("ul", *(tag("li", tag("a", title, href=f"#{name}")) for name, title in links)),
            aria_label="Sections",
        ),
    )


def _tables(shown: Mapping[str, Table], *names: str) -> Markup | None:
    found = [shown[name] for name in names if name in shown]
    if not found:
        return None
    return fragment([tag("div", tag("h3", table.title), as_html(table)) for table in found])


def figure(chart: Chart) -> Markup:
    """Make the place of a chart, with what it says in words."""
    return tag(
        "figure",
        tag("figcaption", chart.title),
        tag("div", class_="chart", data_chart=chart.name, role="img", aria_label=chart.alternative),
    )


def _charted(made: Sequence[Chart], section: str, rest: Markup | None) -> Markup | None:
    own = [figure(chart) for chart in made if chart.section == section]
    if not own and rest is None:
        return None
    return fragment([tag("div", fragment(own), class_="charts") if own else None, rest])


_TRACING = tag(
    "p",
    "Every number of this page is a row of ",
    tag("code", "estimates.csv"),
    "; in tables it is a link to that row below. ",
    tag("code", "routeprism trace RUN --row N"),
    " prints what row N rests on: units, questions, what they were shown, answers, readings.",
)


def _estimates(made: Sequence[Chart], everything: Table | None) -> Markup | None:
    if everything is None:
        return None
    sections = dict.fromkeys(c.section for c in made if c.section.startswith("forest-"))
    groups = []
    for section in sections:
        own = [chart for chart in made if chart.section == section]
        name = section.removeprefix("forest-")
        groups.append(
            tag(
                "details",
                tag("summary", f"{name}: {len(own)} forest plots"),
                tag("div", *(figure(chart) for chart in own), class_="charts"),
            )
        )
    table = tag(
        "details",
        tag("summary", f"All {len(everything.rows)} rows as a table"),
        id="all-estimates",
    )
    return fragment([*groups, _TRACING, table])


def _questions(questions: Questions) -> Markup | None:
    if not questions.index or not questions.pairs:
        return None
    note = "Scripts are off, so the questions cannot be shown."
    left_out = questions.chunks.count("")
    return fragment(
        [
            tag(
                "p",
                f"The texts of {left_out} of {len(questions.users)} pools are not in this page, to "
                f"keep it small; routeprism report RUN --megabytes N makes room for more.",
            )
            if left_out
            else None,
            tag("div", tag("noscript", tag("p", note)), id="prism"),
        ]
    )


def _missing(lacking: Sequence[Missing]) -> Markup | None:
    if not lacking:
        return None
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag("strong", one.what),
                f" {one.how}",
                tag("pre", tag("code", one.command)) if one.command else None,
            )
            for one in lacking
        ),
        class_="missing",
    )


def _manner(material: Material) -> Markup:
    made, manifest = material.configuration, material.manifest
    facts: list[tuple[str, str]] = [("Command", command_of(manifest, material.directory))]
    facts.append(("Status", str(manifest.get("status", "unknown"))))
    if made.get("synthetic"):
        facts.append(("Data", "synthetic: records and questions were written by a generator"))
    if any("embedded" in row.flags.split(";") for row in material.rows):
        facts.append(
            ("Embedded", "some answers or verdicts come from a built-in program, no language model")
        )
    limits = str(manifest.get("limits") or "")
    told = {**made, "interval": limits.removeprefix("95% limits: ") or made.get("interval")}
    for name, label in (
        ("fingerprint", "Benchmark fingerprint"),
        ("labels", "Support labels"),
        ("unit", "Resampled unit"),
        ("weighting", "Weighting"),
        ("interval", "95% limits"),
        ("seed", "Bootstrap seed"),
        ("resamples", "Resamples"),
        ("draws", "Draws for each prompt"),
        ("prompt_control", "Prompt control"),
        ("judge", "Judge of free text"),
    ):
        if told.get(name) not in (None, "", []):
            facts.append((label, str(told[name])))
    if material.answers or material.failures:
        facts.append(("Answers", f"{material.answers} kept, {material.failures} failed requests"))
    for name, value in (manifest.get("packages") or {}).items():
        facts.append((f"Package {name}", str(value)))
    for name, value in (manifest.get("inputs") or {}).items():
        facts.append((f"SHA-256 of {name}", str(value)))
    listed = [part for label, value in facts for part in (tag("dt", label), tag("dd", value))]
    written = json.dumps(manifest, indent=2, ensure_ascii=False, sort_keys=True)
    return fragment(
        [
            tag("dl", *listed),
            tag("details", tag("summary", "The whole manifest"), tag("pre", written, tabindex="0")),
        ]
    )


def _chart_data(made: Sequence[Chart]) -> Mapping[str, object]:
    return {
        "templates": templates(),
        "charts": {chart.name: [chart.template, list(chart.values)] for chart in made},
    }


def _question_data(questions: Questions, material: Material) -> Mapping[str, object]:
    return {
        "policies": questions.policies,
        "schedules": questions.schedules,
        "users": questions.users,
        "labels": material.configuration.get("labels") or "",
        "instructions": _instructions(material.configuration),
        "flags": FLAGS,
        "index": questions.index,
    }


def _instructions(made: Mapping[str, Any]) -> Sequence[str]:
    """Name what prompts say of conflicting records; the first is that of the routes."""
    return made.get("provenance_arms") or [made.get("provenance") or ""]
