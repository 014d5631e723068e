"""The report: figures from rows, numbers from curves, a page that is safe, whole and small."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import made_runs
from narrowing import there
from ova.errors import BadInput
from ova.report import (
    comparison,
    evidence,
    figures,
    page,
    paper,
    runs,
    select,
    summary,
    thresholds,
)
from ova.report.export import FORMATS, specs, write_figures
from ova.report.figures import FIGURES, Figure
from ova.report.packing import pack
from ova.report.sections import SECTIONS
from ova.report.theme import finish
from ova.report.thinning import TOLERANCE, thin
from ova.training.run_folder import Run

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    made_runs.make(root, seeds=2, n=400)
    made_runs.make(root, "toy", seeds=1, toy=True, shift=False, ood=("ring",), n=400)
    return root


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """One run with the least that makes figures, because drawing to a file is slow."""
    rows, curves = made_runs.one_run("ova", 0, n=200, shift=False, ood=())
    recipe = {"experiment": "small", "formulation": "ova", "seed": 0}
    folder = tmp_path_factory.mktemp("small") / "small" / "ova-s0"
    return made_runs.write_run(folder, recipe, rows, curves[:2], [])


@pytest.fixture(scope="module")
def found(root) -> list[Run]:
    return runs.read([root])


@pytest.fixture(scope="module")
def text(found) -> str:
    return page.html(found)


def one(found, label="ova", seed=0, experiment="cifar10-desk"):
    return next(r for r in found if (r.experiment, r.label, r.seed) == (experiment, label, seed))


def embedded(text: str) -> Any:
    return json.loads(
        there(re.search(r'<script type="application/json" id="data">(.*?)</script>', text))[1]
    )


# Reading


def test_folders_may_be_runs_experiments_or_all_of_them(root):
    every = runs.read([root])
    assert len(every) == 4 * 2 + 4 * 1
    assert runs.read([root / "toy", root / "cifar10-desk"]) == every
    assert [r.id for r in runs.read([root / "toy" / "ova-s0", root / "toy" / "ova-s0"])] == [
        "ova-s0"
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("recipe.json", "{"),
        ("recipe.json", "[1]"),
        ("measurements.jsonl", '{"dataset": "test"}\n'),
        ("measurements.jsonl", "nonsense\n"),
        ("measurements.jsonl", '{"dataset": "test", "metric": "ece", "value": "high"}\n'),
        ("curves.json", "{}"),
        ("curves.json", '[{"dataset": "test"}]'),
        ("curves.json", '[{"dataset": "t", "curve": "roc", "columns": {"fpr": [0], "tpr": [0, 1]}}]'),
        ("curves.json", '[{"dataset": "t", "curve": "roc", "columns": {"fpr": [0]}}]'),
        ("curves.json", '[{"dataset": "t", "curve": "roc", "columns": {"fpr": [[]], "tpr": [0]}}]'),
        ("curves.json", '[{"dataset": "t", "curve": "roc", "columns": {"fpr": 0, "tpr": 1}}]'),
        ("curves.json", '[{"dataset": [], "curve": "x", "columns": {}}]'),
        ("curves.json", '[{"dataset": "t", "curve": "x", "score": [], "columns": {}}]'),
        ("measurements.jsonl", '{"dataset": [], "metric": "ece", "value": 1}\n'),
        ("measurements.jsonl", '{"dataset": "t", "metric": "ece", "value": 1, "score": {}}\n'),
        ("log.jsonl", '{"loss": 1}\n'),
    ],
)  # fmt: skip
def test_a_broken_file_is_named(tmp_path, name, content):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "recipe.json").write_text("{}")
    (folder / name).write_text(content)
    with pytest.raises(BadInput, match=name):
        runs.read([folder])


@pytest.mark.parametrize("make", [lambda p: p / "absent", lambda p: p])
def test_nothing_to_read_says_what_would_work(tmp_path, make):
    with pytest.raises(BadInput, match="folder"):
        runs.read([make(tmp_path)])


def test_runs_of_one_formulation_and_seed_are_told_apart(tmp_path):
    for i, lr in enumerate((0.1, 0.2)):
        recipe = {"experiment": "e", "formulation": "ova", "seed": 0, "lr": lr}
        made_runs.write_run(tmp_path / "e" / str(i), recipe, [], [], [])
    assert [r.label for r in runs.read([tmp_path])] == ["ova · lr 0.1", "ova · lr 0.2"]


# Figures


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_a_valid_chart_of_its_rows(found, name):
    figure = FIGURES[name]
    experiment = "toy" if name in ("landscape", "embedding") else "cifar10-desk"
    mine = [run for run in found if run.experiment == experiment]
    rows = figure.rows(mine)
    assert rows, "the made runs hold what every figure needs"
    some = [row for row in rows if row["label"] in ("softmax", "ova")]
    some = some[:50] + some[-50:]  # the schema is checked row by row, which is slow
    chart = figure.draw(some, ["softmax", "dm", "ova", "ova-dm"]).to_dict()
    quick = figure.spec(some, ["softmax", "dm", "ova", "ova-dm"])
    for spec in (chart, quick):
        spec.pop("datasets"), spec.pop("data")
    assert quick == chart


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_no_rows_where_nothing_was_measured(name):
    assert FIGURES[name].rows([Run("e", "r", "ova", 0)]) == []


def test_a_figure_is_a_file_and_a_line():
    files = {path.stem for path in Path(figures.__file__).parent.glob("*.py")}
    listed = {name.replace("-", "_") for name in FIGURES}
    assert files - listed == {"__init__", "figure"}
    assert listed <= files
    assert {figure.section for figure in FIGURES.values()} == set(SECTIONS)


def test_a_new_figure_stands_in_the_section_that_it_names(found, monkeypatch):
    mine = Figure(
        title="How many runs?",
        caption="A dot for each of them.",
        needs="a run",
        section="trust",
        rows=lambda runs: [{"label": run.label, "seed": run.seed} for run in runs],
        draw=lambda rows, _: finish(alt.Chart().mark_point().encode(x="seed:Q"), rows),
    )
    monkeypatch.setitem(FIGURES, "runs", mine)
    toy = [run for run in found if run.experiment == "toy"]
    text = page.html(toy)
    titles = [text.index(f'<h3 id="{key}-0">') for key in ("trust", "shift")]
    assert titles[0] < text.index("<h4>How many runs?</h4>") < titles[1]
    data = embedded(text)
    chart = next(chart for chart in data["charts"] if chart["name"] == "runs")
    assert data["sets"][chart["spec"]["data"]["name"]]["n"] == len(toy)

    nothing = replace(mine, rows=lambda _: [])
    monkeypatch.setitem(FIGURES, "runs", nothing)
    assert re.search("Not measured in these runs:[^.]*How many runs?.*a run", page.html(toy))


@pytest.mark.parametrize("kind", FORMATS)
def test_figures_are_written_in_every_format(small, tmp_path, kind):
    start = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}
    written = write_figures([small], tmp_path, kind)
    assert {path.stem for path in written} == {"small-reliability", "small-threshold"}
    assert all(path.read_bytes().startswith(start[kind]) for path in written)


def test_a_printed_figure_has_no_trace_of_the_slider(small):
    spec = dict(specs([small]))["small-threshold"]
    assert {"name": "threshold", "value": -1} in json.loads(spec)["params"]


def test_box_plots_hold_every_type_and_the_plain_test_set(found):
    mine = [run for run in found if run.experiment == "cifar10-desk"]
    rows = FIGURES["severity"].rows(mine)
    types = {(r["type"], r["severity"]) for r in rows}
    assert types == {(t, s) for t in made_runs.TYPES for s in range(1, 6)} | {("test", 0)}
    assert len(rows) == 2 * len(mine) * len(types)


def test_calibrated_errors_stand_beside_the_raw_ones_and_are_never_mixed_with_them(found):
    mine = [run for run in found if run.experiment == "cifar10-desk" and run.label == "ova"]
    rows = FIGURES["calibrated"].rows(mine)
    means = {
        how: [r["value"] for r in rows if r["metric"] == how and r["severity"] == 5]
        for how in ("raw", "calibrated")
    }
    plain = FIGURES["mean-severity"].rows(mine)
    assert means["raw"] == [r["value"] for r in plain if (r["metric"], r["severity"]) == ("ece", 5)]
    by_hand = [
        [
            r["value"]
            for r in run.measurements
            if r.get("calibration") == "top" and r["dataset"][-2:] == "/5"
        ]
        for run in mine
    ]
    assert means["calibrated"] == pytest.approx([sum(v) / len(v) for v in by_hand])


def test_the_paper_s_variant_before_calibration_is_taken():
    row = {"dataset": "test", "metric": "ece", "n": 1, "bins": 15, "rule": "equal-width"}
    wrong: list[dict[str, Any]] = [
        {"value": 0.9, "bins": 10},
        {"value": 0.8, "rule": "equal-mass"},
        {"value": 0.7, "calibration": "beta"},
    ]
    rows = tuple(row | more for more in [*wrong, {"value": None}, {"value": 0.1}])
    run = Run("e", "r", "ova", 0, measurements=rows)
    assert [r["value"] for r in select.values([run], "ece", "test")] == [0.1]


# Thresholds


def test_live_numbers_are_those_of_a_plain_count():
    rng = np.random.default_rng(0)
    c, right = made_runs.predictions(rng, "ova", 300, 0.2)
    out = made_runs.outside(rng, "ova", 200)
    both = np.concatenate([c, out]), np.concatenate([right, np.zeros(200, bool)])
    curves = tuple(
        {
            "dataset": name,
            "curve": "accuracy_confidence",
            "columns": made_runs.accuracy_confidence(*what),
        }
        for name, what in (("test", (c, right)), ("test+ood/x", both))
    )
    live = thresholds.table([Run("e", "r", "ova", 0, curves=curves)])
    assert live["grid"] == made_runs.GRID
    row = live["runs"][0]
    for i, t in enumerate(live["grid"]):
        kept = c >= t
        assert row["answered"][i] == pytest.approx(kept.mean(), rel=1e-5)
        assert row["accuracy"][i] == (
            pytest.approx(right[kept].mean(), rel=1e-5) if kept.any() else None
        )
        assert row["mixed"]["x"]["through"][i] == pytest.approx((out >= t).mean(), rel=1e-5)


def test_a_curve_on_any_other_grid_is_read_at_the_slider_s_positions():
    c = np.random.default_rng(0).random(1000)
    steps = np.sort(c)
    columns = {
        "threshold": steps.tolist(),
        "kept": [int((c >= t).sum()) for t in steps],
        "accuracy": [1.0] * 1000,
        "answered": [float((c >= t).mean()) for t in steps],
    }
    curve = {"dataset": "test", "curve": "accuracy_confidence", "columns": columns}
    live = thresholds.table([Run("e", "r", "ova", 0, curves=(curve,))])
    assert len(live["grid"]) == 201
    assert live["runs"][0]["answered"] == [float((c >= t).mean()) for t in live["grid"]]


def test_the_needed_threshold_is_the_lowest_that_holds_from_there_on():
    run = {"accuracy": [0.8, 0.95, 0.85, 0.9, 0.99, None]}
    grid = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [thresholds.needed(run, grid, a) for a in (0.7, 0.9, 0.95, 0.999)] == [0, 3, 4, None]


# Thinning and packing


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=1, max_size=60))
def test_a_thinned_curve_passes_every_dropped_point_closely(points):
    x = sorted(a / 1000 for a, _ in points)
    y = [b / 1000 for _, b in points]
    kept = thin(x, y)
    assert kept[0] == 0
    assert kept[-1] == len(x) - 1
    across, up = (max(x) - min(x)) or 1, (max(y) - min(y)) or 1
    for a, b in pairwise(kept):
        line = np.linspace([x[a] / across, y[a] / up], [x[b] / across, y[b] / up], 2001)
        for i in range(a + 1, b):
            away = np.hypot(*(line - [x[i] / across, y[i] / up]).T).min()
            assert away <= TOLERANCE + 1e-3  # the second term: 2001 points are not a line


def test_thinning_leaves_out_most_of_a_smooth_curve():
    x = np.linspace(0, 1, 2000)
    assert len(thin(x.tolist(), (x**3).tolist())) < 60


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "x", "1"]))),
        max_size=12,
    )
)  # fmt: skip
def test_packed_rows_unpack_to_the_same(rows):
    packed = pack(rows)
    columns = {
        k: v if isinstance(v, list) else [v["of"][i] for i in v["at"]]
        for k, v in packed.items()
        if k != "n"
    }
    again = [{k: column[i] for k, column in columns.items()} for i in range(packed["n"])]
    names = {k for row in rows for k in row}
    expected = [{k: row.get(k) for k in names} for row in rows]
    assert json.dumps(again, sort_keys=True) == json.dumps(expected, sort_keys=True)


# The page


@pytest.mark.slow
def test_the_page_is_the_same_for_the_same_runs(found, text):
    assert page.html(found) == text


def test_only_the_page_s_own_scripts_may_run_and_nothing_may_be_fetched(text):
    quoted = there(re.search(r'Content-Security-Policy" content="([^"]*)"', text))[1]
    policy = quoted.replace("&#x27;", "'")
    assert policy.startswith("default-src 'none'")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    without = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?!data:,|#)[^"'\s>)]+""", without) == []


