"""The page of one model: confusions, inputs, the slider on the scale that decides; no text becomes code."""

import json
import re
from collections import Counter
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from made_pages import confusions, example, made_page, model_facts
from narrowing import there
from ova.report import confusion, model_page
from ova.report.inspection import Confusion
from ova.report.page import bundle

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


def words(text: str) -> str:
    """The page as one reads it."""
    plain = re.sub("<[^>]*>", " ", re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL))
    return " ".join(unescape(plain).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.fixture(scope="module")
def page() -> str:
    return model_page.html(model_facts(), made_page())


def test_it_is_about_this_model_and_not_about_runs(page: str) -> None:
    text = words(page)
    assert "at least 95 % of its answers are right" in text
    for research in (
        "over seeds",
        "the only one here",
        "not measured",
        "Not measured",
        "Formulation",
    ):
        assert research not in text
        assert research not in page.replace(bundle(), "")
    for part in ("class 1", "felix", "row 7 of mails.csv", "dog with 91.0 %", "label: cat"):
        assert part in text
    assert "wrong, answered" in text
    assert "right, refused" in text
    assert "answered, wrongly" in text
    assert "Of none of the classes: moon" in text
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in page


@pytest.mark.parametrize("scale", ["confidence", "energy_nearest"])
def test_the_slider_starts_at_the_fitted_threshold_on_the_scale_that_decides(scale: str) -> None:
    found = made_page(scale=scale)
    text = model_page.html(model_facts(), found)
    data = json.loads(there(re.search(r'id="data">(.*?)</script>', text))[1])
    sweep = there(found.sweep)
    assert data["start"] == sweep.grid[2]
    assert data["grid"] == sweep.grid
    shown = there(re.search(r'<output id="threshold-value"[^>]*>(.*?)<', text))[1]
    assert float(shown) == sweep.grid[2]
    assert "at this threshold 50.0 % 95.0 % 12.5 %" in words(text)
    assert data["live"]["model"]["runs"][0]["mixed"]["moon"]["through"] == [1, 0.4, 0.125, 0]
    still = [c["name"] for c in data["charts"] if c["spec"]["usermeta"].get("still")]
    assert still == ([] if scale == "confidence" else ["reliability"])


def test_where_each_class_has_a_threshold_there_is_no_slider() -> None:
    text = model_page.html(model_facts(), replace(made_page(), sweep=None))
    assert "Each class has a threshold of its own" in words(text)
    assert '<input type="range"' not in text


def test_a_model_without_mistakes_says_so() -> None:
    y = np.arange(30) % 3
    right = Confusion(target=y, guess=y, answered=y == 0)
    text = words(model_page.html(model_facts(), replace(made_page(), confusion=right, mistakes=[])))
    assert "None: its best guess is right for all 30 test rows" in text
    assert "No test row is wrong." in text


def test_texts_of_data_stay_texts() -> None:
    evil = example(place=EVIL, text=EVIL, label=EVIL, guess=EVIL)
    found = replace(
        made_page(), title=EVIL, about=EVIL, classes=[EVIL] * 3, mistakes=[evil], suspects=[evil],
        outside={f"ood/{EVIL}": [evil]}, facts={EVIL: EVIL},
    )  # fmt: skip
    text = model_page.html(model_facts(), found).replace(bundle(), "")
    assert len(re.findall("<script", text)) == 3  # the page's own
    assert "<img src=x" not in text


@pytest.mark.parametrize(("classes", "n"), [(2, 50), (3, 40), (7, 300), (150, 4000)])
def test_pairs_are_the_counts_of_a_plain_loop(classes: int, n: int) -> None:
    found = confusions(classes, n)
    rows = list(
        zip(found.target.tolist(), found.guess.tolist(), found.answered.tolist(), strict=True)
    )
    wrong = Counter((y, k) for y, k, _ in rows if y != k)
    through = Counter((y, k) for y, k, kept in rows if y != k and kept)
    said = confusion.pairs(found, classes)
    assert {(p.target, p.guess): (p.rows, p.answered) for p in said} == {
        pair: (count, through[pair]) for pair, count in wrong.items()
    }
    assert [p.rows for p in said] == sorted(wrong.values(), reverse=True)


@pytest.mark.parametrize("classes", [2, 3, 7, 40, 41, 150])
def test_the_map_shows_the_classes_with_most_mistakes_each_once(classes: int) -> None:
    cells = confusion.counts(confusions(classes, 20 * classes), classes)
    shown = confusion.order(cells)
    assert len(shown) == len(set(shown)) == min(classes, confusion.MOST)
    wrong = cells.sum(0) + cells.sum(1) - 2 * np.diag(cells)
    left = sorted(set(range(classes)) - set(shown))
    if left:
        assert wrong[left].max() <= wrong[shown].min()
    svg = confusion.picture(cells, [f"k{k}" for k in range(classes)])
    assert svg.count("<rect") == int((cells[np.ix_(shown, shown)] > 0).sum())


def test_classes_that_are_confused_stand_together() -> None:
    """Of shuffled pairs that are only confused with each other all are neighbours on the map."""
    classes = 20
    mates = np.random.default_rng(3).permutation(classes).reshape(-1, 2)
    cells = 10 * np.eye(classes, dtype=int)
    for a, b in mates.tolist():
        cells[a, b] = 3
    place = {k: i for i, k in enumerate(confusion.order(cells))}
    assert all(abs(place[a] - place[b]) == 1 for a, b in mates.tolist())
