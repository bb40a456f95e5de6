"""The models of a `CalibratedClassifier`, and the scores that their calibrators see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from calibrant.estimators.model_folds import ModelRows, fit_and_score
from calibrant.estimators.pooling import Part
from calibrant.estimators.splits import SPLITTING, check_calibrating, row_pairs, warn_of_missing

__all__ = ["fit_models"]


def fit_models(
    classifier: Any, data: ModelRows, estimator: Any, kind: str, groups: Any
) -> list[tuple[Any, list[Part], NDArray[np.intp] | None]]:
    """The models to keep, each with the scores to calibrate it on and the rows it learned.

    ``kind`` is that of the classifier's cv.
    """
    pairs = row_pairs(classifier.cv, data, groups, classifier.random_state)
    if kind in SPLITTING:
        warn_of_missing(pairs, data, estimator)
    if classifier.ensemble:
        check_calibrating(pairs, data)
    scored = Parallel(n_jobs=classifier.n_jobs)(
        delayed(fit_and_score)(data, estimator, train, test) for train, test in pairs
    )
    parts = [(scores, test) for (_, scores), (_, test) in zip(scored, pairs, strict=True)]
    if kind == "folds" and not classifier.ensemble:
        return [(data.fit_again(estimator, [model for model, _ in scored]), parts, None)]
    return [
        (model, [part], train)
        for (model, _), part, (train, _) in zip(scored, parts, pairs, strict=True)
    ]
