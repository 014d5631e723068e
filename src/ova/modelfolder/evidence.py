"""The score that decides in a model folder: its values, the training rows it looks at, and its files."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ova.data.task import Examples, plan
from ova.errors import BadInput
from ova.files import read_json, write_json
from ova.metrics.choice import PLAIN, finite
from ova.modelfolder.names import EXAMPLES, SCORES
from ova.nn.formulations import Formulation
from ova.nn.heads import Affine
from ova.predictions.columns import Array
from ova.scores import AffineHead, FittedScores, Outputs, load, save
from ova.scores.keeping import ARRAYS, FACTS
from ova.scores.knn import Neighbours
from ova.training.classifier import Classifier

BATCH = 128
MOST = 50_000  # training rows that are kept for scores that look for the nearest
PARTS = (f"{SCORES}/{FACTS}", f"{SCORES}/{ARRAYS}", EXAMPLES)  # its files in the folder

Forward = Callable[[Tensor], tuple[Tensor, Tensor]]  # features and logits of encoded inputs


@dataclass(frozen=True)
class Evidence:
    """The score that decides, why it does, and what it has learned; `max_p` has learned nothing."""

    name: str = PLAIN
    why: str = ""
    scores: FittedScores | None = None
    examples: tuple[str, ...] = field(default=(), repr=False)  # the bank's rows, in its order

    def __call__(self, rows: Outputs) -> Array:
        """The value of each row."""
        if self.scores is None:
            assert rows.said is not None
            return np.asarray(rows.said.confidence)
        return finite(self.scores(rows)[self.name])

    @property
    def bank(self) -> Neighbours | None:
        """The training rows that the score looks at."""
        return None if self.scores is None else bank_of(self.scores)


def bank_of(scores: FittedScores) -> Neighbours | None:
    """The training rows that one of the scores looks at, if any does."""
    return next((s for s in scores.fitted.values() if isinstance(s, Neighbours)), None)


def forward_of(net: Classifier, prepare: Callable[[Tensor], Tensor]) -> Forward:
    """Features and logits by one network, from inputs as they are encoded."""
    return lambda x: net.both(prepare(x.to(net.device)))


def outputs(forward: Forward, form: Formulation, examples: Examples) -> Iterator[Outputs]:
    """What a network gives for all rows, in batches of like lengths: in the order of `order_of`."""
    batches = plan(examples, BATCH, None)
    for x, y in examples.batches(batches):
        with torch.inference_mode():
            f, z = forward(x)
            log_p = form.log_probs(z)
        yield Outputs(
            features=f.cpu().numpy(),
            logits=z.cpu().numpy(),
            log_p=log_p.cpu().numpy(),
            target=y.numpy(),
            normalised=form.normalised,
        )


def order_of(examples: Examples) -> Array:
    """The numbers of the rows, in the order in which `outputs` gives them."""
    return torch.cat(plan(examples, BATCH, None)).numpy()


def values(scores: FittedScores, rows: Iterable[Outputs], examples: Examples) -> dict[str, Array]:
    """Every score of all rows, in the order of the examples."""
    back = np.argsort(order_of(examples))
    return {name: column[back] for name, column in scores(rows).items()}


def head_of(net: Classifier) -> AffineHead | None:
    """The last layer, where it is affine."""
    head = net.head
    if not isinstance(head, Affine) or type(head).forward is not Affine.forward:
        return None
    w, b = (t.detach().cpu().double().numpy() for t in (head.weight, head.bias))
    return AffineHead(w, b)


def write_evidence(folder: Path, evidence: Evidence) -> tuple[str, ...]:
    """Write what the score needs, and name the parts; those of another score are removed."""
    for name in PARTS:
        (folder / name).unlink(missing_ok=True)
    if evidence.scores is None:
        return ()
    save(folder / SCORES, evidence.scores)
    if evidence.bank is None:
        return PARTS[:2]
    write_json(folder / EXAMPLES, list(evidence.examples), indent=0)
    return PARTS


def read_evidence(folder: Path, facts: Mapping[str, Any]) -> Evidence:
    """The score that decides; models of earlier versions name none, and decide by max p."""
    if "score" not in facts:
        return Evidence()
    name, why = facts["score"]["name"], facts["score"]["why"]
    if name == PLAIN:
        return Evidence(PLAIN, why)
    fitted = load(folder / SCORES)
    if fitted.names != (name,):
        raise BadInput(f"{folder / SCORES} holds {', '.join(fitted.names)}, not the score {name}")
    found = Evidence(name, why, fitted)
    if found.bank is None:
        return found
    examples = read_json(folder / EXAMPLES)
    if not isinstance(examples, list) or len(examples) != len(found.bank.row):
        raise BadInput(f"{folder / EXAMPLES} does not name the {len(found.bank.row)} training rows")
    return Evidence(name, why, fitted, tuple(map(str, examples)))