def test_names_from_data_stay_text(tmp_path):
    rows, curves = made_runs.one_run("ova", 0, n=100, shift=False, ood=(EVIL.replace("/", "|"),))
    curves.append(
        {
            "dataset": "train",
            "curve": "embedding",
            "columns": {
                "x": [0, 1],
                "y": [0, 1],
                "label": [EVIL, EVIL],
                "kind": ["point", "centre"],
            },
        }
    )
    recipe = {"experiment": EVIL, "formulation": EVIL, "seed": 0, "data": EVIL, "model": "a\u2028b"}
    made_runs.write_run(tmp_path / "e" / "r", recipe, rows, curves, [])
    text = page.html(runs.read([tmp_path]))
    assert len(re.findall("<script", text.replace(page.bundle(), ""))) == 3  # the page's own
    assert "<img" not in text.replace(page.bundle(), "")  # Vega's code has one in a string
    data = there(re.search(r'id="data">(.*?)</script>', text, re.S))[1]
    assert not re.search("[<>&\u2028\u2029]", data)
    assert json.loads(data)["charts"][0]["experiment"] == EVIL


def test_the_summary_names_the_best_mean_of_each_column(found):
    mine = [run for run in found if run.experiment == "cifar10-desk"]
    for measure in summary.MEASURES:
        table = measure.table(mine)
        assert set(table) == set(made_runs.CHARACTER)
        best = max(table, key=lambda k: table[k].mean * (1 if measure.higher else -1))
        assert there(measure.verdict(mine)).best == best
    assert summary.overview(mine).count(">best mean<") == len(summary.MEASURES)


