"""Every score against its formula, written out as slow loops in float64 that share nothing with it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from sklearn.covariance import OAS

from made_outputs import Network, network
from ova.scores import SCORES, AffineHead, Outputs, fit
from ova.scores.moments import inverse


@dataclass(frozen=True, eq=False)
class World:
    """A head, and the rows that fit a score, scale a joint and are scored."""

    head: AffineHead
    train: Outputs
    held: Outputs
    test: Outputs

    @cached_property
    def features(self):
        return self.train.features.astype(float)

    @cached_property
    def units(self):
        return np.array([unit(g) for g in self.features])

    @cached_property
    def rows(self):
        """The rows of each class that has some."""
        return [np.flatnonzero(self.train.target == k) for k in np.unique(self.train.target)]

    @cached_property
    def energies(self):
        return np.array([lse(z) for z in self.head(self.features)])

    @cached_property
    def held_energies(self):
        return np.array([lse(z) for z in self.head(self.held.features.astype(float))])

    @cached_property
    def held_nearest(self):
        return np.array([-distances(self, g)[0] for g in self.held.features.astype(float)])

    @cached_property
    def within(self):
        """Means and precisions, of plain features and of those of length one."""
        return [covariances(self, g) for g in (self.features, self.units)]

    @cached_property
    def residual(self):
        """The origin, the directions outside the principal space, and the scale of ViM."""
        origin = -np.linalg.pinv(self.head.weight) @ self.head.bias
        centred = self.features - origin
        D = len(origin)
        principal = min(1000 if D >= 2048 else D // 2, len(centred) // 2)
        rest = np.linalg.svd(centred, full_matrices=True)[2][principal:]
        logits = [max(z) for z in self.head(self.features)]
        lengths = [math.sqrt(sum((rest @ x) ** 2)) for x in centred]
        return origin, rest, sum(logits) / sum(lengths)


def made(net: Network, n: int = 300, held: int = 90, test: int = 25) -> World:
    return World(net.head, net.inside(n), net.inside(held, seed=3), net.inside(test, seed=4))


def with_ties() -> World:
    """Every training row twice, test rows among them, and two classes with one column of weights."""
    net = network(K=6, D=10)
    weight, bias = net.head.weight.copy(), net.head.bias.copy()
    weight[1], bias[1] = weight[0], bias[0]
    net = Network(AffineHead(weight, bias))
    twice = net.inside(150).take(np.repeat(np.arange(150), 2))
    test = twice.take(np.arange(0, 50, 2))
    return World(net.head, twice, net.inside(90, seed=3), test)


def with_constants() -> World:
    """Features that never vary, zero and not; logits follow from them."""
    net = network(K=6, D=10)

    def flat(rows: Outputs) -> Outputs:
        f = rows.features.copy()
        f[:, 3], f[:, 7] = 0.5, 0
        return replace(rows, features=f, logits=net.head(f))

    one = made(net)
    return World(net.head, flat(one.train), flat(one.held), flat(one.test))


def without_a_class() -> World:
    one = made(network(K=6, D=10))
    return replace(one, train=one.train.take(one.train.classes != 2))


WORLDS: dict[str, Callable[[], World]] = {
    "plain": lambda: made(network(K=6, D=10)),
    "ties": with_ties,
    "a class without rows": without_a_class,
    "fewer rows than features": lambda: made(network(K=4, D=60), n=40, held=20, test=10),
    "constant features": with_constants,
    "large": lambda: made(network(K=1000, D=2048), n=300, held=5, test=3),
}
Slow = Callable[[World, np.ndarray, np.ndarray], float]  # of one feature vector and its logits


def lse(z):
    top = max(z)
    return math.log(sum(math.exp(v - top) for v in z)) + top


def softmax(z):
    total = lse(z)
    return [math.exp(v - total) for v in z]


def unit(f):
    return f / (math.sqrt(sum(v * v for v in f)) or 1)


def gen(w, f, z):
    return -sum((p * (1 - p)) ** 0.1 for p in sorted(softmax(z))[-100:])


def logit_norm(w, f, z):
    c = [v - sum(z) / len(z) for v in z]
    return max(c) / sum(abs(v) ** 5 for v in c) ** 0.2


def distances(w, f):
    return sorted(math.dist(unit(f), g) for g in w.units)


def few(w):
    return max(1, int(np.median([len(rows) for rows in w.rows])) // 2)


def cosine(w, f, z):
    return max(float(unit(sum(w.units[rows])) @ unit(f)) for rows in w.rows)


def covariances(w, g):
    """The means of the classes, the covariance about them by scikit-learn, and that of the means."""
    means = [g[rows].mean(0) for rows in w.rows]
    centred = np.concatenate([g[rows] - m for rows, m in zip(w.rows, means, strict=True)])
    within = OAS(assume_centered=True).fit(centred).covariance_
    off = [
        np.sqrt(len(rows) / len(g)) * (m - g.mean(0)) for rows, m in zip(w.rows, means, strict=True)
    ]
    between = np.array(off).T @ np.array(off)
    return np.array(means), np.linalg.inv(within), g.mean(0), np.linalg.inv(within + between)


def mahalanobis(w, f, *, relative, length_one):
    means, within, mean, overall = w.within[length_one]
    x = unit(f) if length_one else f
    off = x - means
    nearest = min(float(a @ b) for a, b in zip(off @ within, off, strict=True))
    return (float((x - mean) @ overall @ (x - mean)) if relative else 0) - nearest


def vim(w, f, z):
    origin, rest, a = w.residual
    return lse(z) - a * math.sqrt(sum((rest @ (f - origin)) ** 2))


def fdbd(w, f, z):
    first = int(np.argmax(z))
    apart = [math.dist(w.head.weight[first], w.head.weight[k]) for k in range(len(z))]
    steps = [(z[first] - z[k]) / d for k, d in enumerate(apart) if d > 0]
    return sum(steps) / (len(z) - 1) / math.dist(f, w.features.mean(0))


def nnguide(w, f, z):
    similar = sorted(e * float(g @ unit(f)) for e, g in zip(w.energies, w.units, strict=True))
    most = min(10, few(w))
    return lse(z) * sum(similar[-most:]) / most


def react(w, f, z):
    cut = np.percentile(w.features, 90)
    return lse(w.head(np.array([min(v, cut) for v in f])))


def scale(w, f, z):
    top = sorted(f)[-(len(f) - round(0.85 * len(f))) :]
    return lse(w.head(f * math.exp(sum(f) / sum(top))))


def energy_nearest(w, f, z):
    energy, near = w.held_energies, w.held_nearest
    part = (lse(z) - energy.mean()) / energy.std()
    return part + (-distances(w, f)[0] - near.mean()) / near.std()


def sirc(w, f, z):
    near = w.held_nearest
    a, b = near.mean() - 3 * near.std(), 1 / near.std()
    doubt = sum(sorted(softmax(z))[:-1])  # 1 - max p, of which a double keeps nothing beside 1
    return -math.log(doubt * (1 + math.exp(-b * (-distances(w, f)[0] - a))))


SLOW: dict[str, Slow] = {
    "max_p": lambda w, f, z: max(softmax(z)),
    "any": lambda w, f, z: -sum(math.log1p(-p) for p in softmax(z)),
    "entropy": lambda w, f, z: sum(p * math.log(p) for p in softmax(z)),
    "max_logit": lambda w, f, z: max(z),
    "energy": lambda w, f, z: lse(z),
    "gen": gen,
    "logit_norm": logit_norm,
    "dismax": lambda w, f, z: max(z) + sum(z) / len(z) + sum(p * math.log(p) for p in softmax(z)),
    "nearest": lambda w, f, z: -distances(w, f)[0],
    "knn": lambda w, f, z: -distances(w, f)[min(50, few(w)) - 1],
    "cosine": cosine,
    "mds": lambda w, f, z: mahalanobis(w, f, relative=False, length_one=False),
    "mds_unit": lambda w, f, z: mahalanobis(w, f, relative=False, length_one=True),
    "rmds": lambda w, f, z: mahalanobis(w, f, relative=True, length_one=False),
    "rmds_unit": lambda w, f, z: mahalanobis(w, f, relative=True, length_one=True),
    "vim": vim,
    "fdbd": fdbd,
    "nnguide": nnguide,
    "react": react,
    "scale": scale,
    "energy_nearest": energy_nearest,
    "sirc": sirc,
}


def once(kept, name, make):
    """What is made the first time that somebody asks for it."""
    if name not in kept:
        kept[name] = make()
    return kept[name]


BUILT: dict[str, World] = {}
FOUND: dict[str, dict[str, np.ndarray]] = {}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(
    "which", [pytest.param(n, marks=pytest.mark.slow) if n == "large" else n for n in WORLDS]
)
def test_it_is_its_formula(which, name):
    w = once(BUILT, which, WORLDS[which])
    found = once(
        FOUND, which, lambda: fit(w.train, held=w.held, head=w.head, names=list(SCORES))(w.test)
    )
    pairs = zip(w.test.features.astype(float), w.test.logits.astype(float), strict=True)
    slow = [SLOW[name](w, f, z) for f, z in pairs]
    np.testing.assert_allclose(found[name], slow, rtol=2e-5, atol=2e-5)


def test_gen_takes_the_hundred_largest_of_many():
    z = np.random.default_rng(0).normal(size=(4, 130)) * 3
    found = fit(Outputs(logits=z), names=["gen"])(Outputs(logits=z))["gen"]
    slow = [-sum((p * (1 - p)) ** 0.1 for p in sorted(softmax(row))[-100:]) for row in z]
    np.testing.assert_allclose(found, slow, rtol=1e-9)


@pytest.mark.parametrize("normalised", [True, False])
def test_sirc_tells_rows_apart_of_which_the_network_is_sure(normalised):
    z = np.array([[60.0, 0.0, 0.0], [70.0, 0.0, 0.0], [80.0, 0.0, 0.0]])
    z = z if normalised else z - 20
    made = network(K=3, D=10).inside(300)
    f = np.tile(made.features[:1], (3, 1))
    rows = Outputs(features=f, logits=z, normalised=normalised)
    train = replace(made, normalised=normalised)
    found = fit(train, names=["sirc"])(rows)["sirc"]
    assert np.isfinite(found).all()
    if normalised:  # sigmoids of more than 37 are one in any double
        assert found[0] < found[1] < found[2]
    certain = Outputs(features=f[:1], probs=[[1.0, 0.0, 0.0]], normalised=normalised)
    assert np.isfinite(fit(train, names=["sirc"])(certain)["sirc"]).all()


def test_a_direction_in_which_nothing_varies_has_no_say():
    x = np.random.default_rng(0).normal(size=(50, 4))
    x[:, 3] = x[:, 0]
    covariance = np.cov(x.T)
    expected = np.linalg.pinv(covariance, rcond=1e-8, hermitian=True)
    np.testing.assert_allclose(inverse(covariance), expected, rtol=1e-6, atol=1e-9)
