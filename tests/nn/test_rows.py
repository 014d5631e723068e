"""Rows of a last layer put beside others: the old ones say what they said, the new ones learn."""

import pytest
import torch

from ova.errors import BadInput
from ova.nn.formulations import FORMULATIONS
from ova.nn.rows import of_classes, with_rows
from ova.predictions import NONE
from ova.training.rows import Labelled, fit_rows

WITHOUT = {"ova-dm-released"}  # whose class is a column of other classes' distances too
CAN = sorted({*FORMULATIONS} - WITHOUT)


def clouds(classes: int = 4, per_class: int = 60) -> Labelled:
    """Classes around corners, and some rows of none amid them."""
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(classes).repeat_interleave(per_class)
    centres = 4 * torch.eye(6)[:classes]
    f = centres[y] + 0.5 * torch.randn(len(y), 6, generator=draw)
    strange = torch.randn(20, 6, generator=draw)
    return Labelled(torch.cat([f, strange]), torch.cat([y, torch.full((20,), NONE)]))


@pytest.mark.parametrize("name", CAN)
def test_old_rows_say_what_they_said_and_new_ones_learn(name: str) -> None:
    """Oracle: the logits of the classes that stay, before and after, bit for bit."""
    torch.manual_seed(0)
    form, rows = FORMULATIONS[name], clouds()
    before = form.head(6, 4)
    inside = rows.y != NONE
    before.start(rows.f[inside], rows.y[inside])
    fit_rows(before, form, range(4), rows, rows)
    before.eval()
    old: list[int | None] = [2, 0, None, 3]  # the second class goes, and comes back as a new one
    target = torch.tensor([1, 2, 0, 3, NONE])[rows.y]
    now = Labelled(rows.f, target)
    after = with_rows(before, old, now.f, now.y).train()
    steps = fit_rows(after, form, [2], now, now)
    after.eval()
    z, was = after(rows.f).detach(), before(rows.f).detach()
    assert torch.allclose(z[:, [0, 1, 3]], was[:, [2, 0, 3]], rtol=1e-5, atol=1e-5)
    for parameter in of_classes(after):
        kept = getattr(after, parameter)[[0, 1, 3]], getattr(before, parameter)[[2, 0, 3]]
        assert torch.equal(*kept)
    own = target == 2
    loss = form.loss(z, target).mean()
    assert steps > 0
    assert loss < form.loss(with_rows(before, old, now.f, now.y).eval()(rows.f), target).mean()
    assert (z[own].argmax(1) == 2).float().mean() > 0.9


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_a_class_without_a_row_of_its_own_is_refused(name: str) -> None:
    head, rows = FORMULATIONS[name].head(6, 4), clouds()
    with pytest.raises(BadInput, match="has no row of its own for each class"):
        with_rows(head, [0, 1, 2, None], rows.f, rows.y)


@pytest.mark.parametrize("name", ["ova", "ova-ball", "softmax"])
def test_one_vs_all_a_row_of_a_class_is_fitted_without_looking_at_the_others(name: str) -> None:
    """Oracle: the same row fitted beside other old rows; softmax, these do matter."""
    torch.manual_seed(1)
    form, rows, found = FORMULATIONS[name], clouds(), []
    rows = Labelled(rows.f.double(), rows.y)  # a constant costs no digits
    for seed in (0, 1):
        torch.manual_seed(5)
        head = form.head(6, 4).double()
        inside = rows.y != NONE
        head.start(rows.f[inside], rows.y[inside])
        with torch.no_grad():
            head.weight[:3] += seed * torch.randn(3, 6)  # type: ignore[index,operator]
            if hasattr(head, "bias"):
                head.bias[:3] -= seed  # type: ignore[index,operator]
            head.weight[3] = 0.0  # type: ignore[operator]
        fit_rows(head, form, [3], rows, rows)
        found.append(head(rows.f)[:, 3].detach())
    assert torch.allclose(found[0], found[1], atol=1e-3) == (not form.normalised)
