"""Every score against its formula, written out as slow loops in float64 that share nothing with it."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.covariance import OAS

from made_outputs import network
from ova.scores import SCORES, Outputs, fit
from ova.scores.moments import inverse

NET = network(K=6, D=10)
TRAIN, HELD, TEST = NET.inside(300), NET.inside(90, seed=3), NET.inside(25, seed=4)
W, B = NET.head.weight, NET.head.bias
FEATURES = TRAIN.features.astype(float)
TARGET = TRAIN.target
ROWS = [np.flatnonzero(TRAIN.target == k) for k in range(6)]

Slow = Callable[[np.ndarray, np.ndarray], float]  # of one feature vector and its logits


def lse(z):
    return math.log(sum(math.exp(v - max(z)) for v in z)) + max(z)


def softmax(z):
    return [math.exp(v - lse(z)) for v in z]


def unit(f):
    return f / (math.sqrt(sum(v * v for v in f)) or 1)


def gen(f, z):
    return -sum((p * (1 - p)) ** 0.1 for p in softmax(z))


def logit_norm(f, z):
    c = [v - sum(z) / len(z) for v in z]
    return max(c) / sum(abs(v) ** 5 for v in c) ** 0.2


def distances(f):
    return sorted(math.dist(unit(f), unit(g)) for g in FEATURES)


def few():
    return max(1, int(np.median([len(ROWS[k]) for k in range(6)])) // 2)


def cosine(f, z):
    best = -1.0
    for k in range(6):
        mean = sum(unit(g) for g in FEATURES[ROWS[k]]) / len(ROWS[k])
        best = max(best, float(unit(mean) @ unit(f)))
    return best


def mahalanobis(f, *, relative, shape):
    g = np.array([shape(row) for row in FEATURES])
    x = shape(f)
    means = [g[ROWS[k]].mean(0) for k in range(6)]
    centred = np.concatenate([g[ROWS[k]] - means[k] for k in range(6)])
    within = OAS(assume_centered=True).fit(centred).covariance_
    nearest = min(float((x - m) @ np.linalg.solve(within, x - m)) for m in means)
    if not relative:
        return -nearest
    mean = g.mean(0)
    between = sum(
        (len(ROWS[k]) / len(TARGET)) * np.outer(means[k] - mean, means[k] - mean) for k in range(6)
    )
    return float((x - mean) @ np.linalg.solve(within + between, x - mean)) - nearest


def vim(f, z):
    origin = -np.linalg.pinv(W) @ B
    centred = FEATURES - origin
    _, _, vectors = np.linalg.svd(centred, full_matrices=False)
    rest = vectors[5:]  # ten features: five are principal

    def length(x):
        return math.sqrt(sum(float(v @ (x - origin)) ** 2 for v in rest))

    a = sum(max(W @ x + B) for x in FEATURES) / sum(length(x) for x in FEATURES)
    return lse(z) - a * length(f)


def fdbd(f, z):
    first = int(np.argmax(z))
    steps = [(z[first] - z[k]) / math.dist(W[first], W[k]) for k in range(6) if k != first]
    return sum(steps) / 5 / math.dist(f, FEATURES.mean(0))


def nnguide(f, z):
    similar = sorted(lse(W @ g + B) * float(unit(g) @ unit(f)) for g in FEATURES)
    return lse(z) * sum(similar[-10:]) / 10


def react(f, z):
    cut = np.percentile(FEATURES, 90)
    return lse(W @ np.array([min(v, cut) for v in f]) + B)


def scale(f, z):
    top = sorted(f)[-2:]  # 15 % of ten, as 10 - round(8.5) has it
    return lse(W @ (f * math.exp(sum(f) / sum(top))) + B)


def held_nearest():
    return np.array([-distances(g)[0] for g in HELD.features.astype(float)])


def energy_nearest(f, z):
    energies = np.array([lse(W @ g + B) for g in HELD.features.astype(float)])
    near = held_nearest()
    return (lse(z) - energies.mean()) / energies.std() + (
        -distances(f)[0] - near.mean()
    ) / near.std()


def sirc(f, z):
    near = held_nearest()
    a, b = near.mean() - 3 * near.std(), 1 / near.std()
    published = -(1 - max(softmax(z))) * (1 + math.exp(-b * (-distances(f)[0] - a)))
    return -math.log(-published)


def as_is(f):
    return f


SLOW: dict[str, Slow] = {
    "max_p": lambda f, z: max(softmax(z)),
    "any": lambda f, z: -sum(math.log1p(-p) for p in softmax(z)),
    "entropy": lambda f, z: sum(p * math.log(p) for p in softmax(z)),
    "max_logit": lambda f, z: max(z),
    "energy": lambda f, z: lse(z),
    "gen": gen,
    "logit_norm": logit_norm,
    "dismax": lambda f, z: max(z) + sum(z) / len(z) + sum(p * math.log(p) for p in softmax(z)),
    "nearest": lambda f, z: -distances(f)[0],
    "knn": lambda f, z: -distances(f)[min(50, few()) - 1],
    "cosine": cosine,
    "mds": lambda f, z: mahalanobis(f, relative=False, shape=as_is),
    "mds_unit": lambda f, z: mahalanobis(f, relative=False, shape=unit),
    "rmds": lambda f, z: mahalanobis(f, relative=True, shape=as_is),
    "rmds_unit": lambda f, z: mahalanobis(f, relative=True, shape=unit),
    "vim": vim,
    "fdbd": fdbd,
    "nnguide": nnguide,
    "react": react,
    "scale": scale,
    "energy_nearest": energy_nearest,
    "sirc": sirc,
}


@pytest.mark.parametrize("name", SCORES)
def test_it_is_its_formula(name):
    found = fit(TRAIN, held=HELD, head=NET.head, names=[name])(TEST)[name]
    pairs = zip(TEST.features.astype(float), TEST.logits.astype(float), strict=True)
    np.testing.assert_allclose(found, [SLOW[name](f, z) for f, z in pairs], rtol=2e-5, atol=2e-5)


def test_gen_takes_the_hundred_largest_of_many():
    z = np.random.default_rng(0).normal(size=(4, 130)) * 3
    found = fit(Outputs(logits=z), names=["gen"])(Outputs(logits=z))["gen"]
    slow = [-sum((p * (1 - p)) ** 0.1 for p in sorted(softmax(row))[-100:]) for row in z]
    np.testing.assert_allclose(found, slow, rtol=1e-9)


@pytest.mark.parametrize("normalised", [True, False])
def test_sirc_tells_rows_apart_of_which_the_network_is_sure(normalised):
    z = np.array([[60.0, 0.0, 0.0], [70.0, 0.0, 0.0], [80.0, 0.0, 0.0]])
    z = z if normalised else z - 20
    f = np.tile(FEATURES[:1], (3, 1))
    rows = Outputs(features=f, logits=z, normalised=normalised)
    train = Outputs(
        features=FEATURES, logits=(FEATURES @ W.T)[:, :3], target=TARGET % 3, normalised=normalised
    )
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
