"""The page in a real browser: no errors, no requests, numbers that follow the slider and the filters."""

import os
import re
from pathlib import Path
from statistics import fmean

import pytest

import find_chromium
import made_runs
from made_pages import made_page, model_facts
from ova.report import runs
from ova.report.model_page import write_model_page
from ova.report.monitor import MonitorFacts, Told, write_monitor
from ova.report.page import write_report
from ova.report.thresholds import table

pytestmark = pytest.mark.browser
NAMES = ("softmax", "dm", "ova")
ARTEFACTS = Path(__file__).resolve().parents[2] / "artefacts"
# Charts that are wider than their place.
WIDE = "[...document.querySelectorAll('.chart')].filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.dataset.name)"
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    """The Chromium that `make test` found or got."""
    found = find_chromium.chromium()
    if found is None and os.environ.get("OVA_REQUIRE_BROWSER") == "1":
        pytest.fail(
            "OVA_REQUIRE_BROWSER=1, but there is no Chromium; python tests/find_chromium.py"
        )
    if found is None:
        pytest.skip("there is no Chromium on this machine; python tests/find_chromium.py gets one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=find_chromium.QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    made_runs.make(root, names=NAMES, seeds=2, n=400, scored=True)
    made_runs.make(root, "toy", names=NAMES, seeds=1, toy=True, shift=False, ood=("ring",), n=400)
    write_report([root], root / "report.html")
    return root


class Opened:
    """A page, and everything that it said or asked for."""

    def __init__(self, browser, path: Path, size="desktop", scheme="light"):
        width, height = SIZES[size]
        viewport = {"width": width, "height": height}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.url = path.as_uri()
        self.page.goto(self.url)
        self.drawn()

    def drawn(self) -> None:
        self.page.wait_for_selector("html[data-drawn=all]", timeout=120_000)

    def slide(self, position: int) -> None:
        self.page.eval_on_selector(
            "#threshold",
            "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }",
            position,
        )
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        )

    def live(self, experiment: str) -> dict[str, dict[str, float | None]]:
        """The exact numbers behind the cells of the live table: {label: {column: value}}."""
        found = self.page.evaluate(
            """(name) => [...document.querySelectorAll('table.live')]
              .filter((table) => table.dataset.experiment === name)
              .flatMap((table) => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) =>
                [row.dataset.label, [...row.querySelectorAll('td')].map((cell) =>
                  [cell.dataset.value || cell.dataset.set, cell.dataset.exact, cell.querySelector('b').textContent])]))""",
            experiment,
        )
        for _, cells in found:
            for _, exact, shown in cells:
                # Half a digit of the last place: JavaScript and Python round ties differently.
                assert (
                    abs(float(shown.rstrip(" %")) - 100 * float(exact)) < 0.0501
                    if exact
                    else shown == "–"
                )
        return {
            label: {column: float(exact) if exact else None for column, exact, _ in cells}
            for label, cells in found
        }


@pytest.fixture(scope="module")
def opened(browser, made):
    """One page for all tests that leave it as they found it."""
    opened = Opened(browser, made / "report.html")
    yield opened
    opened.context.close()


def expected(live: dict, position: int, seeds: set[int]) -> dict[str, dict[str, float | None]]:
    """The live numbers by a plain loop over the curves' values."""
    found: dict[str, dict[str, float | None]] = {}
    for label in {run["label"] for run in live["runs"]}:
        mine = [run for run in live["runs"] if run["label"] == label and run["seed"] in seeds]
        columns = {
            "answered": [r["answered"] for r in mine],
            "accuracy": [r["accuracy"] for r in mine],
        }
        columns |= {name: [r["mixed"][name]["through"] for r in mine] for name in mine[0]["mixed"]}
        for name, lists in columns.items():
            values = [v[position] for v in lists if v[position] is not None]
            found.setdefault(label, {})[name] = fmean(values) if values else None
    return found


def same(a: dict, b: dict) -> bool:
    """Equal but for the order in which a mean was summed."""
    return a.keys() == b.keys() and all(a[k] == pytest.approx(b[k], abs=1e-12) for k in a)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_opens_without_a_word_or_a_request(browser, made, size, scheme):
    opened = Opened(browser, made / "report.html", size, scheme)
    page = opened.page
    assert opened.said == []
    assert opened.asked == [opened.url]
    charts = page.query_selector_all(".chart")
    assert charts
    for chart in charts:
        box = chart.query_selector("svg, canvas").bounding_box()
        assert box["width"] > 100, chart.get_attribute("data-name")
        assert box["height"] > 80, chart.get_attribute("data-name")
    # Nothing but tables, which scroll by themselves, may be wider than the window.
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    assert page.evaluate(WIDE) == []
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"report-{size}-{scheme}.png", full_page=True)
    opened.context.close()


