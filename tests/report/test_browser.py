"""What a person can do with the report, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.policies import Block, Exposure
from routeprism.report import write_report

pytestmark = pytest.mark.browser

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
def restored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("restored") / "run"
    routeprism.restore("sample", "focal", models=["reader"], draws=2, run=run, resamples=200)
    return write_report(run)


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


def ready(page: Any) -> Any:
    page.wait_for_selector("article.question svg.prism rect.record")
    return page


def chosen(page: Any, name: str) -> Any:
    return page.locator(f".filters [data-filter={name}]")


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_the_verdict_is_there_with_numbers_and_intervals(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        assert page.locator("h1").inner_text() == (
            "Arrival order changes which records 2 of 3 memories show."
        )
        card = page.locator("#verdict .card", has=page.locator("h3", has_text="focal"))
        # The numbers of the README's demonstration.
        said = card.inner_text()
        assert "Every pair changed its sources" in said
        assert "J = 0.053 [" in said
        assert card.locator(".badge").all_inner_texts() == ["embedded", "synthetic"]
        raw = page.locator("#verdict .card", has=page.locator("h3", has_text="raw"))
        assert "Order changes the internal state alone" in raw.inner_text()


def test_paper_is_white_and_has_every_chart(sample: Path, opened: Opened) -> None:
    with opened(sample, dark=True) as page:
        ready(page)
        page.emulate_media(media="print", color_scheme="dark")
        style = "getComputedStyle(document.body)"
        assert page.evaluate(f"[{style}.backgroundColor, {style}.color]") == [
            "rgb(255, 255, 255)",
            "rgb(26, 31, 38)",
        ]
        shown = ".chart[data-chart]:not(details:not([open]) .chart)"
        assert page.locator(shown).count() > 3
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.locator(f"{shown}:not([data-drawn])").first.wait_for(state="detached")


def test_all_estimates_can_be_searched(sample: Path, opened: Opened) -> None:
    rows = (sample.parent / "estimates.csv").read_text("utf-8").count("\n") - 1
    with opened(sample) as page:
        box = page.locator("#all-estimates")
        box.locator("summary").click()
        count = box.locator("[role=status]")
        assert count.inner_text() == f"{rows} of {rows} rows"
        box.locator("input").fill("routes raw all V_changed_count")
        assert count.inner_text() == "1 of 165 rows".replace("165", str(rows))
        assert "V_changed_count" in box.locator("tbody tr").inner_text()


def test_a_number_leads_to_its_row_and_says_how_to_trace_it(sample: Path, opened: Opened) -> None:
    with opened(sample) as page:
        layers = page.locator("#layers table").first
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
        assert 0 <= box.bounding_box()["y"] <= 100, (
            "the row is in view, whatever is drawn on the way"
        )
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
        chosen(page, "policy").select_option(label="raw")
        chosen(page, "sources").check()
        assert count.inner_text() == "0 of 165 questions"
        chosen(page, "policy").select_option(label="focal")
        assert count.inner_text() == "165 of 165 questions"
        chosen(page, "lost").check()
        # 78 lose support on replay, 68 on forward, and 19 have one in place of another.
        both = int(count.inner_text().split()[0])
        assert 78 <= both < 78 + 68
        chosen(page, "answer").check()
        assert 0 < int(count.inner_text().split()[0]) < both
        chosen(page, "kind").select_option(label="plan")
        assert page.locator(".found a .meta").first.inner_text().endswith("plan")
        first = page.locator(".found a").nth(0)
        first.click()
        ready(page)
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
        shown = page.locator("article.question").inner_text()
        assert shown == "This run has no question nobody."


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
        said = page.locator("article.question p.says").first.inner_text()
        assert "Support records: 1; shown on forward 1, replay 0." in said
        assert page.locator(".diff .block.forward").inner_text().endswith("parcel number 2")
        assert page.locator(".diff .block.route").inner_text().endswith("parcel number 0")
        page.locator(".prism .hit").nth(1).press("Enter")
        opened_text = page.locator("[aria-live] .block").inner_text()
        assert "the parcel number 1" in opened_text
        assert "record 1 r1" in opened_text


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
        gone, matched = roles["absent"][0][0], roles["replacement"][0][0]
        assert gone in ("u01-r0", "u01-r2")
        assert matched == "u01-r1"
        right = page.locator(".condition[data-condition=restored] .draw").first
        assert right.get_attribute("data-verdict") == "right"
        page.locator("#restoration").scroll_into_view_if_needed()
        page.wait_for_selector("#restoration .chart[data-drawn] svg")
        said = page.locator("#restoration .chart").first.get_attribute("aria-label")
        assert "restored minus absent" in said


def test_every_experiment_shows_its_answers_and_what_was_read(
    intervened: Path, opened: Opened
) -> None:
    with opened(intervened, "#q=u01-q1", width=390, dark=True) as page:
        ready(page)
        pane = page.locator("article.question")
        asked = pane.locator("tr[data-experiment]").evaluate_all(
            "all => all.map(row => [row.dataset.experiment, row.dataset.side, "
            "row.querySelectorAll('.draw').length])"
        )
        # Two readers; every side was asked twice.
        sides = {
            "routes": ["forward", "replay"],
            "provenance": ["forward", "replay"],
            "display": ["forward-native", "route-native", "forward-reversed", "route-reversed"],
        }
        assert asked == [
            [experiment, side, 2]
            for experiment, named in sides.items()
            for _ in range(2)
            for side in named
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


def test_models_are_shown_one_by_one(intervened: Path, opened: Opened) -> None:
    with opened(intervened) as page:
        ready(page)
        section = page.locator("#replication")
        models = section.locator("tbody tr td:nth-child(3)").all_inner_texts()
        assert models == ["reader", "reader:temperature=0.1"]
        section.scroll_into_view_if_needed()
        page.wait_for_selector("#replication .chart[data-drawn] svg")
        said = section.locator(".chart").first.get_attribute("aria-label")
        assert "reader:temperature=0.1" in said
        for name, words in (
            ("display", "what was built"),
            ("reuse", "support changed"),
            ("instructions", "gated"),
            ("evidence", "preference"),
        ):
            shown = page.locator(f"#{name} .chart")
            shown.first.scroll_into_view_if_needed()
            page.wait_for_selector(f"#{name} .chart[data-drawn] svg")
            told = shown.evaluate_all("all => all.map(one => one.ariaLabel).join()")
            assert words in told
        assert violations(page) == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_nothing_serious_stands_in_the_way(
    sample: Path, opened: Opened, width: int, dark: bool
) -> None:
    with opened(sample, width=width, dark=dark) as page:
        ready(page)
        for chart in page.locator(".chart:visible").all()[:6]:
            chart.scroll_into_view_if_needed()
        page.wait_for_selector("#answers .chart[data-drawn] svg")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


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
        assert page.locator("#verdict .card h3").all_inner_texts() == [HOSTILE[0], HOSTILE[2]]
        for at in range(len(texts)):
            page.locator(".found a").nth(at).click()
            ready(page)
        shown = page.locator("article.question h3").inner_text()
        assert shown.startswith(texts[-1])
        page.locator("article.question summary", has_text="What the model read").click()
        page.wait_for_selector(".condition .block[data-record]")
        for chart in page.locator("#answers .chart").all():
            chart.scroll_into_view_if_needed()
        page.wait_for_selector("#answers .chart[data-drawn] svg")
        assert page.evaluate("window.ran") is None
        assert page.locator("img").count() == 0
        assert page.locator("a[href^='javascript']").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.realdata
@pytest.mark.slow
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
        chosen(page, "kind").select_option(label="fact-recall")
        assert count.inner_text() == "146 of 589 questions"
        chosen(page, "policy").select_option(label="lexical")
        chosen(page, "sources").check()
        assert count.inner_text() == "0 of 589 questions"  # the lexical reference changes none
        chosen(page, "policy").select_option(label="focal")
        chosen(page, "schedule").select_option(label="replay")
        assert count.inner_text() == "146 of 589 questions"  # all 146 pairs changed
        page.locator(".found a").first.click()
        ready(page)
        assert violations(page) == []
