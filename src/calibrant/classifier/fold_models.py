"""The models of a `CalibratedClassifier`, and the scores that their calibrators see."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.utils.parallel import Parallel, delayed

from calibrant.arrays import Index
from calibrant.estimators.model_folds import ModelRows, fit_and_score
from calibrant.estimators.pooling import Part
from calibrant.estimators.splits import SPLITTING, check_calibrating, row_pairs, warn_of_missing


class FittedModel(NamedTuple):
    """A fitted model and the rows that it learned (None: all of them)."""

    model: Any
    learned: Index | None


class ModelToKeep(NamedTuple):
    """A model that predicts, and the scores to calibrate it on, part by part.

    Each part was scored by the model of ``scored_by`` at its place.
    """

    kept: FittedModel
    parts: list[Part]
    scored_by: list[FittedModel]


def fit_models(
    classifier: Any, data: ModelRows, estimator: Any, kind: str, groups: Any
) -> list[ModelToKeep]:
    """The models to keep. ``kind`` is that of the classifier's cv."""
    pairs = row_pairs(classifier.cv, data, groups, classifier.random_state)
    if kind in SPLITTING:
        warn_of_missing(pairs, data, estimator)
    if classifier.ensemble:
        check_calibrating(pairs, data)
    scored = Parallel(n_jobs=classifier.n_jobs)(
        delayed(fit_and_score)(data, estimator, train, test) for train, test in pairs
    )
    parts = [(scores, test) for (_, scores), (_, test) in zip(scored, pairs, strict=True)]
    models = [
        FittedModel(model, train) for (model, _), (train, _) in zip(scored, pairs, strict=True)
    ]
    if kind == "folds" and not classifier.ensemble:
        again = FittedModel(data.fit_again(estimator, [model for model, _ in models]), None)
        return [ModelToKeep(again, parts, models)]
    return [ModelToKeep(model, [part], [model]) for model, part in zip(models, parts, strict=True)]