def test_the_slider_shows_the_values_of_the_curves(opened, made):
    wanted = {name: table(mine) for name, mine in runs.experiments(runs.read([made])).items()}
    for position in (0, 37, 80, 105, 110, 50):
        opened.slide(position)
        assert float(opened.page.text_content("#threshold-value")) == made_runs.GRID[position]
        for name, live in wanted.items():
            assert same(opened.live(name), expected(live, position, {0, 1}))
    assert opened.said == []


def test_the_keyboard_moves_the_slider_and_the_charts_follow(opened):
    page = opened.page
    rule = """[...document.querySelectorAll('.chart[data-name=reliability] .mark-rule.role-mark line')]
      .map((line) => line.getAttribute('transform')).join()"""
    before, number = page.evaluate(rule), page.text_content("#threshold-value")
    page.focus("#threshold")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert float(page.text_content("#threshold-value")) == pytest.approx(float(number) + 0.1)
    page.wait_for_function(f"(before) => {rule} !== before", arg=before)
    assert "threshold 0.6" in page.get_attribute("#threshold", "aria-valuetext")
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"(before) => {rule} === before", arg=before)


def test_filters_hide_formulations_and_seeds_everywhere(opened, made):
    page = opened.page
    live = table(runs.experiments(runs.read([made]))["cifar10-desk"])
    page.click(".menu > summary")
    page.uncheck("input[data-filter=labels][value=dm]")
    page.uncheck("input[data-filter=seeds][value='1']")
    opened.drawn()
    wanted = expected(live, made_runs.GRID.index(0.5), {0})
    assert same(opened.live("cifar10-desk"), {k: v for k, v in wanted.items() if k != "dm"})
    titles = page.evaluate(
        "[...document.querySelectorAll('.chart[data-name=reliability] .role-title-text')].map((t) => t.textContent)"
    )
    assert {title.split(" · ")[0] for title in titles} == {"softmax", "ova"}
    page.check("input[data-filter=labels][value=dm]")
    opened.drawn()
    assert "dm" in opened.live("cifar10-desk")
    assert "1 hidden" in page.text_content(".menu > summary")
    page.check("input[data-filter=seeds][value='1']")
    opened.drawn()
    assert page.text_content(".menu > summary") == "Filter"
    page.keyboard.press("Escape")
    assert not page.evaluate("document.querySelector('.menu').open")
    assert opened.said == []


def test_the_score_switch_changes_the_table_and_the_curves(opened):
    page = opened.page

    def shown() -> list[list[str]]:
        found = page.evaluate(
            """() => [...document.querySelectorAll('table.ood')[0].tBodies[0].rows]
              .filter((row) => !row.hidden && row.className !== 'none')
              .map((row) => [row.dataset.score, row.cells[2].textContent])"""
        )
        return list(found)

    def lines() -> list[str]:
        # Not the diagonal of chance, which is of no score.
        return list(
            page.evaluate(
                """() => [...document.querySelectorAll('.chart[data-name=roc] .mark-line path')]
                  .map((path) => path.getAttribute('d')).filter((d) => d)"""
            )
        )

    before = lines()
    assert {tuple(row) for row in shown()} == {("max_p", "max_p")}
    rows = len(shown())
    for score, name in (
        ("energy", "energy"),
        ("chosen", "max_p (1), energy (1)"),
        ("best", "energy"),
    ):
        page.select_option("#score", score)
        page.wait_for_timeout(500)
        assert shown() == [[score, name]] * rows
        assert lines() != before
    page.select_option("#score", "max_p")
    page.wait_for_timeout(500)
    assert lines() == before
    assert opened.said == []


def test_light_and_dark_change_the_page_and_the_words_in_the_charts(opened):
    page = opened.page
    look = """() => [getComputedStyle(document.body).backgroundColor,
      getComputedStyle(document.querySelector('.chart .role-axis-label text')).fill]"""
    light = page.evaluate(look)
    page.click("#theme")
    dark = page.evaluate(look)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.click("#theme")
    assert page.evaluate(look) == light


