"""Probabilities and calibrators for data with another base rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, overload

import numpy as np

from calibrant.array_types import Array
from calibrant.data.provenance import records
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import to_matrix
from calibrant.data.validation import read_probabilities
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted, refuse_models
from calibrant.losses import shift_odds
from calibrant.maps import Map, VectorMap
from calibrant.monitor.fit_facts import known_rate
from calibrant.monitor.prior_shifts import (
    GivenShift,
    ProbabilityKind,
    Shift,
    read_shift,
    shift_classes,
)
from calibrant.monitor.probability_input import read_distributions


@overload
def adjust_prior(
    calibrator_or_p: Map,
    *,
    train_rate: Any = None,
    target_rate: Any = None,
    kept: Any = None,
    positive_weight: Any = None,
) -> Map: ...
@overload
def adjust_prior(
    calibrator_or_p: Fitted,
    *,
    train_rate: Any = None,
    target_rate: Any = None,
    kept: Any = None,
    positive_weight: Any = None,
) -> Fitted: ...
@overload
def adjust_prior(
    calibrator_or_p: Any,
    *,
    train_rate: Any = None,
    target_rate: Any = None,
    kept: Any = None,
    positive_weight: Any = None,
) -> Any: ...
def adjust_prior(
    calibrator_or_p: Any,
    *,
    train_rate: Any = None,
    target_rate: Any = None,
    kept: Any = None,
    positive_weight: Any = None,
) -> Any:
    """Move calibrated probabilities, or what makes them, to data with another base rate.

    logit p' = logit p + logit π' − logit π, where π is the rate of positives at which p is
    calibrated, and π' the rate where p' is used. For several classes p'_c ∝ p_c · π'_c / π_c. This
    is exact if only the rates differ: within each class, rows must be alike in both places.

    Parameters
    ----------
    calibrator_or_p : fitted calibrator, Fitted, Map, or array-like of probabilities
        Probabilities are (n,) or (n, 1) of the positive class, or (n, k) of all classes. If rates
        are numbers, the second of two columns is the positive class. For a `CalibratedClassifier`
        pass what it predicts, or its ``to_fitted()``.
    train_rate, target_rate : number, or one for each class
        π and π', rates of ``pos_label``. By default ``train_rate`` is the rate of the rows to which
        the calibrator was fitted, or the rate after the last adjustment or update (`Drift.update`).
        ``target_rate`` may be the result of `estimate_rate` or `estimate_rates`, which knows its
        train_rate. For several classes, or labels that do not exclude each other, rates are arrays
        in the order of the classes, or dictionaries by label.
    kept : number, pair, or one for each class
        Instead of rates: the share of the negatives that was kept when the training rows were
        undersampled, or the shares of (negatives, positives), or of each class.
    positive_weight : number, or one for each label
        Instead of rates: by what the weight of positives was multiplied in training, such as
        XGBoost's ``scale_pos_weight``.

    Returns
    -------
    ndarray, Map or Fitted
        Probabilities of the same shape, a map for a map, and a `Fitted` for all else: the same
        labels, and a record of this and all earlier adjustments in ``provenance["prior"]``.

    Notes
    -----
    Costs O(n) for n probabilities and O(m) for a map of m parameters. An intercept or the values of
    steps change, or a last step on the logit scale is added. So the map is saved and exported like
    any other. A last step takes a probability of 1, which has no logit, as 1 − 2⁻⁵³; elsewhere 0
    and 1 stay what they are. Averages of several distributions, and codes combined other than by
    ``"normalize"``, have no such map: adjust their probabilities. With ``"normalize"``, a row to
    which every column gives 0 keeps the uniform distribution.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14, 2002, https://doi.org/10.1162/089976602753284446.
    A. Dal Pozzolo et al., "Calibrating probability with undersampling for unbalanced
    classification", 2015, https://doi.org/10.1109/SSCI.2015.33.

    Examples
    --------
    >>> import calibrant as cal
    >>> adjust_prior([0.2, 0.5], train_rate=0.5, target_rate=0.1).round(4).tolist()
    [0.027, 0.1]
    >>> adjust_prior([0.5], kept=0.1).round(4).tolist()
    [0.0909]
    >>> c = cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> f = adjust_prior(c, target_rate=0.1)
    >>> f.provenance["prior"][0]["train_rate"], f.provenance["prior"][0]["target_rate"]
    (0.5, 0.1)
    """
    if isinstance(calibrator_or_p, (type, ScoreTable)):
        raise InputError(
            "only a fitted calibrator, what load returns, a map, or probabilities can be moved to "
            f"another rate, but {_came(calibrator_or_p)}"
        )
    given = GivenShift(train_rate, target_rate, kept, positive_weight)
    if isinstance(calibrator_or_p, Map):
        return _adjust_map(calibrator_or_p, read_shift(given, _kind_of_map(calibrator_or_p)))
    if hasattr(calibrator_or_p, "to_fitted"):
        return _adjust_fitted(_fitted(calibrator_or_p), given)
    return _adjust_probabilities(calibrator_or_p, given)


def _came(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__} came. Fit one first."
    return "a ScoreTable came. Move its probabilities: adjust_prior(table.scores, ...)."


def _adjust_map(map_: Map, shift: Shift) -> Map:
    if (shift.factor == 1.0).all():
        return map_
    return map_.shifted(shift.factor)


def _kind_of_map(
    map_: Map, labels: tuple[Any, ...] | None = None, rate: Any = None
) -> ProbabilityKind:
    if not isinstance(map_, VectorMap):
        return ProbabilityKind(rate=rate)
    return ProbabilityKind(map_.n_classes, map_.distribution, labels, rate)


# --- fitted calibrators ---------------------------------------------------------------------------


def _fitted(calibrator: Any) -> Fitted:
    refuse_models(calibrator)
    fitted = calibrator.to_fitted()
    if isinstance(fitted, Fitted):
        return fitted
    raise InputError(
        f"{fitted.method} is no function of the score alone, so that it cannot be adjusted as a "
        "map. Adjust what it gives: adjust_prior(calibrator.predict_proba(...), ...)."
    )


def _adjust_fitted(fitted: Fitted, given: GivenShift) -> Fitted:
    kind = _kind_of_map(fitted.map, fitted.classes, known_rate(fitted))
    shift = read_shift(given, kind)
    facts = fitted.provenance
    return replace(
        fitted,
        map=_adjust_map(fitted.map, shift),
        provenance={**facts, "prior": [*records(facts, "prior"), shift.record]},
    )


# --- probabilities --------------------------------------------------------------------------------


def _adjust_probabilities(p: Any, given: GivenShift) -> Array:
    matrix = to_matrix(p, "p")
    columns = matrix.shape[1] if matrix.ndim == 2 else 1
    if columns > 2 or (columns == 2 and _by_class(given)):
        shift = read_shift(given, ProbabilityKind(columns, distribution=True))
        return shift_classes(read_distributions(matrix), shift.factor)
    shift = read_shift(given, ProbabilityKind())
    moved = shift_odds(read_probabilities(matrix), shift.factor)
    return np.column_stack((1.0 - moved, moved)) if columns == 2 else moved.reshape(matrix.shape)


def _by_class(given: GivenShift) -> bool:
    """Whether rates are given for both of two classes."""
    target = getattr(given.target_rate, "rate", given.target_rate)
    return target is not None and np.ndim(target) > 0
