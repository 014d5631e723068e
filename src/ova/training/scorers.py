"""Scorers for scikit-learn's searches where the probabilities of a row need not sum to one."""

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score


def roc_auc_ovr(model: Any, X: Any, y: Any) -> float:
    """The mean over classes of the AUROC of p_k, class k against all other rows: `scoring=roc_auc_ovr`.

    The area looks at the order of one column alone, so nothing is normalised. Rows with a label that the
    model does not know are of none of the classes, and count against each; classes without a row in y
    have no area.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from ova import OneVsAllClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsAllClassifier(epochs=20, random_state=0)
    >>> bool(cross_val_score(model, X, y, scoring=model.roc_auc_ovr, cv=3).min() > 0.9)
    True
    """
    p, y = model.predict_proba(X), np.asarray(y)
    own = [y == label for label in model.classes_]
    areas = [
        roc_auc_score(mine, column)
        for mine, column in zip(own, p.T, strict=True)
        if 0 < mine.sum() < len(y)
    ]
    return float(np.mean(areas)) if areas else float("nan")
