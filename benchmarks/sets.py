"""Sets of classes beside MAPIE and crepes: the same coverage, how large the sets are, and the time.

The digits 0 to 7 are the classes, 8 and 9 belong to none; a small network is trained ten times, as
softmax and one-vs-all, on other rows than those for calibration and test. Printed, means of ten
splits: coverage of all and of the worst class, size of the sets, share of empty sets inside and
outside, and the time in units of ova's first. The second table is a made world of 100 classes, some
rare and some hard. crepes (pip install crepes) is left out where it is not installed.
"""

import argparse
import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits

import ova

Method = Callable[[np.ndarray, np.ndarray, np.ndarray, float, int], np.ndarray]


@dataclass(frozen=True)
class Split:
    """Probabilities and classes held out, those of new inputs, and those of inputs of no class."""

    held: np.ndarray
    y: np.ndarray
    new: np.ndarray
    target: np.ndarray
    far: np.ndarray


class Said(ClassifierMixin, BaseEstimator):
    """Probabilities in the shape of a classifier that was fitted before."""

    def __init__(self, K: int = 2) -> None:
        self.K = K
        self.classes_ = np.arange(K)
        self.is_fitted_ = True

    def fit(self, *_: np.ndarray) -> "Said":
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return x

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x.argmax(1))


def ours(name: str) -> Method:
    def method(
        held: np.ndarray, y: np.ndarray, new: np.ndarray, coverage: float, seed: int
    ) -> np.ndarray:
        return ova.fit_sets((held, y), coverage, name, seed=seed).predict(new)

    return method


def mapie(name: str) -> Method:
    def method(
        held: np.ndarray, y: np.ndarray, new: np.ndarray, coverage: float, seed: int
    ) -> np.ndarray:
        said = Said(held.shape[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sets = SplitConformalClassifier(
                said, coverage, name, prefit=True, random_state=seed
            ).conformalize(held, y)
            how = {"include_last_label": "randomized"} if name != "lac" else None
            found = sets.predict_set(new, how)[1]
        return np.asarray(found[:, :, 0], bool)

    return method


def crepes(by_class: bool, smooth: bool) -> Method:
    def method(
        held: np.ndarray, y: np.ndarray, new: np.ndarray, coverage: float, seed: int
    ) -> np.ndarray:
        package = importlib.import_module("crepes")
        fitted, far = package.ConformalClassifier(), 1 - new
        fitted.fit(1 - held[np.arange(len(y)), y], bins=y if by_class else None, seed=seed)
        if not by_class:
            found = fitted.predict_set(far, confidence=coverage, smoothing=smooth, seed=seed)
            return np.asarray(found, bool)
        columns = []  # as its own wrapper does, but without its work for all other classes
        for k in range(new.shape[1]):
            bins = np.full(len(new), k)
            its = far[:, [k]]
            found = fitted.predict_set(its, bins, None, coverage, smoothing=smooth, seed=seed)
            columns.append(found)
        return np.concatenate(columns, axis=1).astype(bool)

    return method


METHODS: dict[str, Method] = {
    "ova, class": ours("class"),
    "crepes, class": crepes(True, False),
    "crepes, class, smoothed": crepes(True, True),
    "ova, lac": ours("lac"),
    "MAPIE, lac": mapie("lac"),
    "crepes, all": crepes(False, False),
    "ova, aps": ours("aps"),
    "MAPIE, aps": mapie("aps"),
    "ova, raps": ours("raps"),
}


def digits(name: str, seed: int) -> Split:
    x, y = (torch.tensor(a) for a in load_digits(return_X_y=True))
    x, order = x.float() / 16, torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    x, y = x[order], y[order]
    known = torch.where(y < 8)[0]
    train, held, new = known[:500], known[500:950], known[950:]
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), ova.Head(name, 32, 8))
    loss, optimiser = ova.Loss(name), torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(100):
        optimiser.zero_grad()
        loss(net(x[train]), y[train]).backward()
        optimiser.step()
    with torch.no_grad():
        p = ova.FORMULATIONS[name].probs(net(x)).double().numpy()
    return Split(p[held], y[held].numpy(), p[new], y[new].numpy(), p[y >= 8])


def made(_: str, seed: int) -> Split:
    rng, K = np.random.default_rng(seed), 100
    share = 1 / np.sqrt(np.arange(1, K + 1))
    lift = np.where(np.arange(K) % 5 == 0, 3.0, 6.0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(K, n, p=share / share.sum())
        z = 1.5 * rng.normal(size=(n, K)) + lift[y, None] * np.eye(K)[y]
        return np.exp(z) / np.exp(z).sum(1, keepdims=True), y

    (held, y), (new, target) = draw(3000), draw(2000)
    z = 1.5 * rng.normal(size=(500, K))
    return Split(held, y, new, target, np.exp(z) / np.exp(z).sum(1, keepdims=True))


def measured(method: Method, split: Split, coverage: float, seed: int) -> tuple[np.ndarray, float]:
    begun = time.perf_counter()
    found = method(split.held, split.y, np.concatenate([split.new, split.far]), coverage, seed)
    spent = time.perf_counter() - begun
    inside, far = found[: len(split.new)], found[len(split.new) :]
    right = inside[np.arange(len(inside)), split.target]
    K = inside.shape[1]
    by_class = np.bincount(split.target, right, K) / np.bincount(split.target, minlength=K)
    empty = [(~part.any(1)).mean() for part in (inside, far)]
    return np.array([right.mean(), inside.sum(1).mean(), *empty, *by_class]), spent


def table(
    title: str, make: Callable[[str, int], Split], name: str, asked: tuple[float, int]
) -> None:
    coverage, times = asked
    print(f"\n{title}, coverage {coverage}\n")
    print("| | coverage | worst class | size | empty inside | empty outside | time |")
    print("|---|---|---|---|---|---|---|")
    splits, unit = [make(name, seed) for seed in range(times)], 0.0
    for who, method in METHODS.items():
        if who.startswith("crepes") and find_spec("crepes") is None:
            continue
        if who.startswith("MAPIE") and not np.allclose(splits[0].held.sum(1), 1):
            print(f"| {who} | takes only probabilities that sum to one | | | | | |")
            continue
        found, spent = zip(
            *(measured(method, s, coverage, k) for k, s in enumerate(splits)), strict=True
        )
        unit = unit or float(np.median(spent))
        m = np.mean(found, axis=0)
        row = [f"{m[0]:.3f}", f"{m[4:].min():.3f}", f"{m[1]:.2f}", f"{m[2]:.1%}", f"{m[3]:.1%}"]
        row.append(f"{np.median(spent) / unit:.1f}")
        print(f"| {who} | {' | '.join(row)} |".replace("%", " %"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10)
    times = parser.parse_args().repetitions
    table("digits, one-vs-all", digits, "ova", (0.95, times))
    table("digits, distances one-vs-all", digits, "ova-dm", (0.95, times))
    table("digits, softmax", digits, "softmax", (0.95, times))
    table("made, 100 classes", made, "", (0.9, max(1, times // 3)))


if __name__ == "__main__":
    main()
