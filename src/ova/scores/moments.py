"""Class means and covariances of features, from one pass over them in blocks."""

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array

AFFINE = 1e-4  # share of the logits' variance that a last layer may leave and still count as affine


class Moments:
    """Sums over rows: per class of the features, over all of their products, in float64.

    Everything is taken about the mean of the first block, so that nothing large cancels.
    """

    def __init__(self) -> None:
        self.shift: Array = np.zeros(0)
        self.classes: Array = np.zeros(0, np.int64)  # that have rows, ascending
        self.counts: Array = np.zeros(0, np.int64)
        self.sums: Array = np.zeros((0, 0))
        self.products: Array = np.zeros((0, 0))

    def add(self, f: Array, y: Array | None = None) -> None:
        """Take in a block; without classes all rows are of one."""
        from scipy.sparse import csr_array

        width = f.shape[1]
        if not len(self.shift):
            self.shift, self.products = f.mean(0, dtype=np.float64), np.zeros((width, width))
        if width != len(self.shift):
            raise BadInput(f"features of {width} numbers after features of {len(self.shift)}")
        self._grow(np.zeros(1, np.int64) if y is None else np.unique(y))
        at = np.zeros(len(f), np.int64) if y is None else np.searchsorted(self.classes, y)
        x = f - self.shift
        member = csr_array((np.ones(len(f)), (at, np.arange(len(f)))), (len(self.classes), len(f)))
        self.counts += np.bincount(at, minlength=len(self.classes))
        self.sums += member @ x
        self.products += x.T @ x

    def _grow(self, classes: Array) -> None:
        """Make place for the classes; how large their numbers are costs nothing."""
        whole = np.union1d(self.classes, classes)
        if len(whole) == len(self.classes):
            return
        old = np.searchsorted(whole, self.classes)
        counts, sums = np.zeros(len(whole), np.int64), np.zeros((len(whole), len(self.shift)))
        if len(old):
            counts[old], sums[old] = self.counts, self.sums
        self.classes, self.counts, self.sums = whole, counts, sums

    @property
    def n(self) -> int:
        """How many rows there were."""
        return int(self.counts.sum())

    @property
    def mean(self) -> Array:
        """Of all rows."""
        return np.asarray(self.shift + self.sums.sum(0) / self.n)

    @property
    def means(self) -> Array:
        """Of each class that has rows."""
        return np.asarray(self.shift + self.sums / self.counts[:, None])

    @property
    def covariance(self) -> Array:
        """Of all rows about their mean."""
        return self.about(self.mean)

    @property
    def within(self) -> Array:
        """Of all rows, each about the mean of its class."""
        scaled = self.sums / np.sqrt(self.counts[:, None])
        return np.asarray((self.products - scaled.T @ scaled) / self.n)

    def about(self, origin: Array) -> Array:
        """The mean of (f - origin)(f - origin)^T."""
        mean, off = self.sums.sum(0) / self.n, origin - self.shift
        cross = np.outer(mean, off)
        return np.asarray(self.products / self.n - cross - cross.T + np.outer(off, off))


class Regression:
    """Sums of products of features and logits, by which an affine head can be found again."""

    def __init__(self, moments: Moments) -> None:
        self.moments, self.n = moments, 0
        self.shift: Array = np.zeros(0)
        self.cross: Array = np.zeros(())
        self.squares: Array = np.zeros(())
        self.sums: Array = np.zeros(())

    def add(self, f: Array, z: Array) -> None:
        """Take in a block that the moments have taken in before."""
        if not self.n:
            self.shift = z.mean(0, dtype=np.float64)
        x, t = f - self.moments.shift, z - self.shift
        self.n += len(f)
        self.cross = self.cross + t.T @ x
        self.squares, self.sums = self.squares + (t * t).sum(0), self.sums + t.sum(0)

    def solve(self) -> tuple[Array, Array] | None:
        """Weight and bias with z = W f + b on all rows; None where they are not, or not decided."""
        m = self.moments
        if self.n <= 2 * (len(m.shift) + 1):  # any logits would be affine in so many features
            return None
        f, z = m.sums.sum(0) / self.n, self.sums / self.n
        cross = self.cross / self.n - np.outer(z, f)
        weight = cross @ inverse(m.covariance)
        spread = float((self.squares / self.n - z * z).sum())
        if not spread > 0 or spread - float((weight * cross).sum()) > AFFINE * spread:
            return None
        return weight, z + self.shift - weight @ m.mean


def inverse(covariance: Array) -> Array:
    """The pseudo-inverse: a direction in which nothing varies has no say."""
    values, vectors = np.linalg.eigh(covariance)
    seen = values > 1e-10 * max(float(values[-1]), 0.0)
    return np.asarray((vectors[:, seen] / values[seen]) @ vectors[:, seen].T)


def shrunk(covariance: Array, n: int) -> Array:
    """(1 - r) S + r tr(S) / D I, r by the oracle approximating shrinkage of Chen et al. (2010).

    It needs nothing beyond S and the number of rows, vanishes with many rows, and gives a matrix
    that can be inverted with fewer rows than features and with features that never vary.
    """
    mean = float(np.trace(covariance)) / len(covariance)
    if not mean > 0:
        return np.eye(len(covariance))  # nothing varies at all: plain distances
    square = float((covariance**2).mean())
    below = (n + 1) * (square - mean**2 / len(covariance))
    r = min(1.0, (square + mean**2) / below) if below > 0 else 1.0
    return np.asarray((1 - r) * covariance + r * mean * np.eye(len(covariance)))


def whitening(covariance: Array) -> Array:
    """A matrix A with A^T A = S^-1: |A (f - m)| is the Mahalanobis distance of f to m."""
    from scipy.linalg import cholesky, solve_triangular

    lower = cholesky(covariance, lower=True)
    return np.asarray(solve_triangular(lower, np.eye(len(lower)), lower=True))