def test_a_tooltip_has_the_exact_value(opened):
    page = opened.page
    page.locator(".chart[data-name=mean-severity] .mark-symbol.role-mark path").first.hover()
    tooltip = page.wait_for_selector("#vg-tooltip-element.visible")
    assert re.search(r"mean accuracy\s*0\.\d{4}", tooltip.text_content())


def test_a_name_that_is_a_script_does_not_run(browser, tmp_path):
    evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    rows, curves = made_runs.one_run("ova", 0, n=100, shift=False, ood=("a&b<i>",))
    recipe = {"experiment": evil, "formulation": evil, "seed": 0, "data": evil}
    made_runs.write_run(tmp_path / "e" / "r", recipe, rows, curves, [])
    write_report([tmp_path], tmp_path / "report.html")
    opened = Opened(browser, tmp_path / "report.html")
    assert "owned" not in opened.page.title().replace(evil, "")
    assert opened.page.title().startswith("ova")
    assert opened.page.text_content("h2") == evil
    assert opened.said == []
    assert opened.asked == [opened.url]
    opened.context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("classes", "scale"), [(3, "confidence"), (150, "energy_nearest")])
def test_the_page_of_a_model_fits_and_follows_its_slider(browser, tmp_path, size, classes, scale):
    found = made_page(classes, 20 * classes, scale)
    write_model_page(model_facts(), found, tmp_path / "model.html")
    opened = Opened(browser, tmp_path / "model.html", size)
    page = opened.page
    assert "at least 95\N{NO-BREAK SPACE}% of its answers are right" in page.inner_text("#promise")
    for position, (answered, right, moon) in enumerate(
        [(1.0, 0.7, 1.0), (0.9, 0.8, 0.4), (0.5, 0.95, 0.125), (0.0, None, 0.0)]
    ):
        opened.slide(position)
        said = {"answered": answered, "accuracy": right, "moon": moon}
        assert same(opened.live("model"), {"this model": said})
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    assert page.evaluate(WIDE) == []
    assert opened.said == []
    assert opened.asked == [opened.url]
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"model-{classes}-{size}.png", full_page=True)
    opened.context.close()


def test_paper_keeps_every_chart(opened):
    page = opened.page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ARTEFACTS.mkdir(exist_ok=True)
    page.pdf(path=ARTEFACTS / "report.pdf", format="A4")
    assert (ARTEFACTS / "report.pdf").read_bytes().startswith(b"%PDF")
    page.emulate_media(media="screen", color_scheme="light")


@pytest.mark.parametrize("size", SIZES)
def test_the_page_of_a_monitor_draws_its_curves_and_asks_for_nothing(browser, tmp_path, size):
    told = [
        Told("scores", "inputs", 900, 9.2, 0.0025, "row 512 (Monday)", "row 480 (Sunday)"),
        Told("accuracy", "promise", 90, 0.0, 0.0025),
    ]
    rows = [{"row": 300 * k + 1, "share": 0.1 * k} for k in range(4)]
    wealth = [
        {"label": each.name, "row": row["row"], "wealth": row["share"] * 5 - 1}
        for each in told
        for row in rows
    ]
    bounds = [{"labels": n, "seen": 0.9, "low": 0.9 - 1 / n, "high": 1.0} for n in (10, 50, 90)]
    facts = MonitorFacts(
        rows=900,
        labels=100,
        answers=90,
        refused=(0.2, 0.05),
        false_alarms=0.01,
        certainty=0.95,
        promised=0.95,
        told=told,
        warnings=["labels <b>drawn</b> by lot"],
        wealth=wealth,
        bounds=bounds,
        refusals=rows,
    )
    write_monitor(facts, tmp_path / "watch.html")
    opened = Opened(browser, tmp_path / "watch.html", size)
    page = opened.page
    said = page.inner_text("main")
    assert "labels <b>drawn</b> by lot" in said
    assert "row 480 (Sunday)" in said
    for name, lines in {"wealth": 2, "bounds": 1, "refusals": 1}.items():
        drawn = page.locator(f".chart[data-name={name}] .mark-line path")
        lengths = [drawn.nth(k).evaluate("e => e.getTotalLength()") for k in range(drawn.count())]
        assert sum(length > 20 for length in lengths) == lines, name
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    assert opened.said == []
    assert opened.asked == [opened.url]
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"monitor-{size}.png", full_page=True)
    opened.context.close()
