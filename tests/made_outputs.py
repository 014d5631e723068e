"""Outputs of a made network: rectified features around class directions, and an affine head."""

from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array
from ova.scores import AffineHead, Outputs


@dataclass(frozen=True, eq=False)
class Network:
    """What makes rows of K classes with D features."""

    head: AffineHead
    seed: int = 0

    def inside(self, n: int, seed: int = 1, dtype: type = np.float32) -> Outputs:
        """Rows of the classes."""
        r = np.random.default_rng(seed)
        K, D = self.head.weight.shape
        y = r.integers(0, K, n)
        return self.outputs(2 * self.head.weight[y] + noise(r, n, D), y, dtype)

    def outside(self, n: int, seed: int = 2, dtype: type = np.float32) -> Outputs:
        """Rows of none of them: between two classes, and noisier."""
        r = np.random.default_rng(seed)
        K, D = self.head.weight.shape
        pair = np.array([r.choice(K, 2, replace=False) for _ in range(n)])
        f = 0.8 * self.head.weight[pair].sum(1) + 1.3 * noise(r, n, D)
        return self.outputs(f, np.full(n, -1), dtype)

    def outputs(self, f: Array, y: Array, dtype: type) -> Outputs:
        """Features as a rectifier leaves them, and the logits of exactly these."""
        f = np.maximum(f, 0).astype(dtype)
        z = f.astype(np.float64) @ self.head.weight.T + self.head.bias
        return Outputs(features=f, logits=z.astype(np.float32), target=y)


def noise(r: np.random.Generator, n: int, D: int) -> Array:
    """As long in any number of dimensions."""
    return np.asarray(r.normal(size=(n, D)) * np.sqrt(12 / D))


def network(K: int = 5, D: int = 12, seed: int = 0) -> Network:
    """A head of unit rows, and positive energies nearly everywhere."""
    r = np.random.default_rng(seed)
    weight = r.normal(size=(K, D))
    weight *= 3 / np.linalg.norm(weight, axis=1, keepdims=True)
    return Network(AffineHead(weight, 1 + 0.1 * r.normal(size=K)))
