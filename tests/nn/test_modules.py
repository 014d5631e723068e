"""The edge in PyTorch's manners."""

import copy
import pickle
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from ova.errors import BadInput
from ova.nn.formulations import FORMULATIONS, Formulation
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


@pytest.mark.parametrize("y", [torch.zeros(4), torch.ones(4).bool(), torch.zeros(5).long()])
def test_targets_that_are_no_class_numbers_are_refused(y) -> None:
    with pytest.raises(BadInput, match="targets"):
        Loss("ova")(torch.zeros(4, 3), y)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_loss_can_be_pickled_and_copied(name: str, reduction: Any) -> None:
    loss = Loss(name, reduction, label_smoothing=0.1)
    z, y = -torch.rand(5, 3), torch.tensor([0, 1, 2, -1, IGNORED])
    for again in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert torch.equal(again(z, y), loss(z, y))
        assert repr(again) == repr(loss)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_copied_formulation_keeps_the_same_for_the_way_back(name: str) -> None:
    """The loss of large batches keeps the logits alone, also in a copy of its formulation."""
    z, y = -torch.rand(64, 512, requires_grad=True), torch.arange(64)

    def kept(form: Formulation) -> list[torch.Size]:
        found: list[torch.Size] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: found.append(x.shape), lambda x: x):
            form.loss(z, y)
        return found

    assert kept(copy.deepcopy(FORMULATIONS[name])) == kept(FORMULATIONS[name])


def test_the_classes_are_the_last_axis() -> None:
    loss = Loss("softmax")
    z, y = torch.randn(4, 6, 3), torch.randint(3, (4, 6))
    torch.testing.assert_close(loss(z, y), F.cross_entropy(z.movedim(-1, 1), y))
    torch.testing.assert_close(loss(z, y.flatten()), loss(z, y))
    torch.testing.assert_close(loss(z, y[..., None]), loss(z, y))


@pytest.mark.parametrize("name", FORMULATIONS)
def test_probabilities_are_over_the_last_axis(name: str) -> None:
    loss, z = Loss(name), -torch.rand(4, 6, 3)
    for read in (loss.probs, loss.log_probs):
        torch.testing.assert_close(read(z), read(z.reshape(-1, 3)).reshape(4, 6, 3))


@pytest.mark.parametrize(
    ("z", "y", "says"),
    [
        ((4, 3, 6), (4, 6), r"z\.movedim\(1, -1\)"),  # as for F.cross_entropy
        ((4, 3, 6, 5), (4, 6, 5), r"z\.movedim\(1, -1\)"),
        ((4, 5, 5), (4, 5), "either axis"),  # as for both
        ((4, 6, 3), (6, 4), r"shape \(4, 6\)"),  # turned round
        ((4, 6, 3), (2, 12), r"shape \(4, 6\)"),
        ((4, 3), (2, 2), r"shape \(4,\)"),
        ((3,), (4,), r"shape \(\)"),
    ],
)
def test_a_shape_that_can_be_read_otherwise_is_refused(z: Any, y: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Loss("ova")(torch.zeros(z), torch.zeros(y, dtype=torch.long))


def test_a_model_that_names_its_logits_may_have_as_many_classes_as_positions() -> None:
    z, y = torch.randn(4, 5, 5), torch.randint(5, (4, 5))
    expected = Loss("ova")(z.reshape(-1, 5), y.reshape(-1))
    torch.testing.assert_close(Loss("ova")({"logits": z}, y), expected)
    torch.testing.assert_close(Loss("ova")(z, y.reshape(-1)), expected)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_soft_targets_are_the_mean_of_hard_ones_and_what_is_missing_is_none(name: str) -> None:
    """Mixup: a row that is 0.3 of one class, 0.5 of another and 0.2 of none."""
    loss, z = Loss(name, "none"), torch.randn(5, 4)
    t = torch.zeros(5, 4)
    t[:, 1], t[:, 3] = 0.3, 0.5
    hard = {k: loss(z, torch.full((5,), k)) for k in (1, 3, -1)}
    torch.testing.assert_close(loss(z, t), 0.3 * hard[1] + 0.5 * hard[3] + 0.2 * hard[-1])
    one_hot = F.one_hot(torch.arange(5) % 4, 4).float()
    torch.testing.assert_close(loss(z, one_hot), loss(z, torch.arange(5) % 4))
    z.requires_grad_()
    (gradient,) = torch.autograd.grad(Loss(name)(z, t), z)
    assert gradient.isfinite().all()


def test_soft_targets_and_weights_of_softmax_are_those_of_torch() -> None:
    z, y, weight = torch.randn(6, 3), torch.tensor([0, 1, 2, 2, -100, 0]), torch.tensor([1.0, 2, 5])
    torch.testing.assert_close(
        Loss("softmax", weight=weight)(z, y), F.cross_entropy(z, y, weight=weight)
    )
    t = torch.rand(6, 3).softmax(-1)
    torch.testing.assert_close(Loss("softmax")(z, t), F.cross_entropy(z, t))


@pytest.mark.parametrize("name", FORMULATIONS)
def test_rows_count_by_the_weight_of_their_class(name: str) -> None:
    z, y = torch.randn(5, 3), torch.tensor([0, 1, 2, -1, IGNORED])
    weight, each = torch.tensor([1.0, 2.0, 5.0]), Loss(name, "none")(z, y)
    by = torch.tensor([1.0, 2, 5, 1, 0])
    torch.testing.assert_close(Loss(name, "none", weight=weight)(z, y), each * by)
    torch.testing.assert_close(Loss(name, "sum", weight=weight)(z, y), (each * by).sum())
    torch.testing.assert_close(Loss(name, weight=weight)(z, y), (each * by).sum() / 9)
    torch.testing.assert_close(Loss(name, weight=torch.ones(3))(z, y), Loss(name)(z, y))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Loss("ova")(torch.tensor(1.0), torch.tensor(0)), "a single number has none"),
        (lambda: Loss("ova")((), torch.zeros(4)), "no logits in an output"),
        (lambda: Loss("ova")(torch.zeros(2, 3), [0, 1]), "targets are a tensor, not list"),
        (lambda: Loss("ova")(torch.zeros(2, 3), torch.ones(2, 3)), "add up to at most 1"),
        (lambda: Loss("ova")(torch.zeros(2, 3), -torch.ones(2, 3)), "shares from 0"),
        (lambda: Loss("ova")(torch.zeros(2, 3), torch.full((2, 3), torch.nan)), "shares from 0"),
        (lambda: Loss("ova", weight=torch.ones(2, 2)), "one number per class"),
        (lambda: Loss("ova", weight=-torch.ones(2)), "none below 0"),
        (
            lambda: Loss("ova", weight=torch.ones(2))(torch.zeros(1, 3), torch.tensor([0])),
            "2 weights, but the logits have 3 classes",
        ),
        (
            lambda: Loss("ova", weight=torch.ones(3))(torch.zeros(1, 3), torch.tensor([3])),
            "target 3 is not one of the 3 classes",
        ),
    ],
)
def test_what_is_no_target_has_its_sentence(call, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        call()
