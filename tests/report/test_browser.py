"""What a person can do with the report, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.policies import Block, Exposure
from routeprism.report import write_comparison, write_report
from routeprism.review.comparison import compare_runs

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, audited with answers: three memories, of which one is not affected."""
    run = tmp_path_factory.mktemp("sample") / "run"
    routeprism.audit(
        "sample", "focal", "recent:k=3", "raw", models=["reader"], draws=2, run=run, resamples=200
    )
    return write_report(run)


@pytest.fixture(scope="module")
def restored(restored_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(restored_sample, tmp_path_factory.mktemp("restored") / "report.html")


@pytest.fixture(scope="module")
def intervened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two readers, two displays, two instructions and the reuse of one state."""
    run = tmp_path_factory.mktemp("intervened") / "run"
    routeprism.audit(
        "sample",
        "memochat",
        models=["reader", "reader:temperature=0.1"],
        draws=2,
        display=["reversed"],
        provenance=["preserved", "gated"],
        reuse=True,
        run=run,
        resamples=200,
    )
    return write_report(run)


def open_tab(page: Any, name: str) -> Any:
    page.get_by_role("tab", name=name, exact=True).click()
    return page.locator("main > .panel:visible")


IS_SHOWN = """address => location.hash === address && new URLSearchParams(address.slice(1)).get("q")
    === document.querySelector("article.question").dataset.question"""
"""Whether the page shows the question of a link; it unpacks the texts of its pool first."""


def ready(page: Any) -> Any:
    if page.locator("#tab-questions").is_hidden():
        open_tab(page, "Questions")
    page.wait_for_selector("article.question svg.prism rect.record")
    return page


def choose(page: Any, name: str) -> Any:
    return page.locator(f".filters [data-filter={name}]")


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    entry = Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {item['nodes'][0]['html'][:200]}"
        for item in entry
        if item["impact"] in ("serious", "critical")
    ]


def test_the_first_screen_has_the_verdict_and_what_to_do(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        assert page.locator("h1").inner_text() == (
            "2 of 3 memories show different evidence under ordinary disorder, late batch and "
            "reversal."
        )
        rows = page.locator("#verdict tbody tr")
        assert rows.locator(".severity").evaluate_all("all => all.map(one => one.ariaLabel)") == [
            "unclear",
            "unclear",
            "fine",
        ]
        assert rows.nth(0).locator("th").inner_text().split() == ["?", "focal"]
        width = rows.nth(0).locator(".share").get_attribute("style")
        # Source order shows 56 of 165 questions all of their evidence.
        assert float(width.removeprefix("--share:")) == pytest.approx(56 / 165, abs=1e-4)
        levels = ["evidence moves", "evidence moves", "internal only"]
        assert rows.locator("td[data-column=level]").all_inner_texts() == levels
        cards = page.locator("#verdict .action")
        assert cards.locator("h3 bdi").all_inner_texts() == ["focal", "recent:k=3", "raw"]
        assert cards.locator(".level").all_inner_texts() == levels
        assert "78 of 165 questions lose evidence" in cards.first.inner_text()
        steps = cards.first.locator(".step code").all_inner_texts()
        assert steps == ["routeprism audit sample --policy 'log-fallback:k=3(focal)'"]
        assert page.locator("#verdict").bounding_box()["y"] < 300
        assert cards.first.bounding_box()["y"] < 900


@pytest.mark.slow
def test_tabs_work_with_the_keyboard_and_keep_what_is_linked(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        tabs = page.get_by_role("tab")
        assert tabs.all_inner_texts() == ["Summary", "Questions", "Experiments", "All numbers"]
        tabs.first.focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("#tab-questions").is_visible()
        assert page.locator("#tab-summary").is_hidden()
        page.keyboard.press("End")
        assert page.locator("#tab-numbers").is_visible()
        assert tabs.last.get_attribute("aria-selected") == "true"
        assert page.evaluate("location.hash") == "#tab-numbers"
        page.evaluate("location.hash = '#layers'")
        page.locator("#tab-experiments").wait_for()


def test_search_is_two_tabs_away_and_arrows_lead_to_a_question(
    sample: Path, opened: Opened
) -> None:
    with opened(sample) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "search"
        page.keyboard.type("telescope")
        assert page.locator("#tab-questions").is_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowDown")
        expected = page.evaluate("document.activeElement.dataset.at")
        assert expected == page.locator(".found a").nth(1).get_attribute("data-at")
        page.keyboard.press("Enter")
        page.locator(f".found a[data-at='{expected}'][aria-current=true]").wait_for()
        ready(page)


def test_failures_come_first(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        ready(page)
        choose(page, "policy").select_option(label="recent:k=3")
        page.wait_for_function("document.querySelectorAll('.found a').length === 20")
        while page.locator(".found .more button").count():
            page.locator(".found .more button").click()
        marks = page.locator(".found a").evaluate_all(
            "all => all.map(one => one.querySelector('.mark.lost') ? 1 : 0)"
        )
        assert len(marks) == 165
        lost = [at for at, mark in enumerate(marks) if mark]
        assert 0 < len(lost) < 165
        assert marks[0] == 1
        assert marks[-1] == 0


def test_tables_sort_explain_themselves_and_are_downloaded(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        box = page.locator("#verdict .exhibit")
        head = box.locator("thead th", has_text="evidence shown")
        head.locator("button").focus()
        assert page.get_by_role("tooltip").inner_text() == (
            "Questions that are shown all of their evidence in source order, "
            "or in the order of --against."
        )
        head.locator("button").click()
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        assert box.locator("tbody th bdi").all_inner_texts() == ["raw", "recent:k=3", "focal"]
        with page.expect_download() as waiting:
            box.locator("[data-tool=csv]").click()
        assert waiting.value.suggested_filename == "summary.csv"
        lines = Path(waiting.value.path()).read_text("utf-8-sig").splitlines()
        assert lines[0].startswith("memory,level,evidence shown,ordinary disorder,")
        assert [line.partition(",")[0] for line in lines[1:]] == ["raw", "recent:k=3", "focal"]
        box.locator("[data-tool=copy]").click()
        box.get_by_text("Copied").wait_for()
        for name in ("Summary", "Experiments", "All numbers"):
            panel = open_tab(page, name)
            for exhibit in panel.locator(".exhibit").all():
                assert exhibit.locator("[data-tool=csv]").count() == 1
                assert exhibit.locator("thead th:not(:has(button))").count() == 0
            wide = panel.locator(".scroll").evaluate_all(
                "all => all.filter(one => one.scrollWidth > one.clientWidth + 1)"
                ".map(one => one.ariaLabel)"
            )
            assert wide == []


def test_paper_is_white_and_has_every_chart(sample: Path, opened: Opened) -> None:
    with opened(sample, dark=True) as page:
        ready(page)
        page.emulate_media(media="print", color_scheme="dark")
        style = "getComputedStyle(document.body)"
        assert page.evaluate(f"[{style}.backgroundColor, {style}.color]") == [
            "rgb(255, 255, 255)",
            "rgb(26, 31, 38)",
        ]
        text = ".chart[data-chart]:not(details:not([open]) .chart)"
        assert page.locator(text).count() >= 3
        for name in ("Summary", "Experiments"):
            assert page.locator(f"#tab-{name.lower()}").is_visible()
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.locator(f"{text}:not([data-drawn])").first.wait_for(state="detached")


def test_all_estimates_can_be_searched(sample: Path, opened: Opened) -> None:
    rows = (sample.parent / "estimates.csv").read_text("utf-8").count("\n") - 1
    with opened(sample) as page:
        box = open_tab(page, "All numbers").locator("#all-estimates")
        box.locator("tbody tr").first.wait_for()
        count = box.locator("[role=status]")
        assert count.inner_text() == f"{rows} of {rows} rows"
        box.locator("input").fill("routes raw all replay V_changed_count")
        assert count.inner_text() == "1 of 165 rows".replace("165", str(rows))
        assert "V_changed_count" in box.locator("tbody tr").inner_text()


def test_a_number_leads_to_its_row_and_says_how_to_trace_it(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        layers = open_tab(page, "Experiments").locator("#layers table").first
        line = layers.locator("tbody tr", has=page.locator("th", has_text="focal"))
        overlap = line.locator("td a").last
        assert overlap.inner_text().startswith("0.053 [")
        number = overlap.get_attribute("href").removeprefix("#row=")
        overlap.click()
        box = page.locator("#all-estimates")
        box.locator("tbody tr").wait_for()
        assert box.locator("[role=status]").inner_text().startswith("1 of ")
        assert box.locator("tbody th").inner_text() == number
        assert "0.053 [" in box.locator("tbody tr").inner_text()
        assert 0 <= box.locator("tbody tr").bounding_box()["y"] <= 850, "the row is in view"
        command = box.locator("code").inner_text()
        assert command == f"routeprism trace {sample.parent} --row {number}"
        box.locator("input").fill("raw")
        assert not box.locator("code").is_visible()
        assert violations(page) == []
        page.goto(f"{page.url.partition('#')[0]}#row=2")
        page.locator("#all-estimates tbody th", has_text="2").wait_for()
        page.goto(f"{page.url.partition('#')[0]}#row=99999")
        page.locator("#all-estimates").get_by_text("This run has no row 99999: it has").wait_for()
        assert not box.locator("code").is_visible()


def test_search_filters_and_keys(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        ready(page)
        count = page.locator("#prism .count[role=status]")
        assert count.inner_text() == "165 of 165 questions"
        page.keyboard.press("/")
        page.keyboard.type("u01-q0")
        assert count.inner_text() == "1 of 165 questions"
        page.keyboard.press("Escape")
        choose(page, "policy").select_option(label="raw")
        choose(page, "sources").check()
        assert count.inner_text() == "0 of 165 questions"
        choose(page, "policy").select_option(label="focal")
        assert count.inner_text() == "165 of 165 questions"
        choose(page, "lost").check()
        # 78 lose support on replay, 68 on forward, and 19 have one in place of another.
        both = int(count.inner_text().split()[0])
        assert 78 <= both < 78 + 68
        choose(page, "answer").check()
        assert 0 < int(count.inner_text().split()[0]) < both
        choose(page, "kind").select_option(label="plan")
        assert page.locator(".found a .meta").first.inner_text().endswith("plan")
        link = page.locator(".found a").nth(0)
        address = link.get_attribute("href")
        link.click()
        page.wait_for_function(IS_SHOWN, arg=address)
        before = page.locator("article.question").get_attribute("data-question")
        page.keyboard.press("j")
        page.wait_for_function(
            "id => document.querySelector('article.question').dataset.question !== id", arg=before
        )
        page.keyboard.press("k")
        page.wait_for_function(
            "id => document.querySelector('article.question').dataset.question === id", arg=before
        )


def test_a_link_opens_its_question_on_its_pair(sample: Path, opened: Opened) -> None:
    with opened(sample, "#q=u03-q1&policy=recent%3Ak%3D3&schedule=replay") as page:
        ready(page)
        pane = page.locator("article.question")
        assert pane.get_attribute("data-question") == "u03-q1"
        policy = pane.locator("[data-choose=policy]").evaluate("e => e.selectedOptions[0].text")
        assert policy == "recent:k=3"
        assert pane.locator("h4").all_inner_texts() == [
            "The two contexts",
            "The answers of every draw",
            "What each arrival did",
        ]
        # Two draws on each route.
        assert pane.locator("tr[data-side] .draw").count() == 4
    with opened(sample, "#q=nobody") as page:
        text = page.locator("article.question").inner_text()
        assert text == "This run has no question nobody."


def test_the_prism_shows_the_lines_of_a_known_pair(
    own_data: Callable[..., Path], opened: Opened, tmp_path: Path
) -> None:
    """Of three records the newest is kept: the third forward, the first on replay."""
    directory = own_data(
        [{"user": "u", "id": f"r{n}", "text": f"the parcel number {n}"} for n in range(3)],
        [{"user": "u", "id": "q", "text": "Which parcel?", "support": ["r2"]}],
    )
    run = tmp_path / "run"
    routeprism.audit(str(directory), "recent:k=1", interface="all", run=run, resamples=200)
    with opened(write_report(run)) as page:
        ready(page)
        lines = {
            (line["side"], line["record"]): (line["state"], line["arrival"])
            for line in page.locator("path.line[data-record]").evaluate_all(
                "all => all.map(one => ({...one.dataset}))"
            )
        }
        assert lines == {
            ("forward", "r0"): ("dropped", "0"),
            ("forward", "r1"): ("dropped", "1"),
            ("forward", "r2"): ("exposed", "2"),
            ("route", "r2"): ("dropped", "0"),
            ("route", "r1"): ("dropped", "1"),
            ("route", "r0"): ("exposed", "2"),
        }
        support = page.locator("rect.record[data-support=true]")
        assert support.evaluate_all("all => all.map(one => one.dataset.record)") == ["r2"]
        text = page.locator("article.question p.says").first.inner_text()
        assert text.endswith(
            "Of 1 record with evidence, the question is shown 1 in source order and 0 in reversal."
        )
        assert page.locator(".diff .block.forward").inner_text().endswith("parcel number 2")
        assert page.locator(".diff .block.route").inner_text().endswith("parcel number 0")
        page.locator(".prism .hit").nth(1).press("Enter")
        opened_text = page.locator("[aria-live] .block").inner_text()
        assert "the parcel number 1" in opened_text
        assert "record 'r1'" in opened_text
        # The third of three arrivals in reversal, r0, is kept; r2 left when r1 arrived.
        assert page.locator("article.question .causes p").all_inner_texts() == [
            "Under reversal: the memory was full, and 'r2' (“the parcel number 2”) had to leave: "
            "an unrelated record in place of 'r1' pushes 'r2' out as well."
        ]
        boxes = page.locator(".prism svg text")
        assert boxes.all_text_contents() == [f"r{n}the parcel number {n}" for n in range(3)]
        hits = page.locator(".prism .hit")
        assert hits.nth(2).get_attribute("aria-label") == (
            "Record 'r2' (“the parcel number 2”), evidence: shown in source order, dropped in "
            "reversal. Open its text."
        )


def test_restoration_prompts_highlight_what_was_exchanged(restored: Path, opened: Opened) -> None:
    """Question u01-q0: its support is u01-r3, which replay loses (records 1 and 3 stay)."""
    with opened(restored, "#q=u01-q0") as page:
        ready(page)
        roles = {
            condition: page.locator(
                f".condition[data-condition={condition}] .block[data-role]:not([data-role=''])"
            ).evaluate_all("all => all.map(one => [one.dataset.record, one.dataset.role])")
            for condition in ("present", "absent", "restored", "replacement")
        }
        assert roles["present"] == [["u01-r3", "highlight"]]
        assert roles["restored"] == [["u01-r3", "highlight"]]
        assert [role for _, role in roles["absent"]] == ["removed"]
        assert [role for _, role in roles["replacement"]] == ["matched"]
        losses, matched = roles["absent"][0][0], roles["replacement"][0][0]
        assert losses in ("u01-r0", "u01-r2")
        assert matched == "u01-r1"
        right = page.locator(".condition[data-condition=restored] .draw").first
        assert right.get_attribute("data-verdict") == "right"
        open_tab(page, "Experiments")
        page.locator("#restoration").scroll_into_view_if_needed()
        if not page.locator("#restoration .chart:visible").count():
            page.locator("#restoration summary", has_text="chart").first.click()
        page.wait_for_selector("#restoration .chart[data-drawn] svg")
        text = page.locator("#restoration .chart").first.get_attribute("aria-label")
        assert "restored minus absent" in text


def test_every_experiment_shows_its_answers_and_what_was_read(
    intervened: Path, opened: Opened
) -> None:
    with opened(intervened, "#q=u01-q1", width=390, dark=True) as page:
        ready(page)
        pane = page.locator("article.question")
        experiment_rows = pane.locator("tr[data-experiment]").evaluate_all(
            "all => all.map(row => [row.dataset.experiment, row.dataset.side, "
            "row.querySelectorAll('.draw').length])"
        )
        # Two readers; every side was asked twice.
        sides = [
            ("routes", ["forward", "replay"]),
            ("routes", ["forward", "replay"]),  # under the second instruction
            (
                "display",
                ["forward-native", "route-native", "forward-reversed", "route-reversed"],
            ),
        ]
        assert experiment_rows == [
            [experiment, side, 2] for experiment, names in sides for _ in range(2) for side in names
        ]
        assert pane.locator("[data-reuse]").get_attribute("data-reuse") == "target"
        assert "the anchor u01-q0" in pane.locator("[data-reuse]").inner_text()
        box = pane.locator("details", has_text="What the model read: instruction gated")
        assert box.locator(".condition").count() == 0  # not before it is asked for
        box.locator("summary").click()
        page.wait_for_selector(".condition[data-condition=forward] .block[data-record]")
        assert box.locator(".condition").count() == 2
        frames = " ".join(box.locator(".block.frame").all_inner_texts())
        assert "padding: “one” ×" in frames
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_models_are_shown_one_by_one(intervened: Path, opened: Opened) -> None:
    with opened(intervened) as page:
        ready(page)
        experiments = open_tab(page, "Experiments")
        answers = experiments.locator("#answers").inner_text()
        assert "Model by model" in answers
        assert "reader:temperature=0.1" in answers
        for name, words in (
            ("display", "different memories"),
            ("reuse", "evidence changed"),
            ("provenance", "gated"),
        ):
            assert words in experiments.locator(f"#{name}").inner_text()
        assert violations(page) == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_nothing_serious_stands_in_the_way(
    sample: Path, opened: Opened, width: int, dark: bool
) -> None:
    with opened(sample, width=width, dark=dark) as page:
        assert violations(page) == []
        ready(page)
        assert violations(page) == []
        open_tab(page, "Experiments")
        for chart in page.locator(".chart:visible").all()[:6]:
            chart.scroll_into_view_if_needed()
        page.wait_for_selector("#answers .chart[data-drawn] svg")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_compare_page_has_nothing_serious_in_the_way(
    sample: Path, opened: Opened, tmp_path: Path, width: int, dark: bool
) -> None:
    """Two memories of one run are compared: a window of three, and one that keeps all records."""
    comparison = compare_runs(sample.parent, sample.parent, [("recent:k=3", "raw")])
    path = write_comparison(comparison, tmp_path / "compare.html")
    with opened(path, width=width, dark=dark) as page:
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        frames = "[...document.querySelectorAll('.scroll')].filter(one => one.offsetParent)"
        assert page.evaluate(f"{frames}.every(one => one.scrollWidth <= one.clientWidth + 1)")


HOSTILE = (
    "<script>window.ran = true; alert(1)</script>",
    "</script><script>window.ran = true</script>",
    '"><img src=x onerror="window.ran = true">',
    "javascript:window.ran=true",
    "<!--<script>",
    "W" * 100_000,
)


class Hostile:
    """A memory that keeps the newest record, under a name that wants to be markup."""

    def __init__(self, name: str) -> None:
        self.name = name

    def build(self, arrivals: Any) -> Any:
        return _Newest(arrivals[-1])


class _Newest:
    def __init__(self, record: Any) -> None:
        self.record = record

    def retained(self) -> frozenset[str]:
        return frozenset({self.record.id})

    def state(self) -> str:
        return str(self.record.id)

    def expose(self, query: str) -> Exposure:
        return Exposure((Block("record", self.record.text, frozenset({self.record.id})),))


def test_hostile_text_is_shown_as_text(
    own_data: Callable[..., Path], opened: Opened, tmp_path: Path
) -> None:
    texts = [text for text in HOSTILE if len(text) < 1000]
    users = ["one", '"><img src=x onerror="window.ran = true">']
    directory = own_data(
        [
            {"user": user, "id": f"{text} {user}", "text": f"{text} {HOSTILE[-1]}"}
            for user in users
            for text in texts
        ],
        [
            {
                "user": user,
                "id": f"{at} {text} {user}",
                "text": f"{text} {HOSTILE[-1]}",
                "options": [*texts, HOSTILE[-1]],
                "gold": "b",
                "kind": text,
                "support": [f"{texts[0]} {user}"],
            }
            for user in users
            for at, text in enumerate(texts)
        ],
    )
    run = tmp_path / "run"
    routeprism.audit(
        str(directory),
        Hostile(HOSTILE[0]),
        Hostile(HOSTILE[2]),
        models=["reader"],
        run=run,
        resamples=200,
    )
    with opened(write_report(run), width=390) as page:
        ready(page)
        names = page.locator("#verdict tbody th bdi").all_text_contents()
        assert names == [HOSTILE[0], HOSTILE[2]]
        for at in range(len(texts)):
            page.locator(".found a").nth(at).click()
            ready(page)
        heading = page.locator("article.question h3").inner_text()
        assert heading.startswith(tuple(texts))
        page.locator("article.question summary", has_text="What the model read").click()
        page.wait_for_selector(".condition .block[data-record]")
        open_tab(page, "Experiments")
        for chart in page.locator("#answers .chart:visible").all():
            chart.scroll_into_view_if_needed()
        page.wait_for_selector("#answers .chart[data-drawn] svg")
        assert page.evaluate("window.ran") is None
        assert page.locator("img").count() == 0
        assert page.locator("a[href^='javascript']").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_direction_controls_in_data_are_named_and_turn_nothing(
    own_data: Callable[..., Path], opened: Opened, tmp_path: Path
) -> None:
    override = "\N{RIGHT-TO-LEFT OVERRIDE}"
    directory = own_data(
        [{"user": "u", "id": f"r{n}", "text": f"parcel {override}{n}"} for n in range(3)],
        [{"user": "u", "id": "q", "text": f"Which {override}parcel?", "support": ["r2"]}],
    )
    run = tmp_path / "run"
    routeprism.audit(str(directory), "recent:k=1", interface="all", run=run, resamples=200)
    with opened(write_report(run)) as page:
        ready(page)
        assert page.locator("article.question h3").inner_text() == "Which ⟨U+202E⟩parcel?"
        assert override not in page.evaluate("document.body.innerText")
        style = "getComputedStyle(document.querySelector('.found .text')).unicodeBidi"
        assert page.evaluate(style) == "isolate"


def test_the_demonstration_is_short(demonstration: Any, opened: Opened) -> None:
    """All tabs together, as they open, have fewer than 6,000 words."""
    with opened(demonstration.directory / "runs" / "demo" / "report.html") as page:
        words = len(page.locator("header").inner_text().split())
        for name in ("Summary", "Questions", "Experiments", "Orders", "All numbers"):
            panel = open_tab(page, name)
            if name == "Questions":
                ready(page)
            if name == "All numbers":
                page.locator("#all-estimates tbody tr").first.wait_for()
            wide = panel.locator(".scroll").evaluate_all(
                "all => all.filter(one => one.scrollWidth > one.clientWidth + 1)"
                ".map(one => one.ariaLabel)"
            )
            assert wide == []
            words += len(panel.inner_text().split())
        assert words < 6000
        for name in ("Summary", "Experiments", "Orders"):
            open_tab(page, name)
            assert page.locator(".chart:visible").count() <= 3


@pytest.mark.realdata
def test_a_whole_benchmark_stays_small_and_usable(
    data: Path, opened: Opened, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    routeprism.audit(
        "personamem",
        "focal",
        "recent:k=3",
        "lexical",
        schedules=["replay", "half-swap", "odd-even"],
        data=data,
        run=run,
        resamples=200,
    )
    report = write_report(run)
    assert report.stat().st_size < 12_000_000
    with opened(report) as page:
        ready(page)
        count = page.locator("#prism .count[role=status]")
        assert count.inner_text() == "589 of 589 questions"
        choose(page, "kind").select_option(label="fact-recall")
        assert count.inner_text() == "146 of 589 questions"
        choose(page, "policy").select_option(label="lexical")
        choose(page, "sources").check()
        assert count.inner_text() == "0 of 589 questions"  # the lexical reference changes none
        choose(page, "policy").select_option(label="focal")
        choose(page, "schedule").select_option(label="reversal")
        assert count.inner_text() == "146 of 589 questions"  # all 146 pairs changed
        page.locator(".found a").first.click()
        ready(page)
        assert violations(page) == []
