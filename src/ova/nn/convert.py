"""Replace the last layer of an existing classifier by one of ours; all else of it stays."""

import warnings
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from torch import nn

from ova.errors import BadInput
from ova.nn.formulations import DEFAULT
from ova.nn.heads import Affine
from ova.nn.labels import answer_labels
from ova.nn.modules import Head, Loss
from ova.nn.pointwise import Pointwise, check_after, pointwise

Model = TypeVar("Model", bound=nn.Module)


class Converted(NamedTuple, Generic[Model]):
    """The model with its new last layer, and the loss to train it with."""

    model: Model
    loss: Loss


def convert(
    model: Model,
    formulation: str = DEFAULT,
    *,
    classes: int | None = None,
    layer: str | None = None,
) -> Converted[Model]:
    """Replace the last linear layer of a model, in place, and bring the loss that belongs to it.

    The layer is found by its output size where the model says it (transformers' `num_labels`), is
    otherwise the last one, or has the name `layer`. It may be a 1 x 1 convolution whose logits
    are averaged afterwards. `classes` changes the number of classes. The new layer is
    untrained: train it, or all of the model. `loss(model(x), y)` works in any loop and as
    `compute_loss_func` of transformers' `Trainer`; `loss.probs(model(x))` are probabilities.
    A model of transformers also has this loss as `outputs.loss` when it is given `labels`, knows
    its formulation (`config.ova`), and comes back from a folder by `ova.from_pretrained`. Where the
    new layer measures distances, a dropout right before it is switched off (`undrop`).

    >>> import torch
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> net, loss = convert(net)
    >>> z = net(torch.randn(5, 4))
    >>> loss.probs(z).shape, loss(z, torch.tensor([0, 1, 2, 0, 1])).shape
    (torch.Size([5, 3]), torch.Size([]))
    """
    loss = Loss(formulation)
    name = find(model) if layer is None else layer
    old = last_layer(model, name)
    in_features, out_features = sizes(old)
    head = Head(formulation, in_features, out_features if classes is None else classes)
    weight = next(old.parameters())
    head.to(weight.device, weight.dtype).train(old.training)
    parent, _, child = name.rpartition(".")
    new: nn.Module = head
    if isinstance(old, nn.Conv2d):
        check_after(model, name)
        new = Pointwise(head)
    setattr(model.get_submodule(parent), child, new)
    if not isinstance(head.layer, Affine):
        undrop(model, name)
    if number_told(model) is not None:
        inside = isinstance(model.get_submodule(parent), Pointwise)  # of an earlier call
        tell(model, formulation, parent if inside else name, classes)
        answer_labels(model)
    return Converted(model, loss)


def candidates(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that could be replaced: linear ones, and a head that an earlier call put there."""
    return {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear | Head) and n}


def sizes(layer: nn.Module) -> tuple[int, int]:
    """Input and output size of a candidate."""
    if isinstance(layer, nn.Conv2d):
        return layer.in_channels, layer.out_channels
    if isinstance(layer, Head):
        return layer.layer.in_features, layer.layer.classes
    assert isinstance(layer, nn.Linear)
    return layer.in_features, layer.out_features


def find(model: nn.Module) -> str:
    """The name of the last linear layer, where there is no doubt about it."""
    known, convolutions = candidates(model), pointwise(model)
    if not known and not convolutions:
        raise BadInput(f"there is no linear layer in the model ({type(model).__name__}) to replace")
    told = number_told(model)
    if told is None:
        name, last = list(weighted(model).items())[-1]
        if name in convolutions:
            return name
        if name not in known:
            raise BadInput(
                f"the last layer is no nn.Linear but {type(last).__name__} {name!r}; {naming(known)}"
            )
        told = sizes(last)[1]
    fitting = [n for n, m in known.items() if sizes(m)[1] == told]
    # Many a network has such convolutions inside, so they are asked only where no linear layer fits.
    fitting = fitting or [n for n, m in convolutions.items() if m.out_channels == told]
    if not fitting:
        raise BadInput(f"no linear layer has {told} outputs; {naming(known)}")
    # In a plain sequence the last to be registered is the last to run; elsewhere nobody knows.
    if len(fitting) > 1 and not isinstance(model, nn.Sequential):
        raise BadInput(f"{len(fitting)} linear layers have {told} outputs; {naming(fitting)}")
    return fitting[-1]


def weighted(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that hold parameters, in the order of registration; a head counts as one."""
    heads = [n + "." for n, m in model.named_modules() if isinstance(m, Head)]
    return {
        n: m
        for n, m in model.named_modules()
        if isinstance(m, Head)
        or (any(True for _ in m.parameters(recurse=False)) and not n.startswith(tuple(heads)))
    }


def naming(known: Iterable[str]) -> str:
    """What to do about it, with the names to choose from; the last where there are many."""
    shown = ", ".join([repr(n) for n in known][-6:])
    return f"name the one that gives the logits with layer=..., one of: {shown}"


def last_layer(model: nn.Module, name: str) -> nn.Module:
    """The candidate of that name."""
    known = candidates(model)
    if name in (convolutions := pointwise(model)):
        return convolutions[name]
    if name not in known:
        found = dict(model.named_modules()).get(name)
        what = "no layer" if found is None else f"a {type(found).__name__}, no nn.Linear,"
        raise BadInput(f"there is {what} called {name!r} in the model; {naming(known)}")
    if isinstance(known[name], nn.LazyLinear):
        raise BadInput(
            f"{name!r} does not know its size yet; run one batch through the model first"
        )
    return known[name]


def undrop(model: nn.Module, name: str) -> None:
    """Switch off the dropout right before a layer that measures distances, or warn of it.

    Features dropped at random make every distance longer in training than in prediction, where then
    whatever comes is near. In a sequence and in transformers' models it is known which dropout that
    is; in a module of the user's own, one that stands beside the layer may serve elsewhere.
    """
    path, _, child = name.rpartition(".")
    parent = model.get_submodule(path)
    children = list(parent.named_children())
    if isinstance(parent, nn.Sequential):
        place = [n for n, _ in children].index(child)
        children = children[max(place - 1, 0) : place]
    for sibling, module in children:
        if not isinstance(module, nn.Dropout) or module.p == 0:
            continue
        if isinstance(parent, nn.Sequential) or number_told(model) is not None:
            module.p = 0.0
            continue
        full = f"{path}.{sibling}".lstrip(".")
        warnings.warn(
            f"if the dropout {full!r} (p = {module.p}) acts right before the new layer, predictions "
            f"will be too sure: switch it off with model.{full}.p = 0, or drop earlier",
            stacklevel=3,
        )


def number_told(model: nn.Module) -> int | None:
    """The number of classes where a model says it, as those of transformers do."""
    told: int | None = getattr(getattr(model, "config", None), "num_labels", None)
    return told


def tell(model: Any, formulation: str, layer: str, classes: int | None) -> None:
    """Write into a transformers model what it is now; the names of other classes go."""
    model.config.ova = {"formulation": formulation, "layer": layer}
    if classes is not None:
        model.config.num_labels = classes
        if hasattr(model, "num_labels"):
            model.num_labels = classes
