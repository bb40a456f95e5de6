"""The additive score F of a boosted model, ours or scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier
from sklearn.utils.validation import check_is_fitted

from calibrant.array_types import Array
from calibrant.boosting.adaboost import AdaBoost
from calibrant.errors import InputError


def boosting_score(model: Any, X: Any) -> Array:
    """F = Σ αₜhₜ of a boosted model, the score that `LogisticCorrection` takes; 0 is undecided.

    Parameters
    ----------
    model : fitted AdaBoost, or scikit-learn's AdaBoostClassifier
        Of two classes; also as the last step of a pipeline, or as what a search found.
    X : rows
        Whatever the model takes.

    Returns
    -------
    ndarray of shape (n,)
        High values speak for the model's ``classes_[1]``.

    Notes
    -----
    scikit-learn divides its ``decision_function`` by the sum of its ``estimator_weights_``, so that
    it lies in [−2, 2] however many learners there are, and its weights are 2α. This is undone:
    F = ¼ · Σ estimator_weights_ · decision_function. Its ``predict_proba`` is a sigmoid of the
    divided score, too, and no logistic correction. Its perfect learners have α = ½.

    `LogisticCorrection` is for the exponential loss, also scikit-learn's: σ(2F). An
    ``AdaBoost(loss="log")`` has σ(F), which its ``predict_proba`` gives.

    Cost: that of the model's decision_function.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import AdaBoostClassifier
    >>> X, y = make_classification(200, random_state=0)
    >>> model = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> model.decision_function(X[:2]).round(3).tolist()
    [-1.19, -1.306]
    >>> boosting_score(model, X[:2]).round(3).tolist()
    [-3.399, -3.73]
    """
    booster = _booster(model)
    scale = next((of for kind, of in _SCALES.items() if isinstance(booster, kind)), None)
    if scale is None:
        raise InputError(
            "model must be a fitted AdaBoost, or an AdaBoostClassifier of scikit-learn, possibly "
            f"at the end of a pipeline, but {type(booster).__name__} came. Other models have no "
            "score of the form Σαh: calibrate their decision_function or predict_proba with a "
            "fitted method such as Platt."
        )
    check_is_fitted(booster)
    if len(booster.classes_) != 2:
        raise InputError(
            f"model must know two classes, but it knows {len(booster.classes_)}: the score Σαh is "
            "one number per row only for two."
        )
    return np.asarray(scale(booster) * model.decision_function(X), dtype=np.float64)


def _booster(model: Any) -> Any:
    """The model itself, the last step of a pipeline, or the best model of a search."""
    while True:
        if getattr(model, "steps", None):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return model


#: what the decision_function of a kind of model must be multiplied by
_SCALES: Mapping[type, Callable[[Any], float]] = {
    AdaBoost: lambda model: 1.0,
    AdaBoostClassifier: lambda model: 0.25 * float(model.estimator_weights_.sum()),
}
