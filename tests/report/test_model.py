"""The top of a model's page: its promise in words, and what it rests on."""

import math
import re
from dataclasses import replace
from html import unescape

import numpy as np

from ova.posthoc.threshold import Promise, Threshold, fit_threshold
from ova.report import model
from ova.report.model import ModelFacts

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
THRESHOLD = Threshold(
    value=0.8125,
    promise=Promise(accuracy=0.95, coverage=0.5, leak=0.1, certainty=0.9),
    n=1234,
    answered=0.75,
    accuracy=0.975,
    outside=200,
    leak=0.045,
)
FACTS = ModelFacts(
    threshold=THRESHOLD,
    calibrated=0.9375,
    outcomes=("test: 71.2 % of 500 answered, 96.3 % of them right", "ood/outside: 4 % answered"),
    calibration={"method": "top", "n": 1234, "normalised": False, "a": 1.23456, "b": -0.5},
    ece=0.0412,
    calibrated_ece=0.0123,
)


def words(facts: ModelFacts) -> str:
    """The section as one reads it."""
    text = unescape(re.sub("<[^>]*>", " ", model.section(facts))).replace("\N{NO-BREAK SPACE}", " ")
    return " ".join(text.split())


def test_the_promise_is_said_in_words_with_what_it_rests_on():
    text = words(FACTS)
    for part in (
        "Above 0.9375 of its confidence; 0.8125 before calibration",
        "promised, with 90 % certainty, that",
        "at least 95 % of its answers are right",
        "at least 50 % of the inputs are answered",
        "at most 10 % of the inputs that belong to no class are answered",
        "rests on 1,234 held-out examples, of which 75.0 % are answered, 97.5 % of those rightly",
        "of 200 examples of no class 4.5 % are answered",
        "ECE 0.012 on the test set, 0.041 before calibration",
        "by the method top (a 1.235, b -0.5) on 1,234 held-out examples",
        *FACTS.outcomes,
    ):
        assert part in text


def test_only_what_was_promised_is_said():
    text = words(replace(FACTS, threshold=replace(THRESHOLD, promise=Promise(0.99), leak=None)))
    assert "at least 99 % of its answers are right" in text
    assert "inputs are answered" not in text
    assert "no class" not in text


def test_every_part_of_a_promise_has_words():
    parts = set(vars(Promise())) - {"certainty"}
    assert set(model.PARTS) == parts
    assert len(model.parts(Promise(0.9, 0.8, 0.1))) == len(parts)


def test_a_model_that_answers_everything_says_so():
    facts = replace(FACTS, threshold=replace(THRESHOLD, value=-math.inf), calibrated=-math.inf)
    assert "Always whatever its confidence" in words(facts)


def test_nothing_could_be_promised():
    none = fit_threshold((np.linspace(0, 1, 50), np.ones(50)), accuracy=0.99)
    facts = ModelFacts(
        threshold=none, calibration={"method": "top", "why_not": "it needs 20 examples"}, ece=0.2
    )
    text = words(facts)
    assert "Never as nothing could be promised" in text
    assert "Wanted for new inputs of the same kind, with 95 % certainty, was that" in text
    assert f"That {none.why_not}." in text
    assert "299 would be needed" in text
    assert "is promised" not in text
    assert "rests on" not in text
    assert "no other examples" in text
    assert "ECE 0.200 on the test set" in text
    assert "not calibrated: it needs 20 examples." in text


def test_without_any_promise_the_page_says_so_and_when_it_answers_all_the_same():
    facts = replace(FACTS, threshold=replace(THRESHOLD, promise=Promise()))
    text = words(facts)
    assert "Nothing can be promised of its answers" in text
    assert "Above 0.9375 of its confidence" in text
    assert "It rests on 1,234 held-out examples" not in text
    assert "Of 1,234 held-out examples 75.0 % are answered, 97.5 % of those rightly" in text


def test_what_becomes_of_each_class_is_told_and_a_class_that_is_never_answered_named():
    rows = (("rare", 3, "0.0 %", "0.0 %", "-"), ("mean of the classes", 9, "50 %", "40 %", "99 %"))
    text = words(replace(FACTS, classes=rows, never=("rare",)))
    assert "No held-out row is ever answered with: rare." in text
    assert "rare 3 0.0 % 0.0 % - mean of the classes 9 50 % 40 % 99 %" in text
    assert "each class" not in words(FACTS)


def test_texts_of_a_model_stay_texts():
    facts = ModelFacts(
        threshold=replace(THRESHOLD, value=math.inf, why_not=EVIL),
        outcomes=(EVIL,),
        calibration={"method": EVIL, EVIL: EVIL},
    )
    for each in (facts, replace(facts, calibration={"why_not": EVIL})):
        text = model.section(each)
        assert not re.findall("<script|<img", text)
        assert EVIL in words(each)
