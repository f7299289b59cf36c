"""The page: one file with everything in it, which runs nothing but its own two scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.exhibits import Chart, Results, Table, read_statements
from routeprism.judge import Verdict, judge
from routeprism.orders import describe_arrival, name_reference
from routeprism.report._exhibits import (
    Section,
    chart_data,
    chart_estimates,
    choose_charts,
    figure_choice,
    make_sections,
    merge_forests,
    printed_section,
    read_results,
    show_section,
    tabulate_estimates,
)
from routeprism.report._html import (
    Markup,
    RowNumbers,
    data_block,
    explain_column,
    fragment,
    read_asset,
    tag,
    vega_bundle,
)
from routeprism.report._next_steps import Missing, command_of, gate_section, list_missing
from routeprism.report._questions import FLAGS, Questions, packed, read_questions
from routeprism.report._summary import headline, interrupted, show_memories, show_statements
from routeprism.runs import FINISHED, INCOMPLETE, RUNNING, Rows, StoredRun, read_manifest

_SCRIPTS = "base tabs tables prism asked question list estimates charts".split()


@dataclass(frozen=True, slots=True)
class Material:
    """All that a report is made from."""

    directory: Path
    manifest: Mapping[str, Any]
    results: Results
    questions: Questions
    answers: int
    """The number of answers in the ledger."""
    failures: int

    @property
    def rows(self) -> Rows:
        """Return the run's estimates."""
        return self.results.rows

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The settings of the run."""
        configuration: Mapping[str, Any] = self.manifest.get("configuration", {})
        return configuration


def gather(directory: Path, *, most: int = 10_000_000) -> Material:
    """Read a run, complete or not; texts take `most` characters at most."""
    manifest = read_manifest(directory)
    configuration = manifest.get("configuration", {})
    names = configuration.get("policies") or [], configuration.get("schedules") or []
    if not (directory / "run.sqlite").exists() and manifest["status"] not in FINISHED:
        # It was interrupted before anything was stored.
        return Material(directory, manifest, Results(Rows()), Questions(*names, []), 0, 0)
    whole = manifest["status"] != RUNNING  # else numbers may belong to another state of the run
    with StoredRun(directory) as stored:
        return Material(
            directory,
            manifest,
            read_results(stored, stored.estimates()) if whole else Results(Rows()),
            read_questions(stored, *names, configuration.get("labels") or "", most=most),
            stored.count_rows("answers"),
            stored.count_rows("failures"),
        )


Part = tuple[str, str, Markup | None]
"""A section of a tab: its anchor, its heading, and its content."""


Tab = tuple[str, str, list[Part]]
"""A tab of the page: its name, its title, and its sections."""


def page(material: Material) -> str:
    """Write the whole report."""
    rows, results = material.rows, material.results
    verdicts = judge(results)
    # An interrupted run may still have the statements of its earlier state.
    manifest = material.manifest
    statements = () if interrupted(manifest) else read_statements(manifest, rows)
    sections = [merge_forests(section) for section in make_sections(results)]
    numbers = {row: at for at, row in enumerate(rows, start=1)}
    forests = chart_estimates(rows)
    everything = next(iter(tabulate_estimates(rows)), None)
    tabs: list[Tab] = [
        (
            "summary",
            "Summary",
            [
                ("verdict", "Verdict", show_memories(verdicts, numbers, material.directory)),
                *_list_sections(sections, "summary", numbers),
                (
                    "statements",
                    "Further statements",
                    show_statements(statements, verdicts, manifest, numbers),
                ),
                *_list_background(material),
            ],
        ),
        ("questions", "Questions", [("questions", "Questions", _questions(material.questions))]),
        (
            "experiments",
            "Experiments",
            [*_list_sections(sections, "experiments", numbers), *_list_checks(material, verdicts)],
        ),
        ("orders", "Orders", [*_list_sections(sections, "orders", numbers)]),
        (
            "numbers",
            "All numbers",
            [("estimates", "All estimates", _estimates(forests, everything))],
        ),
    ]
    charts = [
        *(chart for section in sections for chart in section.charts),
        *(chart for group in forests.values() for chart in group),
    ]
    panels = [(name, title, make_panel(name, parts)) for name, title, parts in tabs]
    titles = [(name, title) for name, title, panel in panels if panel]
    sentence = headline(verdicts, statements, manifest)
    name = str(material.configuration.get("benchmark", material.directory.name))
    return shell(
        f"RoutePrism: {name}",
        _header(material, sentence, titles),
        fragment(panel for _, _, panel in panels),
        _data_blocks(material, charts, everything),
        charted=bool(charts),
    )


def _list_sections(sections: Sequence[Section], tab: str, numbers: RowNumbers) -> Iterator[Part]:
    """List the sections of the experiments that a tab shows; the verdict has its own place."""
    own = [section for section in sections if section.tab == tab and not section.is_verdict]
    charts = choose_charts(own)
    for section in own:
        yield section.name, section.title, show_section(section, numbers, charts)


def _list_background(material: Material) -> Iterator[Part]:
    """List what the run lacks and how it was made."""
    yield "missing", "Not in this run", _show_missing(list_missing(material))
    yield "run", "How it was made", _manner(material)


def _list_checks(material: Material, verdicts: Sequence[Verdict]) -> Iterator[Part]:
    """List the limits that a build can check, and published numbers."""
    yield "gates", "Gates", gate_section(verdicts, material.directory)
    published = printed_section(material.results.findings.get("printed_table", ()))
    yield "reproduction", "Published numbers", published


def make_panel(name: str, parts: Sequence[Part]) -> Markup | None:
    """Put the sections of a tab together, with links to them where there are many."""
    visible = [(anchor, title, content) for anchor, title, content in parts if content]
    if not visible:
        return None
    links = [tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title, _ in visible]
    return tag(
        "div",
        tag("ul", *links, class_="jump") if len(links) > _FEW_SECTIONS else None,
        *(
            tag("section", tag("h2", title), content, id=anchor, aria_label=title)
            for anchor, title, content in visible
        ),
        id=f"tab-{name}",
        class_="panel",
    )


_FEW_SECTIONS = 6


def _data_blocks(
    material: Material, charts: Sequence[Chart], everything: Table | None
) -> list[Markup]:
    """Make the blocks of data that the page's script reads."""
    questions, configuration = material.questions, material.configuration
    question_data = {
        "policies": questions.policies,
        "schedules": questions.schedules,
        "orders": [
            [describe_arrival(name_reference(name)), describe_arrival(name)]
            for name in questions.schedules
        ],
        "references": [
            questions.routes.index(name_reference(name)) for name in questions.schedules
        ],
        "users": questions.users,
        "labels": configuration.get("labels") or "",
        # What prompts say of conflicting records; the first is that of the routes.
        "instructions": configuration.get("provenance_arms")
        or [configuration.get("provenance") or ""],
        "flags": FLAGS,
        "index": questions.index,
    }
    blocks = [
        data_block("rp-charts", chart_data(charts)),
        data_block("rp-questions", question_data),
        *(_chunk(str(at), chunk) for at, chunk in enumerate(questions.chunks) if chunk),
    ]
    if everything is not None:
        chart_texts = {
            "columns": everything.columns,
            "names": everything.names,
            "explained": [explain_column(column) for column in everything.columns],
            "rows": [list(map(str, row)) for row in everything.rows],
            "run": shlex.quote(str(material.directory)),
        }
        blocks.append(_chunk("estimates", packed(chart_texts)))
    return blocks


