"""Models of transformers that are given `labels`: they are taken out, and our loss is put in.

A model's own cross-entropy is not the loss of its new head, and breaks at the label -1.
"""

import inspect
from typing import Any

from torch import nn

from ova.nn.modules import Head, Loss

TAKEN = "_labels_taken"


def answer_labels(model: Any) -> None:
    """Let a converted model of transformers give our loss for the labels it is given."""
    if take in model._forward_pre_hooks.values():
        return
    model.register_forward_pre_hook(take, with_kwargs=True)
    model.register_forward_hook(put, with_kwargs=True)
    # The `Trainer` then says how many examples its accumulated batches have.
    model.accepts_loss_kwargs = True


def take(model: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """Keep labels and their number away from the model, until it has answered."""
    names = list(inspect.signature(model.forward).parameters)[: len(args)] if args[1:] else []
    if "labels" in names:
        args, given = (), dict(zip(names, args, strict=True)) | given
    kept = {name: given[name] for name in ("labels", "num_items_in_batch") if name in given}
    model.__dict__[TAKEN] = kept  # not in the hooks, which replicas in other threads share
    return args, {name: value for name, value in given.items() if name not in kept}


def put(model: Any, _: Any, __: Any, outputs: Any) -> Any:
    """Put our loss first, as the models do."""
    taken, model.__dict__[TAKEN] = model.__dict__[TAKEN], {}
    if taken.get("labels") is None:
        return outputs
    head = model.get_submodule(model.config.ova["layer"])
    assert isinstance(head, Head)
    loss = Loss(head.formulation)(outputs, **taken)
    if isinstance(outputs, tuple):
        return (loss, *outputs)
    return type(outputs)(**{"loss": loss, **outputs})
