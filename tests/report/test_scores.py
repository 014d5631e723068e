"""The report by score: max p, what each run chose, the best in hindsight, and rivals that are ahead."""

import re

import pytest

import made_runs
from narrowing import there
from ova.report import evidence, page, runs, scores, summary
from ova.report.figures import FIGURES
from ova.report.theme import BY_SCORE
from ova.training.run_folder import Run


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    made_runs.make(root, seeds=2, n=400, shift=False, scored=True)
    return runs.read([root / "cifar10-desk"])


def row(dataset, metric, value, score):
    return {"dataset": dataset, "metric": metric, "value": value, "n": 9, "score": score}


def run(label, seed=0, chosen=None, **aurocs):
    rows = tuple(row("ood/far", "auroc", value, score) for score, value in aurocs.items())
    told = {} if chosen is None else {"score": {"chosen": chosen}}
    return Run("e", f"{label}-{seed}", label, seed, measurements=rows, manifest=told)


def test_the_best_score_is_of_all_seeds_and_of_those_that_every_run_has():
    two = [run("ova", 0, max_p=0.8, knn=0.9, energy=0.99), run("ova", 1, max_p=0.9, knn=0.9)]
    assert scores.AUROC.best(two) == "knn"
    assert scores.AUROC.best([run("ova")]) is None
    both = [row("test+ood/far", "aurc", v, s) for s, v in (("max_p", 0.1), ("knn", 0.2))]
    assert scores.AURC.best([Run("e", "r", "ova", 0, measurements=both)]) == "max_p"


def test_each_run_counts_by_the_score_that_it_chose():
    two = [run("ova", 0, "knn", max_p=0.8, knn=0.7), run("ova", 1, "max_p", max_p=0.6, knn=0.5)]
    rows, names = scores.by_way(scores.CHOSEN, two, scores.AUROC)
    assert [r["value"] for r in rows] == [0.7, 0.6]
    assert names == "knn (1), max_p (1)"
    assert scores.by_way(scores.CHOSEN, [run("ova", max_p=0.5)], scores.AUROC) == ([], "")


def test_a_free_score_of_a_rival_that_is_ahead_is_said_first():
    ours, theirs = run("ova", 0, "knn", max_p=0.8, knn=0.9), run("softmax", max_p=0.7, energy=0.95)
    (said,) = scores.free_rivals([ours, theirs])
    assert "softmax by energy" in said
    assert "0.800 by max p and 0.900 by its chosen score" in said
    assert said in page.html([ours, theirs])
    (half,) = scores.free_rivals([ours, run("softmax", max_p=0.7, energy=0.85)])
    assert "chosen" not in half
    assert not scores.free_rivals([ours, run("softmax", max_p=0.99, energy=0.75)])


def test_the_card_has_every_formulation_by_three_scores_and_says_hindsight(found):
    text = there(scores.card(found))
    for label in made_runs.CHARACTER:
        assert f">{label}</th>" in text
    assert "hindsight" in text
    assert text.count("<small>max_p (1), energy (1)</small>") == 2 * len(made_runs.CHARACTER)
    assert text in summary.cards(found)
    assert scores.card([run("ova", max_p=0.5)]) is None


def test_the_table_shows_one_score_at_a_time_and_has_them_all(found):
    text = there(evidence.ood_table(found))
    rows = re.findall(r"<tr data-score=\"(\w+)\"( hidden)?>", text)
    assert {name for name, _ in rows} == {"max_p", "chosen", "best", "energy"}
    assert all(bool(hidden) == (name != "max_p") for name, hidden in rows)
    assert len(rows) == 4 * 2 * len(made_runs.CHARACTER)


def test_curves_say_by_which_score_they_are_and_whether_it_was_chosen_or_best(found):
    for name in ("roc", "precision-recall"):
        points = FIGURES[name].rows(found)
        assert {p["score"] for p in points} == {"max_p", "energy"}
        assert {(p["seed"], p["score"]) for p in points if p["chosen"]} == {
            (0, "max_p"),
            (1, "energy"),
        }
        assert {p["score"] for p in points if p["best"]} == {"energy"}
        spec = FIGURES[name].spec(points, ["ova"])
        assert {"name": "score", "value": "max_p"} in spec["params"]
        assert BY_SCORE in str(spec)
    assert all(p["score"] == "max_p" for p in FIGURES["roc"].rows(found) if "threshold" in p)


def test_runs_without_further_scores_have_neither_switch_nor_card(tmp_path):
    made_runs.make(tmp_path, seeds=1, n=200, shift=False)
    old = runs.read([tmp_path / "cifar10-desk"])
    text = page.html(old).replace(page.asset("page.js"), "").replace(page.bundle(), "")
    assert 'id="score"' not in text
    assert "card wide" not in text
