"""The edge in PyTorch's manners."""

import copy

import pytest
import torch

from ova.errors import BadInput
from ova.nn.formulations import FORMULATIONS
from ova.nn.modules import IGNORED, Head, Loss


@pytest.mark.parametrize("name", FORMULATIONS)
def test_head_and_loss_are_those_of_the_formulation(name: str) -> None:
    form = FORMULATIONS[name]
    head = Head(name, 8, 4)
    f, y = torch.rand(6, 8), torch.tensor([0, 1, 2, 3, -1, 0])
    head.start(f)
    z = head(f)
    torch.testing.assert_close(head.probs(z), form.probs(z))
    torch.testing.assert_close(head.log_probs(z), form.log_probs(z))
    each = form.loss(z, y)
    torch.testing.assert_close(Loss(name)(z, y), each.mean())
    torch.testing.assert_close(Loss(name, reduction="sum")(z, y), each.sum())
    torch.testing.assert_close(Loss(name, reduction="none")(z, y), each)
    torch.testing.assert_close(
        Loss(name, "none", label_smoothing=0.1)(z, y), form.loss(z, y, smoothing=0.1)
    )


def test_a_head_survives_saving() -> None:
    first, f = Head("ova-dm", 8, 4), torch.rand(6, 8)
    first(f)
    second = Head("ova-dm", 8, 4)
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second(f), first(f))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Loss("ova-md"), "did you mean 'ova-dm'"),
        (lambda: Head("softmx", 8, 4), "did you mean 'softmax'"),
        (lambda: Loss("ova", reduction="avg"), "no reduction called 'avg'"),  # type: ignore[arg-type]
        (lambda: Loss("ova", label_smoothing=1.5), "at least 0 and below 1, not 1.5"),
    ],
)
def test_a_wrong_name_or_value_is_answered(make, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make()


def test_they_print_what_they_are() -> None:
    assert "'ova-dm'" in repr(Head("ova-dm", 8, 4))
    assert repr(Loss("dm")) == "Loss('dm', reduction='mean')"


@pytest.mark.parametrize("name", FORMULATIONS)
def test_rows_that_do_not_count_change_nothing(name: str) -> None:
    z = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    y, few = torch.tensor([1, IGNORED, -1]), torch.tensor([0, 2])
    each = FORMULATIONS[name].loss(z[few], y[few])
    torch.testing.assert_close(Loss(name)(z, y), each.mean())
    torch.testing.assert_close(Loss(name, "sum")(z, y), each.sum())
    one, none, other = Loss(name, "none")(z, y)
    torch.testing.assert_close(torch.stack([one, other]), each)
    assert none == 0
    (slope,) = torch.autograd.grad(Loss(name)(z, y), z)
    assert (slope[1] == 0).all()
    assert slope[0].any()


def test_a_mean_over_accumulated_batches_is_one_over_all() -> None:
    loss = copy.deepcopy(Loss("ova", label_smoothing=0.1))
    z, y = torch.randn(6, 3), torch.tensor([0, 1, 2, IGNORED, -1, 0])
    parts = [loss(z[part], y[part], num_items_in_batch=5) for part in (slice(2), slice(2, 6))]
    torch.testing.assert_close(sum(parts), loss(z, y))


@pytest.mark.parametrize("output", [lambda z: {"logits": z}, lambda z: (z, "more"), lambda z: z])
def test_a_loss_takes_what_a_model_gives(output) -> None:
    loss, z, y = Loss("ova-dm"), -torch.rand(4, 3), torch.tensor([[0], [1], [2], [0]])
    torch.testing.assert_close(loss(output(z), y), loss(z, y[:, 0]))
    torch.testing.assert_close(loss.probs(output(z)), FORMULATIONS["ova-dm"].probs(z))


@pytest.mark.parametrize("y", [torch.zeros(4, 3), torch.ones(4).bool(), torch.zeros(5).long()])
def test_targets_that_are_no_class_numbers_are_refused(y) -> None:
    with pytest.raises(BadInput, match="targets"):
        Loss("ova")(torch.zeros(4, 3), y)