def shell(
    title: str, header: Markup, body: Markup, blocks: Iterable[Markup] = (), *, charted: bool = True
) -> str:
    """Put a page together: only the scripts given here may run, and nothing may be fetched."""
    own = "\n".join(read_asset(f"{name}.js") for name in _SCRIPTS)
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
        Markup(f"<style>{read_asset('report.css')}</style>"),
    )
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    main = tag("main", body, id="content", tabindex="-1")
    # Reading Vega takes long: it waits as text until a chart is to be drawn.
    vega_script = (
        Markup(f'<script type="text/plain" id="rp-vega">{vega}</script>') if vega else None
    )
    run = Markup(f"<script>{own}</script>")
    whole = tag("html", head, tag("body", skip, header, main, *blocks, vega_script, run), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _chunk(name: str, content: str) -> Markup:
    return Markup(f'<script type="text/plain" id="rp-chunk-{name}">{content}</script>')


def _digest(script: str) -> str:
    if "</script" in script.lower():
        raise ValueError("a script would end early")
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _header(material: Material, sentence: str, links: Sequence[tuple[str, str]]) -> Markup:
    configuration = material.configuration
    flags = {flag for row in material.rows for flag in row.flags.split(";")}
    badges = [
        tag("span", words, class_=f"badge {kind}")
        for kind, words, content in (
            ("warning", "interrupted", interrupted(material.manifest)),
            ("warning", "incomplete", material.manifest.get("status") == INCOMPLETE),
            ("plain", "synthetic data", bool(configuration.get("synthetic"))),
            ("plain", "embedded model or judge", "embedded" in flags),
            ("plain", "memories built by the scripted model", "scripted" in flags),
        )
        if content
    ]
    counts = material.manifest.get("counts") or {}
    details = ", ".join(
        f"{counts[name]} {name if counts[name] != 1 else name[:-1]}"
        for name in ("pools", "records", "questions")
        if name in counts
    )
    about = " · ".join(part for part in (str(configuration.get("benchmark", "")), details) if part)
    return page_header(
        sentence,
        fragment([about, " ", *badges]),
        links,
        searched=bool(material.questions.index and material.questions.pairs),
    )


def page_header(
    sentence: str, about: str, tabs: Sequence[tuple[str, str]] = (), *, searched: bool = False
) -> Markup:
    """Make the top of a page: its headline, what it is about, the search and the tabs."""
    search = tag(
        "input",
        type="search",
        id="search",
        placeholder="Search questions ( / )",
        aria_label="Search questions by words, id or user",
    )
    return tag(
        "header",
        tag(
            "div",
            tag("p", "RoutePrism", class_="brand"),
            search if searched else None,
            tag("button", "Theme: auto", type="button", id="theme", class_="quiet"),
            class_="bar",
        ),
        tag("h1", sentence),
        tag("p", about, class_="about"),
        tag(
            "nav",
            tag("ul", *(tag("li", tag("a", title, href=f"#tab-{name}")) for name, title in tabs)),
            aria_label="Parts of the report",
            class_="tabs",
        )
        if tabs
        else None,
    )


_TRACING = tag(
    "p",
    "Every number of this page is a row of ",
    tag("code", "estimates.csv"),
    "; in tables it is a link to that row below. ",
    tag("code", "routeprism trace RUN --row N"),
    " prints what row N depends on: units, questions, what they were shown, answers, readings.",
)


def _estimates(forests: Mapping[str, Sequence[Chart]], everything: Table | None) -> Markup | None:
    if everything is None:
        return None
    groups = [
        tag(
            "details",
            tag("summary", f"{experiment}: forest plot"),
            figure_choice(experiment, charts),
        )
        for experiment, charts in forests.items()
    ]
    table = tag(
        "details",
        tag("summary", f"All {len(everything.rows)} rows as a table"),
        id="all-estimates",
        open=True,
    )
    return fragment([_TRACING, *groups, table])


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


def _show_missing(lacking: Sequence[Missing]) -> Markup | None:
    if not lacking:
        return None
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag("strong", part.what),
                f" {part.how}",
                tag("pre", tag("code", part.command)) if part.command else None,
            )
            for part in lacking
        ),
        class_="missing",
    )


