"""The digits: which of the unknown ones judge, and which are there to choose by."""

import torch

from ova.data import digits
from ova.data.task import InMemory


def test_one_unknown_digit_judges_and_the_other_chooses() -> None:
    both, eight, nine = digits.load(None), digits.eight(None), digits.nine(None)
    sets = [{n for n in t.evaluations if n.endswith(("/8", "/9"))} for t in (both, eight, nine)]
    assert sets == [{"ood/8", "ood/9"}, {"ood/8", "validation/9"}, {"validation/8", "ood/9"}]
    for name, task in (("ood/8", eight), ("validation/8", nine)):
        one, other = both.evaluations["ood/8"](), task.evaluations[name]()
        assert isinstance(one, InMemory)
        assert isinstance(other, InMemory)
        assert torch.equal(one.x, other.x)
        assert other.y.eq(-1).all()


def test_all_three_train_on_the_same() -> None:
    first, *others = (load(None) for load in (digits.load, digits.eight, digits.nine))
    assert all(torch.equal(first.train.y, task.train.y) for task in others)
    assert all(first.sources == task.sources for task in others)
