"""The edge in PyTorch's manners."""

import pytest
import torch

from ova.errors import BadInput
from ova.nn.formulations import FORMULATIONS
from ova.nn.modules import Head, Loss


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
