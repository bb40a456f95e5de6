"""Rows of numbers: blocks of them, and whether they are finite, and distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Flags
from calibrant.errors import InputError

#: float64, or float32 where float32 came: a matrix may be larger than memory
Scores = NDArray[Any]

#: numbers per block of rows: its temporaries stay in cache
BLOCK = 1 << 17
#: how far the sum of a row of probabilities may be from one: so much, half a percent for each class
#: (they may be rounded to two digits), and no more than that for twenty classes
SUM_TOLERANCE, ROUNDED, MOST_CLASSES = 1e-3, 0.005, 20
FOR_LOGITS = 'For logits use scale="raw".'


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Slices of rows with about `BLOCK` numbers each."""
    step = max(1, BLOCK // max(k, 1))
    return (slice(start, start + step) for start in range(0, n, step))


class BadRows(NamedTuple):
    """How many of all rows are bad, where the first is, and what it holds."""

    wrong: int
    first: int
    rows: int
    row: NDArray[Any]


def check_finite_rows(array: Scores, name: str) -> None:
    """Refuse rows that hold NaN or infinity."""
    if bad := _bad_rows(array, lambda part: np.asarray(~np.isfinite(part).all(axis=1))):
        refuse_infinite(bad, name)


def refuse_infinite(bad: BadRows, name: str = "scores") -> None:
    """The error of rows that hold NaN or infinity."""
    column = int(np.argmin(np.isfinite(bad.row)))
    word = "NaN" if np.isnan(bad.row[column]) else "infinity"
    raise InputError(
        f"{name} must be finite: {bad.wrong} of {bad.rows} rows hold NaN or infinity (first at "
        f"row {bad.first}, column {column}: {word}). Drop or impute them first."
    )


def check_distributions(array: Scores, name: str = "scores", *, advice: str = FOR_LOGITS) -> None:
    """Refuse rows that are not distributions, see `are_distributions`."""
    if bad := _bad_rows(array, _not_distributions):
        refuse_distributions(bad, name, advice)


def refuse_distributions(bad: BadRows, name: str = "scores", advice: str = FOR_LOGITS) -> None:
    """The error of rows that are not distributions."""
    shown = ", ".join(f"{value:g}" for value in bad.row[:6])
    with np.errstate(over="ignore"):
        total = bad.row.sum(dtype=np.float64)
    raise InputError(
        f"{name} must be probabilities, each row in [0, 1] with the sum 1, but {bad.wrong} of "
        f"{bad.rows} rows {'is' if bad.wrong == 1 else 'are'} not (first at row {bad.first}: "
        f"[{shown}{', …' if len(bad.row) > 6 else ''}], sum {total:g}). {advice}"
    )


def are_distributions(array: Scores) -> bool:
    """Whether every row is a distribution: entries in [0, 1] whose sum is one, up to rounding.

    >>> are_distributions(np.array([[0.33, 0.33, 0.33]])), are_distributions(np.array([[0.5, 0.4]]))
    (True, False)
    """
    parts = (array[rows] for rows in row_blocks(*array.shape))
    return not any(_not_distributions(part).any() for part in parts)


def _bad_rows(array: Scores, is_bad: Callable[[Scores], Flags]) -> BadRows | None:
    """The rows of which a function says that they are bad; None if there are none."""
    count, first = 0, -1
    for rows in row_blocks(*array.shape):
        bad = is_bad(array[rows])
        if count == 0 and bad.any():
            first = rows.start + int(np.argmax(bad))
        count += int(bad.sum())
    return BadRows(count, first, len(array), array[first]) if count else None


def _not_distributions(part: Scores) -> Flags:
    outside = np.asarray((part < 0).any(axis=1) | (part > 1).any(axis=1))
    if outside.all():
        return outside
    sums = np.clip(part, 0.0, 1.0).sum(axis=1, dtype=np.float64)
    return np.asarray(outside | (np.abs(sums - 1.0) > sum_tolerance(part.shape[1])))


def sum_tolerance(classes: int) -> float:
    """How far the sum of a row of probabilities may be from one.

    >>> sum_tolerance(3), sum_tolerance(1000)
    (0.016, 0.101)
    """
    return SUM_TOLERANCE + ROUNDED * min(classes, MOST_CLASSES)
