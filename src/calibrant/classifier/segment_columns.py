"""Segments of a model's rows: which columns they are, and the calibrator that takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fit_params import take
from calibrant.estimators.model_folds import ModelRows
from calibrant.estimators.pooling import Part, fit_pooled
from calibrant.estimators.registry import calibrator_of
from calibrant.segment import SegmentedCalibrator


def segmented_of(given: Any) -> SegmentedCalibrator:
    """The calibrator of segments: the one given, or one whose maps are of the kind given."""
    made = None if given is None else calibrator_of(given)
    if isinstance(made, SegmentedCalibrator):
        return made
    if made is None or isinstance(made, Calibrator):
        return SegmentedCalibrator(made)
    raise ParameterError(
        "with segments, calibrator must be one of a single score such as Platt(), or a "
        f"SegmentedCalibrator, but {made!r} came."
    )


def segments_of(X: Any, columns: Any) -> Any:
    """The columns of rows that hold their segments."""
    named = list(columns) if isinstance(columns, (list, tuple)) else columns
    try:
        return _safe_indexing(X, named, axis=1)
    except (ValueError, KeyError, IndexError, TypeError) as wrong:
        raise InputError(
            f"segments must name columns of X, or their places, but {columns!r} came: {wrong}"
        ) from wrong


def fit_segments(
    calibrator: SegmentedCalibrator, data: ModelRows, parts: list[Part], columns: Any
) -> SegmentedCalibrator:
    """The calibrator, fitted to pooled scores and the segments of their rows."""
    if len(data.classes) != 2:
        raise InputError(f"segments are for two classes, but {len(data.classes)} came.")
    labels = {"classes": list(data.classes), "pos_label": data.classes[data.positive]}
    one: SegmentedCalibrator = clone(calibrator).set_params(**labels)
    segments = segments_of(data.X, columns)

    def fit(scores: Any, rows: Any, weight: Any) -> None:
        y = data.classes[data.codes[rows]]
        groups = None if len(np.unique(rows)) == len(rows) else rows
        one.fit(scores, y, weight, segments=take(segments, rows), groups=groups)

    fit_pooled(one, data.weight, parts, fit, len(data.codes))
    return one