def test_one_seed_claims_no_difference(found):
    toy = [run for run in found if run.experiment == "toy"]
    assert "one seed, so no clear difference can be claimed" in summary.cards(toy)


def test_what_does_not_work_is_said_first(found):
    worse = [
        Run(
            "e",
            name,
            name,
            0,
            measurements=({"dataset": "test", "metric": "accuracy", "value": v, "n": 9},),
        )
        for name, v in (("softmax", 0.9), ("ova", 0.8), ("ova-dm", 0.85))
    ]
    assert summary.shortfalls(worse) == ["accuracy"]
    assert "First what did not work" in page.html(worse)


def test_a_run_without_measurements_gives_sections_that_say_so(tmp_path):
    folder = tmp_path / "e" / "r"
    folder.mkdir(parents=True)
    (folder / "recipe.json").write_text('{"experiment": "e", "formulation": "ova", "seed": 0}')
    text = page.html(runs.read([tmp_path]))
    assert embedded(text)["charts"] == []
    assert 'class="chart"' not in text
    for title in (
        "Can I trust",
        "Where does it break",
        "threshold be",
        "notice the unknown",
        "trained",
    ):
        assert re.search(title + r".*?</h3>.*?Not measured in these runs", text, re.S)


def test_the_runs_table_says_when_a_run_was_taken_up_again():
    told = {
        "after epoch 1, in prediction": [
            {"epoch": 1, "stage": "training"},
            {"stage": "prediction"},
        ],
        "never": [],
        "not recorded": None,  # the manifests of older versions
    }
    made = [
        Run("e", str(i), "ova", i, manifest={} if entries is None else {"resumed": entries})
        for i, entries in enumerate(told.values())
    ]
    rows = re.findall("<tr>(.*?)</tr>", evidence.manifests(made), re.S)
    cells = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]
    at = cells[0].index("Resumed")
    assert [row[at] for row in cells[1:]] == list(told)


