"""A calibrator fitted to the pooled scores of all folds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.weighing import weight_in_rows
from calibrant.estimators.fit_params import take
from calibrant.estimators.model_folds import ModelRows

#: scores, and the rows that they belong to (None: all)
Part = tuple[Array, Index | None]


@contextmanager
def pooled(
    calibrator: Any, data: ModelRows, parts: list[Part]
) -> Iterator[tuple[Array, Index, Array | None]]:
    """The scores of all parts, the rows that they belong to, and the weights of the scores.

    The calibrator is to be fitted to them inside the block.

    With repeated splits a row that is scored r times counts 1/r each time, so that all its scores
    together count as one row. Weights are then in units of rows, and inside the block the
    calibrator is told so.
    """
    n = len(data.codes)
    scores = np.concatenate([scores for scores, _ in parts])
    rows = np.concatenate([np.arange(n) if test is None else test for _, test in parts])
    times = np.bincount(rows, minlength=n)
    if times.max(initial=1) <= 1:
        yield scores, rows, take(data.weight, rows)
        return
    told = _weights_told(calibrator)
    size = np.ones(n)
    if data.weight is not None:
        seen = times > 0
        in_rows = weight_in_rows(data.weight[seen], next(iter(told.values()), "importance"))
        size[seen] = 1.0 if in_rows is None else in_rows
    counting_rows(calibrator)
    yield scores, rows, (size / np.maximum(times, 1))[rows]
    calibrator.set_params(**told)  # the parameters that are saved are those of the user


def counting_rows(calibrator: Any) -> Any:
    """The calibrator, and any inside it, told that weights are numbers of rows."""
    return calibrator.set_params(**dict.fromkeys(_weights_told(calibrator), "counts"))


def _weights_told(calibrator: Any) -> dict[str, str]:
    """The parameters ``weights`` of a calibrator and of any inside it, with their values."""
    params = calibrator.get_params()
    return {name: told for name, told in params.items() if name.split("__")[-1] == "weights"}
