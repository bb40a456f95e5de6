"""A calibrator fitted to the pooled scores of all folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.arrays import Array, Index
from calibrant.data.weighing import weight_in_rows
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fit_params import take
from calibrant.estimators.model_folds import ModelRows

#: scores, and the rows that they belong to (None: all)
Part = tuple[Array, Index | None]


def fit_calibrator(calibrator: Calibrator, data: ModelRows, parts: list[Part]) -> Calibrator:
    """With two classes: the calibrator, fitted to the pooled parts."""
    labels = {"classes": list(data.classes), "pos_label": data.classes[data.positive]}
    one: Calibrator = clone(calibrator).set_params(**labels)

    labels_or_shares = data.y if data.share is None else data.share

    def fit(scores: Array, rows: Index, weight: Array | None) -> None:
        one.fit(scores, labels_or_shares[rows], weight)

    fit_pooled(one, data.weight, parts, fit, len(data.codes))
    return one


def fit_pooled(
    calibrator: Any,
    weight: Array | None,
    parts: list[Part],
    fit: Callable[[Array, Index, Array | None], None],
    n: int,
) -> None:
    """Call ``fit`` with the scores of all parts, the rows (of n) they belong to, and weights.

    With repeated splits a row that is scored r times counts 1/r each time, so that all its scores
    together count as one row. Weights are then in units of rows, and the calibrator is told so.
    """
    scores = np.concatenate([scores for scores, _ in parts])
    rows = np.concatenate([np.arange(n) if test is None else test for _, test in parts])
    times = np.bincount(rows, minlength=n)
    if times.max(initial=1) <= 1:
        fit(scores, rows, take(weight, rows))
        return
    told = _weights_told(calibrator)
    size = np.ones(n)
    if weight is not None:
        seen = times > 0
        in_rows = weight_in_rows(weight[seen], next(iter(told.values()), "importance"))
        size[seen] = 1.0 if in_rows is None else in_rows
    counting_rows(calibrator)
    fit(scores, rows, (size / np.maximum(times, 1))[rows])
    calibrator.set_params(**told)  # the parameters that are saved are those of the user


def counting_rows(calibrator: Any) -> Any:
    """The calibrator, and any inside it, told that weights are numbers of rows."""
    return calibrator.set_params(**dict.fromkeys(_weights_told(calibrator), "counts"))


def _weights_told(calibrator: Any) -> dict[str, str]:
    """The parameters ``weights`` of a calibrator and of any inside it, with their values."""
    params = calibrator.get_params()
    return {name: told for name, told in params.items() if name.split("__")[-1] == "weights"}