def test_the_paper_s_numbers_stand_beside_ours(found):
    mine = [run for run in found if run.experiment == "cifar10-desk"]
    html = paper.beside(paper.T2, mine)
    ours = select.values(mine, "auroc", "ood/svhn")
    mean = np.mean([row["value"] for row in ours if row["label"] == "ova"])
    assert "0.893" in html  # the paper's ova against SVHN
    assert f"{mean:.3f}" in html
    assert "caption says Wide ResNet 28-10" in html  # and the paper's histogram another network
    assert "shorter training" in page.html(mine)
    start = [replace(run, label="ova-zero") for run in mine if run.label == "ova"]
    for shown, times in ((html, 1), (paper.beside(paper.T2, start), 2)):
        assert shown.count("<td>0.893</td>") == times  # also of ova as the paper starts it


def test_a_baseline_gives_differences_with_intervals(root, tmp_path):
    made_runs.make(tmp_path, seeds=3, n=300, shift=False)
    new, old = runs.read([root / "cifar10-desk"]), runs.read([tmp_path])
    html = comparison.against(new, comparison.partner("cifar10-desk", old))
    assert html.count("paired over 2 seeds") == 4 * 3  # the shift was not measured before
    page.write_report([root / "cifar10-desk"], tmp_path / "r.html", baseline=tmp_path)
    assert "Against the baseline" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_a_full_cifar_experiment_fits_in_three_megabytes(tmp_path):
    made_runs.make(tmp_path, "cifar10", seeds=5, n=10_000)
    page.write_report([tmp_path], tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size <= 3_000_000


def test_the_command_writes_page_and_figures(small, tmp_path):
    import typer
    from typer.testing import CliRunner

    from ova.cli.report import report

    app = typer.Typer()
    app.command()(report)
    options = ["-o", str(tmp_path / "r.html"), "--figures", str(tmp_path / "f"), "--format", "svg"]
    result = CliRunner().invoke(app, [str(small), *options])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "r.html").is_file()
    assert list((tmp_path / "f").glob("*.svg"))
    result = CliRunner().invoke(app, [str(small), "--format", "gif"])
    assert isinstance(result.exception, BadInput)