def _manner(material: Material) -> Markup:
    definitions = [
        part
        for label, value in _list_facts(material)
        for part in (tag("dt", label), tag("dd", str(value)))
    ]
    text = json.dumps(material.manifest, indent=2, ensure_ascii=False, sort_keys=True)
    return fragment(
        [
            tag("dl", *definitions),
            tag("details", tag("summary", "The whole manifest"), tag("pre", text, tabindex="0")),
        ]
    )


_CONFIGURATION = {
    "fingerprint": "Benchmark fingerprint",
    "labels": "Evidence labels",
    "unit": "Resampled unit",
    "weighting": "Weighting",
    "interval": "95% limits",
    "seed": "Bootstrap seed",
    "resamples": "Resamples",
    "draws": "Draws for each prompt",
    "prompt_control": "Prompt control",
    "judge": "Judge of free text",
}
"""The settings of a run that its report shows, and their labels."""


def _list_facts(material: Material) -> Iterator[tuple[str, Any]]:
    """List how a run was made: labels and values."""
    configuration, manifest = material.configuration, material.manifest
    yield "Command", command_of(manifest, material.directory)
    yield "Status", manifest.get("status", "unknown")
    if configuration.get("synthetic"):
        yield "Data", "synthetic: records and questions were written by a generator"
    if any("embedded" in row.flags.split(";") for row in material.rows):
        yield "Embedded", "some answers or verdicts come from a built-in program, no language model"
    if scripted := configuration.get("scripted"):
        names = ", ".join(map(str, scripted))
        text = "a program that follows rules, no language model, built the memories of"
        yield "Scripted", f"{text} {names}"
    limits = str(manifest.get("limits") or "").removeprefix("95% limits: ")
    values = {**configuration, **({"interval": limits} if limits else {})}
    for name, label in _CONFIGURATION.items():
        if values.get(name) not in (None, "", []):
            yield label, values[name]
    if material.answers or material.failures:
        yield "Answers", f"{material.answers} kept, {material.failures} failed requests"
    for name, value in (manifest.get("packages") or {}).items():
        yield f"Package {name}", value
    for name, value in (manifest.get("inputs") or {}).items():
        yield f"SHA-256 of {name}", value
