"""Scores as graphs of tensors, for ONNX: the same numbers as `ova.scores` gives, each from f, z and log p."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ova.errors import BadInput
from ova.predictions.columns import Array
from ova.scores import FittedScores
from ova.scores.cosine import Cosine
from ova.scores.energy_nearest import PARTS, StandardisedSum
from ova.scores.gen import GeneralisedEntropy
from ova.scores.knn import Neighbours
from ova.scores.mahalanobis import Mahalanobis
from ova.scores.neighbours import SPARE
from ova.scores.outputs import LEAST
from ova.scores.sirc import Sirc
from ova.scores.table import SCORES


@dataclass(frozen=True)
class Seen:
    """What a network gives for a batch, and the scores that were computed before."""

    f: Tensor
    z: Tensor
    log_p: Tensor
    normalised: bool
    values: dict[str, Tensor]

    @property
    def unit(self) -> Tensor:
        """The features at length one."""
        f = self.f.double()
        length = f.square().sum(-1, keepdim=True).sqrt()
        return (f / torch.where(length > 0, length, torch.ones_like(length))).float()


Formula = Callable[[Any, Seen], Any]  # a tensor, of numbers that are attributes of the first


class Graph(nn.Module):
    """A score with what it has learned as buffers."""

    def __init__(self, of: Any, formula: Formula) -> None:
        super().__init__()
        self.formula = formula
        for name, value in vars(of).items():
            if hasattr(value, "dtype"):
                self.register_buffer(name, tensor(value))
            elif isinstance(value, (int, float)):
                setattr(self, name, value)

    def forward(self, rows: Seen) -> Tensor:
        """One value per row."""
        value: Tensor = self.formula(self, rows)
        return value


class Scored(nn.Module):
    """The value of one score per row, with those that it is made of before it."""

    def __init__(self, scores: FittedScores) -> None:
        super().__init__()
        self.name = scores.names[0]
        graphs = {name: graph(name, score) for name, score in scores.fitted.items()}
        self.graphs = nn.ModuleDict(graphs)

    def forward(self, f: Tensor, z: Tensor, log_p: Tensor, normalised: bool) -> Tensor:
        """In float64."""
        rows = Seen(f, z, log_p, normalised, {})
        for name, one in self.graphs.items():
            rows.values[name] = one(rows).double()
        return rows.values[self.name]


def tensor(values: Array) -> Tensor:
    """The array, whole numbers and floats as they are."""
    return torch.from_numpy(values.copy())


def graph(name: str, fitted: Any) -> Graph:
    """The score as a graph, if there is one for it."""
    formula = COLUMNS.get(name) if SCORES[name].column else FORMULAS.get(type(fitted))
    if formula is None:
        raise BadInput(
            f"the score {name} cannot be written as ONNX; train again with --score, one of "
            f"{', '.join(exported())} (the weights are kept)"
        )
    return Graph(fitted, formula)


def exported() -> list[str]:
    """The scores that have a graph."""
    return [n for n, score in SCORES.items() if n in COLUMNS or score.restore in FORMULAS]


def gen(own: Any, rows: Seen) -> Any:
    """-sum over the largest p of p^g (1 - p)^g."""
    log_p = rows.log_p.double().clamp(max=0)
    log_p = log_p.topk(min(own.largest, log_p.shape[-1])).values
    return -((log_p.exp() * -torch.expm1(log_p)) ** own.power).sum(-1)


def cosine(own: Any, rows: Seen) -> Any:
    """The largest cosine to a class mean."""
    return (rows.unit @ own.centres.T).amax(-1)


def mahalanobis(own: Any, rows: Seen) -> Any:
    """Minus the squared distance to the nearest class, plus that to all rows where it is relative."""
    f = (rows.unit if own.unit else rows.f).double() - own.mean
    g = f @ own.within.T.double()
    squares = own.centres.double().square().sum(-1) - 2 * (g @ own.centres.T.double())
    distance = g.square().sum(-1) + squares.amin(-1)
    if not len(own.overall):
        return -distance
    return (f @ own.overall.T.double()).square().sum(-1) - distance


def neighbours(own: Any, rows: Seen) -> Any:
    """Minus the distance to the k-th nearest of the bank: products find it, differences measure it."""
    unit = rows.unit
    among = min(own.k + SPARE, len(own.bank))
    half = own.bank.any(-1).float() / 2  # of the squared lengths: a row of zeros is no unit vector
    place = (unit @ own.bank.T - half).topk(among).indices
    off = unit[:, None].double() - own.bank[place].double()
    distance = off.square().sum(-1).sqrt()
    return -distance.topk(own.k, largest=False, sorted=True).values[:, -1]


def standardised_sum(own: Any, rows: Seen) -> Any:
    """The sum of both parts, each less its mean over its deviation."""
    both = torch.stack([rows.values[name] for name in PARTS], -1)
    return ((both - own.mean) / own.std).sum(-1)


def sirc(own: Any, rows: Seen) -> Any:
    """-log((1 - max p) (1 + exp(-(s - a) / std)))."""
    log_p = rows.log_p.double().clamp(max=0)
    if rows.normalised:
        first = F.one_hot(log_p.argmax(-1), log_p.shape[-1]).bool()
        doubt = log_p.masked_fill(first, -torch.inf).logsumexp(-1)
    else:
        doubt = (-torch.expm1(log_p.amax(-1))).log()
    s = rows.values["nearest"]
    x = -(s - own.a) / own.std
    softplus = x.clamp(min=0) + (-x.abs()).exp().log1p()  # ONNX Runtime has none in float64
    return -(doubt.clamp(min=LEAST) + softplus)


COLUMNS: Mapping[str, Formula] = {
    "max_p": lambda _, rows: rows.log_p.amax(-1).exp(),
    "max_logit": lambda _, rows: rows.z.amax(-1),
    "energy": lambda _, rows: rows.z.logsumexp(-1),
}
FORMULAS: Mapping[type, Formula] = {
    GeneralisedEntropy: gen,
    Cosine: cosine,
    Mahalanobis: mahalanobis,
    Neighbours: neighbours,
    StandardisedSum: standardised_sum,
    Sirc: sirc,
}
